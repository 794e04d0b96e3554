//! Packets of a peer that has the key and no manners, at one connection with every kind of channel.

use std::sync::Arc;

use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::acks::FullHeader;
use tickwire::transport::chunks::{Assembly, BytesSource, ChunkEvent, MemorySink, Rejection};
use tickwire::transport::{ChannelKind, Connection, ConnectionConfig, SendOptions};
use tickwire::wire::BitSink;

use super::input::Input;
use super::native;
use super::world::{CHANNELS, KEYS, PAYLOAD, QUEUE, WINDOW, begin_payload, blob, number, protocol};

/// Chunks above this are rejected.
const LIMIT: u64 = 20_000;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut ours = Connection::new(&ConnectionConfig::default(), protocol()).unwrap();
    let (mut now, mut out) = (Instant::ZERO, Packets::new());
    let (mut sequence, mut told, mut asked) = (0u64, 0, 0);
    while !input.is_empty() {
        let op = input.u8();
        now += Duration::from_millis(u64::from(op >> 5) * 8);
        match op % 8 {
            0 => asked += send(&mut ours, now, &mut input),
            1 => {
                ours.transmit(now, &mut out);
                assert!(out.iter().all(|(_, packet)| packet.len() <= 1200));
                out.clear();
            }
            2 => {
                take(&mut ours);
                while ours.poll_notification().is_some() {
                    told += 1;
                }
                answer_offers(&mut ours);
            }
            kind => {
                sequence = sequence.wrapping_add(match input.u8() {
                    255 => u64::from(input.u16()) << 40,
                    near => u64::from(near % 8),
                });
                let ack = u64::from(input.u8()).wrapping_sub(2);
                let header = FullHeader { sequence, ack, ack_bits: input.u32(), skipped: input.u8() & 3 };
                let datagram = match kind {
                    3 => input.piece().to_vec(),
                    4 => fragment(&mut input, header),
                    7 => message_fragments(&mut input, header),
                    _ => {
                        let mut payload = begin_payload();
                        input.piece().iter().for_each(|byte| payload.bits((*byte).into(), 8));
                        native::datagram(&header, &payload.into_bytes())
                    }
                };
                if ours.handle_datagram(now, sequence, &datagram).is_err() {
                    break;
                }
            }
        }
    }
    ours.transmit(now, &mut out);
    ours.abandon_all();
    told += std::iter::from_fn(|| ours.poll_notification()).count();
    assert_eq!(told, asked, "each fate is told once");
}

/// Sends something; returns how many notifications will follow.
fn send(ours: &mut Connection, now: Instant, input: &mut Input<'_>) -> usize {
    let channel = input.below(CHANNELS as u32) as usize;
    let bytes = usize::from(input.u8());
    if channel == PAYLOAD {
        return usize::from(ours.send_payload(now, channel, number(1).encoded, 0).is_ok());
    }
    if channel == CHANNELS - 1 {
        let source = Box::new(BytesSource(Arc::new(vec![1; 1 + bytes * 40])));
        let _full = ours.send_chunk(now, source, [0; 32], "", false);
        return 0;
    }
    let options = SendOptions { key: bytes as u32 % KEYS as u32, tag: 0, notify: true };
    usize::from(ours.send(now, channel, blob(7, bytes), options).is_ok())
}

fn take(ours: &mut Connection) {
    for (channel, config) in protocol().channels().iter().enumerate().take(CHANNELS - 1) {
        let most = match config.kind {
            ChannelKind::Reliable { .. } => WINDOW,
            ChannelKind::Latest { .. } => KEYS,
            _ => QUEUE,
        };
        assert!(std::iter::from_fn(|| ours.poll_received(channel)).count() <= most);
    }
}

fn answer_offers(ours: &mut Connection) {
    while let Some(event) = ours.chunks_mut().poll_event() {
        match event {
            ChunkEvent::Offered(offer) if offer.size > LIMIT => {
                ours.chunks_mut().reject(offer.id, Rejection::TooLarge);
            }
            ChunkEvent::Offered(offer) => {
                let sink = Box::new(MemorySink::new(offer.size).unwrap());
                ours.chunks_mut().accept(offer.id, Assembly::new(&offer, sink));
            }
            _ => {}
        }
    }
    assert!(ours.chunks().incoming(Instant::ZERO).count() <= 8);
}

/// A packet of fragments of messages, of which most fit together.
fn message_fragments(input: &mut Input<'_>, header: FullHeader) -> Vec<u8> {
    let mut payload = begin_payload();
    // No other section, no entries.
    payload.bits(0, 5);
    for _ in 0..1 + input.below(3) {
        let (place, size) = (input.u8(), input.u8());
        let bits = 8193 + 2600 * u64::from(size % 4);
        payload.bool(true);
        payload.bits(u64::from(place % 2), 4);
        payload.bits(u64::from(input.u8()), 16);
        payload.bits(if size < 250 { 1 } else { 3 }, 2);
        payload.bits(bits, 14);
        payload.bits(u64::from(place >> 1 & 1), 1);
        let bytes = if place & 2 == 0 { 1024 } else { bits.div_ceil(8) - 1024 };
        payload.bytes(&vec![0; bytes as usize]);
    }
    payload.bool(false);
    native::datagram(&header, &payload.into_bytes())
}

fn fragment(input: &mut Input<'_>, header: FullHeader) -> Vec<u8> {
    let (id, last_id) = (input.u8(), input.u8());
    let full = id < last_id && input.below(4) > 0;
    let mut data = input.piece().to_vec();
    if full {
        data.resize(1024, 0);
    }
    native::fragment(&header, id, last_id, &data)
}
