//! Packets recorded from the C++ library: writes them, reads them, and refuses bad ones.

use std::sync::{Arc, LazyLock};

use serde_json::Value as Json;

use super::{Fault, FaultKind, Item, read, write};
use crate::time::Instant;
use crate::transport::framing::native::ReadContext;
use crate::transport::message::{Message, OpaqueBody, Prefix, Received, Selected};
use crate::transport::parts::fragment_of;
use crate::transport::protocol::{
    Body, ChannelConfig, Framing, MessageType, Protocol, YojimboChannel, YojimboConfig,
};
use crate::wire::{BitReader, BitSink, BitWriter, Kind, MAX_RELATIVE, Quantizer, Schema, Value};

static VECTORS: LazyLock<Json> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/yojimbo.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
});

fn protocol(config: &str) -> Arc<Protocol> {
    let declared = |name: &str, fields: &[(&str, Kind)]| MessageType {
        name: name.into(),
        body: Body::Declared(Schema::new(fields.iter().cloned()).unwrap()),
    };
    let sequence = ("sequence", Kind::Bits { bits: 16 });
    let text = ("text", Kind::Text { max_bytes: 63 });
    let types = vec![
        // It has a relative integer, so the class's own code reads it.
        MessageType { name: "Numbers".into(), body: Body::Opaque { max_bytes: 100 } },
        declared("Text", &[sequence.clone(), text, ("data", Kind::Data { max_bytes: 32 })]),
        declared("Blob", &[sequence]),
    ];
    let settings = YojimboChannel::default();
    let reliable = ChannelConfig::reliable_ordered;
    let (kinds, channels) = match config {
        "two" => (
            vec![reliable(), ChannelConfig::unreliable()],
            vec![settings, YojimboChannel { max_block_bytes: 4096, ..settings }],
        ),
        "one" => (vec![reliable()], vec![YojimboChannel { max_block_bytes: 1024, ..settings }]),
        _ => (
            vec![reliable(), reliable(), reliable()],
            vec![
                YojimboChannel {
                    max_messages_per_packet: 4,
                    max_block_bytes: 2500,
                    block_fragment_bytes: 1000,
                    blocks: true,
                },
                settings,
                YojimboChannel { blocks: false, ..settings },
            ],
        ),
    };
    let framing = Framing::Yojimbo(YojimboConfig { block_types: vec![2], channels, ..Default::default() });
    Arc::new(Protocol::with_framing(types, kinds, framing).unwrap())
}

fn number(json: &Json) -> u64 {
    json.as_u64().unwrap()
}

fn items(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn quantizer() -> Quantizer {
    Quantizer::new(0.0, 10.0, 0.01).unwrap()
}

/// A message with the vectors' values.
fn message(told: &Json) -> Message {
    let fill = number(&told["fill"]);
    let s = fill as u32;
    let mut writer = BitWriter::new();
    writer.bits(fill & 0xFFFF, 16);
    match number(&told["type"]) {
        0 => {
            writer.int(i64::from(s.wrapping_mul(37) % 2001) - 1000, -1000, 1000);
            writer.bool(s & 1 == 1);
            writer.float(s as f32 * 0.5);
            writer.compressed_float((s % 1001) as f32 * 0.01, &quantizer());
            writer.bits(s.into(), 32);
            writer.int_relative(s, s + 1 + 200 * (s % 7).pow(3));
            writer.bits(fill.wrapping_mul(0x9E37_79B9_7F4A_7C15), 64);
        }
        1 => {
            let letters = &"abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"[..s as usize % 40];
            writer.string(&format!("message {s} {letters}"), 63);
            let data: Vec<u8> = (0..s % 33).map(|i| (s + i) as u8).collect();
            writer.data(&data, 32);
        }
        _ => {}
    }
    let block = told["block_bytes"].as_u64().map(|bytes| block(fill, bytes).into());
    Message { block, ..Message::new(number(&told["type"]) as u16, writer.encoded()) }
}

fn block(fill: u64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|i| (fill * 13 + i * 7) as u8).collect()
}

