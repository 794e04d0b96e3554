//! Who may import whom: the layer map of `src/lib.rs`, checked against the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each module with those it may name besides itself.
const MAY_USE: &[(&str, &[&str])] = &[
    ("exact", &[]),
    ("time", &[]),
    ("limits", &["exact"]),
    ("rng", &[]),
    ("store", &["time", "limits", "rng"]),
    ("wire", &["store", "time", "limits", "rng", "exact"]),
    ("calls", &["store", "time"]),
    ("mesh", &["time", "wire"]),
    ("netcode", &["wire", "store", "time", "limits", "rng"]),
    ("transport", &["wire", "store", "time", "limits", "rng", "exact"]),
    ("timeline", &["wire", "store", "time", "rng"]),
    ("rendezvous", &["store", "time", "limits", "rng", "wire"]),
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
    ("netsim", &["store", "time", "rng", "exact"]),
    (
        "driver",
        &[
            "calls",
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

/// The file that asks the system for memory, and for nothing else.
const PAGES: &str = "store/zeroed.rs";

pub(super) fn sources(root: &Path, found: &mut Vec<PathBuf>) {
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
    if path.ends_with("tests.rs") {
        return String::new();
    }
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
            for name in OUTSIDE.iter().filter(|_| relative != Path::new(PAGES)) {
                assert!(!code.contains(name), "{relative:?} uses {name}");
            }
        }
    }
}

/// Layers that carry features and know none of them by name.
const WITHOUT_FEATURES: &[&str] = &["transport", "endpoint", "netcode", "wire", "store"];

/// Names of features, in any case. A hint in a comment may name one.
const FEATURES: &[&str] =
    &["ghost", "lockstep", "rollback", "lobby", "replicat", "predict", "timeline", "mesh"];

#[test]
fn layers_below_name_no_feature() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for layer in WITHOUT_FEATURES {
        let mut files = Vec::new();
        sources(&src.join(layer), &mut files);
        assert!(!files.is_empty(), "{layer}");
        for path in files {
            let code = code(&path);
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for (line, name) in lines.flat_map(|line| FEATURES.iter().map(move |name| (line, name))) {
                assert!(!line.to_lowercase().contains(name), "{path:?} names a feature, {name}: {line}");
            }
        }
    }
}

/// What differs between platforms, or between versions of the standard library: see `src/exact.rs`.
const INEXACT: &[&str] = &[
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "exp", "exp2",
    "exp_m1", "hypot", "ln", "ln_1p", "log", "log10", "log2", "powf", "powi", "sin", "sin_cos", "sinh",
    "tan", "tanh",
];

/// Files that may use it: links of tests, and rotations that are shown and decide nothing.
const MAY_BE_INEXACT: &[&str] = &["transport/congestion/simulation.rs", "replication/rules.rs"];

/// Whether the code calls this function of floating-point numbers, as a method or by its path.
fn calls(code: &str, name: &str) -> bool {
    [format!(".{name}("), format!("f64::{name}"), format!("f32::{name}")].iter().any(|call| {
        code.match_indices(call.as_str()).any(|(at, _)| {
            !code[at + call.len()..].starts_with(|next: char| next == '_' || next.is_alphanumeric())
        })
    })
}

#[test]
fn decisions_are_the_same_on_every_platform() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    for path in files {
        let relative = path.strip_prefix(&src).unwrap();
        if MAY_BE_INEXACT.iter().any(|file| relative == Path::new(file)) {
            continue;
        }
        let code = code(&path);
        for name in INEXACT {
            assert!(!calls(&code, name), "{relative:?} calls {name}: see src/exact.rs");
        }
        // Python's own hashes stay inside their process.
        let hashes = ["DefaultHasher", "RandomState"].iter().any(|name| code.contains(name));
        assert!(!hashes || relative.starts_with("python"), "{relative:?} hashes by the standard library");
    }
    assert!(calls("x.ln()", "ln") && calls("map(f64::exp)", "exp") && !calls("x.exp2()", "exp"));
}

/// Circles that remain, by folder: imports that must go to break them. A test fails when one is no longer needed.
const EXCEPTIONS: &[(&str, &[(&str, &str)])] = &[
    ("transport/connection", &[("framing", "native"), ("framing", "yojimbo"), ("outbound", "mod")]),
    ("transport/connection/native", &[("slices", "mod")]),
    ("transport/protocol", &[("cost", "mod"), ("text", "mod")]),
    (
        "transport/stream",
        &[
            ("latest", "mod"),
            ("outgoing", "mod"),
            ("redundant", "mod"),
            ("reliable_receiver", "mod"),
            ("reliable_sender", "mod"),
            ("unreliable", "mod"),
        ],
    ),
    ("rendezvous/client", &[("lobby", "mod")]),
    ("lockstep/machine", &[("newcomer", "mod"), ("newcomers", "mod")]),
    ("replication/mirror", &[("coded", "mod")]),
    ("replication/publisher", &[("choose", "peer"), ("coded", "fill"), ("past", "mod"), ("urgency", "mod")]),
    ("replication/table", &[("past", "mod"), ("reckoned", "mod")]),
    ("driver/threaded", &[("shared", "mod")]),
];

