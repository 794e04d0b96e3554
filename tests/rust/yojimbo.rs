//! Yojimbo's framing between two of our own, in virtual time: loss, duplicates, reordering, blocks, readers who don't read,
//! and peers that break it. What its packets look like is tested beside the framing, against recorded ones.

use std::sync::Arc;

use tickwire::netsim::Conditions;
use tickwire::rng::Rng;
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::ack_endpoint::{AckEndpoint, AckEndpointConfig};
use tickwire::transport::{
    Body, BudgetConfig, ChannelConfig, ChannelKind, Connection, ConnectionConfig, End, Fault, FaultKind,
    Framing, FramingError, Message, MessageType, OpaqueBody, Protocol, Received, Resend, SendError,
    SendOptions, Violation, YojimboChannel, YojimboConfig,
};
use tickwire::wire::{BitReader, BitSink, BitWriter, Kind, Schema};

use crate::pair::{Pair, number};

const RELIABLE: usize = 0;
const UNRELIABLE: usize = 1;
const BLOB: u16 = 1;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn terrible() -> Conditions {
    Conditions::perfect().latency(ms(40), ms(20)).loss(0.2).duplicate(0.1).reorder(0.1, ms(60))
}

fn declared(name: &str) -> MessageType {
    let schema = Schema::new([("number", Kind::Bits { bits: 32 })]).unwrap();
    MessageType { name: name.into(), body: Body::Declared(schema) }
}

fn protocol_of(settings: YojimboChannel, types: Vec<MessageType>) -> Arc<Protocol> {
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
    let config =
        YojimboConfig { block_types: vec![BLOB], channels: vec![settings, settings], ..Default::default() };
    Arc::new(Protocol::with_framing(types, channels, Framing::Yojimbo(config)).unwrap())
}

/// Number and Blob, a block message, both with a number.
fn protocol() -> Arc<Protocol> {
    protocol_of(YojimboChannel::default(), vec![declared("Number"), declared("Blob")])
}

fn content(number: u32, bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (number.wrapping_mul(31).wrapping_add(i * 7) >> 3) as u8).collect()
}

fn blob(n: u32, bytes: usize) -> Message {
    let block = Some(content(n, bytes).into());
    Message { message_type: BLOB, block, ..number(n) }
}

/// The number of a message, and the size of its block, whose content is checked.
fn check(received: &Received) -> (u32, usize) {
    let number = u32::from_le_bytes(received.body[..4].try_into().unwrap());
    let size = received.block.as_ref().map_or(0, |block| {
        assert!(**block == content(number, block.len()), "block {number}");
        block.len()
    });
    assert_eq!(received.message_type == BLOB, size > 0);
    (number, size)
}

fn take(pair: &mut Pair, end: usize, channel: usize) -> Vec<(u32, usize)> {
    std::iter::from_fn(|| pair.ends[end].poll_received(channel)).map(|received| check(&received)).collect()
}

