//! A peer's questions to the server: registering its game, looking codes up, listing games.
//!
//! Promises: each question is repeated until it is answered or expires; repeated registration keeps the NAT's mapping
//! alive and finds a new one.

use core::net::SocketAddr;
use std::collections::VecDeque;

use super::server_line::ServerLine;
use super::{JoinId, MAX_ATTEMPTS, MeetingFault, RendezvousEvent};
use crate::rendezvous::code::LobbyCode;
use crate::rendezvous::messages::{Answer, GameInfo, ListedGame, Request};
use crate::rendezvous::secrets::Secrets;
use crate::store::Datagrams;
use crate::time::{Duration, Instant};

/// Between two repetitions of a question.
const ASK_INTERVAL: Duration = Duration::from_millis(120);

/// Between two registrations of a game: NATs keep a mapping for 30 seconds and more.
pub(super) const REGISTER_INTERVAL: Duration = Duration::from_secs(10);

/// When a question expires.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Registrations without answer after which the server counts as silent.
const SILENT_AFTER: u32 = 25;

struct Hosted {
    secret: [u8; 16],
    number: u32,
    info: GameInfo,
    /// The code and address last reported.
    known: Option<(LobbyCode, SocketAddr)>,
    /// Why the last registrations failed.
    fault: Option<MeetingFault>,
    ask_at: Instant,
    unanswered: u32,
}

struct Join {
    id: u64,
    code: LobbyCode,
    protocol_id: u64,
    nonce: [u8; 16],
    number: u32,
    started: Instant,
    ask_at: Instant,
    is_introduced: bool,
}

struct Listing {
    protocol_id: u64,
    number: u32,
    games: Vec<ListedGame>,
    started: Instant,
    ask_at: Instant,
}

pub(super) struct Lobby {
    pub(super) line: ServerLine,
    hosted: Option<Hosted>,
    joins: Vec<Join>,
    listing: Option<Listing>,
    next_join: u64,
    events: VecDeque<RendezvousEvent>,
}

impl Lobby {
    pub(super) fn new(server: SocketAddr, inside: Vec<SocketAddr>, secrets: &mut Secrets) -> Self {
        Lobby {
            line: ServerLine::new(server, inside, secrets.draw_u64() as u32),
            hosted: None,
            joins: Vec::new(),
            listing: None,
            next_join: 0,
            events: VecDeque::new(),
        }
    }

    pub(super) fn code(&self) -> Option<LobbyCode> {
        self.hosted.as_ref()?.known.map(|(code, _)| code)
    }

    pub(super) fn fault(&self) -> Option<MeetingFault> {
        self.hosted.as_ref()?.fault
    }

    /// Whether our own game is to have a code and has none yet.
    pub(super) fn is_waiting_for_code(&self) -> bool {
        self.hosted.as_ref().is_some_and(|hosted| hosted.known.is_none())
    }

    pub(super) fn register(&mut self, now: Instant, info: GameInfo, secrets: &mut Secrets) {
        match &mut self.hosted {
            Some(hosted) => (hosted.info, hosted.ask_at) = (info, now),
            None => {
                let (secret, number) = (secrets.draw_key(), number(secrets));
                self.hosted = Some(Hosted {
                    secret,
                    number,
                    info,
                    known: None,
                    fault: None,
                    ask_at: now,
                    unanswered: 0,
                });
            }
        }
    }

    pub(super) fn set_players(&mut self, now: Instant, players: u8) {
        if let Some(hosted) = self.hosted.as_mut().filter(|hosted| hosted.info.players != players) {
            (hosted.info.players, hosted.ask_at) = (players, hosted.ask_at.min(now));
        }
    }

    pub(super) fn unregister(&mut self, out: &mut Datagrams) {
        if let Some(Hosted { secret, number, .. }) = self.hosted.take() {
            self.line.ask(number, Request::Unregister { secret }, out);
        }
    }

