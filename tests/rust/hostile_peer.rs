//! A peer with a good key that does not keep the protocol: its connection ends, and nothing else happens.

use tickwire::netsim::Conditions;
use tickwire::rng::Rng;
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::ack_endpoint::{AckEndpoint, AckEndpointConfig};
use tickwire::transport::{CloseReason, Connection, ConnectionConfig, End, Violation};
use tickwire::wire::{BitSink, BitWriter};

use crate::pair::{Pair, RELIABLE, UNRELIABLE, blob, number, protocol};

fn connection() -> Connection {
    Connection::new(&ConnectionConfig::default(), protocol()).unwrap()
}

/// A payload as the framing's standard has it: hello, no other section, then what `rest` writes.
fn hello(rest: impl FnOnce(&mut BitWriter)) -> Vec<u8> {
    let mut writer = BitWriter::new();
    writer.bool(true);
    writer.bits(1, 8);
    writer.bits(protocol().hash(), 64);
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

/// What a fresh connection makes of the payloads, in order.
fn judge(payloads: &[Vec<u8>]) -> Result<(), End> {
    let mut sender = AckEndpoint::new(AckEndpointConfig::large()).unwrap();
    let mut receiver = connection();
    payloads.iter().try_for_each(|payload| {
        let mut datagram = Vec::new();
        let packet = sender.send(Instant::ZERO, payload).unwrap();
        packet.pieces().for_each(|piece| piece.write(&mut datagram));
        receiver.handle_datagram(Instant::ZERO, &datagram)
    })
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
    let mut sender = AckEndpoint::new(AckEndpointConfig::large()).unwrap();
    let mut receiver = connection();
    let mut ends = Vec::new();
    for id in 0..17 {
        let payload = large(id);
        let packet = sender.send(Instant::ZERO, &payload).unwrap();
        for piece in packet.pieces() {
            let mut datagram = Vec::new();
            piece.write(&mut datagram);
            ends.extend(receiver.handle_datagram(Instant::ZERO, &datagram).err().map(|end| (id, end)));
        }
    }
    assert_eq!(ends, [(16, End::Violation(Violation::Window))]);
}

#[test]
fn credit_for_messages_never_sent_is_a_violation() {
    let credit = |unread: u16| {
        let mut writer = BitWriter::new();
        writer.bool(true);
        writer.bits(1, 8);
        writer.bits(protocol().hash(), 64);
        writer.bits(0b1000, 4); // Credit and no other section.
        writer.bits(0, 1); // Channel 0.
        writer.bits(unread.into(), 16);
        writer.bits(0, 2);
        writer.into_bytes()
    };
    assert_eq!(judge(&[credit(0)]), Ok(()));
    assert_eq!(judge(&[credit(1)]), Err(End::Violation(Violation::Window)));
    assert_eq!(judge(&[credit(65_535)]), Ok(()), "old news");
}

#[test]
fn a_close_ends_the_conversation_with_its_reason() {
    let close = |number: u64| {
        let mut writer = BitWriter::new();
        writer.bool(true);
        writer.bits(1, 8);
        writer.bits(protocol().hash(), 64);
        writer.bool(true);
        writer.bits(number, 8);
        writer.into_bytes()
    };
    assert_eq!(judge(&[close(2)]), Err(End::ByPeer(CloseReason::Kicked)));
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
        // One tick's packets, altered behind their reliable header.
        let mut packets = Packets::new();
        pair.send(0, RELIABLE, blob(99, 500)).unwrap();
        pair.ends[0].transmit(pair.now, &mut packets);
        for (_, packet) in packets.iter() {
            let mut altered = packet.to_vec();
            for _ in 0..1 + rng.below(3) {
                // Where numbers are, not the bytes of the blob.
                let at = rng.below(altered.len().min(30) as u64) as usize;
                altered[at] ^= 1 << rng.below(8);
            }
            match pair.ends[1].handle_datagram(pair.now, &altered) {
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
