//! Reads payloads: checks what a player says and takes it.

use super::Lockstep;
use crate::lockstep::config::{MAX_AHEAD, MAX_PLAYERS, TurnNumber};
use crate::lockstep::entry::{PastChecks, TurnEntry};
use crate::lockstep::fault::Fault;
use crate::lockstep::joining::JoinWord;
use crate::lockstep::packet::{Payload, Run, near};
use crate::time::Instant;

impl Lockstep {
    /// Handles a player's payload.
    ///
    /// # Errors
    /// The payload breaks the protocol: its connection should end.
    pub fn read(&mut self, now: Instant, player: u8, payload: &[u8]) -> Result<(), Fault> {
        if self.newcomer.is_some() {
            return self.read_as_newcomer(now, player, payload);
        }
        let known = self.config.players | self.newcomers.fresh;
        if usize::from(player) >= MAX_PLAYERS || player == self.config.me || known >> player & 1 == 0 {
            return Err(Fault::Stranger { player });
        }
        let at = usize::from(player);
        if !self.remotes[at].take_token(now) {
            self.counters.flooded += 1;
            return Ok(());
        }
        self.counters.payloads_received += 1;
        if self.departures.live() >> player & 1 == 0 {
            self.read_of_outsider(now, player, payload);
            return Ok(());
        }
        let payload = Payload::parse(payload)?;
        if !self.take_join_word(now, player, payload.more.joining.as_ref()) {
            return Ok(());
        }
        self.note_playing(player);
        self.check_words(&payload)?;
        self.take_header(now, player, &payload)?;
        let Payload { own, more, .. } = payload;
        self.take_entries(now, player, own, None)?;
        for word in &more.departures {
            let is_known = self.config.players >> word.player & 1 == 1;
            if is_known && !self.departures.is_settled(word.player, self.turn) {
                self.remotes[at].departures[usize::from(word.player)] = Some(*word);
                self.owed[at] |= 1 << word.player;
            }
        }
        self.evaluate(now);
        for copied in more.copies {
            let before = self.departures.out(copied.player).unwrap_or(TurnNumber::MAX);
            self.take_entries(now, copied.player, copied.run, Some(before))?;
        }
        if more.question.is_some() {
            self.remotes[at].question = more.question;
        }
        if let Some((turn, reply)) = more.answer {
            let used = self.checks.answer(player, turn, &reply);
            self.counters.odd += u64::from(!used);
            self.remotes[at].next_send = if used { now } else { self.remotes[at].next_send };
        }
        self.review(now);
        Ok(())
    }

    /// Handles a payload of a player that takes no part: not yet, or no more.
    fn read_of_outsider(&mut self, now: Instant, player: u8, payload: &[u8]) {
        let is_fresh = self.newcomers.fresh >> player & 1 == 1;
        match Payload::parse(payload).ok().filter(|_| is_fresh).and_then(|it| it.more.joining) {
            Some(word @ JoinWord::Ask { .. }) => return self.take_ask(now, player, &word),
            Some(JoinWord::Refuse { attempt, reason }) => {
                return self.take_withdrawal(now, player, attempt, reason);
            }
            _ => {}
        }
        self.counters.from_departed += 1;
        // A newcomer that isn't out heard before this player did that it is let in.
        if !is_fresh || self.departures.frozen >> player & 1 == 1 {
            // Each of its payloads is answered once with the news that it is out.
            self.owed[usize::from(player)] |= 1 << player;
        }
    }

    /// Takes what a player says of joining; returns whether its payload has more to read.
    fn take_join_word(&mut self, now: Instant, player: u8, word: Option<&JoinWord>) -> bool {
        match word {
            Some(ask @ JoinWord::Ask { heals, .. }) => {
                self.take_ask(now, player, ask);
                *heals
            }
            Some(JoinWord::Refuse { attempt, reason }) if self.departures.loading >> player & 1 == 1 => {
                self.take_withdrawal(now, player, *attempt, *reason);
                false
            }
            Some(JoinWord::Refuse { attempt, reason }) => {
                self.take_refusal(player, *attempt, *reason);
                true
            }
            _ => true,
        }
    }

    /// Takes a player's ack and what else it says of itself.
    fn take_header(&mut self, now: Instant, player: u8, payload: &Payload) -> Result<(), Fault> {
        let mine = self.remotes[usize::from(self.config.me)].have;
        let ack = near(payload.ack, self.turn);
        if ack > mine {
            return Err(Fault::Ack { turn: ack });
        }
        let remote = &mut self.remotes[usize::from(player)];
        remote.acked = remote.acked.max(ack);
        if let Some(margins) = payload.margins {
            (remote.their_margin, remote.their_worst) = margins;
        }
        remote.waiting = payload.waiting;
        remote.against = payload.more.against & self.config.players;
        if payload.waiting && remote.acked < mine {
            remote.next_send = now;
        }
        Ok(())
    }

    fn check_words(&self, payload: &Payload) -> Result<(), Fault> {
        for word in &payload.more.departures {
            // An unknown player may be a newcomer of a turn to come.
            let is_known = self.config.players >> word.player & 1 == 1;
            let have = near(word.have, self.turn);
            if is_known && have > self.turn + MAX_AHEAD && !self.departures.is_settled(word.player, self.turn)
            {
                return Err(Fault::Ahead { turn: have });
            }
        }
        for copied in &payload.more.copies {
            if self.config.players >> copied.player & 1 == 0 {
                return Err(Fault::Stranger { player: copied.player });
            }
            if self.departures.frozen >> copied.player & 1 == 0 {
                return Err(Fault::Forged { player: copied.player });
            }
        }
        Ok(())
    }

    /// Accepts a player's entries for consecutive turns; copies are limited to turns before `before`.
    fn take_entries(
        &mut self,
        now: Instant,
        player: u8,
        run: Run,
        copied_before: Option<TurnNumber>,
    ) -> Result<(), Fault> {
        let (is_copied, before) = (copied_before.is_some(), copied_before.unwrap_or(TurnNumber::MAX));
        for (turn, entry) in (near(run.first, self.turn)..).zip(run.entries) {
            let remote = &mut self.remotes[usize::from(player)];
            if turn <= remote.have {
                if remote.entry(turn).is_some_and(|held| *held != entry) {
                    if !is_copied {
                        return Err(Fault::Rewritten { turn });
                    }
                    // A departed player may have told players different things: the one that copies its data isn't to
                    // blame.
                    self.counters.odd += 1;
                }
                self.counters.repeated += 1;
                continue;
            }
            if turn > self.turn + MAX_AHEAD {
                return Err(Fault::Ahead { turn });
            }
            if turn > remote.have + 1 {
                self.counters.gaps += 1;
                return Ok(());
            }
            if is_copied && turn >= before {
                self.counters.copies_unused += 1;
                return Ok(());
            }
            self.note_checks(player, turn, &entry);
            self.remotes[usize::from(player)].push(now, entry);
        }
        Ok(())
    }

    pub(super) fn note_checks(&mut self, player: u8, turn: TurnNumber, entry: &TurnEntry) {
        let PastChecks { back, crcs } = &entry.checks;
        let oldest = turn - TurnNumber::from(*back) - crcs.len() as TurnNumber + 1;
        for (of, check) in (oldest..).zip(crcs) {
            self.checks.note(player, of, *check);
        }
    }
}
