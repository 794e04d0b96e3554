//! A peer's half of the rendezvous: registers its game, looks codes up, and finds a path to each peer it is introduced
//! to.
//!
//! Promises: a [`RendezvousEvent::Path`] within three seconds if there is a path; datagrams that start with [`MAGIC`]
//! are ours and no others are, so the game's port serves both; datagrams go only to the server, to peers with the key
//! of an introduction, to addresses named in one, and to addresses inside our own network; bounded attempts, lines and
//! events.
//!
//! The owner passes in what the port receives ([`RendezvousClient::handle_datagram`]), calls
//! [`RendezvousClient::transmit`] at least every 50 ms during an attempt, and takes the events. Datagrams to a virtual
//! address ([`is_virtual`]) go through [`RendezvousClient::wrap`] first.

mod alias;
mod attempt;
mod candidates;
mod event;
mod lobby;
mod relay_line;
mod server_line;

use core::net::SocketAddr;
use std::collections::VecDeque;

pub use alias::{is_virtual, lobby_address, lobby_code};
pub use attempt::PathKind;
pub use event::{JoinId, MeetingFault, PeerCounters, RendezvousEvent};

use super::bytes::MAGIC;
use super::code::LobbyCode;
use super::messages::{Answer, GameInfo, Introduction, MAX_INSIDE};
use super::probe::Probe;
use super::relay::RelayPacket;
use super::secrets::Secrets;
use crate::rng::Entropy;
use crate::store::Datagrams;
use crate::store::source_limit::source;
use crate::time::{Duration, Instant};
use alias::{AGAIN_AFTER, ALIAS_TIMEOUT, Alias, STALE_AFTER, note_event};
use attempt::{Attempt, AttemptState, Says};
use lobby::Lobby;
use relay_line::RelayLine;

/// Open attempts at a time.
pub const MAX_ATTEMPTS: usize = 32;

/// Attempts at a time with those that ended, which still answer their peers.
const MAX_KEPT_ATTEMPTS: usize = 8 * MAX_ATTEMPTS;

/// Attempts that one source may cause: players behind one NAT.
const MAX_ATTEMPTS_OF_A_SOURCE: usize = 8;

/// Relayed peers at a time.
const MAX_LINES: usize = 64;

/// The maximum of waiting events; more are dropped and counted.
const MAX_EVENTS: usize = 256;

/// The silence after which a relayed path is dropped.
const LINE_TIMEOUT: Duration = Duration::from_secs(60);

/// What a received datagram was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled<'a> {
    /// The game's own, unrelated to the rendezvous.
    NotOurs,
    Taken,
    /// The game's, over the relay: it came from this virtual address.
    Relayed(SocketAddr, &'a [u8]),
}

struct Line {
    relay: RelayLine,
    used: Instant,
}

/// A peer's half of a rendezvous.
pub struct RendezvousClient {
    secrets: Secrets,
    lobby: Lobby,
    attempts: Vec<Attempt>,
    lines: Vec<Line>,
    aliases: Vec<Alias>,
    /// Ways that were found, the newest last.
    found: VecDeque<(SocketAddr, PathKind)>,
    /// The protocol id of games dialled by their code's address.
    protocol_id: u64,
    events: VecDeque<RendezvousEvent>,
    counters: PeerCounters,
}

impl RendezvousClient {
    /// A peer's half, with the server's address. `inside` are the port's own addresses, a few of which are sent.
    pub fn new(server: SocketAddr, mut inside: Vec<SocketAddr>, entropy: &mut dyn Entropy) -> Self {
        inside.truncate(MAX_INSIDE);
        let mut secrets = Secrets::new(entropy);
        RendezvousClient {
            lobby: Lobby::new(server, inside, &mut secrets),
            secrets,
            attempts: Vec::new(),
            lines: Vec::new(),
            aliases: Vec::new(),
            found: VecDeque::new(),
            protocol_id: 0,
            events: VecDeque::new(),
            counters: PeerCounters::default(),
        }
    }

    pub fn counters(&self) -> PeerCounters {
        self.counters
    }

    /// The code of our game, once it has one.
    pub fn code(&self) -> Option<LobbyCode> {
        self.lobby.code()
    }

    /// Our address as the server sees it.
    pub fn outside(&self) -> Option<SocketAddr> {
        self.lobby.line.us().outside
    }

    /// Registers a game from now on, or changes its description.
    pub fn register(&mut self, now: Instant, info: GameInfo) {
        self.lobby.register(now, info, &mut self.secrets);
    }

