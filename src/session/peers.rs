//! Peers without a server in a session: the mesh over the endpoint's links, and the game core whose packets players
//! exchange.
//!
//! Promises: the mesh hears of links at once, whatever the application does; the application hears of a player before
//! that player's messages, and of its end after them. Nothing from a peer that isn't a player reaches the application
//! or the core.
//! Refuses messages that the peer may not send: its connection ends.

use core::net::SocketAddr;
use std::any::Any;

use super::feature::{Feature, Moment};
use super::lockstep_worlds::LockstepWorlds;
use super::peer_core::{Carried, CoreLink};
use super::peer_links::{OUT, link_end, pass_of, ticket_in};
use super::protocol::{CORE, PEERS};
use crate::endpoint::{Detail, Event, Goodbye, Host, PeerHandle};
use crate::mesh::{
    self, Action, Happening, Identity, LeaveReason, LinkEnd, Mesh, Message, Ticket, bit, is_dialable,
};
use crate::netcode::{self, ConnectToken, Key, TOKEN_BYTES};
use crate::rendezvous::member_address;
use crate::rng::Entropy;
use crate::store::Datagrams;
use crate::time::{Duration, Instant, UnixSeconds};
use crate::transport::{self, Connection, OpaqueBody, Protocol, Received, SendOptions};
use crate::wire::{BitSink, BitWriter};

/// How long the link to a removed peer stays up to tell it so.
const FAREWELL: Duration = Duration::from_millis(500);

/// The minimum of bits in which a core is asked to write.
const MIN_CORE_BITS: usize = 64;

/// A peer's half of its session.
pub struct PeerPart {
    pub(super) mesh: Mesh,
    pub(super) entropy: Box<dyn Entropy + Send>,
    /// The wall clock at the newest instant at which it was read: a suspended machine's monotonic clock stands still.
    unix: (Instant, UnixSeconds),
    pub(super) config: PeerConfig,
    pub(super) core: CoreLink,
    pub(super) players: Vec<PlayerLink>,
    /// Events that the application hasn't taken yet.
    told: Vec<Happening>,
    links: Vec<Event>,
    payloads: Vec<(PeerHandle, usize, Received)>,
    /// The first of its channels, and the type of its messages.
    wire: Option<(usize, u16)>,
    /// The newest token for the master's server.
    pub(super) seat: Option<ConnectToken>,
    /// The address of the server that the last taken token is for, and whether its host left properly.
    pub(super) seated_at: Option<SocketAddr>,
    pub(super) has_host_left: bool,
    /// The players who were sent tokens for this peer's server.
    pub(super) seated: Vec<Identity>,
    /// The worlds of a hosted game that are under way: their numbers and receivers.
    pub(super) worlds: Vec<(PeerHandle, u64, u8)>,
    /// The worlds of a lockstep game that came.
    pub(super) lockstep_worlds: LockstepWorlds,
}

/// The settings for dialling.
pub struct PeerConfig {
    /// The key that newcomers' tokens are sealed with.
    pub key: Key,
    pub netcode: netcode::ClientConfig,
    /// Seconds of silence that end a connection.
    pub timeout: u32,
    /// A hash of the protocol, for refusals that say what differs.
    pub upper_protocol: Option<u64>,
    /// Whether two players may play by way of a third, if they don't reach each other.
    pub relaying: bool,
}

/// The connection to an admitted player.
pub(super) struct PlayerLink {
    pub(super) handle: PeerHandle,
    pub(super) who: Identity,
    /// Whether the application has had its first event, and its last.
    came: bool,
    pub(super) over: bool,
    /// How many of the core's packets carried the settings.
    said: u8,
}

impl PeerPart {
    /// `entropy` makes keys: it must be the system's.
    pub fn new(
        mesh: Mesh,
        config: PeerConfig,
        entropy: Box<dyn Entropy + Send>,
        now: Instant,
        unix: UnixSeconds,
    ) -> Self {
        let mut part = PeerPart {
            mesh,
            entropy,
            unix: (now, unix),
            config,
            core: CoreLink::default(),
            players: Vec::new(),
            told: Vec::new(),
            links: Vec::new(),
            payloads: Vec::new(),
            wire: None,
            seat: None,
            seated_at: None,
            has_host_left: false,
            seated: Vec::new(),
            worlds: Vec::new(),
            lockstep_worlds: LockstepWorlds::default(),
        };
        // A host is in its game from the first tick on.
        part.hear(now);
        part
    }