/// The end of a Numbers message.
fn extent(message_type: u16, bytes: &[u8], start: usize) -> Result<usize, String> {
    assert_eq!(message_type, 0);
    end_of_numbers(bytes, start).ok_or_else(|| "no".to_owned())
}

fn end_of_numbers(bytes: &[u8], start: usize) -> Option<usize> {
    let mut reader = BitReader::with_range(bytes, start, usize::MAX / 2);
    reader.bits(16).ok()?;
    reader.int(-1000, 1000).ok()?;
    reader.bool().ok()?;
    reader.float().ok()?;
    reader.compressed_float(&quantizer()).ok()?;
    let previous = reader.bits(32).ok()? as u32;
    reader.int_relative(Some(previous).filter(|previous| *previous <= MAX_RELATIVE)?).ok()?;
    reader.bits(64).ok()?;
    Some(reader.position())
}

fn context() -> ReadContext {
    ReadContext { now: Instant::ZERO, sequence: 0, ack: 0, hello_received: true }
}

fn read_all(config: &str, bytes: &[u8]) -> Result<Vec<Item>, Fault> {
    let mut items = Vec::new();
    read(bytes, &protocol(config), context(), &mut extent, &mut items).map(|()| items)
}

/// The contents of a packet by the vectors.
fn entries(vector: &Json) -> Vec<(usize, Vec<Selected>)> {
    let selected = |content: &Json, fragment: Option<u16>| {
        let prefix = content["id"].as_u64().map_or(Prefix::None, |id| Prefix::Id(id as u16));
        Selected { prefix, message: message(content), mark: 0, fragment }
    };
    let entries = items(&vector["content"]).iter().map(|entry| {
        let contents = match entry.get("block") {
            Some(block) => vec![selected(block, Some(number(&block["fragment"]) as u16))],
            None => items(&entry["messages"]).iter().map(|message| selected(message, None)).collect(),
        };
        (number(&entry["channel"]) as usize, contents)
    });
    entries.collect()
}

fn written(config: &str, entries: &[(usize, Vec<Selected>)]) -> Vec<u8> {
    let entries: Vec<_> = entries.iter().map(|(channel, selected)| (*channel, &**selected)).collect();
    let mut writer = BitWriter::new();
    write(&mut writer, &protocol(config), &entries);
    writer.into_bytes()
}

/// A received message's body, written again.
fn rewritten(protocol: &Protocol, received: &Received) -> (u16, Vec<u8>, Option<Vec<u8>>) {
    let mut writer = BitWriter::new();
    match &protocol.messages()[usize::from(received.message_type)].body {
        Body::Declared(schema) => schema.write_row(&received.body, &mut writer).unwrap(),
        Body::Opaque { .. } => {
            let body = OpaqueBody::read(&received.body);
            let mut reader = body.reader();
            while reader.remaining_bits() > 0 {
                writer.bits(reader.bits(1).unwrap(), 1);
            }
        }
    }
    (received.message_type, writer.into_bytes(), received.block.as_deref().cloned())
}

fn expected(message: &Message) -> (u16, Vec<u8>, Option<Vec<u8>>) {
    (message.message_type, message.encoded.bytes().to_vec(), message.block.as_deref().cloned())
}

#[test]
fn writes_every_recorded_packet() {
    for vector in items(&VECTORS["yojimbo"]) {
        let config = vector["config"].as_str().unwrap();
        assert_eq!(
            hex::encode(written(config, &entries(vector))),
            vector["packet"].as_str().unwrap(),
            "{}",
            vector["name"]
        );
    }
}

