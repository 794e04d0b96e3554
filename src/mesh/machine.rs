//! The state machine: handles links, messages and time, and queues actions.

use core::net::SocketAddr;
use std::collections::VecDeque;

use super::links::{Election, Expected, Link, LinkId, Role};
use super::message::{Key, Message, Stamp};
use super::output::{Action, Happening, MeshFault};
use super::roster::{Identity, LeaveReason, Member, Players, Roster, Start, bit};
use super::{JOIN_TIMEOUT, MAX_PLAYERS, REPORT_GRACE};
use crate::time::{Duration, Instant};

/// The settings of a peer.
#[derive(Clone, Debug)]
pub struct MeshConfig {
    pub name: String,
    /// The key that seals connect tokens for this peer.
    pub key: Key,
    /// The addresses that the peer knows it has.
    pub addresses: Vec<SocketAddr>,
    /// The maximum of players, set by the host; the others learn it.
    pub places: u8,
    /// The silence that ends a link.
    pub timeout: Duration,
}

/// How far this peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It asks to be let in, and asks again at this time.
    Asking {
        again_at: Instant,
    },
    /// It has a number, and connects to the other members.
    Joining,
    Member,
    Ended(LeaveReason),
}

/// A peer's part in a game: see the module.
#[derive(Clone, Debug)]
pub struct Mesh {
    pub(super) config: MeshConfig,
    pub(super) phase: Phase,
    /// This player and its joining, once welcomed.
    pub(super) me: Identity,
    pub(super) links: Vec<Link>,
    pub(super) expected: Vec<Expected>,
    /// The contact that the application gave: it is asked again if the one that it named doesn't answer.
    pub(super) contact: Vec<SocketAddr>,
    /// When this newcomer must have an answer. `NEVER` before it asks, and while a contact waits for a new master.
    pub(super) answer_by: Instant,
    /// How often this newcomer was sent on to another peer, or asked again.
    pub(super) hops: u32,
    /// The roster that was agreed on, and the proposed one after it.
    pub(super) stable: Roster,
    pub(super) pending: Option<Roster>,
    /// The stamps of the newest proposal, and of the one agreed on last if that is known.
    pub(super) last: Stamp,
    pub(super) agreed: Option<Stamp>,
    /// The master, and since which epoch. None: it is gone.
    pub(super) master: Option<u8>,
    pub(super) epoch: u32,
    pub(super) election: Option<Election>,
    /// The highest epoch in which this peer has voted.
    pub(super) voted: u32,
    /// Of a master that asks for votes once more: the epoch, and who is for it; and when it asked last.
    pub(super) renewal: Option<(u32, Players)>,
    pub(super) renewed_at: Instant,
    /// The master by the game's events.
    pub(super) told_master: Option<u8>,
    /// Of a master: acks of its proposal, the others' keys, and what there is to decide.
    pub(super) acks: Players,
    pub(super) keys: [Option<Key>; MAX_PLAYERS],
    pub(super) next_joined: u32,
    pub(super) going: Vec<(Identity, LeaveReason)>,
    pub(super) reports: Vec<Report>,
    /// Players whose accusation had an earlier player removed.
    pub(super) believed: Vec<Identity>,
    pub(super) start: Option<Start>,
    /// Members of either roster that said goodbye: they count for neither side of a quorum.
    pub(super) gone: Vec<Identity>,
    /// The players that the game knows, whose links carry its messages.
    pub(super) told: Vec<Identity>,
    pub(super) admitted: Vec<LinkId>,
    /// A proposal is due even if nothing changes, so that all learn of the new master.
    pub(super) must_propose: bool,
    pub(super) count_at: Instant,
    /// When the game begins, once agreed on, and whether the game was told.
    pub(super) start_at: Option<Instant>,
    pub(super) told_start: bool,
    /// Messages ignored because they came too late, through nobody's fault.
    pub(super) stale: u64,
    pub(super) actions: VecDeque<Action>,
    pub(super) happenings: VecDeque<Happening>,
}

