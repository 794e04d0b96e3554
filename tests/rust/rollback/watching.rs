//! Spectators: they see every confirmed frame, once, from the first or from a later one.

use super::table::{BAD, Table, number, step};
use tickwire::rng::Rng;
use tickwire::rollback::{Config, InputShape, Spectator};
use tickwire::wire::BitWriter;

/// Watches a table from a frame on, over a line with loss, until the end; gives the state before each frame.
fn watch(table: &mut Table, first: u32, seconds: u32, leaver: Option<usize>) -> Vec<u64> {
    let players = table.seats.len() as u8;
    let mut config = Config::new(players, 15, InputShape::of_bits(10));
    config.players = u16::MAX >> (16 - players);
    let mut spectator = Spectator::new(config, first, 2);
    let mut rng = Rng::seeded(77);
    let mut state = if first == 0 { 1 } else { table.seats[0].confirmed[first as usize] };
    let mut states = Vec::new();
    for millisecond in 0..seconds * 1000 {
        table.tick();
        if millisecond == seconds * 500
            && let Some(leaver) = leaver
        {
            table.leave(leaver);
            for other in (0..players).filter(|other| usize::from(*other) != leaver) {
                let now = table.now;
                table.seats[usize::from(other)].game.note_left(now, leaver as u8);
            }
            spectator.note_left(table.now, leaver as u8);
        }
        let now = table.now;
        for player in 0..players {
            if table.seats[usize::from(player)].is_gone {
                continue;
            }
            let mut writer = BitWriter::new();
            if spectator.fill(now, player, 8_000, &mut writer) && !rng.chance(0.2) {
                table.seats[usize::from(player)].game.read(now, 15, writer.as_bytes()).unwrap();
            }
            writer.clear();
            if table.seats[usize::from(player)].game.fill(now, 15, 8_000, &mut writer) && !rng.chance(0.2) {
                spectator.read(now, player, writer.as_bytes()).unwrap();
            }
        }
        if millisecond % 17 == 0 {
            for frame in spectator.advance(4) {
                states.push(state);
                let inputs = (0..usize::from(players)).map(|player| {
                    let (input, status) = spectator.input(player, frame);
                    (number(input), status)
                });
                state = step(state, frame, inputs);
            }
        }
    }
    assert!(!spectator.is_lost() && spectator.behind() < 20);
    states
}

#[test]
fn a_spectator_sees_the_confirmed_frames() {
    let mut table = Table::new(3, 21, BAD, |_| {});
    let states = watch(&mut table, 0, 8, None);
    assert!(states.len() > 380);
    assert_eq!(states[..], table.seats[0].confirmed[..states.len()]);
}

#[test]
fn a_spectator_joins_later_and_sees_who_leaves() {
    let mut table = Table::new(3, 22, BAD, |_| {});
    table.run(5);
    let first = table.seats[0].game.confirmed() - 50;
    let states = watch(&mut table, first, 8, Some(0));
    assert!(states.len() > 350);
    let first = first as usize;
    assert_eq!(states[..], table.seats[1].confirmed[first..first + states.len()]);
}

#[test]
fn one_who_comes_too_late_is_told_so() {
    let mut table = Table::new(2, 23, BAD, |_| {});
    table.run(5);
    let mut spectator = Spectator::new(Config::new(2, 0, InputShape::of_bits(10)), 0, 0);
    let (now, mut writer) = (table.now, BitWriter::new());
    assert!(spectator.fill(now, 0, 8_000, &mut writer));
    table.seats[0].game.read(now, 15, writer.as_bytes()).unwrap();
    writer.clear();
    assert!(table.seats[0].game.fill(now, 15, 8_000, &mut writer));
    spectator.read(now, 0, writer.as_bytes()).unwrap();
    assert!(spectator.is_lost() && spectator.advance(8).is_empty());
}
