//! The pinned packets of `STANDARD.md`: writes them, reads them, and refuses bad ones.

use std::sync::{Arc, LazyLock};

use core::time::Duration;

use serde_json::Value as Json;

use super::native::{self, CloseReason, Control, Packet, ReadContext};
use super::refusal::Refusal;
use crate::time::Instant;
use crate::transport::chunks::{Item, Offer, Rejection, Verdict};
use crate::transport::ledger::AckRange;
use crate::transport::ledger::acks::FullHeader;
use crate::transport::message::{Bodies, Message, OpaqueBody, Prefix, Selected};
use crate::transport::packet::fragment::Fragment;
use crate::transport::packet::numbered;
use crate::transport::peer_clock::ReceiveTime;
use crate::transport::protocol::{Body, ChannelConfig, ChannelKind, MessageType, Protocol, Resend};
use crate::wire::{BitSink, BitWriter, Kind, Schema, Value};

static VECTORS: LazyLock<Json> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/native.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
});

fn protocol() -> Arc<Protocol> {
    let declared = |name: &str, field: &str, kind| MessageType {
        name: name.into(),
        body: Body::Declared(Schema::new([(field, kind)]).unwrap()),
    };
    let channel = |kind| ChannelConfig { max_message_bytes: 1000, ..ChannelConfig::new(kind) };
    let reliable = |ordered, receive_window, receive_bytes| {
        channel(ChannelKind::Reliable { ordered, receive_window, receive_bytes, resend: Resend::default() })
    };
    let receive_queue = 1024;
    let types = vec![
        declared("Number", "number", Kind::Bits { bits: 32 }),
        declared("Note", "text", Kind::Text { max_bytes: 20 }),
        MessageType { name: "Odd".into(), body: Body::Opaque { max_bytes: 8 } },
        declared("Map", "cells", Kind::Data { max_bytes: 3000 }),
    ];
    let channels = vec![
        ChannelConfig { max_message_bytes: 4000, ..reliable(true, 1024, 65_536) },
        channel(ChannelKind::Unreliable { receive_queue }),
        reliable(false, 16, 4096),
        channel(ChannelKind::Sequenced { receive_queue }),
        channel(ChannelKind::Redundant { copies: 3, receive_queue }),
        channel(ChannelKind::Latest { keys: 100 }),
        ChannelConfig { max_message_bytes: 8, ..ChannelConfig::new(ChannelKind::Payload { receive_queue }) },
        channel(ChannelKind::Chunks),
        channel(ChannelKind::Unreliable { receive_queue }),
    ];
    Arc::new(Protocol::new(types, channels).unwrap())
}

fn number(json: &Json) -> u64 {
    json.as_u64().unwrap()
}

