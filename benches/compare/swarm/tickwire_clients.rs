//! A client of a Tickwire server: the crate's own endpoint on a real socket.
//!
//! Clients that run on machines of their own have a cache of their own. A thousand in one process don't, so they share what
//! they can, or they would slow down the server beside them by what they fetch from memory.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tickwire::driver::udp::UdpConfig;
use tickwire::driver::{Driver, OsEntropy};
use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Host, Inbox, PeerHandle,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::transport::{
    Body, ChannelConfig, ChannelKind, ConnectionConfig, Message, MessageType, Protocol, Resend,
    SendOptions,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema};

use crate::clients::{Client, Counts};
use crate::{ANSWER_BYTES, REQUEST_BYTES};

/// As in `contenders/tickwire_messages.py`, like all of the protocol.
const PROTOCOL_ID: u64 = 0x636F_6D70;
const UNRELIABLE: usize = 0;
const MAX_BYTES: u32 = 256;

/// How messages are declared: as one field of bytes, or as numbers that come in columns.
#[derive(Clone, Copy)]
pub(crate) enum Declared {
    Bytes,
    Numbers,
}

impl Declared {
    fn types(self) -> Vec<MessageType> {
        let declared = |name: &str, fields: Vec<(String, Kind)>| {
            let schema = Schema::new(fields).expect("the fields are within their bounds");
            MessageType { name: name.into(), body: Body::Declared(schema) }
        };
        let numbers =
            |bytes: usize| (0..bytes / 8).map(|i| (format!("f{i}"), Kind::Bits { bits: 64 })).collect();
        match self {
            Declared::Bytes => {
                vec![declared("Blob", vec![("field".into(), Kind::Data { max_bytes: MAX_BYTES })])]
            }
            Declared::Numbers => {
                vec![declared("Request", numbers(REQUEST_BYTES)), declared("Answer", numbers(ANSWER_BYTES))]
            }
        }
    }

    fn request(self) -> Message {
        let mut writer = BitWriter::new();
        match self {
            Declared::Bytes => writer.data(&[7; REQUEST_BYTES], MAX_BYTES),
            Declared::Numbers => (0..REQUEST_BYTES / 8).for_each(|_| writer.bits(7, 64)),
        }
        Message::new(0, writer.encoded())
    }
}

fn protocol(declared: Declared) -> Arc<Protocol> {
    let reliable = ChannelKind::Reliable {
        ordered: true,
        receive_window: 4096,
        receive_bytes: 1 << 20,
        resend: Resend::Adaptive { early_copies: 1 },
    };
    let unreliable = ChannelKind::Unreliable { receive_queue: 64 };
    let channels = vec![ChannelConfig::new(unreliable), ChannelConfig::new(reliable)];
    Arc::new(Protocol::new(declared.types(), channels).expect("the protocol is within its bounds"))
}

/// What all clients share.
pub(crate) struct Shared {
    protocol: Arc<Protocol>,
    request: Message,
    inbox: Inbox,
}

impl Shared {
    pub(crate) fn new(declared: Declared) -> Rc<RefCell<Self>> {
        let (protocol, request) = (protocol(declared), declared.request());
        Rc::new(RefCell::new(Shared { protocol, request, inbox: Inbox::new() }))
    }
}

/// An endpoint and its socket.
pub(crate) struct TickwireClient {
    endpoint: Host,
    server: PeerHandle,
    driver: Driver,
    shared: Rc<RefCell<Shared>>,
}

impl TickwireClient {
    /// A client that dials `server`.
    pub(crate) fn new(server: SocketAddr, index: usize, shared: Rc<RefCell<Shared>>) -> Self {
        // A player needs no 4 MiB, and a thousand of them would take the machine's.
        let buffers = UdpConfig { send_buffer: 1 << 17, receive_buffer: 1 << 17, ..UdpConfig::default() };
        let driver =
            Driver::udp("127.0.0.1:0".parse().expect("an address"), buffers).expect("a port is free");
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &DEVELOPMENT_KEY,
            client_id: index as u64,
            created: driver.unix(),
            lifetime: Some(60),
            timeout: Some(10),
            public_addresses: &[server],
            internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
            user_data: &[0; 256],
            dated: true,
        };
        let token = ConnectToken::generate(&params, &mut OsEntropy).expect("the token is within its bounds");
        let config = ClientConfig {
            netcode: netcode::ClientConfig::new(PROTOCOL_ID),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let protocol = shared.borrow().protocol.clone();
        let dialled = Host::client(config, protocol, token, driver.now());
        let (endpoint, server) = dialled.expect("the defaults are good");
        TickwireClient { endpoint, server, driver, shared }
    }
}

impl Client for TickwireClient {
    fn tick(&mut self, counts: &mut Counts) {
        let TickwireClient { endpoint, server, driver, shared } = self;
        let Shared { request, inbox, .. } = &mut *shared.borrow_mut();
        driver
            .receive(|now, unix, from, datagram, out| {
                endpoint.handle_datagram(now, unix, from, datagram, out);
            })
            .expect("a socket on this machine goes on");
        inbox.game.clear();
        while endpoint.poll_event().is_some() {}
        endpoint.take_messages(inbox);
        let whole = |record: &&_| inbox.game.body(record).len() >= ANSWER_BYTES;
        counts.received += inbox.game.records.iter().filter(whole).count() as u64;
        if endpoint.is_connected(*server) {
            let sent =
                endpoint.send(driver.now(), *server, UNRELIABLE, request.clone(), SendOptions::default());
            counts.sent += u64::from(sent.is_ok());
        }
        driver.transmit(|now, out| endpoint.transmit(now, out));
    }

    fn connected(&self) -> bool {
        self.endpoint.is_connected(self.server)
    }
}
