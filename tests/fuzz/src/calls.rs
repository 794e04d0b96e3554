//! Two connections and a network that the fuzzer runs: it calls, delivers, loses, duplicates, reorders and alters. While
//! nothing was altered, what each channel promises is checked against what was sent.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::chunks::{Assembly, BytesSource, ChunkEvent, MemorySink, Rejection, Stored};
use tickwire::transport::{Connection, ConnectionConfig, OpaqueBody, Received, SendOptions};

use super::input::Input;
use super::native::{handle, labelled};
use super::world::{CHANNELS, KEYS, ORDERED, PAYLOAD, SEQUENCED, UNORDERED, blob, number, protocol};

const CHUNKS: usize = CHANNELS - 1;
const REDUNDANT: [usize; 2] = [4, 5];

struct End {
    connection: Connection,
    /// Packets on their way to it.
    under_way: Vec<Vec<u8>>,
    /// By channel: how many messages were accepted for sending, and the numbers received.
    sent: [u32; CHANNELS],
    received: [Vec<u32>; CHANNELS],
    /// Of messages that were sent: told or not.
    fates: HashMap<(u8, u32), u32>,
    chunks: Vec<Arc<Vec<u8>>>,
    chunks_received: usize,
}

impl End {
    fn new() -> Self {
        End {
            connection: Connection::new(&ConnectionConfig::default(), protocol()).unwrap(),
            under_way: Vec::new(),
            sent: [0; CHANNELS],
            received: Default::default(),
            fates: HashMap::new(),
            chunks: Vec::new(),
            chunks_received: 0,
        }
    }

    fn send(&mut self, now: Instant, channel: usize, bytes: usize) {
        let tag = self.sent[channel];
        let options = SendOptions { key: tag % KEYS as u32, tag, notify: true };
        let sent = match channel {
            PAYLOAD => self.connection.send_payload(now, channel, number(tag).encoded, tag),
            _ => self.connection.send(now, channel, blob(tag, bytes), options),
        };
        if sent.is_ok() {
            self.sent[channel] += 1;
            assert_eq!(self.fates.insert((channel as u8, tag), 0), None);
        }
    }

    fn send_chunk(&mut self, now: Instant, bytes: usize) {
        let content = Arc::new(vec![self.chunks.len() as u8; bytes]);
        let hash = Sha256::digest(&*content).into();
        let source = Box::new(BytesSource(content.clone()));
        if self.connection.send_chunk(now, source, hash, "", bytes.is_multiple_of(2)).is_ok() {
            self.chunks.push(content);
        }
    }

    fn told(&mut self) {
        while let Some(fate) = self.connection.poll_notification() {
            let times = self.fates.get_mut(&(fate.channel, fate.tag)).expect("of a message that was sent");
            *times += 1;
            assert_eq!(*times, 1, "told once: {fate:?}");
        }
    }
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (mut now, mut ends, mut out) = (Instant::ZERO, [End::new(), End::new()], Packets::new());
    let mut altered = false;
    while !input.is_empty() {
        let op = input.u8();
        let (us, them) = (usize::from(op >> 7), 1 - usize::from(op >> 7));
        match op & 15 {
            0..=2 => {
                let channel = input.below(CHANNELS as u32) as usize;
                match channel {
                    CHUNKS => ends[us].send_chunk(now, usize::from(input.u16())),
                    _ => {
                        ends[us].send(now, channel, usize::from(input.u8()) * usize::from(1 + (op >> 4 & 7)));
                    }
                }
            }
            3..=5 => {
                now += Duration::from_millis(u64::from(op >> 4 & 7) * 8);
                ends[us].connection.transmit(now, &mut out);
                assert!(out.iter().all(|(_, packet)| packet.len() <= 1200));
                ends[them].under_way.extend(out.iter().map(labelled));
                out.clear();
            }
            6..=9 => {
                if !ends[us].under_way.is_empty() {
                    let packet = ends[us].under_way.remove(0);
                    deliver(&mut ends[us], now, &packet, altered);
                }
            }
            10 => {
                let count = ends[us].under_way.len().max(1);
                let at = usize::from(input.u8()) % count;
                if at < ends[us].under_way.len() {
                    match op >> 4 & 3 {
                        0 => drop(ends[us].under_way.remove(at)),
                        1 => ends[us].under_way.swap(0, at),
                        2 => {
                            let twice = ends[us].under_way[at].clone();
                            ends[us].under_way.push(twice);
                        }
                        _ => ends[us].under_way.clear(),
                    }
                }
            }
            11 => {
                if let Some(packet) = ends[us].under_way.first_mut() {
                    let at = usize::from(input.u16()) % packet.len();
                    packet[at] ^= input.u8();
                    altered = true;
                }
            }
            12 => take(&mut ends, us, altered),
            13 => {
                ends[us].connection.chunks_mut().cancel(input.u8().into());
            }
            14 => now += Duration::from_millis(u64::from(input.u8()) * 10),
            _ => {
                now = ends[us]
                    .connection
                    .transmit_between(now, &mut out)
                    .max(now)
                    .min(now + Duration::from_millis(100));
                ends[them].under_way.extend(out.iter().map(labelled));
                out.clear();
            }
        }
        if !altered {
            ends.iter_mut().for_each(End::told);
        }
    }
    for end in &mut ends {
        end.connection.abandon_all();
        if !altered {
            end.told();
            assert!(end.fates.values().all(|times| *times == 1), "every fate is told in the end");
        }
    }
}

