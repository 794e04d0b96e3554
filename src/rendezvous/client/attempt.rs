//! Finding the path to one peer: both sides probe each other's addresses until one answers.
//!
//! Promises: a path has carried a probe and its reply; both sides take the same one, chosen by the side that asked for
//! the other; a bounded number of datagrams for a bounded time.

use core::net::SocketAddr;

use super::candidates::{Candidate, MAX_CANDIDATES, Ourselves, candidates, is_direct, needs_relay};
use crate::rendezvous::messages::Introduction;
use crate::rendezvous::probe::{Probe, ProbeKind};
use crate::time::{Duration, Instant};

/// Between two probes of one address.
const ASK_INTERVAL: Duration = Duration::from_millis(60);

/// How long a path through a NAT waits for one inside the network, if there may be one.
const INSIDE_GRACE: Duration = Duration::from_millis(60);

/// When the relay is prepared if no path is open yet.
const RELAY_READY_AFTER: Duration = Duration::from_millis(350);

/// When the relay is taken.
const RELAY_TAKEN_AFTER: Duration = Duration::from_millis(800);

/// When the attempt fails.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the other side's last probes are still answered.
const ANSWERED_FOR: Duration = Duration::from_secs(5);

/// How a peer is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// At the peer's own address, or the peer at ours.
    Direct,
    /// Through a hole in a NAT.
    Punched,
    /// Over the relay, at a virtual address.
    Relayed,
}

impl PathKind {
    /// The word for it in reports: `direct`, `punched` or `relayed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PathKind::Direct => "direct",
            PathKind::Punched => "punched",
            PathKind::Relayed => "relayed",
        }
    }
}

/// The state of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptState {
    Asking,
    /// We lead and have told the other side the path.
    Taking(SocketAddr),
    Taken(SocketAddr, PathKind),
    Failed,
}

pub(super) struct Attempt {
    pub(super) peer: Introduction,
    /// The join it is for, as the caller knows it.
    pub(super) id: Option<u64>,
    us: Ourselves,
    candidates: Vec<Candidate>,
    /// The virtual address of the peer, once both sides can use the relay.
    relay: Option<SocketAddr>,
    relay_replied: bool,
    number: u32,
    started: Instant,
    replied_at: Instant,
    ask_at: Instant,
    ended_at: Instant,
    state: AttemptState,
    /// Whether the other side was heard, which proves it was introduced.
    pub(super) heard: bool,
}

/// Datagrams to send, with their receivers.
pub(super) type Says = Vec<(SocketAddr, Vec<u8>)>;

impl Attempt {
    pub(super) fn new(now: Instant, us: Ourselves, peer: Introduction, id: Option<u64>, number: u32) -> Self {
        Attempt {
            candidates: candidates(&us, &peer),
            us,
            peer,
            id,
            relay: None,
            relay_replied: false,
            number,
            started: now,
            replied_at: Instant::NEVER,
            ask_at: now,
            ended_at: Instant::NEVER,
            state: AttemptState::Asking,
            heard: false,
        }
    }

    pub(super) fn state(&self) -> AttemptState {
        self.state
    }

    /// Whether the relay should be prepared.
    pub(super) fn wants_relay(&self, now: Instant) -> bool {
        let soon = self.candidates.is_empty() || needs_relay(&self.us, &self.peer);
        let waits = self.state == AttemptState::Asking && self.replied_at == Instant::NEVER;
        waits && self.peer.relay.is_some() && (soon || now - self.started >= RELAY_READY_AFTER)
    }

    /// Probes the peer at this virtual address too.
    pub(super) fn add_relay(&mut self, now: Instant, address: SocketAddr) {
        if self.relay.is_none() {
            self.relay = Some(address);
            self.ask_at = self.ask_at.min(now);
        }
    }

