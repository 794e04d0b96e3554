//! The newcomer's own side: it asks for the world, runs what ran since, and plays from the turn on that all agreed on.

use std::collections::VecDeque;

use super::{Lockstep, LockstepEvent, StartedTurn};
use crate::lockstep::checks::Checks;
use crate::lockstep::config::{MAX_PLAYERS, Pace, TurnNumber, members};
use crate::lockstep::fault::Fault;
use crate::lockstep::joining::{
    JoinRefusal, JoinWord, LoadState, RanTurn, ServedTurns, StateHead, TurnPlace,
};
use crate::lockstep::packet::{More, Payload};
use crate::lockstep::remote::RemotePlayer;
use crate::lockstep::schedule;
use crate::time::{Duration, Instant};

/// How often it asks, and how soon it says that more has come.
const ASK_EVERY: Duration = Duration::from_millis(200);
const ACK_AFTER: Duration = Duration::from_millis(50);
/// A helper that is silent for so long is left for another one.
const MAX_SILENCE: Duration = Duration::from_secs(3);
/// Turns that came and didn't run yet, at most.
const MAX_QUEUED: usize = 2048;
/// Round trips above this aren't believed.
const MAX_RTT_MS: u16 = 5_000;
/// Worlds that one who heals asks for, at most, for one difference.
const MAX_HEALINGS: u8 = 4;

/// Someone who doesn't play yet.
#[derive(Clone, Debug)]
pub(super) struct Newcomer {
    attempt: u16,
    pub helper: Option<u8>,
    heard: Instant,
    has_world: bool,
    /// A check of the world agreed with the helper's.
    pub agreed: bool,
    /// The reason for which it doesn't take part.
    refusal: Option<JoinRefusal>,
    queue: VecDeque<RanTurn>,
    partial: RanTurn,
    rtt: Option<u16>,
    /// When a turn is due at the helper.
    due: Option<(TurnNumber, Instant)>,
    /// How far it was with loading when it last reported that.
    reported: Option<LoadState>,
    next_ask: Instant,
}

/// Whose world is another one than the others', and who gives it theirs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Healing {
    pub attempt: u16,
    pub helper: u8,
    /// Who else has the right world.
    right: u16,
    next_ask: Instant,
    tries: u8,
}

/// Differs from one attempt to the next.
fn attempt_at(now: Instant) -> u16 {
    (now.as_nanos() / 1_000_003) as u16
}

fn clock(now: Instant) -> u16 {
    (now.as_nanos() / 1_000_000) as u16
}

impl Newcomer {
    pub(super) fn new(now: Instant) -> Self {
        Newcomer {
            attempt: attempt_at(now),
            helper: None,
            heard: now,
            has_world: false,
            agreed: false,
            refusal: None,
            queue: VecDeque::new(),
            partial: RanTurn::default(),
            rtt: None,
            due: None,
            reported: None,
            next_ask: now,
        }
    }

    fn place(&self, turn: TurnNumber) -> TurnPlace {
        TurnPlace { turn: turn + self.queue.len() as TurnNumber, entries: self.partial.entries.len() as u8 }
    }

    /// Leaves its helper. Another player may have sent its world meanwhile and serve the turns after that one, so what
    /// was said of this attempt counts no more.
    fn begin_anew(&mut self) {
        (self.helper, self.attempt) = (None, self.attempt.wrapping_add(1));
    }

    /// Takes turns that come behind those that are there.
    fn take(&mut self, turn: TurnNumber, from: TurnPlace, groups: Vec<RanTurn>) {
        let mut at = from;
        for group in groups {
            let count = group.players.count_ones() as usize;
            if group.entries.len() + usize::from(at.entries) > count {
                // No turn has that many entries: the rest isn't believed.
                return;
            }
            for entry in group.entries {
                let place = self.place(turn);
                if at == place && self.queue.len() < MAX_QUEUED {
                    if self.partial.entries.is_empty() {
                        self.partial.players = group.players;
                    }
                    if self.partial.players != group.players {
                        return;
                    }
                    self.partial.entries.push(entry);
                }
                at.entries += 1;
                if usize::from(at.entries) == count {
                    at = TurnPlace { turn: at.turn + 1, entries: 0 };
                }
                if self.partial.is_whole() && !self.partial.entries.is_empty() {
                    self.queue.push_back(core::mem::take(&mut self.partial));
                }
            }
        }
    }
}

impl Lockstep {
    /// Whether this player came later and doesn't play yet.
    pub fn is_joining(&self) -> bool {
        self.newcomer.is_some()
    }