    /// Looks up its channels in the protocol of its links.
    pub(super) fn attach(&mut self, protocol: &Protocol) {
        let channels = protocol.channels_of(PEERS).map(|channels| channels.start);
        self.wire = channels.zip(protocol.type_of(PEERS));
    }

    /// The mesh: who is in the game, and who is the master.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The mesh, to start the game or remove a player; takes effect at the next flush.
    pub fn mesh_mut(&mut self) -> &mut Mesh {
        &mut self.mesh
    }

    /// Sets the game core, and tells it of players that left since the start. Returns the former one.
    pub fn set_core(&mut self, now: Instant, core: Option<Box<dyn Carried>>) -> Option<Box<dyn Carried>> {
        let before = self.core.replace(core);
        self.players.iter_mut().for_each(|player| player.said = 0);
        let roster = self.mesh.roster();
        let left = roster.start.map_or(0, |start| start.players & !roster.players());
        if let Some(core) = self.core.get_mut() {
            for player in (0..mesh::MAX_PLAYERS as u8).filter(|player| left & bit(*player) != 0) {
                core.note_left(now, player);
            }
            let (late, me) =
                (roster.start.map_or(0, |start| roster.players() & !start.players), self.mesh.me());
            let others = (0..mesh::MAX_PLAYERS as u8).filter(|player| Some(*player) != me);
            for player in others.filter(|player| late & bit(*player) != 0) {
                core.note_joined(now, player);
            }
        }
        before
    }

    /// Whether the players of this set, and this one, are enough to decide: see [`mesh::Roster::is_quorum`].
    pub fn is_quorum(&self, players: mesh::Players) -> bool {
        let me = self.mesh.me().map_or(0, bit);
        let reached = self.players.iter().filter(|it| !it.over).fold(me, |all, it| all | bit(it.who.0));
        self.mesh.roster().is_quorum(players | me, reached, 0)
    }

    /// The game core, if it is one of this type.
    pub fn core<T: Carried>(&mut self) -> Option<&mut T> {
        let core: &mut dyn Any = self.core.get_mut()?;
        core.downcast_mut()
    }

    /// The connection to a player, while it lasts.
    pub fn handle_of(&self, player: u8) -> Option<PeerHandle> {
        self.players.iter().find(|it| it.who.0 == player && !it.over).map(|it| it.handle)
    }

    /// The player and joining of a connection, even after it ended, until the application has taken its last event.
    pub fn player_of(&self, handle: PeerHandle) -> Option<Identity> {
        self.players.iter().find(|it| it.handle == handle).map(|it| it.who)
    }

