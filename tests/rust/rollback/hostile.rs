//! Peers that lie: what no honest one sends is a fault, all else harms nobody.

use super::table::{BAD, Seat, Table};
use tickwire::rng::Rng;
use tickwire::rollback::{Config, Fault, GameInput, InputShape, Rollback};
use tickwire::time::Instant;
use tickwire::wire::{BitSink, BitWriter};

fn fresh() -> Rollback {
    let mut seat = Seat::new(Config::new(3, 0, InputShape::of_bits(4)));
    for _ in 0..8 {
        seat.advance(Instant::ZERO, GameInput { bytes: &[1], bits: 4 });
    }
    seat.game
}

fn payload(write: impl FnOnce(&mut BitWriter)) -> Vec<u8> {
    let mut writer = BitWriter::new();
    write(&mut writer);
    writer.into_bytes()
}

fn flags(writer: &mut BitWriter, count: u32) {
    writer.bits(0, count);
}

#[test]
fn lies_are_named() {
    let read = |bytes: &[u8]| fresh().read(Instant::ZERO, 1, bytes);
    let ack = |acked: u64| {
        payload(|writer| {
            writer.bits(acked, 12);
            flags(writer, 5);
        })
    };
    assert_eq!(read(&ack(10)), Ok(()), "all that was given, with two frames of delay");
    assert_eq!(read(&ack(11)), Err(Fault::ForgedAck));
    assert!(matches!(read(&ack(0)[..1]), Err(Fault::Read(_))));
    assert_eq!(read(&[&ack(0)[..], &[0]].concat()), Err(Fault::Trailing));
    let inputs = |first: u64, run: u64| {
        payload(|writer| {
            writer.bits(0, 12);
            writer.bool(true);
            writer.bits(first, 12);
            let length = (run + 1).ilog2();
            if length > 0 {
                writer.bits(0, length);
            }
            writer.bool(true);
            if length > 0 {
                writer.bits((run + 1) & ((1 << length) - 1), length);
            }
            flags(writer, 5);
        })
    };
    assert_eq!(read(&inputs(0, 10)), Ok(()));
    assert_eq!(read(&inputs(1, 10)), Err(Fault::Gap));
    assert_eq!(read(&inputs(0, 64)), Ok(()), "the largest window and the longest delay");
    assert_eq!(read(&inputs(0, 65)), Err(Fault::FarAhead), "nothing of this side was acked");
    assert_eq!(fresh().read(Instant::ZERO, 0, &ack(0)), Err(Fault::Unknown), "that is this side");
    assert_eq!(fresh().read(Instant::ZERO, 99, &ack(0)), Err(Fault::Unknown));
    // Inputs of a player who is there, from another one: read over, and not taken.
    let leavers = |gone: u64, told: u64| {
        payload(|writer| {
            writer.bits(0, 12);
            flags(writer, 4);
            writer.bool(true);
            writer.bits(gone, 16);
            writer.bits(told, 16);
            for _ in 0..told.count_ones() {
                writer.bits(0, 12);
                writer.bits(0, 2);
                writer.bool(true);
                writer.bits(0, 12);
                writer.bits(0b1, 1);
                writer.bool(true);
                writer.bits(9, 4);
                writer.bool(true);
                writer.bool(false);
            }
        })
    };
    let mut game = fresh();
    assert_eq!(game.read(Instant::ZERO, 1, &leavers(0b100, 0b100)), Ok(()));
    assert_eq!((game.confirmed(), game.input(2, 0).0.bytes), (0, &[0][..]), "nobody speaks for who is there");
    assert_eq!(read(&leavers(0b10, 0b10)), Err(Fault::NotItsPlayer), "of itself");
    assert_eq!(read(&leavers(0, 0b100)), Err(Fault::NotItsPlayer));
    assert_eq!(read(&leavers(0x100, 0x100)), Err(Fault::NotItsPlayer), "nobody has that index");
}

#[test]
fn one_who_never_acks_gets_no_further_than_a_window() {
    let mut game = fresh();
    for frame in 0..10_000u64 {
        let bytes = payload(|writer| {
            writer.bits(0, 12);
            writer.bool(true);
            writer.bits(frame & 0xFFF, 12);
            writer.bits(0b010, 3);
            writer.bits(0, 6);
        });
        if game.read(Instant::ZERO, 1, &bytes).is_err() {
            assert!(frame <= 64, "{frame}");
            return;
        }
    }
    panic!("it was never refused");
}

#[test]
fn noise_and_floods_change_nothing_that_is_confirmed() {
    let mut rng = Rng::seeded(9);
    let mut table = Table::new(3, 9, BAD, |_| {});
    table.run(2);
    let mut faults = 0;
    for _ in 0..30_000 {
        // Of a player who left: nothing of it is taken any more, nor does it harm.
        let bytes: Vec<u8> = (0..rng.below(40)).map(|_| rng.next_u64() as u8).collect();
        let mut game = fresh();
        faults += u32::from(game.read(Instant::ZERO, 1, &bytes).is_err());
        assert!(game.confirmed() == 0 && game.frame() == 8);
        let now = table.now;
        let _ = table.seats[0].game.read(now, 0, &bytes);
        let _ = table.seats[1].game.read(now, 7, &bytes);
    }
    assert!(faults > 20_000, "{faults}");
    table.run(2);
    table.check(180);
}

#[test]
fn what_comes_very_late_is_dropped_and_its_sender_stays() {
    let mut seat = Seat::new(Config::new(2, 0, InputShape::of_bits(4)));
    let of = |acked: u64, first: u64, input: Option<u64>| {
        payload(|writer| {
            writer.bits(acked & 0xFFF, 12);
            writer.bool(true);
            writer.bits(first & 0xFFF, 12);
            match input {
                Some(input) => {
                    writer.bits(0b11, 2);
                    writer.bits(input, 4);
                    writer.bits(0b1, 2);
                }
                None => writer.bits(0b0010, 4),
            }
            flags(writer, 4);
        })
    };
    for frame in 0..300 {
        let input = [Some(1), Some(5)].get(frame as usize).copied().flatten();
        assert_eq!(seat.game.read(Instant::ZERO, 1, &of(frame, frame, input)), Ok(()), "{frame}");
        seat.advance(Instant::ZERO, GameInput { bytes: &[1], bits: 4 });
    }
    assert!(seat.game.confirmed() >= 290);
    // Frame 256 has taken the place of frame 0, against which this says a change.
    let before = seat.game.counters().stale;
    assert_eq!(seat.game.read(Instant::ZERO, 1, &of(1, 1, Some(5))), Ok(()), "an honest one, seconds late");
    assert_eq!(seat.game.counters().stale, before + 1);
}
