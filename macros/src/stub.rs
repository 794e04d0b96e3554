//! The docstrings of the stub.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

/// Returns the docstring of each class and function (`Server`) and member (`Server.tick`) of the stub.
pub(crate) fn docstrings() -> &'static HashMap<String, String> {
    static DOCSTRINGS: OnceLock<HashMap<String, String>> = OnceLock::new();
    DOCSTRINGS.get_or_init(|| {
        let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
        let path = Path::new(&root).join("python/tickwire/_core.pyi");
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        read(&text)
    })
}

/// Reads a stub that ruff has formatted: four spaces a level, and a docstring at the start of its body.
fn read(text: &str) -> HashMap<String, String> {
    let mut docstrings = HashMap::new();
    let mut class = None;
    let mut name = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let level = line.len() - code.len();
        if let Some(begun) = named(code, "class ") {
            class = Some(begun.clone());
            name = Some(begun);
        } else if let Some(begun) = named(code, "def ") {
            name = match &class {
                Some(class) if level == 4 => Some(format!("{class}.{begun}")),
                _ => {
                    class = None;
                    Some(begun)
                }
            };
        } else if let Some(opened) = code.strip_prefix("r\"\"\"").or_else(|| code.strip_prefix("\"\"\"")) {
            let raw = code.starts_with('r');
            let text = docstring(opened, level, &mut lines);
            let text = if raw { text } else { unescape(&text) };
            if let Some(name) = name.take() {
                docstrings.entry(name).or_insert(text);
            }
        }
    }
    docstrings
}

/// Returns the name that a line defines after a keyword.
fn named(code: &str, keyword: &str) -> Option<String> {
    let name = code.strip_prefix(keyword)?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    Some(name[..end].to_owned())
}

/// Reads the rest of a docstring whose body is indented by `level` spaces.
fn docstring<'a>(opened: &'a str, level: usize, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut line = opened;
    loop {
        if let Some((last, _)) = line.split_once("\"\"\"") {
            text.push_str(last);
            return text.trim_end().to_owned();
        }
        text.push_str(line);
        text.push('\n');
        let Some(next) = lines.next() else { return text };
        line = next.get(level..).unwrap_or_default();
    }
}

fn unescape(text: &str) -> String {
    text.replace("\\\\", "\\")
}