    /// Whether a path is still sought.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.state, AttemptState::Taken(..) | AttemptState::Failed)
    }

    /// Whether nothing is left to do or answer.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        !self.is_open() && now - self.ended_at >= ANSWERED_FOR
    }

    /// Handles a probe of this session, already proven to be the other side's. True if the state changed.
    pub(super) fn handle(&mut self, now: Instant, from: SocketAddr, probe: Probe, says: &mut Says) -> bool {
        self.heard = true;
        let before = self.state;
        match probe.kind {
            ProbeKind::Ask => {
                self.say(from, ProbeKind::Reply, probe.number, says);
                self.meet(from, says);
            }
            ProbeKind::Reply if probe.number == self.number => self.note_reply(now, from),
            ProbeKind::Take if !self.peer.leads => {
                if matches!(self.state, AttemptState::Asking) {
                    self.end(now, AttemptState::Taken(from, self.kind(from)));
                }
                if matches!(self.state, AttemptState::Taken(taken, _) if taken == from) {
                    self.say(from, ProbeKind::Taken, probe.number, says);
                }
            }
            ProbeKind::Taken if self.state == AttemptState::Taking(from) && probe.number == self.number => {
                self.end(now, AttemptState::Taken(from, self.kind(from)));
            }
            _ => {}
        }
        self.decide(now, says);
        self.state != before
    }

    /// Sends what is due. True if the state changed.
    pub(super) fn transmit(&mut self, now: Instant, says: &mut Says) -> bool {
        let before = self.state;
        let goes_on = matches!(self.state, AttemptState::Asking | AttemptState::Taking(_));
        if goes_on && now - self.started >= ATTEMPT_TIMEOUT {
            self.end(now, AttemptState::Failed);
        }
        self.decide(now, says);
        if now >= self.ask_at {
            self.ask_at = now + ASK_INTERVAL;
            match self.state {
                AttemptState::Asking => {
                    let told = self.candidates.iter().filter(|candidate| !candidate.is_learned);
                    let places = told.map(|candidate| candidate.address);
                    for place in places.chain(self.relay).collect::<Vec<_>>() {
                        self.say(place, ProbeKind::Ask, self.number, says);
                    }
                }
                AttemptState::Taking(place) => self.say(place, ProbeKind::Take, self.number, says),
                _ => self.ask_at = Instant::NEVER,
            }
        }
        self.state != before
    }

    pub(super) fn next_deadline(&self) -> Instant {
        match self.state {
            // By now only the leading side decides.
            AttemptState::Asking if self.peer.leads && self.replied_at != Instant::NEVER => {
                self.ask_at.min(self.replied_at + INSIDE_GRACE)
            }
            AttemptState::Taken(..) | AttemptState::Failed => self.ended_at + ANSWERED_FOR,
            _ => self.ask_at,
        }
    }

    fn say(&self, to: SocketAddr, kind: ProbeKind, number: u32, says: &mut Says) {
        let mut bytes = Vec::with_capacity(32);
        Probe { kind, session: self.peer.session, number }.write(&self.peer.key, self.peer.leads, &mut bytes);
        says.push((to, bytes));
    }

    /// Probes the address that a probe came from: once for each probe, as its source may be forged.
    fn meet(&mut self, from: SocketAddr, says: &mut Says) {
        if self.state != AttemptState::Asking || self.relay == Some(from) {
            return;
        }
        let known = self.candidates.iter().find(|it| it.address == from);
        if known.is_none() && self.candidates.len() < MAX_CANDIDATES {
            let is_inside = self.peer.sighting.inside.contains(&from);
            let learned = Candidate { address: from, is_inside, is_learned: true, replied: false };
            self.candidates.push(learned);
            self.say(from, ProbeKind::Ask, self.number, says);
        } else if known.is_some_and(|it| it.is_learned) {
            self.say(from, ProbeKind::Ask, self.number, says);
        }
    }

    fn note_reply(&mut self, now: Instant, from: SocketAddr) {
        if self.relay == Some(from) {
            self.relay_replied = true;
        } else if let Some(candidate) = self.candidates.iter_mut().find(|it| it.address == from) {
            candidate.replied = true;
            self.replied_at = self.replied_at.min(now);
        }
    }

    /// The leading side takes a path when one is good enough for the time that has passed.
    fn decide(&mut self, now: Instant, says: &mut Says) {
        if !self.peer.leads || self.state != AttemptState::Asking {
            return;
        }
        let mut replied = self.candidates.iter().filter(|candidate| candidate.replied);
        let inside = replied.clone().find(|candidate| candidate.is_inside);
        let may_be_inside = self.candidates.iter().any(|candidate| candidate.is_inside);
        let is_late = now - self.replied_at.min(now) >= INSIDE_GRACE;
        let other = replied.next().filter(|_| !may_be_inside || is_late);
        let is_time = self.candidates.is_empty()
            || needs_relay(&self.us, &self.peer)
            || now - self.started >= RELAY_TAKEN_AFTER;
        let relay = self.relay.filter(|_| self.relay_replied && is_time);
        let Some(place) = inside.or(other).map(|it| it.address).or(relay) else { return };
        self.state = AttemptState::Taking(place);
        self.ask_at = now + ASK_INTERVAL;
        self.say(place, ProbeKind::Take, self.number, says);
    }

    fn end(&mut self, now: Instant, state: AttemptState) {
        self.state = state;
        self.ended_at = now;
    }

    fn kind(&self, address: SocketAddr) -> PathKind {
        if super::relay_line::is_relayed(address) {
            PathKind::Relayed
        } else if is_direct(&self.us, &self.peer, address) {
            PathKind::Direct
        } else {
            PathKind::Punched
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rendezvous::messages::Sighting;

    #[test]
    fn a_peer_that_forges_where_it_asks_from_has_two_answers_sent_there_and_no_more() {
        let outside: SocketAddr = "1.1.1.1:9".parse().unwrap();
        let sighting = Sighting::default();
        let peer = Introduction { session: 1, key: [0; 16], leads: false, outside, sighting, relay: None };
        let at = Instant::from_millis;
        let mut attempt = Attempt::new(at(0), Ourselves::default(), peer, None, 7);
        let victim: SocketAddr = "6.6.6.6:6".parse().unwrap();
        let mut says = Says::new();
        let ask = Probe { kind: ProbeKind::Ask, session: 1, number: 3 };
        attempt.handle(at(1), victim, ask, &mut says);
        for ms in 1..5_000 {
            attempt.transmit(at(ms), &mut says);
        }
        assert_eq!(says.iter().filter(|(to, _)| *to == victim).count(), 2);
        assert!(says.iter().filter(|(to, _)| *to == outside).count() > 50);
        // A repeated probe is answered with one again.
        says.clear();
        attempt.handle(at(4_999), victim, ask, &mut says);
        assert_eq!(says.len(), 2);
    }
}
