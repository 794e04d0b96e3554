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
    ("calls", &["time"]),
    ("mesh", &["time"]),
    ("netcode", &["wire", "store", "time", "limits", "rng"]),
    ("transport", &["wire", "store", "time", "limits", "rng"]),
    ("timeline", &["wire", "store", "time", "rng"]),
    ("rendezvous", &["store", "time", "limits", "rng"]),
    ("rollback", &["wire", "store", "time", "rng"]),
    ("lockstep", &["wire", "store", "time", "rng"]),
    ("articles", &["transport", "wire", "store", "time", "limits", "rng"]),
    ("endpoint", &["netcode", "transport", "wire", "store", "time", "limits", "rng"]),
    ("replication", &["endpoint", "transport", "wire", "store", "time", "limits", "rng"]),
    (
        "session",
        &[
            "rollback",
            "replication",
            "timeline",
            "lockstep",
            "mesh",
            "rendezvous",
            "endpoint",
            "netcode",
            "transport",
            "wire",
            "store",
            "time",
            "limits",
            "rng",
        ],
    ),
    ("netsim", &["store", "time", "rng"]),
    (
        "driver",
        &[
            "rollback",
            "netsim",
            "session",
            "replication",
            "timeline",
            "mesh",
            "rendezvous",
            "endpoint",
            "netcode",
            "transport",
            "wire",
            "store",
            "time",
            "limits",
            "rng",
        ],
    ),
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

/// Layers inside which no modules know each other in a circle.
const WITHOUT_CIRCLES: &[&str] = &[
    "transport",
    "endpoint",
    "replication",
    "timeline",
    "lockstep",
    "mesh",
    "rollback",
    "session",
    "driver",
    "rendezvous",
];

/// The paths of a source's `use` declarations, one name each.
fn imports(code: &str) -> Vec<String> {
    fn expand(prefix: &str, tree: &str, found: &mut Vec<String>) {
        let tree = tree.trim();
        let Some((before, inside)) = tree.split_once('{') else {
            if !tree.is_empty() {
                let path = tree.split(" as ").next().unwrap_or(tree);
                found.push(format!("{prefix}{path}"));
            }
            return;
        };
        let (prefix, inside) = (format!("{prefix}{before}"), inside.trim_end().trim_end_matches('}'));
        let (mut depth, mut start) = (0, 0);
        for (at, letter) in inside.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&prefix, &inside[start..at], found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        expand(&prefix, &inside[start..], found);
    }
    let mut found = Vec::new();
    for statement in code.split(';') {
        // An attribute or a comment may stand in front of it.
        let uses = statement.lines().position(|line| {
            let line = line.trim_start();
            let line = line.strip_prefix("pub").map_or(line, |rest| {
                rest.strip_prefix('(')
                    .and_then(|rest| rest.split_once(") "))
                    .map_or(rest.trim_start(), |it| it.1)
            });
            line.starts_with("use ")
        });
        let Some(first) = uses else { continue };
        let text: String = statement.lines().skip(first).collect();
        let (_, tree) = text.split_once("use ").unwrap();
        expand("", tree, &mut found);
    }
    found
}

/// Which modules of a layer each of them names.
fn edges(layer: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let name = layer.file_name().unwrap().to_str().unwrap();
    let root = format!("crate::{name}::");
    let mut files = Vec::new();
    sources(layer, &mut files);
    let module_of = |path: &Path| {
        let relative = path.strip_prefix(layer).unwrap();
        relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned()
    };
    // What the layer gives to others under a name of its own: where it comes from.
    let mut exports = BTreeMap::new();
    for path in imports(&code(&layer.join("mod.rs"))) {
        let mut parts = path.split("::");
        exports.insert(path.rsplit("::").next().unwrap().to_owned(), parts.next().unwrap().to_owned());
    }
    let modules: BTreeSet<String> =
        files.iter().map(|path| module_of(path)).filter(|module| module != "mod").collect();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in &files {
        let module = module_of(path);
        let depth = path.strip_prefix(layer).unwrap().components().count();
        // `super` is the layer in a module's own file only.
        let is_root = depth == 1 || depth == 2 && path.ends_with("mod.rs");
        let up = if is_root { "super::" } else { "super::super::" };
        for import in imports(&code(path)) {
            let rest = import.strip_prefix(&root).or_else(|| import.strip_prefix(up));
            let Some(first) = rest.and_then(|rest| rest.split("::").next()) else { continue };
            let other = exports.get(first).map_or(first, String::as_str);
            if modules.contains(other) && other != module && module != "mod" {
                edges.entry(module.clone()).or_default().insert(other.to_owned());
            }
        }
    }
    edges
}

/// Modules that name each other in a circle, if any.
fn circle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk(
        edges: &BTreeMap<String, BTreeSet<String>>,
        at: &str,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(place) = way.iter().position(|module| module == at) {
            return Some(way[place..].to_vec());
        }
        if done.contains(at) {
            return None;
        }
        way.push(at.to_owned());
        let found = edges.get(at).into_iter().flatten().find_map(|next| walk(edges, next, way, done));
        way.pop();
        done.insert(at.to_owned());
        found
    }
    let mut done = BTreeSet::new();
    edges.keys().find_map(|module| walk(edges, module, &mut Vec::new(), &mut done))
}

#[test]
fn no_modules_of_a_layer_know_each_other_in_a_circle() {
    for layer in WITHOUT_CIRCLES {
        let edges = edges(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(layer));
        assert_eq!(circle(&edges), None, "in {layer}: {edges:?}");
    }
    let of = |pairs: &[(&str, &str)]| {
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in pairs {
            edges.entry((*from).into()).or_default().insert((*to).into());
        }
        edges
    };
    assert_eq!(circle(&of(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    assert_eq!(circle(&of(&[("a", "b"), ("b", "c"), ("c", "b")])), Some(vec!["b".into(), "c".into()]));
    let found = imports("use super::a::{self, B, c::{D, E as F}};\nfn f() {}\npub use g::H;");
    assert_eq!(found, ["super::a::self", "super::a::B", "super::a::c::D", "super::a::c::E", "g::H"]);
}
