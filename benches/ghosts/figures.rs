//! Which scenes are measured and for how long, and the file that the figures go into: the same for Tickwire and others.

use std::fs;

use serde_json::{Value, json};

/// Ticks before measuring, and measured.
pub(crate) const WARM: usize = 60;
pub(crate) const MEASURED: usize = 150;

/// The scenes that the command line names; none: all.
pub(crate) fn wanted() -> Vec<String> {
    std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect()
}

pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Bytes an update, if there were any.
pub(crate) fn bytes_an_update(bytes: usize, updates: usize) -> Option<f64> {
    (updates > 0).then(|| rounded(bytes as f64 / updates as f64))
}

/// Writes a library's rows. Others' stay.
pub(crate) fn write(path: &str, library: &str, rows: Vec<Value>) {
    let before = fs::read_to_string(path).ok().and_then(|text| serde_json::from_str(&text).ok());
    let mut all: Value = before.unwrap_or_else(|| json!({}));
    all[library] = rows.into();
    fs::write(path, serde_json::to_string_pretty(&all).expect("text") + "\n").expect("a file");
}
