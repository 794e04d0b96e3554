//! Changes of the roster: the master proposes one, players ack it, and it counts once a quorum has.

use super::links::{Expected, LinkEnd, LinkId, Role};
use super::machine::{Mesh, Phase, Report};
use super::message::{Message, Stamp};
use super::output::{Action, Happening, MeshFault};
use super::roster::{Identity, LeaveReason, Member, Roster, Start, bit};
use super::start::left_until;
use super::{MAX_PLAYERS, REPORT_GRACE};
use crate::time::{Duration, Instant};

impl Mesh {
    /// Handles a message from a player.
    pub(super) fn handle_from_player(
        &mut self,
        now: Instant,
        id: LinkId,
        player: u8,
        message: Message,
        rtt: Duration,
    ) -> Result<(), MeshFault> {
        let from_master = self.master == Some(player);
        if !from_master && self.is_of_a_master(&message) {
            return self.handle_from_another(now, id, player, message);
        }
        match message {
            Message::Propose { stamp, stable, pending } => {
                return self.handle_propose(id, stamp, stable, pending);
            }
            Message::Commit { stamp, left } => self.handle_commit(now, stamp, left, rtt),
            Message::Count { left } if self.stable.start.is_some() => self.note_start(now, left, rtt),
            Message::Intro { player, joined, pass } => return self.handle_intro((player, joined), pass),
            Message::Expect { player, joined, ticket } => {
                let expected = Expected { who: (player, joined), ticket, since: now };
                return self.handle_expect(now, expected);
            }
            Message::Out { reason } | Message::Refused { reason } => self.end(reason),
            Message::Ack { stamp } => self.handle_ack(id, stamp),
            Message::SealedWith { key } if self.is_master() => self.keys[usize::from(player)] = Some(key),
            Message::Lost { player: other, joined, broke_rules } if other != player => {
                self.handle_lost(now, id, (other, joined), broke_rules);
            }
            Message::Claim { epoch, last } => return self.handle_claim(now, id, player, epoch, last),
            Message::Grant { epoch } => self.handle_grant(now, player, epoch),
            Message::Deny { epoch } => self.handle_deny(now, epoch),
            Message::Seat { pass } => {
                let host = self.player_at(id);
                self.actions.extend(host.map(|host| Action::TakeSeat { host, pass }));
            }
            Message::Hello { .. } | Message::NotMaster { .. } | Message::Welcome { .. } => {
                return Err(MeshFault::OutOfPlace);
            }
            // Late, from a newcomer that has become a member; or said to a player whom it doesn't concern.
            Message::Reached { .. }
            | Message::Unreached { .. }
            | Message::Count { .. }
            | Message::SealedWith { .. }
            | Message::Lost { .. } => {}
        }
        Ok(())
    }

    fn handle_commit(&mut self, now: Instant, stamp: Stamp, left: Option<i64>, rtt: Duration) {
        if stamp != self.last || self.pending.is_none() {
            self.stale += 1;
            return;
        }
        if let Some(left) = left.filter(|_| self.pends_start()) {
            self.note_start(now, left, rtt);
        }
        self.commit(now);
    }

    /// A member reports to the master that it can't reach another one.
    fn handle_lost(&mut self, now: Instant, id: LinkId, who: Identity, broke_rules: bool) {
        if let Some(from) = self.player_at(id).filter(|_| self.is_master() && self.knows(who)) {
            self.report(now, from, who, broke_rules);
        }
    }

    /// Whether only a master may send this.
    fn is_of_a_master(&self, message: &Message) -> bool {
        use Message::{Commit, Count, Expect, Intro, Out, Propose, Refused, Seat};
        matches!(
            message,
            Propose { .. }
                | Commit { .. }
                | Count { .. }
                | Expect { .. }
                | Intro { .. }
                | Out { .. }
                | Refused { .. }
                | Seat { .. }
        )
    }

