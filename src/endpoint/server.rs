//! A dedicated server, sans-IO: client slots, a conversation in each, events and messages out.
//!
//! Promises: one client's bytes, however hostile, touch no other client; a stale handle reaches nobody.
//! Whoever owns the server gives it datagrams, calls [`Server::transmit`] once a tick, and reads events and inbox.
//!
//! Who sent a datagram is known from the secure connection, and it reaches that client's [`Connection`] and no other. An
//! answer to a violation, and all else that is not the handshake, goes to proven addresses. Events, messages and fates
//! wait until they are taken, and grow until then by what the slots can hold: when each slot's client has come and gone,
//! newcomers wait too. Where the application decides about newcomers, see [`admission`].

mod admission;

use std::collections::VecDeque;
use std::sync::Arc;

use core::hash::Hasher;
use core::net::SocketAddr;
use std::hash::DefaultHasher;

use super::goodbye::{Closing, Detail, Goodbye};
use super::reason::{answer_to, reason_of};
use super::reception::{Account, Reception};
use super::{
    BudgetError, ChunkLimits, ChunkStore, ConfigError, DisconnectReason, Inbox, SendChunkError, SendError,
    sealed,
};
use crate::netcode::{self, ClientHandle, Farewell};
use crate::rng::{Entropy, Rng};
use crate::store::{Datagrams, Packets};
use crate::time::{Instant, UnixSeconds};
use crate::transport::chunks::{ChunkCounters, ChunkEvent, ContentHash, Offer, Progress, Rejection, Source};
use crate::transport::{
    Attribute, BudgetConfig, ChannelStats, CloseReason, Column, Connection, ConnectionConfig, End, Message,
    Notification, PacketCounters, PacketFate, PacketStats, Protocol, Read, ScoreError, Scratch, SendOptions,
    Unread, Violation, candidates,
};
use crate::wire::Encoded;

/// Settings of a server.
#[derive(Clone)]
pub struct ServerConfig {
    /// Slots, keys, addresses.
    pub netcode: netcode::ServerConfig,
    /// Each client's transport.
    pub connection: ConnectionConfig,
    /// Which chunks are taken from each client.
    pub chunks: ChunkLimits,
}

/// Something happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A player is in a slot.
    Connected {
        /// The player's handle.
        client: ClientHandle,
        /// The id in its connect token.
        client_id: u64,
        /// Where it is.
        address: SocketAddr,
        /// The user data in its connect token.
        user_data: Box<[u8; 256]>,
    },
    /// A player is gone. Messages it had sent still come with the inbox.
    Disconnected {
        /// The handle, stale now.
        client: ClientHandle,
        /// Why.
        reason: DisconnectReason,
        /// How it broke the protocol, if it did.
        violation: Option<Violation>,
        /// What the application that ended it said of it.
        detail: Option<Box<str>>,
    },
}

impl ServerEvent {
    /// Whose event it is.
    pub fn client(&self) -> ClientHandle {
        match self {
            ServerEvent::Connected { client, .. } | ServerEvent::Disconnected { client, .. } => *client,
        }
    }
}

/// A dedicated server.
pub struct Server {
    netcode: netcode::Server,
    protocol: Arc<Protocol>,
    config: ConnectionConfig,
    /// Gives each connection a [`ConnectionConfig::skip_seed`] of its own.
    skip_seeds: Rng,
    /// By slot.
    sessions: Vec<Option<Session>>,
    events: VecDeque<ServerEvent>,
    /// Newcomers wait until the application has decided about them.
    asks_admission: bool,
    /// Clients that left before the application decided, with all that they sent.
    left_undecided: Vec<Session>,
    /// Messages of connections that ended before the application took them.
    leftovers: Inbox,
    /// Connections that ended with packets that wait to be read.
    unfinished: Vec<(ClientHandle, Box<Connection>)>,
    /// Fates of messages of connections that are over.
    told: Vec<(ClientHandle, Notification)>,
    /// Packet counts of connections that are over.
    ended: PacketCounters,
    ended_chunks: ChunkCounters,
    packets: Packets,
    /// Of all connections.
    scratch: Box<Scratch>,
    reception: Reception,
    /// The application wants all connections to end, and no new ones.
    closing: bool,
    /// How many sessions are about to end.
    lingering: usize,
}

