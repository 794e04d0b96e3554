//! Attackers with a slot: they have a good token, keep the connection up, and send anything in it.

use crate::fuzz_targets::native::{Peer, ackless, datagram, fragment};
use core::net::SocketAddr;
use std::sync::Arc;

use tickwire::netcode::{self, ClientState};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::transport::SendOptions;
use tickwire::transport::acks::FullHeader;
use tickwire::transport::chunks::BytesSource;
use tickwire::wire::{BitSink, BitWriter};

use super::arena::{Arena, Figures, server_address, token};
use crate::fuzz_targets::world::{CHANNELS, KEYS, ORDERED, PROTOCOL_ID, UNORDERED, begin_payload, blob};

pub(super) const CHUNKS: usize = CHANNELS - 1;

/// A client of netcode alone, which puts an attack's bytes into its payloads.
pub(super) struct Member {
    address: SocketAddr,
    client: netcode::Client,
    peer: Peer,
    /// Whether it acks what it receives.
    acks: bool,
}

impl Member {
    /// Joins a running arena.
    pub(super) fn join(arena: &mut Arena) -> Self {
        let config = netcode::ClientConfig::new(PROTOCOL_ID);
        let client = netcode::Client::new(config, token(66, arena.now), arena.now).unwrap();
        let mut member = Member {
            address: SocketAddr::from(([10, 66, 0, 1], 6666)),
            client,
            peer: Peer::default(),
            acks: true,
        };
        while member.client.state() != ClientState::Connected {
            member.tick(arena);
        }
        member
    }

    pub(super) fn tick(&mut self, arena: &mut Arena) {
        let mut out = Datagrams::new();
        self.client.update(arena.now, &mut out);
        let mut answers = self.transmit(arena, &out);
        answers.extend(arena.tick().into_iter().map(|(_, bytes)| bytes));
        out.clear();
        for mut answer in answers {
            if let Some((number, _)) =
                self.client.handle_datagram(arena.now, server_address(), &mut answer, &mut out)
                && self.acks
            {
                self.peer.accept(number);
            }
        }
        self.transmit(arena, &out);
    }

    fn transmit(&self, arena: &mut Arena, out: &Datagrams) -> Vec<Vec<u8>> {
        out.iter().flat_map(|(_, bytes)| arena.attack(self.address, bytes)).collect()
    }

    /// Sends a packet with these entries.
    pub(super) fn say(&mut self, arena: &mut Arena, entries: impl FnOnce(&mut BitWriter)) {
        let mut writer = begin_payload();
        writer.bits(0, 4); // No close, ack delay, ranges, credit.
        entries(&mut writer);
        writer.bool(false);
        let payload = writer.into_bytes();
        self.peer.next = self.peer.next.max(self.client.next_number());
        for (number, datagram) in self.peer.send(&payload) {
            self.raw(arena, number, &datagram);
        }
    }

    /// Sends these bytes for a packet of the transport, under this number or the next one.
    fn raw(&mut self, arena: &mut Arena, number: u64, payload: &[u8]) {
        let mut out = Datagrams::new();
        let write = |out: &mut Vec<u8>| out.extend_from_slice(payload);
        self.client.send_numbered(arena.now, number, write, &mut out).expect("still connected");
        self.transmit(arena, &out);
    }

    pub(super) fn is_connected(&self, arena: &Arena) -> bool {
        arena.server.find(66).is_some() && self.client.state() == ClientState::Connected
    }
}

pub(super) fn channel(writer: &mut BitWriter, channel: usize) {
    writer.bool(true);
    writer.bits(channel as u64, 4);
}

/// A message of this many bytes of a channel without numbers.
pub(super) fn message(writer: &mut BitWriter, bytes: u64) {
    writer.bits(1, 2);
    writer.bits(bytes * 8, 20);
    (0..bytes).for_each(|_| writer.bits(0xAA, 8));
}

