//! An endpoint, sans-IO: a server that listens, a client that dials, or a host of a peer-to-peer game, which does
//! both.
//!
//! Promises: one peer's bytes, however hostile, don't affect another peer; a stale handle reaches nobody. The owner
//! passes in datagrams, calls [`Host::transmit`] once a tick, and takes the results: all of them at once, events
//! last, as the session above does.
//!
//! The secure connection tells who sent a datagram, which reaches that peer's [`Connection`] and no other. Answers to
//! violations, and everything else outside of the handshake, go to proven addresses only. Events, messages and
//! notifications wait until they are taken, bounded by what the slots can hold: once each slot's client has come and
//! gone, newcomers wait too. If the application decides about newcomers, see [`admission`].

mod admission;
mod end;
mod messages;
mod network;
mod questions;
mod stalled;
mod taking;

use core::hash::Hasher;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::PeerHandle;
use super::arriving::Arriving;
use super::config::{ClientConfig, ServerConfig, sealed};
use super::dial::Dial;
use super::event::Event;
use super::full_channels::DEFAULT_STALLED_TIMEOUT;
use super::goodbye::Goodbye;
use super::inbox::Inbox;
use super::incoming::{ChunkLimits, IncomingChunks};
use super::links::Links;
use super::peers::{Peer, Peers};
use super::stats::{ConnectionCounters, FinalStats};
use crate::limits::ConfigError;
use crate::netcode::{self, ConnectToken};
use crate::rng::{Entropy, Rng};
use crate::store::keyed_hash::WordHasher;
use crate::time::{Duration, Instant, UnixSeconds};
use crate::transport::chunks::ChunkCounters;
use crate::transport::{
    Connection, ConnectionConfig, Notification, PacketCounters, Protocol, Received, Scratch,
};

/// An endpoint: a server, a client, or both.
pub struct Host {
    links: Links,
    peers: Peers,
    protocol: Arc<Protocol>,
    config: ConnectionConfig,
    /// Gives each connection of a listener a [`ConnectionConfig::skip_seed`] of its own.
    skip_seeds: Option<Rng>,
    events: VecDeque<Event>,
    /// Peers whose connection is up but whose event is not taken yet: the application gets nothing else of them
    /// before.
    unannounced: HashSet<PeerHandle>,
    /// Peers that were gone when their first event was taken: their messages come after it, and their last event
    /// after those.
    announced_late: HashSet<PeerHandle>,
    /// Newcomers wait for the application's decision.
    asks_admission: bool,
    /// There is a layer above for a game without a server, which takes [`Host::take_link_events`].
    serves_peers: bool,
    /// Clients that left before the decision, with everything they sent.
    left_undecided: Vec<Peer>,
    /// Messages of connections that ended before the application took them.
    leftovers: Inbox,
    /// Messages that arrived since the last take, and needn't wait in their connections.
    arriving: Arriving,
    /// Ended connections with packets that wait to be read by the application.
    unfinished: Vec<(PeerHandle, Box<Connection>)>,
    /// Notifications of connections that are over.
    notifications: Vec<(PeerHandle, Notification)>,
    /// What the features' channels carried, each with its channel, in order of arrival.
    payloads: Vec<(PeerHandle, usize, Received)>,
    /// Where peers play without a server: all events once more, for the layer above.
    link_events: Vec<Event>,
    /// Packet counts of connections that are over.
    ended: PacketCounters,
    ended_chunks: ChunkCounters,
    /// Until when the driver is taken to be awake between ticks.
    awake_until: Instant,
    /// Memory that calls need, shared by all connections.
    scratch: Scratch,
    incoming: IncomingChunks,
    /// The application ends all connections, and admits no new ones.
    closing: Option<Goodbye>,
    /// How many peers linger.
    lingering: usize,
    /// How long a channel may be full.
    stalled_timeout: Option<Duration>,
    /// Peers that had a full channel at the last check.
    stalled: Vec<PeerHandle>,
    connection_counters: ConnectionCounters,
    /// Final statistics of ended connections whose last event is not taken, and of servers that we dialled.
    final_stats: HashMap<PeerHandle, FinalStats>,
}

/// Randomness of which a digest is kept: as secret as what was drawn, and reproducible from the same source.
struct Digested<'a> {
    from: &'a mut dyn Entropy,
    drawn: WordHasher,
}

impl Entropy for Digested<'_> {
    fn fill(&mut self, out: &mut [u8]) {
        self.from.fill(out);
        self.drawn.write(out);
    }
}