struct Session {
    client: ClientHandle,
    client_id: u64,
    connection: Box<Connection>,
    account: Account,
    /// When the connection has something to do between ticks; ZERO if that must be found out.
    next: Instant,
    /// When it has something to do in a tick, likewise.
    next_tick: Instant,
    /// What the application may find here.
    news: News,
    /// The application wants it to end: to the application it is gone.
    closing: Option<Closing>,
}

/// Of which kinds something may wait in a connection for the application: others needn't be looked for there.
#[derive(Clone, Copy)]
struct News {
    messages: bool,
    fates: bool,
    packet_fates: bool,
    chunks: bool,
}

impl News {
    /// Anything may wait.
    const ALL: News = News { messages: true, fates: true, packet_fates: true, chunks: true };
}

impl Session {
    /// Whether the application has let it in, if it wants to be asked.
    fn is_admitted(&self) -> bool {
        !self.account.is_held
    }

    /// Something was sent or received: there may be something else to do, and something to tell.
    fn stir(&mut self) {
        (self.next, self.next_tick, self.news) = (Instant::ZERO, Instant::ZERO, News::ALL);
    }
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

impl Server {
    /// A server with all its slots free.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn new(
        config: ServerConfig,
        protocol: Arc<Protocol>,
        entropy: &mut dyn Entropy,
        unix: UnixSeconds,
    ) -> Result<Self, ConfigError> {
        // Finds a bad setting now instead of when the first client comes.
        Connection::new(&config.connection, protocol.clone())?;
        let slots = config.netcode.max_clients;
        let mut entropy = Digested { from: entropy, drawn: DefaultHasher::new() };
        Ok(Server {
            netcode: netcode::Server::new(config.netcode, &mut entropy, unix)?,
            skip_seeds: Rng::seeded(entropy.drawn.finish()),
            protocol,
            config: sealed(config.connection),
            sessions: (0..slots).map(|_| None).collect(),
            events: VecDeque::new(),
            asks_admission: false,
            left_undecided: Vec::new(),
            leftovers: Inbox::new(),
            unfinished: Vec::new(),
            told: Vec::new(),
            ended: PacketCounters::default(),
            ended_chunks: ChunkCounters::default(),
            packets: Packets::new(),
            scratch: Box::default(),
            reception: Reception::new(config.chunks),
            closing: false,
            lingering: 0,
        })
    }

    /// What both sides share.
    pub fn protocol(&self) -> &Arc<Protocol> {
        &self.protocol
    }

    // --- the network -------------------------------------------------------------------------------------