    /// Whether this peer's part in the game has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.mesh.phase(), mesh::Phase::Ended(_))
    }

    /// Whether there are events for the application.
    pub fn has_news(&self) -> bool {
        !self.told.is_empty()
    }

    /// When `PeerPart::run` is due if nothing arrives before.
    pub fn next_deadline(&self) -> Instant {
        self.mesh.next_deadline()
    }

    /// Takes the time of the wall clock.
    pub(super) fn set_unix(&mut self, now: Instant, unix: UnixSeconds) {
        self.unix = (now, unix);
    }

    pub(super) fn unix(&self, now: Instant) -> UnixSeconds {
        UnixSeconds(self.unix.1.0 + (now - self.unix.0).as_secs())
    }

    /// Handles what arrived, and carries out the mesh's actions.
    pub(super) fn run(&mut self, now: Instant, host: &mut Host, out: &mut Datagrams) {
        // Actions may end links, which causes further ones.
        for _ in 0..8 {
            host.take_link_events(&mut self.links);
            let events = core::mem::take(&mut self.links);
            let mut over = Vec::new();
            for event in events {
                match event {
                    Event::Accepted { peer, address, user_data, .. } => {
                        self.mesh.handle_accepted(now, peer.number(), address, ticket_in(&user_data));
                    }
                    Event::Dialled { peer, .. } => {
                        if let Some(dial) = host.dialled(peer) {
                            self.mesh.handle_dialled(now, peer.number(), dial.netcode().server_address());
                        }
                    }
                    Event::Disconnected { peer, reason, violation, detail } => {
                        let how = match link_end(reason, detail.as_deref()) {
                            LinkEnd::Violation if violation.is_none() => LinkEnd::Accused,
                            how => how,
                        };
                        over.push((peer, how));
                    }
                }
            }
            for (peer, channel, received) in core::mem::take(&mut self.payloads) {
                if let Err(why) = self.handle_payload(now, host, peer, channel, &received) {
                    host.refuse_payload(now, peer, PEERS, &why, out);
                }
            }
            for (peer, how) in over {
                if let Some(player) = self.players.iter_mut().find(|player| player.handle == peer) {
                    player.over = true;
                } else {
                    // The application never heard of it.
                    host.refuse(now, peer, None, out);
                }
                self.mesh.handle_end(now, peer.number(), how);
            }
            self.mesh.update(now);
            self.act(now, host, out);
            self.hear(now);
            host.take_link_events(&mut self.links);
            if self.links.is_empty() {
                break;
            }
        }
    }

    /// Handles a message on one of the channels of peers.
    fn handle_payload(
        &mut self,
        now: Instant,
        host: &Host,
        peer: PeerHandle,
        channel: usize,
        received: &Received,
    ) -> Result<(), String> {
        if self.wire.is_some_and(|(first, _)| first + CORE == channel) {
            let player = self.players.iter().find(|player| player.handle == peer && !player.over);
            let Some(player) = player else { return Ok(()) };
            return self.core.read(now, player.who.0, &mut OpaqueBody::read(&received.body).reader());
        }
        let stats = host.connection(peer).map(Connection::stats);
        let rtt = stats.map_or(0.0, |stats| stats.rtt_min.min(stats.rtt).max(0.0));
        let rtt = Duration::try_from_secs_f64(rtt / 1_000.0).unwrap_or_default();
        let bytes = OpaqueBody::read(&received.body).reader().rest();
        let handled = self.mesh.handle_bytes(received.received_at, peer.number(), &bytes, rtt);
        handled.map_err(|fault| fault.to_string())
    }

    fn act(&mut self, now: Instant, host: &mut Host, out: &mut Datagrams) {
        while let Some(action) = self.mesh.poll_action() {
            match action {
                Action::Send { link, mut message } => {
                    if let Message::NotMaster { addresses } = &mut message {
                        self.name_elsewhere(addresses);
                    }
                    self.send(now, host, link, &message, out);
                }
                Action::Ask { mut addresses } => {
                    // Another peer may have said so: it names players, not whom to send datagrams to.
                    addresses.retain(|address| is_dialable(*address));
                    let token = self.token(now, &addresses, self.config.key, None);
                    self.dial(now, host, token, None);
                }
                Action::Dial { who, mut pass } => {
                    pass.resize(TOKEN_BYTES, 0);
                    let all_are_fine =
                        |token: &ConnectToken| token.addresses().iter().all(|address| is_dialable(*address));
                    let token = ConnectToken::from_bytes(&pass).ok().filter(all_are_fine);
                    self.dial(now, host, token, Some(who));
                }
                Action::Introduce { newcomer, who: (player, joined), member, of, key, addresses } => {
                    let mut ticket = Ticket::default();
                    self.entropy.fill(&mut ticket);
                    let addresses = self.ways_to(of, addresses);
                    let Some(token) = self.token(now, &addresses, key, Some(ticket)) else { continue };
                    self.send(now, host, member, &Message::Expect { player, joined, ticket }, out);
                    let intro = Message::Intro { player: of.0, joined: of.1, pass: pass_of(&token) };
                    self.send(now, host, newcomer, &intro, out);
                }
                Action::TakeSeat { host, pass } => self.keep_seat(host, pass),
                Action::Admit { link, who } => {
                    let handle = PeerHandle::from_number(link);
                    host.admit(handle);
                    self.players.push(PlayerLink { handle, who, came: false, over: false, said: 0 });
                }
                Action::End { link, reason } => self.end(now, host, link, reason, out),
                Action::Refuse { link, fault } => {
                    host.refuse_payload(now, PeerHandle::from_number(link), PEERS, &fault.to_string(), out);
                }
            }
        }
    }

    fn send(&mut self, now: Instant, host: &mut Host, link: u64, message: &Message, out: &mut Datagrams) {
        let Some((channel, message_type)) = self.wire else { return };
        let bytes = message.write();
        let mut writer = BitWriter::with_buffer(Vec::with_capacity(bytes.len() + 8));
        bytes.iter().for_each(|byte| writer.bits(u64::from(*byte), 8));
        let message = transport::Message::new(message_type, writer.encoded());
        let handle = PeerHandle::from_number(link);
        let sent = host.send(now, handle, channel, message, SendOptions::default());
        if sent.is_err() && host.is_connected(handle) {
            // It acks nothing, and messages to it must arrive.
            host.refuse_payload(now, handle, PEERS, "the peer stopped acknowledging lobby messages", out);
        }
    }

    fn end(&mut self, now: Instant, host: &mut Host, link: u64, reason: LeaveReason, out: &mut Datagrams) {
        let handle = PeerHandle::from_number(link);
        let detail = match reason {
            LeaveReason::Closed => None,
            other => Detail::new(&format!("{OUT}{other:?}")).ok(),
        };
        if self.players.iter().any(|player| player.handle == handle) {
            let goodbye = Goodbye { linger: FAREWELL, detail };
            let _gone = host.disconnect_with(now, handle, goodbye, out);
        } else if host.is_connected(handle) {
            host.refuse(now, handle, detail.as_ref(), out);
        } else {
            host.hang_up_on(now, handle, out);
        }
    }

    /// Takes the mesh's events, for the core and the application.
    fn hear(&mut self, now: Instant) {
        while let Some(happening) = self.mesh.poll_happening() {
            if let Happening::Left { player, joined, reason: LeaveReason::Left } = happening {
                self.has_host_left |= self.seated_at == Some(member_address(player, joined));
            }
            match (happening, self.core.get_mut()) {
                (Happening::Left { player, .. }, Some(core)) => core.note_left(now, player),
                (Happening::Joined { player, .. }, Some(core)) if Some(player) != self.mesh.me() => {
                    core.note_joined(now, player);
                }
                _ => {}
            }
            self.told.push(happening);
        }
    }

    /// The application takes these connection events, and with them the mesh's events about the same players.
    ///
    /// The end of this peer's part waits while there `is_more` in the same tick, so that nothing comes after it.
    pub(super) fn take(&mut self, events: &[Event], is_more: bool, out: &mut Vec<Happening>) {
        for event in events {
            if let Some(player) = self.players.iter_mut().find(|player| player.handle == event.peer()) {
                player.came = true;
                if let Event::Disconnected { .. } = event {
                    player.over = true;
                    player.came = false;
                }
            }
        }
        // Events about one player stay in order; those about others don't wait for them.
        let mut waiting = 0;
        let players = &mut self.players;
        self.told.retain(|happening| {
            let find = |who| players.iter().find(|it| it.who == who);
            let (player, is_open) = match *happening {
                Happening::Joined { player, joined } => {
                    (player, find((player, joined)).is_none_or(|it| it.came || it.over))
                }
                Happening::Left { player, joined, .. } => {
                    (player, find((player, joined)).is_none_or(|it| it.over && !it.came))
                }
                Happening::Ended { .. } if is_more => return true,
                _ => {
                    out.push(*happening);
                    return false;
                }
            };
            if !is_open || waiting & bit(player) != 0 {
                waiting |= bit(player);
                return true;
            }
            if let Happening::Left { player, joined, .. } = *happening {
                players.retain(|it| it.who != (player, joined));
            }
            out.push(*happening);
            false
        });
    }
}