    /// Takes a payload while this player doesn't play.
    pub(super) fn read_as_newcomer(&mut self, now: Instant, player: u8, payload: &[u8]) -> Result<(), Fault> {
        let at = usize::from(player);
        if at >= MAX_PLAYERS || player == self.config.me {
            return Err(Fault::Stranger { player });
        }
        if !self.remotes[at].take_token(now) {
            self.counters.flooded += 1;
            return Ok(());
        }
        self.counters.payloads_received += 1;
        let payload = Payload::parse(payload)?;
        let Some(newcomer) = self.newcomer.as_mut() else { return Ok(()) };
        match payload.more.joining {
            Some(JoinWord::Serve(served))
                if served.attempt == newcomer.attempt && newcomer.helper.is_none_or(|it| it == player) =>
            {
                newcomer.helper = Some(player);
                self.take_served(now, served);
            }
            Some(JoinWord::Refuse { attempt, reason })
                if attempt == newcomer.attempt && newcomer.helper.is_none_or(|it| it == player) =>
            {
                self.give_up(reason);
            }
            _ => {}
        }
        Ok(())
    }

    fn take_served(&mut self, now: Instant, served: ServedTurns) {
        let turn = self.turn;
        let Some(newcomer) = self.newcomer.as_mut() else { return };
        newcomer.heard = now;
        let rtt = clock(now).wrapping_sub(served.clock).wrapping_sub(served.held_ms);
        if rtt <= MAX_RTT_MS {
            newcomer.rtt = Some(newcomer.rtt.map_or(rtt, |known| known.min(rtt)));
        }
        let half = i64::from(newcomer.rtt.unwrap_or(0)) / 2;
        let due = now.as_nanos() as i64 + (i64::from(served.due_ms) - half) * 1_000_000;
        newcomer.due = Some((served.newest + 1, Instant::from_nanos(due.max(0) as u64)));
        if let Some((from, groups)) = served.turns.filter(|_| newcomer.has_world) {
            newcomer.take(turn, from, groups);
        }
        if newcomer.reported.is_some_and(|it| it.place != newcomer.place(turn)) {
            newcomer.next_ask = newcomer.next_ask.min(now + ACK_AFTER);
        }
    }

    /// This player isn't let in.
    pub fn give_up(&mut self, reason: JoinRefusal) {
        let Some(newcomer) = self.newcomer.as_mut().filter(|it| it.refusal.is_none()) else { return };
        newcomer.refusal = Some(reason);
        newcomer.queue.clear();
        self.push_event(LockstepEvent::Refused { reason });
    }

    /// Asks anew, after a refusal or by wish.
    pub fn ask_again(&mut self, now: Instant) {
        if let Some(newcomer) = &mut self.newcomer {
            **newcomer = Newcomer::new(now);
        }
    }

    /// Someone is gone who may have helped.
    pub(super) fn lose_helper(&mut self, now: Instant, player: u8) {
        if let Some(newcomer) = self.newcomer.as_mut().filter(|it| it.helper == Some(player)) {
            newcomer.begin_anew();
            newcomer.next_ask = now;
        }
        let Some(healing) = self.healing.as_mut().filter(|it| it.helper == player) else { return };
        let others = healing.right & self.departures.live() & !(1 << player) & !(1 << self.config.me);
        healing.right = others;
        match members(others).next() {
            Some(helper) => {
                let attempt = healing.attempt.wrapping_add(1);
                (healing.helper, healing.attempt, healing.next_ask) = (helper, attempt, now);
            }
            None => {
                self.healing = None;
                self.push_event(LockstepEvent::Refused { reason: JoinRefusal::Unsent });
            }
        }
    }

    /// What is said to a player while this one doesn't play.
    pub(super) fn ask(&mut self, now: Instant, player: u8) -> Option<Payload> {
        let turn = self.turn;
        let newcomer = self.newcomer.as_mut()?;
        let at = usize::from(player);
        if let Some(reason) = newcomer.refusal {
            // Players may have let it in, and wait for it.
            if now < self.remotes[at].next_send {
                return None;
            }
            self.remotes[at].next_send = now + ASK_EVERY;
            let joining = Some(JoinWord::Refuse { attempt: newcomer.attempt, reason });
            return Some(Payload::of(More { joining, ..More::default() }));
        }
        if newcomer.helper.is_some() && now - newcomer.heard > MAX_SILENCE {
            newcomer.begin_anew();
        }
        // All are asked until somebody helps: each has its own time.
        let due = if newcomer.helper.is_none() { self.remotes[at].next_send } else { newcomer.next_ask };
        if now < due || newcomer.helper.is_some_and(|it| it != player) {
            return None;
        }
        (self.remotes[at].next_send, newcomer.next_ask) = (now + ASK_EVERY, now + ASK_EVERY);
        let agreed = newcomer.agreed;
        let have = newcomer.has_world.then(|| LoadState { place: newcomer.place(turn), ran: turn, agreed });
        newcomer.reported = have;
        let joining =
            Some(JoinWord::Ask { attempt: newcomer.attempt, clock: clock(now), heals: false, have });
        Some(Payload::of(More { joining, ..More::default() }))
    }

