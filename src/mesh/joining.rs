//! Joining: a newcomer asks the master, connects to all members with the connect tokens it gets, and is then proposed.

use core::net::SocketAddr;

use super::links::{Expected, Joiner, Link, LinkEnd, LinkId, Role};
use super::machine::{Mesh, Phase};
use super::message::Message;
use super::output::{Action, MeshFault};
use super::roster::{Identity, LeaveReason, Players, bit};
use super::{ASK_AGAIN, MAX_ADDRESSES, MAX_HOPS, MAX_PLAYERS};
use crate::time::{Duration, Instant};

/// How long after the start no newcomer gets the number of a player that was there: longer than a lockstep takes somebody with
/// such a number for one of them.
const NUMBERS_KEPT: Duration = Duration::from_secs(8);

impl Mesh {
    /// Handles a newcomer's request to join.
    pub(super) fn handle_hello(
        &mut self,
        now: Instant,
        id: LinkId,
        name: String,
        addresses: Vec<SocketAddr>,
    ) {
        if !self.is_master() {
            let at = match self.phase {
                // This peer can't help. It names the peer that it asks itself, so peers that ask each other, or
                // themselves, run out of hops instead of waiting.
                Phase::Asking { .. } => self.contact.clone(),
                _ => {
                    let link = self.master_link().filter(|_| self.is_member());
                    link.and_then(|link| link.address).into_iter().collect()
                }
            };
            if let Some(link) = self.link_mut(id) {
                (link.role, link.since) = (Role::SentOn { name, addresses }, now);
            }
            return self.send(id, Message::NotMaster { addresses: at });
        }
        let roster = self.pending.as_ref().unwrap_or(&self.stable);
        if self.start.or(roster.start).is_some_and(|start| !start.late) {
            return self.refuse(now, id, LeaveReason::Started);
        }
        let taken = self.taken();
        let places = roster.places;
        let kept = taken | self.kept_numbers(now);
        // One beyond the places serves where those below are kept.
        let free = (0..MAX_PLAYERS as u8).find(|player| kept & bit(*player) == 0);
        let Some(player) = free.filter(|_| taken.count_ones() < places.into()) else {
            return self.refuse(now, id, LeaveReason::Full);
        };
        let joined = self.next_joined;
        self.next_joined = self.next_joined.wrapping_add(1);
        let (master, epoch) = (self.me, self.epoch);
        let Some(link) = self.link_mut(id) else { return };
        let mut known: Vec<SocketAddr> = link.address.into_iter().collect();
        known.extend(addresses.into_iter().filter(|address| Some(*address) != link.address));
        known.truncate(MAX_ADDRESSES);
        let joiner = Joiner {
            who: (player, joined),
            name,
            key: None,
            addresses: known,
            introduced: Vec::new(),
            reached: 0,
        };
        (link.role, link.since) = (Role::Joiner(Box::new(joiner)), now);
        let (master, master_joined) = master;
        self.send(id, Message::Welcome { player, joined, master, master_joined, epoch });
    }

    /// The numbers that a newcomer can't get now.
    fn taken(&self) -> Players {
        let pending = self.pending.as_ref().map_or(0, |pending| pending.players());
        let linked = self.links.iter().filter_map(|link| link.player());
        linked.fold(self.stable.players() | pending, |taken, (player, _)| taken | bit(player))
    }

    /// The numbers of the players at the start, for some seconds: a newcomer with one of them would be taken, and take
    /// itself, for the one who left.
    fn kept_numbers(&self, now: Instant) -> Players {
        let start = self.pending.as_ref().and_then(|pending| pending.start).or(self.stable.start);
        let is_new = self.start_at.is_none_or(|at| now < at + NUMBERS_KEPT);
        start.filter(|_| is_new).map_or(0, |start| start.players)
    }

    /// Introduces newcomers to members that they have yet to reach.
    pub(super) fn introduce(&mut self) {
        let mut found = Vec::new();
        let roster = self.pending.as_ref().unwrap_or(&self.stable);
        for link in &mut self.links {
            let Role::Joiner(joiner) = &mut link.role else { continue };
            for member in &roster.members {
                let of = member.identity();
                let key = self.keys.get(usize::from(member.player)).copied().flatten();
                if member.player == self.me.0 || joiner.introduced.contains(&of) {
                    continue;
                }
                let Some(key) = key else { continue };
                joiner.introduced.push(of);
                found.push((link.id, joiner.who, of, key, member.addresses.clone()));
            }
        }
        for (newcomer, who, of, key, addresses) in found {
            let Some(member) = self.link_of(of.0).map(|link| link.id) else { continue };
            self.actions.push_back(Action::Introduce { newcomer, who, member, of, key, addresses });
        }
    }

