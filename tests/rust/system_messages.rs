//! Messages of the layers above: beside the game's on its channels, and never in its inbox.

use std::sync::Arc;

use tickwire::endpoint::{Event, Host, Inbox, Messages, PeerHandle, Record};
use tickwire::netcode::packet::{Kind as PacketKind, seal};
use tickwire::store::Datagrams;
use tickwire::time::Instant;
use tickwire::transport::{
    Body, ChannelConfig, ChannelKind, Connection, ConnectionConfig, End, Framing, FramingError, Layer,
    Message, MessageType, Owner, Protocol, Refusal, SendError, SendOptions, VERSION, Violation,
    YojimboConfig,
};
use tickwire::wire::{BitSink, BitWriter, Kind, ReadError, Schema};

use crate::fuzz_targets::{native, world};

const RELIABLE: usize = 0;
const UNRELIABLE: usize = 1;
const LATEST: usize = 2;

fn numbered(name: &str) -> MessageType {
    let schema = Schema::new([("number", Kind::Bits { bits: 32 })]).unwrap();
    MessageType { name: name.into(), body: Body::Declared(schema) }
}

/// Of the game's types: 0 and 1; of the ghosts': 2; of calls: 3 and 4. Lockstep has none.
fn protocol() -> Arc<Protocol> {
    let latest = ChannelConfig::new(ChannelKind::Latest { keys: 4 });
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable(), latest];
    let protocol = Protocol::new(vec![numbered("A"), numbered("B")], channels).unwrap();
    let protocol = protocol.with_system(Layer::Calls, vec![numbered("Fire"), numbered("Jump")]).unwrap();
    Arc::new(protocol.with_system(Layer::Ghosts, vec![numbered("Scope")]).unwrap())
}

fn message(message_type: u16, number: u32) -> Message {
    let mut writer = BitWriter::new();
    writer.bits(number.into(), 32);
    Message::new(message_type, writer.encoded())
}

/// A message as a peer without manners writes it: 3 bits of type, 2 of channel.
fn payload(protocol: &Protocol, channel: usize, message_type: u64) -> Vec<u8> {
    let mut w = BitWriter::new();
    w.bool(true);
    w.bits(VERSION.into(), 8);
    w.bits(protocol.hash(), 64);
    w.bits(0, 4);
    w.bool(true);
    w.bits(channel as u64, 2);
    match channel {
        RELIABLE => w.bits(0, 16),
        LATEST => w.bits(1, 2),
        _ => {}
    }
    w.bits(message_type, 3);
    w.bits(5, 32);
    w.bits(0, 2);
    w.into_bytes()
}

fn judge(channel: usize, message_type: u64) -> (Result<(), End>, usize) {
    let protocol = protocol();
    let mut receiver = Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
    let payload = payload(&protocol, channel, message_type);
    let result = native::deliver(&mut native::Peer::default(), &mut receiver, Instant::ZERO, &payload);
    (result, (0..3).filter_map(|channel| receiver.poll_received(channel)).count())
}

#[test]
fn a_peer_can_send_what_its_channel_takes_and_nothing_else() {
    let type_refused = Err(End::Violation(Violation::Packet(Refusal::Type)));
    for (message_type, taken) in [
        (0, [true; 3]),
        (1, [true; 3]),
        (2, [true, false, false]),
        (3, [true, true, false]),
        (4, [true, true, false]),
    ] {
        for (channel, taken) in taken.into_iter().enumerate() {
            let expected = if taken { (Ok(()), 1) } else { (type_refused.clone(), 0) };
            assert_eq!(judge(channel, message_type), expected, "type {message_type} on {channel}");
        }
    }
    for (message_type, channel) in [(5, RELIABLE), (6, UNRELIABLE), (7, LATEST)] {
        let unknown = ReadError::OutOfRange { offset: message_type, span: 4 };
        let refused = Err(End::Violation(Violation::Packet(Refusal::Bits(unknown))));
        assert_eq!(judge(channel, message_type), (refused, 0));
    }
}

#[test]
fn a_message_is_not_sent_on_a_channel_that_does_not_take_it() {
    let mut ours = Connection::new(&ConnectionConfig::default(), protocol()).unwrap();
    let mut send =
        |channel, kind| ours.send(Instant::ZERO, channel, message(kind, 1), SendOptions::default());
    assert_eq!((send(RELIABLE, 2), send(UNRELIABLE, 3), send(LATEST, 0)), (Ok(()), Ok(()), Ok(())));
    let refused = send(UNRELIABLE, 2).unwrap_err();
    assert_eq!(refused, SendError::WrongType { message_type: 2, kind: "unreliable" });
    assert_eq!(refused.to_string(), "messages of type 2 are not for unreliable channels");
    assert!(send(LATEST, 3).is_err() && send(LATEST, 2).is_err());
    let queued: Vec<usize> = (0..3).map(|channel| ours.channel_stats(channel).queued).collect();
    assert_eq!(queued, [1, 1, 1]);
}

#[test]
fn sides_of_which_one_has_a_layer_more_differ() {
    let game = Protocol::new(vec![numbered("A"), numbered("B")], protocol().channels().to_vec()).unwrap();
    let hashes = [&game, &*protocol()].map(Protocol::hash);
    assert_ne!(hashes[0], hashes[1]);
    let mut peer = Connection::new(&ConnectionConfig::default(), Arc::new(game)).unwrap();
    let mut ours = Connection::new(&ConnectionConfig::default(), protocol()).unwrap();
    let mut out = tickwire::store::Packets::new();
    peer.send(Instant::ZERO, UNRELIABLE, message(0, 1), SendOptions::default()).unwrap();
    peer.transmit(Instant::ZERO, &mut out);
    let (number, packet) = out.iter().next().unwrap();
    assert_eq!(ours.handle_datagram(Instant::ZERO, number, packet), Err(End::Mismatch));
    let own = |layer, name| {
        let with = Protocol::new(vec![numbered("A")], protocol().channels().to_vec()).unwrap();
        with.with_system(layer, vec![numbered(name)]).unwrap().hash()
    };
    assert_ne!(own(Layer::Calls, "Fire"), own(Layer::Ghosts, "Fire"), "whose it is must agree too");
    assert_ne!(own(Layer::Calls, "Fire"), own(Layer::Calls, "Jump"));
}