#[test]
fn reliable_messages_and_blocks_arrive_once_and_in_order() {
    for seed in [1, 2, 3] {
        let mut pair = Pair::new(protocol(), terrible(), seed);
        let mut rng = Rng::seeded(seed);
        let mut expected = Vec::new();
        let mut received = Vec::new();
        for _ in 0..20_000 {
            while expected.len() < 4_000 && rng.chance(0.6) {
                let next = expected.len() as u32;
                let size = if rng.below(150) == 0 { 1 + rng.below(20_000) as usize } else { 0 };
                let message = if size > 0 { blob(next, size) } else { number(next) };
                match pair.send(0, RELIABLE, message) {
                    Ok(()) => expected.push((next, size)),
                    Err(SendError::Full { capacity: 1024 }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            pair.tick();
            received.extend(take(&mut pair, 1, RELIABLE));
            if received.len() == 4_000 && pair.ends[0].channel_stats(RELIABLE).queued == 0 {
                break;
            }
        }
        assert!(received == expected, "{} of {}", received.len(), expected.len());
        let stats = pair.ends[0].channel_stats(RELIABLE);
        assert_eq!((stats.sent, stats.delivered, stats.lost), (4_000, 4_000, 0));
    }
}

#[test]
fn unreliable_messages_and_blocks_arrive_at_most_once() {
    let mut pair = Pair::new(protocol(), terrible(), 4);
    let mut received = Vec::new();
    for tick in 0..3_000 {
        pair.send(0, UNRELIABLE, number(2 * tick)).unwrap();
        pair.send(0, UNRELIABLE, blob(2 * tick + 1, 1 + tick as usize % 300)).unwrap();
        pair.tick();
        received.extend(take(&mut pair, 1, UNRELIABLE));
    }
    assert!((4_200..5_400).contains(&received.len()), "{}", received.len());
    assert!(received.iter().all(|(number, size)| (*size > 0) == (number % 2 == 1)));
    let count = received.len();
    received.sort_unstable();
    received.dedup();
    assert_eq!(received.len(), count, "none twice");
}

/// Ticks until a block of 256 KiB has arrived.
fn block_ticks(conditions: Conditions, seed: u64) -> usize {
    let mut pair = Pair::new(protocol(), conditions, seed);
    pair.ticks(30);
    pair.send(0, RELIABLE, blob(9, 256 * 1024)).unwrap();
    for tick in 1..2_000 {
        pair.tick();
        let received = take(&mut pair, 1, RELIABLE);
        if !received.is_empty() {
            assert_eq!(received, [(9, 256 * 1024)]);
            return tick;
        }
    }
    panic!("the block never came");
}

#[test]
fn a_block_takes_well_under_the_four_seconds_of_a_fragment_a_tick() {
    // Alone on the link, and at 10 % loss with a round trip of 100 ms.
    let (alone, lossy) = (
        block_ticks(Conditions::perfect(), 5),
        block_ticks(Conditions::perfect().latency(ms(50), ms(5)).loss(0.1), 6),
    );
    assert!(alone < 60, "{alone} ticks");
    assert!(lossy < 120, "{lossy} ticks");
    // A link of a tenth of that is not flooded: the block takes its time, and messages still arrive.
    let narrow = Conditions::perfect().latency(ms(20), ms(0)).rate(60_000, 30_000);
    let slow = block_ticks(narrow, 7);
    assert!((260..900).contains(&slow), "{slow} ticks");
}

/// Without congestion control the budget is all that slows a block down, fragments that are sent again included.
#[test]
fn a_block_keeps_to_a_fixed_budget() {
    let line = Conditions::perfect().latency(ms(20), ms(0));
    for (conditions, most) in [(line, 1.1), (line.loss(0.1), 1.4)] {
        let mut pair = Pair::new(protocol(), conditions, 11);
        let budget = BudgetConfig { adaptive: false, ..BudgetConfig::new(60_000.0, 8_192.0) };
        pair.ends[0].set_budget(budget).unwrap();
        pair.ticks(30);
        let (began, before) = (pair.now, pair.sent_bytes[0]);
        pair.send(0, RELIABLE, blob(9, 256 * 1024)).unwrap();
        while take(&mut pair, 1, RELIABLE).is_empty() {
            pair.tick();
            let seconds = (pair.now - began).as_secs_f64();
            let sent = (pair.sent_bytes[0] - before) as f64;
            // A packet may overdraw, and each tick has a packet, even an empty one that the budget isn't charged for.
            assert!(sent < 8_192.0 + 62_500.0 * seconds + 2_048.0, "{sent} bytes in {seconds:.2} s");
            assert!(seconds < most * 256.0 * 1024.0 / 55_000.0, "the budget is used");
        }
    }
}

#[test]
fn every_tick_has_a_packet_and_an_empty_one_is_a_byte() {
    let mut connection = Connection::new(&ConnectionConfig::default(), protocol()).unwrap();
    for tick in 0..10 {
        let mut packets = Packets::new();
        connection.transmit(Instant::from_millis(tick), &mut packets);
        let packets: Vec<_> = packets.iter().map(|(_, packet)| packet.to_vec()).collect();
        assert_eq!(packets.len(), 1);
        assert_eq!(packets[0].last(), Some(&0), "no entries");
        assert!(packets[0].len() <= 1 + 8, "header and a byte: {}", packets[0].len());
    }
    let mut packets = Packets::new();
    let next = connection.transmit_between(Instant::from_millis(50), &mut packets);
    assert_eq!((packets.iter().count(), next), (0, Instant::from_millis(109)));
    connection.transmit_between(next, &mut packets);
    assert_eq!(packets.iter().count(), 1, "acks go out even if the game's ticks don't");
}

#[test]
fn who_does_not_read_is_waited_for_within_bounds() {
    let window = 64;
    let resend = Resend::default();
    let kind =
        ChannelKind::Reliable { ordered: true, receive_window: window, receive_bytes: 1 << 20, resend };
    let channels = vec![ChannelConfig::new(kind), ChannelConfig::unreliable()];
    let config = YojimboConfig { block_types: vec![BLOB], ..Default::default() };
    let types = vec![declared("Number"), declared("Blob")];
    let protocol = Protocol::with_framing(types, channels, Framing::Yojimbo(config)).unwrap();
    let mut pair = Pair::new(Arc::new(protocol), terrible(), 8);
    let mut sent = 0;
    for _ in 0..600 {
        while pair.send(0, RELIABLE, number(sent)).is_ok() {
            sent += 1;
        }
        pair.tick();
    }
    assert!(sent <= 1024 + window as u32, "what isn't read isn't acked: {sent}");
    assert!(pair.ends[1].counters().refused > 0);
    let mut received = Vec::new();
    for _ in 0..3_000 {
        received.extend(take(&mut pair, 1, RELIABLE).into_iter().map(|(number, _)| number));
        pair.tick();
    }
    assert!(received.iter().copied().eq(0..sent), "{} of {sent}", received.len());
}

#[test]
fn messages_that_only_their_own_code_reads_are_held_until_it_does() {
    let own = MessageType { name: "Own".into(), body: Body::Opaque { max_bytes: 64 } };
    let protocol = protocol_of(YojimboChannel::default(), vec![own, declared("Blob")]);
    let mut pair = Pair::new(protocol, terrible(), 9);
    // As many bits as its number says.
    let message = |n: u32| {
        let mut writer = BitWriter::new();
        writer.bits(n.into(), 16);
        writer.bits(u64::from(n) & 1, 1 + n % 40);
        Message::new(0, writer.encoded())
    };
    let extent = |_: u16, bytes: &[u8], start: usize| {
        let mut reader = BitReader::with_range(bytes, start, usize::MAX / 2);
        let n = reader.bits(16).map_err(|error| error.to_string())? as u32;
        reader.bits(1 + n % 40).map_err(|error| error.to_string())?;
        Ok(reader.position())
    };
    let (mut sent, mut received) = (0, Vec::new());
    for tick in 0..2_000 {
        while sent < 1_000 && sent < tick {
            let message = if sent % 100 == 50 { blob(sent, 3_000) } else { message(sent) };
            pair.send(0, RELIABLE, message).unwrap();
            sent += 1;
        }
        pair.tick();
        if tick % 5 != 0 {
            continue;
        }
        let Some(unread) = pair.ends[1].take_unread() else { continue };
        assert!(pair.ends[1].poll_received(RELIABLE).is_none());
        pair.ends[1]
            .handle_read(unread.read(extent), |connection| {
                while let Some(message) = connection.poll_received(RELIABLE) {
                    received.push(message);
                }
            })
            .unwrap();
    }
    assert_eq!(received.len(), 1_000);
    for (n, message) in (0..).zip(&received) {
        if n % 100 == 50 {
            assert_eq!(check(message), (n, 3_000));
            continue;
        }
        let body = OpaqueBody::read(&message.body);
        let mut reader = body.reader();
        assert_eq!((reader.bits(16), body.bits as u32), (Ok(n.into()), 17 + n % 40));
    }
}

/// A peer that sends what it likes.
struct Hostile {
    now: Instant,
    target: Connection,
    endpoint: AckEndpoint,
}

impl Hostile {
    fn new(settings: YojimboChannel) -> Self {
        let protocol = protocol_of(settings, vec![declared("Number"), declared("Blob")]);
        Hostile {
            now: Instant::ZERO,
            target: Connection::new(&ConnectionConfig::default(), protocol).unwrap(),
            endpoint: AckEndpoint::new(AckEndpointConfig::standard()).unwrap(),
        }
    }

    fn send(&mut self, write: impl FnOnce(&mut BitWriter)) -> Result<(), End> {
        let mut writer = BitWriter::new();
        write(&mut writer);
        self.now += ms(16);
        let packet = self.endpoint.send(self.now, writer.as_bytes()).unwrap();
        packet.pieces().try_for_each(|piece| {
            let mut datagram = Vec::new();
            piece.write(&mut datagram);
            self.target.handle_datagram(self.now, 0, &datagram)
        })
    }

    fn message(&mut self, id: u16) -> Result<(), End> {
        self.send(|writer| {
            [(1, 2), (0, 1), (0, 1), (1, 1), (0, 8), (id.into(), 16), (0, 1), (7, 32)]
                .iter()
                .for_each(|(value, bits)| writer.bits(*value, *bits));
        })
    }

    /// A fragment of a block of `count`.
    fn fragment(&mut self, id: u16, count: u64, index: u64, bytes: usize) -> Result<(), End> {
        self.send(|writer| {
            writer.bits(0b1001, 4);
            writer.bits(id.into(), 16);
            writer.bits(count - 1, 8);
            if count > 1 {
                writer.int(index as i64, 0, count as i64 - 1);
            }
            writer.bits(bytes as u64 - 1, 10);
            writer.bytes(&content(7, count as usize * 1024)[index as usize * 1024..][..bytes]);
            if index == 0 {
                writer.bits(1, 1);
                writer.bits(7, 32);
            }
        })
    }

    fn taken(&mut self) -> Vec<(u32, usize)> {
        std::iter::from_fn(|| self.target.poll_received(RELIABLE)).map(|received| check(&received)).collect()
    }
}

fn fault(end: End) -> Fault {
    match end {
        End::Violation(Violation::Yojimbo(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

fn desync(result: Result<(), End>) -> String {
    let fault = fault(result.unwrap_err());
    assert_eq!(fault.kind, FaultKind::Desync);
    fault.to_string()
}

#[test]
fn a_desync_is_told_from_a_message_that_comes_again() {
    let mut peer = Hostile::new(YojimboChannel::default());
    peer.message(0).unwrap();
    peer.message(1023).unwrap();
    peer.message(0).unwrap();
    assert_eq!(peer.taken(), [(7, 0)]);
    peer.message(0).unwrap();
    peer.message(65_535).unwrap();
    assert_eq!(peer.taken(), []);
    assert_eq!(desync(peer.message(1025)), "a message of channel 0 is beyond the receive window");
}

#[test]
fn fragments_that_disagree_are_a_desync() {
    let fresh = || Hostile::new(YojimboChannel::default());
    let mut peer = fresh();
    peer.fragment(0, 3, 1, 1024).unwrap();
    assert_eq!(desync(peer.fragment(0, 4, 2, 1024)), "the fragments of a block on channel 0 disagree");
    let size = "a fragment of a block on channel 0 is too short or reaches too far";
    assert_eq!(desync(fresh().fragment(0, 3, 1, 1023)), size);
    let mut small = Hostile::new(YojimboChannel { max_block_bytes: 261_600, ..Default::default() });
    small.fragment(0, 256, 255, 480).unwrap();
    let mut small = Hostile::new(YojimboChannel { max_block_bytes: 261_600, ..Default::default() });
    assert_eq!(desync(small.fragment(0, 256, 255, 481)), size);
}

#[test]
fn fragments_out_of_their_turn_are_skipped_and_a_short_last_one_is_not() {
    let mut peer = Hostile::new(YojimboChannel::default());
    peer.fragment(1, 2, 0, 1024).unwrap();
    peer.fragment(0, 2, 1, 10).unwrap();
    peer.fragment(0, 2, 1, 10).unwrap();
    assert_eq!(peer.taken(), []);
    peer.fragment(0, 2, 0, 1024).unwrap();
    // It is here, and what comes again of it is late.
    peer.fragment(0, 2, 0, 1024).unwrap();
    assert_eq!(peer.taken(), [(7, 1034)]);
    peer.fragment(1, 1, 0, 5).unwrap();
    assert_eq!(peer.taken(), [(7, 5)]);
    // Behind a gap no block is taken: its sender would have waited.
    peer.message(3).unwrap();
    peer.fragment(4, 1, 0, 5).unwrap();
    peer.message(2).unwrap();
    assert_eq!(peer.taken(), [(7, 0), (7, 0)]);
}

#[test]
fn any_bytes_are_taken_or_refused_within_bounds() {
    let mut rng = Rng::seeded(12);
    for round in 0..300 {
        let settings = YojimboChannel { max_block_bytes: 1 << (10 + rng.below(9)), ..Default::default() };
        let mut peer = Hostile::new(settings);
        for _ in 0..200 {
            let bytes = 1 + rng.below(if round % 4 == 0 { 900 } else { 60 });
            let likely = rng.chance(0.8);
            let sent = peer.send(|writer| {
                // Often the beginning of something that makes sense.
                if likely {
                    [0b1001, 0b0001, 0b10101, 0b01010][rng.below(4) as usize..].iter().take(1).for_each(
                        |n| {
                            writer.bits(*n, 5);
                        },
                    );
                }
                (0..bytes).for_each(|_| writer.bits(rng.next_u64() & rng.next_u64() & 0xFF, 8));
            });
            if let Err(end) = sent {
                assert!(matches!(end, End::Violation(Violation::Yojimbo(_))), "{end:?}");
                break;
            }
        }
        while peer.target.poll_received(RELIABLE).is_some() {}
    }
}

#[test]
fn a_packet_that_fails_is_not_acked() {
    let mut peer = Hostile::new(YojimboChannel { blocks: false, ..Default::default() });
    peer.message(0).unwrap();
    let disabled = fault(peer.fragment(1, 1, 0, 5).unwrap_err());
    assert_eq!(disabled.kind, FaultKind::ReadPacketFailed);
    assert_eq!(disabled.to_string(), "a block on channel 0, whose blocks are disabled");
    assert_eq!(peer.target.counters().refused, 1);
    assert_eq!(fault(peer.send(|_| ()).unwrap_err()).to_string(), "a packet has no bytes");
}

#[test]
fn a_callers_mistake_is_told_at_the_call() {
    let mut pair = Pair::new(protocol(), Conditions::perfect(), 10);
    let mut send = |channel, message| pair.send(0, channel, message);
    let max_bytes = 256 * 1024;
    assert_eq!(send(RELIABLE, blob(1, 0)), Err(SendError::Block { bytes: 0, max_bytes }));
    let bytes = max_bytes + 1;
    assert_eq!(send(RELIABLE, blob(1, bytes)), Err(SendError::Block { bytes, max_bytes }));
    assert_eq!(send(RELIABLE, blob(1, max_bytes)), Ok(()));
    // On an unreliable channel a block is in one packet.
    let (bytes, max_bytes) = (8192 - 23, 8192 - 24);
    assert_eq!(
        send(UNRELIABLE, blob(1, bytes - 4)),
        Err(SendError::Packet { bytes, max_bytes, max_packet_bytes: 8192 })
    );
    assert_eq!(send(UNRELIABLE, blob(1, max_bytes - 4)), Ok(()));
    let disabled = YojimboChannel { blocks: false, ..Default::default() };
    let protocol = protocol_of(disabled, vec![declared("Number"), declared("Blob")]);
    let mut pair = Pair::new(protocol, Conditions::perfect(), 11);
    assert_eq!(pair.send(0, RELIABLE, blob(1, 5)), Err(SendError::BlocksDisabled));
    let options = SendOptions::default();
    let full = (0..).find_map(|n| pair.ends[0].send(pair.now, RELIABLE, number(n), options).err());
    assert_eq!(full, Some(SendError::Full { capacity: 1024 }));
}

#[test]
fn settings_are_checked_and_other_channels_refused_by_name() {
    let with = |channel: ChannelConfig, channels: Vec<YojimboChannel>| {
        let framing = Framing::Yojimbo(YojimboConfig { channels, ..Default::default() });
        Protocol::with_framing(vec![declared("Number")], vec![channel], framing).map(|_| ()).unwrap_err()
    };
    let sequenced = with(ChannelConfig::new(ChannelKind::Sequenced { receive_queue: 4 }), vec![]);
    assert_eq!(sequenced, FramingError::Kind { channel: 0, kind: "sequenced" });
    assert!(sequenced.to_string().starts_with("channel 0 is sequenced; yojimbo has only"));
    let setting = |settings, sentence: &str| {
        assert_eq!(with(ChannelConfig::reliable_ordered(), vec![settings]).to_string(), sentence);
    };
    let settings = YojimboChannel::default();
    let two = with(ChannelConfig::reliable_ordered(), vec![settings; 2]);
    assert_eq!(two.to_string(), "yojimbo has settings for 2 channels, and the protocol has 1");
    setting(
        YojimboChannel { max_messages_per_packet: 0, ..settings },
        "max_messages_per_packet must be 1 to 16384, not 0",
    );
    setting(
        YojimboChannel { block_fragment_bytes: 8129, ..settings },
        "block_fragment_size must be 1 to 8128, not 8129",
    );
    setting(YojimboChannel { max_block_bytes: 0, ..settings }, "max_block_size must be 1 to 67107840, not 0");
}

#[test]
fn the_hash_tells_apart_what_must_agree() {
    let hash = |settings, config| {
        let framing = Framing::Yojimbo(YojimboConfig { channels: vec![settings], ..config });
        Protocol::with_framing(vec![declared("Number")], vec![ChannelConfig::unreliable()], framing)
            .unwrap()
            .hash()
    };
    let (settings, config) = (YojimboChannel::default(), YojimboConfig::default());
    let hashes = [
        hash(settings, config.clone()),
        hash(YojimboChannel { max_messages_per_packet: 255, ..settings }, config.clone()),
        hash(YojimboChannel { max_block_bytes: 4096, ..settings }, config.clone()),
        hash(YojimboChannel { block_fragment_bytes: 512, ..settings }, config.clone()),
        hash(YojimboChannel { blocks: false, ..settings }, config.clone()),
        hash(settings, YojimboConfig { max_packet_bytes: 4096, ..config.clone() }),
        hash(settings, YojimboConfig { packet_fragment_bytes: 512, ..config.clone() }),
        hash(settings, YojimboConfig { block_types: vec![0], ..config.clone() }),
    ];
    for (place, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..place].contains(hash), "{place}");
    }
    assert_eq!(hashes[0], hash(settings, config));
}