    /// Why our own game has no code yet, or why the server may no longer know it.
    pub fn fault(&self) -> Option<MeetingFault> {
        self.lobby.fault()
    }

    /// Sets the protocol of games that are dialled by the addresses of their codes ([`lobby_address`]).
    ///
    /// If we register a game of our own, codes are dialled only once it has one, which the peers we meet are told.
    pub fn dial_codes(&mut self, protocol_id: u64) {
        self.protocol_id = protocol_id;
    }

    /// Why the last attempt to reach the host of a code failed. None for other addresses, and once one succeeded.
    pub fn fault_of(&self, address: SocketAddr) -> Option<MeetingFault> {
        let code = lobby_code(address)?;
        self.aliases.iter().find(|alias| alias.code == code)?.fault
    }

    /// The address by which the game knows the sender at `from`.
    pub fn known_as(&self, from: SocketAddr) -> SocketAddr {
        let alias = self.aliases.iter().find(|alias| alias.path == Some(from));
        alias.map_or(from, |alias| lobby_address(alias.code))
    }

    /// How the peer at this address, or at the code it stands for, was reached; None if no way was looked for.
    pub fn kind_of(&self, address: SocketAddr) -> Option<PathKind> {
        let of_code =
            |code| self.aliases.iter().find(|alias| alias.code == code).and_then(|alias| alias.path);
        let address = lobby_code(address).map_or(Some(address), of_code)?;
        self.found.iter().rev().find(|(other, _)| *other == address).map(|(_, kind)| *kind)
    }

    /// Sets the number of players of the registered game.
    pub fn set_players(&mut self, now: Instant, players: u8) {
        self.lobby.set_players(now, players);
    }

    /// Removes the game from the server, with one unacked datagram.
    pub fn unregister(&mut self, out: &mut Datagrams) {
        self.lobby.unregister(out);
    }

    /// Looks a code up and finds a path to its host. None while there are too many attempts.
    pub fn join(&mut self, now: Instant, code: LobbyCode, protocol_id: u64) -> Option<JoinId> {
        self.lobby.join(now, code, protocol_id, &mut self.secrets)
    }

    /// Asks for the listed games of a protocol, 0 for any; an earlier question is forgotten.
    pub fn list(&mut self, now: Instant, protocol_id: u64) {
        self.lobby.list(now, protocol_id, &mut self.secrets);
    }

    pub fn poll_event(&mut self) -> Option<RendezvousEvent> {
        self.events.pop_front()
    }

    /// Drops a relayed path; other paths need no dropping.
    pub fn forget(&mut self, address: SocketAddr) {
        self.lines.retain(|line| line.relay.address() != address);
    }

