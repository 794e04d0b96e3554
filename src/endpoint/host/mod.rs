//! An endpoint, sans-IO: a server that listens, a client that dials, or a host of a peer-to-peer game, which does both.
//!
//! Promises: one peer's bytes, however hostile, touch no other peer; a stale handle reaches nobody.
//! Whoever owns it gives it datagrams, calls [`Host::transmit`] once a tick, and takes what came: all of it at once, events
//! last, as the session above does.
//!
//! Who sent a datagram is known from the secure connection, and it reaches that peer's [`Connection`] and no other. An
//! answer to a violation, and all else that is not the handshake, goes to proven addresses. Events, messages and fates
//! wait until they are taken, and grow until then by what the slots can hold: when each slot's client has come and gone,
//! newcomers wait too. Where the application decides about newcomers, see [`admission`].

mod admission;
mod chunks;
mod end;
mod messages;
mod network;
mod questions;
mod stalled;
mod taking;

use core::hash::Hasher;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::DefaultHasher;
use std::sync::Arc;

use super::arriving::Arriving;
use super::config::{ClientConfig, ServerConfig, sealed};
use super::dial::Dial;
use super::error::ConfigError;
use super::event::Event;
use super::goodbye::Goodbye;
use super::handle::PeerHandle;
use super::inbox::Inbox;
use super::incoming::{ChunkLimits, IncomingChunks};
use super::links::Links;
use super::peers::{Peer, Peers};
use super::stalled::DEFAULT_STALLED_TIMEOUT;
use super::stats::{ConnectionCounters, FinalStats};
use crate::netcode::{self, ConnectToken};
use crate::rng::{Entropy, Rng};
use crate::store::Packets;
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
    /// How many events may wait before newcomers do.
    max_events: usize,
    events: VecDeque<Event>,
    /// Whose connection came up, which the application was not told of: it gets nothing else of them either.
    untold: HashSet<PeerHandle>,
    /// Who was gone when it was told of their coming: what they said waited for that, and their end waits until it is taken.
    told_late: HashSet<PeerHandle>,
    /// Newcomers wait until the application has decided about them.
    asks_admission: bool,
    /// There is a layer above for a game without a server.
    serves_peers: bool,
    /// Clients that left before the application decided, with all that they sent.
    left_undecided: Vec<Peer>,
    /// Messages of connections that ended before the application took them.
    leftovers: Inbox,
    /// Messages that came since the application took the last ones, and needn't wait in their connections.
    arriving: Arriving,
    /// Connections that ended with packets that wait to be read.
    unfinished: Vec<(PeerHandle, Box<Connection>)>,
    /// Fates of messages of connections that are over.
    notifications: Vec<(PeerHandle, Notification)>,
    /// What ghosts' channels carried, in the order in which it came.
    ghost_payloads: Vec<(PeerHandle, Received)>,
    /// Likewise, what the channel of inputs and of the server's time carried.
    time_payloads: Vec<(PeerHandle, Received)>,
    /// Likewise, what the channels of peers carried, each with its channel.
    peer_payloads: Vec<(PeerHandle, usize, Received)>,
    /// Where peers play without a server: all events once more, for the layer above.
    link_events: Vec<Event>,
    /// Packet counts of connections that are over.
    ended: PacketCounters,
    ended_chunks: ChunkCounters,
    packets: Packets,
    // Of all connections.
    scratch: Scratch,
    incoming: IncomingChunks,
    /// The application wants all connections to end, and no new ones.
    closing: Option<Goodbye>,
    /// How many peers are about to end.
    lingering: usize,
    /// How long a channel may be full.
    stalled_timeout: Option<Duration>,
    /// Peers with a channel that was full when it was last looked.
    stalled: Vec<PeerHandle>,
    connection_counters: ConnectionCounters,
    /// How those were doing when they ended whose last event is not taken, and servers that we dialled.
    final_stats: HashMap<PeerHandle, FinalStats>,
}

/// Randomness of which a digest is kept: as secret as what was drawn, and the same when the same is drawn again.
struct Digested<'a> {
    from: &'a mut dyn Entropy,
    drawn: DefaultHasher,
}

impl Entropy for Digested<'_> {
    fn fill(&mut self, out: &mut [u8]) {
        self.from.fill(out);
        self.drawn.write(out);
    }
}