    /// Handles the master's proposal of a roster. The master may have been voted for once more.
    pub(super) fn handle_propose(
        &mut self,
        id: LinkId,
        stamp: Stamp,
        stable: Roster,
        pending: Roster,
    ) -> Result<(), MeshFault> {
        if stamp.epoch > self.epoch && self.uses_up_epochs(stamp.epoch) {
            return Err(MeshFault::Impossible);
        }
        if stamp.epoch > self.epoch && stamp.epoch >= self.voted {
            self.enter_epoch(stamp.epoch);
        }
        if stamp.epoch != self.epoch || stamp <= self.last {
            self.stale += 1;
            return Ok(());
        }
        let master = self.master.unwrap_or(self.me.0);
        if self.phase == Phase::Joining && !pending.has(self.me) {
            return Err(MeshFault::Impossible);
        }
        // The proposal may be its own departure.
        if master == self.me.0 || stable.member(master).is_none() && pending.member(master).is_none() {
            return Err(MeshFault::Impossible);
        }
        // A roster that isn't known here can't have been agreed on with this peer.
        (self.stable, self.agreed) = (stable, None);
        (self.pending, self.last) = (Some(pending), stamp);
        self.send(id, Message::Ack { stamp });
        self.admit();
        Ok(())
    }

    /// A player has acked our proposal.
    pub(super) fn handle_ack(&mut self, id: LinkId, stamp: Stamp) {
        if let Some((player, _)) = self.player_at(id).filter(|_| self.is_master() && stamp == self.last) {
            self.acks |= bit(player);
        }
    }

    /// The master's decisions: what to propose, and whether the proposal counts.
    pub(super) fn decide(&mut self, now: Instant) {
        // Each agreed proposal may allow the next.
        while self.is_master() {
            self.introduce();
            if self.pending.is_some() {
                if !self.is_quorum(self.acks) {
                    return;
                }
                self.commit(now);
                continue;
            }
            let wanted = self.wanted();
            if wanted == self.stable && !self.must_propose {
                return;
            }
            self.propose(wanted);
        }
    }

    pub(super) fn propose(&mut self, wanted: Roster) {
        self.must_propose = false;
        self.last = Stamp { epoch: self.epoch, revision: self.last.revision.wrapping_add(1) };
        self.acks = bit(self.me.0);
        let (stable, stamp) = (self.stable.clone(), self.last);
        self.pending = Some(wanted.clone());
        self.send_all(&Message::Propose { stamp, stable, pending: wanted });
    }

    /// The roster as it should be, by all that the master knows.
    fn wanted(&self) -> Roster {
        let mut roster = Roster { left: Vec::new(), ..self.stable.clone() };
        let why = |member: &Member| match self.going.iter().find(|(who, _)| *who == member.identity()) {
            Some((_, reason)) => Some(*reason),
            None if member.player == self.me.0 || self.link_of(member.player).is_some() => None,
            None if self.gone.contains(&member.identity()) => Some(LeaveReason::Left),
            None => Some(LeaveReason::Lost),
        };
        for member in &self.stable.members {
            if let Some(reason) = why(member) {
                roster.left.push((member.player, member.joined, reason));
            }
        }
        roster.members.retain(|member| why(member).is_none());
        let staying = roster.players() & !bit(self.me.0);
        for link in &self.links {
            let Role::Joiner(joiner) = &link.role else { continue };
            let has_all = roster
                .members
                .iter()
                .all(|member| member.player == self.me.0 || joiner.introduced.contains(&member.identity()));
            let is_ready = has_all && joiner.key.is_some() && joiner.reached & staying == staying;
            if is_ready && self.is_alone(joiner.who.0, &roster) {
                let (player, joined) = joiner.who;
                let (name, addresses) = (joiner.name.clone(), joiner.addresses.clone());
                roster.members.push(Member { player, joined, name, addresses });
                // The proposal of its removal must reach this member first.
                break;
            }
        }
        roster.members.sort_by_key(|member| member.player);
        let all = roster.players();
        roster.start = roster.start.or(self.start.map(|start| Start { players: all, ..start }));
        if roster.left.is_empty()
            && roster.members == self.stable.members
            && roster.start == self.stable.start
        {
            return self.stable.clone();
        }
        roster
    }

    fn is_alone(&self, player: u8, roster: &Roster) -> bool {
        roster.member(player).is_none() && self.stable.member(player).is_none()
    }