fn items(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn control(packet: &Json) -> Control {
    let reasons = [CloseReason::Closed, CloseReason::Kicked, CloseReason::Mismatch, CloseReason::Violation];
    Control {
        hello: packet["hello"].as_bool().map(|_| protocol().hash()),
        close: packet["close"].as_u64().map(|reason| reasons[reason as usize - 1]),
        detail: packet["detail"].as_str().map(Into::into),
        ack_delay: packet["ack_delay_units"].as_u64().map(|units| Duration::from_micros(units * 64)),
        received_at: packet["received_at_units"].as_u64().map(ReceiveTime::from_bits),
        ranges: items(&packet["ranges"])
            .iter()
            .map(|range| AckRange { newest: number(&range[0]), oldest: number(&range[1]) })
            .collect(),
        credits: items(&packet["credits"])
            .iter()
            .map(|credit| (number(&credit[0]) as u8, number(&credit[1]) as u16))
            .collect(),
    }
}

/// A message of the vectors: its kind and its value, after its id on reliable channels.
fn message(told: &[Json]) -> Message {
    let mut writer = BitWriter::new();
    let message_type = match told[0].as_str().unwrap() {
        "number" => {
            writer.bits(number(&told[1]), 32);
            0
        }
        "note" => {
            writer.string(told[1].as_str().unwrap(), 20);
            1
        }
        "payload" => {
            let bits = number(&told[1]) as u32;
            if bits > 0 {
                writer.bits(u64::from_str_radix(told[2].as_str().unwrap(), 16).unwrap(), bits);
            }
            0
        }
        _ => {
            writer.bits(number(&told[1]), 3);
            writer.bytes(&hex::decode(told[2].as_str().unwrap()).unwrap());
            2
        }
    };
    Message::new(message_type, writer.encoded())
}

/// A fragment of the vectors, with its message.
fn fragment(told: &Json) -> (usize, Selected) {
    let cells = (number(&told[3]) - 16) / 8;
    let mut writer = BitWriter::new();
    writer.data(&(0..cells).map(|i| (7 * i + cells) as u8).collect::<Vec<_>>(), 3000);
    let message = Message::new(number(&told[2]) as u16, writer.encoded());
    assert_eq!(message.encoded.bits() as u64, number(&told[3]));
    let (prefix, fragment) = (Prefix::Id(number(&told[1]) as u16), Some(number(&told[4]) as u16));
    (number(&told[0]) as usize, Selected { prefix, message, mark: 0, fragment })
}

/// A chunk item of the vectors.
fn chunk_item(told: &Json, arena: &mut Vec<u8>) -> Item {
    let text = |index: usize| told[index].as_str().unwrap();
    let id = number(&told[1]) as u16;
    match text(0) {
        "slice" => {
            let start = arena.len();
            arena.extend(hex::decode(text(3)).unwrap());
            Item::Slice { id, index: number(&told[2]) as u32, bytes: start..arena.len() }
        }
        "offer" => Item::Offer(Offer {
            id,
            size: number(&told[2]),
            slice_bytes: number(&told[3]) as u16,
            hash: hex::decode(text(4)).unwrap().try_into().unwrap(),
            label: text(5).into(),
        }),
        "answer" => Item::Answer {
            id,
            verdict: match number(&told[2]) {
                verdict @ (0 | 6) => Verdict::Accepted {
                    paused: verdict == 6,
                    have: items(&told[3])
                        .iter()
                        .map(|run| (number(&run[0]) as u32, number(&run[1]) as u32))
                        .collect(),
                },
                7 => Verdict::Complete,
                rejection => Verdict::Rejected(Rejection::from_number(rejection as u8)),
            },
        },
        _ => Item::Withdraw { id },
    }
}

fn write(packet: &Json) -> String {
    let protocol = protocol();
    let mut writer = BitWriter::new();
    let control = control(packet);
    native::write_control(&mut writer, &control, &protocol, number(&packet["ack"]));
    if control.close.is_none() {
        for entry in items(&packet["entries"]) {
            let channel = number(&entry[0]) as usize;
            let kind = protocol.channels()[channel].kind;
            if kind.is_chunks() {
                let mut arena = Vec::new();
                let told: Vec<Item> =
                    items(&entry[1]).iter().map(|told| chunk_item(told, &mut arena)).collect();
                native::write_chunk_entry(&mut writer, &protocol, channel, &told, &arena);
                continue;
            }
            let selected = items(&entry[1]).iter().map(|told| {
                let told = items(told);
                let prefix = match kind {
                    ChannelKind::Latest { .. } => Prefix::Key(number(&told[0]) as u16),
                    kind if kind.has_ids() => Prefix::Id(number(&told[0]) as u16),
                    _ => Prefix::None,
                };
                Selected {
                    prefix,
                    message: message(&told[usize::from(prefix != Prefix::None)..]),
                    mark: 0,
                    fragment: None,
                }
            });
            native::write_entry(&mut writer, &protocol, channel, &selected.collect::<Vec<_>>());
        }
        let cut: Vec<(usize, Selected)> = items(&packet["fragments"]).iter().map(fragment).collect();
        native::write_end(&mut writer, &protocol, cut.iter().map(|(channel, cut)| (*channel, cut)));
    }
    hex::encode(writer.into_bytes())
}

fn read(packet: &str, ack: u64) -> Result<Packet, Refusal> {
    let mut read = Packet::default();
    let bytes = hex::decode(packet).unwrap();
    let context = ReadContext { now: Instant::ZERO, sequence: 0, ack, hello_received: true };
    native::read(&bytes, &protocol(), context, &mut read, &mut Bodies::default(), None).map(|()| read)
}

#[test]
fn the_protocol_hash_is_pinned() {
    assert_eq!(format!("{:016x}", protocol().hash()), VECTORS["protocol_hash"].as_str().unwrap());
}

#[test]
fn packets_are_written_as_pinned() {
    for packet in items(&VECTORS["packets"]) {
        assert_eq!(write(packet), packet["packet"].as_str().unwrap(), "{}", packet["name"]);
    }
}

#[test]
fn headers_are_written_and_read_as_pinned() {
    for told in items(&VECTORS["headers"]) {
        let (sequence, newest_sent) = (number(&told["number"]), number(&told["newest_sent"]));
        let (ack, ack_bits) = (number(&told["ack"]), number(&told["ack_bits"]) as u32);
        let header = FullHeader { sequence, ack, ack_bits, skipped: number(&told["skipped"]) as u8 };
        let last_id = told["last_id"].as_u64().map(|id| id as u8);
        let mut written = Vec::new();
        numbered::write(&header, last_id, &mut written);
        assert_eq!(hex::encode(&written), told["header"].as_str().unwrap(), "{}", told["name"]);
        let read = match last_id {
            None => numbered::read(sequence, &written, newest_sent).unwrap().0,
            Some(_) => {
                written.extend([0; 1024]);
                let part = numbered::read_fragment(sequence, &written, newest_sent, 1024, 256).unwrap();
                part.header.unwrap()
            }
        };
        // Without ack bits, the ack means nothing.
        let read = if ack_bits == 0 { FullHeader { ack, ..read } } else { read };
        assert_eq!(read, header, "{}", told["name"]);
    }
    for told in items(&VECTORS["fragments_behind"]) {
        let mut written = Vec::new();
        let (id, last_id) = (number(&told["id"]) as u8, number(&told["last_id"]) as u8);
        let fragment = Fragment { packet: 7, id, last_id, header: None, data: &[] };
        numbered::write_fragment(&fragment, &mut written);
        assert_eq!(hex::encode(written), told["header"].as_str().unwrap());
    }
}

#[test]
fn the_example_of_the_text_is_pinned() {
    let text = include_str!("STANDARD.md").split("## A packet byte by byte").nth(1).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("    ")).take(2).collect();
    let bytes = |line: &str| line.replace(' ', "");
    let mut header = Vec::new();
    numbered::write(&FullHeader { sequence: 0, ack: u64::MAX, ack_bits: 0, skipped: 0 }, None, &mut header);
    assert_eq!(bytes(lines[0]), hex::encode(header));
    let pinned =
        items(&VECTORS["packets"]).iter().find(|it| it["name"] == "the example of the text").unwrap();
    assert_eq!(bytes(lines[1]), pinned["packet"].as_str().unwrap());
    // The widths in its table are those of the packet.
    let widths = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let widths = widths.flat_map(|widths| widths.split(", ").filter_map(|width| width.parse::<usize>().ok()));
    assert_eq!(widths.take(21).sum::<usize>(), 8 * bytes(lines[1]).len() / 2);
}