/// Two players that can't reach each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    /// The player that reported it first.
    pub(super) from: Identity,
    pub(super) of: Identity,
    /// When the first report came.
    pub(super) at: Instant,
    /// Whether `from` says that `of` broke the rules, and the other way round.
    pub(super) accuses: bool,
    pub(super) accused: bool,
}

impl Mesh {
    pub(super) fn new(config: MeshConfig, phase: Phase) -> Self {
        Mesh {
            config,
            phase,
            me: (0, 0),
            links: Vec::new(),
            expected: Vec::new(),
            contact: Vec::new(),
            answer_by: Instant::NEVER,
            hops: 0,
            stable: Roster::default(),
            pending: None,
            last: Stamp::default(),
            agreed: None,
            master: None,
            epoch: 0,
            election: None,
            voted: 0,
            renewal: None,
            renewed_at: Instant::ZERO,
            told_master: None,
            acks: 0,
            keys: [None; MAX_PLAYERS],
            next_joined: 1,
            going: Vec::new(),
            reports: Vec::new(),
            believed: Vec::new(),
            start: None,
            gone: Vec::new(),
            told: Vec::new(),
            admitted: Vec::new(),
            must_propose: false,
            count_at: Instant::ZERO,
            start_at: None,
            told_start: false,
            stale: 0,
            actions: VecDeque::new(),
            happenings: VecDeque::new(),
        }
    }

    /// The first peer of a game, its master.
    pub fn host(config: MeshConfig) -> Self {
        let member =
            Member { player: 0, joined: 0, name: config.name.clone(), addresses: config.addresses.clone() };
        let stable = Roster {
            members: vec![member],
            places: config.places.clamp(1, MAX_PLAYERS as u8),
            ..Roster::default()
        };
        let mut mesh = Mesh {
            stable,
            master: Some(0),
            told_master: Some(0),
            epoch: 1,
            voted: 1,
            last: Stamp { epoch: 1, revision: 0 },
            told: vec![(0, 0)],
            ..Mesh::new(config, Phase::Member)
        };
        mesh.happenings.push_back(Happening::Joined { player: 0, joined: 0 });
        mesh
    }

    /// Puts this address first among those that others are told.
    pub fn set_address(&mut self, address: SocketAddr) {
        let known = &mut self.config.addresses;
        if known.first() != Some(&address) {
            known.insert(0, address);
            known.truncate(super::MAX_ADDRESSES);
        }
    }

    /// A peer that joins a game; `contact` are the addresses of one of its members.
    pub fn join(config: MeshConfig, contact: Vec<SocketAddr>) -> Self {
        let mut mesh = Mesh::new(config, Phase::Asking { again_at: Instant::NEVER });
        mesh.actions.push_back(Action::Ask { addresses: contact.clone() });
        mesh.contact = contact;
        mesh
    }

    // --- questions ---------------------------------------------------------------------------------------

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// This player's number, once it is in the game.
    pub fn me(&self) -> Option<u8> {
        self.is_member().then_some(self.me.0)
    }

    /// This player and its joining, once it is in the game.
    pub fn identity(&self) -> Option<Identity> {
        self.is_member().then_some(self.me)
    }

    /// This player's number, from its welcome on.
    pub fn number(&self) -> Option<u8> {
        matches!(self.phase, Phase::Joining | Phase::Member).then_some(self.me.0)
    }

    /// Those in the game and those about to be, this one left out, with where a link to each leads that is up.
    pub fn known(&self) -> impl Iterator<Item = (Identity, Option<SocketAddr>)> {
        let linked =
            self.links.iter().filter_map(|link| Some((link.player()?, link.address.filter(|_| link.is_up))));
        let has_link = |who: &Identity| self.links.iter().any(|link| link.player() == Some(*who));
        let members = self.pending.iter().chain([&self.stable]).flat_map(|roster| &roster.members);
        let expected = self.expected.iter().map(|expected| expected.who);
        let others = members
            .map(Member::identity)
            .chain(expected)
            .filter(move |who| who.0 != self.me.0 && !has_link(who));
        linked.chain(others.map(|who| (who, None)))
    }

