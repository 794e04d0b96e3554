//! A game that goes on asks for no memory.

use tickwire::rng::Rng;
use tickwire::rollback::{Config, GameInput, InputShape, Rollback};
use tickwire::time::{Duration, Instant};
use tickwire::wire::BitWriter;

use crate::memory::requests;

#[test]
fn a_game_in_its_steady_state_allocates_nothing() {
    let config = |me| Config::new(2, me, InputShape::of_bits(20));
    let mut games = [Rollback::new(config(0)), Rollback::new(config(1))];
    let mut rng = Rng::seeded(1);
    let (mut now, mut before) = (Instant::ZERO, 0);
    let mut pressed = [[0u8; 3]; 2];
    let mut writer = BitWriter::with_buffer(Vec::with_capacity(2048));
    // Of each way, payloads that arrive three frames later: some are lost.
    let mut ways = [const { [const { (0usize, [0u8; 256]) }; 3] }; 2];
    for frame in 0..2_000usize {
        now += Duration::from_micros(16_667);
        if frame == 500 {
            before = requests();
        }
        for me in 0..2 {
            let (length, payload) = &mut ways[1 - me][frame % 3];
            if *length > 0 && !rng.chance(0.1) {
                games[me].read(now, 1 - me as u8, &payload[..*length]).unwrap();
            }
        }
        for me in 0..2 {
            if rng.chance(0.2) {
                pressed[me] = [rng.next_u64() as u8, rng.next_u64() as u8, rng.next_u64() as u8 & 15];
            }
            let _ = games[me].advance(now, GameInput { bytes: &pressed[me], bits: 20 });
            while let Some(checked) = games[me].poll_check() {
                games[me].note_check(now, checked, &[7, 8]);
            }
            writer.clear();
            let (length, payload) = &mut ways[me][frame % 3];
            *length = 0;
            if games[me].fill(now, 1 - me as u8, 2_000, &mut writer) {
                let bytes = writer.as_bytes();
                *length = bytes.len();
                payload[..bytes.len()].copy_from_slice(bytes);
            }
        }
    }
    assert_eq!(requests() - before, 0);
    assert!(games.iter().all(|game| game.frame() > 1_900 && game.counters().rollbacks > 100));
}
