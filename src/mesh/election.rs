//! Elects a new master after the old one is gone: of the players that see each other, the lowest number asks for votes.

use super::links::{Election, LinkId, Role};
use super::machine::Mesh;
use super::message::{Message, Stamp};
use super::output::{Action, MeshFault};
use super::roster::{LeaveReason, Players, bit};
use super::{CLAIM_STAGGER, CLAIM_TIMEOUT, DENIED_PAUSE, ELECTION_GRACE, MAX_EPOCH_STEP};
use crate::time::Instant;

impl Mesh {
    /// The link to the master ended.
    pub(super) fn lose_master(&mut self, now: Instant) {
        self.master = None;
        let until = now + self.config.timeout + ELECTION_GRACE;
        self.election = Some(Election { next_at: self.turn(now, 0), until, claim: None });
        self.answer_again(now);
        self.check_minority();
        // Another player may have noticed earlier, and asked already: if two ask at once, both must ask again.
        self.replay(now, None);
        self.update_election(now);
    }

    /// Has this master elected again, in a newer epoch: a player that asked for votes after the first election ignores
    /// the old epoch. It stays the master meanwhile.
    fn renew(&mut self, now: Instant, epoch: u32) {
        if now < self.renewed_at + CLAIM_TIMEOUT {
            // The player asks again; nobody may keep all players busy with elections.
            return;
        }
        self.renewed_at = now;
        self.voted = self.voted.max(epoch).saturating_add(1);
        self.renewal = Some((self.voted, bit(self.me.0)));
        let (epoch, last) = (self.voted, self.last);
        self.send_all(&Message::Claim { epoch, last });
    }

    /// The master asks for its votes once more.
    fn handle_renewal(&mut self, id: LinkId, epoch: u32, last: Stamp) {
        if epoch > self.voted && last >= self.last {
            self.voted = epoch;
            self.send(id, Message::Grant { epoch });
        } else {
            self.send(id, Message::Deny { epoch: self.voted.max(epoch) });
        }
    }

    /// Enough have voted for the master once more.
    fn count_renewal(&mut self, now: Instant) {
        let Some((epoch, votes)) = self.renewal.filter(|_| self.is_master()) else { return };
        if !self.is_quorum(votes) {
            return;
        }
        (self.renewal, self.epoch) = (None, epoch);
        self.must_propose = true;
        if let Some(pending) = self.pending.take() {
            self.propose(pending);
        }
        self.decide(now);
    }

    /// The master of this epoch is known: what was asked for before it is settled.
    pub(super) fn enter_epoch(&mut self, epoch: u32) {
        (self.epoch, self.voted) = (epoch, self.voted.max(epoch));
        for link in &mut self.links {
            link.deferred
                .retain(|message| !matches!(message, Message::Claim { epoch: of, .. } if *of <= epoch));
        }
    }

    /// When it is this player's turn to claim: after the players with lower numbers that it reaches and that can be master.
    fn turn(&self, now: Instant, but: Players) -> Instant {
        let lower = self.reached() & (bit(self.me.0) - 1) & !but;
        now + CLAIM_STAGGER * lower.count_ones()
    }

    pub(super) fn update_election(&mut self, now: Instant) {
        let Some(election) = &self.election else { return };
        if election.until <= now {
            if self.is_member() {
                self.end(LeaveReason::Minority);
            } else {
                self.start_over();
            }
            return;
        }
        // A newcomer that is only proposed has a vote but can't claim.
        if election.next_at > now || !self.is_member() {
            return;
        }
        self.claim(now);
    }

