//! The same games through sessions: encryption, acks, budgets and keep-alives are the server's too, and datagrams are handed
//! over in memory. Clients take what they get and ack it; they don't look at it.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::clock::timed;
use crate::game::{CHANNEL, Ghosts};
use crate::play::{Cost, Game, Setup};
use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Host, Inbox, PeerHandle, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::rng::Rng;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};
use tickwire::transport::{
    Body, BudgetConfig, ChannelConfig, ChannelKind, ConnectionConfig, MessageType, Notification, Protocol,
};

const PROTOCOL_ID: u64 = 1;
const UNIX: UnixSeconds = UnixSeconds(1000);
/// Of the clients.
const FIRST_PORT: u16 = 1000;

fn protocol() -> Arc<Protocol> {
    let opaque = MessageType { name: "Ghosts".into(), body: Body::Opaque { max_bytes: 1200 } };
    let channel = ChannelConfig::new(ChannelKind::Payload { receive_queue: 4096 });
    Arc::new(Protocol::new(vec![opaque], vec![channel]).expect("a protocol"))
}

pub(crate) struct Hosted {
    game: Ghosts,
    now: Instant,
    server: Host,
    clients: Vec<(Host, SocketAddr)>,
    /// To the server, each with its source, and from it.
    up: Datagrams,
    down: Datagrams,
    inbox: Inbox,
    told: Vec<(PeerHandle, Notification)>,
    wants: Vec<(PeerHandle, usize)>,
}

impl Hosted {
    /// A game whose clients are connected.
    pub(crate) fn new(setup: Setup) -> Self {
        let count = setup.clients;
        let netcode =
            netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, 1000, vec![DEVELOPMENT_ADDRESS]);
        let config =
            ServerConfig { netcode, connection: ConnectionConfig::default(), chunks: ChunkLimits::SERVER };
        let mut server = Host::server(config, protocol(), &mut Rng::seeded(1), UNIX).expect("a server");
        // Enough for all of a tick.
        let budget = BudgetConfig { adaptive: false, ..BudgetConfig::new(1e8, 1e7) };
        server.set_budget(None, budget).expect("a budget");
        let mut hosted = Hosted {
            game: Ghosts::new(Setup { clients: 0, ..setup }),
            now: Instant::ZERO,
            server,
            clients: (0..count).map(client).collect(),
            up: Datagrams::new(),
            down: Datagrams::new(),
            inbox: Inbox::new(),
            told: Vec::new(),
            wants: Vec::new(),
        };
        for _ in 0..60 {
            hosted.exchange();
            hosted.receive();
            hosted.server.transmit(hosted.now, &mut hosted.down);
        }
        let handles: Vec<PeerHandle> = hosted.server.connected().collect();
        assert_eq!(handles.len(), count);
        handles.into_iter().for_each(|handle| hosted.game.join_as(handle, count));
        hosted
    }

    /// A tick of all.
    pub(crate) fn tick(&mut self) -> Cost {
        let mut cost = Cost::default();
        self.game.go_on(true);
        self.exchange();
        timed(&mut cost.server, || {
            self.receive();
            let publisher = self.game.publisher();
            for (handle, told) in self.told.drain(..) {
                publisher.handle_notification(handle, told.tag, told.delivered);
            }
            self.game.begin();
            let publisher = self.game.publisher();
            self.wants.clear();
            self.wants.extend(publisher.wants());
            for (handle, least) in &self.wants {
                let connection = self.server.connection_mut(*handle).expect("a client");
                publisher.choose(*handle, connection.budget_bits(self.now));
                connection.want(CHANNEL, *least).expect("a channel");
            }
            self.server.transmit_with(self.now, &mut self.down, publisher);
        });
        cost.bytes = self.down.iter().map(|(_, datagram)| datagram.len()).sum();
        cost.updates = self.game.updates();
        cost
    }

    /// The clients' part.
    fn exchange(&mut self) {
        self.now += Duration::from_micros(33_333);
        self.up.clear();
        let mut out = Datagrams::new();
        let server = SocketAddr::from(([10, 0, 0, 1], 40_000));
        for (to, datagram) in self.down.iter_mut() {
            let client = &mut self.clients[usize::from(to.port() - FIRST_PORT)].0;
            client.handle_datagram(self.now, UNIX, server, datagram, &mut out);
            out.iter().for_each(|(_, answer)| self.up.push(to, answer));
            out.clear();
        }
        for (client, address) in &mut self.clients {
            self.inbox.game.clear();
            while client.poll_event().is_some() {}
            client.take_messages(&mut self.inbox);
            client.transmit(self.now, &mut out);
            out.iter().for_each(|(_, datagram)| self.up.push(*address, datagram));
            out.clear();
        }
        self.down.clear();
    }

    /// The server receives.
    fn receive(&mut self) {
        for (from, datagram) in self.up.iter_mut() {
            self.server.handle_datagram(self.now, UNIX, from, datagram, &mut self.down);
        }
        self.inbox.game.clear();
        self.server.take_messages(&mut self.inbox);
        while self.server.poll_event().is_some() {}
        self.told.clear();
        self.server.take_notifications(&mut self.told);
    }
}

fn client(index: usize) -> (Host, SocketAddr) {
    let params = TokenParams {
        protocol_id: PROTOCOL_ID,
        private_key: &DEVELOPMENT_KEY,
        client_id: index as u64,
        created: UNIX,
        lifetime: Some(30),
        timeout: Some(10),
        public_addresses: &[SocketAddr::from(([10, 0, 0, 1], 40_000))],
        internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
        user_data: &[0; 256],
        dated: true,
    };
    let token = ConnectToken::generate(&params, &mut Rng::seeded(index as u64)).expect("a token");
    let config = ClientConfig {
        netcode: netcode::ClientConfig::new(PROTOCOL_ID),
        connection: ConnectionConfig::default(),
        chunks: ChunkLimits::CLIENT,
    };
    let client = Host::client(config, protocol(), token, Instant::ZERO).expect("a client").0;
    (client, SocketAddr::from(([10, 0, 1, index as u8], FIRST_PORT + index as u16)))
}