    pub(super) fn join(
        &mut self,
        now: Instant,
        code: LobbyCode,
        protocol_id: u64,
        secrets: &mut Secrets,
    ) -> Option<JoinId> {
        if self.joins.len() >= MAX_ATTEMPTS {
            return None;
        }
        self.next_join += 1;
        self.joins.push(Join {
            id: self.next_join,
            code,
            protocol_id,
            nonce: secrets.draw_key(),
            number: number(secrets),
            started: now,
            ask_at: now,
            is_introduced: false,
        });
        Some(JoinId(self.next_join))
    }

    pub(super) fn list(&mut self, now: Instant, protocol_id: u64, secrets: &mut Secrets) {
        let number = number(secrets);
        self.listing = Some(Listing { protocol_id, number, games: Vec::new(), started: now, ask_at: now });
    }

    /// The attempt for a join ended.
    pub(super) fn end_join(&mut self, id: u64) {
        self.joins.retain(|join| join.id != id);
    }

    pub(super) fn poll_event(&mut self) -> Option<RendezvousEvent> {
        self.events.pop_front()
    }

    /// The owner of an introduction with this number: a join and its nonce, or our game and its secret.
    pub(super) fn introduced(&mut self, number: u32) -> Option<(Option<u64>, [u8; 16])> {
        if number == 0 {
            return self.hosted.as_ref().map(|hosted| (None, hosted.secret));
        }
        let join = self.joins.iter_mut().find(|join| join.number == number)?;
        Some((Some(join.id), join.nonce))
    }

    /// The introduction for a join is proven; its question is repeated only so that the other side gets its own.
    pub(super) fn note_introduced(&mut self, id: u64) {
        self.joins.iter_mut().filter(|join| join.id == id).for_each(|join| join.is_introduced = true);
    }

    /// Handles an answer other than an introduction; false if nobody asked.
    pub(super) fn handle(&mut self, now: Instant, from: SocketAddr, number: u32, answer: Answer) -> bool {
        if let Answer::Observed { seen } = answer {
            let is_answer = self.line.handle_observed(from, number, seen);
            if is_answer {
                self.ask_all(now);
            }
            return is_answer;
        }
        if from != self.line.server {
            return false;
        }
        let of_hosted = self.hosted.as_ref().is_some_and(|hosted| hosted.number == number);
        let of_join = self.joins.iter().position(|join| join.number == number);
        let of_list = self.listing.as_ref().is_some_and(|listing| listing.number == number);
        match answer {
            Answer::Challenge { cookie, second_port, seen } if of_hosted || of_join.is_some() || of_list => {
                if self.line.handle_challenge(now, cookie, second_port, seen) {
                    self.ask_all(now);
                }
            }
            Answer::Registered { code, seen } if of_hosted => {
                let moved = self.line.note_answered(now, Some(seen));
                if moved {
                    self.ask_all(now);
                }
                let Some(hosted) = &mut self.hosted else { return false };
                (hosted.unanswered, hosted.fault) = (0, None);
                hosted.ask_at = if moved { now } else { now + REGISTER_INTERVAL };
                if hosted.known.replace((code, seen)) != Some((code, seen)) {
                    self.events.push_back(RendezvousEvent::Registered { code, outside: seen });
                }
            }
            Answer::Refused { why: refusal } if of_hosted => {
                self.line.note_answered(now, None);
                let fault = Some(MeetingFault::Refused(refusal));
                let ask_at = now + REGISTER_INTERVAL;
                self.hosted.as_mut().into_iter().for_each(|it| (it.ask_at, it.fault) = (ask_at, fault));
                self.events.push_back(RendezvousEvent::NotRegistered(refusal));
            }
            Answer::Refused { why: refusal } => {
                let Some(place) = of_join.filter(|place| !self.joins[*place].is_introduced) else {
                    return false;
                };
                self.line.note_answered(now, None);
                let join = JoinId(self.joins.remove(place).id);
                self.events.push_back(RendezvousEvent::Refused { join, refusal });
            }
            Answer::Games { total, first, games } if of_list => self.note_games(now, total, first, games),
            _ => return false,
        }
        true
    }

