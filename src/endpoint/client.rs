//! A client of one server, sans-IO: dials with a connect token, then holds one conversation.
//!
//! Only what the secure connection opened reaches the [`Connection`]; once that has ended, nothing does.

use std::collections::VecDeque;
use std::sync::Arc;

use core::net::SocketAddr;

use super::goodbye::{Closing, Goodbye, Repeats};
use super::reason::{answer_to, reason_of};
use super::reception::{Account, Reception};
use super::{
    BudgetError, ChunkLimits, ChunkStore, ConfigError, DisconnectReason, Inbox, PartialChunks,
    SendChunkError, SendError, sealed,
};
use crate::netcode::{self, ClientHandle, ClientState, ConnectToken};
use crate::store::{Datagrams, Packets};
use crate::time::Instant;
use crate::transport::chunks::{ChunkCounters, ChunkEvent, ContentHash, Offer, Progress, Rejection, Source};
use crate::transport::{
    Attribute, BudgetConfig, ChannelStats, CloseReason, Column, Connection, ConnectionConfig, End, Message,
    Notification, PacketCounters, PacketFate, PacketStats, Protocol, Read, ScoreError, Scratch, SendOptions,
    Unread, Violation, candidates,
};
use crate::wire::Encoded;

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The secure connection.
    pub netcode: netcode::ClientConfig,
    /// The transport.
    pub connection: ConnectionConfig,
    /// Which chunks are taken from the server.
    pub chunks: ChunkLimits,
}

/// Something happened to the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// We are in a slot of the server.
    Connected {
        /// Our slot.
        client_index: u32,
        /// The server's slots.
        max_clients: u32,
    },
    /// The connection is over, or never came up.
    Disconnected {
        /// Why.
        reason: DisconnectReason,
        /// How the server broke the protocol, if it did.
        violation: Option<Violation>,
        /// What the application that ended it said of it.
        detail: Option<Box<str>>,
    },
}

/// A client.
pub struct Client {
    netcode: netcode::Client,
    protocol: Arc<Protocol>,
    config: ConnectionConfig,
    connection: Option<Box<Connection>>,
    reason: Option<DisconnectReason>,
    detail: Option<Box<str>>,
    /// The application wants it to end.
    closing: Option<Closing>,
    /// The connection is over, and the server is being told.
    repeats: Option<Repeats>,
    slot: Option<u32>,
    events: VecDeque<ClientEvent>,
    leftovers: Inbox,
    /// The connection, if it ended with packets that wait to be read.
    unfinished: Option<Box<Connection>>,
    /// Fates of messages, once the connection is over.
    told: VecDeque<Notification>,
    ended: PacketCounters,
    ended_chunks: ChunkCounters,
    packets: Packets,
    reception: Reception,
    account: Account,
    /// When the connection has something to do between ticks; ZERO if that must be found out.
    next: Instant,
}

impl Client {
    /// A client that begins to dial at the first [`Client::transmit`].
    ///
    /// # Errors
    /// When a setting is out of its bounds or the token can't be used.
    pub fn new(
        config: ClientConfig,
        protocol: Arc<Protocol>,
        token: ConnectToken,
        now: Instant,
    ) -> Result<Self, ConfigError> {
        Connection::new(&config.connection, protocol.clone())?;
        Ok(Client {
            netcode: netcode::Client::new(config.netcode, token, now)?,
            protocol,
            config: sealed(config.connection),
            connection: None,
            reason: None,
            detail: None,
            closing: None,
            repeats: None,
            slot: None,
            events: VecDeque::new(),
            leftovers: Inbox::new(),
            unfinished: None,
            told: VecDeque::new(),
            ended: PacketCounters::default(),
            ended_chunks: ChunkCounters::default(),
            packets: Packets::new(),
            reception: Reception::new(config.chunks),
            account: Account::default(),
            next: Instant::ZERO,
        })
    }

    /// What both sides share.
    pub fn protocol(&self) -> &Arc<Protocol> {
        &self.protocol
    }

    /// The state of the connection.
    pub fn state(&self) -> ClientState {
        self.netcode.state()
    }

    /// Whether messages can be sent.
    pub fn is_connected(&self) -> bool {
        self.connection.is_some() && self.closing.is_none()
    }

