//! The table of the congestion controller's numbers in `MODEL.md`, compared with the sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const MODULES: &[&str] = &[
    "constants",
    "adaptive",
    "delay",
    "delivery",
    "startup",
    "loss",
    "share_test",
    "ceiling",
    "competition",
];

#[test]
fn each_number_is_in_the_table_with_its_value_and_meaning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/transport/congestion");
    let model = fs::read_to_string(folder.join("MODEL.md")).unwrap();
    let (mut module, mut table) = ("", BTreeMap::new());
    for line in model.lines() {
        if let Some(name) = line.strip_prefix("### `") {
            module = name.trim_end_matches(".rs`");
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let ["", name, value, meaning, source, ""] = cells[..]
            && let Some(name) = name.strip_prefix('`')
        {
            assert!(!meaning.is_empty() && !source.is_empty(), "{name}");
            table.insert((module.to_owned(), name.trim_end_matches('`').to_owned()), value.trim_matches('`'));
        }
    }
    for module in MODULES {
        let source = fs::read_to_string(folder.join(format!("{module}.rs"))).unwrap();
        let code = source.split("#[cfg(test)]").next().unwrap();
        for line in code.lines().filter(|line| line.starts_with("const ") || line.contains(") const ")) {
            let (name, rest) = line.split_once("const ").unwrap().1.split_once(':').unwrap();
            let value = rest.split_once("= ").unwrap().1.trim_end_matches(';');
            let documented = table.remove(&(module.to_string(), name.to_owned()));
            assert_eq!(documented, Some(value), "{module}.rs: write {name} into MODEL.md");
        }
    }
    assert!(table.is_empty(), "no longer in the sources: {table:?}");
}