#[test]
fn yojimbo_and_too_many_types_have_no_layers() {
    let framing = Framing::Yojimbo(YojimboConfig::default());
    let channels = vec![ChannelConfig::reliable_ordered()];
    let yojimbo = Protocol::with_framing(vec![numbered("A")], channels.clone(), framing).unwrap();
    let error = yojimbo.with_system(Layer::Calls, vec![numbered("Fire")]).unwrap_err();
    assert_eq!(error, FramingError::System { layer: "calls" });
    let full = Protocol::new(vec![numbered("A"); 65_536], channels.clone()).unwrap();
    let error = full.with_system(Layer::Calls, vec![numbered("Fire")]).unwrap_err();
    assert_eq!(error.to_string(), "number of message types must be 1 to 65536, not 65537");
    let none = MessageType { name: "X".into(), body: Body::Opaque { max_bytes: 0 } };
    let protocol = Protocol::new(vec![numbered("A")], channels).unwrap();
    assert!(protocol.with_system(Layer::Calls, vec![none]).is_err());
}

/// A server of the world's protocol with types of layers, and its client's key and handle.
fn connected() -> (Host, [u8; 32], Arc<Protocol>) {
    let game = world::protocol();
    let protocol = Protocol::new(game.messages().to_vec(), game.channels().to_vec()).unwrap();
    let protocol = protocol.with_system(Layer::Calls, vec![numbered("Fire")]).unwrap();
    let protocol = Arc::new(protocol.with_system(Layer::Lockstep, vec![numbered("Turn")]).unwrap());
    let (server, _) = world::connected_with(protocol.clone());
    let token = world::token().to_bytes();
    (server, token[1100..1132].try_into().unwrap(), protocol)
}

#[test]
fn each_layer_gets_its_own_messages_and_the_game_none_of_them() {
    let (mut server, key, protocol) = connected();
    let mut out = Datagrams::new();
    let now = Instant::from_millis(100);
    let mut deliver = |server: &mut Host, sequence: u16, types: &[u64]| {
        let mut w = BitWriter::new();
        w.bool(true);
        w.bits(VERSION.into(), 8);
        w.bits(protocol.hash(), 64);
        w.bits(0, 4);
        w.bool(true);
        w.bits(world::ORDERED as u64, 4);
        for (n, kind) in types.iter().enumerate() {
            if n == 0 {
                w.bits(u64::from(sequence - 50) * 8, 16);
            } else {
                w.int_relative(0, 1);
            }
            // 4 types of the game, Fire, Turn.
            w.bits(*kind, 3);
            w.bits(n as u64, 32);
            w.bool(n + 1 < types.len());
        }
        w.bool(false);
        let number = 1000 + u64::from(sequence);
        let payload = native::datagram(&native::ackless(number), &w.into_bytes());
        let mut datagram = Vec::new();
        seal(&mut datagram, world::PROTOCOL_ID, &key, number, PacketKind::Payload, &payload);
        server.handle_datagram(now, world::START, world::client_address(), &mut datagram, &mut out);
    };
    // Some are left over by a client that is gone by then.
    deliver(&mut server, 50, &[0, 4, 0, 5, 4, 5, 5, 0]);
    assert!(server.has_news());
    let mut inbox = Inbox::with_tables(protocol.clone(), &[4]);
    server.take_messages(&mut inbox);
    let of = |records: &[Record]| records.iter().map(|record| record.message_type).collect::<Vec<_>>();
    let numbers = |messages: &Messages| {
        let first = |record: &Record| messages.body(record)[0];
        messages.records().iter().map(first).collect::<Vec<_>>()
    };
    assert_eq!(of(inbox.records()), [0, 0, 0]);
    let calls = inbox.take_system(Layer::Calls);
    assert_eq!((of(calls.records()), numbers(&calls)), (vec![4, 4], vec![1, 4]));
    assert!(inbox.take_system(Layer::Ghosts).records().is_empty());
    assert!(inbox.take_tables().0.is_empty(), "a layer's type has no table");
    assert!(inbox.take_system(Layer::Calls).records().is_empty());
    assert_eq!(numbers(&inbox.clone().take_system(Layer::Lockstep)), [3, 5, 6]);
    inbox.clear();
    assert!(inbox.take_system(Layer::Lockstep).records().is_empty());

    // What waits when a connection ends comes with the next inbox, each to its own.
    deliver(&mut server, 51, &[4, 5, 0, 4]);
    let client: PeerHandle = server.connected().next().unwrap();
    deliver(&mut server, 52, &[7]);
    assert!(!server.is_connected(client));
    assert!(
        std::iter::from_fn(|| server.poll_event()).any(|event| matches!(event, Event::Disconnected { .. }))
    );
    server.take_messages(&mut inbox);
    assert_eq!(of(inbox.records()), [0]);
    assert_eq!(numbers(&inbox.take_system(Layer::Calls)), [0, 3]);
    assert_eq!(numbers(&inbox.take_system(Layer::Lockstep)), [1]);
    assert_eq!(protocol.owner(5), Owner::System(Layer::Lockstep));
}
