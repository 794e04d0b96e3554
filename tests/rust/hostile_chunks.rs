//! A peer with a good key that sends anything about chunks: it harms its own, and nothing else.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tickwire::rng::Rng;
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::chunks::{Assembly, BytesSource, ChunkEvent, ChunkFailure, MemorySink, Rejection};
use tickwire::transport::{ChannelConfig, ChannelKind, Connection, ConnectionConfig, Protocol, VERSION};
use tickwire::wire::{BitSink, BitWriter};

use crate::fuzz_targets::native::Peer;
use crate::pair::protocol_with;

const LIMIT: u64 = 20_000;

fn protocol() -> Arc<Protocol> {
    protocol_with(vec![ChannelConfig::unreliable(), ChannelConfig::new(ChannelKind::Chunks)])
}

/// An item, written as the standard has it.
enum Item<'a> {
    Slice { id: u16, index: u32, bytes: &'a [u8] },
    Offer { id: u16, size: u64, slice_bytes: u64, hash: [u8; 32] },
    Answer { id: u16, verdict: u64, runs: &'a [(u32, u32)] },
    Withdraw { id: u16 },
}

fn write(writer: &mut BitWriter, item: &Item<'_>) {
    let mut begin = |kind, id: u16| {
        writer.bits(kind, 2);
        writer.bits(id.into(), 16);
    };
    match item {
        Item::Slice { id, index, bytes } => {
            begin(0, *id);
            writer.bits((*index).into(), 32);
            writer.bits(bytes.len() as u64, 11);
            writer.bytes(bytes);
        }
        Item::Offer { id, size, slice_bytes, hash } => {
            begin(1, *id);
            writer.bits(*size, 40);
            writer.bits(*slice_bytes, 11);
            writer.bytes(hash);
            writer.string("label", 64);
        }
        Item::Answer { id, verdict, runs } => {
            begin(2, *id);
            writer.bits(*verdict, 3);
            if [0, 6].contains(verdict) {
                for (first, count) in *runs {
                    writer.bool(true);
                    writer.bits((*first).into(), 32);
                    writer.bits((*count).into(), 32);
                }
                writer.bool(false);
            }
        }
        Item::Withdraw { id } => begin(3, *id),
    }
}

/// The honest end and what the hostile one sends with.
struct Target {
    now: Instant,
    connection: Connection,
    peer: Peer,
    packets: Packets,
    events: Vec<ChunkEvent>,
}

impl Target {
    fn new() -> Self {
        Target {
            now: Instant::ZERO,
            connection: Connection::new(&ConnectionConfig::default(), protocol()).unwrap(),
            peer: Peer::default(),
            packets: Packets::new(),
            events: Vec::new(),
        }
    }

    fn say(&mut self, items: &[Item<'_>]) {
        let datagrams = self.datagrams(items);
        self.deliver(&datagrams);
    }

    fn deliver(&mut self, datagrams: &[(u64, Vec<u8>)]) {
        for (number, datagram) in datagrams {
            self.connection.handle_datagram(self.now, *number, datagram).unwrap();
        }
    }

    fn datagrams(&mut self, items: &[Item<'_>]) -> Vec<(u64, Vec<u8>)> {
        let mut writer = BitWriter::new();
        writer.bool(true);
        writer.bits(VERSION.into(), 8);
        writer.bits(protocol().hash(), 64);
        writer.bits(0, 4);
        writer.bits(0b11, 2); // An entry, of channel 1.
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                writer.bool(true);
            }
            write(&mut writer, item);
        }
        writer.bits(0, 2);
        self.peer.send(&writer.into_bytes())
    }

    /// A tick: takes offers up to the limit, and acks what the honest end sends.
    fn tick(&mut self, ack: bool) -> usize {
        self.now += Duration::from_millis(16);
        while let Some(event) = self.connection.chunks_mut().poll_event() {
            match event {
                ChunkEvent::Offered(offer) if offer.size > LIMIT => {
                    self.connection.chunks_mut().reject(offer.id, Rejection::TooLarge);
                }
                ChunkEvent::Offered(offer) => {
                    let sink = Box::new(MemorySink::new(offer.size).unwrap());
                    self.connection.chunks_mut().accept(offer.id, Assembly::new(&offer, sink));
                }
                event => self.events.push(event),
            }
        }
        self.connection.transmit(self.now, &mut self.packets);
        let mut sent = 0;
        for (number, packet) in self.packets.iter() {
            sent += packet.len();
            if ack {
                self.peer.accept(number);
            }
        }
        self.packets.clear();
        sent
    }
}

fn hash(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

#[test]
fn slices_that_fit_no_chunk_are_dropped_and_counted() {
    let mut target = Target::new();
    let content = [7; 1200];
    let offer = Item::Offer { id: 0, size: 1200, slice_bytes: 600, hash: hash(&content) };
    target.say(&[Item::Slice { id: 0, index: 0, bytes: &content[..600] }]);
    target.say(&[offer]);
    target.tick(true);
    target.say(&[Item::Slice { id: 0, index: 2, bytes: &content[..600] }]);
    target.say(&[Item::Slice { id: 0, index: u32::MAX, bytes: &content[..600] }]);
    target.say(&[Item::Slice { id: 0, index: 0, bytes: &content[..599] }]);
    target.say(&[Item::Slice { id: 9, index: 0, bytes: &content[..600] }]);
    target.say(&[Item::Slice { id: 0, index: 1, bytes: &content[..600] }]);
    // Other bytes for a slice that is there.
    target.say(&[Item::Slice { id: 0, index: 1, bytes: &[8; 600] }]);
    target.say(&[Item::Slice { id: 0, index: 0, bytes: &content[..600] }]);
    target.tick(true);
    target.tick(true);
    let counters = target.connection.chunks().counters;
    assert_eq!((counters.slices_unexpected, counters.slices_invalid), (2, 3));
    assert_eq!((counters.slice_duplicates, counters.slices_received), (1, 2));
    assert!(matches!(&target.events[..], [ChunkEvent::Received { .. }]), "{:?}", target.events);
}

#[test]
fn numbers_far_ahead_and_sizes_above_the_limit_take_no_memory() {
    let mut target = Target::new();
    let offer = |id, size| Item::Offer { id, size, slice_bytes: 512, hash: [0; 32] };
    target.say(&[offer(4, 10), offer(30_000, 10), offer(65_531, 10)]);
    assert_eq!(target.connection.chunks().counters.offers_invalid, 3);
    assert_eq!(target.connection.chunks().incoming(target.now).count(), 0);
    target.say(&[offer(0, (1 << 40) - 1), offer(1, LIMIT)]);
    target.tick(true);
    target.tick(true);
    assert!(matches!(
        &target.events[..],
        [ChunkEvent::NotReceived { failure: ChunkFailure::Rejected(Rejection::TooLarge), .. }]
    ));
    let open: Vec<u16> = target.connection.chunks().incoming(target.now).map(|(offer, _)| offer.id).collect();
    assert_eq!(open, [1]);
    // Withdrawn before it was ever offered.
    target.say(&[Item::Withdraw { id: 2 }, Item::Withdraw { id: 2 }, Item::Withdraw { id: 1 }]);
    target.tick(true);
    assert_eq!(target.connection.chunks().incoming(target.now).count(), 0);
}

/// One that was over before it had its turn was forgotten with the offer four on, and all others waited for it.
#[test]
fn a_withdrawal_and_the_offer_four_on_in_one_packet_hold_up_nothing() {
    let mut target = Target::new();
    let content = [7; 600];
    let offer = |id| Item::Offer { id, size: 600, slice_bytes: 600, hash: hash(&content) };
    target.say(&[offer(0)]);
    target.tick(true);
    target.say(&[Item::Withdraw { id: 0 }, offer(4)]);
    target.say(&[Item::Withdraw { id: 1 }, Item::Withdraw { id: 2 }, Item::Withdraw { id: 3 }]);
    target.tick(true);
    target.say(&[Item::Slice { id: 4, index: 0, bytes: &content }]);
    target.tick(true);
    target.tick(true);
    assert!(
        matches!(&target.events[..], [ChunkEvent::NotReceived { .. }, ChunkEvent::Received { .. }]),
        "{:?}",
        target.events
    );
}

#[test]
fn answers_for_what_was_not_offered_change_nothing() {
    let mut target = Target::new();
    let content = Arc::new(vec![1; 50_000]);
    let source = Box::new(BytesSource(content.clone()));
    target.connection.send_chunk(target.now, source, hash(&content), "", false).unwrap();
    target.tick(true);
    let runs: [&[(u32, u32)]; 5] =
        [&[(0, 45)], &[(44, 1)], &[(5, 1), (3, 1)], &[(u32::MAX, u32::MAX)], &[(0, 1), (0, 1)]];
    for runs in runs {
        target.say(&[Item::Answer { id: 0, verdict: 0, runs }]);
    }
    target.say(&[Item::Answer { id: 7, verdict: 7, runs: &[] }]);
    assert_eq!(target.connection.chunks().counters.answers_invalid, 6);
    assert!(target.connection.chunks().progress(target.now, 0).is_some());
    target.say(&[Item::Answer { id: 0, verdict: 0, runs: &[(0, 43)] }]);
    target.say(&[Item::Answer { id: 0, verdict: 7, runs: &[] }]);
    target.tick(true);
    assert!(matches!(target.events[..], [ChunkEvent::Sent { number: 0 }]), "{:?}", target.events);
}

#[test]
fn a_peer_that_never_acks_is_sent_no_more_than_the_beginning() {
    let mut target = Target::new();
    let content = Arc::new(vec![1; 5_000_000]);
    let source = Box::new(BytesSource(content.clone()));
    target.connection.send_chunk(target.now, source, hash(&content), "", false).unwrap();
    target.say(&[Item::Answer { id: 0, verdict: 0, runs: &[] }]);
    let sent: usize = (0..60 * 60).map(|_| target.tick(false)).sum();
    assert!(sent < 1_500_000, "{sent} bytes in a minute");
}

#[test]
fn a_pause_that_was_overtaken_by_its_end_is_over() {
    let mut target = Target::new();
    let content = Arc::new(vec![1; 400_000]);
    let source = Box::new(BytesSource(content.clone()));
    target.connection.send_chunk(target.now, source, hash(&content), "", false).unwrap();
    target.tick(true);
    let [pause, end] = [6, 0].map(|verdict| target.datagrams(&[Item::Answer { id: 0, verdict, runs: &[] }]));
    target.deliver(&end);
    target.deliver(&pause);
    assert!(!target.connection.chunks().progress(target.now, 0).unwrap().paused_by_peer);
    target.say(&[Item::Answer { id: 0, verdict: 6, runs: &[] }]);
    assert!(target.connection.chunks().progress(target.now, 0).unwrap().paused_by_peer);
}

/// A receiver that pauses for ever has the sender hold what it holds of one that doesn't answer; one that changes its mind
/// all the time gets what it acks.
#[test]
fn a_peer_that_pauses_costs_nothing_and_one_that_never_stops_pausing_no_more() {
    let mut target = Target::new();
    let content = Arc::new(vec![1; 400_000]);
    let source = Box::new(BytesSource(content.clone()));
    target.connection.send_chunk(target.now, source, hash(&content), "", false).unwrap();
    target.tick(true);
    target.say(&[Item::Answer { id: 0, verdict: 6, runs: &[] }]);
    (0..100).for_each(|_| _ = target.tick(true));
    let before = target.connection.chunks().counters;
    let sent: usize = (0..60 * 60).map(|_| target.tick(true)).sum();
    assert_eq!(target.connection.chunks().counters, before);
    assert!(sent < 60 * 1000, "{sent} bytes in a minute: keep-alives");
    for turn in 0..4000 {
        target.say(&[6, 0, 6, 0].map(|verdict| Item::Answer { id: 0, verdict, runs: &[] }));
        target.say(&[Item::Answer { id: 0, verdict: [6, 0][turn % 2], runs: &[(0, 400)] }]);
        target.tick(true);
    }
    let counters = target.connection.chunks().counters;
    assert_eq!(counters.answers_invalid, 4000, "runs of slices that it doesn't have");
    assert!(counters.bytes_sent < 1_200_000, "{counters:?}");
    assert!(target.events.is_empty(), "it is not complete before the peer says so");
    assert!(target.connection.chunks_mut().cancel(0));
}

/// Items that are well formed and mean anything.
#[test]
fn random_items_break_nothing() {
    for seed in 0..60 {
        let mut rng = Rng::seeded(seed);
        let mut target = Target::new();
        let mut next = 0u16;
        for _ in 0..400 {
            let bytes = vec![seed as u8; rng.below(1201) as usize];
            let runs: Vec<(u32, u32)> =
                (0..rng.below(4)).map(|_| (rng.below(60) as u32, rng.below(60) as u32)).collect();
            let items: Vec<Item<'_>> = (0..1 + rng.below(5))
                .map(|_| {
                    let id = next.wrapping_add(rng.below(10) as u16).wrapping_sub(5);
                    match rng.below(6) {
                        0 | 1 => Item::Slice { id, index: rng.below(40) as u32, bytes: &bytes },
                        2 | 3 => {
                            let (size, slice_bytes) = (rng.below(2 * LIMIT), 512 + rng.below(689));
                            next = if rng.chance(0.5) { id } else { next };
                            Item::Offer { id, size, slice_bytes, hash: [0; 32] }
                        }
                        4 => Item::Answer { id, verdict: rng.below(8), runs: &runs },
                        _ => Item::Withdraw { id },
                    }
                })
                .collect();
            target.say(&items);
            if rng.chance(0.1) {
                let content = Arc::new(vec![2; rng.below(100_000) as usize]);
                let source = Box::new(BytesSource(content.clone()));
                // Full now and then: nothing is queued then.
                let _full = target.connection.send_chunk(target.now, source, hash(&content), "", false);
            }
            if rng.chance(0.5) {
                target.tick(rng.chance(0.8));
            }
            assert!(target.connection.chunks().incoming(target.now).count() <= 8);
        }
        let received = target.events.iter().filter(|event| matches!(event, ChunkEvent::Received { .. }));
        assert_eq!(received.count(), 0, "no content has the hash of zeros");
    }
}
