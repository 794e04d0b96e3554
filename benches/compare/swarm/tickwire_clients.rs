//! A client of a Tickwire server: the crate's own endpoint on a real socket.

use std::net::SocketAddr;
use std::sync::Arc;

use tickwire::driver::udp::UdpConfig;
use tickwire::driver::{Driver, OsEntropy};
use tickwire::endpoint::{
    ChunkLimits, Client as Endpoint, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Inbox,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::transport::{
    Body, ChannelConfig, ChannelKind, ConnectionConfig, Message, MessageType, Protocol, Resend, SendOptions,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema};

use crate::clients::{Client, Counts};
use crate::{ANSWER_BYTES, REQUEST_BYTES};

/// As in `contenders/tickwire_messages.py`.
const PROTOCOL_ID: u64 = 0x636F_6D70;
const UNRELIABLE: usize = 0;
const MAX_BYTES: u32 = 256;

fn protocol() -> Arc<Protocol> {
    let fields = [("field".to_owned(), Kind::Data { max_bytes: MAX_BYTES })];
    let schema = Schema::new(fields).expect("the field is within its bounds");
    let reliable = ChannelKind::Reliable {
        ordered: true,
        receive_window: 4096,
        receive_bytes: 1 << 20,
        resend: Resend::Adaptive { early_copies: 1 },
    };
    let unreliable = ChannelKind::Unreliable { receive_queue: 64 };
    let types = vec![MessageType { name: "Blob".into(), body: Body::Declared(schema) }];
    let channels = vec![ChannelConfig::new(unreliable), ChannelConfig::new(reliable)];
    Arc::new(Protocol::new(types, channels).expect("the protocol is within its bounds"))
}

/// Encodes a message of `bytes` bytes.
fn message(bytes: usize) -> Message {
    let mut writer = BitWriter::new();
    writer.data(&vec![7; bytes], MAX_BYTES);
    Message { message_type: 0, encoded: writer.encoded() }
}

/// An endpoint and its socket.
pub(crate) struct TickwireClient {
    endpoint: Endpoint,
    driver: Driver,
    inbox: Inbox,
    request: Message,
}

impl TickwireClient {
    /// A client that dials `server`.
    pub(crate) fn new(server: SocketAddr, index: usize) -> Self {
        // A player needs no 4 MiB, and a thousand of them would take the machine's.
        let buffers = UdpConfig { send_buffer: 1 << 17, receive_buffer: 1 << 17, ..UdpConfig::default() };
        let driver = Driver::udp("127.0.0.1:0".parse().expect("an address"), buffers).expect("a port is free");
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
        };
        let token = ConnectToken::generate(&params, &mut OsEntropy).expect("the token is within its bounds");
        let config = ClientConfig {
            netcode: netcode::ClientConfig::new(PROTOCOL_ID),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let endpoint = Endpoint::new(config, protocol(), token, driver.now()).expect("the defaults are good");
        TickwireClient { endpoint, driver, inbox: Inbox::new(), request: message(REQUEST_BYTES) }
    }
}

impl Client for TickwireClient {
    fn tick(&mut self, counts: &mut Counts) {
        let TickwireClient { endpoint, driver, inbox, request } = self;
        driver
            .receive(|now, _, from, datagram, out| endpoint.handle_datagram(now, from, datagram, out))
            .expect("a socket on this machine goes on");
        inbox.clear();
        endpoint.take_messages(inbox);
        let whole = |record: &&_| inbox.body(record).len() >= ANSWER_BYTES;
        counts.received += inbox.records().iter().filter(whole).count() as u64;
        if endpoint.is_connected() {
            let sent = endpoint.send(driver.now(), UNRELIABLE, request.clone(), SendOptions::default());
            counts.sent += u64::from(sent.is_ok());
        }
        driver.transmit(|now, out| endpoint.transmit(now, out));
    }

    fn connected(&self) -> bool {
        self.endpoint.is_connected()
    }
}
