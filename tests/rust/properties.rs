//! Fields by mask and against a baseline: every kind of field there and back, at seeded random. `TICKWIRE_FUZZ` multiplies
//! the rounds.

use tickwire::rng::{Entropy, Rng};
use tickwire::wire::{
    BitReader, BitSink, BitWriter, Kind, MAX_PROPERTIES, Metric, Properties, ReadError, Schema, SchemaError,
    ValueError,
};

use crate::fuzz::rounds;
use crate::fuzz_targets::words;

#[test]
fn any_schema_is_read_as_it_was_written_by_mask_and_against_a_baseline() {
    let mut rng = Rng::seeded(20);
    let mut reached = 0;
    for _ in 0..rounds(60_000) {
        let mut bytes = vec![0; 100 + rng.below(500) as usize];
        rng.fill(&mut bytes);
        // Bytes that are mostly low: small numbers of parts, and text.
        let low = rng.below(60) as usize;
        bytes.iter_mut().skip(low).for_each(|byte| *byte &= 0x37);
        reached += u32::from(words::run(&bytes));
    }
    assert!(reached > 6_000, "{reached} had a schema and two messages");
}