    /// Whether this peer is in the game.
    pub fn is_member(&self) -> bool {
        self.phase == Phase::Member
    }

    /// The master that the game knows of.
    pub fn master(&self) -> Option<u8> {
        self.told_master.filter(|_| self.is_member())
    }

    /// Whether the master that the game knows of is gone, and the next one isn't agreed on.
    pub fn is_electing(&self) -> bool {
        self.master.is_none() || self.master != self.told_master
    }

    pub fn is_master(&self) -> bool {
        self.is_member() && self.master == Some(self.me.0)
    }

    /// The players in the game.
    pub fn roster(&self) -> &Roster {
        &self.stable
    }

    /// The players that were in the game when its start was agreed on, the same for all; before that, those in it now.
    pub fn at_start(&self) -> Players {
        self.stable.start.map_or_else(|| self.stable.players(), |start| start.players)
    }

    /// The stamp of the proposal that made the roster, if known.
    pub fn agreed(&self) -> Option<(Stamp, &Roster)> {
        Some((self.agreed?, &self.stable))
    }

    /// The number of the current master, as far as known here.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// When the game begins, or began.
    pub fn start_at(&self) -> Option<Instant> {
        self.start_at
    }

    /// How many messages came too late to matter.
    pub fn stale(&self) -> u64 {
        self.stale
    }

    /// The next action to carry out.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The next event for the game.
    pub fn poll_happening(&mut self) -> Option<Happening> {
        self.happenings.pop_front()
    }

    /// When [`Mesh::update`] must be called if nothing happens before.
    pub fn next_deadline(&self) -> Instant {
        if let Phase::Ended(_) = self.phase {
            return Instant::NEVER;
        }
        let waits_for_start = self.stable.start.is_some() && !self.told_start;
        let mut next = self.start_at.filter(|_| waits_for_start).unwrap_or(Instant::NEVER);
        if let Phase::Asking { again_at, .. } = self.phase {
            next = next.min(again_at).min(self.answer_by);
        }
        if let Some(election) = &self.election {
            let claims = if self.is_member() { election.next_at } else { Instant::NEVER };
            next = next.min(claims).min(election.until);
        }
        if self.is_master() && self.start_at.is_some() && waits_for_start {
            next = next.min(self.count_at);
        }
        for link in &self.links {
            next = next.min(self.patience(link));
        }
        self.reports.iter().fold(next, |next, report| next.min(report.at + REPORT_GRACE))
    }

    // --- what comes in -----------------------------------------------------------------------------------

    /// Handles a message from a link with this round-trip time.
    ///
    /// # Errors
    /// The message breaks a rule: the caller must end the link.
    pub fn handle_bytes(
        &mut self,
        now: Instant,
        id: LinkId,
        bytes: &[u8],
        rtt: Duration,
    ) -> Result<(), MeshFault> {
        let message = Message::read(bytes).ok_or(MeshFault::Malformed)?;
        self.handle_message(now, id, message, rtt)
    }

    /// [`Mesh::handle_bytes`] for a message that is parsed already.
    ///
    /// # Errors
    /// Those of [`Mesh::handle_bytes`].
    pub fn handle_message(
        &mut self,
        now: Instant,
        id: LinkId,
        message: Message,
        rtt: Duration,
    ) -> Result<(), MeshFault> {
        if let Phase::Ended(_) = self.phase {
            return Ok(());
        }
        let is_master = self.is_master();
        let Some(link) = self.link_mut(id) else { return Ok(()) };
        let handled = match (&mut link.role, message) {
            (Role::Over, _) => Ok(()),
            (Role::Stranger { ticket: None } | Role::SentOn { .. }, Message::Hello { name, addresses }) => {
                self.handle_hello(now, id, name, addresses);
                Ok(())
            }
            // It asked again while the answer of a new master was on its way.
            (Role::Joiner(joiner), Message::Hello { .. }) if joiner.key.is_none() => Ok(()),
            (Role::Stranger { ticket: Some(_) }, message) => self.defer(now, id, message),
            (Role::Joiner(joiner), Message::Reached { players }) => {
                joiner.reached = players;
                Ok(())
            }
            (Role::Joiner(joiner), Message::SealedWith { key }) => {
                joiner.key = Some(key);
                Ok(())
            }
            (Role::Joiner(_), Message::Unreached { .. }) => {
                self.refuse(now, id, LeaveReason::Unreachable);
                Ok(())
            }
            // The proposal has told it of its joining before we decided.
            (Role::Joiner(_), Message::Ack { stamp }) if is_master => {
                self.handle_ack(id, stamp);
                Ok(())
            }
            (Role::Contact, message) => self.handle_from_contact(now, id, message),
            (Role::Player((player, _)), message) => {
                let player = *player;
                self.handle_from_player(now, id, player, message, rtt)
            }
            _ => Err(MeshFault::OutOfPlace),
        };
        self.decide(now);
        handled
    }

