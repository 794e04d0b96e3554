//! A peer with a good key that does not keep the protocol: its connection ends, and nothing else happens.

use std::sync::Arc;

use tickwire::netsim::Conditions;
use tickwire::rng::Rng;
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::acks::FullHeader;
use tickwire::transport::{
    Body, ChannelConfig, ChannelKind, CloseReason, Connection, ConnectionConfig, End, MessageType, Protocol,
    Refusal, SendOptions, VERSION, Violation,
};
use tickwire::wire::{BitSink, BitWriter, Schema};

use crate::fuzz_targets::native::{Peer, ackless, datagram, deliver};
use crate::pair::{Pair, RELIABLE, UNRELIABLE, blob, number, protocol, protocol_with};

fn connection() -> Connection {
    Connection::new(&ConnectionConfig::default(), protocol()).unwrap()
}

/// A payload as the framing's standard has it: hello, no other section, then what `rest` writes.
fn hello(rest: impl FnOnce(&mut BitWriter)) -> Vec<u8> {
    hello_of(&protocol(), rest)
}

fn hello_of(protocol: &Protocol, rest: impl FnOnce(&mut BitWriter)) -> Vec<u8> {
    let mut writer = BitWriter::new();
    writer.bool(true);
    writer.bits(VERSION.into(), 8);
    writer.bits(protocol.hash(), 64);
    // No close, no ack delay, no ranges, no credit.
    writer.bits(0, 4);
    rest(&mut writer);
    writer.into_bytes()
}

/// One number on the reliable channel under this id.
fn reliable_entry(writer: &mut BitWriter, id: u16) {
    writer.bits(0b01, 2); // An entry, of channel 0.
    writer.bits(id.into(), 16);
    writer.bits(0, 1); // Type 0.
    writer.bits(5, 32);
    writer.bits(0, 2); // No further message, no further entry.
}

/// The outcome of the payloads at a fresh connection, in order.
fn judge(payloads: &[Vec<u8>]) -> Result<(), End> {
    let mut sender = Peer::default();
    let mut receiver = connection();
    payloads.iter().try_for_each(|payload| deliver(&mut sender, &mut receiver, Instant::ZERO, payload))
}

/// A payload with hello and credit for the reliable channel.
fn credit(unread: u16) -> Vec<u8> {
    let mut writer = BitWriter::new();
    writer.bool(true);
    writer.bits(VERSION.into(), 8);
    writer.bits(protocol().hash(), 64);
    writer.bits(0b1000, 4); // Credit and no other section.
    writer.bits(0, 1); // Channel 0.
    writer.bits(unread.into(), 16);
    writer.bits(0, 2);
    writer.into_bytes()
}

#[test]
fn message_ids_beyond_the_window_are_a_violation() {
    assert_eq!(judge(&[hello(|w| reliable_entry(w, 1023))]), Ok(()));
    let beyond = judge(&[hello(|w| reliable_entry(w, 1024))]);
    assert_eq!(beyond, Err(End::Violation(Violation::Window)));
    assert_eq!(judge(&[hello(|w| reliable_entry(w, 65_535))]), Ok(()), "behind the window: a duplicate");
}

#[test]
fn more_bytes_than_the_window_are_a_violation() {
    // 17 messages of 64,000 bytes are more than 1 MiB.
    let large = |id: u16| {
        hello(|w| {
            w.bits(0b01, 2);
            w.bits(id.into(), 16);
            w.bits(1, 1);
            w.bits(64_000 * 8, 20);
            (0..64_000 / 8).for_each(|_| w.bits(0, 64));
            w.bits(0, 2);
        })
    };
    let mut sender = Peer::default();
    let mut receiver = connection();
    let mut ends = Vec::new();
    for id in 0..17 {
        let payload = large(id);
        let result = deliver(&mut sender, &mut receiver, Instant::ZERO, &payload);
        ends.extend(result.err().map(|end| (id, end)));
    }
    assert_eq!(ends, [(16, End::Violation(Violation::Window))]);
}

#[test]
fn credit_for_messages_never_sent_is_a_violation() {
    assert_eq!(judge(&[credit(0)]), Ok(()));
    assert_eq!(judge(&[credit(1)]), Err(End::Violation(Violation::Window)));
    assert_eq!(judge(&[credit(65_535)]), Ok(()), "old news");
}

#[test]
fn credit_for_messages_still_waiting_to_be_sent_is_a_violation() {
    let mut sender = Peer::default();
    let mut receiver = connection();
    receiver.send(Instant::ZERO, RELIABLE, number(1), SendOptions::default()).unwrap();
    let end = deliver(&mut sender, &mut receiver, Instant::ZERO, &credit(1));
    assert_eq!(end, Err(End::Violation(Violation::Window)));
}

