//! Seeded fuzzing of every reader above the secure connection: whatever a peer sends, nothing panics, and queues, memory
//! and answers stay within their bounds. `TICKWIRE_FUZZ` multiplies the rounds.

use tickwire::articles::{VirtualConfig, VirtualConnection};
use tickwire::rng::Rng;
use tickwire::store::{Datagrams, Packets};
use tickwire::time::{Duration, Instant};
use tickwire::transport::ack_endpoint::{AckEndpoint, AckEndpointConfig};
use tickwire::transport::acks::FullHeader;
use tickwire::transport::acks::RttSampling;
use tickwire::transport::fragment::Fragment;
use tickwire::transport::header::Header;
use tickwire::transport::{ChannelKind, Connection, ConnectionConfig, End, Protocol, SendOptions, VERSION};
use tickwire::wire::{BitSink, BitWriter};

use crate::fuzz_targets::native;
use crate::fuzz_targets::schema;
use crate::fuzz_targets::world::{QUEUE, WINDOW, protocol_without_chunks};
use crate::pair::{blob, number};

pub(crate) fn rounds(usual: u64) -> u64 {
    let times = std::env::var("TICKWIRE_FUZZ").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    usual * times
}

/// A number that is likely to be at an edge, or near `at`.
fn edgy(rng: &mut Rng, at: u16) -> u16 {
    let near = at.wrapping_add(rng.below(7) as u16).wrapping_sub(3);
    match rng.below(6) {
        0 => rng.next_u64() as u16,
        1 => near.wrapping_add(WINDOW as u16),
        2 => near.wrapping_add(32_768),
        3 => near.wrapping_add(1024),
        _ => near,
    }
}

/// A number below `usual`, now and then below `rare`.
fn below(rng: &mut Rng, usual: u64, rare: u64) -> u64 {
    let bound = if rng.chance(0.05) { rare } else { usual };
    rng.below(bound)
}

/// A payload with the form of the framing's standard and numbers that are often wrong.
fn payload(rng: &mut Rng, protocol: &Protocol, at: u16) -> Vec<u8> {
    let mut w = BitWriter::new();
    w.bool(true);
    w.bits(VERSION.into(), 8);
    w.bits(protocol.hash(), 64);
    w.bool(false);
    let delay = rng.chance(0.3);
    w.bool(delay);
    if delay {
        w.bits(rng.below(1 << 14), 14);
    }
    let mut more = rng.chance(0.3);
    w.bool(more);
    while more {
        w.int_relative(0, 1 + below(rng, 9, 30_000) as u32);
        w.int_relative(0, 1 + below(rng, 40, 30_000) as u32);
        more = rng.chance(0.6);
        w.bool(more);
    }
    let credit = rng.chance(0.3);
    w.bool(credit);
    if credit {
        w.bits(rng.below(2), 3);
        w.bits(edgy(rng, at).into(), 16);
        w.bool(false);
    }
    for channel in 0..8u64 {
        if rng.chance(0.6) {
            continue;
        }
        w.bool(true);
        w.bits(channel, 3);
        let messages = 1 + below(rng, 4, 400);
        for n in 0..messages {
            match channel {
                0 | 1 | 4 | 5 if n == 0 => w.bits(edgy(rng, at).into(), 16),
                0 | 1 | 4 | 5 => w.int_relative(0, 1 + below(rng, 3, 60_000) as u32),
                6 => w.bits(below(rng, 300, 512), 9),
                _ => {}
            }
            let kind = if channel == 7 { 1 } else { rng.below(4) };
            if channel != 7 {
                w.bits(kind, 2);
            }
            match kind {
                0 => w.bits(rng.next_u64() >> 32, 32),
                1 => {
                    let bits = below(rng, 90, 16_384);
                    w.bits(bits, if channel == 7 { 14 } else { 20 });
                    (0..bits).for_each(|_| w.bool(rng.chance(0.5)));
                }
                2 => {}
                _ => {
                    w.string("Grüße", 40);
                    w.wstring("𝄞a", 9);
                }
            }
            w.bool(n + 1 < messages);
        }
    }
    w.bool(false);
    if rng.chance(0.4) {
        fragments(rng, &mut w, at);
    }
    w.into_bytes()
}

/// Fragments of messages of type 1, most often of two.
fn fragments(rng: &mut Rng, w: &mut BitWriter, at: u16) {
    let mut more = true;
    while more {
        w.bool(true);
        let channel = if rng.chance(0.02) { rng.below(8) } else { rng.below(2) };
        let bits = if rng.chance(0.05) { rng.below(16_384) } else { 8_193 + 2_600 * rng.below(3) };
        w.bits(channel, 3);
        w.bits(edgy(rng, at).into(), 16);
        w.bits(if rng.chance(0.02) { rng.below(4) } else { 1 }, 2);
        w.bits(bits, 14);
        let index = rng.below(2);
        if bits > 8_192 {
            w.bits(index, 1);
        }
        w.bytes(&vec![0; bits.div_ceil(8).saturating_sub(index * 1024).min(1024) as usize]);
        more = rng.chance(0.5);
    }
    w.bool(false);
}

