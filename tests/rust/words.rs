//! The vocabulary, kept: words that are out, names that mean too many things, comments that say nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules in which a type of one name may be met: `git grep` finds it.
const MAX_MODULES: usize = 3;

/// Words of a doc comment, at least.
const MIN_WORDS: usize = 4;

/// Records of what was found and when, in the words of their time.
const RECORDS: &[&str] = &["docs/maintainers/robustness.md", "docs/maintainers/soak_findings.md"];

fn files(folder: &str, endings: &[&str]) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(&root.join(folder), &mut found);
    let wanted = |path: &PathBuf| {
        let ending = path.extension().unwrap_or_default().to_str().unwrap_or_default();
        endings.contains(&ending) && !path.components().any(|part| part.as_os_str() == "__pycache__")
    };
    let of_root = |path: PathBuf| path.strip_prefix(root).unwrap().to_owned();
    let texts = found
        .into_iter()
        .filter(wanted)
        .map(|path| (of_root(path.clone()), fs::read_to_string(path).unwrap()));
    texts.filter(|(path, _)| !RECORDS.iter().any(|record| path == Path::new(record))).collect()
}

fn is_in_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Where a text has these words, not as a part of others.
fn lines_with<'t>(text: &'t str, words: &str) -> Vec<(usize, &'t str)> {
    let begins_name = words.ends_with('_');
    let has = |line: &str| {
        line.match_indices(words).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let behind = line[at + words.len()..].chars().next();
            let fine = |letter: Option<char>| !letter.is_some_and(is_in_word);
            (fine(before) || begins_name && before == Some('_')) && (begins_name || fine(behind))
        })
    };
    text.lines().enumerate().filter(|(_, line)| has(line)).map(|(i, line)| (i + 1, line)).collect()
}

#[test]
fn words_that_are_out_stay_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = fs::read_to_string(root.join("tests/words.txt")).unwrap();
    let out: Vec<(&str, &str)> = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(" = ").expect("a word and what to say instead"))
        .collect();
    assert!(out.len() > 20);
    let mut texts = files("src", &["rs", "md"]);
    texts.extend(files("python", &["py", "pyi", "lua"]));
    texts.extend(files("docs", &["md"]));
    texts.push(("README.md".into(), fs::read_to_string(root.join("README.md")).unwrap()));
    assert!(texts.len() > 200, "the sources were found");
    let mut found = Vec::new();
    for (path, text) in &texts {
        for (word, instead) in &out {
            for (number, line) in lines_with(text, word) {
                found.push(format!(
                    "{}:{number}: not {word:?} but {instead:?}: {}",
                    path.display(),
                    line.trim()
                ));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_types_name_is_met_in_few_modules() {
    let mut names: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for (path, text) in files("src", &["rs"]) {
        if path.ends_with("tests.rs") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for line in code.lines() {
            let line = line.trim_start();
            let line = line.strip_prefix("pub").map_or(line, |rest| match rest.strip_prefix('(') {
                Some(rest) => rest.split_once(") ").map_or(rest, |(_, rest)| rest),
                None => rest.trim_start(),
            });
            let kinds = ["struct ", "enum ", "trait "];
            if let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) {
                let name: String = rest.chars().take_while(|letter| is_in_word(*letter)).collect();
                names.entry(name).or_default().insert(path.clone());
            }
        }
    }
    let many: Vec<_> = names.iter().filter(|(_, paths)| paths.len() > MAX_MODULES).collect();
    assert!(many.is_empty(), "qualify these where they are declared: {many:#?}");
}

#[test]
fn doc_comments_say_something() {
    let mut empty = Vec::new();
    for (path, text) in files("src", &["rs"]) {
        // What Python shows is held to the stub by another test.
        if path.starts_with("src/python") {
            continue;
        }
        let mut lines = text.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let Some(first) = line.trim_start().strip_prefix("///") else { continue };
            let mut words = first.split_whitespace().count();
            while let Some(next) = lines.peek().and_then(|(_, line)| line.trim_start().strip_prefix("///")) {
                words += next.split_whitespace().count();
                lines.next();
            }
            if words < MIN_WORDS {
                empty.push(format!("{}:{}:{first}", path.display(), number + 1));
            }
        }
    }
    assert!(empty.is_empty(), "say more or nothing:\n{}", empty.join("\n"));
}