/// The largest messages up to the window, but never the first, which all others wait for.
pub(super) fn reliable_window_bomb() -> Figures {
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    for id in 1..64 {
        for number in [ORDERED, UNORDERED] {
            member.say(&mut arena, |writer| {
                channel(writer, number);
                writer.bits(id, 16);
                message(writer, 1990);
                writer.bool(false);
            });
        }
        member.tick(&mut arena);
    }
    assert!(member.is_connected(&arena), "all of it is within what the protocol allows");
    arena.finish()
}

/// One message more than the receive window has room for.
pub(super) fn reliable_window_exceeded() -> Figures {
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    member.say(&mut arena, |writer| {
        channel(writer, ORDERED);
        writer.bits(20_000, 16);
        message(writer, 1);
        writer.bool(false);
    });
    arena.dial();
    (0..30).for_each(|_| member.tick(&mut arena));
    assert!(!member.is_connected(&arena), "it is shown the door");
    arena.finish()
}

/// Messages on every channel that keeps a queue, as large and many as they come, while the application doesn't look.
pub(super) fn queue_flood() -> Figures {
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    arena.reads = false;
    let mut id = 0u64;
    for _ in 0..120 {
        for number in [2, 3, 4, 5, 7] {
            member.say(&mut arena, |writer| {
                channel(writer, number);
                for n in 0..10 {
                    match (number, n) {
                        (4 | 5, 0) => writer.bits(id & 0xFFFF, 16),
                        (4 | 5, _) => writer.int_relative(0, 1),
                        _ => {}
                    }
                    if number == 7 {
                        writer.bits(1990 * 8, 14);
                        (0..1990).for_each(|_| writer.bits(0xAA, 8));
                    } else {
                        message(writer, 1990);
                    }
                    writer.bool(n < 9);
                }
            });
        }
        id += 10;
        member.tick(&mut arena);
    }
    assert!(member.is_connected(&arena));
    arena.finish()
}

/// Every key of a latest channel, with the largest value, over and over.
pub(super) fn every_key() -> Figures {
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    arena.reads = false;
    for tick in 0..120 {
        for n in 0..20 {
            member.say(&mut arena, |writer| {
                channel(writer, 6);
                writer.bits((tick * 20 + n) % KEYS as u64, 9);
                message(writer, 1990);
                writer.bool(false);
            });
        }
        member.tick(&mut arena);
    }
    assert!(member.is_connected(&arena));
    arena.finish()
}

/// The most messages that a packet may have, each of no bits but its type.
pub(super) fn sixteen_thousand_messages_a_packet() -> Figures {
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    for _ in 0..30 {
        member.say(&mut arena, |writer| {
            channel(writer, 2);
            for n in 0..16_384 {
                writer.bits(2, 2);
                writer.bool(n < 16_383);
            }
        });
        member.tick(&mut arena);
    }
    assert!(member.is_connected(&arena));
    arena.finish()
}

/// Offers of chunks of a terabyte and of the limit, and no slice ever.
pub(super) fn chunk_offers() -> Figures {
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    for tick in 0..300u64 {
        member.say(&mut arena, |writer| {
            channel(writer, CHUNKS);
            for n in 0..4 {
                writer.bits(1, 2);
                writer.bits((tick / 8 + n) & 0xFFFF, 16);
                writer.bits(if n % 2 == 0 { 49_000 } else { (1 << 40) - 1 }, 40);
                writer.bits(1200, 11);
                writer.bytes(&[0; 32]);
                writer.string("world", 64);
                writer.bool(n < 3);
            }
        });
        member.tick(&mut arena);
    }
    assert!(member.is_connected(&arena));
    arena.finish()
}

