//! Elects a new master after the old one is gone: of the players that see each other, the lowest number asks for votes.

use super::links::{Election, LinkId, Role};
use super::machine::{Mesh, MeshFault};
use super::message::{Message, Stamp};
use super::roster::{LeaveReason, bit};
use super::{CLAIM_STAGGER, CLAIM_TIMEOUT, ELECTION_GRACE, MAX_EPOCH_STEP};
use crate::time::Instant;

impl Mesh {
    /// The link to the master ended.
    pub(super) fn lose_master(&mut self, now: Instant) {
        self.master = None;
        let until = now + self.config.timeout + ELECTION_GRACE;
        self.election = Some(Election { next_at: self.turn(now), until, claim: None });
        self.check_minority(now);
        self.update_election(now);
        self.replay(now, None);
    }

    /// When this player may claim: after those with lower numbers that it sees.
    fn turn(&self, now: Instant) -> Instant {
        let lower = self.reached() & (bit(self.me.0) - 1);
        now + CLAIM_STAGGER * lower.count_ones()
    }

    pub(super) fn update_election(&mut self, now: Instant) {
        let Some(election) = &self.election else { return };
        if election.until <= now {
            let reason = if self.is_member() { LeaveReason::Minority } else { LeaveReason::NoAnswer };
            return self.end(now, reason);
        }
        // A newcomer that is only proposed has a vote but can't claim.
        if election.next_at > now || !self.is_member() {
            return;
        }
        let next_at = self.turn(now) + CLAIM_TIMEOUT;
        let epoch = self.voted.max(self.epoch).saturating_add(1);
        self.voted = epoch;
        if let Some(election) = &mut self.election {
            (election.claim, election.next_at) = (Some((epoch, bit(self.me.0))), next_at);
        }
        let last = self.last;
        self.send_all(&Message::Claim { epoch, last });
        self.count_votes(now);
    }

    /// Handles another player's claim to be the master.
    pub(super) fn handle_claim(
        &mut self,
        now: Instant,
        id: LinkId,
        epoch: u32,
        last: Stamp,
    ) -> Result<(), MeshFault> {
        if self.uses_up_epochs(epoch) {
            return Err(MeshFault::Impossible);
        }
        if self.master.is_some() {
            // Its own link to the master ended. Ours may end a little later: it asks again then.
            return if epoch > self.epoch {
                self.defer(now, id, Message::Claim { epoch, last })
            } else {
                Ok(())
            };
        }
        let turn = self.turn(now);
        let (newer, same_or_newer) = (epoch > self.voted, last >= self.last);
        if newer && same_or_newer {
            self.voted = epoch;
            if let Some(election) = &mut self.election {
                (election.claim, election.next_at) = (None, turn + CLAIM_TIMEOUT);
            }
            self.send(id, Message::Grant { epoch });
            return Ok(());
        }
        self.send(id, Message::Deny { epoch: self.voted.max(epoch) });
        if newer {
            // It knows less than we do and can't be the master; we may.
            self.voted = self.voted.max(epoch);
            if let Some(election) = &mut self.election {
                election.next_at = election.next_at.min(turn);
            }
        }
        Ok(())
    }

    pub(super) fn handle_grant(&mut self, now: Instant, player: u8, epoch: u32) {
        let Some(Election { claim: Some((claimed, votes)), .. }) = &mut self.election else {
            self.stale += 1;
            return;
        };
        if *claimed == epoch {
            *votes |= bit(player);
            self.count_votes(now);
        }
    }

    pub(super) fn handle_deny(&mut self, epoch: u32) {
        if self.election.is_some() && epoch > self.voted && !self.uses_up_epochs(epoch) {
            self.voted = epoch;
        }
    }

    /// Whether an epoch is further ahead than elections can bring it. After a few such claims, no epochs would be left
    /// to elect anybody.
    fn uses_up_epochs(&self, epoch: u32) -> bool {
        epoch.saturating_sub(self.voted.max(self.epoch)) >= MAX_EPOCH_STEP
    }

    pub(super) fn count_votes(&mut self, now: Instant) {
        let Some(Election { claim: Some((epoch, votes)), .. }) = self.election else { return };
        if !self.is_quorum(votes) {
            return;
        }
        self.election = None;
        (self.master, self.epoch) = (Some(self.me.0), epoch);
        self.keys = Default::default();
        self.start = None;
        self.going.clear();
        self.reports.clear();
        let rosters = self.pending.iter().chain([&self.stable]);
        let highest = rosters.flat_map(|roster| &roster.members).map(|member| member.joined).max();
        // Newcomers of the old master may have had higher numbers.
        self.next_joined = highest.unwrap_or(0).wrapping_add(257);
        // The old master's last proposal may count elsewhere, so it comes first. Even an unchanged roster is proposed,
        // to name the master.
        self.must_propose = true;
        if let Some(pending) = self.pending.take() {
            self.propose(pending);
        }
        self.decide(now);
    }

    /// Handles a master's message from a player that isn't the master here.
    pub(super) fn handle_from_another(
        &mut self,
        now: Instant,
        id: LinkId,
        player: u8,
        message: Message,
    ) -> Result<(), MeshFault> {
        if matches!(&message, Message::Propose { stamp, .. } if self.uses_up_epochs(stamp.epoch)) {
            return Err(MeshFault::Impossible);
        }
        let waits = self.links.iter().any(|link| link.id == id && !link.deferred.is_empty());
        let newer = matches!(&message, Message::Propose { stamp, .. } if stamp.epoch > self.epoch);
        if self.master.is_some() {
            // Our own link to the master may end a little later.
            return if self.takes_part() && (newer || waits) {
                self.defer(now, id, message)
            } else {
                Err(MeshFault::NotTheMaster)
            };
        }
        let Message::Propose { stamp, stable, pending } = message else {
            // From a candidate that lost.
            self.stale += 1;
            return Ok(());
        };
        if stamp.epoch < self.voted || stamp.epoch <= self.epoch {
            self.stale += 1;
            return Ok(());
        }
        self.follow(player, stamp.epoch);
        self.handle_propose(id, stamp, stable, pending)
    }

    /// Accepts a new master.
    fn follow(&mut self, player: u8, epoch: u32) {
        self.election = None;
        (self.master, self.epoch, self.voted) = (Some(player), epoch, epoch);
        let Some(master) = self.link_of(player).map(|link| link.id) else { return };
        self.send(master, Message::SealedWith { key: self.config.key });
        let all = self.stable.members.iter().filter(|member| member.player != self.me.0);
        let lost: Vec<_> = all
            .filter(|member| self.link_of(member.player).is_none())
            .map(|member| Message::Lost { player: member.player, joined: member.joined })
            .collect();
        for message in lost {
            self.send(master, message);
        }
        // The old master's newcomers ask the new one.
        let strangers: Vec<LinkId> = self
            .links
            .iter()
            .filter(|link| matches!(link.role, Role::Stranger { ticket: Some(_) }))
            .map(|link| link.id)
            .collect();
        for id in strangers {
            self.drop_link(id, LeaveReason::NoAnswer);
        }
        self.expected.clear();
    }
}
