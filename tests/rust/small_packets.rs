//! Packets that may be smaller than a datagram, as yojimbo's `maxPacketSize` allows: they are filled to that, and what no
//! packet holds is refused at the call.

use std::sync::Arc;

use tickwire::netsim::Conditions;
use tickwire::time::Duration;
use tickwire::transport::{
    Body, ChannelConfig, ConnectionConfig, Framing, Message, MessageType, Protocol, SendError,
    YojimboChannel, YojimboConfig,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema};

use crate::pair::{Pair, number, protocol};

const MESSAGES: u32 = 300;
const BLOB: u16 = 2;

/// Number, a text, and a block message, on a reliable and an unreliable channel.
fn protocol_of(max_packet_bytes: usize) -> Arc<Protocol> {
    let bits = ("number", Kind::Bits { bits: 32 });
    let declared = |name: &str, fields: Vec<(&str, Kind)>| MessageType {
        name: name.into(),
        body: Body::Declared(Schema::new(fields).unwrap()),
    };
    let types = vec![
        declared("Number", vec![bits.clone()]),
        declared("Text", vec![bits.clone(), ("text", Kind::Text { max_bytes: 4000 })]),
        declared("Blob", vec![bits]),
    ];
    let block_fragment_bytes = (max_packet_bytes - 64).min(1024);
    let settings = YojimboChannel { block_fragment_bytes, ..Default::default() };
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
    let config = YojimboConfig {
        max_packet_bytes,
        block_types: vec![BLOB],
        channels: vec![settings, settings],
        ..Default::default()
    };
    Arc::new(Protocol::with_framing(types, channels, Framing::Yojimbo(config)).unwrap())
}

fn text(n: u32, bytes: usize) -> Message {
    let mut writer = BitWriter::new();
    writer.bits(n.into(), 32);
    writer.string(&"x".repeat(bytes), 4000);
    Message::new(1, writer.encoded())
}

fn blob(n: u32, bytes: usize) -> Message {
    Message { message_type: BLOB, block: Some(vec![n as u8; bytes].into()), ..number(n) }
}

fn take(pair: &mut Pair, channel: usize) -> Vec<u32> {
    let received = std::iter::from_fn(|| pair.ends[1].poll_received(channel));
    received.map(|message| u32::from_le_bytes(message.body[..4].try_into().unwrap())).collect()
}

#[test]
fn packets_are_filled_to_their_bound_and_all_arrives() {
    for bytes in [256, 512, 1000, 1160, 1200, 2048, 8192] {
        for size in [0, 20, bytes / 3, bytes - 40] {
            let conditions =
                Conditions::perfect().latency(Duration::from_millis(30), Duration::ZERO).loss(0.02);
            let mut pair = Pair::new(protocol_of(bytes), conditions, bytes as u64);
            let mut unreliable = 0;
            for n in 0..MESSAGES {
                let message = match n {
                    _ if n % 50 == 49 => blob(n, 3000),
                    _ if size == 0 => number(n),
                    _ => text(n, size.min(3990)),
                };
                pair.send(0, 0, message).unwrap();
            }
            let mut received = Vec::new();
            for tick in 0..1800 {
                if tick < 60 {
                    pair.send(0, 1, number(tick)).unwrap();
                }
                pair.tick();
                received.extend(take(&mut pair, 0));
                unreliable += take(&mut pair, 1).len();
                if received.len() == MESSAGES as usize && tick > 70 {
                    break;
                }
            }
            println!("{bytes}, messages of {size}: {} of {MESSAGES}, {unreliable} of 60", received.len());
            assert!(received.iter().copied().eq(0..MESSAGES), "{bytes}: {} arrived", received.len());
            assert!(unreliable >= 50, "{bytes}: {unreliable} of 60 unreliable ones");
            assert_eq!(pair.ends[0].counters().too_large_to_send, 0);
        }
    }
}

#[test]
fn a_message_that_no_packet_holds_is_refused_with_the_bound() {
    let mut pair = Pair::new(protocol_of(256), Conditions::perfect(), 1);
    let largest = 256 - 24;
    let error = pair.send(0, 0, text(0, 300)).unwrap_err();
    let SendError::Packet { bytes, max_bytes: 232, max_packet_bytes: 256 } = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        error.to_string(),
        format!(
            "the message must take at most {largest} bytes, which max_packet_size=256 leaves it, not {bytes}"
        )
    );
    pair.send(0, 0, text(0, 220)).unwrap();
    // On an unreliable channel a block is in the packet too.
    let beside = pair.send(0, 1, blob(0, largest - 3)).unwrap_err();
    assert_eq!(beside, SendError::Packet { bytes: largest + 1, max_bytes: largest, max_packet_bytes: 256 });
    pair.send(0, 1, blob(0, largest - 4)).unwrap();
}

#[test]
fn a_connection_whose_packets_are_too_small_for_its_messages_is_not_made() {
    let mut config = ConnectionConfig::default();
    config.packets.max_packet_size = 65_536;
    let error = tickwire::transport::Connection::new(&config, protocol()).unwrap_err();
    assert_eq!(error.field, "max_packet_size");
    config.packets.max_packet_size += 1024;
    tickwire::transport::Connection::new(&config, protocol()).unwrap();
}
