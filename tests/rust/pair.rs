//! Two connections and the links between them, in virtual time.

use std::sync::Arc;

use tickwire::endpoint::PeerHandle;
use tickwire::netsim::{Conditions, Link};
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{
    Body, ChannelConfig, Connection, ConnectionConfig, Message, MessageType, OpaqueBody, Protocol, Received,
    SendError, SendOptions,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema, Value};

pub(crate) const RELIABLE: usize = 0;
pub(crate) const UNRELIABLE: usize = 1;

/// The client's handle of its server.
pub(crate) const DIALLED: PeerHandle = PeerHandle { slot: 0, generation: 0 };

/// Message type 0 is declared: a number. Message type 1 is opaque: a number and bytes made from it.
pub(crate) fn protocol_with(channels: Vec<ChannelConfig>) -> Arc<Protocol> {
    let schema = Schema::new([("number", Kind::Bits { bits: 32 })]).unwrap();
    let types = vec![
        MessageType { name: "Number".into(), body: Body::Declared(schema) },
        MessageType { name: "Blob".into(), body: Body::Opaque { max_bytes: 65_536 } },
    ];
    Arc::new(Protocol::new(types, channels).unwrap())
}

pub(crate) fn protocol() -> Arc<Protocol> {
    protocol_with(vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()])
}

pub(crate) fn number(number: u32) -> Message {
    let mut writer = BitWriter::new();
    writer.bits(number.into(), 32);
    Message::new(0, writer.encoded())
}

/// A message of `bytes` bytes that depend on its number.
pub(crate) fn blob(number: u32, bytes: usize) -> Message {
    let mut writer = BitWriter::new();
    writer.bits(number.into(), 32);
    // An odd number of bits before the align, so that a message's position matters.
    writer.bits(u64::from(number) & 0x1F, 5);
    writer.bytes(&content(number, bytes));
    Message::new(1, writer.encoded())
}

fn content(number: u32, bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (number.wrapping_mul(31).wrapping_add(i * 7) >> 3) as u8).collect()
}

/// The number of a message, after checking that its content is that number's.
pub(crate) fn check(protocol: &Protocol, received: &Received) -> u32 {
    match &protocol.messages()[usize::from(received.message_type)].body {
        Body::Declared(schema) => match schema.fields()[0].load(&received.body) {
            Value::Uint(number) => number as u32,
            other => panic!("{other:?}"),
        },
        Body::Opaque { .. } => {
            let body = OpaqueBody::read(&received.body);
            let mut reader = body.reader();
            let number = reader.bits(32).unwrap() as u32;
            assert_eq!(reader.bits(5).unwrap(), u64::from(number) & 0x1F);
            reader.align().unwrap();
            let bytes = reader.remaining_bits() / 8;
            assert_eq!(reader.bytes(bytes).unwrap(), content(number, bytes));
            reader.finish().unwrap();
            number
        }
    }
}

/// What netcode, UDP and IPv4 add to a datagram.
const OVERHEAD_BYTES: usize = 25 + 28;

pub(crate) struct Pair {
    pub(crate) now: Instant,
    /// Bytes on the wire that each end sent.
    pub(crate) sent_bytes: [usize; 2],
    pub(crate) protocol: Arc<Protocol>,
    pub(crate) ends: [Connection; 2],
    pub(crate) links: [Link<(u64, Vec<u8>)>; 2],
    pub(crate) tick_time: Duration,
    packets: Packets,
}

impl Pair {
    pub(crate) fn new(protocol: Arc<Protocol>, conditions: Conditions, seed: u64) -> Self {
        Self::with_config(&ConnectionConfig::default(), protocol, conditions, seed)
    }

    pub(crate) fn with_config(
        config: &ConnectionConfig,
        protocol: Arc<Protocol>,
        conditions: Conditions,
        seed: u64,
    ) -> Self {
        let end = |seed| {
            let config = ConnectionConfig { skip_seed: Some(seed), ..config.clone() };
            Connection::new(&config, protocol.clone()).unwrap()
        };
        Pair {
            now: Instant::ZERO,
            sent_bytes: [0; 2],
            ends: [end(seed), end(!seed)],
            links: [Link::new(conditions, seed).unwrap(), Link::new(conditions, seed + 1_000_003).unwrap()],
            tick_time: Duration::from_micros(16_667),
            packets: Packets::new(),
            protocol,
        }
    }

    /// One tick of both ends: receive, then send. `links[i]` carries what `ends[i]` sends.
    pub(crate) fn tick(&mut self) {
        self.now += self.tick_time;
        for i in 0..2 {
            while let Some((number, packet)) = self.links[1 - i].poll(self.now) {
                self.ends[i].handle_datagram(self.now, number, &packet).unwrap();
            }
            self.ends[i].transmit(self.now, &mut self.packets);
            for (number, packet) in self.packets.iter() {
                assert!(packet.len() <= 1200, "{} bytes", packet.len());
                self.sent_bytes[i] += packet.len() + OVERHEAD_BYTES;
                self.links[i].send(self.now, (number, packet.to_vec()), packet.len());
            }
            self.packets.clear();
        }
    }

    pub(crate) fn ticks(&mut self, count: usize) {
        (0..count).for_each(|_| self.tick());
    }

    pub(crate) fn send(&mut self, end: usize, channel: usize, message: Message) -> Result<(), SendError> {
        self.ends[end].send(self.now, channel, message, SendOptions::default())
    }

    /// The numbers of all messages that an end can read on a channel.
    pub(crate) fn take(&mut self, end: usize, channel: usize) -> Vec<u32> {
        std::iter::from_fn(|| self.ends[end].poll_received(channel))
            .map(|received| check(&self.protocol, &received))
            .collect()
    }
}
