//! What the targets share: a protocol with every kind of channel, and a server with a client.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use tickwire::endpoint::{ChunkLimits, ClientConfig, Host, PeerHandle, ServerConfig};
use tickwire::netcode::{self, ConnectToken, Key, TokenParams};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Instant, UnixSeconds};
use tickwire::transport::{
    Body, ChannelConfig, ChannelKind, ConnectionConfig, Message, MessageType, Protocol, Resend, VERSION,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema};

/// Messages that wait to be read on a channel that keeps a queue, and of a reliable one.
pub const QUEUE: usize = 64;
pub const WINDOW: usize = 256;
pub const KEYS: usize = 300;

/// The indices of the channels of [`protocol`].
pub const ORDERED: usize = 0;
pub const UNORDERED: usize = 1;
pub const SEQUENCED: usize = 3;
pub const PAYLOAD: usize = 7;
pub const CHANNELS: usize = 9;

pub const PROTOCOL_ID: u64 = 7;
pub const PRIVATE_KEY: Key = [5; 32];
pub const CLIENT_CHUNKS: u64 = 50_000;

static PROTOCOL: LazyLock<Arc<Protocol>> = LazyLock::new(|| protocol_with(Some(ChannelKind::Chunks)));

/// Every kind of channel but chunks, and `last` behind them. The first two types are those of [`number`] and [`blob`].
fn protocol_with(last: Option<ChannelKind>) -> Arc<Protocol> {
    let declared = |name: &str, kinds: &[(&str, Kind)]| MessageType {
        name: name.into(),
        body: Body::Declared(Schema::new(kinds.iter().cloned()).unwrap()),
    };
    let reliable = |ordered, resend| ChannelKind::Reliable {
        ordered,
        receive_window: WINDOW,
        receive_bytes: 1 << 17,
        resend,
    };
    let receive_queue = QUEUE;
    let kinds = [
        reliable(true, Resend::default()),
        reliable(false, Resend::Adaptive { early_copies: 2 }),
        ChannelKind::Unreliable { receive_queue },
        ChannelKind::Sequenced { receive_queue },
        ChannelKind::Redundant { copies: 3, receive_queue },
        ChannelKind::Redundant { copies: 0, receive_queue },
        ChannelKind::Latest { keys: KEYS },
        ChannelKind::Payload { receive_queue },
    ];
    let kinds = kinds.into_iter().chain(last);
    let channel = |kind| ChannelConfig { max_message_bytes: 2000, ..ChannelConfig::new(kind) };
    let types = vec![
        declared("Number", &[("number", Kind::Bits { bits: 32 })]),
        MessageType { name: "Blob".into(), body: Body::Opaque { max_bytes: 65_536 } },
        declared("Nothing", &[]),
        declared(
            "Text",
            &[("text", Kind::Text { max_bytes: 40 }), ("wide", Kind::WideText { max_units: 9 })],
        ),
    ];
    Arc::new(Protocol::new(types, kinds.map(channel).collect()).unwrap())
}

pub fn protocol() -> Arc<Protocol> {
    PROTOCOL.clone()
}

/// As [`protocol`], but its last channel, that of chunks, isn't there.
pub fn protocol_without_chunks() -> Arc<Protocol> {
    protocol_with(None)
}

/// The first bits of every payload: our protocol.
pub fn begin_payload() -> BitWriter {
    let mut writer = BitWriter::new();
    writer.bool(true);
    writer.bits(VERSION.into(), 8);
    writer.bits(protocol().hash(), 64);
    writer
}

pub fn number(number: u32) -> Message {
    let mut writer = BitWriter::new();
    writer.bits(number.into(), 32);
    Message { message_type: 0, encoded: writer.encoded(), block: None }
}

/// An opaque message that begins with its number.
pub fn blob(number: u32, bytes: usize) -> Message {
    let mut writer = BitWriter::new();
    writer.bits(number.into(), 32);
    writer.bytes(&vec![number as u8; bytes]);
    Message { message_type: 1, encoded: writer.encoded(), block: None }
}

pub fn server_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 40_000))
}

pub fn client_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 2], 50_000))
}

pub const START: UnixSeconds = UnixSeconds(1_700_000_000);

pub fn token() -> ConnectToken {
    let params = TokenParams {
        protocol_id: PROTOCOL_ID,
        private_key: &PRIVATE_KEY,
        client_id: 9,
        created: START,
        lifetime: Some(30),
        timeout: Some(5),
        public_addresses: &[server_address()],
        internal_addresses: None,
        user_data: &[1; 256],
        dated: true,
    };
    ConnectToken::generate(&params, &mut Rng::seeded(1)).unwrap()
}

/// The client's handle of its server.
pub const DIALLED: PeerHandle = PeerHandle { slot: 0, generation: 0 };

pub fn server() -> Host {
    server_with(protocol())
}

fn server_with(protocol: Arc<Protocol>) -> Host {
    let mut config = netcode::ServerConfig::new(PROTOCOL_ID, PRIVATE_KEY, 2, vec![server_address()]);
    config.half_open_capacity = 4;
    config.token_history_capacity = 16;
    let config = ServerConfig {
        netcode: config,
        connection: ConnectionConfig::default(),
        chunks: ChunkLimits { memory_bytes: CLIENT_CHUNKS },
    };
    Host::server(config, protocol, &mut Rng::seeded(2), START).unwrap()
}

pub fn client(token: ConnectToken) -> Host {
    client_with(protocol(), token)
}

fn client_with(protocol: Arc<Protocol>, token: ConnectToken) -> Host {
    let config = ClientConfig {
        netcode: netcode::ClientConfig::new(PROTOCOL_ID),
        connection: ConnectionConfig::default(),
        chunks: ChunkLimits { memory_bytes: CLIENT_CHUNKS },
    };
    Host::client(config, protocol, token, Instant::ZERO).unwrap().0
}

/// Sets both up, and lets them exchange packets until they are connected.
pub fn connected() -> (Host, Host) {
    connected_with(protocol())
}

/// As [`connected`], of this protocol.
pub fn connected_with(protocol: Arc<Protocol>) -> (Host, Host) {
    let (mut server, mut client) = (server_with(protocol.clone()), client_with(protocol, token()));
    let mut out = Datagrams::new();
    for _ in 0..3 {
        client.transmit(Instant::ZERO, &mut out);
        let to_server = std::mem::take(&mut out);
        for (_, bytes) in to_server.iter() {
            server.handle_datagram(Instant::ZERO, START, client_address(), &mut bytes.to_vec(), &mut out);
        }
        let to_client = std::mem::take(&mut out);
        for (_, bytes) in to_client.iter() {
            client.handle_datagram(Instant::ZERO, START, server_address(), &mut bytes.to_vec(), &mut out);
        }
    }
    assert!(client.is_connected(DIALLED));
    // From here on, packets are handed over.
    assert_eq!(server.poll_event().iter().chain(&client.poll_event()).count(), 2);
    (server, client)
}
