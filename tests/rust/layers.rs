//! Who may import whom: the layer map of `src/lib.rs`, checked against the sources.

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