impl Feature for PeerPart {
    fn name(&self) -> &'static str {
        PEERS
    }

    /// Keeps what a channel of peers carried, for the next `PeerPart::run`.
    fn read(
        &mut self,
        _: Moment,
        _: &Host,
        peer: PeerHandle,
        channel: usize,
        received: Received,
    ) -> Result<Option<u16>, String> {
        self.payloads.push((peer, channel, received));
        Ok(None)
    }

    /// Marks the players for whom the core may have a packet.
    fn want(&mut self, _: Instant, host: &mut Host, channel: usize) {
        let Some(patience) = self.core.begin_flush() else { return };
        for player in self.players.iter().filter(|player| !player.over) {
            let Some(connection) = host.connection_mut(player.handle) else { continue };
            if connection.want(channel + CORE, MIN_CORE_BITS).is_ok() {
                self.core.want(player.who.0);
                connection.set_ack_patience((channel + CORE) as u8, patience);
            }
        }
    }

    /// Lets the core write for a player.
    fn fill(
        &mut self,
        Moment { now, .. }: Moment,
        peer: PeerHandle,
        _: usize,
        bits: usize,
        writer: &mut BitWriter,
    ) -> Option<u32> {
        let link = self.players.iter_mut().find(|player| player.handle == peer)?;
        self.core.fill(now, link.who.0, &mut link.said, bits, writer)
    }
}