    /// Refuses a newcomer, which then leaves by itself.
    pub(super) fn refuse(&mut self, now: Instant, id: LinkId, reason: LeaveReason) {
        self.send(id, Message::Refused { reason });
        self.close_soon(now, id);
    }

    /// The game begins: refuses newcomers that aren't even proposed.
    pub(super) fn refuse_joiners(&mut self, now: Instant) {
        let late: Vec<LinkId> = self
            .links
            .iter()
            .filter(|link| matches!(&link.role, Role::Joiner(joiner) if !self.pends(joiner.who)))
            .map(|link| link.id)
            .collect();
        for id in late {
            self.refuse(now, id, LeaveReason::Started);
        }
    }

    pub(super) fn close_soon(&mut self, now: Instant, id: LinkId) {
        if let Some(link) = self.link_mut(id) {
            (link.role, link.since) = (Role::Over, now);
            link.deferred.clear();
        }
    }

    /// Handles the answer of the peer that was asked.
    pub(super) fn handle_from_contact(
        &mut self,
        now: Instant,
        id: LinkId,
        message: Message,
    ) -> Result<(), MeshFault> {
        let Phase::Asking { .. } = self.phase else { return Err(MeshFault::OutOfPlace) };
        match message {
            Message::NotMaster { addresses } => {
                if !self.count_hop() {
                    return Ok(());
                }
                // It answers again once there is another master.
                self.drop_contacts(id);
                self.link_mut(id).into_iter().for_each(|link| link.since = now);
                if addresses.is_empty() {
                    // A member that waits for a new master: it answers again, however long the election takes.
                    self.answer_by = Instant::NEVER;
                } else {
                    self.ask_now(addresses);
                }
                Ok(())
            }
            Message::Refused { reason } => {
                self.end(reason);
                Ok(())
            }
            Message::Welcome { player, joined, master, master_joined, epoch } => {
                if player == master {
                    return Err(MeshFault::Impossible);
                }
                self.drop_contacts(id);
                self.phase = Phase::Joining;
                (self.me, self.master, self.epoch) = ((player, joined), Some(master), epoch);
                self.voted = epoch;
                if let Some(link) = self.link_mut(id) {
                    link.role = Role::Player((master, master_joined));
                }
                // Only now: the peer that was asked before may not be the master.
                self.send(id, Message::SealedWith { key: self.config.key });
                self.say_reached();
                Ok(())
            }
            _ => Err(MeshFault::OutOfPlace),
        }
    }

    pub(super) fn say_hello(&mut self, id: LinkId) {
        let (name, addresses) = (self.config.name.clone(), self.config.addresses.clone());
        self.send(id, Message::Hello { name, addresses });
    }

    /// Counts a further peer that is asked, or one that is asked again. False if there were too many.
    fn count_hop(&mut self) -> bool {
        self.hops += 1;
        let may = self.hops <= MAX_HOPS;
        if !may {
            self.end(LeaveReason::NoAnswer);
        }
        may
    }

    /// Asks the first contact later.
    pub(super) fn ask_again(&mut self, now: Instant) {
        if self.count_hop() {
            self.phase = Phase::Asking { again_at: now + ASK_AGAIN };
        }
    }

    pub(super) fn ask_now(&mut self, addresses: Vec<SocketAddr>) {
        self.phase = Phase::Asking { again_at: Instant::NEVER };
        self.actions.push_back(Action::Ask { addresses });
    }

    /// Ends the links to peers that were asked, but this one.
    fn drop_contacts(&mut self, but: LinkId) {
        let is_other = |link: &&Link| matches!(link.role, Role::Contact) && link.id != but;
        for id in self.links.iter().filter(is_other).map(|link| link.id).collect::<Vec<_>>() {
            self.drop_link(id, LeaveReason::Left);
        }
    }

