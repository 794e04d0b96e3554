//! The client: one connect token, one try of its servers in turn, at most one connection.
//!
//! Promises: a client that has been connected never dials again, whatever its token allows: its sequences would start
//! again under the same keys. Every end has a reason, reported once as an event. Refuses, before decrypting,
//! everything that does not come from the server it is dialling or is useless in its state.
//!
//! Trusted: its token, which came over a secure channel, and after that every holder of the token's keys: all its
//! servers alike, because no packet names its server. So an attacker who captures a server's packets unheard, and
//! sends them in the name of the next server, is believed. Constant memory.

use core::fmt;
use core::net::SocketAddr;
use std::collections::VecDeque;

use super::address::same_endpoint;
use super::challenge::CHALLENGE_TOKEN_BYTES;
use super::client_state::{ClientDisconnect, ClientEvent, ClientState};
use super::config::ClientConfig;
use super::drops::{Counters, DropReason};
use super::explanation::{EXPLANATION_PREFIX, Refusal};
use super::packet::{self, Body, Header, Kind, Request};
use super::replay::{REPLAY_WINDOW, ReplayWindow};
use super::sealer::{DISCONNECT_REPEATS, SEND_INTERVAL, Sealer, SendError, check_payload};
use super::token::ConnectToken;
use super::token_use::TokenUse;
use crate::limits::ConfigError;
use crate::store::Datagrams;
use crate::time::{Duration, Instant};

/// How long the system must report that nothing listens at a server's address.
const UNREACHABLE_AFTER: Duration = Duration::from_millis(750);

pub struct Client {
    development: bool,
    patience: Option<Duration>,
    /// Since when the system has reported that nothing listens at the server's address.
    unreachable: Option<Instant>,
    /// The token of this connection.
    pub token: ConnectToken,
    server_index: usize,
    state: ClientState,
    /// Kept across the token's servers: they share its keys.
    sealer: Sealer,
    replay: ReplayWindow,
    challenge: (u64, [u8; CHALLENGE_TOKEN_BYTES]),
    /// When the first server was dialled: the token's lifetime starts here.
    started: Instant,
    last_receive: Instant,
    /// When the next request, response or keep-alive is due.
    send_at: Instant,
    events: VecDeque<ClientEvent>,
    counters: Counters,
    token_use: TokenUse,
    note: Box<[u8]>,
}

impl Client {
    /// A client that dials the token's first server at its first [`Client::update`].
    ///
    /// # Errors
    /// When the token is for another protocol id, or the configuration is out of bounds.
    pub fn new(config: ClientConfig, token: ConnectToken, now: Instant) -> Result<Client, ConfigError> {
        config.check(token.protocol_id)?;
        Ok(Client {
            development: config.development,
            patience: config.patience,
            unreachable: None,
            note: Box::default(),
            server_index: 0,
            state: ClientState::SendingRequest,
            sealer: Sealer::new(config.protocol_id, token.client_to_server, 0),
            replay: ReplayWindow::new(REPLAY_WINDOW),
            challenge: (0, [0; CHALLENGE_TOKEN_BYTES]),
            started: now,
            last_receive: now,
            send_at: now,
            events: VecDeque::new(),
            counters: Counters::default(),
            token_use: TokenUse::default(),
            token,
        })
    }