#[test]
fn credit_for_a_message_in_fragments_that_was_acked_before_the_one_in_front_is_no_violation() {
    let mut peer = Peer::default();
    let mut ours = connection();
    let mut out = Packets::new();
    // The packet with the first message is taken, and not acked.
    for (at, message) in [(0, number(1)), (16, blob(2, 1500))] {
        let now = Instant::from_millis(at);
        ours.send(now, RELIABLE, message, SendOptions::default()).unwrap();
        ours.transmit(now, &mut out);
        out.iter().filter(|(number, _)| *number > 0).for_each(|(number, _)| peer.accept(number));
        out.clear();
    }
    assert_eq!(deliver(&mut peer, &mut ours, Instant::from_millis(32), &credit(0)), Ok(()));
    assert_eq!(ours.channel_stats(RELIABLE).delivered, 1);
    assert_eq!(deliver(&mut peer, &mut ours, Instant::from_millis(33), &credit(2)), Ok(()));
    assert_eq!(ours.channel_stats(RELIABLE).queued, 0);
}

#[test]
fn a_peer_that_acks_nothing_can_use_credit_for_more_than_a_lap_of_ids() {
    let mut sender = Peer::default();
    let mut receiver = connection();
    let mut out = Packets::new();
    for n in 0..100_000u32 {
        let payload = hello(|w| reliable_entry(w, n as u16));
        deliver(&mut sender, &mut receiver, Instant::ZERO, &payload).unwrap();
        assert!(receiver.poll_received(RELIABLE).is_some(), "{n}");
        if n % 500 == 0 {
            receiver.transmit(Instant::from_millis(u64::from(n)), &mut out);
            out.clear();
        }
    }
}

#[test]
fn a_late_ack_is_not_taken_for_that_of_a_message_a_lap_later() {
    // A window that still knows the first packet by then.
    let mut config = ConnectionConfig::default();
    config.packets.acks.sent_window = 1024;
    late_ack_after_a_lap(Connection::new(&config, protocol()).unwrap(), |unread| credit(unread as u16));
    let redundant = ChannelKind::Redundant { copies: 0, receive_queue: 16 };
    let protocol = protocol_with(vec![ChannelConfig::new(redundant)]);
    let connection = Connection::new(&config, protocol.clone()).unwrap();
    late_ack_after_a_lap(connection, |_| hello_of(&protocol, |w| w.bool(false)));
}

/// Sends more messages than there are ids on channel 0, then acks the first packet, which was lost.
fn late_ack_after_a_lap(mut ours: Connection, answer: impl Fn(u32) -> Vec<u8>) {
    let mut peer = Peer::default();
    let (mut now, mut out) = (Instant::ZERO, Packets::new());
    let mut sent = 0u32;
    while sent <= 65_536 {
        for _ in 0..512 {
            ours.send(now, RELIABLE, number(sent), SendOptions::default()).unwrap();
            sent += 1;
        }
        ours.transmit(now, &mut out);
        // By now the first packet counts as lost.
        now += Duration::from_millis(200);
        ours.transmit(now, &mut out);
        out.iter().filter(|(number, _)| *number > 0).for_each(|(number, _)| peer.accept(number));
        out.clear();
        if sent <= 65_536 {
            deliver(&mut peer, &mut ours, now, &answer(sent)).unwrap();
        }
    }
    let before = ours.channel_stats(RELIABLE);
    assert_eq!((before.queued, before.lost), (512, 0));
    let late = FullHeader { ack: 0, ack_bits: 1, ..peer.header() };
    ours.handle_datagram(now, peer.next, &datagram(&late, &[0])).unwrap();
    assert_eq!(ours.counters().late_acks, 1, "the window still knows the packet");
    assert_eq!(ours.channel_stats(RELIABLE), before);
}

#[test]
fn a_packet_has_a_bounded_number_of_messages() {
    let nothing = Schema::new::<String>([]).unwrap();
    let types = vec![MessageType { name: "Nothing".into(), body: Body::Declared(nothing) }];
    let protocol = Arc::new(Protocol::new(types, vec![ChannelConfig::unreliable()]).unwrap());
    let judge = |messages: usize| {
        let payload = hello_of(&protocol, |w| {
            (0..messages).for_each(|_| w.bool(true));
            w.bits(0, 2);
        });
        let mut sender = Peer::default();
        let mut receiver = Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
        deliver(&mut sender, &mut receiver, Instant::ZERO, &payload)
    };
    assert_eq!(judge(16_384), Ok(()));
    assert_eq!(judge(16_385), Err(End::Violation(Violation::Packet(Refusal::Messages))));
}