    /// Handles a datagram that the port received.
    pub fn handle_datagram<'a>(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &'a [u8],
        out: &mut Datagrams,
    ) -> Handled<'a> {
        if is_virtual(from) {
            // Real datagrams never come from virtual addresses.
            self.counters.unexpected += 1;
            return Handled::Taken;
        }
        if datagram.first() != Some(&MAGIC) {
            return Handled::NotOurs;
        }
        let mut says = Says::new();
        let handled = self.handle_ours(now, from, datagram, &mut says);
        self.send(&says, out);
        self.transmit(now, out);
        handled
    }

    fn handle_ours<'a>(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &'a [u8],
        says: &mut Says,
    ) -> Handled<'a> {
        if let Some((packet, carried)) = RelayPacket::read(datagram) {
            return self.handle_relay(now, from, (packet, carried), says);
        }
        if Probe::read(datagram).is_some() {
            self.handle_probe(now, from, datagram, says);
            return Handled::Taken;
        }
        match Answer::read(datagram) {
            Some((number, Answer::Introduction { peer })) if from == self.lobby.line.server => {
                self.handle_introduction(now, number, peer, datagram);
            }
            answer => {
                let taken = answer.is_some_and(|(number, it)| self.lobby.handle(now, from, number, it));
                self.counters.unexpected += u64::from(!taken);
            }
        }
        Handled::Taken
    }

    fn handle_relay<'a>(
        &mut self,
        now: Instant,
        from: SocketAddr,
        (packet, carried): (RelayPacket, &'a [u8]),
        says: &mut Says,
    ) -> Handled<'a> {
        let channel = match packet {
            RelayPacket::Challenge { channel, .. }
            | RelayPacket::Bound { channel }
            | RelayPacket::Data { channel } => Some(channel),
            RelayPacket::Bind { .. } => None,
        };
        let is_its = |line: &&mut Line| Some(line.relay.channel) == channel && line.relay.relay == from;
        let Some(line) = self.lines.iter_mut().find(is_its) else {
            self.counters.unexpected += 1;
            return Handled::Taken;
        };
        match packet {
            RelayPacket::Challenge { cookie, .. } => line.relay.handle_challenge(now, cookie),
            RelayPacket::Bound { .. } => {
                line.relay.handle_bound(now);
                let (session, address) = (line.relay.session, line.relay.address());
                if let Some(attempt) = self.attempts.iter_mut().find(|it| it.peer.session == session) {
                    attempt.add_relay(now, address);
                }
            }
            RelayPacket::Data { .. } if carried.first() == Some(&MAGIC) => {
                let address = line.relay.address();
                self.handle_probe(now, address, carried, says);
            }
            RelayPacket::Data { .. } => {
                line.used = now;
                let from = line.relay.address();
                return Handled::Relayed(self.known_as(from), carried);
            }
            RelayPacket::Bind { .. } => {}
        }
        Handled::Taken
    }

    fn handle_probe(&mut self, now: Instant, from: SocketAddr, datagram: &[u8], says: &mut Says) {
        let Some(probe) = Probe::read(datagram) else { return self.counters.unexpected += 1 };
        let Some(place) = self.attempts.iter().position(|it| it.peer.session == probe.session) else {
            return self.counters.unexpected += 1;
        };
        let attempt = &mut self.attempts[place];
        if !Probe::is_of(datagram, &attempt.peer.key, !attempt.peer.leads) {
            return self.counters.forged += 1;
        }
        if attempt.handle(now, from, probe, says) {
            self.note_state(now, place);
        }
    }

    fn handle_introduction(&mut self, now: Instant, number: u32, peer: Introduction, datagram: &[u8]) {
        let Some((id, key)) = self.lobby.introduced(number) else { return self.counters.unexpected += 1 };
        if !Answer::is_signed(datagram, &key) || peer.leads != id.is_some() {
            return self.counters.forged += 1;
        }
        self.lobby.line.note_answered(now, None);
        if self.attempts.iter().any(|attempt| attempt.peer.session == peer.session) {
            return;
        }
        let behind = source(peer.outside);
        let of_source = self
            .attempts
            .iter()
            .filter(|it| it.is_open() && it.id.is_none() && source(it.peer.outside) == behind);
        let is_full = id.is_none() && of_source.count() >= MAX_ATTEMPTS_OF_A_SOURCE;
        let open = self.attempts.iter().filter(|attempt| attempt.is_open()).count();
        if is_full || open >= MAX_ATTEMPTS || self.attempts.len() >= MAX_KEPT_ATTEMPTS {
            return self.counters.too_many += 1;
        }
        id.into_iter().for_each(|id| self.lobby.note_introduced(id));
        self.counters.introduced += 1;
        let number = self.secrets.draw_u64() as u32;
        self.attempts.push(Attempt::new(now, self.lobby.line.us().clone(), peer, id, number));
    }

    /// Sends what is due.
    pub fn transmit(&mut self, now: Instant, out: &mut Datagrams) {
        let RendezvousClient { lobby, events, attempts, counters, aliases, .. } = self;
        aliases.retain(|alias| now - alias.used < ALIAS_TIMEOUT);
        let heard = |id: u64| attempts.iter().any(|attempt| attempt.id == Some(id) && attempt.heard);
        lobby.transmit(now, heard, out);
        while let Some(event) = lobby.poll_event() {
            note_event(now, aliases, &event);
            push(events, counters, event);
        }
        let mut says = Says::new();
        for place in 0..self.attempts.len() {
            let attempt = &mut self.attempts[place];
            if attempt.wants_relay(now)
                && let Some((relay, token)) = attempt.peer.relay
                && self.lines.len() < MAX_LINES
                && !self.lines.iter().any(|line| line.relay.session == attempt.peer.session)
            {
                let relay = RelayLine::new(now, attempt.peer.session, relay, token);
                self.lines.push(Line { relay, used: now });
            }
            if attempt.transmit(now, &mut says) {
                self.note_state(now, place);
            }
        }
        self.attempts.retain(|attempt| !attempt.is_over(now));
        self.lines.retain(|line| now - line.used < LINE_TIMEOUT);
        self.lines.iter_mut().for_each(|line| line.relay.transmit(now, out));
        self.send(&says, out);
    }

    /// When [`RendezvousClient::transmit`] is due if nothing arrives before.
    pub fn next_deadline(&self) -> Instant {
        let attempts = self.attempts.iter().map(Attempt::next_deadline);
        let lines = self.lines.iter().map(|line| line.relay.next_deadline());
        attempts.chain(lines).fold(self.lobby.next_deadline(), Instant::min)
    }

    /// Sends a datagram of the game to a virtual address. False, and nothing is sent, if the address isn't virtual, or
    /// its path is gone.
    pub fn wrap(&mut self, now: Instant, to: SocketAddr, datagram: &[u8], out: &mut Datagrams) -> bool {
        if let Some(code) = lobby_code(to) {
            return match self.path_to(now, code, datagram) {
                Some(path) if !is_virtual(path) => {
                    out.push(path, datagram);
                    true
                }
                Some(path) => self.wrap(now, path, datagram, out),
                None => false,
            };
        }
        let line = self.lines.iter_mut().find(|line| line.relay.address() == to);
        let Some(line) = line else { return false };
        line.used = now;
        line.relay.wrap(datagram, out);
        true
    }

    /// The path to a code's host, which is looked for if there is none.
    fn path_to(&mut self, now: Instant, code: LobbyCode, datagram: &[u8]) -> Option<SocketAddr> {
        let place = match self.aliases.iter().position(|alias| alias.code == code) {
            Some(place) => place,
            None if self.aliases.len() >= MAX_ATTEMPTS => return None,
            None => {
                let (join, path, fault) = (None, None, None);
                let (found_at, again_at, used) = (now, now, now);
                self.aliases.push(Alias { code, join, path, fault, found_at, again_at, used });
                self.aliases.len() - 1
            }
        };
        let alias = &mut self.aliases[place];
        alias.used = now;
        // A netcode request begins with a zero: a host that is dialled anew may have moved.
        if datagram.first() == Some(&0) && now - alias.found_at >= STALE_AFTER {
            alias.path = None;
        }
        let may_ask = !self.lobby.is_waiting_for_code();
        if alias.path.is_none() && alias.join.is_none() && now >= alias.again_at && may_ask {
            alias.again_at = now + AGAIN_AFTER;
            alias.join = self.lobby.join(now, code, self.protocol_id, &mut self.secrets).map(|join| join.0);
        }
        alias.path
    }

    /// Sends those datagrams of a batch over the relay that go to virtual addresses; the others stay, in order.
    pub fn wrap_all(&mut self, now: Instant, batch: &mut Datagrams) {
        batch.divert(is_virtual, |to, datagram, out| {
            self.wrap(now, to, datagram, out);
        });
    }

    fn send(&mut self, says: &Says, out: &mut Datagrams) {
        for (to, bytes) in says {
            match self.lines.iter().find(|line| line.relay.address() == *to) {
                Some(line) => line.relay.wrap(bytes, out),
                None if is_virtual(*to) => {}
                None => out.push(*to, bytes),
            }
        }
    }

    fn note_state(&mut self, now: Instant, place: usize) {
        let RendezvousClient { attempts, lines, events, counters, lobby, aliases, found, .. } = self;
        let attempt = &attempts[place];
        let session = attempt.peer.session;
        let join = attempt.id.map(JoinId);
        let event = match attempt.state() {
            AttemptState::Taken(address, kind) => {
                match kind {
                    PathKind::Direct => counters.direct += 1,
                    PathKind::Punched => counters.punched += 1,
                    PathKind::Relayed => counters.relayed += 1,
                }
                found.retain(|(other, _)| *other != address);
                found.push_back((address, kind));
                found.drain(..found.len().saturating_sub(MAX_LINES));
                let stays = kind == PathKind::Relayed;
                lines.retain(|line| line.relay.session != session || stays);
                lines.iter_mut().filter(|line| line.relay.session == session).for_each(|it| it.used = now);
                RendezvousEvent::Path { join, address, kind }
            }
            AttemptState::Failed => {
                counters.no_path += 1;
                lines.retain(|line| line.relay.session != session);
                RendezvousEvent::NoPath { join, server_answered: true }
            }
            _ => return,
        };
        attempt.id.into_iter().for_each(|id| lobby.end_join(id));
        note_event(now, aliases, &event);
        push(events, counters, event);
    }
}

fn push(events: &mut VecDeque<RendezvousEvent>, counters: &mut PeerCounters, event: RendezvousEvent) {
    if events.len() < MAX_EVENTS {
        events.push_back(event);
    } else {
        counters.events_lost += 1;
    }
}