    /// Makes the proposal the roster that counts.
    pub(super) fn commit(&mut self, now: Instant) {
        let Some(roster) = self.pending.take() else { return };
        self.agreed = Some(self.last);
        let before = core::mem::replace(&mut self.stable, roster);
        let members = before.members.iter().map(Member::identity);
        let gone: Vec<Identity> = members.filter(|who| !self.stable.has(*who)).collect();
        if self.is_master() {
            self.tell_commit(now, &gone);
        }
        self.admit();
        if self.told.contains(&self.me) && !self.stable.has(self.me) {
            let reason = self.reason_of(self.me);
            return self.end(reason);
        }
        self.tell_members();
        let (stable, me) = (&self.stable, self.me.0);
        self.gone.retain(|who| stable.has(*who));
        self.believed.retain(|who| stable.has(*who));
        if !self.is_master() {
            // Members whose link was lost while they were joining.
            let others = stable.members.iter().filter(|member| member.player != me);
            let lost = others.filter(|member| self.link_of(member.player).is_none());
            for who in lost.map(Member::identity).collect::<Vec<_>>() {
                self.say_lost(who, false);
            }
        }
        for who in gone {
            self.part_with(who);
        }
        if self.master.is_some_and(|master| self.stable.member(master).is_none()) {
            // The master has proposed its own departure.
            return self.lose_master(now);
        }
        if self.told_master != self.master {
            let is_new = self.told_master.is_some();
            self.told_master = self.master;
            if let Some(player) = self.master.filter(|_| is_new) {
                self.happenings.push_back(Happening::Master { player });
            }
            self.answer_again(now);
        }
    }

    /// Tells all members that the proposal counts, including those it removes.
    fn tell_commit(&mut self, now: Instant, out: &[Identity]) {
        if let Some(start) = self.stable.start
            && self.start_at.is_none()
        {
            self.start_at = Some(now + Duration::from_micros(start.countdown.into()));
            self.count_at = now;
        }
        let left = self.start_at.filter(|_| self.stable.start.is_some()).map(|at| left_until(at, now));
        self.send_all(&Message::Commit { stamp: self.last, left });
        // Newcomers are players from now on.
        let stable = &self.stable;
        let mut keys = Vec::new();
        for link in &mut self.links {
            if let Role::Joiner(joiner) = &link.role
                && stable.has(joiner.who)
            {
                keys.push((joiner.who.0, joiner.key));
                link.role = Role::Player(joiner.who);
            }
        }
        for (player, key) in keys {
            self.keys[usize::from(player)] = key;
        }
        for who in out {
            self.going.retain(|(going, _)| going != who);
            self.keys[usize::from(who.0)] = None;
            if let Some(link) = self.link_of(who.0).map(|link| link.id) {
                let reason = self.reason_of(*who);
                self.send(link, Message::Out { reason });
            }
        }
    }

    /// Tells the game who joined and who left.
    fn tell_members(&mut self) {
        if !self.stable.has(self.me) {
            return;
        }
        let told = core::mem::take(&mut self.told);
        for &(player, joined) in told.iter().filter(|who| !self.stable.has(**who)) {
            let reason = self.reason_of((player, joined));
            self.happenings.push_back(Happening::Left { player, joined, reason });
        }
        if self.phase == Phase::Joining {
            self.phase = Phase::Member;
        }
        self.told = self.stable.members.iter().map(Member::identity).collect();
        for &(player, joined) in self.told.iter().filter(|who| !told.contains(who)) {
            self.happenings.push_back(Happening::Joined { player, joined });
        }
    }

    fn reason_of(&self, who: Identity) -> LeaveReason {
        let found = self.stable.left.iter().find(|(player, joined, _)| (*player, *joined) == who);
        found.map_or(LeaveReason::Lost, |(_, _, reason)| *reason)
    }

    /// Opens the links of members to the game's messages.
    fn admit(&mut self) {
        let players = self.links.iter().filter_map(|link| Some((link.id, link.player()?)));
        let members = players.filter(|(_, who)| self.stable.has(*who));
        let new: Vec<_> = members.filter(|(id, _)| !self.admitted.contains(id)).collect();
        for (link, who) in new {
            self.admitted.push(link);
            self.actions.push_back(Action::Admit { link, who });
        }
    }

    /// Ends the link to a player that isn't in the game any more.
    fn part_with(&mut self, who: Identity) {
        if let Some(id) = self.links.iter().find(|link| link.player() == Some(who)).map(|link| link.id) {
            self.drop_link(id, self.reason_of(who));
        }
    }

