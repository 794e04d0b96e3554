//! The fuzz targets without a fuzzer: what fuzzing found worth keeping, and some random bytes.

use std::fs;
use std::path::{Path, PathBuf};

use tickwire::rng::{Entropy, Rng};

use crate::fuzz_targets::*;

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 23] = [
    ("acks", acks::run),
    ("atomic", atomic::run),
    ("bits", bits::run),
    ("calls", calls::run),
    ("connected", connected::run),
    ("fresh", fresh::run),
    ("ghosts", ghosts::run),
    ("hosting", hosting::run),
    ("inputs", inputs::run),
    ("lockstep", lockstep::run),
    ("mesh", mesh::run),
    ("netcode", netcode::run),
    ("packets", packets::run),
    ("reconnect", reconnect::run),
    ("rendezvous", rendezvous::run),
    ("requests", requests::run),
    ("rollback", rollback::run),
    ("rooms", rooms::run),
    ("saved", saved::run),
    ("schema", |data| {
        schema::run(data);
    }),
    ("slices", slices::run),
    ("virtual_connection", virtual_connection::run),
    ("words", |data| {
        words::run(data);
    }),
];

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(name)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_seed_passes_its_target() {
    let listed = TARGETS.map(|(name, _)| name);
    assert_eq!(names(&directory("targets")), listed.map(|name| format!("{name}.rs")));
    assert_eq!(names(&directory("seeds")), listed);
    for (name, run) in TARGETS {
        let seeds = directory("seeds").join(name);
        let names = names(&seeds);
        assert!(names.len() >= 5, "{name} has seeds");
        for seed in names {
            println!("{name}/{seed}"); // Shown when it fails.
            run(&fs::read(seeds.join(seed)).unwrap());
        }
    }
}

#[test]
fn random_bytes_pass_every_target() {
    let mut rng = Rng::seeded(1);
    for (_, run) in TARGETS {
        for _ in 0..300 {
            let mut bytes = vec![0; rng.below(600) as usize];
            rng.fill(&mut bytes);
            // Small numbers are what most operations want.
            let mask = [0xFF, 0x3F, 0x0F][rng.below(3) as usize];
            bytes.iter_mut().for_each(|byte| *byte &= mask);
            run(&bytes);
        }
    }
}