#[test]
fn packets_are_read_as_told() {
    for packet in items(&VECTORS["packets"]) {
        let read = read(packet["packet"].as_str().unwrap(), number(&packet["ack"])).unwrap();
        assert_eq!(read.control, control(packet), "{}", packet["name"]);
        let mut messages = read.messages.iter();
        for entry in items(&packet["entries"]) {
            if protocol().channels()[number(&entry[0]) as usize].kind.is_chunks() {
                let mut arena = Vec::new();
                let told = items(&entry[1]).iter().map(|told| chunk_item(told, &mut arena));
                assert_eq!(read.chunk_items, told.collect::<Vec<_>>(), "{}", packet["name"]);
                assert_eq!(read.slices, arena);
                continue;
            }
            for told in items(&entry[1]) {
                let mut told = items(told);
                let got = messages.next().unwrap();
                assert_eq!(u64::from(got.channel), number(&entry[0]));
                if let Prefix::Id(prefix) | Prefix::Key(prefix) = got.prefix {
                    assert_eq!(u64::from(prefix), number(&told[0]));
                    told = &told[1..];
                }
                if told[0] == "payload" {
                    let body = OpaqueBody::read(&got.received.body);
                    assert_eq!(body.bits as u64, number(&told[1]));
                    let mut reader = body.reader();
                    let value = if body.bits > 0 { reader.bits(body.bits as u32).unwrap() } else { 0 };
                    assert_eq!(value, u64::from_str_radix(told[2].as_str().unwrap(), 16).unwrap());
                    continue;
                }
                check_body(usize::from(got.received.message_type), &got.received.body, told);
            }
        }
        assert!(messages.next().is_none());
        assert_eq!(read.fragments.len(), items(&packet["fragments"]).len());
        for (got, told) in read.fragments.iter().zip(items(&packet["fragments"])) {
            let bytes = hex::encode(&read.fragment_bytes[got.bytes.clone()]);
            let said = (got.channel, got.id, got.message_type, got.bits, got.index);
            assert_eq!(serde_json::json!([said.0, said.1, said.2, said.3, said.4, bytes]), *told);
        }
    }
}