    /// The link to a peer that was asked ended. If it is the one that another had named, the other may know more by now.
    pub(super) fn lose_contact(&mut self, now: Instant, how: LinkEnd) {
        if !matches!(self.phase, Phase::Asking { again_at } if again_at == Instant::NEVER) {
            return;
        }
        let left = self.links.iter().find(|link| matches!(link.role, Role::Contact));
        match (left.map(|link| (link.id, link.is_up)), how) {
            (Some((id, true)), _) if self.count_hop() => self.say_hello(id),
            (Some(_), _) => {}
            (None, LinkEnd::Lost | LinkEnd::Left | LinkEnd::Parted | LinkEnd::UnknownCode)
                if self.hops > 0 =>
            {
                self.ask_again(now);
            }
            (None, LinkEnd::Lost | LinkEnd::Left | LinkEnd::Parted) => self.end(LeaveReason::NoAnswer),
            (None, other) => self.end(other.reason()),
        }
    }

    /// The master is gone that let this newcomer in and hasn't proposed it: asks the members that it has reached, as if it
    /// were another newcomer. It leaves in order, so that it is no vote lost if the others know of a proposal.
    pub(super) fn start_over(&mut self) {
        let members = self.links.iter().filter(|link| link.is_up && link.player().is_some());
        let members = members.filter_map(|link| link.address);
        let contact = members.chain(self.contact.iter().copied()).take(MAX_ADDRESSES).collect();
        let asking = Phase::Asking { again_at: Instant::NEVER };
        let before = core::mem::replace(self, Mesh::new(self.config.clone(), asking));
        let Mesh { links, actions, happenings, hops, stale, .. } = before;
        (self.actions, self.happenings, self.hops, self.stale) = (actions, happenings, hops, stale);
        let ends = links.into_iter().map(|link| Action::End { link: link.id, reason: LeaveReason::Closed });
        self.actions.extend(ends);
        self.contact = contact;
        if self.count_hop() {
            self.ask_now(self.contact.clone());
        }
    }

    /// Answers the newcomers that were sent on: the master is gone, or there is another one.
    pub(super) fn answer_again(&mut self, now: Instant) {
        let asked = self.links.iter().filter_map(|link| match &link.role {
            Role::SentOn { name, addresses } => Some((link.id, name.clone(), addresses.clone())),
            _ => None,
        });
        for (id, name, addresses) in asked.collect::<Vec<_>>() {
            self.handle_hello(now, id, name, addresses);
        }
    }

    /// A newcomer learns which member to dial.
    pub(super) fn handle_intro(&mut self, who: Identity, pass: Vec<u8>) -> Result<(), MeshFault> {
        if self.phase != Phase::Joining {
            return Err(MeshFault::OutOfPlace);
        }
        let dialled = self.links.iter().filter_map(|link| link.player()).any(|other| other.0 == who.0);
        if who.0 == self.me.0 || dialled || self.links.len() > 2 * MAX_PLAYERS {
            return Err(MeshFault::Impossible);
        }
        self.actions.push_back(Action::Dial { who, pass });
        Ok(())
    }

    /// A member learns which newcomer will dial.
    pub(super) fn handle_expect(&mut self, now: Instant, expected: Expected) -> Result<(), MeshFault> {
        let Expected { who, ticket, .. } = expected;
        if who.0 == self.me.0 || self.stable.member(who.0).is_some() {
            return Err(MeshFault::Impossible);
        }
        let is_it = |role: &Role| matches!(role, Role::Stranger { ticket: Some(other) } if *other == ticket);
        if let Some(link) = self.links.iter_mut().find(|link| is_it(&link.role)) {
            (link.role, link.since) = (Role::Player(who), now);
            let id = link.id;
            self.replay(now, Some(id));
            return Ok(());
        }
        if self.expected.len() >= 2 * MAX_PLAYERS {
            self.expected.remove(0);
        }
        self.expected.push(expected);
        Ok(())
    }

    /// Tells the master which players this newcomer reaches.
    pub(super) fn say_reached(&mut self) {
        if self.phase != Phase::Joining {
            return;
        }
        let up = self.links.iter().filter(|link| link.is_up);
        let players = up.filter_map(|link| link.player()).fold(0, |all, (player, _)| all | bit(player));
        self.send_to_master(Message::Reached { players });
    }

    /// Tells the master that a player can't be reached.
    pub(super) fn say_unreached(&mut self, player: u8) {
        if self.phase == Phase::Joining {
            self.send_to_master(Message::Unreached { player });
        }
    }

    /// Ends a link from which nothing more is expected.
    pub(super) fn drop_link(&mut self, id: LinkId, reason: LeaveReason) {
        self.links.retain(|link| link.id != id);
        self.admitted.retain(|other| *other != id);
        self.actions.push_back(Action::End { link: id, reason });
    }
}
