//! The recorded world of a rigid-body engine, as `benches/ghosts/physics.py` unpacks it.

use std::path::PathBuf;

use tickwire::replication::GhostClass;

use crate::columns::Columns;
use crate::world::{World, cube};

/// Numbers of a row: three of the position, the largest component's place, three levels, the flag.
const NUMBERS: usize = 8;
/// The environment's path of the unpacked file.
const VARIABLE: &str = "PHYSICS_WORDS";
/// The word of a position of 0 m, and of a level of 0.
const ORIGIN: i64 = 256 * 512;
const MIDDLE: i64 = 255;

struct Physics {
    numbers: Vec<i16>,
    rows: usize,
    frame: usize,
    body: Vec<u8>,
}

pub(crate) fn make() -> Result<Box<dyn World>, String> {
    let usual = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/physics.words");
    let path = std::env::var_os(VARIABLE).map_or_else(usual, PathBuf::from);
    let bytes = std::fs::read(path)
        .map_err(|error| format!("{error}; run benches/ghosts/physics.py, or set {VARIABLE}"))?;
    let (head, numbers) = bytes.split_at_checked(8).ok_or("the file must have a head")?;
    let [frames, rows] = [0, 4].map(|at| u32::from_le_bytes(std::array::from_fn(|i| head[at + i])) as usize);
    let numbers: Vec<i16> = numbers.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
    if numbers.len() != frames * rows * NUMBERS {
        return Err(format!("the file must have {frames} frames of {rows} rows"));
    }
    let body = vec![0; cube(rows).properties.schema().row_size()];
    Ok(Box::new(Physics { numbers, rows, frame: 0, body }))
}

impl World for Physics {
    fn class(&self) -> GhostClass {
        cube(self.rows)
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn hz(&self) -> u32 {
        60
    }

    fn step(&mut self, columns: &mut Columns) -> bool {
        let class = cube(self.rows);
        let frame = self.numbers.chunks_exact(self.rows * NUMBERS).nth(self.frame);
        let Some(frame) = frame else { return false };
        self.frame += 1;
        for (row, numbers) in frame.as_chunks::<NUMBERS>().0.iter().enumerate() {
            let [x, y, z, largest, a, b, c, flag] = numbers.map(i64::from);
            let words =
                [x + ORIGIN, y + ORIGIN, z + ORIGIN, largest, a + MIDDLE, b + MIDDLE, c + MIDDLE, flag];
            columns.put_words(&class, row, &words.map(|word| word as u64), &mut self.body);
        }
        true
    }
}