/// An imported name, with its path, and whether it is passed on by `pub use`.
#[derive(Debug, PartialEq)]
struct Import {
    public: bool,
    path: String,
    name: String,
}

/// The names of a source's `use` declarations; `*` for all names of a module.
fn imports(code: &str) -> Vec<Import> {
    fn expand(prefix: &str, tree: &str, found: &mut Vec<String>) {
        let tree = tree.trim();
        let Some((before, inside)) = tree.split_once('{') else {
            if !tree.is_empty() {
                found.push(format!("{prefix}{tree}"));
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
        let (before, tree) = text.split_once("use ").unwrap();
        let mut paths = Vec::new();
        expand("", tree, &mut paths);
        found.extend(paths.into_iter().map(|path| {
            let (path, alias) = path.split_once(" as ").unwrap_or((&path, ""));
            let own = path.trim_end_matches("::self").rsplit("::").next().unwrap();
            let name = if alias.is_empty() { own } else { alias };
            Import { public: before.contains("pub"), path: path.to_owned(), name: name.to_owned() }
        }));
    }
    found
}

/// The paths outside of `use` declarations that begin with `crate::`, `super::` or a module of the file.
fn mentions(code: &str, own: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for line in code.lines().map(str::trim_start) {
        if line.starts_with("//")
            || line.starts_with("use ")
            || line.starts_with("pub") && line.contains(" use ")
        {
            continue;
        }
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
        for path in line.split(|letter| !is_part(letter)) {
            let Some((first, _)) = path.split_once("::") else { continue };
            if ["crate", "super"].contains(&first) || own.contains(first) {
                found.push(path.to_owned());
            }
        }
    }
    found
}

/// The words in front of a name that is being defined.
const DEFINING: &[&str] = &["fn", "struct", "enum", "trait", "const", "static", "type", "macro_rules"];

/// The code's names of types, functions, modules and macros, unless a path or a method's receiver stands in front of
/// them; and those that it defines. Variants of enumerations are neither.
fn names(code: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut used, mut defined, mut is_enum) = (BTreeSet::new(), BTreeSet::new(), false);
    let mut text = String::new();
    for line in code.lines() {
        let shown = line.trim_start();
        is_enum = line != "}" && (is_enum || shown.split('{').next().unwrap().contains("enum "));
        let is_variant = is_enum && shown.starts_with(char::is_uppercase) && line.find(shown) == Some(4);
        let shown = if is_variant { shown.trim_start_matches(char::is_alphanumeric) } else { shown };
        if !shown.starts_with("//") {
            text += shown;
            text.push('\n');
        }
    }
    // Every other part stands between quotes.
    let text = text.replace("\\\"", "").replace("'\"'", "");
    let text: String = text.split('"').step_by(2).collect();
    let (mut at, mut defines) = (0, false);
    let is_part = |letter: char| letter == '_' || letter.is_alphanumeric();
    while let Some(start) = text[at..].find(is_part) {
        let (before, rest) = text.split_at(at + start);
        let (word, after) = rest.split_at(rest.find(|letter| !is_part(letter)).unwrap_or(rest.len()));
        let is_member = before.ends_with("::") || before.ends_with('.') && !before.ends_with("..");
        let is_called = ["(", "!", "::"].iter().any(|next| after.starts_with(next));
        if defines {
            defined.insert(word.to_owned());
        } else if !is_member && (is_called || word.starts_with(char::is_uppercase)) {
            used.insert(word.to_owned());
        }
        defines = DEFINING.contains(&word);
        at += start + word.len();
    }
    (used, defined)
}

/// A source file of a layer: the path of its module, and what it imports as paths from the crate.
struct Source {
    module: Vec<String>,
    imports: Vec<Vec<String>>,
    /// Names that the module imports: what it calls them, and where they come from. Its children see all of them.
    exports: Vec<(String, Vec<String>)>,
    /// Modules of which it imports all names.
    globs: Vec<Vec<String>>,
    used: BTreeSet<String>,
    defined: BTreeSet<String>,
}

/// All names that a module imports or defines, with where they come from.
fn visible(
    module: &[String],
    sources: &BTreeMap<Vec<String>, Source>,
    seen: &mut BTreeSet<Vec<String>>,
) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    let Some(source) = sources.get(module).filter(|_| seen.insert(module.to_vec())) else { return found };
    for other in &source.globs {
        found.extend(visible(other, sources, seen));
    }
    let children =
        sources.keys().filter(|other| other.len() == module.len() + 1 && other.starts_with(module));
    found.extend(children.map(|child| (child.last().unwrap().clone(), child.clone())));
    let own = |name: &String| (name.clone(), [module, core::slice::from_ref(name)].concat());
    found.extend(source.defined.iter().map(own));
    found.extend(source.exports.iter().cloned());
    found
}