/// The bytes as they are, or with some of their bits turned.
fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() || rng.chance(0.7) {
        return;
    }
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << rng.below(8);
    }
    if rng.chance(0.1) {
        bytes.truncate(rng.below(bytes.len() as u64) as usize);
    }
}

/// Datagrams of a packet, whole or in fragments that may lie.
fn datagrams(rng: &mut Rng, header: Header, payload: &[u8]) -> Vec<Vec<u8>> {
    let (sequence, mut out) = (header.sequence, Vec::new());
    if payload.len() <= 1191 && rng.chance(0.9) {
        let mut datagram = Vec::new();
        header.write(&mut datagram);
        datagram.extend_from_slice(payload);
        out.push(datagram);
    } else {
        let parts = payload.chunks(1024);
        let last = parts.len().saturating_sub(1) as u8;
        for (id, data) in parts.enumerate() {
            let last_id = if rng.chance(0.02) { rng.next_u64() as u8 } else { last };
            let id = if rng.chance(0.02) { rng.next_u64() as u8 } else { id as u8 };
            let header = (id == 0).then_some(header.unwrap(0, 0));
            let packet = edge_of(rng, sequence).into();
            let fragment = Fragment { packet, id, last_id, header, data };
            let mut datagram = Vec::new();
            fragment.write(&mut datagram);
            out.push(datagram);
        }
    }
    out
}

/// As [`datagrams`], of our own framing: with the numbers under which they come.
fn numbered(rng: &mut Rng, header: FullHeader, payload: &[u8]) -> Vec<(u64, Vec<u8>)> {
    if rng.chance(0.9) {
        return native::datagrams(header, payload);
    }
    let parts = payload.chunks(1024);
    let last = parts.len().saturating_sub(1) as u8;
    let parts = parts.enumerate().map(|(id, data)| {
        let number = header.sequence + id as u64 + u64::from(rng.chance(0.02));
        let last_id = if rng.chance(0.02) { rng.next_u64() as u8 } else { last };
        let id = if rng.chance(0.02) { rng.next_u64() as u8 } else { id as u8 };
        (number, native::fragment(&header, id, last_id, data))
    });
    parts.collect()
}

/// A 64-bit number near this one, or anywhere.
fn edgy_number(rng: &mut Rng, at: u64) -> u64 {
    if rng.chance(0.1) { rng.next_u64() >> rng.below(64) } else { (at + rng.below(9)).saturating_sub(4) }
}

fn edge_of(rng: &mut Rng, sequence: u16) -> u16 {
    if rng.chance(0.05) { edgy(rng, sequence) } else { sequence }
}

#[test]
fn no_packet_of_a_peer_breaks_a_connection() {
    let protocol = protocol_without_chunks();
    let (mut accepted, mut ended) = (0, 0);
    for seed in 0..rounds(1_500) {
        let mut rng = Rng::seeded(seed);
        let mut ours = Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
        let (mut now, mut out) = (Instant::ZERO, Packets::new());
        let (mut sequence, mut ours_sent, mut at) = (0u64, 0u64, 0u16);
        'talk: for n in 0..60 {
            now += Duration::from_millis(rng.below(40));
            for channel in 0..7 {
                let options = SendOptions { key: rng.below(300) as u32, tag: n, notify: true };
                let _full = ours.send(now, channel, blob(n, rng.below(40) as usize), options);
            }
            let _full = ours.send_payload(now, 7, number(n).encoded, n);
            ours.transmit(now, &mut out);
            ours_sent = out.iter().map(|(number, _)| number).max().unwrap_or(ours_sent);
            assert!(out.iter().all(|(_, packet)| packet.len() <= 1200));
            out.clear();
            sequence = if rng.chance(0.05) { edgy_number(&mut rng, sequence) } else { sequence + 1 };
            let ack = if rng.chance(0.2) { edgy_number(&mut rng, ours_sent) } else { ours_sent };
            let ack_bits = rng.next_u64() as u32 | rng.next_u64() as u32;
            let header = FullHeader { sequence, ack, ack_bits, skipped: rng.below(3) as u8 };
            let mut payload = payload(&mut rng, &protocol, at);
            mutate(&mut rng, &mut payload);
            at = at.wrapping_add(1);
            for (number, mut datagram) in numbered(&mut rng, header, &payload) {
                mutate(&mut rng, &mut datagram);
                match ours.handle_datagram(now, number, &datagram) {
                    Ok(()) => accepted += 1,
                    Err(End::ByPeer(_) | End::Mismatch | End::Violation(_)) => {
                        ended += 1;
                        break 'talk;
                    }
                }
            }
            while ours.poll_notification().is_some() {}
            if rng.chance(0.3) {
                for (channel, config) in protocol.channels().iter().enumerate() {
                    let most = match config.kind {
                        ChannelKind::Reliable { receive_window, .. } => receive_window,
                        ChannelKind::Latest { keys } => keys,
                        _ => QUEUE,
                    };
                    let taken = std::iter::from_fn(|| ours.poll_received(channel)).count();
                    assert!(taken <= most, "{taken} on channel {channel}");
                }
            }
        }
        // Also once it is over.
        ours.transmit(now, &mut out);
    }
    assert!(accepted > 1000 && ended > 500, "{accepted} {ended}");
}

