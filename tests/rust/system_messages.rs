//! What peers say of the game: on a channel of its own, and never in the game's inbox.

use std::sync::Arc;

use tickwire::endpoint::Inbox;
use tickwire::session::protocol::peers;
use tickwire::time::Instant;
use tickwire::transport::{
    Body, ChannelConfig, Connection, ConnectionConfig, End, Framing, FramingError, Message, MessageType,
    Protocol, Refusal, SendError, SendOptions, VERSION, Violation, YojimboConfig,
};
use tickwire::wire::{BitSink, BitWriter, Kind, ReadError, Schema};

use crate::fuzz_targets::native;

const RELIABLE: usize = 0;
const UNRELIABLE: usize = 1;
const PEERS: usize = 2;

fn numbered(name: &str) -> MessageType {
    let schema = Schema::new([("number", Kind::Bits { bits: 32 })]).unwrap();
    MessageType { name: name.into(), body: Body::Declared(schema) }
}

fn game() -> Protocol {
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
    Protocol::new(vec![numbered("A"), numbered("B")], channels).unwrap()
}

/// The game's types are 0 and 1; that of peers is 2.
fn protocol() -> Arc<Protocol> {
    Arc::new(game().extended(peers()).unwrap())
}

/// A message as a peer without manners writes it: 2 bits of type, 2 of channel.
fn payload(protocol: &Protocol, channel: usize, message_type: u64) -> Vec<u8> {
    let mut w = BitWriter::new();
    w.bool(true);
    w.bits(VERSION.into(), 8);
    w.bits(protocol.hash(), 64);
    w.bits(0, 4);
    w.bool(true);
    w.bits(channel as u64, 2);
    if channel != UNRELIABLE {
        w.bits(0, 16);
    }
    w.bits(message_type, 2);
    if message_type == 2 {
        // The length of an opaque body.
        w.bits(32, 17);
    }
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
fn what_peers_say_has_a_channel_of_its_own() {
    let type_refused = Err(End::Violation(Violation::Packet(Refusal::Type)));
    for message_type in 0..3 {
        for channel in [RELIABLE, UNRELIABLE, PEERS] {
            let taken = (message_type == 2) == (channel == PEERS);
            let expected = if taken { (Ok(()), 1) } else { (type_refused.clone(), 0) };
            assert_eq!(judge(channel, message_type), expected, "type {message_type} on {channel}");
        }
    }
    let unknown = ReadError::OutOfRange { offset: 3, span: 2 };
    let refused = Err(End::Violation(Violation::Packet(Refusal::Bits(unknown))));
    assert_eq!(judge(RELIABLE, 3), (refused, 0));
}

#[test]
fn a_message_is_not_sent_on_a_channel_that_does_not_take_it() {
    let mut ours = Connection::new(&ConnectionConfig::default(), protocol()).unwrap();
    let mut send = |channel, message_type| {
        let mut writer = BitWriter::new();
        writer.bits(1, 32);
        let message = Message::new(message_type, writer.encoded());
        ours.send(Instant::ZERO, channel, message, SendOptions::default())
    };
    assert_eq!((send(RELIABLE, 0), send(UNRELIABLE, 1), send(PEERS, 2)), (Ok(()), Ok(()), Ok(())));
    let refused = send(UNRELIABLE, 2).unwrap_err();
    assert_eq!(refused, SendError::WrongType { message_type: 2, kind: "unreliable" });
    assert_eq!(refused.to_string(), "messages of type 2 are not for unreliable channels");
    assert!(send(PEERS, 0).is_err());
    let queued: Vec<usize> = (0..3).map(|channel| ours.channel_stats(channel).queued).collect();
    assert_eq!(queued, [1, 1, 1]);
}

#[test]
fn peers_and_a_server_alone_differ() {
    let (alone, ours) = (game(), protocol());
    assert_ne!(alone.hash(), ours.hash());
    assert!(ours.describe().contains("\nsystem peers 5:peers opaque 8192\nchannel "), "{}", ours.describe());
    assert_eq!((alone.type_of("peers"), ours.type_of("peers")), (None, Some(2)));
    assert!(Inbox::with_tables(ours, &[2]).take_tables().0.is_empty(), "it has no table");
    let mut peer = Connection::new(&ConnectionConfig::default(), Arc::new(alone)).unwrap();
    let mut ours = Connection::new(&ConnectionConfig::default(), protocol()).unwrap();
    let mut out = tickwire::store::Packets::new();
    let mut writer = BitWriter::new();
    writer.bits(1, 32);
    peer.send(Instant::ZERO, UNRELIABLE, Message::new(0, writer.encoded()), SendOptions::default()).unwrap();
    peer.transmit(Instant::ZERO, &mut out);
    let (number, packet) = out.iter().next().unwrap();
    assert_eq!(ours.handle_datagram(Instant::ZERO, number, packet), Err(End::Mismatch));
}

#[test]
fn yojimbo_and_too_many_types_have_no_peers() {
    let framing = Framing::Yojimbo(YojimboConfig::default());
    let channels = vec![ChannelConfig::reliable_ordered()];
    let yojimbo = Protocol::with_framing(vec![numbered("A")], channels.clone(), framing).unwrap();
    assert_eq!(yojimbo.extended(peers()).unwrap_err(), FramingError::System { layer: "peers" });
    let full = Protocol::new(vec![numbered("A"); 65_536], channels).unwrap();
    let error = full.extended(peers()).unwrap_err();
    assert_eq!(error.to_string(), "number of message types must be 1 to 65536, not 65537");
}