/// The modules of a layer, without those of its tests.
fn modules(layer: &Path) -> Vec<Source> {
    let src = layer.parent().unwrap();
    let mut files = Vec::new();
    sources(layer, &mut files);
    let module_of = |path: &Path| -> Vec<String> {
        let relative = path.strip_prefix(src).unwrap().with_extension("");
        let parts: Vec<_> = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if parts.last().unwrap() == "mod" { parts[..parts.len() - 1].to_vec() } else { parts }
    };
    let all: BTreeSet<Vec<String>> = files.iter().map(|path| module_of(path)).collect();
    let mut tests = BTreeSet::new();
    for path in &files {
        let text = fs::read_to_string(path).unwrap();
        for (before, line) in text.lines().zip(text.lines().skip(1)) {
            let name = line.rsplit("mod ").next().unwrap().strip_suffix(';');
            if before.starts_with("#[cfg(test)]") || before.starts_with("#[cfg(all(test") {
                tests.extend(name.map(|name| [module_of(path), vec![name.to_owned()]].concat()));
            }
        }
    }
    let is_test = |module: &[String]| (1..=module.len()).any(|depth| tests.contains(&module[..depth]));
    let absolute = |module: &[String], path: &str| -> Vec<String> {
        let mut at = module.to_vec();
        for (place, part) in path.split("::").enumerate() {
            match part {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                "self" => {}
                _ if place == 0 && !all.contains(&[module, &[part.to_owned()]].concat()) => {
                    return Vec::new();
                }
                _ => at.push(part.to_owned()),
            }
        }
        at
    };
    let mut found = BTreeMap::new();
    for path in &files {
        let module = module_of(path);
        if is_test(&module) {
            continue;
        }
        let code = code(path);
        let below = all.iter().filter(|other| other.len() == module.len() + 1 && other.starts_with(&module));
        let below: BTreeSet<String> = below.map(|other| other.last().unwrap().clone()).collect();
        let (globs, single): (Vec<_>, Vec<_>) = imports(&code).into_iter().partition(|it| it.name == "*");
        let globs = globs.iter().map(|it| absolute(&module, it.path.trim_end_matches("::*")));
        let passed_on = single.iter().map(|it| (it.name.clone(), absolute(&module, &it.path)));
        let used = single.iter().filter(|it| !it.public).map(|it| it.path.clone());
        let used = used.chain(mentions(&code, &below));
        let (words, defined) = names(&code);
        let source = Source {
            imports: used.map(|path| absolute(&module, &path)).filter(|path| !path.is_empty()).collect(),
            exports: passed_on.filter(|(_, from)| !from.is_empty()).collect(),
            globs: globs.filter(|from| !from.is_empty()).collect(),
            used: words.difference(&single.into_iter().map(|it| it.name).collect()).cloned().collect(),
            defined,
            module: module.clone(),
        };
        found.insert(module, source);
    }
    let by_globs = |source: &Source| -> Vec<Vec<String>> {
        let seen = &mut BTreeSet::new();
        let all: BTreeMap<_, _> =
            source.globs.iter().flat_map(|module| visible(module, &found, seen)).collect();
        source.used.difference(&source.defined).filter_map(|name| all.get(name).cloned()).collect()
    };
    let by_globs: Vec<_> = found.values().map(by_globs).collect();
    let each = found.into_values().zip(by_globs);
    each.map(|(mut source, more)| {
        source.imports.extend(more);
        source
    })
    .collect()
}

