//! The server: client slots and the connections in them.
//!
//! Promises: only clients that the admission accepts get a slot; a handle never reaches the next client of a slot;
//! every end caused by the peer or by silence is reported once as an event. Refuses everything else silently,
//! cheapest test first, and counts it.

use core::fmt;
use core::net::SocketAddr;
use std::collections::VecDeque;

use super::USER_DATA_BYTES;
use super::admission::Admission;
use super::config::ServerConfig;
use super::drops::{Counters, DropReason};
use super::leaving::{Farewell, Leaver, LeavingList, Repeats};
use super::packet::{self, Body, Header, Kind, REQUEST_PREFIX};
use super::sealer::{SEND_INTERVAL, Sealer, SendError, check_payload};
use super::server_event::{Received, ServerDisconnect, ServerEvent};
use super::slots::{ClientHandle, Connection, Slots};
use super::token::{ConnectToken, TokenParams};
use super::token_error::TokenError;
use crate::limits::ConfigError;
use crate::rng::Entropy;
use crate::store::keyed_hash::KeyedHash;
use crate::store::{Datagrams, Timers};
use crate::time::{Duration, Instant, UnixSeconds};

/// The silence that ends a connection whatever its token says: clients may make their own tokens, and one without a
/// timeout would keep its slot forever.
const MAX_SILENCE: Duration = Duration::from_secs(300);

/// Seconds in which a client in this process must begin to connect.
const LOCAL_TOKEN_LIFETIME: u64 = 60;

pub struct Server {
    protocol_id: u64,
    max_clients: u32,
    slots: Slots,
    admission: Admission,
    leaving: LeavingList,
    /// By slot, when a keep-alive or timeout may be due.
    timers: Timers,
    /// Memory for the slots that are.
    due: Vec<usize>,
    welcoming: bool,
    events: VecDeque<ServerEvent>,
    counters: Counters,
}

