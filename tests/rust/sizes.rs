//! Files and functions that fit a reader's head: bounds on their lines.

use std::fs;
use std::path::Path;

use crate::layers::sources;

/// The folders that keep the bounds.
const FOLDERS: &[&str] = &["transport", "endpoint", "netcode", "articles", "driver", "session", "wire"];

const MAX_FILE: usize = 600;
const MAX_FUNCTION: usize = 60;

/// The functions of a formatted source, by name, with their lines. Unit tests don't count.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let lines: Vec<_> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let declaration = line.trim_start();
        let indent = &line[..line.len() - declaration.len()];
        let name = declaration.split_once("fn ").filter(|(before, _)| {
            before.split(' ').all(|word| {
                ["", "const", "unsafe", "async"].contains(&word)
                    || word.starts_with("pub")
                    || word.ends_with(')')
            })
        });
        let Some((_, name)) = name else { continue };
        let name = name.split(['(', '<']).next().unwrap();
        // In one line, or a declaration without a body.
        let end = format!("{indent}}}");
        let rest =
            lines[at..].iter().position(|line| *line == end || line.ends_with(';') || line.ends_with(" }"));
        let body = lines[at..].iter().position(|line| line.ends_with('{'));
        let length = match (body, rest) {
            (Some(body), Some(rest)) if body <= rest => lines[at..].iter().position(|line| *line == end),
            _ => rest,
        };
        found.push((name, length.map_or(0, |length| length + 1)));
    }
    found
}

#[test]
fn files_and_functions_are_short() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&src.join(folder), &mut files));
    let (mut long, mut count) = (Vec::new(), 0);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(&src).unwrap().display().to_string();
        let lines = text.lines().count();
        if lines > MAX_FILE {
            long.push(format!("{name}: {lines} lines, at most {MAX_FILE}"));
        }
        if name.ends_with("tests.rs") {
            continue;
        }
        for (function, lines) in functions(&text) {
            count += 1;
            if lines > MAX_FUNCTION {
                long.push(format!("{name}: {function} has {lines} lines, at most {MAX_FUNCTION}"));
            }
        }
    }
    assert!(count > 2_000, "the functions were found: {count}");
    assert!(long.is_empty(), "split by what they know:\n{}", long.join("\n"));
}

#[test]
fn functions_are_counted_from_their_signature_to_their_brace() {
    let text = "trait A {\n    fn a(\n        &self,\n    ) -> B;\n}\n\npub(super) const fn b<T>(\n    x: T,\n) -> T {\n    x\n}\n\nfn c() { }\n";
    assert_eq!(functions(text), [("a", 3), ("b", 5), ("c", 1)]);
}
