//! Who may import whom: the layer map of `src/lib.rs`, checked against the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each module with those it may name besides itself.
const MAY_USE: &[(&str, &[&str])] = &[
    ("time", &[]),
    ("limits", &[]),
    ("rng", &[]),
    ("store", &["time", "limits", "rng"]),
    ("wire", &["store", "time", "limits", "rng"]),
    ("netcode", &["wire", "store", "time", "limits", "rng"]),
    ("transport", &["wire", "store", "time", "limits", "rng"]),
    ("slices", &["wire", "store", "time", "rng"]),
    ("endpoint", &["netcode", "transport", "wire", "store", "time", "limits", "rng"]),
    ("netsim", &["store", "time", "rng"]),
    ("driver", &["netsim", "endpoint", "netcode", "transport", "wire", "store", "time", "limits", "rng"]),
];

/// What only the outermost layers may touch.
const OUTSIDE: &[&str] =
    &["std::net", "std::thread", "std::time", "pyo3", "socket2", "libc::", "mio::", "getrandom"];

fn sources(root: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The source without its unit tests, which may use anything.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned()
}

#[test]
fn arrows_point_down_only() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    assert!(files.len() > 20, "the sources were found");
    for path in files {
        let relative = path.strip_prefix(&src).unwrap();
        let module = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        let Some((_, may_use)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
            assert!(["lib", "python"].contains(&module), "{module} is not in the layer map");
            continue;
        };
        let code = code(&path);
        for (other, _) in MAY_USE {
            let allowed = *other == module || may_use.contains(other);
            assert!(allowed || !code.contains(&format!("crate::{other}")), "{relative:?} uses {other}");
        }
        if module != "driver" {
            for name in OUTSIDE {
                assert!(!code.contains(name), "{relative:?} uses {name}");
            }
        }
    }
}

/// The modules right inside of a layer that each of its modules names, tests and links of docs left out.
fn uses_inside(layer: &str) -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(layer);
    let mut files = Vec::new();
    sources(&root, &mut files);
    let inner = |path: &Path| {
        let relative = path.strip_prefix(&root).unwrap();
        let depth = relative.iter().count() - usize::from(relative.ends_with("mod.rs"));
        let module = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        (module, depth)
    };
    let modules: BTreeSet<String> = files.iter().map(|path| inner(path).0).collect();
    let mut uses = BTreeMap::<_, BTreeSet<_>>::new();
    for path in files.iter().filter(|path| !is_for_tests(path)) {
        let (module, depth) = inner(path);
        let code = code(path);
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code = lines.collect::<Vec<_>>().join("\n").replace("#[cfg(doc)]\nuse super", "");
        let prefixes = [format!("crate::{layer}::"), "super::".repeat(depth)];
        for prefix in prefixes.iter().filter(|prefix| !prefix.is_empty()) {
            for (at, _) in code.match_indices(prefix) {
                // Of a longer chain of `super` this is not the beginning.
                if prefix.starts_with("super") && code[..at].ends_with("super::") {
                    continue;
                }
                let rest = &code[at + prefix.len()..];
                let names = match rest.strip_prefix('{') {
                    Some(group) => group.split('}').next().unwrap(),
                    None => rest.split(|c: char| c != '_' && !c.is_alphanumeric()).next().unwrap(),
                };
                let named = names.split(',').map(|name| name.trim().split("::").next().unwrap().to_owned());
                let others = named.filter(|name| *name != module && modules.contains(name));
                uses.entry(module.clone()).or_default().extend(others);
            }
        }
    }
    uses
}

/// Whether the module of this file is declared for tests only.
fn is_for_tests(path: &Path) -> bool {
    let (name, parent) = (path.file_stem().unwrap().to_str().unwrap(), path.parent().unwrap());
    let declared = format!("#[cfg(test)]\nmod {name};");
    [parent.join("mod.rs"), parent.with_extension("rs")]
        .iter()
        .any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(&declared)))
}

#[test]
fn no_circle_among_the_modules_of_a_layer() {
    for layer in ["transport"] {
        let mut uses = uses_inside(layer);
        assert!(uses.values().map(BTreeSet::len).sum::<usize>() > 10, "{uses:?}");
        // What uses nothing that is left can be taken away; of a circle something stays.
        loop {
            let left: BTreeSet<String> = uses.keys().cloned().collect();
            let before = uses.len();
            uses.retain(|_, of| of.iter().any(|other| left.contains(other)));
            if uses.len() == before {
                break;
            }
        }
        assert!(uses.is_empty(), "{layer}: {uses:#?}");
    }
}