    /// Takes one datagram; it is decrypted in place. Answers of the handshake are appended to `out`.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &mut [u8],
        out: &mut Datagrams,
    ) {
        self.netcode.set_welcoming(!self.closing && self.events.len() < 2 * self.sessions.len());
        let received = self.netcode.handle_datagram(now, unix, from, datagram, out);
        self.apply_netcode_events(now);
        let netcode::Received::Payload { client, payload } = received else { return };
        let session = self.sessions.get_mut(client.slot as usize).and_then(Option::as_mut);
        let Some(session) = session.filter(|session| session.client == client) else { return };
        session.stir();
        let Session { client_id, connection, account, closing, .. } = session;
        connection.swap_scratch(&mut self.scratch);
        let handled = connection.handle_datagram(now, payload);
        connection.swap_scratch(&mut self.scratch);
        match handled {
            Ok(()) if closing.is_some() => connection.discard_received(),
            // Now: the next datagram may have a slice of what this one offers.
            Ok(()) => self.reception.look(client, *client_id, connection, account),
            Err(end) => self.end(now, client, &end, out),
        }
    }

    /// Appends everything due now to `out`, and notices timeouts: once a tick. Connections that nothing was sent to,
    /// received from or is due for cost no more than a glance.
    pub fn transmit(&mut self, now: Instant, out: &mut Datagrams) {
        let transmit = |session: &mut Session, packets: &mut Packets| {
            (session.next, session.next_tick) = (Instant::ZERO, session.connection.transmit(now, packets));
        };
        self.transmit_with(now, |session| session.next_tick <= now, out, transmit);
    }

    /// Appends what needn't wait for the tick, as [`Connection::transmit_between`], and notices timeouts: for drivers
    /// that are awake when [`Server::next_deadline`] comes, and after datagrams. Only connections that something was
    /// sent to, received from or is due for cost more than a glance.
    pub fn transmit_between(&mut self, now: Instant, out: &mut Datagrams) {
        let transmit = |session: &mut Session, packets: &mut Packets| {
            let next = session.connection.transmit_between(now, packets);
            (session.next, session.next_tick) = (next, Instant::ZERO);
        };
        self.transmit_with(now, |session| session.next <= now, out, transmit);
    }

    /// When [`Server::transmit_between`] has something to do if nothing arrives before; [`Instant::ZERO`] when that
    /// isn't known because something was sent or received.
    pub fn next_deadline(&self) -> Instant {
        let until = |session: &Session| session.closing.as_ref().map_or(Instant::NEVER, |it| it.until);
        let sessions = self.sessions.iter().flatten().map(|session| session.next.min(until(session)));
        sessions.fold(self.netcode.next_deadline(), Instant::min)
    }

    /// Has the sessions that are due transmit; `transmit` notes when one next has something to do.
    fn transmit_with(
        &mut self,
        now: Instant,
        is_due: impl Fn(&Session) -> bool,
        out: &mut Datagrams,
        transmit: impl Fn(&mut Session, &mut Packets),
    ) {
        for session in self.sessions.iter_mut().flatten().filter(|session| is_due(session)) {
            let Session { client, client_id, connection, account, closing, .. } = session;
            if closing.is_none() {
                self.reception.look(*client, *client_id, connection, account);
            }
            session.news = News::ALL;
            session.connection.swap_scratch(&mut self.scratch);
            transmit(session, &mut self.packets);
            session.connection.swap_scratch(&mut self.scratch);
            for (_, packet) in self.packets.iter() {
                // The slot is taken and the packet fits: both are this module's doing.
                let sent = self.netcode.send_payload(now, session.client, packet, out);
                debug_assert!(sent.is_ok(), "{sent:?}");
            }
            self.packets.clear();
        }
        // Behind the packets, which keep connections alive as well.
        self.netcode.update(now, out);
        self.apply_netcode_events(now);
        self.netcode.say_goodbyes(now, out);
        if self.lingering > 0 {
            self.end_linger(now, out);
        }
    }

    /// Ends the connections whose clients have what was queued for them, and those whose time is up.
    fn end_linger(&mut self, now: Instant, out: &mut Datagrams) {
        for slot in 0..self.sessions.len() {
            if let Some(session) = &self.sessions[slot]
                && let Some(closing) = &session.closing
                && (closing.until <= now || session.connection.is_drained())
            {
                let (client, closing) = (session.client, closing.clone());
                self.part(now, client, &closing, out);
            }
        }
    }

    /// Ends every connection, all farewells at once: no later call comes.
    pub fn close(&mut self, now: Instant, out: &mut Datagrams) {
        let at_once = || Closing::new(now, CloseReason::Closed, Goodbye::default());
        let sessions = self.sessions.iter().flatten();
        let parting = sessions.map(|it| (it.client, it.closing.clone().unwrap_or_else(at_once)));
        for (client, closing) in parting.collect::<Vec<_>>() {
            self.part(now, client, &closing, out);
        }
        self.netcode.shutdown(now, out);
    }

    /// Ends a connection as the application wanted it.
    fn part(&mut self, now: Instant, client: ClientHandle, closing: &Closing, out: &mut Datagrams) {
        self.leave(now, client, Some(closing.reason), closing.detail(), out);
        self.report(client, closing.own_reason(), closing.detail().map(Into::into), None);
    }

    /// Ends each connection when its client has what was queued for it, or after the goodbye's time, as
    /// [`Server::disconnect_with`]; nobody is let in any more. [`Server::transmit`] goes on being called until
    /// [`Server::is_over`]. What [`Server::close`] says to those who are left is said with this detail too. The first call
    /// counts.
    pub fn begin_close(&mut self, now: Instant, goodbye: Goodbye) {
        if !core::mem::replace(&mut self.closing, true) {
            for client in self.clients().collect::<Vec<_>>() {
                self.begin_end(now, client, CloseReason::Closed, goodbye.clone());
            }
        }
    }

    /// Whether all connections have ended, and the clients were told so as often as they are going to be.
    pub fn is_over(&self) -> bool {
        self.closing && self.sessions.iter().all(Option::is_none) && !self.netcode.has_leavers()
    }

    // --- the application ---------------------------------------------------------------------------------

    /// Whether there are events, messages or fates that weren't taken.
    pub fn has_news(&self) -> bool {
        let told = !self.events.is_empty() || !self.told.is_empty() || self.reception.has_events();
        told || !self.leftovers.is_empty()
            || !self.unfinished.is_empty()
            || self.sessions.iter().flatten().any(|session| session.connection.has_news())
    }

    /// The next event. A client's last one comes when all its messages were taken.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        let event = self.events.front()?;
        let is_last = matches!(event, ServerEvent::Disconnected { .. });
        let is_unread = || self.unfinished.iter().any(|(over, _)| *over == event.client());
        if (is_last && is_unread()) || self.is_undecided(event.client()) {
            return None;
        }
        self.events.pop_front()
    }

    /// Moves every message that can be read into `inbox`.
    pub fn take_messages(&mut self, inbox: &mut Inbox) {
        inbox.append(&mut self.leftovers);
        let channels = self.protocol.channels().len();
        let readable = |session: &&mut Session| {
            session.news.messages && session.is_admitted() && session.closing.is_none()
        };
        for session in self.sessions.iter_mut().flatten().filter(readable) {
            session.connection.swap_scratch(&mut self.scratch);
            session.news.messages = inbox.take_from(session.client, &mut session.connection, channels);
            session.connection.swap_scratch(&mut self.scratch);
        }
    }

    /// Takes the packets that the core can't read, client by client, where the protocol holds such: [`Unread::read`] them, and
    /// give what they say to [`Server::handle_read`], before [`Server::take_messages`].
    pub fn take_unread(&mut self) -> Vec<(ClientHandle, Unread)> {
        if !self.protocol.holds_packets() {
            return Vec::new();
        }
        let live = self.sessions.iter_mut().flatten();
        let live = live.filter(|session| session.is_admitted() && session.closing.is_none());
        let live = live.map(|session| (session.client, &mut session.connection));
        let over = self.unfinished.iter_mut().map(|(client, connection)| (*client, connection));
        over.chain(live)
            .filter_map(|(client, held)| held.take_unread().map(|unread| (client, unread)))
            .collect()
    }

    /// Takes what a client's packets say: its messages go to `inbox`. Ends the connection at the first that is refused.
    pub fn handle_read(
        &mut self,
        now: Instant,
        client: ClientHandle,
        read: Read,
        inbox: &mut Inbox,
        out: &mut Datagrams,
    ) {
        let channels = self.protocol.channels().len();
        if let Some(place) = self.unfinished.iter().position(|(over, _)| *over == client) {
            let (_, connection) = &mut self.unfinished[place];
            let refused = inbox.take_read(client, connection, channels, read).is_err();
            // It may have received more, and ended, while these were read.
            if refused || !connection.has_unread() {
                self.unfinished.remove(place);
            }
        } else if let Some(session) = self.session(client)
            && let Err(end) = inbox.take_read(client, &mut session.connection, channels, read)
        {
            self.end(now, client, &end, out);
        }
    }

    /// Queues a message for a client.
    ///
    /// # Errors
    /// Why it can't be sent. Nothing was queued then.
    pub fn send(
        &mut self,
        now: Instant,
        client: ClientHandle,
        channel: usize,
        message: Message,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let session = self.session(client).ok_or(SendError::StaleClient)?;
        Ok(session.connection.send(now, channel, message, options)?)
    }

    /// Queues opaque bits for a client on a payload channel; their fate is told under `tag`.
    ///
    /// # Errors
    /// Why they can't be sent. Nothing was queued then.
    pub fn send_payload(
        &mut self,
        now: Instant,
        client: ClientHandle,
        channel: usize,
        payload: Encoded,
        tag: u32,
    ) -> Result<(), SendError> {
        let session = self.session(client).ok_or(SendError::StaleClient)?;
        Ok(session.connection.send_payload(now, channel, payload, tag)?)
    }

    /// Appends the fates of messages that are known by now, client by client, each in the order of its packets. When a
    /// connection ended, all that was still open is told as lost, before what its slot's next client is told of.
    pub fn take_notifications(&mut self, out: &mut Vec<(ClientHandle, Notification)>) {
        out.append(&mut self.told);
        let told = |session: &&mut Session| session.news.fates && session.is_admitted();
        for session in self.sessions.iter_mut().flatten().filter(told) {
            session.news.fates = false;
            let Session { client, connection, .. } = session;
            out.extend(core::iter::from_fn(|| connection.poll_notification()).map(|told| (*client, told)));
        }
    }

    /// Appends the fates of packets that are known by now, likewise; they are kept if the configuration says so.
    pub fn take_packet_fates(&mut self, out: &mut Vec<(ClientHandle, PacketFate)>) {
        let told = |session: &&mut Session| session.news.packet_fates && session.is_admitted();
        for session in self.sessions.iter_mut().flatten().filter(told) {
            session.news.packet_fates = false;
            let Session { client, connection, .. } = session;
            out.extend(core::iter::from_fn(|| connection.poll_packet_fate()).map(|fate| (*client, fate)));
        }
    }

    /// How many messages wait for all clients whose order is free, for someone to score.
    pub fn candidates(&self) -> usize {
        self.sessions.iter().flatten().map(|session| session.connection.candidates()).sum()
    }

    /// An attribute of each of them.
    pub fn describe_candidates(&self, now: Instant, attribute: Attribute) -> Column {
        let mut column = Column::new(attribute, self.candidates());
        for session in self.sessions.iter().flatten() {
            session.connection.describe(now, session.client.slot, attribute, &mut column);
        }
        column
    }

    /// Has them go out in the order of their scores in the next [`Server::transmit`], highest first within each channel
    /// of each client, equals as they came. Scores come in the order of [`Server::describe_candidates`], and nothing may
    /// be sent or received in between.
    ///
    /// # Errors
    /// When these are no scores for these candidates. Nothing was changed then.
    pub fn prioritize(&mut self, mut scores: &[f32]) -> Result<(), ScoreError> {
        candidates::check(scores, self.candidates())?;
        self.sessions.iter_mut().flatten().for_each(|session| session.connection.prioritize(&mut scores));
        Ok(())
    }

    /// Lets incoming chunks go somewhere else than into memory.
    pub fn set_chunk_store(&mut self, store: Box<dyn ChunkStore>) {
        self.reception.set_store(store);
    }

    /// Queues a chunk for a client, whose content has this hash; gives the number that names it in events.
    /// `burst`: see [`Connection::send_chunk`].
    ///
    /// # Errors
    /// Why it can't be sent. Nothing was queued then.
    pub fn send_chunk(
        &mut self,
        now: Instant,
        client: ClientHandle,
        source: Box<dyn Source>,
        hash: ContentHash,
        label: &str,
        burst: bool,
    ) -> Result<u64, SendChunkError> {
        let session = self.session(client).ok_or(SendChunkError::StaleClient)?;
        Ok(session.connection.send_chunk(now, source, hash, label, burst)?)
    }

    /// Ends a chunk of ours; false when it is over already.
    pub fn cancel_chunk(&mut self, client: ClientHandle, number: u64) -> bool {
        self.session(client).is_some_and(|session| session.connection.cancel_chunk(number))
    }

    /// Ends a chunk of a client by its id; false when it is over already.
    pub fn reject_chunk(&mut self, client: ClientHandle, id: u16) -> bool {
        let session = self.session(client);
        session.is_some_and(|session| session.connection.reject_chunk(id, Rejection::Cancelled))
    }

    /// Appends what happened to chunks since the last call.
    pub fn take_chunk_events(&mut self, out: &mut Vec<(ClientHandle, ChunkEvent)>) {
        let live = self.sessions.iter_mut().flatten().filter(|session| session.closing.is_none());
        for session in live.filter(|session| session.news.chunks) {
            session.news.chunks = false;
            let Session { client, client_id, connection, account, .. } = session;
            self.reception.look(*client, *client_id, connection, account);
            account.read();
            // There may be room now.
            self.reception.look(*client, *client_id, connection, account);
        }
        self.reception.take_events(out);
    }

    /// Appends what became of chunks of ours since the last call; what came in stays to be taken.
    pub fn take_chunk_fates(&mut self, out: &mut Vec<(ClientHandle, ChunkEvent)>) {
        self.reception.take_fates(out);
    }

    /// How far a chunk of ours is; None when it is over.
    pub fn chunk_progress(&self, now: Instant, client: ClientHandle, number: u64) -> Option<Progress> {
        self.live(client)?.connection.chunk_progress(now, number)
    }

    /// The chunks of a client that are under way.
    pub fn incoming_chunks(&self, now: Instant, client: ClientHandle) -> Vec<(Offer, Progress)> {
        let session = self.live(client).into_iter();
        let chunks = session.flat_map(|session| session.connection.incoming_chunks(now));
        chunks.map(|(offer, progress)| (offer.clone(), progress)).collect()
    }

    /// What chunks of a client cost; None when it is gone.
    pub fn chunk_counters(&self, client: ClientHandle) -> Option<ChunkCounters> {
        Some(self.live(client)?.connection.chunk_counters())
    }

    /// Bytes a second at which chunks may go out to a client now; None when it is gone.
    pub fn bulk_rate(&self, client: ClientHandle) -> Option<f64> {
        Some(self.live(client)?.connection.bulk_rate())
    }

    /// How much may be sent to a client; None when it is gone.
    pub fn budget(&self, client: ClientHandle) -> Option<BudgetConfig> {
        let session = self.live(client)?;
        Some(session.connection.budget())
    }

    /// Changes how much may be sent to a client, or with None to every one, those to come included.
    ///
    /// # Errors
    /// When the client is not connected, or a number is out of its bounds. Nothing was changed then.
    pub fn set_budget(
        &mut self,
        client: Option<ClientHandle>,
        budget: BudgetConfig,
    ) -> Result<(), BudgetError> {
        budget.rate.check()?;
        if let Some(client) = client {
            let session = self.session(client).ok_or(BudgetError::StaleClient)?;
            return Ok(session.connection.set_budget(budget)?);
        }
        self.config.budget = budget;
        for session in self.sessions.iter_mut().flatten() {
            session.connection.set_budget(budget)?;
        }
        Ok(())
    }

    /// Ends a client's connection. It is told so several times, over the next ticks.
    ///
    /// # Errors
    /// When the client is not connected.
    pub fn disconnect(
        &mut self,
        now: Instant,
        client: ClientHandle,
        out: &mut Datagrams,
    ) -> Result<(), SendError> {
        self.disconnect_with(now, client, Goodbye::default(), out)
    }

    /// Ends a client's connection when the client has what was queued for it, or after the goodbye's time, in which
    /// [`Server::transmit`] goes on; without one, at once. To the application the client is gone from now on: what it sends
    /// is dropped, chunks end, and only the fates of messages and at last the event come.
    ///
    /// # Errors
    /// When the client is not connected.
    pub fn disconnect_with(
        &mut self,
        now: Instant,
        client: ClientHandle,
        goodbye: Goodbye,
        out: &mut Datagrams,
    ) -> Result<(), SendError> {
        self.session(client).ok_or(SendError::StaleClient)?;
        if goodbye.linger.is_zero() {
            let detail = goodbye.detail.as_ref().map(Detail::as_str);
            self.leave(now, client, Some(CloseReason::Kicked), detail, out);
            self.report(client, DisconnectReason::Kicked, detail.map(Into::into), None);
        } else {
            self.begin_end(now, client, CloseReason::Kicked, goodbye);
        }
        Ok(())
    }

    fn begin_end(&mut self, now: Instant, client: ClientHandle, reason: CloseReason, goodbye: Goodbye) {
        let channels = self.protocol.channels().len();
        let Some(session) = self.sessions[client.slot as usize].as_mut() else { return };
        session.stir();
        // What came before is still handed over, but of those that the application has not decided about.
        if session.is_admitted() {
            self.leftovers.take_from(client, &mut session.connection, channels);
            self.reception.finish(client, session.client_id, &mut session.connection);
        }
        session.closing = Some(Closing::new(now, reason, goodbye));
        self.lingering += 1;
    }

    /// Ends a client's connection because one of its messages is not what its class allows: found out by code
    /// the core can't run. What else it sent is dropped, also when the client is gone by now. `why` is for the log.
    pub fn refuse_message(&mut self, now: Instant, client: ClientHandle, why: &str, out: &mut Datagrams) {
        if self.session(client).is_some() {
            self.end(now, client, &End::Violation(Violation::Message(why.into())), out);
        }
        self.leftovers.drop_client(client);
        self.unfinished.retain(|(over, _)| *over != client);
    }

    /// Whether the client is connected.
    pub fn is_connected(&self, client: ClientHandle) -> bool {
        self.live(client).is_some()
    }

    /// The connected clients, by slot.
    pub fn clients(&self) -> impl Iterator<Item = ClientHandle> {
        let live = self.sessions.iter().flatten().filter(|session| session.closing.is_none());
        live.map(|session| session.client)
    }

    /// RTT, jitter, loss and bandwidth of one client; None when it is gone.
    pub fn stats(&self, client: ClientHandle) -> Option<(PacketStats, PacketCounters)> {
        let session = self.live(client)?;
        Some((session.connection.stats(), session.connection.counters()))
    }

    /// Counts of one channel of one client; None when there is no such client or channel.
    pub fn channel_stats(&self, client: ClientHandle, channel: usize) -> Option<ChannelStats> {
        let session = self.live(client)?;
        (channel < self.protocol.channels().len()).then(|| session.connection.channel_stats(channel))
    }

    /// Packets of all connections, those that are over included.
    pub fn packet_counters(&self) -> PacketCounters {
        let live = self.sessions.iter().flatten().map(|session| session.connection.counters());
        live.fold(self.ended, |sum, counters| sum + counters)
    }

    /// Chunks of all connections, those that are over included.
    pub fn all_chunk_counters(&self) -> ChunkCounters {
        let live = self.sessions.iter().flatten().map(|session| session.connection.chunk_counters());
        live.fold(self.ended_chunks, |sum, counters| sum + counters)
    }

    /// What the secure connections counted, drops by name.
    pub fn netcode(&self) -> &netcode::Server {
        &self.netcode
    }

    // --- inside ------------------------------------------------------------------------------------------

    fn live(&self, client: ClientHandle) -> Option<&Session> {
        let session = self.sessions.get(client.slot as usize)?.as_ref()?;
        (session.client == client && session.closing.is_none()).then_some(session)
    }

    /// A session that isn't about to end, whose connection may have something else to do after that.
    fn session(&mut self, client: ClientHandle) -> Option<&mut Session> {
        let session = self.sessions.get_mut(client.slot as usize)?.as_mut()?;
        session.stir();
        (session.client == client && session.closing.is_none()).then_some(session)
    }

    fn apply_netcode_events(&mut self, now: Instant) {
        while let Some(event) = self.netcode.poll_event() {
            match event {
                netcode::ServerEvent::Connected { client, client_id, address, user_data } => {
                    self.config.skip_seed = Some(self.skip_seeds.next_u64());
                    let Ok(connection) = Connection::new(&self.config, self.protocol.clone()) else {
                        continue;
                    };
                    let connection = Box::new(connection);
                    let session = Session {
                        client,
                        client_id,
                        connection,
                        account: Account::new(self.asks_admission),
                        next: Instant::ZERO,
                        next_tick: Instant::ZERO,
                        news: News::ALL,
                        closing: None,
                    };
                    self.sessions[client.slot as usize] = Some(session);
                    self.events.push_back(ServerEvent::Connected { client, client_id, address, user_data });
                }
                netcode::ServerEvent::Disconnected { client, reason } => {
                    let (reason, farewell) = match reason {
                        netcode::ServerDisconnect::TimedOut => {
                            (DisconnectReason::TimedOut, Some(CloseReason::TimedOut))
                        }
                        netcode::ServerDisconnect::Replaced => {
                            (DisconnectReason::Replaced, Some(CloseReason::Replaced))
                        }
                        netcode::ServerDisconnect::ByPeer => (DisconnectReason::PeerDisconnected, None),
                    };
                    if let Some(farewell) = farewell {
                        self.explain(now, client, farewell);
                    }
                    self.report(client, reason, None, None);
                }
            }
        }
    }

    /// Gives a reason to the goodbyes that the secure connection says by itself.
    fn explain(&mut self, now: Instant, client: ClientHandle, reason: CloseReason) {
        let Some(session) = &mut self.sessions[client.slot as usize] else { return };
        let understood = session.connection.is_greeted();
        let detail = session.closing.as_ref().and_then(Closing::detail);
        if let Some(payload) = session.connection.farewell(now, reason, detail) {
            self.netcode.set_farewell(client, Farewell { payload: &payload, understood });
        }
    }

    /// A conversation ended by what its peer sent.
    fn end(&mut self, now: Instant, client: ClientHandle, end: &End, out: &mut Datagrams) {
        self.leave(now, client, answer_to(end), None, out);
        let violation = if let End::Violation(violation) = end { Some(violation.clone()) } else { None };
        self.report(client, reason_of(end, DisconnectReason::PeerDisconnected), None, violation);
    }

    /// Frees the slot, telling the peer why if it doesn't know.
    fn leave(
        &mut self,
        now: Instant,
        client: ClientHandle,
        answer: Option<CloseReason>,
        detail: Option<&str>,
        out: &mut Datagrams,
    ) {
        let Some(session) = self.sessions[client.slot as usize].as_mut() else { return };
        let Some(answer) = answer else { return self.netcode.forget(client) };
        let understood = session.connection.is_greeted() || answer == CloseReason::Mismatch;
        let farewell = session.connection.farewell(now, answer, detail);
        let farewell = farewell.as_deref().map(|payload| Farewell { payload, understood });
        // The session is there, so the handle is good, and the farewell is a packet like any other.
        let told = self.netcode.disconnect(now, client, farewell, out);
        debug_assert!(told.is_ok(), "{told:?}");
    }

    /// Ends the session and tells the application, with the peer's words if there are no `own` ones. If the application
    /// wanted it to end, that is how it ended, whatever was faster.
    fn report(
        &mut self,
        client: ClientHandle,
        mut reason: DisconnectReason,
        own: Option<Box<str>>,
        violation: Option<Violation>,
    ) {
        let mut detail = own;
        if let Some(mut session) = self.sessions[client.slot as usize].take() {
            detail = detail.or_else(|| session.connection.take_detail());
            if let Some(closing) = &session.closing {
                self.lingering -= 1;
                session.connection.discard_received();
                if violation.is_none() {
                    (reason, detail) = (closing.own_reason(), closing.detail().map(Into::into));
                }
            }
            self.ended = self.ended + session.connection.counters();
            self.ended_chunks = self.ended_chunks + session.connection.chunk_counters();
            if session.is_admitted() {
                self.conclude(session);
            } else {
                self.left_undecided.push(session);
            }
        }
        self.events.push_back(ServerEvent::Disconnected { client, reason, violation, detail });
    }

    /// Keeps for the application what it hasn't taken of a connection that is over.
    fn conclude(&mut self, session: Session) {
        let Session { client, client_id, mut connection, .. } = session;
        let channels = self.protocol.channels().len();
        self.leftovers.take_from(client, &mut connection, channels);
        connection.conclude();
        let told = core::iter::from_fn(|| connection.poll_notification());
        self.told.extend(told.map(|told| (client, told)));
        self.reception.finish(client, client_id, &mut connection);
        if connection.has_unread() {
            self.unfinished.push((client, connection));
        }
    }
}