#[test]
fn no_datagram_breaks_an_ack_endpoint() {
    for seed in 0..rounds(300) {
        let mut rng = Rng::seeded(seed);
        let config = if rng.chance(0.5) { AckEndpointConfig::standard() } else { AckEndpointConfig::large() };
        let mut ours = AckEndpoint::new(config).unwrap();
        let (mut acked, mut lost, mut sent) = (Vec::new(), Vec::new(), 0);
        let mut sequence = 0;
        for n in 0..200 {
            let now = Instant::from_millis(n * 5);
            sent += ours.send(now, &[0; 3]).map_or(0, |_| 1);
            sequence = edgy(&mut rng, sequence);
            let header = Header { sequence, ack: edgy(&mut rng, n as u16), ack_bits: rng.next_u64() as u32 };
            let payload = vec![7; rng.below(3000) as usize];
            for mut datagram in datagrams(&mut rng, header, &payload) {
                mutate(&mut rng, &mut datagram);
                match ours.open(&datagram) {
                    Ok(Some(packet)) if rng.chance(0.8) => {
                        ours.accept(now, packet, RttSampling::EveryAck, &mut acked);
                    }
                    Ok(Some(packet)) => ours.refuse(packet),
                    Ok(None) | Err(_) => {}
                }
            }
            ours.acks.poll_lost(now, &mut lost);
            ours.acks.update(now);
        }
        let in_time = acked.iter().filter(|acked| !acked.late).count();
        assert!(in_time + lost.len() <= sent, "each packet has one fate");
    }
}

#[test]
fn any_bytes_are_a_message_of_any_schema_or_refused() {
    let mut read = 0;
    for seed in 0..rounds(20_000) {
        let mut rng = Rng::seeded(seed);
        let sparse = rng.chance(0.5);
        let byte = |rng: &mut Rng| if sparse && rng.chance(0.8) { 0 } else { rng.next_u64() as u8 & 0x7F };
        // The schema takes some, the message the rest.
        let bytes: Vec<u8> = (0..rng.below(200)).map(|_| byte(&mut rng)).collect();
        read += u64::from(schema::run(&bytes));
    }
    assert!(read > 2000, "{read}");
}

#[test]
fn no_stranger_gets_more_out_of_a_virtual_connection_than_it_put_in() {
    for seed in 0..rounds(300) {
        let mut rng = Rng::seeded(seed);
        let mut ours = VirtualConnection::listen(VirtualConfig::new(7)).unwrap();
        let victim = "10.0.0.1:9".parse().unwrap();
        let (mut out, mut given, mut datagrams_given) = (Datagrams::new(), 0, 0);
        for n in 0..100 {
            let now = Instant::from_millis(n * 10);
            // Of packets never sent: a right ack would prove the address.
            let ack = 20_000 + rng.below(20_000) as u16;
            let header = Header { sequence: edgy(&mut rng, n as u16), ack, ack_bits: rng.next_u64() as u32 };
            let payload = vec![1; rng.below(2000) as usize];
            for packet in datagrams(&mut rng, header, &payload) {
                let mut datagram = 7u32.to_le_bytes().to_vec();
                datagram.extend(crc32fast::hash(&packet).to_le_bytes());
                datagram.extend(packet);
                mutate(&mut rng, &mut datagram);
                given += datagram.len();
                datagrams_given += 1;
                let _dropped = ours.handle_datagram(now, victim, &datagram);
                if rng.chance(0.5) {
                    let payload = vec![2; rng.below(1500) as usize];
                    let _refused = ours.send(now, &payload, &mut out);
                }
            }
            ours.update(now, &mut out);
            assert!(out.total_bytes() <= given && out.len() <= datagrams_given);
        }
        assert!(!ours.is_ready());
    }
}