    /// Asks all for their votes, in an epoch in which none was asked for here.
    fn claim(&mut self, now: Instant) {
        let next_at = self.turn(now, 0) + CLAIM_TIMEOUT;
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
        player: u8,
        epoch: u32,
        last: Stamp,
    ) -> Result<(), MeshFault> {
        if self.uses_up_epochs(epoch) {
            return Err(MeshFault::Impossible);
        }
        if let Some(master) = self.master {
            if epoch <= self.epoch {
                return Ok(());
            }
            if master == self.me.0 {
                self.renew(now, epoch);
            } else if master == player {
                self.handle_renewal(id, epoch, last);
            } else {
                // Its own link to the master ended. Ours may, too, a little later: it is asked again then.
                return self.defer(now, id, Message::Claim { epoch, last });
            }
            return Ok(());
        }
        let later = self.turn(now, 0) + CLAIM_TIMEOUT;
        let (newer, same_or_newer) = (epoch > self.voted, last >= self.last);
        if newer && same_or_newer {
            self.voted = epoch;
            if let Some(election) = &mut self.election {
                (election.claim, election.next_at) = (None, later);
            }
            self.send(id, Message::Grant { epoch });
            return Ok(());
        }
        self.send(id, Message::Deny { epoch: self.voted.max(epoch) });
        let claimed = self.election.as_ref().and_then(|election| election.claim).map(|(epoch, _)| epoch);
        if newer {
            // It knows less than we do and can't be the master; we may.
            self.voted = epoch;
            let turn = self.turn(now, bit(player));
            if let Some(election) = &mut self.election {
                election.next_at = election.next_at.min(turn);
            }
        } else if claimed == Some(epoch) {
            // Both asked at once, and have parted the votes. Which of the two asks again both see alike.
            if (last, self.me.0) < (self.last, player) {
                self.claim(now);
            } else if let Some(election) = &mut self.election {
                election.next_at = election.next_at.max(later);
            }
        }
        Ok(())
    }

    pub(super) fn handle_grant(&mut self, now: Instant, player: u8, epoch: u32) {
        if let Some((asked, votes)) = &mut self.renewal
            && *asked == epoch
        {
            *votes |= bit(player);
            return self.count_renewal(now);
        }
        let Some(Election { claim: Some((claimed, votes)), .. }) = &mut self.election else {
            self.stale += 1;
            return;
        };
        if *claimed == epoch {
            *votes |= bit(player);
            self.count_votes(now);
        }
    }

    /// A player has a vote in this epoch no more.
    pub(super) fn handle_deny(&mut self, now: Instant, epoch: u32) {
        if epoch <= self.voted || self.uses_up_epochs(epoch) {
            return;
        }
        let turn = self.turn(now, 0);
        if let Some(election) = &mut self.election {
            self.voted = epoch;
            if election.claim.is_some() {
                // It has voted already, in an epoch that wasn't known here. Those of the others may do.
                election.next_at = election.next_at.min(turn + DENIED_PAUSE);
            }
        }
    }

    /// Whether an epoch is further ahead than elections can bring it. After a few such claims, no epochs would be left
    /// to elect anybody.
    pub(super) fn uses_up_epochs(&self, epoch: u32) -> bool {
        epoch.saturating_sub(self.voted.max(self.epoch)) >= MAX_EPOCH_STEP
    }

    pub(super) fn count_votes(&mut self, now: Instant) {
        let Some(Election { claim: Some((epoch, votes)), .. }) = self.election else { return };
        if !self.is_quorum(votes) {
            return;
        }
        self.election = None;
        (self.master, self.epoch) = (Some(self.me.0), epoch);
        self.renewal = None;
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
        let (stamp, stable, pending) = match message {
            Message::Propose { stamp, stable, pending } => (stamp, stable, pending),
            // A master whose epoch is ignored here may be elected again, and sends the token once.
            Message::Seat { pass } => {
                if let Some(link) = self.link_mut(id) {
                    link.seat = Some(pass);
                }
                return Ok(());
            }
            // From a candidate that lost.
            _ => {
                self.stale += 1;
                return Ok(());
            }
        };
        if stamp.epoch < self.voted || stamp.epoch <= self.epoch {
            self.stale += 1;
            return Ok(());
        }
        self.follow(id, player, stamp.epoch);
        self.handle_propose(id, stamp, stable, pending)
    }

    /// Accepts a new master, whose proposal came over this link.
    fn follow(&mut self, id: LinkId, player: u8, epoch: u32) {
        self.election = None;
        self.master = Some(player);
        self.enter_epoch(epoch);
        let Some(link) = self.link_mut(id) else { return };
        let (host, seat) = (link.player(), link.seat.take());
        let seat = host.zip(seat).map(|(host, pass)| Action::TakeSeat { host, pass });
        self.actions.extend(seat);
        self.send(id, Message::SealedWith { key: self.config.key });
        let all = self.stable.members.iter().filter(|member| member.player != self.me.0);
        let lost: Vec<_> = all
            .filter(|member| self.link_of(member.player).is_none())
            .map(|member| Message::Lost { player: member.player, joined: member.joined, broke_rules: false })
            .collect();
        for message in lost {
            self.send(id, message);
        }
        if self.told_master == Some(player) {
            return;
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
