//! Chunks over bad networks, in virtual time: everything arrives whole, in order, or ends with a reason.

use std::collections::VecDeque;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tickwire::limits::{DEFAULT_MTU, MIN_MTU, PAYLOAD_OVERHEAD};
use tickwire::netsim::Conditions;
use tickwire::rng::{Entropy, Rng};
use tickwire::time::Duration;
use tickwire::transport::chunks::{
    Assembly, BytesSource, ChunkEvent, ChunkFailure, MemorySink, Offer, Progress, Rejection, Sink, Source,
    StorageError, Stored,
};
use tickwire::transport::{
    ChannelConfig, ChannelKind, CongestionConfig, ConnectionConfig, Protocol, SendOptions,
};

use crate::pair::{Pair, RELIABLE, UNRELIABLE, blob, number, protocol_with};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn protocol() -> Arc<Protocol> {
    protocol_with(vec![
        ChannelConfig::reliable_ordered(),
        ChannelConfig::unreliable(),
        ChannelConfig::new(ChannelKind::Chunks),
    ])
}

fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    Rng::seeded(seed).fill(&mut content);
    content
}

fn hash(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

fn send(pair: &mut Pair, end: usize, content: &[u8], label: &str) -> u64 {
    let source = Box::new(BytesSource(Arc::new(content.to_vec())));
    pair.ends[end].send_chunk(pair.now, source, hash(content), label, false).unwrap()
}

/// What happened at one end, offers accepted into memory as they come.
#[derive(Default)]
struct Seen {
    received: Vec<(Box<str>, Vec<u8>)>,
    not_received: Vec<ChunkFailure>,
    sent: Vec<u64>,
    not_sent: Vec<(u64, ChunkFailure)>,
    offered: VecDeque<Offer>,
}

impl Seen {
    /// Takes the events of an end; `accept` says whether offers are taken at once.
    fn look(&mut self, pair: &mut Pair, end: usize, accept: bool) {
        while let Some(event) = pair.ends[end].chunks_mut().poll_event() {
            match event {
                ChunkEvent::Offered(offer) if accept => accept_offer(pair, end, &offer),
                ChunkEvent::Offered(offer) => self.offered.push_back(offer),
                ChunkEvent::Received { offer, stored: Stored::Bytes(bytes) } => {
                    self.received.push((offer.label, bytes));
                }
                ChunkEvent::Received { stored, .. } => panic!("{stored:?}"),
                ChunkEvent::NotReceived { failure, .. } => self.not_received.push(failure),
                ChunkEvent::Sent { number } => self.sent.push(number),
                ChunkEvent::NotSent { number, failure } => self.not_sent.push((number, failure)),
            }
        }
    }
}

fn accept_offer(pair: &mut Pair, end: usize, offer: &Offer) {
    let assembly = Assembly::new(offer, Box::new(MemorySink::new(offer.size).unwrap()));
    assert!(pair.ends[end].chunks_mut().accept(offer.id, assembly));
}

/// Ticks until `done`, taking events of both ends.
fn run(
    pair: &mut Pair,
    seen: &mut [Seen; 2],
    most_ticks: usize,
    mut done: impl FnMut(&Pair, &[Seen; 2]) -> bool,
) {
    for _ in 0..most_ticks {
        pair.tick();
        for (end, seen) in seen.iter_mut().enumerate() {
            seen.look(pair, end, true);
        }
        if done(pair, seen) {
            return;
        }
    }
    let progress: Vec<_> = (0..10).map(|n| pair.ends[0].chunks().progress(pair.now, n)).collect();
    let incoming: Vec<_> = pair.ends[1].chunks().incoming(pair.now).collect();
    panic!(
        "not done after {most_ticks} ticks: {progress:?} {incoming:?} {:?} {:?} {:?} {:?}",
        seen[0].sent,
        seen[0].not_sent,
        pair.ends[0].chunks().counters,
        pair.ends[1].chunks().counters
    );
}

fn all_sent(chunks: usize) -> impl FnMut(&Pair, &[Seen; 2]) -> bool {
    move |_, seen| seen[0].sent.len() + seen[1].sent.len() == chunks
}

#[test]
fn chunks_of_every_size_arrive_whole_and_in_order_both_ways() {
    let conditions = Conditions::perfect().latency(ms(40), ms(10)).loss(0.05).duplicate(0.02);
    let mut pair = Pair::new(protocol(), conditions, 1);
    let mut seen = <[Seen; 2]>::default();
    let sizes = [0, 1, 1151, 1152, 1153, 2304, 100_000, 0, 700_000, 3];
    for (n, size) in sizes.into_iter().enumerate() {
        for end in 0..2 {
            send(&mut pair, end, &content(n as u64, size), &format!("{n}"));
        }
    }
    run(&mut pair, &mut seen, 2000, all_sent(20));
    for seen in &mut seen {
        seen.sent.sort();
        assert_eq!(seen.sent, (0..10).collect::<Vec<_>>());
        for (n, (label, bytes)) in seen.received.iter().enumerate() {
            assert_eq!(**label, *format!("{n}"));
            assert!(*bytes == content(n as u64, sizes[n]), "chunk {n}");
        }
        assert_eq!(seen.received.len(), 10);
    }
}

#[test]
fn game_traffic_goes_first() {
    let config = ConnectionConfig { congestion: limited(100_000.0), ..ConnectionConfig::default() };
    let conditions = Conditions::perfect().latency(ms(20), ms(0));
    let mut pair = Pair::with_config(&config, protocol(), conditions, 1);
    let mut seen = <[Seen; 2]>::default();
    send(&mut pair, 0, &content(1, 300_000), "world");
    let mut expected = 0;
    for n in 0..500 {
        pair.send(0, RELIABLE, number(n)).unwrap();
        pair.tick();
        seen[1].look(&mut pair, 1, true);
        for got in pair.take(1, RELIABLE) {
            assert_eq!(got, expected);
            expected += 1;
        }
        assert!(n < 5 || n - expected <= 2, "tick {n}: {expected} came");
    }
    assert_eq!(seen[1].received.len(), 1, "and what is left is enough for the chunk");
}

#[test]
fn an_offer_may_be_answered_late_or_refused() {
    let conditions = Conditions::perfect().latency(ms(20), ms(0));
    let mut pair = Pair::new(protocol(), conditions, 1);
    let mut seen = <[Seen; 2]>::default();
    let first = send(&mut pair, 0, &content(1, 1_000_000), "late");
    let second = send(&mut pair, 0, &content(2, 5000), "refused");
    for _ in 0..120 {
        pair.tick();
        seen[1].look(&mut pair, 1, false);
    }
    assert_eq!(seen[1].offered.len(), 2);
    let progress = pair.ends[1].chunks().incoming(pair.now).next().unwrap().1;
    assert_eq!(progress.bytes, 0, "nothing is kept before it is accepted");
    let sent = pair.ends[0].chunks().counters.bytes_sent;
    assert!(sent < 300_000, "{sent}: nor is everything sent");
    assert!(pair.ends[1].chunks_mut().reject(seen[1].offered[1].id, Rejection::TooLarge));
    assert!(!pair.ends[1].chunks_mut().reject(seen[1].offered[1].id, Rejection::TooLarge));
    let offer = seen[1].offered[0].clone();
    accept_offer(&mut pair, 1, &offer);
    run(&mut pair, &mut seen, 600, |_, seen| seen[0].sent == [first]);
    assert_eq!(seen[0].not_sent, [(second, ChunkFailure::Rejected(Rejection::TooLarge))]);
    assert!(seen[1].received[0].1 == content(1, 1_000_000));
}

#[test]
fn either_side_may_cancel_and_the_next_chunk_goes_on() {
    for (seed, by_receiver) in [(1, false), (2, true)] {
        let conditions = Conditions::perfect().latency(ms(40), ms(5)).loss(0.1);
        let mut pair = Pair::new(protocol(), conditions, seed);
        let mut seen = <[Seen; 2]>::default();
        let first = send(&mut pair, 0, &content(1, 10_000_000), "first");
        let queued: Vec<u64> = (2..10).map(|n| send(&mut pair, 0, &content(n, 1000), "next")).collect();
        run(&mut pair, &mut seen, 100, |pair, _| {
            pair.ends[0].chunks().progress(pair.now, first).is_some_and(|progress| progress.bytes > 100_000)
        });
        if by_receiver {
            let id = pair.ends[1].chunks().incoming(pair.now).next().unwrap().0.id;
            assert!(pair.ends[1].chunks_mut().reject(id, Rejection::Cancelled));
        } else {
            assert!(pair.ends[0].chunks_mut().cancel(first) && !pair.ends[0].chunks_mut().cancel(first));
            // A chunk that was never offered ends silently.
            assert!(pair.ends[0].chunks_mut().cancel(queued[7]));
        }
        let left = if by_receiver { 8 } else { 7 };
        run(&mut pair, &mut seen, 500, |_, seen| seen[0].sent.len() == left);
        let (failure, other) = if by_receiver {
            (ChunkFailure::Rejected(Rejection::Cancelled), ChunkFailure::Cancelled)
        } else {
            (ChunkFailure::Cancelled, ChunkFailure::Withdrawn)
        };
        assert_eq!(seen[0].not_sent[0], (first, failure));
        assert_eq!(seen[1].not_received, [other]);
        assert_eq!(seen[1].received.len(), left);
    }
}

#[test]
fn what_is_there_is_not_sent_again_after_a_reconnect() {
    let conditions = Conditions::perfect().latency(ms(20), ms(0)).loss(0.02);
    let whole = content(1, 3_000_000);
    let mut seen = <[Seen; 2]>::default();
    let mut pair = Pair::new(protocol(), conditions, 1);
    send(&mut pair, 0, &whole, "world");
    run(&mut pair, &mut seen, 1000, |pair, _| {
        pair.ends[1]
            .chunks()
            .incoming(pair.now)
            .next()
            .is_some_and(|(_, progress)| progress.bytes > 2_000_000)
    });
    let mut partial = pair.ends[1].chunks_mut().finish();
    pair.ends[0].chunks_mut().finish();
    (0..2).for_each(|end| seen[end].look(&mut pair, end, true));
    assert_eq!(seen[0].not_sent[0].1, ChunkFailure::Disconnected);
    assert_eq!(seen[1].not_received, [ChunkFailure::Disconnected]);

    let mut pair = Pair::new(protocol(), conditions, 2);
    send(&mut pair, 0, &whole, "world");
    for _ in 0..600 {
        pair.tick();
        seen[0].look(&mut pair, 0, true);
        seen[1].look(&mut pair, 1, false);
        if let Some(offer) = seen[1].offered.pop_front() {
            let assembly = partial.pop().unwrap();
            assert!(assembly.is_of(&offer) && assembly.bytes() > 2_000_000);
            assert!(pair.ends[1].chunks_mut().accept(offer.id, assembly));
        }
    }
    assert!(seen[1].received[0].1 == whole);
    let sent = pair.ends[0].chunks().counters.bytes_sent;
    assert!(sent < 1_400_000, "{sent}");
}

/// A file that changes, or vanishes, while it is sent.
#[derive(Debug)]
struct Treacherous {
    fails: bool,
}

impl Source for Treacherous {
    fn size(&self) -> u64 {
        400_000
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), StorageError> {
        out.fill(u8::from(offset > 200_000));
        if self.fails && offset > 200_000 { Err(StorageError("it is gone".into())) } else { Ok(()) }
    }
}

/// A disk that is full.
#[derive(Debug)]
struct Full;

impl Sink for Full {
    fn write_at(&mut self, _: u64, _: &[u8]) -> Result<(), StorageError> {
        Err(StorageError("the disk is full".into()))
    }

    fn read_at(&mut self, _: u64, _: &mut [u8]) -> Result<(), StorageError> {
        unreachable!("nothing was stored")
    }

    fn finish(self: Box<Self>) -> Result<Stored, StorageError> {
        unreachable!("nothing was stored")
    }
}

#[test]
fn what_fails_on_one_side_is_named_on_both_and_the_next_chunk_goes_on() {
    let conditions = Conditions::perfect().latency(ms(20), ms(0)).loss(0.02);
    let mut pair = Pair::new(protocol(), conditions, 1);
    let mut seen = <[Seen; 2]>::default();
    for fails in [false, true] {
        let source = Box::new(Treacherous { fails });
        pair.ends[0].send_chunk(pair.now, source, hash(&[0; 400_000]), "file", false).unwrap();
    }
    send(&mut pair, 0, &content(3, 1000), "full disk");
    send(&mut pair, 0, &content(4, 1000), "good");
    for _ in 0..400 {
        pair.tick();
        seen[0].look(&mut pair, 0, true);
        seen[1].look(&mut pair, 1, false);
        while let Some(offer) = seen[1].offered.pop_front() {
            if &*offer.label == "full disk" {
                assert!(pair.ends[1].chunks_mut().accept(offer.id, Assembly::new(&offer, Box::new(Full))));
            } else {
                accept_offer(&mut pair, 1, &offer);
            }
        }
    }
    let named = |text: &str| ChunkFailure::Storage(StorageError(text.into()));
    let mut not_sent = seen[0].not_sent.clone();
    not_sent.sort_by_key(|(number, _)| *number);
    assert_eq!(
        not_sent,
        [
            (0, ChunkFailure::Rejected(Rejection::Damaged)),
            (1, named("it is gone")),
            (2, ChunkFailure::Rejected(Rejection::Storage)),
        ]
    );
    assert_eq!(seen[1].not_received.len(), 3);
    assert!(seen[1].not_received.contains(&named("the disk is full")));
    assert_eq!(seen[0].sent, [3]);
}

/// Random sizes over random bad networks: none hangs.
#[test]
fn a_thousand_terrible_networks() {
    for seed in 0..1000 {
        let mut rng = Rng::seeded(seed);
        let conditions = Conditions::perfect()
            .latency(ms(5 + rng.below(150)), ms(rng.below(5)))
            .loss(0.01 + 0.49 * rng.below(1000) as f64 / 1000.0)
            .duplicate(0.1)
            .reorder(0.1, ms(rng.below(60)));
        let mut pair = Pair::new(protocol(), conditions, seed);
        let mut seen = <[Seen; 2]>::default();
        let chunks = 1 + rng.below(6);
        let contents: Vec<Vec<u8>> = (0..chunks)
            .map(|n| {
                // Mostly small, a few of them large.
                let bits = if seed % 100 == 0 { 22 } else { 15 };
                let most = 1 << (1 + rng.below(bits));
                content(seed ^ n << 32, rng.below(most) as usize)
            })
            .collect();
        for content in &contents {
            send(&mut pair, 0, content, "chunk");
        }
        run(&mut pair, &mut seen, 20_000, |_, seen| seen[0].sent.len() as u64 == chunks);
        assert!(seen[1].received.iter().map(|(_, bytes)| bytes).eq(&contents), "seed {seed}");
    }
}

/// A path that silently loses packets above its MTU: with `mtu` set, none is larger, in either direction.
#[test]
fn all_arrives_over_a_path_with_a_small_mtu_that_says_nothing() {
    for mtu in [MIN_MTU, 1200, DEFAULT_MTU] {
        // The links see payloads of netcode, without its bytes and the headers.
        let payload = mtu - PAYLOAD_OVERHEAD;
        let conditions = Conditions::perfect().latency(ms(20), ms(5)).loss(0.02).max_datagram(payload as u64);
        let packets = ConnectionConfig::default().packets.with_mtu(mtu).unwrap();
        let config = ConnectionConfig { packets, ..ConnectionConfig::default() };
        let mut pair = Pair::with_config(&config, protocol(), conditions, 7);
        let contents = [content(1, 300_000), content(2, 70_000)];
        let mut seen = [Seen::default(), Seen::default()];
        for (end, content) in contents.iter().enumerate() {
            send(&mut pair, end, content, "world");
            // A message above any packet, and many that fill some.
            pair.send(end, RELIABLE, blob(0, 60_000)).unwrap();
            (1..200).for_each(|n| pair.send(end, RELIABLE, blob(n, 70)).unwrap());
        }
        let mut taken = [Vec::new(), Vec::new()];
        for _ in 0..60 * 30 {
            pair.tick();
            for end in 0..2 {
                taken[end].extend(pair.take(end, RELIABLE));
                seen[end].look(&mut pair, end, true);
            }
        }
        for end in 0..2 {
            assert!(taken[end].iter().copied().eq(0..200), "mtu {mtu}");
            assert_eq!(seen[end].received, [("world".into(), contents[1 - end].clone())]);
            assert_eq!(pair.links[end].counters().too_large, 0);
        }
    }
}

#[test]
fn an_mtu_that_cannot_be_is_named() {
    for mtu in [0, MIN_MTU - 1, DEFAULT_MTU + 1] {
        let error = ConnectionConfig::default().packets.with_mtu(mtu).unwrap_err();
        assert_eq!(error.to_string(), format!("mtu must be 1126 to 1280, not {mtu}"));
    }
    let packets = ConnectionConfig::default().packets;
    assert_eq!(packets.clone().with_mtu(DEFAULT_MTU).unwrap(), packets, "what holds unless set");
}

fn limited(max_bytes_per_second: f64) -> CongestionConfig {
    CongestionConfig { max_bytes_per_second, ..CongestionConfig::default() }
}

/// Bytes of a chunk of 4 MB that go after it was paused at a half, and those that the receiver didn't have.
fn paused_at_half(by: usize, conditions: Conditions) -> (u64, u64) {
    let mut pair = Pair::new(protocol(), conditions, 11);
    let mut seen = <[Seen; 2]>::default();
    pair.ends[0].set_congestion(limited(500_000.0)).unwrap();
    let content = content(1, 4_000_000);
    let chunk = send(&mut pair, 0, &content, "world");
    run(&mut pair, &mut seen, 5000, |pair, _| {
        let far = |(_, progress): (_, Progress)| progress.bytes > 2_000_000;
        pair.ends[1].chunks().incoming(pair.now).any(far)
    });
    let pause = |pair: &mut Pair, paused| match by {
        0 => pair.ends[0].chunks_mut().pause(chunk, paused),
        _ => pair.ends[1].chunks_mut().pause_incoming(0, paused),
    };
    assert!(pause(&mut pair, true));
    // Slices in flight arrive, and are kept.
    (0..120).for_each(|_| pair.tick());
    let before = pair.ends[0].chunks().counters;
    let had = pair.ends[1].chunks().incoming(pair.now).next().unwrap().1.bytes;
    let progress = pair.ends[0].chunks().progress(pair.now, chunk).unwrap();
    assert_eq!((progress.paused, progress.paused_by_peer), (by == 0, by == 1));
    assert_eq!(progress.time_left(), None);
    let datagrams = pair.sent_bytes[0];
    for n in 0..1200 {
        pair.send(0, RELIABLE, number(n)).unwrap();
        pair.tick();
        while pair.ends[1].poll_received(RELIABLE).is_some() {}
    }
    let still = pair.ends[0].chunks().counters;
    assert_eq!(still.bytes_sent, before.bytes_sent, "nothing goes");
    assert!(pair.sent_bytes[0] - datagrams < 1200 * 120, "and messages and acks do");
    assert_eq!(
        pair.ends[1].chunks().incoming(pair.now).next().unwrap().1.bytes,
        had,
        "nothing that came is lost"
    );
    assert!(pause(&mut pair, false));
    run(&mut pair, &mut seen, 5000, all_sent(1));
    assert!(seen[1].received[0].1 == content);
    (pair.ends[0].chunks().counters.bytes_sent - before.bytes_sent, 4_000_000 - had)
}

#[test]
fn a_paused_chunk_stands_still_and_goes_on_with_the_rest() {
    let conditions = Conditions::perfect().latency(ms(40), ms(5));
    for by in 0..2 {
        for (loss, most) in [(0.0, 1.0), (0.05, 1.12)] {
            let (sent, missing) = paused_at_half(by, conditions.loss(loss));
            println!("paused by end {by} at {loss} loss: {sent} bytes sent of {missing} missing");
            assert!(sent as f64 <= most * missing as f64, "{sent} of {missing} at {loss}, paused by {by}");
        }
    }
}

#[test]
fn what_is_behind_a_paused_chunk_goes_and_is_handed_over_after_it() {
    let mut pair = Pair::new(protocol(), Conditions::perfect().latency(ms(20), ms(0)), 3);
    let mut seen = <[Seen; 2]>::default();
    let numbers: Vec<_> = (0..6).map(|n| send(&mut pair, 0, &content(n, 50_000), &format!("{n}"))).collect();
    assert!(pair.ends[0].chunks_mut().pause(numbers[0], true));
    run(&mut pair, &mut seen, 600, |_, seen| seen[0].sent.len() == 3);
    seen[0].sent.sort();
    for _ in 0..200 {
        pair.tick();
        seen.iter_mut().enumerate().for_each(|(end, seen)| seen.look(&mut pair, end, true));
    }
    assert_eq!(seen[0].sent, [1, 2, 3], "as many as may be open beside it");
    assert!(seen[1].received.is_empty(), "in order");
    assert!(pair.ends[0].chunks_mut().pause(numbers[0], false));
    run(&mut pair, &mut seen, 600, all_sent(6));
    let labels: Vec<_> = seen[1].received.iter().map(|(label, _)| &**label).collect();
    assert_eq!(labels, ["0", "1", "2", "3", "4", "5"]);
    assert!(!pair.ends[0].chunks_mut().pause(numbers[0], true), "it is over");
    assert!(!pair.ends[1].chunks_mut().pause_incoming(0, true));
}

#[test]
fn pausing_at_every_tick_on_a_bad_network_ends_as_it_was_left() {
    for seed in 0..6 {
        let conditions = Conditions::perfect().latency(ms(40), ms(30)).loss(0.1).duplicate(0.05);
        let mut pair = Pair::new(protocol(), conditions, seed);
        let mut seen = <[Seen; 2]>::default();
        let number = send(&mut pair, 0, &content(seed, 600_000), "world");
        let mut rng = Rng::seeded(seed);
        for _ in 0..300 {
            pair.ends[0].chunks_mut().pause(number, rng.below(2) == 0);
            pair.ends[1].chunks_mut().pause_incoming(0, rng.below(2) == 0);
            pair.tick();
            seen.iter_mut().enumerate().for_each(|(end, seen)| seen.look(&mut pair, end, true));
        }
        let paused = pair.ends[1].chunks_mut().pause_incoming(0, true)
            && pair.ends[0].chunks_mut().pause(number, false);
        let mut all = 0;
        for turn in 0..600 {
            pair.tick();
            seen.iter_mut().enumerate().for_each(|(end, seen)| seen.look(&mut pair, end, true));
            if turn == 300 {
                all = pair.ends[0].chunks().counters.bytes_sent;
            }
        }
        if paused && seen[0].sent.is_empty() {
            assert!(pair.ends[0].chunks().progress(pair.now, number).unwrap().paused_by_peer, "seed {seed}");
            assert_eq!(pair.ends[0].chunks().counters.bytes_sent, all, "seed {seed}");
            assert!(pair.ends[1].chunks_mut().pause_incoming(0, false));
        }
        run(&mut pair, &mut seen, 5000, all_sent(1));
    }
}

#[test]
fn a_paused_chunk_is_gone_on_with_in_another_connection() {
    let mut pair = Pair::new(protocol(), Conditions::perfect().latency(ms(20), ms(0)), 5);
    let mut seen = <[Seen; 2]>::default();
    pair.ends[0].set_congestion(limited(500_000.0)).unwrap();
    let content = content(1, 1_000_000);
    send(&mut pair, 0, &content, "world");
    run(&mut pair, &mut seen, 900, |pair, _| {
        pair.ends[1].chunks().incoming(pair.now).any(|(_, progress)| progress.bytes > 500_000)
    });
    assert!(pair.ends[1].chunks_mut().pause_incoming(0, true));
    (0..60).for_each(|_| pair.tick());
    let part = pair.ends[1].chunks_mut().finish().remove(0);
    let missing = 1_000_000 - part.bytes();
    let mut pair = Pair::new(protocol(), Conditions::perfect().latency(ms(20), ms(0)), 6);
    let mut seen = <[Seen; 2]>::default();
    let number = send(&mut pair, 0, &content, "world");
    // What goes before the answer is known goes in vain.
    pair.ends[0].chunks_mut().pause(number, true);
    let mut part = Some(part);
    for _ in 0..30 {
        pair.tick();
        seen[1].look(&mut pair, 1, false);
        if let Some(offer) = seen[1].offered.pop_front() {
            assert!(pair.ends[1].chunks_mut().accept(offer.id, part.take().unwrap()));
        }
    }
    assert!(
        !pair.ends[1].chunks().incoming(pair.now).next().unwrap().1.paused,
        "a pause is of its connection"
    );
    pair.ends[0].chunks_mut().pause(number, false);
    run(&mut pair, &mut seen, 900, all_sent(1));
    assert_eq!(pair.ends[0].chunks().counters.bytes_sent, missing);
}

#[test]
fn what_is_here_already_is_not_sent_and_what_only_seems_so_is() {
    for (verified, good) in [(false, true), (true, true), (false, false)] {
        let mut pair = Pair::new(protocol(), Conditions::perfect().latency(ms(20), ms(0)), 5);
        let mut seen = <[Seen; 2]>::default();
        let content = content(1, 3_000_000);
        send(&mut pair, 0, &content, "world");
        let mut offers = 0;
        for _ in 0..600 {
            pair.tick();
            seen[0].look(&mut pair, 0, true);
            seen[1].look(&mut pair, 1, offers == 1);
            if let Some(offer) = seen[1].offered.pop_front() {
                let mut kept = MemorySink::new(offer.size).unwrap();
                let mut bytes = content.clone();
                bytes[2_999_999] ^= u8::from(!good);
                kept.write_at(0, &bytes).unwrap();
                assert!(
                    pair.ends[1]
                        .chunks_mut()
                        .accept(offer.id, Assembly::whole(&offer, Box::new(kept), verified))
                );
                offers += 1;
            }
        }
        assert_eq!(seen[0].sent, [0]);
        assert!(seen[1].received[0].1 == content);
        let sent = pair.ends[0].chunks().counters.bytes_sent;
        println!("verified {verified}, good {good}: {sent} bytes");
        assert!(if good { sent < 140_000 } else { (3_000_000..3_140_000).contains(&sent) }, "{sent}");
        assert_eq!(pair.ends[1].chunks().counters.chunks_reused, u64::from(good));
    }
}

#[test]
fn the_rate_changes_while_chunks_go() {
    let mut pair = Pair::new(protocol(), Conditions::perfect().latency(ms(20), ms(0)), 5);
    let mut seen = <[Seen; 2]>::default();
    send(&mut pair, 0, &content(1, 40_000_000), "world");
    let second = |pair: &mut Pair, seen: &mut [Seen; 2]| {
        let before = pair.sent_bytes[0];
        for _ in 0..60 {
            pair.tick();
            seen.iter_mut().enumerate().for_each(|(end, seen)| seen.look(pair, end, true));
        }
        (pair.sent_bytes[0] - before) as f64
    };
    // Each takes over from another with packets in flight.
    for rate in [100_000.0, 400_000.0, 50_000.0, 300_000.0] {
        pair.ends[0].set_congestion(limited(rate)).unwrap();
        second(&mut pair, &mut seen);
        let sent = second(&mut pair, &mut seen);
        println!("{rate}: {sent}");
        assert!((0.4 * rate..1.15 * rate).contains(&sent), "{sent} at {rate}");
    }
    let rate = pair.ends[0].bulk_rate();
    assert!(pair.ends[0].set_congestion(limited(1.0)).is_err());
    assert_eq!(pair.ends[0].bulk_rate(), rate, "the old one stays");
}

/// A small message leaves a slice enough room, so the two share a packet.
#[test]
fn a_slice_shares_a_packet_with_a_message() {
    let packets = |message: bool| {
        let mut pair = Pair::new(protocol(), Conditions::perfect(), 1);
        let mut seen = [Seen::default(), Seen::default()];
        (0..4).for_each(|_| pair.tick());
        let sent = send(&mut pair, 0, &content(1, 100_000), "map");
        // The offer goes first, and has a packet of its own.
        pair.tick();
        seen.iter_mut().enumerate().for_each(|(end, seen)| seen.look(&mut pair, end, true));
        if message {
            pair.ends[0].send(pair.now, UNRELIABLE, number(7), SendOptions::default()).unwrap();
        }
        let before = pair.ends[0].counters().sent;
        pair.tick();
        let packets = pair.ends[0].counters().sent - before;
        run(&mut pair, &mut seen, 600, |_, seen| seen[0].sent == [sent]);
        assert_eq!(seen[1].received[0].1, content(1, 100_000));
        assert_eq!(pair.take(1, UNRELIABLE), if message { vec![7] } else { vec![] });
        packets
    };
    let (alone, shared) = (packets(false), packets(true));
    assert!(alone > 1 && shared == alone, "{shared} packets instead of {alone}");
}