#[test]
fn reads_every_recorded_packet() {
    for vector in items(&VECTORS["yojimbo"]) {
        let config = vector["config"].as_str().unwrap();
        let protocol = protocol(config);
        let bytes = hex::decode(vector["packet"].as_str().unwrap()).unwrap();
        let mut found = read_all(config, &bytes).unwrap().into_iter();
        let size = if config == "small" { 1000 } else { 1024 };
        for (channel, selected) in entries(vector) {
            for Selected { prefix, message, fragment, .. } in selected {
                match (found.next().unwrap(), fragment.map(usize::from)) {
                    (Item::Message(read), None) => {
                        assert_eq!((usize::from(read.channel), read.prefix), (channel, prefix));
                        assert_eq!(rewritten(&protocol, &read.received), expected(&message));
                    }
                    (Item::Fragment { channel: on, fragment: read }, Some(index)) => {
                        assert_eq!((usize::from(on), Prefix::Id(read.id)), (channel, prefix));
                        let block = message.block_bytes();
                        assert_eq!((read.count, read.index), (block.len().div_ceil(size), index));
                        assert_eq!(*read.data, *fragment_of(block, index, size));
                        let message = Message { block: None, ..message.clone() };
                        let read = read.message.as_ref().map(|message| rewritten(&protocol, message));
                        assert_eq!(read, (index == 0).then(|| expected(&message)));
                    }
                    _ => panic!("{}", vector["name"]),
                }
            }
        }
        assert!(found.next().is_none(), "{}", vector["name"]);
    }
}

#[test]
fn what_is_behind_a_packet_is_ignored() {
    for vector in items(&VECTORS["yojimbo"]) {
        let config = vector["config"].as_str().unwrap();
        let mut bytes = hex::decode(vector["packet"].as_str().unwrap()).unwrap();
        let count = read_all(config, &bytes).unwrap().len();
        bytes.extend([0xFF; 9]);
        assert_eq!(read_all(config, &bytes).unwrap().len(), count);
    }
}

/// A packet written bit by bit.
fn packet(parts: &[(u64, u32)]) -> Vec<u8> {
    let mut writer = BitWriter::new();
    parts.iter().filter(|(_, bits)| *bits > 0).for_each(|(value, bits)| writer.bits(*value, *bits));
    writer.into_bytes()
}

fn fault(config: &str, parts: &[(u64, u32)]) -> Fault {
    read_all(config, &packet(parts)).unwrap_err()
}

#[test]
fn refuses_what_yojimbo_calls_read_packet_failed() {
    assert_eq!(read_all("two", &[]).unwrap_err(), Fault::packet("a packet has no bytes"));
    let bits = |fault: Fault| {
        assert_eq!(fault.kind, FaultKind::ReadPacketFailed);
        assert!(fault.to_string().starts_with("a packet: "), "{fault}");
    };
    bits(fault("two", &[(3, 2)]));
    // Channel 3 of 3.
    bits(fault("small", &[(1, 2), (3, 2), (0, 1)]));
    // A packet that ends in a fragment's data, and padding that is not zero.
    let fragment = [(1, 2), (0, 1), (1, 1), (9, 16), (1, 8), (0, 1)];
    bits(fault("two", &[&fragment[..], &[(99, 10)]].concat()));
    bits(fault("two", &[&fragment[..], &[(0, 10), (1, 1), (0, 64)]].concat()));
    // A fragment of 1,001 bytes with a maximum of 1,000; the fourth of three.
    bits(fault("small", &[(1, 2), (0, 2), (1, 1), (9, 16), (0, 2), (1000, 10), (0, 64)]));
    bits(fault("small", &[(1, 2), (0, 2), (1, 1), (9, 16), (2, 2), (3, 2), (0, 64)]));
    assert_eq!(
        fault("small", &[(1, 2), (2, 2), (1, 1), (0, 64), (0, 64)]),
        Fault::packet("a block on channel 2, whose blocks are disabled")
    );
    // Fragment 0 of one, a byte, then type 1: 31 bits before the data, aligned to 32.
    assert_eq!(
        fault("two", &[(1, 2), (0, 1), (1, 1), (9, 16), (0, 8), (0, 10), (0, 2), (7, 8), (1, 2)]),
        Fault::packet("a block with a message of type 1, which carries none")
    );
    // Its message is truncated.
    bits(fault("two", &[(1, 2), (0, 1), (1, 1), (9, 16), (0, 8), (0, 10), (0, 2), (7, 8), (2, 2)]));
}

