//! The memory that one packet takes goes with its bytes and messages: no id, key or sequence in it may cost more than others.
//! Partial packets are bounded apart from that, all of a peer's together: see `fragment bomb`.

use std::sync::Arc;

use tickwire::time::Instant;
use tickwire::transport::{
    Body, ChannelConfig, ChannelKind, Connection, ConnectionConfig, MessageType, Protocol, Resend,
};
use tickwire::wire::{BitSink, BitWriter, Schema};

use crate::fuzz_targets::native::{Peer, ackless, datagram};
use crate::memory::peak;

/// The memory that a connection takes for any first packet: windows and scratch.
const FIRST: usize = 4 << 10;

/// For each byte of a packet.
const EACH_BYTE: usize = 4;

/// For each message: it takes a hundred bytes as it is read and as it waits, and tables of them double.
const EACH_MESSAGE: usize = 512;

/// The largest settings that a channel may have.
const MOST: usize = 16_384;
const KEYS: usize = 65_536;

/// A protocol of one channel, with one message of no bits.
fn protocol(kind: ChannelKind) -> Arc<Protocol> {
    let nothing = Schema::new::<String>([]).unwrap();
    let types = vec![MessageType { name: "Nothing".into(), body: Body::Declared(nothing) }];
    Arc::new(Protocol::new(types, vec![ChannelConfig::new(kind)]).unwrap())
}

fn kinds() -> Vec<ChannelKind> {
    let reliable = |ordered| ChannelKind::Reliable {
        ordered,
        receive_window: MOST,
        receive_bytes: 1 << 30,
        resend: Resend::default(),
    };
    let receive_queue = MOST;
    vec![
        reliable(true),
        reliable(false),
        ChannelKind::Unreliable { receive_queue },
        ChannelKind::Sequenced { receive_queue },
        ChannelKind::Redundant { copies: 3, receive_queue },
        ChannelKind::Latest { keys: KEYS },
        ChannelKind::Payload { receive_queue },
    ]
}

/// The beginning of a packet: our protocol, and an entry.
fn begin(protocol: &Protocol) -> BitWriter {
    let mut writer = BitWriter::new();
    writer.bool(true);
    writer.bits(tickwire::transport::VERSION.into(), 8);
    writer.bits(protocol.hash(), 64);
    writer.bits(0, 4);
    writer.bool(true);
    writer
}

/// A packet of messages, each so far behind the one before, as far as the kind has numbers for them.
fn packet(protocol: &Protocol, messages: usize, apart: u16) -> Vec<u8> {
    let mut writer = begin(protocol);
    let mut number = apart;
    for n in 0..messages {
        match protocol.channels()[0].kind {
            ChannelKind::Reliable { .. } | ChannelKind::Redundant { .. } if n == 0 => {
                writer.bits(number.into(), 16);
            }
            ChannelKind::Reliable { .. } | ChannelKind::Redundant { .. } => {
                writer.int_relative(0, apart.into());
            }
            ChannelKind::Latest { .. } => writer.bits(number.into(), 16),
            ChannelKind::Payload { .. } => writer.bits(0, 20),
            _ => {}
        }
        number = number.wrapping_add(apart);
        writer.bool(n + 1 < messages);
    }
    writer.bool(false);
    writer.into_bytes()
}

/// The most that a connection takes for a packet, and the bytes of its datagrams.
fn cost(connection: &mut Connection, sender: &mut Peer, payload: &[u8]) -> (usize, usize) {
    let datagrams = sender.send(payload);
    let bytes = datagrams.iter().map(|(_, datagram)| datagram.len()).sum();
    let most = peak(|| {
        for (number, datagram) in &datagrams {
            let handled = connection.handle_datagram(Instant::ZERO, *number, datagram);
            handled.expect("all of it is within the protocol");
        }
    });
    (most, bytes)
}

#[test]
fn one_packet_takes_memory_in_proportion_to_its_bytes() {
    println!("\n| channel | messages | apart | bytes | memory | a message |\n|---|---:|---:|---:|---:|---:|");
    for kind in kinds() {
        let protocol = protocol(kind);
        let farthest = if matches!(kind, ChannelKind::Latest { .. }) { u16::MAX } else { MOST as u16 - 1 };
        // One far ahead, a datagram full of them in places far from each other, the same in one place, and many.
        for (messages, apart) in [(1, farthest), (400, farthest / 400), (800, 1), (5000, 1)] {
            let mut connection = Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
            let mut sender = Peer::default();
            let payload = packet(&protocol, messages, apart);
            let (memory, bytes) = cost(&mut connection, &mut sender, &payload);
            let name = kind.name();
            println!("| {name} | {messages} | {apart} | {bytes} | {memory} | {} |", memory / messages);
            let bound = FIRST + EACH_BYTE * bytes + EACH_MESSAGE * messages;
            assert!(memory <= bound, "{name}: {memory} bytes of memory for {bytes}");
        }
    }
}

#[test]
fn a_packet_of_any_sequence_takes_as_much_as_the_next_one() {
    let protocol = protocol(ChannelKind::Unreliable { receive_queue: MOST });
    let payload = packet(&protocol, 1, 0);
    for sequence in [1, 16_384, 32_768, 1 << 32, i64::MAX as u64] {
        let mut connection = Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
        let mut most = [0; 2];
        for (sequence, most) in [0, sequence].into_iter().zip(&mut most) {
            let datagram = datagram(&ackless(sequence), &payload);
            *most =
                peak(|| connection.handle_datagram(Instant::ZERO, sequence, &datagram).expect("a packet"));
        }
        println!("sequence {sequence}: {most:?} bytes");
        assert!(most.iter().all(|most| *most <= FIRST), "{most:?} bytes for sequence {sequence}");
    }
}

#[test]
fn an_offer_takes_no_more_than_it_says() {
    let channels = vec![ChannelConfig::new(ChannelKind::Chunks)];
    let types = vec![MessageType { name: "B".into(), body: Body::Opaque { max_bytes: 9 } }];
    let protocol = Arc::new(Protocol::new(types, channels).unwrap());
    let mut connection = Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
    let mut sender = Peer::default();
    let mut writer = begin(&protocol);
    for id in 0..4 {
        writer.bits(1, 2);
        writer.bits(id, 16);
        writer.bits((1 << 40) - 1, 40);
        writer.bits(512, 11);
        writer.bytes(&[0; 32]);
        writer.string("world", 64);
        writer.bool(id < 3);
    }
    writer.bool(false);
    let (memory, bytes) = cost(&mut connection, &mut sender, &writer.into_bytes());
    println!("four offers of a terabyte: {memory} bytes of memory for {bytes}");
    assert!(memory <= FIRST + 4 * EACH_MESSAGE, "{memory} bytes of memory for {bytes}");
}