    /// Does what is due at `now`.
    pub fn update(&mut self, now: Instant) {
        if let Phase::Ended(_) = self.phase {
            return;
        }
        match self.phase {
            Phase::Asking { .. } if self.answer_by <= now => return self.end(LeaveReason::NoAnswer),
            Phase::Asking { again_at } if again_at <= now => self.ask_now(self.contact.clone()),
            _ => {}
        }
        let overdue: Vec<LinkId> =
            self.links.iter().filter(|link| self.patience(link) <= now).map(|link| link.id).collect();
        for id in overdue {
            self.lose_patience(now, id);
        }
        self.expected.retain(|expected| now < expected.since + JOIN_TIMEOUT);
        self.update_election(now);
        self.settle_reports(now);
        self.decide(now);
        self.count(now);
        if let (Some(at), Some(start), false) = (self.start_at, self.stable.start, self.told_start)
            && at <= now
        {
            self.told_start = true;
            self.happenings.push_back(Happening::Starts { seed: start.seed, players: start.players });
        }
    }

    /// Sends a player the connect token for the server that this master runs. False if this isn't the master, or the
    /// player isn't connected.
    pub fn offer_seat(&mut self, who: Identity, pass: Vec<u8>) -> bool {
        let link = self.link_of(who.0).filter(|link| link.player() == Some(who));
        let Some(link) = link.map(|link| link.id).filter(|_| self.is_master()) else { return false };
        self.send(link, Message::Seat { pass });
        true
    }

    /// Removes a player. False if this isn't the master, or there is no such player, or the player is being removed.
    pub fn kick(&mut self, now: Instant, player: u8) -> bool {
        let member = self.stable.member(player).filter(|_| self.is_master() && player != self.me.0);
        let Some(who) = member.map(Member::identity) else { return false };
        let is_first = self.note_going(who, LeaveReason::Kicked);
        self.decide(now);
        is_first
    }

    /// Ends this peer's part: all links end, and nothing more happens.
    pub fn end(&mut self, reason: LeaveReason) {
        if let Phase::Ended(_) = self.phase {
            return;
        }
        self.phase = Phase::Ended(reason);
        self.election = None;
        for link in core::mem::take(&mut self.links) {
            self.actions.push_back(Action::End { link: link.id, reason });
        }
        self.happenings.push_back(Happening::Ended { reason });
    }

    // --- for all parts -----------------------------------------------------------------------------------

    /// Whether these players are a quorum of both the agreed and the proposed roster.
    pub(super) fn is_quorum(&self, players: Players) -> bool {
        let reached = self.reached();
        let enough = |roster: &Roster| {
            let gone = self.gone.iter().filter(|who| roster.has(**who));
            roster.is_quorum(players, reached, gone.fold(0, |all, (player, _)| all | bit(*player)))
        };
        enough(&self.stable) && self.pending.as_ref().is_none_or(enough)
    }

    /// Whether this peer takes part in decisions: from its welcome on, as it may be proposed before it knows.
    pub(super) fn takes_part(&self) -> bool {
        self.is_member() || self.phase == Phase::Joining
    }

    /// Looks again at what changes with the links: a quorum, a vote, a decision.
    pub(super) fn after_links(&mut self, now: Instant) {
        self.check_minority();
        self.count_votes(now);
        self.decide(now);
    }
}