    /// The link to a player ended.
    pub(super) fn lose_player(&mut self, now: Instant, who: Identity, was_up: bool, how: LinkEnd) {
        let from_master = self.master == Some(who.0);
        if self.phase == Phase::Joining {
            match from_master {
                // The old master may have proposed this peer already: the next one knows.
                true if how.reason() == LeaveReason::Violation => self.end(LeaveReason::Violation),
                true if self.pends(self.me) => self.lose_master(now),
                true => self.start_over(),
                false => self.say_unreached(who.0),
            }
            return;
        }
        if !was_up || !self.knows(who) {
            return;
        }
        if how == LinkEnd::Left {
            self.gone.push(who);
        }
        if self.is_master() {
            // A player that accuses the master leaves, but it broke no rule.
            let reason = if how == LinkEnd::Accused { LeaveReason::Lost } else { how.reason() };
            self.note_going(who, reason);
            self.reports.retain(|report| report.from != who && report.of != who);
        } else if from_master {
            self.lose_master(now);
        } else {
            self.say_lost(who, how == LinkEnd::Violation);
        }
    }

    /// Reports to the master that another member can't be reached from here.
    fn say_lost(&mut self, (player, joined): Identity, broke_rules: bool) {
        self.send_to_master(Message::Lost { player, joined, broke_rules });
    }

    pub(super) fn pends(&self, who: Identity) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.has(who))
    }

    /// Whether the pending proposal contains the start.
    fn pends_start(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.start.is_some())
    }

    /// Notes that a player is to be removed; its first reason stays. False if that was known.
    pub(super) fn note_going(&mut self, who: Identity, reason: LeaveReason) -> bool {
        let is_first = !self.going.iter().any(|(going, _)| *going == who);
        if is_first {
            self.going.push((who, reason));
        }
        is_first
    }

    /// Handles a player's report that it can't reach another. A number is not enough: the next newcomer may get the
    /// number of a player who is gone.
    fn report(&mut self, now: Instant, from: Identity, of: Identity, broke_rules: bool) {
        let same = |it: &&mut Report| (it.from, it.of) == (from, of) || (it.from, it.of) == (of, from);
        if let Some(report) = self.reports.iter_mut().find(same) {
            let accuses = if report.from == from { &mut report.accuses } else { &mut report.accused };
            *accuses |= broke_rules;
        } else if self.reports.len() < MAX_PLAYERS * MAX_PLAYERS {
            self.reports.push(Report { from, of, at: now, accuses: broke_rules, accused: false });
        }
    }

    /// Removes one of two players that can't reach each other: the one that broke the rules, if only the other says
    /// so, or else the one that joined later.
    ///
    /// Nobody else saw what was sent, so an accusation may be a lie. A player could remove any later one anyway, by
    /// claiming not to reach it. With lies a player could also remove all earlier ones, so it is believed of one only. A player that joins
    /// again counts as another.
    pub(super) fn settle_reports(&mut self, now: Instant) {
        if !self.is_master() {
            return self.reports.clear();
        }
        let due: Vec<_> = self.reports.extract_if(.., |report| report.at + REPORT_GRACE <= now).collect();
        for Report { from, of, accuses, accused, .. } in due {
            let is_here = |who: Identity| self.stable.has(who) && self.link_of(who.0).is_some();
            if !is_here(from) || !is_here(of) {
                continue;
            }
            let later = if from.1 > of.1 { from } else { of };
            let (accuser, who) = if accuses { (from, of) } else { (of, from) };
            let (who, reason) = match accuses != accused && self.believes(accuser, who) {
                true => (who, LeaveReason::Violation),
                false => (later, LeaveReason::Unreachable),
            };
            self.note_going(who, reason);
        }
    }

    /// Whether an accusation counts: each player may have one earlier player removed.
    fn believes(&mut self, accuser: Identity, who: Identity) -> bool {
        let is_later = who.1 > accuser.1;
        let counts = is_later || !self.believed.contains(&accuser);
        if counts && !is_later {
            self.believed.push(accuser);
        }
        counts
    }

    /// Leaves the game if this peer reaches too few players to go on.
    pub(super) fn check_minority(&mut self) {
        let decides = self.is_master() || self.election.is_some() && self.is_member();
        if decides && !self.is_quorum(self.reached()) {
            self.end(LeaveReason::Minority);
        }
    }
}