    fn note_games(&mut self, now: Instant, total: u16, first: u16, games: Vec<ListedGame>) {
        self.line.note_answered(now, None);
        let Some(listing) = self.listing.as_mut() else { return };
        // A page that was asked for twice, or came out of order.
        if usize::from(first) != listing.games.len() {
            return;
        }
        let is_last = games.is_empty() || usize::from(first) + games.len() >= usize::from(total);
        listing.games.extend(games);
        (listing.ask_at, listing.started) = (now, now);
        if is_last && let Some(listing) = self.listing.take() {
            self.events.push_back(RendezvousEvent::Games(listing.games));
        }
    }

    fn ask_all(&mut self, now: Instant) {
        self.hosted.iter_mut().for_each(|hosted| hosted.ask_at = now);
        self.joins.iter_mut().for_each(|join| join.ask_at = now);
        self.listing.iter_mut().for_each(|listing| listing.ask_at = now);
    }

    /// Sends the questions that are due. `heard` says of a join whether the other side was heard already.
    pub(super) fn transmit(&mut self, now: Instant, heard: impl Fn(u64) -> bool, out: &mut Datagrams) {
        let Lobby { line, hosted, joins, listing, events, .. } = self;
        line.transmit(now, out);
        let sighting = line.us().sighting.clone();
        if let Some(hosted) = hosted.as_mut().filter(|hosted| now >= hosted.ask_at && line.may_ask()) {
            hosted.ask_at = now + ASK_INTERVAL;
            hosted.unanswered += 1;
            if hosted.unanswered == SILENT_AFTER {
                hosted.fault = Some(MeetingFault::Silent);
                events.push_back(RendezvousEvent::ServerSilent);
            }
            if hosted.unanswered >= SILENT_AFTER {
                hosted.ask_at = now + 16 * ASK_INTERVAL;
            }
            let (secret, info) = (hosted.secret, hosted.info.clone());
            line.ask(hosted.number, Request::Register { secret, info, sighting: sighting.clone() }, out);
        }
        joins.retain(|join| {
            let stays = join.is_introduced || now - join.started < ANSWER_TIMEOUT;
            if !stays {
                let (join, server_answered) = (Some(JoinId(join.id)), false);
                events.push_back(RendezvousEvent::NoPath { join, server_answered });
            }
            stays
        });
        for join in joins.iter_mut().filter(|join| now >= join.ask_at && line.may_ask()) {
            join.ask_at = now + ASK_INTERVAL;
            if heard(join.id) || join.is_introduced && now - join.started >= ANSWER_TIMEOUT {
                join.ask_at = Instant::NEVER;
                continue;
            }
            let (code, protocol_id, nonce) = (join.code, join.protocol_id, join.nonce);
            let request = Request::Join { code, protocol_id, nonce, sighting: sighting.clone() };
            line.ask(join.number, request, out);
        }
        if listing.as_ref().is_some_and(|listing| now - listing.started >= ANSWER_TIMEOUT) {
            *listing = None;
            events.push_back(RendezvousEvent::ServerSilent);
        }
        if let Some(listing) = listing.as_mut().filter(|listing| now >= listing.ask_at && line.may_ask()) {
            listing.ask_at = now + ASK_INTERVAL;
            let first = u16::try_from(listing.games.len()).unwrap_or(u16::MAX);
            line.ask(listing.number, Request::List { protocol_id: listing.protocol_id, first }, out);
        }
    }

    pub(super) fn next_deadline(&self) -> Instant {
        let hosted = self.hosted.iter().map(|hosted| hosted.ask_at);
        let joins = self.joins.iter().map(|join| join.ask_at);
        let listing = self.listing.iter().map(|listing| listing.ask_at);
        let asks = hosted.chain(joins).chain(listing).fold(Instant::NEVER, Instant::min);
        // Questions that need our addresses wait until those are known.
        let asks = if self.line.may_ask() { asks } else { Instant::NEVER };
        asks.min(self.line.next_deadline())
    }
}

/// A question's number; 0 is for unrequested answers.
fn number(secrets: &mut Secrets) -> u32 {
    (secrets.draw_u64() as u32).max(1)
}