    /// Why the connection ended, once it has.
    pub fn disconnect_reason(&self) -> Option<DisconnectReason> {
        self.reason
    }

    /// What the application that ended the connection said of it.
    pub fn disconnect_detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Our slot on the server, once connected.
    pub fn slot(&self) -> Option<u32> {
        self.slot
    }

    /// The server dialled now.
    pub fn server_address(&self) -> SocketAddr {
        self.netcode.server_address()
    }

    /// Takes one datagram; it is decrypted in place. Answers of the handshake are appended to `out`.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &mut [u8],
        out: &mut Datagrams,
    ) {
        let received = self.netcode.handle_datagram(now, from, datagram, out);
        self.apply_netcode_events();
        self.next = Instant::ZERO;
        if let Some(payload) = received
            && let Some(connection) = &mut self.connection
        {
            match connection.handle_datagram(now, payload) {
                Ok(()) if self.closing.is_some() => connection.discard_received(),
                // Now: the next datagram may have a slice of what this one offers.
                Ok(()) => {
                    self.reception.look(ClientHandle::default(), 0, connection, &mut self.account);
                }
                Err(end) => self.end(now, &end, out),
            }
        }
    }

    /// Appends everything due now to `out`, and notices timeouts: once a tick.
    pub fn transmit(&mut self, now: Instant, out: &mut Datagrams) {
        self.transmit_with(now, out, |connection, packets| {
            connection.transmit(now, packets);
            Instant::ZERO
        });
    }

    /// Appends what needn't wait for the tick, as [`Connection::transmit_between`], and notices timeouts: for drivers
    /// that are awake when [`Client::next_deadline`] comes, and after datagrams.
    pub fn transmit_between(&mut self, now: Instant, out: &mut Datagrams) {
        self.transmit_with(now, out, |connection, packets| connection.transmit_between(now, packets));
    }

    /// When [`Client::transmit_between`] has something to do if nothing arrives before; [`Instant::ZERO`] when that
    /// isn't known because something was sent or received.
    pub fn next_deadline(&self) -> Instant {
        let connection = if self.connection.is_some() { self.next } else { Instant::NEVER };
        let closing = self.closing.as_ref().filter(|_| self.reason.is_none());
        let closing = closing.map_or(Instant::NEVER, |closing| closing.until);
        let repeats = self.repeats.as_ref().map_or(Instant::NEVER, Repeats::next);
        self.netcode.next_deadline().min(connection).min(closing).min(repeats)
    }

    /// `transmit` returns when the connection next has something to do.
    fn transmit_with(
        &mut self,
        now: Instant,
        out: &mut Datagrams,
        transmit: impl FnOnce(&mut Connection, &mut Packets) -> Instant,
    ) {
        if self.netcode.is_overdue(now) {
            let farewell = self.farewell(now, CloseReason::TimedOut);
            let told = self.netcode.give_up(now, farewell.as_deref(), out);
            debug_assert!(told.is_ok(), "{told:?}");
            self.apply_netcode_events();
        }
        if let Some(connection) = &mut self.connection {
            if self.closing.is_none() {
                self.reception.look(ClientHandle::default(), 0, connection, &mut self.account);
            }
            self.next = transmit(connection, &mut self.packets);
            for (_, packet) in self.packets.iter() {
                // We are connected and the packet fits: both are this module's doing.
                let sent = self.netcode.send_payload(now, packet, out);
                debug_assert!(sent.is_ok(), "{sent:?}");
            }
            self.packets.clear();
        }
        // Behind the packets, which keep connections alive as well.
        self.netcode.update(now, out);
        self.apply_netcode_events();
        self.end_linger(now, out);
    }

    /// Ends the connection, all farewells at once: no later call comes.
    pub fn close(&mut self, now: Instant, out: &mut Datagrams) {
        if self.reason.is_none() {
            self.leave(now, Some(CloseReason::Closed), out);
            self.report(DisconnectReason::Closed, None);
        }
        if let Some(repeats) = self.repeats.take() {
            self.repeat(now, &repeats.farewell, repeats.left(), out);
            self.netcode.forget();
        }
    }

    /// Ends the connection when the server has what was queued, or after the goodbye's time: [`Client::transmit`] does,
    /// which goes on being called until [`Client::is_over`]. Nothing can be sent any more, chunks end at once, and what the
    /// server sends is dropped. What [`Client::close`] says to end it before that is said with this detail too. The first
    /// call counts.
    pub fn begin_close(&mut self, now: Instant, goodbye: Goodbye) {
        if self.reason.is_some() || self.closing.is_some() {
            return;
        }
        self.closing = Some(Closing::new(now, CloseReason::Closed, goodbye));
        if let Some(connection) = self.connection_to_change() {
            connection.discard_received();
        }
        if let Some(connection) = &mut self.connection {
            self.reception.finish(ClientHandle::default(), 0, connection);
        }
    }

    /// Whether the connection has ended, and the server was told so as often as it is going to be.
    pub fn is_over(&self) -> bool {
        self.reason.is_some() && self.repeats.is_none()
    }

    /// Says goodbye when there is nothing more to wait for, and repeats it.
    fn end_linger(&mut self, now: Instant, out: &mut Datagrams) {
        if let Some(closing) = self.closing.as_ref().filter(|_| self.reason.is_none()) {
            let in_time = now < closing.until;
            let farewell = match &mut self.connection {
                Some(connection) if in_time && !connection.is_drained() => return,
                Some(connection) if in_time && connection.is_greeted() => {
                    connection.farewell(now, closing.reason, closing.detail())
                }
                _ => None,
            };
            let Some(farewell) = farewell else { return self.close(now, out) };
            self.repeats = Some(Repeats::new(now, farewell, closing.until));
            self.report(DisconnectReason::Closed, None);
        }
        let Some(mut repeats) = self.repeats.take() else { return };
        let due = repeats.take_due(now);
        self.repeat(now, &repeats.farewell, due, out);
        if repeats.left() == 0 {
            self.netcode.forget();
        } else {
            self.repeats = Some(repeats);
        }
    }

    fn repeat(&mut self, now: Instant, farewell: &[u8], times: u32, out: &mut Datagrams) {
        for _ in 0..times {
            // It fails when the server has ended the connection too: then it needs no goodbye.
            let _ = self.netcode.send_payload(now, farewell, out);
        }
    }

    /// Lends memory to the client, to be taken back by another call of this before another client gets it: as
    /// [`Connection::swap_scratch`], for many clients in one process.
    pub fn swap_scratch(&mut self, scratch: &mut Box<Scratch>) {
        if let Some(connection) = &mut self.connection {
            connection.swap_scratch(scratch);
        }
    }

    /// Whether there are events, messages or fates that weren't taken.
    pub fn has_news(&self) -> bool {
        let told = !self.events.is_empty() || !self.told.is_empty() || self.reception.has_events();
        let connection = self.connection.as_ref();
        let unread = self.unfinished.is_some();
        told || unread
            || !self.leftovers.is_empty()
            || connection.is_some_and(|connection| connection.has_news())
    }

    /// The next event. The last one comes when all messages were taken.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        let is_last = matches!(self.events.front(), Some(ClientEvent::Disconnected { .. }));
        if is_last && self.unfinished.is_some() { None } else { self.events.pop_front() }
    }

    /// Moves every message that can be read into `inbox`.
    pub fn take_messages(&mut self, inbox: &mut Inbox) {
        inbox.append(&mut self.leftovers);
        if let Some(connection) = self.connection.as_mut().filter(|_| self.closing.is_none()) {
            inbox.take_from(ClientHandle::default(), connection, self.protocol.channels().len());
        }
    }

    /// As [`Server::take_unread`](super::Server::take_unread), on the default handle.
    pub fn take_unread(&mut self) -> Vec<(ClientHandle, Unread)> {
        let live = self.connection.as_mut().filter(|_| self.closing.is_none());
        let held = self.unfinished.as_mut().or(live);
        let unread = held.and_then(|connection| connection.take_unread());
        unread.map(|unread| (ClientHandle::default(), unread)).into_iter().collect()
    }

    /// As [`Server::handle_read`](super::Server::handle_read).
    pub fn handle_read(
        &mut self,
        now: Instant,
        client: ClientHandle,
        read: Read,
        inbox: &mut Inbox,
        out: &mut Datagrams,
    ) {
        let channels = self.protocol.channels().len();
        if let Some(connection) = &mut self.unfinished {
            let refused = inbox.take_read(client, connection, channels, read).is_err();
            // It may have received more, and ended, while these were read.
            if refused || !connection.has_unread() {
                self.unfinished = None;
            }
        } else if let Some(connection) = self.connection.as_mut().filter(|_| self.closing.is_none())
            && let Err(end) = inbox.take_read(client, connection, channels, read)
        {
            self.end(now, &end, out);
        }
    }

    /// Queues a message for the server.
    ///
    /// # Errors
    /// Why it can't be sent. Nothing was queued then.
    pub fn send(
        &mut self,
        now: Instant,
        channel: usize,
        message: Message,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let connection = self.connection_to_send().ok_or(SendError::NotConnected)?;
        Ok(connection.send(now, channel, message, options)?)
    }

    /// Queues opaque bits on a payload channel; their fate is told under `tag`.
    ///
    /// # Errors
    /// Why they can't be sent. Nothing was queued then.
    pub fn send_payload(
        &mut self,
        now: Instant,
        channel: usize,
        payload: Encoded,
        tag: u32,
    ) -> Result<(), SendError> {
        let connection = self.connection_to_send().ok_or(SendError::NotConnected)?;
        Ok(connection.send_payload(now, channel, payload, tag)?)
    }

    /// The next fate of a message sent with a tag, in the order of the packets. When the connection ended, all that was
    /// still open is told as lost.
    pub fn poll_notification(&mut self) -> Option<Notification> {
        self.told.pop_front().or_else(|| self.connection.as_mut()?.poll_notification())
    }

    /// The next fate of a packet, in order; kept if the configuration says so.
    pub fn poll_packet_fate(&mut self) -> Option<PacketFate> {
        self.connection.as_mut()?.poll_packet_fate()
    }

    /// How many messages wait whose order is free, for someone to score.
    pub fn candidates(&self) -> usize {
        self.connection.as_ref().map_or(0, |connection| connection.candidates())
    }

    /// An attribute of each of them.
    pub fn describe_candidates(&self, now: Instant, attribute: Attribute) -> Column {
        let mut column = Column::new(attribute, self.candidates());
        if let Some(connection) = &self.connection {
            connection.describe(now, 0, attribute, &mut column);
        }
        column
    }

    /// Has them go out in the order of their scores in the next [`Client::transmit`], highest first within each
    /// channel, equals as they came. Scores come in the order of [`Client::describe_candidates`], and nothing may be
    /// sent or received in between.
    ///
    /// # Errors
    /// When these are no scores for these candidates. Nothing was changed then.
    pub fn prioritize(&mut self, mut scores: &[f32]) -> Result<(), ScoreError> {
        candidates::check(scores, self.candidates())?;
        if let Some(connection) = &mut self.connection {
            connection.prioritize(&mut scores);
        }
        Ok(())
    }

    /// Lets incoming chunks go somewhere else than into memory.
    pub fn set_chunk_store(&mut self, store: Box<dyn ChunkStore>) {
        self.reception.set_store(store);
    }

    /// What is there of chunks that a connection before this one began.
    pub fn resume_chunks(&mut self, partial: PartialChunks) {
        self.reception.partial = partial;
    }

    /// Gives away what is there of chunks, for the next connection to the same server.
    pub fn take_partial_chunks(&mut self) -> PartialChunks {
        core::mem::take(&mut self.reception.partial)
    }

    /// Queues a chunk for the server, whose content has this hash; gives the number that names it in events.
    /// `burst`: see [`Connection::send_chunk`].
    ///
    /// # Errors
    /// Why it can't be sent. Nothing was queued then.
    pub fn send_chunk(
        &mut self,
        now: Instant,
        source: Box<dyn Source>,
        hash: ContentHash,
        label: &str,
        burst: bool,
    ) -> Result<u64, SendChunkError> {
        let connection = self.connection_to_send().ok_or(SendChunkError::NotConnected)?;
        Ok(connection.send_chunk(now, source, hash, label, burst)?)
    }

    /// Ends a chunk of ours; false when it is over already.
    pub fn cancel_chunk(&mut self, number: u64) -> bool {
        self.connection_to_change().is_some_and(|connection| connection.cancel_chunk(number))
    }

    /// Ends a chunk of the server by its id; false when it is over already.
    pub fn reject_chunk(&mut self, id: u16) -> bool {
        let connection = self.connection_to_change();
        connection.is_some_and(|connection| connection.reject_chunk(id, Rejection::Cancelled))
    }

    /// Appends what happened to chunks since the last call, on the default handle.
    pub fn take_chunk_events(&mut self, out: &mut Vec<(ClientHandle, ChunkEvent)>) {
        if let Some(connection) = self.connection.as_mut().filter(|_| self.closing.is_none()) {
            self.reception.look(ClientHandle::default(), 0, connection, &mut self.account);
        }
        self.account.read();
        self.reception.take_events(out);
    }

    /// Appends what became of chunks of ours since the last call, on the default handle; what came in stays to be taken.
    pub fn take_chunk_fates(&mut self, out: &mut Vec<(ClientHandle, ChunkEvent)>) {
        self.reception.take_fates(out);
    }

    /// How far a chunk of ours is; None when it is over.
    pub fn chunk_progress(&self, now: Instant, number: u64) -> Option<Progress> {
        self.connection.as_ref()?.chunk_progress(now, number)
    }

    /// The chunks of the server that are under way.
    pub fn incoming_chunks(&self, now: Instant) -> Vec<(Offer, Progress)> {
        let connection = self.connection.iter();
        let chunks = connection.flat_map(|connection| connection.incoming_chunks(now));
        chunks.map(|(offer, progress)| (offer.clone(), progress)).collect()
    }

    /// What chunks cost; None before the connection is up and after it ended.
    pub fn chunk_counters(&self) -> Option<ChunkCounters> {
        self.connection.as_ref().map(|connection| connection.chunk_counters())
    }

    /// Bytes a second at which chunks may go out now; None as for [`Client::chunk_counters`].
    pub fn bulk_rate(&self) -> Option<f64> {
        self.connection.as_ref().map(|connection| connection.bulk_rate())
    }

    /// How much may be sent.
    pub fn budget(&self) -> BudgetConfig {
        self.config.budget
    }

    /// Changes how much may be sent.
    ///
    /// # Errors
    /// When a number is out of its bounds. Nothing was changed then.
    pub fn set_budget(&mut self, budget: BudgetConfig) -> Result<(), BudgetError> {
        budget.rate.check()?;
        self.config.budget = budget;
        self.connection_to_change().map_or(Ok(()), |connection| Ok(connection.set_budget(budget)?))
    }

    /// Ends the connection because one of the server's messages is not what its class allows: found out by
    /// code the core can't run. What else it sent is dropped. `why` is for the log.
    pub fn refuse_message(&mut self, now: Instant, why: &str, out: &mut Datagrams) {
        if self.connection.is_some() {
            self.end(now, &End::Violation(Violation::Message(why.into())), out);
        }
        self.leftovers.clear();
        self.unfinished = None;
    }

    /// RTT, jitter, loss and bandwidth; None before the connection is up and after it ended.
    pub fn stats(&self) -> Option<(PacketStats, PacketCounters)> {
        self.connection.as_ref().map(|connection| (connection.stats(), connection.counters()))
    }

    /// Counts of one channel; None as for [`Client::stats`], or when there is no such channel.
    pub fn channel_stats(&self, channel: usize) -> Option<ChannelStats> {
        let connection = self.connection.as_ref()?;
        (channel < self.protocol.channels().len()).then(|| connection.channel_stats(channel))
    }

    /// Packets of the connection, also once it is over.
    pub fn packet_counters(&self) -> PacketCounters {
        self.connection.as_ref().map_or(self.ended, |connection| self.ended + connection.counters())
    }

    /// Chunks of the connection, also once it is over.
    pub fn all_chunk_counters(&self) -> ChunkCounters {
        self.chunk_counters().unwrap_or_default() + self.ended_chunks
    }

    /// What the secure connection counted, drops by name.
    pub fn netcode(&self) -> &netcode::Client {
        &self.netcode
    }

    /// As [`Client::connection_to_change`]; None also when it is about to end.
    fn connection_to_send(&mut self) -> Option<&mut Connection> {
        if self.closing.is_some() { None } else { self.connection_to_change() }
    }

    /// The connection, which may have something else to do after that.
    fn connection_to_change(&mut self) -> Option<&mut Connection> {
        self.next = Instant::ZERO;
        self.connection.as_deref_mut()
    }

    fn apply_netcode_events(&mut self) {
        while let Some(event) = self.netcode.poll_event() {
            match event {
                netcode::ClientEvent::Connected { client_index, max_clients } => {
                    let Ok(connection) = Connection::new(&self.config, self.protocol.clone()) else {
                        continue;
                    };
                    self.connection = Some(Box::new(connection));
                    self.slot = Some(client_index);
                    self.events.push_back(ClientEvent::Connected { client_index, max_clients });
                }
                // While the goodbyes of one that is over are repeated.
                netcode::ClientEvent::Disconnected { .. } if self.reason.is_some() => {}
                netcode::ClientEvent::Disconnected { reason } => {
                    self.report(
                        match reason {
                            netcode::ClientDisconnect::Denied => DisconnectReason::ServerFull,
                            netcode::ClientDisconnect::TokenExpired => DisconnectReason::TokenExpired,
                            netcode::ClientDisconnect::TimedOut => DisconnectReason::TimedOut,
                            netcode::ClientDisconnect::RequestTimedOut => DisconnectReason::RequestTimedOut,
                            netcode::ClientDisconnect::ResponseTimedOut => DisconnectReason::ResponseTimedOut,
                            netcode::ClientDisconnect::ByPeer => DisconnectReason::PeerDisconnected,
                        },
                        None,
                    );
                }
            }
        }
    }

    fn end(&mut self, now: Instant, end: &End, out: &mut Datagrams) {
        self.leave(now, answer_to(end), out);
        let violation = if let End::Violation(violation) = end { Some(violation.clone()) } else { None };
        self.report(reason_of(end, DisconnectReason::ServerClosed), violation);
    }

    fn leave(&mut self, now: Instant, answer: Option<CloseReason>, out: &mut Datagrams) {
        let Some(answer) = answer else { return self.netcode.forget() };
        let farewell = self.farewell(now, answer);
        // The farewell is a packet like any other.
        let told = self.netcode.disconnect(farewell.as_deref(), out);
        debug_assert!(told.is_ok(), "{told:?}");
    }

    /// The last packet, if the server understands it.
    fn farewell(&mut self, now: Instant, reason: CloseReason) -> Option<Vec<u8>> {
        let connection = self.connection.as_mut()?;
        let understood = connection.is_greeted() || reason == CloseReason::Mismatch;
        let detail = self.closing.as_ref().and_then(Closing::detail);
        if understood { connection.farewell(now, reason, detail) } else { None }
    }

    fn report(&mut self, mut reason: DisconnectReason, violation: Option<Violation>) {
        let mut detail = None;
        if let Some(mut connection) = self.connection.take() {
            detail = connection.take_detail();
            if self.closing.is_some() {
                connection.discard_received();
            }
            let channels = self.protocol.channels().len();
            self.leftovers.take_from(ClientHandle::default(), &mut connection, channels);
            connection.conclude();
            self.told.extend(core::iter::from_fn(|| connection.poll_notification()));
            self.reception.finish(ClientHandle::default(), 0, &mut connection);
            self.ended = self.ended + connection.counters();
            self.ended_chunks = self.ended_chunks + connection.chunk_counters();
            if connection.has_unread() {
                self.unfinished = Some(connection);
            }
        }
        if let Some(closing) = self.closing.as_ref().filter(|_| violation.is_none()) {
            // However it came about meanwhile: this side wanted it.
            (reason, detail) = (DisconnectReason::Closed, closing.detail().map(Into::into));
        }
        self.slot = None;
        self.reason = Some(reason);
        self.detail.clone_from(&detail);
        self.events.push_back(ClientEvent::Disconnected { reason, violation, detail });
    }
}