impl Server {
    /// A server without clients. `entropy` provides the challenge key and the secret of its hash tables; `unix` is
    /// the start that [`ServerConfig::max_token_lifetime`] counts from.
    ///
    /// # Errors
    ///
    /// When the configuration is out of bounds.
    pub fn new(
        config: ServerConfig,
        entropy: &mut dyn Entropy,
        unix: UnixSeconds,
    ) -> Result<Server, ConfigError> {
        config.check()?;
        let hash = KeyedHash::new(entropy);
        Ok(Server {
            protocol_id: config.protocol_id,
            // At most 65,536: just checked.
            max_clients: config.max_clients as u32,
            slots: Slots::new(config.max_clients, &hash),
            admission: Admission::new(config, entropy, hash, unix),
            leaving: LeavingList::default(),
            timers: Timers::default(),
            due: Vec::new(),
            welcoming: true,
            events: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// Makes a token for a client in this process, which dials the server at `address`.
    ///
    /// # Errors
    /// When the timeout doesn't fit into a token.
    pub fn local_token(
        &self,
        unix: UnixSeconds,
        address: SocketAddr,
        client_id: u64,
        timeout: Option<u32>,
        entropy: &mut dyn Entropy,
    ) -> Result<ConnectToken, TokenError> {
        let config = &self.admission.config;
        let longest = config.max_token_lifetime.map_or(LOCAL_TOKEN_LIFETIME, |longest| longest.as_secs());
        let params = TokenParams {
            protocol_id: self.protocol_id,
            private_key: &config.private_key,
            client_id,
            created: unix,
            lifetime: Some(longest.min(LOCAL_TOKEN_LIFETIME) as u32),
            timeout,
            public_addresses: &[address],
            internal_addresses: Some(&config.public_addresses[..1]),
            user_data: &[0; USER_DATA_BYTES],
            dated: true,
        };
        ConnectToken::generate(&params, entropy)
    }

    /// Takes a datagram from the network, and returns the payload in it, decrypted in place. Answers go to `out` at once.
    pub fn handle_datagram<'a>(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &'a mut [u8],
        out: &mut Datagrams,
    ) -> Option<Received<'a>> {
        self.handle_claimed(now, unix, from, datagram, out, |_| {})
    }

    /// Like [`Server::handle_datagram`]. Before the datagram is opened, `claimed` gets the client at its source address:
    /// the client's memory can be fetched meanwhile.
    pub(crate) fn handle_claimed<'a>(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &'a mut [u8],
        out: &mut Datagrams,
        claimed: impl FnOnce(ClientHandle),
    ) -> Option<Received<'a>> {
        let occupant = self.slots.by_address(from);
        if let Some(client) = occupant {
            claimed(client);
        }
        let prefix = datagram.first().copied();
        // A client that is connected sends neither: they are its next connection's, or late copies.
        let dials = prefix.is_some_and(|prefix| prefix == REQUEST_PREFIX || Kind::Response.is_of(prefix));
        let result = match occupant {
            Some(client) if !dials => match self.handle_connected(now, client, datagram) {
                Ok(received) => return received,
                Err(reason) => Err(reason),
            },
            _ if !self.welcoming => Err(DropReason::NotWelcoming),
            _ if prefix == Some(REQUEST_PREFIX) => self.handle_request(now, unix, from, datagram, out),
            _ => self.handle_response(now, from, datagram, out),
        };
        if let Err(reason) = result {
            let late = dials && occupant.is_some();
            self.counters.count(if late { DropReason::AddressConnected } else { reason });
        }
        None
    }

    /// Whether newcomers are admitted, for a layer above that can't keep up with arrivals. Without an answer they ask
    /// again until their token's timeout.
    pub fn set_welcoming(&mut self, welcoming: bool) {
        self.welcoming = welcoming;
    }

    /// Keeps the slots of clients that are gone unused until [`Server::release_slot`]: newcomers get others as long
    /// as there are any. For a layer above that reports each slot's clients one after the other.
    pub fn rest_slots(&mut self) {
        self.slots.rests = true;
    }

    /// The layer above is through with this client, which is gone: its slot rests no longer, unless another client had it since.
    pub fn release_slot(&mut self, client: ClientHandle) {
        self.slots.release(client);
    }

    /// Sends keep-alives and goodbyes that are due and frees the slots of clients that fell silent: their own goodbyes are left to
    /// [`Server::say_goodbyes`], so that they can have words.
    pub fn update(&mut self, now: Instant, out: &mut Datagrams) {
        self.leaving.update(now, out);
        let mut due = core::mem::take(&mut self.due);
        self.timers.take_due(now, &mut due);
        for slot in due.drain(..) {
            if let Some(client) = self.slots.occupant(slot as u32) {
                self.update_client(now, client, out);
            }
        }
        self.due = due;
    }

    /// Sends the goodbyes that are due: again in a tick in which [`Server::update`] found a silent client, so that it
    /// gets one at once.
    pub fn say_goodbyes(&mut self, now: Instant, out: &mut Datagrams) {
        self.leaving.update(now, out);
    }

    /// The lowest number that the next payload may have: until the client has answered, a keep-alive comes before it.
    ///
    /// # Errors
    /// When the handle names no connection any more.
    pub fn next_number(&self, client: ClientHandle) -> Result<u64, SendError> {
        let connection = self.slots.find(client).ok_or(SendError::NotConnected)?;
        Ok(connection.sealer.sequence + u64::from(!connection.confirmed))
    }

    /// Sends a payload of 1..=1200 bytes, which `write` appends where it is sealed, under a number of at least
    /// [`Server::next_number`], or one above that of the payload before.
    ///
    /// # Errors
    /// When the handle names no connection any more, or the number is used or above those of a connection.
    pub fn send_numbered(
        &mut self,
        now: Instant,
        client: ClientHandle,
        number: u64,
        write: impl FnOnce(&mut Vec<u8>),
        out: &mut Datagrams,
    ) -> Result<(), SendError> {
        let connection = self.slots.find_mut(client).ok_or(SendError::NotConnected)?;
        connection.sealer.check_number(number)?;
        if !connection.confirmed && connection.sealer.sequence < number {
            // The client drops payloads until a keep-alive has told it that it is connected.
            let body = packet::keep_alive_body(client.slot, self.max_clients);
            connection.sealer.send(connection.address, Kind::KeepAlive, &body, out);
        }
        connection.sealer.skip_to(number)?;
        connection.sealer.send_written(connection.address, Kind::Payload, write, out);
        connection.last_send = now;
        Ok(())
    }

    /// Ends a connection and frees its slot at once. The client gets ten packets, now and in the next updates:
    /// disconnect packets, or payloads with `farewell`, in which the layer above gives a reason. Raises no event.
    ///
    /// # Errors
    ///
    /// When the handle names no connection any more, or `farewell` has a length no payload can have; then nothing has
    /// happened.
    pub fn disconnect(
        &mut self,
        now: Instant,
        client: ClientHandle,
        farewell: Option<Farewell>,
        out: &mut Datagrams,
    ) -> Result<(), SendError> {
        farewell.as_ref().map_or(Ok(()), |farewell| check_payload(&farewell.payload))?;
        let connection = self.slots.remove(client).ok_or(SendError::NotConnected)?;
        let mut leaver = Leaver { farewell, ..self.leaver(now, client, connection) };
        leaver.send_due(now, out);
        self.leaving.add(leaver, out);
        Ok(())
    }

    /// Sets the farewell of a client that an event has just reported as gone, unless it left by itself. Call it
    /// before the next [`Server::update`].
    pub fn set_farewell(&mut self, client: ClientHandle, farewell: Farewell) {
        if check_payload(&farewell.payload).is_ok() {
            self.leaving.set_farewell(client, farewell);
        }
    }

    /// Frees the slot of a client that has sent a goodbye in a payload. Raises no event; does nothing if the handle
    /// names no connection any more.
    pub fn forget(&mut self, client: ClientHandle) {
        self.slots.remove(client);
    }

    /// Disconnects all clients, when no later update will come: all goodbyes go out at once, also those of earlier
    /// disconnects. Disconnect clients that should get a farewell before.
    pub fn shutdown(&mut self, now: Instant, out: &mut Datagrams) {
        for index in 0..self.max_clients {
            if let Some(client) = self.slots.occupant(index) {
                let told = self.disconnect(now, client, None, out);
                debug_assert!(told.is_ok(), "an occupant is connected");
            }
        }
        self.leaving.flush(out);
        self.timers = Timers::default();
    }

    /// Whether disconnected clients are still being notified.
    pub fn has_leavers(&self) -> bool {
        self.leaving.next_deadline() != Instant::NEVER
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// Whether somebody is connected from an address.
    pub fn has_address(&self, address: SocketAddr) -> bool {
        self.slots.by_address(address).is_some()
    }

    /// How many clients are about to answer a challenge, or have given up doing so.
    pub fn half_open_count(&self) -> usize {
        self.admission.half_open.len()
    }

    /// When [`Server::update`] may have something to do; never too late.
    pub fn next_deadline(&self) -> Instant {
        self.timers.next().min(self.leaving.next_deadline())
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn handle_connected<'a>(
        &mut self,
        now: Instant,
        client: ClientHandle,
        datagram: &'a mut [u8],
    ) -> Result<Option<Received<'a>>, DropReason> {
        let header = Header::read(datagram)?;
        if !header.kind.is_replay_protected() {
            return Err(DropReason::UnexpectedType);
        }
        let (connection, replay) = self.slots.receiving(client).ok_or(DropReason::UnknownSource)?;
        if !replay.is_fresh(header.sequence) {
            return Err(DropReason::Replayed);
        }
        let body = header.open(datagram, self.protocol_id, &connection.receive_key)?;
        replay.advance(header.sequence);
        connection.last_receive = now;
        connection.confirmed = true;
        match body {
            Body::Payload(payload) => return Ok(Some((client, header.sequence, payload))),
            Body::Disconnect => self.remove(client, ServerDisconnect::ByPeer),
            _ => (),
        }
        Ok(None)
    }

    fn handle_request(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &mut [u8],
        out: &mut Datagrams,
    ) -> Result<(), DropReason> {
        let handled = self.admission.handle_request(now, unix, from, datagram, &self.slots, out);
        if handled == Err(DropReason::WrongVersion) {
            self.counters.note_version(datagram);
        }
        if let Err(reason) = handled {
            self.admission.explain(now, from, reason, datagram, out);
        }
        handled
    }

    fn handle_response(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &mut [u8],
        out: &mut Datagrams,
    ) -> Result<(), DropReason> {
        let admitted = self.admission.handle_response(now, from, datagram, &self.slots, out)?;
        if let Some(old) = admitted.replaces {
            self.part_with(now, old, ServerDisconnect::Replaced, Some(from), out);
        }
        let client = self.slots.insert(Connection {
            client_id: admitted.client_id,
            address: from,
            sealer: Sealer::new(self.protocol_id, admitted.send_key, 0),
            receive_key: admitted.receive_key,
            timeout: admitted.timeout,
            last_send: now,
            last_receive: now,
            confirmed: false,
        });
        self.send_keep_alive(now, client, out);
        self.timers.set(client.slot as usize, now + SEND_INTERVAL);
        self.events.push_back(ServerEvent::Connected {
            client,
            client_id: admitted.client_id,
            address: from,
            user_data: admitted.user_data,
        });
        Ok(())
    }

    fn update_client(&mut self, now: Instant, client: ClientHandle, out: &mut Datagrams) {
        let Some(connection) = self.slots.find(client) else { return };
        let silence = connection.last_receive + connection.timeout.unwrap_or(MAX_SILENCE).min(MAX_SILENCE);
        let mut send_at = connection.last_send + SEND_INTERVAL;
        if silence <= now {
            // A client that hangs finds the goodbyes in its socket when it wakes.
            return self.part_with(now, client, ServerDisconnect::TimedOut, None, out);
        }
        if send_at <= now {
            self.send_keep_alive(now, client, out);
            send_at = now + SEND_INTERVAL;
        }
        self.timers.set(client.slot as usize, silence.min(send_at));
    }

    fn send_keep_alive(&mut self, now: Instant, client: ClientHandle, out: &mut Datagrams) {
        let body = packet::keep_alive_body(client.slot, self.max_clients);
        if let Some(connection) = self.slots.find_mut(client) {
            connection.sealer.send(connection.address, Kind::KeepAlive, &body, out);
            connection.last_send = now;
        }
    }

    /// Frees a client's slot and notifies it, unless its address is `taken` by the next connection.
    fn part_with(
        &mut self,
        now: Instant,
        client: ClientHandle,
        reason: ServerDisconnect,
        taken: Option<SocketAddr>,
        out: &mut Datagrams,
    ) {
        let Some(connection) = self.slots.remove(client) else { return };
        if taken != Some(connection.address) {
            let leaver = self.leaver(now, client, connection);
            self.leaving.add(leaver, out);
        }
        self.events.push_back(ServerEvent::Disconnected { client, reason });
    }

    /// A client to be notified that its connection is over.
    fn leaver(&self, now: Instant, client: ClientHandle, connection: Connection) -> Leaver {
        Leaver {
            client,
            address: connection.address,
            sealer: connection.sealer,
            introduction: (!connection.confirmed)
                .then(|| packet::keep_alive_body(client.slot, self.max_clients)),
            farewell: None,
            repeats: Repeats::new(now, Instant::NEVER),
        }
    }

    fn remove(&mut self, client: ClientHandle, reason: ServerDisconnect) {
        if self.slots.remove(client).is_some() {
            self.events.push_back(ServerEvent::Disconnected { client, reason });
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("connected", &self.slots.len()).finish_non_exhaustive()
    }
}