/// Chunks that are offered and withdrawn, four at a time, while the application doesn't look at chunks.
pub(super) fn chunk_offers_withdrawn() -> Figures {
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    for round in 0..4_000u64 {
        member.say(&mut arena, |writer| {
            channel(writer, CHUNKS);
            for n in 0..4 {
                writer.bits(1, 2);
                writer.bits((4 * round + n) & 0xFFFF, 16);
                writer.bits(1_000, 40);
                writer.bits(1200, 11);
                writer.bytes(&[0; 32]);
                writer.string("world", 64);
                writer.bool(true);
            }
            for n in 0..4 {
                writer.bits(3, 2);
                writer.bits((4 * round + n) & 0xFFFF, 16);
                writer.bool(n < 3);
            }
        });
        // An answer for each, and some more time for ended ones to be forgotten.
        member.tick(&mut arena);
    }
    assert!(member.is_connected(&arena));
    arena.finish()
}

/// First parts of the largest packets, and never the last.
pub(super) fn fragment_bomb() -> Figures {
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    let data = [7; 1024];
    for packet in 0..20u64 {
        for id in 0..255 {
            let number = 1000 + 256 * packet + u64::from(id);
            member.raw(&mut arena, number, &fragment(&ackless(number), id, 255, &data));
        }
        member.tick(&mut arena);
    }
    assert!(member.is_connected(&arena));
    arena.finish()
}

/// Packet numbers that jump by some, and by as many as there are.
pub(super) fn sequence_jumps() -> Figures {
    let (mut arena, mut rng) = (Arena::new(), Rng::seeded(8));
    let mut member = Member::join(&mut arena);
    for _ in 0..600 {
        for n in 0..10 {
            let number = member.client.next_number() + [rng.below(300), rng.next_u64() >> 14][n % 2];
            let mut payload = begin_payload();
            payload.bits(0, 5);
            member.raw(&mut arena, number, &datagram(&ackless(number), &payload.into_bytes()));
        }
        member.tick(&mut arena);
    }
    assert!(member.is_connected(&arena));
    arena.finish()
}

/// Acks of all that may have been sent, whether it arrived or not, so that the server sends a chunk faster than any link
/// between them could take it. Sooner or later that is a packet that was not sent.
pub(super) fn optimistic_acks() -> Figures {
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    member.acks = false;
    let content = Arc::new(vec![1; 2_000_000]);
    let client = arena.server.find(66).unwrap();
    let source = Box::new(BytesSource(content));
    arena.server.connection_mut(client).unwrap().send_chunk(arena.now, source, [0; 32], "", false).unwrap();
    for tick in 0..1200u32 {
        if !member.is_connected(&arena) {
            break;
        }
        let (sequence, ack) = (member.client.next_number(), u64::from(tick * 7));
        let header = FullHeader { sequence, ack, ack_bits: u32::MAX, skipped: 0 };
        let mut payload = begin_payload();
        payload.bits(0, 4);
        channel(&mut payload, CHUNKS);
        payload.bits(2, 2);
        payload.bits(0, 16);
        payload.bits(0, 3);
        payload.bits(0, 3); // No runs, no further item, no further entry.
        member.raw(&mut arena, sequence, &datagram(&header, &payload.into_bytes()));
        member.tick(&mut arena);
    }
    assert!(!member.is_connected(&arena), "it is shown the door");
    assert!(arena.figures.bytes_out < 800_000, "{}", arena.figures.bytes_out);
    arena.finish()
}

/// Nothing is acked: what the application sends waits, then it is told that there is no room, and in the end the member is
/// dropped for it.
pub(super) fn never_acks() -> Figures {
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    member.acks = false;
    let client = arena.server.find(66).unwrap();
    let mut full = 0;
    for tick in 0..600 {
        for channel in [ORDERED, UNORDERED, 6] {
            for n in 0..10 {
                let options = SendOptions { key: (tick * 10 + n) % KEYS as u32, ..Default::default() };
                let message = blob(n, 1000);
                full += u32::from(arena.server_send(client, channel, message, options).is_err());
            }
        }
        member.say(&mut arena, |_| ());
        member.tick(&mut arena);
    }
    assert!(full > 0 && !member.is_connected(&arena));
    assert_eq!(arena.server.connection_counters().stalled, 1);
    arena.finish()
}