    /// Takes what stands in front of a world that came from a player, which the game has loaded. Whether it is one that was
    /// asked for.
    pub fn load(&mut self, now: Instant, player: u8, head: &StateHead) -> bool {
        let me = self.config.me;
        if !self.expects(player, head) || self.newcomer.is_none() {
            return false;
        }
        (self.turn, self.closed_after, self.decider) = (head.turn, head.turn, head.decider);
        self.pace = Pace { steps: head.steps, delay: head.delay };
        (self.speed, self.paused) = (head.speed, head.paused);
        self.length = schedule::length(self.config.step, self.pace, self.speed);
        self.config.players = head.players;
        self.departures.take_over(head.turn, head.players, head.out, head.joined);
        for player in 0..MAX_PLAYERS {
            let mut remote = RemotePlayer::new();
            remote.have = head.out[player].map_or(head.turn, |out| out - 1).max(head.joined[player] - 1);
            (remote.acked, remote.next_send) = (head.turn, now);
            self.remotes[player] = remote;
        }
        // The others' checks of a turn come with turns that run so much later.
        let log_turns = usize::from(self.config.max_pace.delay) + 4;
        self.checks = Checks::new(self.config.log_turns.max(log_turns));
        self.unsent.clear();
        self.given.clear();
        self.newcomers.clear();
        self.waiting = None;
        if let Some(newcomer) = self.newcomer.as_mut() {
            (newcomer.helper, newcomer.heard) = (Some(player), now);
            (newcomer.has_world, newcomer.agreed) = (true, false);
            newcomer.queue.clear();
            newcomer.partial = RanTurn::default();
            newcomer.next_ask = now;
        }
        let (is_in, joined) = (head.players >> me & 1 == 1, head.joined[usize::from(me)]);
        if is_in && head.out[usize::from(me)].is_none() && joined > head.turn {
            // All knew already when the world was saved.
            self.begin_to_play(now, joined);
        }
        true
    }

    /// Whether a world from a player is one that was asked for.
    pub fn expects(&self, player: u8, head: &StateHead) -> bool {
        let joins = self
            .newcomer
            .as_ref()
            // A small world may come before the word of it does: any player that knows the attempt may help.
            .is_some_and(|it| {
                it.refusal.is_none() && it.helper.is_none_or(|it| it == player) && it.attempt == head.attempt
            });
        joins || self.healing.is_some_and(|it| it.helper == player && it.attempt == head.attempt)
    }

    /// The next turn of those that ran before this player counts.
    pub(super) fn poll_past(&mut self, now: Instant) -> Option<StartedTurn> {
        self.review(now);
        let newcomer = self.newcomer.as_mut().filter(|it| it.has_world && it.refusal.is_none())?;
        let RanTurn { players, entries } = newcomer.queue.pop_front()?;
        newcomer.next_ask = newcomer.next_ask.min(now + ACK_AFTER);
        let turn = self.turn + 1;
        for player in members(self.departures.needed(turn) & !players) {
            self.departures.note_out(player, turn);
        }
        for (player, entry) in members(players).zip(entries) {
            if self.departures.needed(turn) >> player & 1 == 0 {
                self.counters.odd += 1;
                self.config.players |= 1 << player;
                self.departures.admit(player, turn);
            }
            if turn >= 0 {
                self.note_checks(player, turn, &entry);
                self.remotes[usize::from(player)].have = turn - 1;
                self.remotes[usize::from(player)].push(now, entry);
            }
        }
        Some(self.start(now, turn, players))
    }