impl Host {
    /// A server with all its slots free. It can [`Host::dial`] as well.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn server(
        config: ServerConfig,
        protocol: Arc<Protocol>,
        entropy: &mut dyn Entropy,
        unix: UnixSeconds,
    ) -> Result<Self, ConfigError> {
        let slots = config.netcode.max_clients;
        let mut entropy = Digested { from: entropy, drawn: DefaultHasher::new() };
        let mut listener = netcode::Server::new(config.netcode, &mut entropy, unix)?;
        listener.rest_slots();
        let mut host =
            Self::over(Links::new(Some(listener), slots), slots, config.connection, config.chunks, protocol)?;
        let mut seeds = Rng::seeded(entropy.drawn.finish());
        host.config.skip_seed = Some(seeds.next_u64());
        host.skip_seeds = Some(seeds);
        Ok(host)
    }

    /// A client that begins to dial at the first [`Host::transmit`], and the handle of its server.
    ///
    /// # Errors
    /// When a setting is out of its bounds or the token can't be used.
    pub fn client(
        config: ClientConfig,
        protocol: Arc<Protocol>,
        token: ConnectToken,
        now: Instant,
    ) -> Result<(Self, PeerHandle), ConfigError> {
        let seed = config.connection.skip_seed;
        let mut host = Self::over(Links::new(None, 0), 1, config.connection, config.chunks, protocol)?;
        // The first connection leaves out those of its own seed, and the ones after it others: no server may know them.
        host.skip_seeds = seed.map(Rng::seeded);
        let server = host.dial(now, config.netcode, token, 0)?;
        Ok((host, server))
    }

    fn over(
        links: Links,
        slots: usize,
        config: ConnectionConfig,
        chunks: ChunkLimits,
        protocol: Arc<Protocol>,
    ) -> Result<Self, ConfigError> {
        // Finds a bad setting now instead of when the first connection comes up.
        Connection::new(&config, protocol.clone())?;
        Ok(Host {
            links,
            peers: Peers::new(slots),
            protocol,
            config: sealed(config),
            skip_seeds: None,
            max_events: 2 * slots,
            events: VecDeque::new(),
            untold: HashSet::new(),
            told_late: HashSet::new(),
            asks_admission: false,
            serves_peers: false,
            left_undecided: Vec::new(),
            leftovers: Inbox::new(),
            arriving: Arriving::new(),
            unfinished: Vec::new(),
            notifications: Vec::new(),
            ghost_payloads: Vec::new(),
            time_payloads: Vec::new(),
            peer_payloads: Vec::new(),
            link_events: Vec::new(),
            ended: PacketCounters::default(),
            ended_chunks: ChunkCounters::default(),
            packets: Packets::new(),
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

    /// Dials one more server from the next [`Host::transmit`] on; gives its handle. `id` is what stores know its chunks by,
    /// and what is kept of them for a reconnect.
    ///
    /// # Errors
    /// When a setting is out of its bounds or the token can't be used.
    pub fn dial(
        &mut self,
        now: Instant,
        config: netcode::ClientConfig,
        token: ConnectToken,
        id: u64,
    ) -> Result<PeerHandle, ConfigError> {
        let netcode = netcode::Client::new(config, token, now)?;
        // It has two, and must not keep clients out by them.
        self.max_events += 2;
        let is_told = |peer| !self.events.iter().any(|event| event.peer() == peer);
        let handle = self.links.dial(id, netcode, is_told);
        // Another's, whose place this is.
        self.final_stats.retain(|peer, _| peer.slot != handle.slot || *peer == handle);
        Ok(handle)
    }

    /// What all peers share.
    pub fn protocol(&self) -> &Arc<Protocol> {
        &self.protocol
    }

    /// What listens, if anything does: it counts what it drops, by name.
    pub fn listener(&self) -> Option<&netcode::Server> {
        self.links.listener.as_ref()
    }

    /// A server that is dialled, or was until another was dialled in its place.
    pub fn dialled(&self, peer: PeerHandle) -> Option<&Dial> {
        self.links.dialled(peer)
    }

    pub fn dials(&self) -> impl Iterator<Item = &Dial> + Clone {
        self.links.dials()
    }

    /// Lends memory to a client, to be taken back by another call of this before another one gets it: as
    /// [`Connection::swap_scratch`], for many clients in one process.
    pub fn swap_scratch(&mut self, scratch: &mut Scratch) {
        core::mem::swap(&mut self.scratch, scratch);
    }
}
