//! The table of links, a few seeds of it, pinned: when a figure moves, the change that moved it shows it. To take over new
//! ones: `TICKWIRE_PIN=1 cargo test block_times`. `make links` measures with more seeds.

use std::fmt::Write;
use std::{env, fs};

use crate::bulk_line::{Act, median};
use crate::link_table::{links, measure};

/// Counts arrivals, not only their delay: a chunk once silenced the game on links faster than its budget.
#[test]
fn a_game_goes_on_beside_a_chunk() {
    for (ends, act) in [("at once", Act::AT_ONCE), ("60 Hz", Act::POLLED)] {
        for link in links() {
            let game = measure(&link, act, 8 << 20, true, 1).game;
            let share = game.received_share / link.passes();
            assert!(share > 0.95, "{}, {ends}: {share:.3} of what the link passes", link.name);
        }
    }
}

/// Outages of acks and of whole rounds, too: in one seed of seven a block once took nine times as long as it might.
#[test]
fn no_outage_makes_a_block_slow_for_good() {
    let link = links().into_iter().find(|link| link.name.contains("outages")).unwrap();
    for act in [Act::AT_ONCE, Act::POLLED] {
        for seed in 1..=30 {
            let ratio = measure(&link, act, 8 << 20, false, seed).ratio;
            assert!(ratio < 3.5, "{act:?}, seed {seed}: {ratio:.3} times the ideal");
        }
    }
}

#[test]
fn blocks_take_as_long_as_they_did() {
    let mut table = String::from("link; block; ends: times the ideal, median of 5 seeds (8 MiB: of 1)\n");
    for (ends, act) in [("at once", Act::AT_ONCE), ("60 Hz", Act::POLLED)] {
        for link in links() {
            for (block, seeds) in [(256 << 10, 5), (8 << 20, 1)] {
                let run = |seed| measure(&link, act, block, false, seed).ratio;
                let ratio = median((1..=seeds).map(run).collect());
                writeln!(table, "{}; {} KiB; {ends}: {ratio:.3}", link.name, block >> 10).unwrap();
            }
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rust/block_times.txt");
    if env::var_os("TICKWIRE_PIN").is_some() {
        fs::write(path, &table).unwrap();
    }
    assert_eq!(table, fs::read_to_string(path).unwrap());
}
