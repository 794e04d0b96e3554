//! What the stub says of each native name: its docstring, its kind and its signature.

use core::fmt;
use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

/// What the stub says of a class (`Server`), a function or a member (`Server.tick`).
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) docstring: Option<String>,
    /// Without `self` and `cls`; of an overloaded function, the longest. None for classes.
    pub(crate) parameters: Option<Vec<Parameter>>,
}

/// A parameter, or one of the marks `/` and `*`.
#[derive(Debug, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// As Python writes it.
    pub(crate) default: Option<String>,
}

impl fmt::Display for Parameter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.default {
            Some(default) => write!(formatter, "{}={default}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

/// Returns all entries by name.
pub(crate) fn entries() -> &'static HashMap<String, Entry> {
    static ENTRIES: OnceLock<HashMap<String, Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
        let path = Path::new(&root).join("python/tickwire/_core.pyi");
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        read(&text)
    })
}

/// Reads a stub that ruff has formatted: four spaces a level, and a docstring at the start of its body.
fn read(text: &str) -> HashMap<String, Entry> {
    let mut entries: HashMap<String, Entry> = HashMap::new();
    let (mut class, mut name, mut decorators) = (None, None, Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let level = line.len() - code.len();
        if let Some(decorator) = code.strip_prefix('@') {
            decorators.push(decorator.to_owned());
        } else if let Some(begun) = named(code, "class ") {
            class = Some(begun.clone());
            name = Some(begun);
            decorators.clear();
        } else if let Some(begun) = named(code, "def ") {
            let is_member = level == 4 && class.is_some();
            class = class.filter(|_| is_member);
            let begun = class.as_ref().map_or_else(|| begun.clone(), |class| format!("{class}.{begun}"));
            let mut signature = code.to_owned();
            while !is_complete(&signature) {
                signature.push(' ');
                signature.push_str(lines.next().unwrap_or(")").trim());
            }
            let has_receiver = is_member && !decorators.iter().any(|decorator| decorator == "staticmethod");
            let mut parameters = parameters(&signature);
            parameters.drain(..usize::from(has_receiver));
            let entry = entries.entry(begun.clone()).or_default();
            if entry.parameters.as_ref().is_none_or(|known| known.len() < parameters.len()) {
                entry.parameters = Some(parameters);
            }
            name = Some(begun);
            decorators.clear();
        } else if let Some(opened) = code.strip_prefix("r\"\"\"").or_else(|| code.strip_prefix("\"\"\"")) {
            let raw = code.starts_with('r');
            let text = docstring(opened, level, &mut lines);
            let text = if raw { text } else { unescape(&text) };
            if let Some(name) = name.take() {
                entries.entry(name).or_default().docstring.get_or_insert(text);
            }
        }
    }
    entries
}

/// Returns the name that a line defines after a keyword.
fn named(code: &str, keyword: &str) -> Option<String> {
    let name = code.strip_prefix(keyword)?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    Some(name[..end].to_owned())
}

/// Returns the depth of brackets before each letter outside of strings, and the letter.
fn depths(code: &str) -> impl Iterator<Item = (usize, usize, char)> {
    let (mut depth, mut quoted) = (0_usize, false);
    code.char_indices().filter_map(move |(at, letter)| {
        quoted ^= letter == '"';
        match letter {
            _ if quoted => None,
            '(' | '[' => {
                depth += 1;
                Some((at, depth - 1, letter))
            }
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                Some((at, depth, letter))
            }
            _ => Some((at, depth, letter)),
        }
    })
}

fn is_complete(signature: &str) -> bool {
    depths(signature).any(|(_, depth, letter)| depth == 0 && letter == ')')
}

/// Reads the parameters of a complete `def name(...)`.
fn parameters(signature: &str) -> Vec<Parameter> {
    let open = signature.find('(').map_or(0, |at| at + 1);
    let close = depths(signature).find(|(_, depth, letter)| *depth == 0 && *letter == ')');
    let inner = &signature[open..close.map_or(signature.len(), |(at, ..)| at)];
    let split = |text: &str, by: char| -> Vec<String> {
        let mut parts = vec![String::new()];
        let cuts: Vec<usize> = depths(text)
            .filter(|(_, depth, letter)| *depth == 0 && *letter == by)
            .map(|(at, ..)| at)
            .collect();
        for (at, letter) in text.char_indices() {
            if cuts.contains(&at) {
                parts.push(String::new());
            } else if let Some(part) = parts.last_mut() {
                part.push(letter);
            }
        }
        parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
    };
    let parameter = |text: String| {
        let mut sides = split(&text, '=').into_iter();
        let name = split(&sides.next().unwrap_or_default(), ':').into_iter().next().unwrap_or_default();
        Parameter { name, default: sides.next() }
    };
    split(inner, ',').into_iter().map(parameter).collect()
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