    /// From here on all send their data to this player, which gives its own from a turn on.
    pub(super) fn begin_to_play(&mut self, now: Instant, from: TurnNumber) {
        let Some(newcomer) = self.newcomer.take() else { return };
        let me = usize::from(self.config.me);
        for (player, remote) in self.remotes.iter_mut().enumerate() {
            // Nobody lacks anything in front of that.
            remote.acked = from - 1;
            remote.next_send = now;
            if player == me {
                remote.have = from - 1;
            }
        }
        self.adapter.clear();
        let due = newcomer.due.map_or(now, |(turn, at)| {
            let turns = i128::from(turn) - i128::from(self.turn) - 1;
            let nanos = i128::from(at.as_nanos()) - turns * self.length.as_nanos() as i128;
            // Whatever the helper says, it is near.
            let (near, now) = (3 * self.length.as_nanos() as i128, i128::from(now.as_nanos()));
            Instant::from_nanos(nanos.clamp(now - near, now + near).max(0) as u64)
        });
        self.due = due;
    }

    /// This player's world is another one: asks a player in the right for its world.
    pub(super) fn begin_healing(&mut self, now: Instant, right: u16) {
        let helper = members(right & self.departures.live()).find(|it| *it != self.config.me);
        if let (Some(helper), true, None) = (helper, self.config.heals, self.healing) {
            self.healing = Some(Healing { attempt: attempt_at(now), helper, right, next_ask: now, tries: 0 });
        }
    }

    /// What is asked of the one who is to heal this world.
    pub(super) fn healing_word(&mut self, now: Instant, player: u8) -> Option<JoinWord> {
        let healing = self.healing.as_mut().filter(|it| it.helper == player && now >= it.next_ask)?;
        healing.next_ask = now + ASK_EVERY;
        Some(JoinWord::Ask { attempt: healing.attempt, clock: clock(now), heals: true, have: None })
    }

    /// Takes a refusal of the one who was to heal this world.
    pub(super) fn take_refusal(&mut self, player: u8, attempt: u16, reason: JoinRefusal) {
        if self.healing.take_if(|it| it.helper == player && it.attempt == attempt).is_some() {
            self.push_event(LockstepEvent::Refused { reason });
        }
    }

    /// The world that came is of a turn that can't be gone on from: another one is asked for.
    pub fn heal_again(&mut self, now: Instant) {
        let Some(healing) = &mut self.healing else { return };
        healing.tries += 1;
        (healing.attempt, healing.next_ask) = (healing.attempt.wrapping_add(1), now);
        if healing.tries > MAX_HEALINGS {
            self.healing = None;
            self.push_event(LockstepEvent::Refused { reason: JoinRefusal::TooOften });
        }
    }

    /// The game has the others' world, up to the newest turn.
    pub fn note_healed(&mut self) {
        if self.healing.take().is_some() {
            let (player, turn) = (self.config.me, self.turn);
            self.push_event(LockstepEvent::Healed { player, turn });
        }
        self.resume(self.turn);
    }

    /// Whether the world is to be replaced by another's.
    pub fn is_healing(&self) -> bool {
        self.healing.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lockstep::entry::TurnEntry;

    #[test]
    fn more_entries_than_players_are_not_kept() {
        for (players, entries) in [(0, 31), (0b1, 2), (0b11, 16)] {
            let mut newcomer = Newcomer::new(Instant::ZERO);
            for _ in 0..40 {
                let group = RanTurn { players, entries: vec![TurnEntry::default(); entries] };
                newcomer.take(7, newcomer.place(7), vec![group; 31]);
            }
            assert_eq!((newcomer.partial.entries.len(), newcomer.queue.len()), (0, 0), "{players:b}");
        }
        let mut newcomer = Newcomer::new(Instant::ZERO);
        let whole = RanTurn { players: 0b101, entries: vec![TurnEntry::default(); 2] };
        newcomer.take(7, TurnPlace { turn: 7, entries: 0 }, vec![whole; 3]);
        assert_eq!(newcomer.place(7), TurnPlace { turn: 10, entries: 0 });
    }

    #[test]
    fn turns_that_cannot_be_fill_nothing() {
        let mut newcomer = Newcomer::new(Instant::ZERO);
        let group = |players: u16, count| RanTurn { players, entries: vec![TurnEntry::default(); count] };
        let from = |entries| TurnPlace { turn: 5, entries };
        for _ in 0..20 {
            newcomer.take(5, from(31), vec![group(u16::MAX, 16); 31]);
            newcomer.take(5, from(0), vec![group(0, 16); 31]);
            newcomer.take(5, from(31), vec![group(0, 16); 31]);
            newcomer.take(5, from(14), vec![group((1 << 14) - 1, 14); 31]);
        }
        assert_eq!(newcomer.place(5), from(0));
        newcomer.take(5, from(0), vec![group(0b11, 2), group(0b11, 1)]);
        assert_eq!(newcomer.place(5), TurnPlace { turn: 6, entries: 1 });
    }
}
