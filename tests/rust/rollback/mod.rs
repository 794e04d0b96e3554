//! Rollback games: all players' confirmed frames are those of all inputs in order, whatever the network does.

mod hostile;
mod steady;
mod table;
mod watching;

use table::{BAD, GOOD, Line, Table};
use tickwire::rng::Rng;
use tickwire::rollback::GameEvent;
use tickwire::time::Duration;

fn counters(table: &Table) -> Vec<tickwire::rollback::Counters> {
    table.seats.iter().map(|seat| seat.game.counters()).collect()
}

#[test]
fn two_players_agree_on_a_good_line() {
    let mut table = Table::new(2, 1, GOOD, |_| {});
    table.run(20);
    table.check(1_190);
    for counters in counters(&table) {
        assert_eq!(counters.stalls, 0, "{counters:?}");
        assert!(counters.max_replayed <= 3 && counters.compared > 60, "{counters:?}");
    }
}

#[test]
fn all_agree_over_bad_lines() {
    for players in [2, 3, 5, 8] {
        let mut table = Table::new(players, u64::from(players), BAD, |config| config.delay = 3);
        table.run(15);
        table.check(800);
        assert!(table.seats.iter().all(|seat| seat.events.is_empty()));
        for counters in counters(&table) {
            assert!(counters.rollbacks > 50 && counters.max_replayed <= 8, "{counters:?}");
        }
    }
}

#[test]
fn any_game_is_that_of_all_inputs_in_order() {
    for seed in 0..40 {
        let mut rng = Rng::seeded(seed);
        let line = Line {
            latency: Duration::from_millis(rng.below(120)),
            jitter: Duration::from_millis(rng.below(80)),
            loss: rng.unit() * 0.4,
            repeats: rng.unit() * 0.3,
        };
        let players = 2 + rng.below(4) as u8;
        let (window, delay, every) =
            (1 + rng.below(12) as u32, rng.below(6) as u32, 1 + rng.below(30) as u32);
        let mut table = Table::new(players, seed, line, |config| {
            (config.window, config.delay, config.check_every) = (window, delay, every);
        });
        for seat in &mut table.seats {
            seat.clock = 0.9 + 0.2 * rng.unit();
        }
        for _ in 0..6 {
            table.run(1);
            let who = rng.below(players.into()) as usize;
            table.seats[who].game.set_delay(rng.below(8) as u32);
        }
        table.check(15);
        let desyncs = table.seats.iter().flat_map(|seat| &seat.events);
        assert_eq!(desyncs.count(), 0, "seed {seed}");
    }
}

#[test]
fn a_full_window_stalls_and_loses_nothing() {
    let line = Line { latency: Duration::from_millis(20), jitter: Duration::ZERO, loss: 0.0, repeats: 0.0 };
    let mut table = Table::new(2, 3, line, |_| {});
    table.run(2);
    // Nothing arrives for half a second, then all goes on.
    table.line.loss = 1.0;
    table.run(1);
    let frames = table.seats[0].game.frame();
    assert_eq!(table.seats[0].game.waiting_for(), 0b10);
    assert!(!table.seats[0].game.can_advance());
    table.run(1);
    assert_eq!(table.seats[0].game.frame(), frames, "the window is full");
    table.line.loss = 0.0;
    table.run(2);
    table.check(220);
    assert!(counters(&table).iter().all(|counters| counters.stalls > 50 && counters.max_replayed <= 8));
}

#[test]
fn the_one_ahead_slows_down() {
    let line = Line {
        latency: Duration::from_millis(30),
        jitter: Duration::from_millis(5),
        loss: 0.02,
        repeats: 0.0,
    };
    let mut table = Table::new(2, 4, line, |config| config.window = 16);
    // The second one joins a sixth of a second late, and its clock is one per cent slower.
    table.seats[1].clock = 0.99;
    table.seats[1].is_gone = true;
    for _ in 0..160 {
        table.tick();
    }
    table.seats[1].is_gone = false;
    table.run(10);
    let frames: Vec<_> = table.seats.iter().map(|seat| i64::from(seat.game.frame())).collect();
    assert!((frames[0] - frames[1]).abs() <= 2, "{frames:?}");
    assert!(table.seats[0].game.ahead() < 2.0);
    table.check(550);
}

#[test]
fn a_step_that_differs_is_found_and_its_field_named() {
    let mut table = Table::new(3, 5, BAD, |config| config.check_every = 10);
    table.seats[1].cheats_from = 300;
    table.run(10);
    for (me, seat) in table.seats.iter().enumerate() {
        let found: Vec<_> = seat.events.iter().collect();
        let others: &[u8] = if me == 1 { &[0, 2] } else { &[1] };
        assert_eq!(found.len(), others.len(), "{found:?}");
        for event in found {
            let GameEvent::Desync { player, frame, last_equal, fields } = event else { panic!("{event:?}") };
            assert!(others.contains(player) && (310..400).contains(frame), "{event:?}");
            // The high half, where the wrong bit is, and soon the other.
            assert!(last_equal.is_some_and(|last| last <= 300) && fields & 2 == 2, "{event:?}");
        }
    }
}

#[test]
fn who_leaves_is_out_from_one_frame_on_in_all_games() {
    for seed in 0..60 {
        let mut rng = Rng::seeded(seed);
        let players = 2 + rng.below(5) as u8;
        let mut table = Table::new(players, seed, BAD, |_| {});
        table.line.loss = 0.3;
        table.run(2);
        let leavers = 1 + rng.below(u64::from(players) - 1) as usize;
        for _ in 0..leavers {
            let stay: Vec<usize> =
                (0..players.into()).filter(|player| !table.seats[*player].is_gone).collect();
            let leaver = stay[rng.below(stay.len() as u64) as usize];
            table.leave(leaver);
            // They learn of it at different times, and another may leave meanwhile.
            let mut unaware: Vec<usize> = stay.into_iter().filter(|player| *player != leaver).collect();
            while !unaware.is_empty() {
                for _ in 0..rng.below(60) {
                    table.tick();
                }
                let who = unaware.swap_remove(rng.below(unaware.len() as u64) as usize);
                let now = table.now;
                table.seats[who].game.note_left(now, leaver as u8);
            }
        }
        table.run(3);
        let gone: Vec<Vec<GameEvent>> = table
            .seats
            .iter()
            .filter(|seat| !seat.is_gone)
            .map(|seat| {
                let mut events = seat.events.clone();
                events.sort_by_key(
                    |event| if let GameEvent::Left { player, .. } = event { *player } else { 99 },
                );
                events
            })
            .collect();
        assert_eq!(gone[0].len(), leavers, "seed {seed}: {gone:?}");
        assert!(gone.iter().all(|events| *events == gone[0]), "seed {seed}: {gone:?}");
        table.check(150);
    }
}

#[test]
fn a_payload_of_a_frame_is_some_bytes() {
    let line = Line { latency: Duration::from_millis(50), jitter: Duration::ZERO, loss: 0.05, repeats: 0.0 };
    let mut table = Table::new(2, 6, line, |config| config.delay = 3);
    table.run(20);
    for seat in &table.seats {
        let (bytes, payloads) = (seat.bytes as f64 / 20.0, seat.payloads as f64 / 20.0);
        assert!(payloads <= 61.0, "{payloads} a second");
        assert!(bytes < 60.0 * 12.0, "{bytes} a second");
    }
}