#[test]
fn a_body_above_its_channels_bound_is_a_violation() {
    let small = ChannelConfig { max_message_bytes: 100, ..ChannelConfig::unreliable() };
    let protocol = protocol_with(vec![small]);
    let judge = |bits: u64| {
        let payload = hello_of(&protocol, |w| {
            w.bits(0b11, 2); // An entry, and type 1.
            w.bits(bits, 20);
            (0..bits).for_each(|_| w.bool(false));
            w.bits(0, 2);
        });
        let mut sender = Peer::default();
        let mut receiver = Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
        deliver(&mut sender, &mut receiver, Instant::ZERO, &payload)
    };
    assert_eq!(judge(800), Ok(()));
    assert_eq!(judge(801), Err(End::Violation(Violation::Packet(Refusal::Length))));
}

#[test]
fn a_close_ends_the_conversation_with_its_reason() {
    let close = |number: u64| {
        let mut writer = BitWriter::new();
        writer.bool(true);
        writer.bits(VERSION.into(), 8);
        writer.bits(protocol().hash(), 64);
        writer.bool(true);
        writer.bits(number, 8);
        writer.into_bytes()
    };
    assert_eq!(judge(&[close(2)]), Err(End::ByPeer(CloseReason::Kicked)));
    assert_eq!(judge(&[close(7)]), Err(End::ByPeer(CloseReason::Stalled)));
    assert_eq!(
        judge(&[close(77)]),
        Err(End::ByPeer(CloseReason::Closed)),
        "unknown reasons are read as closed"
    );
}

#[test]
fn altered_packets_of_a_real_conversation_end_it_or_do_no_harm() {
    let conditions = Conditions::perfect().latency(Duration::from_millis(20), Duration::ZERO).loss(0.1);
    let mut violations = 0;
    for seed in 0..300 {
        let mut rng = Rng::seeded(seed);
        let mut pair = Pair::new(protocol(), conditions, seed);
        for n in 0..40 {
            pair.send(0, RELIABLE, blob(n, rng.below(60) as usize)).unwrap();
            pair.send(0, UNRELIABLE, number(n)).unwrap();
            pair.tick();
        }
        // One tick's packets, altered after their reliable header.
        let mut packets = Packets::new();
        pair.send(0, RELIABLE, blob(99, 500)).unwrap();
        pair.ends[0].transmit(pair.now, &mut packets);
        for (number, packet) in packets.iter() {
            let mut altered = packet.to_vec();
            for _ in 0..1 + rng.below(3) {
                // Where numbers are, not the bytes of the blob.
                let at = rng.below(altered.len().min(30) as u64) as usize;
                altered[at] ^= 1 << rng.below(8);
            }
            match pair.ends[1].handle_datagram(pair.now, number, &altered) {
                Ok(()) | Err(End::ByPeer(_) | End::Mismatch) => {}
                Err(End::Violation(_)) => violations += 1,
            }
        }
        while pair.ends[1].poll_received(RELIABLE).is_some() {}
    }
    assert!(violations > 30, "{violations}");
}

#[test]
fn random_payloads_of_any_length_end_the_connection_or_do_no_harm() {
    let mut rng = Rng::seeded(8);
    for _ in 0..50_000 {
        let bytes = rng.below(80) as usize;
        let random: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
        let payload = hello(|w| random.iter().for_each(|byte| w.bits((*byte).into(), 8)));
        let _ = judge(&[payload]);
    }
}

/// A peer that leaves out every other packet has each of ours list thousands of ranges.
#[test]
fn the_largest_message_beside_many_ack_ranges_has_its_fate_told() {
    let mut channel = ChannelConfig::unreliable();
    channel.max_message_bytes = 256 * 1024 - 1024;
    let types =
        vec![MessageType { name: "Blob".into(), body: Body::Opaque { max_bytes: 256 * 1024 - 1024 } }];
    let protocol = Arc::new(Protocol::new(types, vec![channel]).unwrap());
    let mut connection = Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
    let payload = hello_of(&protocol, |writer| writer.bits(0, 1));
    let mut now = Instant::ZERO;
    for n in 0..9000 {
        connection.handle_datagram(now, 2 * n, &datagram(&ackless(2 * n), &payload)).unwrap();
    }
    let mut writer = BitWriter::new();
    writer.bytes(&vec![7; 256 * 1024 - 1024 - 8]);
    let options = SendOptions { tag: 5, notify: true, key: 0 };
    let message = tickwire::transport::Message::new(0, writer.encoded());
    connection.send(now, 0, message, options).unwrap();
    let mut packets = Packets::new();
    let told = (0..600).find_map(|_| {
        now += Duration::from_millis(16);
        connection.transmit(now, &mut packets);
        packets.clear();
        connection.poll_notification()
    });
    assert_eq!(told.map(|told| (told.tag, told.delivered)), Some((5, false)));
    assert_eq!(connection.channel_stats(0).queued, 0);
}
