//! A packet refused half-way leaves no row in any table: every bit of one flipped, every length of it, and what a server's
//! inbox has of one that breaks a window behind messages that don't.

use tickwire::endpoint::{Event, Host, Inbox};
use tickwire::netcode::packet::{Kind, seal};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::Instant;
use tickwire::wire::{BitSink, BitWriter};

use crate::fuzz::rounds;
use crate::fuzz_targets::atomic::{Outcome, bits, judge};
use crate::fuzz_targets::native::{ackless, datagram};
use crate::fuzz_targets::world;

#[test]
fn a_packet_with_a_bit_flipped_is_applied_whole_or_not_at_all() {
    assert_eq!(judge(|_| {}), Outcome::Applied(13));
    let outcomes: Vec<Outcome> =
        (0..bits()).map(|bit| judge(|payload| payload[bit / 8] ^= 1 << (bit % 8))).collect();
    let count = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
    assert!(count(|outcome| matches!(outcome, Outcome::Applied(_))) > 300);
    assert!(count(|outcome| *outcome == Outcome::Refused) > 100);
    // Ids and credit: the packet was read whole before that was found.
    let beyond = count(|outcome| *outcome == Outcome::BeyondWindow);
    assert!(beyond > 15, "{beyond}");
}

#[test]
fn a_packet_cut_anywhere_is_not_applied() {
    for bytes in 0..bits() / 8 {
        assert_eq!(judge(|payload| payload.truncate(bytes)), Outcome::Refused, "{bytes}");
    }
}

#[test]
fn a_packet_altered_here_and_there_is_applied_whole_or_not_at_all() {
    let mut rng = Rng::seeded(6);
    for _ in 0..rounds(3000) {
        judge(|payload| {
            for _ in 0..1 + rng.below(5) {
                let bit = rng.below(payload.len() as u64 * 8) as usize;
                payload[bit / 8] ^= 1 << (bit % 8);
            }
            if rng.chance(0.2) {
                payload.truncate(rng.below(payload.len() as u64) as usize);
            }
        });
    }
}

/// Numbers on a channel, under these ids.
fn entry(writer: &mut BitWriter, channel: u64, ids: [u16; 2], value: u64) {
    writer.bool(true);
    writer.bits(channel, 4);
    writer.bits(ids[0].into(), 16);
    writer.bits(0, 2);
    writer.bits(value, 32);
    writer.bool(true);
    writer.int_relative(0, u32::from(ids[1] - ids[0]));
    writer.bits(0, 2);
    writer.bits(value, 32);
    writer.bool(false);
}

#[test]
fn a_servers_tables_have_no_row_of_a_packet_that_breaks_a_window() {
    let (mut server, _) = world::connected();
    let token = world::token().to_bytes();
    let key: [u8; 32] = token[1100..1132].try_into().unwrap();
    let mut out = Datagrams::new();
    let mut deliver = |server: &mut Host, sequence: u16, entries: &[(u64, [u16; 2])]| {
        let mut writer = world::begin_payload();
        writer.bits(0, 4);
        for (channel, ids) in entries {
            entry(&mut writer, *channel, *ids, sequence.into());
        }
        writer.bool(false);
        let payload = datagram(&ackless(0), &writer.into_bytes());
        let mut datagram = Vec::new();
        seal(&mut datagram, world::PROTOCOL_ID, &key, 1000 + u64::from(sequence), Kind::Payload, &payload);
        let now = Instant::from_millis(100);
        server.handle_datagram(now, world::START, world::client_address(), &mut datagram, &mut out);
    };
    let (ordered, unordered) = (world::ORDERED as u64, world::UNORDERED as u64);
    deliver(&mut server, 50, &[(ordered, [0, 1]), (unordered, [0, 1])]);
    let ended = |server: &mut Host| {
        std::iter::from_fn(|| server.poll_event()).any(|event| matches!(event, Event::Disconnected { .. }))
    };
    assert!(!ended(&mut server));
    // Beyond the window, after valid messages: in the next channel, and in the same one.
    deliver(&mut server, 51, &[(ordered, [2, 3]), (unordered, [2, 2 + world::WINDOW as u16])]);
    assert!(ended(&mut server));
    let mut inbox = Inbox::with_tables(world::protocol(), &[0]);
    server.take_messages(&mut inbox);
    let (tables, _) = inbox.take_tables();
    let body = |row: &[u8]| row[tickwire::endpoint::HEAD_BYTES];
    let values: Vec<u8> = tables[0].rows().chunks(tables[0].stride()).map(body).collect();
    assert_eq!((values, inbox.game.records.len()), (vec![50; 4], 0));
}
