//! The planted bugs of tests/mutations: each still applies, and each was caught when they were last run.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_planted_bug_applies_and_was_caught() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("tests/mutations/README.md")).unwrap();
    let entries = fs::read_dir(root.join("tests/mutations")).unwrap().map(|entry| entry.unwrap().path());
    let patches: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "patch")).collect();
    assert!(patches.len() >= 20, "{}", patches.len());
    for patch in patches {
        let name = patch.file_stem().unwrap().to_str().unwrap();
        let check = Command::new("git").args(["apply", "--check"]).arg(&patch).current_dir(root).output();
        let check = check.expect("git is there");
        assert!(check.status.success(), "{name}: {}", String::from_utf8_lossy(&check.stderr));
        let row = readme.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in the README: run `make mutations`"));
        let caught_by: usize = row.split('|').nth(3).unwrap().trim().parse().unwrap();
        assert!(caught_by > 0, "{name} was not caught");
    }
}