#[test]
fn refuses_what_yojimbo_calls_failed_to_serialize() {
    let messages = |fault: Fault, on| {
        assert_eq!(fault.kind, FaultKind::FailedToSerialize);
        assert!(fault.to_string().starts_with(&format!("the messages of channel {on}: ")), "{fault}");
    };
    // A type beyond the last, a truncated body, a count beyond the maximum.
    messages(fault("two", &[(1, 2), (0, 1), (0, 1), (1, 1), (0, 8), (5, 16), (3, 2), (0, 64)]), 0);
    messages(fault("two", &[(1, 2), (1, 1), (0, 1), (1, 1), (0, 8), (1, 2)]), 1);
    let many = YojimboChannel { max_messages_per_packet: 5, ..Default::default() };
    let schema = Schema::new([("number", Kind::Bits { bits: 1 })]).unwrap();
    let types = vec![MessageType { name: "N".into(), body: Body::Declared(schema) }];
    let channels = vec![ChannelConfig::reliable_ordered()];
    let framing = Framing::Yojimbo(YojimboConfig { channels: vec![many], ..Default::default() });
    let protocol = Protocol::with_framing(types, channels, framing).unwrap();
    let bytes = packet(&[(1, 1), (0, 1), (1, 1), (5, 3), (0, 64), (0, 64)]);
    let mut found = Vec::new();
    let fault_of_many = read(&bytes, &protocol, context(), &mut extent, &mut found).unwrap_err();
    messages(fault_of_many, 0);
    // An id that doesn't follow the one before it.
    let equal = [(1, 2), (0, 1), (0, 1), (1, 1), (1, 8), (5, 16), (0, 6), (5, 32), (0, 64)];
    messages(fault("two", &equal), 0);
    // A message that its own code refuses: it ends too early.
    let own = read_all("two", &packet(&[(1, 2), (0, 1), (0, 1), (1, 1), (0, 8), (5, 16), (0, 2), (1, 16)]));
    let refused = "a message of channel 0 is refused by its own serialize: no";
    assert_eq!(own.unwrap_err(), Fault::messages(refused.into()));
    // A block above the maximum on an unreliable channel, of 4,096 bytes.
    let blob = [(1, 2), (1, 1), (0, 1), (1, 1), (0, 8), (2, 2), (7, 16), (4095, 12)];
    messages(fault("two", &blob), 1);
    let unreliable = "a fragment of a block on channel 1, which is unreliable";
    assert_eq!(fault("two", &[(1, 2), (1, 1), (1, 1), (0, 64)]), Fault::messages(unreliable.into()));
}

#[test]
fn reads_any_bytes_without_a_panic() {
    let mut rng = crate::rng::Rng::seeded(7);
    let recorded: Vec<_> = items(&VECTORS["yojimbo"])
        .iter()
        .map(|v| (v["config"].as_str().unwrap(), hex::decode(v["packet"].as_str().unwrap()).unwrap()))
        .collect();
    for _ in 0..20_000 {
        let (config, mut bytes) = recorded[rng.below(recorded.len() as u64) as usize].clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        bytes.truncate(1 + rng.below(bytes.len() as u64) as usize);
        let _ = read_all(config, &bytes);
    }
}

#[test]
fn the_declared_types_are_what_the_vectors_say() {
    let protocol = protocol("two");
    let bytes = hex::decode(VECTORS["yojimbo"][3]["packet"].as_str().unwrap()).unwrap();
    let found = read_all("two", &bytes).unwrap();
    let Item::Message(text) = &found[1] else { panic!() };
    let Body::Declared(schema) = &protocol.messages()[1].body else { panic!() };
    assert_eq!(schema.fields()[1].load(&text.received.body), Value::Text("message 1 a"));
}