impl Host {
    /// A server with all slots free. It can [`Host::dial`] too.
    ///
    /// # Errors
    ///
    /// When a setting is out of its bounds.
    pub fn server(
        config: ServerConfig,
        protocol: Arc<Protocol>,
        entropy: &mut dyn Entropy,
        unix: UnixSeconds,
    ) -> Result<Self, ConfigError> {
        let slots = config.netcode.max_clients;
        let mut entropy = Digested { from: entropy, drawn: WordHasher::NEW };
        let mut listener = netcode::Server::new(config.netcode, &mut entropy, unix)?;
        listener.rest_slots();
        let mut host =
            Self::over(Links::new(Some(listener), slots), slots, config.connection, config.chunks, protocol)?;
        let mut seeds = Rng::seeded(entropy.drawn.finish());
        host.config.skip_seed = Some(seeds.next_u64());
        host.skip_seeds = Some(seeds);
        Ok(host)
    }

    /// A client that starts dialling at the first [`Host::transmit`], and the handle of its server.
    ///
    /// # Errors
    ///
    /// When a setting is out of its bounds or the token can't be used.
    pub fn client(
        config: ClientConfig,
        protocol: Arc<Protocol>,
        token: ConnectToken,
        now: Instant,
    ) -> Result<(Self, PeerHandle), ConfigError> {
        let netcode = config.netcode;
        let mut host = Self::idle_client(config, protocol)?;
        let server = host.dial(now, netcode, token, 0)?;
        Ok((host, server))
    }

    /// A client that dials nothing yet.
    ///
    /// # Errors
    ///
    /// When a setting is out of its bounds.
    pub fn idle_client(config: ClientConfig, protocol: Arc<Protocol>) -> Result<Self, ConfigError> {
        let seed = config.connection.skip_seed;
        let mut host = Self::over(Links::new(None, 0), 1, config.connection, config.chunks, protocol)?;
        // Each connection skips packet numbers by a seed of its own, so that no server knows another's.
        host.skip_seeds = seed.map(Rng::seeded);
        Ok(host)
    }

    fn over(
        links: Links,
        slots: usize,
        config: ConnectionConfig,
        chunks: ChunkLimits,
        protocol: Arc<Protocol>,
    ) -> Result<Self, ConfigError> {
        // Reports a bad setting now instead of when the first connection comes up.
        Connection::new(&config, protocol.clone())?;
        Ok(Host {
            links,
            peers: Peers::new(slots),
            protocol,
            config: sealed(config),
            skip_seeds: None,
            events: VecDeque::new(),
            unannounced: HashSet::new(),
            announced_late: HashSet::new(),
            asks_admission: false,
            serves_peers: false,
            left_undecided: Vec::new(),
            leftovers: Inbox::new(),
            arriving: Arriving::new(),
            unfinished: Vec::new(),
            notifications: Vec::new(),
            payloads: Vec::new(),
            link_events: Vec::new(),
            ended: PacketCounters::default(),
            ended_chunks: ChunkCounters::default(),
            awake_until: Instant::ZERO,
            scratch: Scratch::default(),
            incoming: IncomingChunks::new(chunks),
            closing: None,
            lingering: 0,
            stalled_timeout: Some(DEFAULT_STALLED_TIMEOUT),
            stalled: Vec::new(),
            connection_counters: ConnectionCounters::default(),
            final_stats: HashMap::new(),
        })
    }

    /// Dials one more server from the next [`Host::transmit`] on; returns its handle. Stores know its chunks by `id`,
    /// and partial chunks are kept under it for a reconnect.
    ///
    /// # Errors
    ///
    /// When a setting is out of its bounds or the token can't be used.
    pub fn dial(
        &mut self,
        now: Instant,
        config: netcode::ClientConfig,
        token: ConnectToken,
        id: u64,
    ) -> Result<PeerHandle, ConfigError> {
        Ok(self.dial_prepared(netcode::Client::new(config, token, now)?, id))
    }

    /// Like [`Host::dial`], for a client that was made before.
    pub fn dial_prepared(&mut self, netcode: netcode::Client, id: u64) -> PeerHandle {
        let is_announced = |peer| !self.events.iter().any(|event| event.peer() == peer);
        let handle = self.links.dial(id, netcode, is_announced);
        // Of an earlier server in the same slot.
        self.final_stats.retain(|peer, _| peer.slot != handle.slot || *peer == handle);
        handle
    }

    /// The protocol that all peers share.
    pub fn protocol(&self) -> &Arc<Protocol> {
        &self.protocol
    }

    /// The listener, if there is one, with its counters of drops.
    pub fn listener(&self) -> Option<&netcode::Server> {
        self.links.listener.as_ref()
    }

    /// A server that is being dialled, or was, until another took its place.
    pub fn dialled(&self, peer: PeerHandle) -> Option<&Dial> {
        self.links.dialled(peer)
    }

    pub fn dials(&self) -> impl Iterator<Item = &Dial> + Clone {
        self.links.dials.iter()
    }
}