/// Which modules of a folder each of them names, its own `mod.rs` among them as `mod`.
fn edges(folder: &[String], sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let depth = folder.len();
    let child = |module: &[String]| {
        let inside = module.len() > depth && module.starts_with(folder);
        inside.then(|| module[depth].clone())
    };
    let modules: BTreeSet<String> = sources.iter().filter_map(|source| child(&source.module)).collect();
    let exports: BTreeMap<&str, String> = sources
        .iter()
        .filter(|source| source.module == folder)
        .flat_map(|source| &source.exports)
        .filter_map(|(name, from)| Some((name.as_str(), child(from)?)))
        .collect();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.module.starts_with(folder)) {
        let module = child(&source.module).unwrap_or_else(|| "mod".to_owned());
        for path in &source.imports {
            let Some(first) = child(path) else { continue };
            let first = exports.get(first.as_str()).unwrap_or(&first);
            let other = if modules.contains(first) { first } else { "mod" };
            if other != module {
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
fn no_modules_of_a_folder_know_each_other_in_a_circle() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut failures = Vec::new();
    let mut folders = BTreeSet::new();
    let layers = MAY_USE.iter().map(|(layer, _)| layer).filter(|layer| src.join(layer).is_dir());
    for layer in layers.chain([&"python"]) {
        let sources = modules(&src.join(layer));
        folders.extend(sources.iter().map(|source| source.module[..source.module.len() - 1].to_vec()));
        for folder in folders.iter().filter(|folder| folder.first().is_some_and(|first| first == layer)) {
            let name = folder.join("/");
            let edges = edges(folder, &sources);
            let listed = EXCEPTIONS.iter().find(|(folder, _)| *folder == name).map_or(&[][..], |it| it.1);
            let without = |kept: Option<&(&str, &str)>| {
                let mut edges = edges.clone();
                for (from, to) in listed.iter().filter(|edge| Some(*edge) != kept) {
                    edges.get_mut(*from).map(|others| others.remove(*to));
                }
                circle(&edges)
            };
            if let Some(circle) = without(None) {
                failures.push(format!("in {name}: {}", circle.join(" -> ")));
            }
            for edge in listed.iter().filter(|edge| without(Some(edge)).is_none()) {
                failures.push(format!("{name} no longer needs its exception {edge:?}"));
            }
        }
    }
    for (folder, _) in EXCEPTIONS {
        let folder: Vec<_> = folder.split('/').map(str::to_owned).collect();
        assert!(folders.contains(&folder), "there is no folder {folder:?}");
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn circles_are_found() {
    let of = |pairs: &[(&str, &str)]| {
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in pairs {
            edges.entry((*from).into()).or_default().insert((*to).into());
        }
        edges
    };
    assert_eq!(circle(&of(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    assert_eq!(circle(&of(&[("a", "b"), ("b", "c"), ("c", "b")])), Some(vec!["b".into(), "c".into()]));
    let found = imports("use super::a::{self, B, c::{D, E as F}};\nfn f() {}\npub use g::H;\nuse i::*;");
    let found: Vec<_> = found.iter().map(|it| (it.public, it.path.as_str(), it.name.as_str())).collect();
    let own = ["super::a::self", "super::a::B", "super::a::c::D", "super::a::c::E"];
    let own = own.into_iter().zip(["a", "B", "D", "F"]).map(|(path, name)| (false, path, name));
    assert_eq!(found[..4], own.collect::<Vec<_>>());
    assert_eq!(found[4..], [(true, "g::H", "H"), (false, "i::*", "*")]);
    let text = "enum A {\n    B(C),\n}\nfn d(x: E) -> f::G { h(\"I\").j(); k::l(); m }\n// N";
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(names(text), (set(&["C", "E", "f", "h", "k"]), set(&["A", "d"])));
    let found =
        mentions("// super::a\nuse super::a;\nfn f(x: super::b::C) { d::e(); g::h() }", &["d".into()].into());
    assert_eq!(found, ["super::b::C", "d::e"]);

    let source = |module: &str, imports: &[&str], exports: &[(&str, &str)]| {
        let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
        Source {
            module: path(module),
            imports: imports.iter().map(|text| path(text)).collect(),
            exports: exports.iter().map(|(name, from)| ((*name).to_owned(), path(from))).collect(),
            globs: Vec::new(),
            used: BTreeSet::new(),
            defined: BTreeSet::new(),
        }
    };
    // What a module takes from its parent is the parent's own, or that of the module that it passes on.
    let sources = [
        source("x", &["x::a::Part"], &[("B", "x::b::B")]),
        source("x::a", &["x::B", "x::a::inner::C"], &[]),
        source("x::a::inner", &["x::BOUND"], &[]),
        source("x::b", &[], &[]),
    ];
    let found = edges(&["x".to_owned()], &sources);
    assert_eq!(found, of(&[("mod", "a"), ("a", "b"), ("a", "mod")]));
    assert_eq!(edges(&["x".to_owned(), "a".to_owned()], &sources), of(&[("mod", "inner")]));
}