#[test]
fn fragments_put_together_are_the_message() {
    let with_fragments = items(&VECTORS["packets"]).iter().find(|packet| !packet["fragments"].is_null());
    let (packet, protocol) = (with_fragments.unwrap(), protocol());
    let body: String = items(&packet["fragments"]).iter().map(|told| told[5].as_str().unwrap()).collect();
    let mut body = hex::decode(body).unwrap();
    let context = ReadContext { now: Instant::ZERO, sequence: 0, ack: 40, hello_received: true };
    let read = |body: &[u8], bits| {
        native::read_body(body, bits, 3, &protocol, &context, &mut Bodies::default()).map(|it| it.body)
    };
    let bits = 16 + 8 * 1023;
    let row = read(&body, bits).unwrap();
    let Body::Declared(schema) = &protocol.messages()[3].body else { panic!() };
    assert!(matches!(schema.fields()[0].load(&row), Value::Data(cells) if cells.len() == 1023));
    assert_eq!(read(&body, bits - 1).err(), Some(Refusal::Length));
    assert!(read(&body[..body.len() - 1], bits).is_err());
    body.push(0);
    assert!(read(&body, bits).is_err());
    body[0] ^= 1;
    assert!(read(&body, bits).is_err(), "a length of its own that differs");
}

fn check_body(message_type: usize, body: &[u8], told: &[Json]) {
    match &protocol().messages()[message_type].body {
        Body::Declared(schema) => match schema.fields()[0].load(body) {
            Value::Uint(value) => assert_eq!((told[0].as_str(), value), (Some("number"), number(&told[1]))),
            Value::Text(text) => assert_eq!((told[0].as_str(), Some(text)), (Some("note"), told[1].as_str())),
            other => panic!("{other:?}"),
        },
        Body::Opaque { .. } => {
            let body = OpaqueBody::read(body);
            let mut reader = body.reader();
            assert_eq!(reader.bits(3).unwrap(), number(&told[1]));
            reader.align().unwrap();
            let rest = reader.bytes(reader.remaining_bits() / 8).unwrap();
            assert_eq!((told[0].as_str(), Some(hex::encode(rest).as_str())), (Some("odd"), told[2].as_str()));
        }
    }
}

#[test]
fn what_the_standard_refuses_is_refused() {
    for case in items(&VECTORS["refused"]) {
        assert!(read(case["packet"].as_str().unwrap(), 40).is_err(), "{}", case["why"]);
    }
}

#[test]
fn another_version_or_hash_is_a_mismatch_and_a_missing_hello_a_violation() {
    let hello = VECTORS["packets"][1]["packet"].as_str().unwrap();
    let context = ReadContext { now: Instant::ZERO, sequence: 0, ack: 0xFFFF, hello_received: false };
    let read = |bytes: &[u8]| {
        native::read(bytes, &protocol(), context, &mut Packet::default(), &mut Bodies::default(), None)
    };
    let good = hex::decode(hello).unwrap();
    assert_eq!(read(&good), Ok(()));
    for bit in 1..73 {
        let mut other = good.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(read(&other), Err(Refusal::Mismatch), "bit {bit}");
    }
    assert_eq!(read(&[0]), Err(Refusal::NoHello));
}

#[test]
fn any_bytes_are_read_or_refused_and_what_is_read_stays_small() {
    let mut rng = crate::rng::Rng::seeded(1);
    let packets: Vec<Vec<u8>> = items(&VECTORS["packets"])
        .iter()
        .map(|packet| hex::decode(packet["packet"].as_str().unwrap()).unwrap())
        .collect();
    for n in 0..200_000 {
        let mut bytes = packets[n % packets.len()].clone();
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        bytes.truncate(1 + rng.below(bytes.len() as u64) as usize);
        if let Ok(packet) = read(&hex::encode(&bytes), rng.next_u64()) {
            assert!(packet.messages.len() <= bytes.len() * 8);
        }
    }
}

#[test]
fn a_message_alone_reads_back_and_nothing_may_follow_it() {
    let protocol = protocol();
    let mut writer = BitWriter::new();
    writer.bits(0b1_0110, 5);
    let odd = Message::new(2, writer.encoded());
    let alone = super::write_alone(&protocol, &odd);
    // Two bits of type, seven of length, five of body.
    assert_eq!(super::alone_bits(&protocol, 2, 5), 14);
    assert_eq!(alone, [0b0001_0110, 0b0010_1100]);
    let (message_type, body) = native::read_alone(&protocol, &alone).unwrap();
    let body = OpaqueBody::read(&body);
    assert_eq!((message_type, body.start_bit, body.bits, body.bytes), (2, 1, 5, &[0b0010_1100][..]));
    assert!(native::read_alone(&protocol, &[alone.as_slice(), &[0]].concat()).is_err());
    assert!(native::read_alone(&protocol, &alone[..1]).is_err());
    assert!(native::read_alone(&protocol, &[0b11]).is_err(), "a truncated map");
}