    /// Takes a datagram from the network and returns the payload in it, decrypted in place, with the packet's sequence, of
    /// which each comes once. Answers go to `out`.
    pub fn handle_datagram<'a>(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &'a mut [u8],
        out: &mut Datagrams,
    ) -> Option<(u64, &'a [u8])> {
        if self.development && datagram.first() == Some(&EXPLANATION_PREFIX) {
            self.hear_refusal(from, datagram);
            return None;
        }
        match self.open(from, datagram).and_then(|body| self.handle_body(now, body, out)) {
            Ok(payload) => payload,
            Err(reason) => {
                self.counters.count(reason);
                None
            }
        }
    }

    /// Sends due packets and notices silence and expiry.
    pub fn update(&mut self, now: Instant, out: &mut Datagrams) {
        if self.state.is_final() {
            return;
        }
        let told = self.give_up(now, None, out);
        debug_assert!(told.is_ok(), "{told:?}");
        self.check_clock(now);
        if self.state.is_final() || now < self.send_at {
            return;
        }
        match self.state {
            ClientState::SendingRequest => {
                out.push_with(self.server_address(), |arena| Request::write(&self.token, arena));
                self.send_at = now + SEND_INTERVAL;
            }
            ClientState::SendingResponse => self.send_response(now, out),
            ClientState::Connected => self.send(now, Kind::KeepAlive, &packet::keep_alive_body(0, 0), out),
            _ => (),
        }
    }

    /// The lowest number that the next payload may have.
    pub fn next_number(&self) -> u64 {
        self.sealer.sequence
    }

    /// Sends a payload of 1..=1200 bytes.
    ///
    /// # Errors
    /// When not connected, or the payload has another length.
    pub fn send_payload(
        &mut self,
        now: Instant,
        payload: &[u8],
        out: &mut Datagrams,
    ) -> Result<(), SendError> {
        check_payload(payload)?;
        self.send_numbered(now, self.next_number(), |out| out.extend_from_slice(payload), out)
    }

    /// Sends a payload of 1..=1200 bytes, which `write` appends where it is sealed, under a number of at least
    /// [`Client::next_number`].
    ///
    /// # Errors
    /// When not connected, or the number is used or above those of a connection.
    pub fn send_numbered(
        &mut self,
        now: Instant,
        number: u64,
        write: impl FnOnce(&mut Vec<u8>),
        out: &mut Datagrams,
    ) -> Result<(), SendError> {
        if self.state != ClientState::Connected {
            return Err(SendError::NotConnected);
        }
        self.sealer.skip_to(number)?;
        self.sealer.send_written(self.server_address(), Kind::Payload, write, out);
        self.note_sent(now);
        Ok(())
    }

    /// Ends the connection, or the attempt. The server gets ten packets at once, because no later update comes:
    /// disconnect packets, or, once connected, payloads with `farewell`, in which the layer above gives a reason.
    /// Raises no event; does nothing if the client has finished.
    ///
    /// # Errors
    ///
    /// When `farewell` has a length no payload can have; then nothing has happened.
    pub fn disconnect(&mut self, farewell: Option<&[u8]>, out: &mut Datagrams) -> Result<(), SendError> {
        farewell.map_or(Ok(()), check_payload)?;
        if !self.state.is_final() {
            // Before it is connected, a server has no use for payloads.
            let farewell = farewell.filter(|_| self.state == ClientState::Connected);
            let server = self.server_address();
            self.token_use.note(true);
            (0..DISCONNECT_REPEATS).for_each(|_| self.sealer.send_goodbye(server, farewell, out));
            self.state = ClientState::Disconnected;
        }
        Ok(())
    }

    /// How long nothing has arrived from the server; None unless connected.
    pub fn silence(&self, now: Instant) -> Option<Duration> {
        (self.state == ClientState::Connected).then(|| now - self.last_receive)
    }

    /// Whether the server has been silent for longer than the token's timeout: the next [`Client::update`] gives up.
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.state == ClientState::Connected && now > self.silence_deadline()
    }

    /// Gives up a server that is overdue, and notifies it in case it still hears us: ten times, with `farewell` or
    /// with disconnect packets, like [`Client::disconnect`]. Does nothing before that.
    ///
    /// # Errors
    ///
    /// When `farewell` has a length no payload can have; then nothing has happened.
    pub fn give_up(
        &mut self,
        now: Instant,
        farewell: Option<&[u8]>,
        out: &mut Datagrams,
    ) -> Result<(), SendError> {
        if self.is_overdue(now) {
            self.disconnect(farewell, out)?;
            self.finish(ClientDisconnect::TimedOut);
        }
        Ok(())
    }

    /// Finishes without notifying the server, which sent a goodbye in a payload. Raises no event.
    pub fn forget(&mut self) {
        if !self.state.is_final() {
            self.state = ClientState::Disconnected;
        }
    }

    /// The system reports that nothing listens at an address. Anybody who guesses our port can forge that, so it
    /// counts only before the server was first heard, and if it persists: the server may just be starting.
    pub fn note_unreachable(&mut self, now: Instant, address: SocketAddr) {
        if self.state != ClientState::SendingRequest || !same_endpoint(address, self.server_address()) {
            return;
        }
        if now - *self.unreachable.get_or_insert(now) >= UNREACHABLE_AFTER {
            self.end_attempt(now, ClientDisconnect::Unreachable);
        }
    }

    /// No way leads to the address that is being dialled: dials the token's next one, or finishes.
    pub fn note_no_way(&mut self, now: Instant) {
        if self.state == ClientState::SendingRequest {
            self.end_attempt(now, ClientDisconnect::Unreachable);
        }
    }

    /// The note in the server's refusal about its protocol: at most [`MAX_NOTE_BYTES`](super::MAX_NOTE_BYTES),
    /// unproven.
    pub fn note(&self) -> &[u8] {
        &self.note
    }

    /// The state of this client now.
    pub fn state(&self) -> ClientState {
        self.state
    }

    /// How the token is used: updated from now on.
    pub fn token_use(&self) -> TokenUse {
        self.token_use.clone()
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// The server that is dialled, or was last.
    pub fn server_address(&self) -> SocketAddr {
        self.token.addresses[self.server_index]
    }

    /// Whether datagrams from an address can be for this client.
    pub fn is_from(&self, from: SocketAddr) -> bool {
        !self.state.is_final() && same_endpoint(from, self.server_address())
    }

    /// Whether a datagram from its server's address is for this client, if a server of ours listens on the same port:
    /// by its kind, or, if that server has also `accepted` a connection from there, by the key that opens it.
    pub fn is_for_us(&self, datagram: &[u8], accepted: bool) -> bool {
        let Ok(header) = Header::read(datagram) else {
            // No packet, but perhaps the reason why we are refused.
            return Refusal::read(datagram, &self.token.nonce).is_some();
        };
        match header.kind {
            Kind::Response => false,
            Kind::Denied | Kind::Challenge => true,
            // With two connections each packet is opened twice, the first time in a copy.
            _ if accepted && self.expects(header.kind) => {
                let mut copy = datagram.to_vec();
                header.open(&mut copy, self.token.protocol_id, &self.token.server_to_client).is_ok()
            }
            _ => !accepted,
        }
    }

    /// When [`Client::update`] will have something to do.
    pub fn next_deadline(&self) -> Instant {
        if self.state.is_final() {
            return Instant::NEVER;
        }
        // The standard's client gives up after the timeout, not at it.
        let silence = self.silence_deadline().min(self.patience_deadline()) + Duration::from_nanos(1);
        let expiry = if self.state == ClientState::Connected { Instant::NEVER } else { self.expiry() };
        self.send_at.min(silence).min(expiry)
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn open<'a>(&mut self, from: SocketAddr, datagram: &'a mut [u8]) -> Result<(u64, Body<'a>), DropReason> {
        if self.state.is_final() {
            return Err(DropReason::NotConnected);
        }
        if !same_endpoint(from, self.server_address()) {
            return Err(DropReason::WrongAddress);
        }
        let header = Header::read(datagram)?;
        if !self.expects(header.kind) {
            return Err(DropReason::UnexpectedType);
        }
        if header.kind.is_replay_protected() && !self.replay.is_fresh(header.sequence) {
            return Err(DropReason::Replayed);
        }
        let body = header.open(datagram, self.token.protocol_id, &self.token.server_to_client)?;
        if header.kind.is_replay_protected() {
            self.replay.advance(header.sequence);
        }
        Ok((header.sequence, body))
    }

    /// Ends the attempt if the server's answer to our own request says that it is hopeless.
    fn hear_refusal(&mut self, from: SocketAddr, datagram: &[u8]) {
        let is_expected =
            self.state == ClientState::SendingRequest && same_endpoint(from, self.server_address());
        match Refusal::read(datagram, &self.token.nonce) {
            Some((refusal, note)) if is_expected => {
                self.note = note.into();
                self.finish(ClientDisconnect::Refused(refusal));
            }
            _ => self.counters.count(DropReason::UnknownType),
        }
    }

    fn expects(&self, kind: Kind) -> bool {
        match self.state {
            ClientState::SendingRequest => matches!(kind, Kind::Challenge | Kind::Denied),
            ClientState::SendingResponse => matches!(kind, Kind::KeepAlive | Kind::Denied),
            ClientState::Connected => matches!(kind, Kind::KeepAlive | Kind::Payload | Kind::Disconnect),
            _ => false,
        }
    }

    fn handle_body<'a>(
        &mut self,
        now: Instant,
        (number, body): (u64, Body<'a>),
        out: &mut Datagrams,
    ) -> Result<Option<(u64, &'a [u8])>, DropReason> {
        match body {
            Body::Denied => self.end_attempt(now, ClientDisconnect::Denied),
            Body::Challenge { sequence, token } => {
                self.challenge = (sequence, *token);
                self.last_receive = now;
                self.state = ClientState::SendingResponse;
                self.send_response(now, out);
            }
            Body::KeepAlive { client_index, max_clients } => {
                if client_index >= max_clients {
                    return Err(DropReason::ClientIndex);
                }
                self.last_receive = now;
                if self.state == ClientState::SendingResponse {
                    self.state = ClientState::Connected;
                    self.events.push_back(ClientEvent::Connected { client_index, max_clients });
                }
            }
            Body::Payload(payload) => {
                self.last_receive = now;
                return Ok(Some((number, payload)));
            }
            Body::Disconnect => self.finish(ClientDisconnect::ByPeer),
        }
        Ok(None)
    }

    /// Ends an attempt to connect that took too long.
    fn check_clock(&mut self, now: Instant) {
        let (expired, silent) = (now >= self.expiry(), now > self.silence_deadline());
        match self.state {
            ClientState::SendingRequest | ClientState::SendingResponse if expired => {
                self.finish(ClientDisconnect::TokenExpired);
            }
            ClientState::SendingRequest if silent || now > self.patience_deadline() => {
                self.end_attempt(now, ClientDisconnect::RequestTimedOut);
            }
            // It may have admitted us, and then uses sequences that the next server would start with too.
            ClientState::SendingResponse if silent => self.finish(ClientDisconnect::ResponseTimedOut),
            _ => (),
        }
    }

    /// When the token expires by our own clock, counted from the first dial: no server admits it later.
    fn expiry(&self) -> Instant {
        self.started + self.token.lifetime()
    }

    fn silence_deadline(&self) -> Instant {
        self.token.timeout().map_or(Instant::NEVER, |timeout| self.last_receive + timeout)
    }

    /// When the next server is dialled though this one may still answer.
    fn patience_deadline(&self) -> Instant {
        let has_more = self.server_index + 1 < self.token.addresses.len();
        let patience = self.patience.filter(|_| has_more && self.state == ClientState::SendingRequest);
        patience.map_or(Instant::NEVER, |patience| self.last_receive + patience)
    }

    /// Dials the token's next server, or finishes after the last.
    fn end_attempt(&mut self, now: Instant, reason: ClientDisconnect) {
        if self.server_index + 1 == self.token.addresses.len() {
            return self.finish(reason);
        }
        self.server_index += 1;
        self.unreachable = None;
        self.state = ClientState::SendingRequest;
        self.replay.reset();
        self.last_receive = now;
        self.send_at = now;
    }

    fn finish(&mut self, reason: ClientDisconnect) {
        self.state = reason.state();
        self.token_use.note(self.sealer.sequence > 0);
        self.events.push_back(ClientEvent::Disconnected { reason });
    }

    fn send_response(&mut self, now: Instant, out: &mut Datagrams) {
        let body = packet::challenge_body(self.challenge.0, &self.challenge.1);
        self.send(now, Kind::Response, &body, out);
    }

    fn send(&mut self, now: Instant, kind: Kind, body: &[u8], out: &mut Datagrams) {
        self.sealer.send(self.server_address(), kind, body, out);
        self.note_sent(now);
    }

    fn note_sent(&mut self, now: Instant) {
        self.token_use.note(true);
        self.send_at = now + SEND_INTERVAL;
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("state", &self.state)
            .field("server_address", &self.server_address())
            .finish_non_exhaustive()
    }
}