fn deliver(end: &mut End, now: Instant, packet: &[u8], altered: bool) {
    let taken = handle(&mut end.connection, now, packet);
    assert!(altered || taken.is_ok(), "honest peers break nothing: {taken:?}");
}

/// Takes all there is and checks it.
fn take(ends: &mut [End; 2], us: usize, altered: bool) {
    let [first, second] = ends;
    let (ours, theirs) = if us == 0 { (first, second) } else { (second, first) };
    for channel in 0..CHUNKS {
        while let Some(message) = ours.connection.poll_received(channel) {
            if !altered {
                let number = number_of(&message);
                assert!(number < theirs.sent[channel]);
                check(channel, number, &ours.received[channel]);
                ours.received[channel].push(number);
            }
        }
    }
    while let Some(event) = ours.connection.chunks_mut().poll_event() {
        match event {
            ChunkEvent::Offered(offer) if offer.size % 7 == 6 => {
                ours.connection.chunks_mut().reject(offer.id, Rejection::Cancelled);
            }
            ChunkEvent::Offered(offer) => {
                let sink = Box::new(MemorySink::new(offer.size.min(70_000)).unwrap());
                if offer.size <= 70_000 {
                    ours.connection.chunks_mut().accept(offer.id, Assembly::new(&offer, sink));
                } else {
                    ours.connection.chunks_mut().reject(offer.id, Rejection::TooLarge);
                }
            }
            ChunkEvent::Received { stored: Stored::Bytes(bytes), .. } if !altered => {
                let rest = &theirs.chunks[ours.chunks_received..];
                let next = rest.iter().position(|sent| **sent == bytes);
                ours.chunks_received += 1 + next.expect("a chunk that was sent, in order");
            }
            _ => {}
        }
    }
}

fn check(channel: usize, number: u32, before: &[u32]) {
    match channel {
        ORDERED => assert_eq!(number as usize, before.len(), "each once, in order"),
        UNORDERED | PAYLOAD | 2 => assert!(!before.contains(&number), "at most once"),
        SEQUENCED => assert!(before.last().is_none_or(|last| number > *last), "the newest wins"),
        _ if REDUNDANT.contains(&channel) => {
            assert!(before.last().is_none_or(|last| number > *last), "once, in order");
        }
        _ => {
            let key = |number: u32| number % KEYS as u32;
            let newest = before.iter().rev().find(|old| key(**old) == key(number));
            // The same one may come again, when its ack is lost.
            assert!(newest.is_none_or(|old| number >= *old), "of each key never an older one");
        }
    }
}

/// What every message here begins with.
fn number_of(message: &Received) -> u32 {
    let body = OpaqueBody::read(&message.body);
    let mut reader = body.reader();
    reader.bits(32).unwrap() as u32
}
