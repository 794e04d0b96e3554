//! Newcomers, as those see them who play: who wants the world, which turns it lacks, and when it is let in.

use std::collections::VecDeque;

use super::{Lockstep, LockstepEvent};
use crate::lockstep::config::{MAX_NOTICE, MAX_PLAYERS, TurnNumber, mask_of, members};
use crate::lockstep::entry::{Control, TurnEntry};
use crate::lockstep::joining::{
    JoinRefusal, JoinWord, LoadState, RanTurn, ServedTurns, StateHead, TurnPlace,
};
use crate::lockstep::packet::{More, Payload};
use crate::lockstep::remote::RemotePlayer;
use crate::time::{Duration, Instant};

/// Turns that are kept though nobody lacks them: for one whose helper is gone.
const KEPT_TURNS: usize = 128;
/// Turns that are kept for newcomers that load, at most, and their size in memory.
const MAX_HISTORY: usize = 36_000;
const MAX_HISTORY_BYTES: usize = 16 << 20;
/// Worlds for one newcomer, at most.
const MAX_STATES: u8 = 4;
/// Turns sent in front of what a newcomer says to have.
const MAX_UNACKED: TurnNumber = 512;
/// So few turns are sent again with each payload.
const ALL_UNACKED: TurnNumber = 12;
/// After so long without progress all that a newcomer doesn't have is sent again.
const RESEND: Duration = Duration::from_millis(300);
/// How often a newcomer hears something, and how soon it may be answered.
const HEARTBEAT: Duration = Duration::from_millis(500);
const ANSWER_AFTER: Duration = Duration::from_millis(40);
/// A newcomer that says nothing for so long is forgotten.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// Real time between the turn in which all hear of a newcomer and the one from which on it counts.
const NOTICE: Duration = Duration::from_millis(1200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuestStage {
    /// It asked, and can't be answered yet.
    Waits,
    WantsState,
    Served,
    Refused(JoinRefusal),
}

/// Someone who asks for the world.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    attempt: u16,
    /// It plays, and only its world is another one.
    heals: bool,
    stage: GuestStage,
    states: u8,
    clock: u16,
    heard: Instant,
    place: TurnPlace,
    sent: TurnPlace,
    /// The last payload had no room for all turns up to the newest; the next one begins where it ended.
    has_rest: bool,
    /// When the place changed, or all was sent again.
    moved: Instant,
    ran: TurnNumber,
    /// A check of its world agreed.
    agreed: bool,
    /// Until this turn it isn't proposed again.
    proposed_until: TurnNumber,
    next_send: Instant,
}

/// Who asks for the world, and what they lack.
#[derive(Clone, Debug, Default)]
pub(super) struct Newcomers {
    /// Came after the start, or again: a bit each.
    pub fresh: u16,
    guests: [Option<Box<Guest>>; MAX_PLAYERS],
    /// The newest turns with all that was given to them.
    history: VecDeque<RanTurn>,
    bytes: usize,
}

fn size(turn: &RanTurn) -> usize {
    turn.entries.iter().map(|entry| size_of::<TurnEntry>() + entry.bits() / 8).sum()
}

impl Newcomers {
    /// Keeps a turn that now runs.
    pub(super) fn record(&mut self, number: TurnNumber, turn: RanTurn) {
        self.bytes += size(&turn);
        self.history.push_back(turn);
        let served =
            self.guests.iter().flatten().filter(|guest| guest.stage == GuestStage::Served && !guest.heals);
        let needed = served.map(|guest| guest.place.turn).min().unwrap_or(TurnNumber::MAX);
        while let Some(front) = self.history.front() {
            let oldest = number + 1 - self.history.len() as TurnNumber;
            let is_large = self.history.len() > MAX_HISTORY || self.bytes > MAX_HISTORY_BYTES;
            if !is_large && (self.history.len() <= KEPT_TURNS || oldest > needed) {
                break;
            }
            self.bytes -= size(front);
            self.history.pop_front();
        }
    }

    /// Begins anew, after a world was loaded.
    pub(super) fn clear(&mut self) {
        self.history.clear();
        self.bytes = 0;
    }

    /// A number is another's, or nobody's.
    pub(super) fn forget(&mut self, player: u8) {
        self.guests[usize::from(player)] = None;
    }
}

impl Lockstep {
    /// A player came after the start, or came again: its word as a newcomer counts.
    pub fn note_joined(&mut self, player: u8) {
        if usize::from(player) < MAX_PLAYERS && player != self.config.me {
            self.newcomers.fresh |= 1 << player;
            self.departures.absent &= !(1 << player);
            self.newcomers.forget(player);
        }
    }

    /// Takes what a newcomer says, or one who wants its world healed.
    pub(super) fn take_ask(&mut self, now: Instant, player: u8, word: &JoinWord) {
        let JoinWord::Ask { attempt, clock, heals, have } = word else { return };
        let plays = self.departures.live() >> player & 1 == 1;
        if *heals && !(plays && self.config.heals && self.checks.is_excused(player)) {
            return;
        }
        if !heals && (self.newcomers.fresh >> player & 1 == 0 || !plays && self.decider != self.config.me) {
            // Only the deciding player lets it in; once all know that it is in, any of them helps it.
            return;
        }
        let (may, newest) = (plays || self.departures.may_admit(player, self.turn), self.turn);
        let oldest = newest + 1 - self.newcomers.history.len() as TurnNumber;
        let admits = if *heals { self.config.heals } else { self.config.admits };
        let none = TurnPlace { turn: TurnNumber::MIN, entries: 0 };
        let guest = self.newcomers.guests[usize::from(player)].get_or_insert_with(|| {
            Box::new(Guest {
                attempt: *attempt,
                heals: *heals,
                stage: GuestStage::Waits,
                states: 0,
                clock: *clock,
                heard: now,
                place: none,
                sent: none,
                has_rest: false,
                moved: now,
                ran: TurnNumber::MIN,
                agreed: false,
                proposed_until: TurnNumber::MIN,
                next_send: now,
            })
        });
        if guest.attempt != *attempt || guest.heals != *heals {
            (guest.attempt, guest.heals, guest.stage) = (*attempt, *heals, GuestStage::Waits);
            (guest.place, guest.ran, guest.agreed) = (none, none.turn, false);
        }
        (guest.clock, guest.heard) = (*clock, now);
        guest.next_send = guest.next_send.min(now + ANSWER_AFTER);
        if guest.stage == GuestStage::Waits && may {
            guest.stage = match have {
                _ if !admits => GuestStage::Refused(JoinRefusal::Closed),
                Some(LoadState { place, .. }) if (oldest - 1..=newest).contains(&place.turn) => {
                    (guest.place, guest.sent, guest.moved) = (*place, *place, now);
                    GuestStage::Served
                }
                _ if guest.states >= MAX_STATES => GuestStage::Refused(JoinRefusal::TooOften),
                _ => GuestStage::WantsState,
            };
        }
        let Some(LoadState { place, ran, agreed }) = have else { return };
        if guest.stage == GuestStage::Served && place.turn <= newest && *place > guest.place {
            (guest.place, guest.moved) = (*place, now);
            guest.sent = guest.sent.max(*place);
        }
        guest.ran = guest.ran.max(*ran);
        guest.agreed |= agreed;
    }

    /// A newcomer says that it doesn't take part: it leaves again if it was let in.
    pub(super) fn take_withdrawal(&mut self, now: Instant, player: u8, attempt: u16, reason: JoinRefusal) {
        if let Some(guest) = &mut self.newcomers.guests[usize::from(player)]
            && guest.attempt == attempt
        {
            guest.stage = GuestStage::Refused(reason);
        }
        self.departures.gone |= 1 << player & self.departures.loading;
        self.evaluate(now);
    }

    /// The others go on without a newcomer that they let in.
    pub(super) fn note_dropped(&mut self, player: u8) {
        self.departures.loading &= !(1 << player);
        if let Some(guest) = &mut self.newcomers.guests[usize::from(player)]
            && guest.stage == GuestStage::Served
        {
            guest.stage = GuestStage::Refused(JoinRefusal::TooSlow);
        }
    }

    /// A player speaks as one who plays: it needs no more help.
    pub(super) fn note_playing(&mut self, player: u8) {
        let guest = &mut self.newcomers.guests[usize::from(player)];
        guest.take_if(|guest| !guest.heals);
        self.newcomers.fresh &= !(1 << player);
        self.departures.loading &= !(1 << player);
    }

    /// Who is to be sent the world.
    pub fn states_wanted(&self) -> Vec<u8> {
        let wants = |player: &u8| {
            let guest = &self.newcomers.guests[usize::from(*player)];
            guest.as_ref().is_some_and(|guest| guest.stage == GuestStage::WantsState)
        };
        (0..MAX_PLAYERS as u8).filter(wants).collect()
    }

    /// Whether a player to whom the world is sent still wants it.
    pub fn is_served(&self, player: u8) -> bool {
        let guest = self.newcomers.guests.get(usize::from(player)).and_then(Option::as_ref);
        guest.is_some_and(|guest| guest.stage == GuestStage::Served)
    }

    /// What stands in front of the world after the newest turn, which is now sent to a player; None if it wants none.
    pub fn state_head(&mut self, now: Instant, player: u8) -> Option<StateHead> {
        let turn = self.turn;
        let guest = self.newcomers.guests.get_mut(usize::from(player))?.as_mut()?;
        if guest.stage != GuestStage::WantsState {
            return None;
        }
        guest.stage = GuestStage::Served;
        guest.states = guest.states.saturating_add(1);
        guest.place = TurnPlace { turn, entries: 0 };
        (guest.sent, guest.moved, guest.ran, guest.agreed) = (guest.place, now, TurnNumber::MIN, false);
        let attempt = guest.attempt;
        let (out, joined) = self.departures.spans();
        Some(StateHead {
            attempt,
            turn,
            crc: self.checks.log(turn).map_or(0, |log| log.check.crc),
            decider: self.decider,
            steps: self.pace.steps,
            delay: self.pace.delay,
            speed: self.speed,
            paused: self.paused,
            players: self.config.players,
            out: out.map(|out| out.filter(|out| *out <= turn)),
            joined: joined.map(|joined| joined.max(-1 << 20)),
        })
    }

    /// Tells one who asked for the world that it gets none.
    pub fn refuse(&mut self, now: Instant, player: u8, reason: JoinRefusal) {
        if let Some(Some(guest)) = self.newcomers.guests.get_mut(usize::from(player)) {
            (guest.stage, guest.next_send) = (GuestStage::Refused(reason), now);
        }
    }

    /// The next word to a newcomer.
    pub(super) fn guest_word(&mut self, now: Instant, player: u8, room: usize) -> Option<JoinWord> {
        let newest = self.turn;
        let oldest = newest + 1 - self.newcomers.history.len() as TurnNumber;
        let Newcomers { guests, history, .. } = &mut self.newcomers;
        let place = &mut guests[usize::from(player)];
        if place.as_ref().is_some_and(|guest| now - guest.heard > MAX_SILENCE) {
            *place = None;
        }
        let guest = place.as_mut()?;
        let has_news = guest.stage == GuestStage::Served && !guest.heals && guest.sent.turn < newest;
        let is_lost = has_news || guest.sent > guest.place;
        if is_lost && now - guest.moved > RESEND {
            (guest.sent, guest.moved) = (guest.place, now);
        } else if now < guest.next_send && !(has_news && guest.sent.turn < guest.place.turn + MAX_UNACKED) {
            return None;
        }
        let attempt = guest.attempt;
        guest.next_send = now + HEARTBEAT;
        if guest.stage == GuestStage::Served && !guest.heals && guest.place.turn + 1 < oldest {
            guest.stage = GuestStage::Refused(JoinRefusal::TooSlow);
        }
        if let GuestStage::Refused(reason) = guest.stage {
            return Some(JoinWord::Refuse { attempt, reason });
        }
        let ms = |nanos: i128| (nanos / 1_000_000).clamp(-30_000, 30_000);
        let mut served = ServedTurns {
            attempt,
            clock: guest.clock,
            held_ms: ms((now - guest.heard).as_nanos() as i128) as u16,
            newest,
            due_ms: ms(i128::from(self.due.as_nanos()) - i128::from(now.as_nanos())) as i16,
            turns: None,
        };
        if guest.stage == GuestStage::Served && !guest.heals {
            let skipped = (guest.sent.turn + 1 - oldest).max(0) as usize;
            if newest - guest.place.turn <= ALL_UNACKED && !guest.has_rest {
                // So near the end a lost payload costs a turn, as it does among players.
                guest.sent = guest.place;
            }
            let skipped = skipped.min((guest.sent.turn + 1 - oldest).max(0) as usize);
            guest.sent = served.take(guest.sent, history.iter().skip(skipped), room);
            guest.has_rest = guest.sent.turn < newest;
        }
        Some(JoinWord::Serve(served))
    }

    /// A payload to one who doesn't play.
    pub(super) fn guest_payload(&mut self, now: Instant, player: u8, room: usize) -> Option<Payload> {
        let joining = Some(self.guest_word(now, player, room)?);
        Some(Payload::of(More { joining, ..More::default() }))
    }

    /// Turns between the one in which all hear of a newcomer and the one from which on it counts: the same for all.
    fn notice(&self) -> TurnNumber {
        let turns = (NOTICE.as_nanos() / self.length.as_nanos().max(1)) as TurnNumber;
        let delay = TurnNumber::from(self.pace.delay);
        (turns + delay).clamp(delay + 4, MAX_NOTICE)
    }

    /// Proposes a newcomer that has caught up, if this player decides.
    pub(super) fn propose_newcomers(&mut self, turn: TurnNumber) {
        let is_said = self.controls.iter().any(|control| matches!(control, Control::Join(_)));
        if self.decider != self.config.me || is_said || self.newcomer.is_some() {
            return;
        }
        let max_lag = self.notice() / 2;
        let is_checked = self.checks.newest().is_some();
        let fits = |player: &u8| {
            self.departures.may_admit(*player, turn)
                && self.newcomers.guests[usize::from(*player)].as_ref().is_some_and(|guest| {
                    let is_near = guest.ran.saturating_add(max_lag) >= turn && turn >= guest.proposed_until;
                    let is_right = guest.agreed || !is_checked;
                    is_near && is_right && !guest.heals && guest.stage == GuestStage::Served
                })
        };
        let Some(player) = (0..MAX_PLAYERS as u8).find(fits) else { return };
        if let Some(guest) = &mut self.newcomers.guests[usize::from(player)] {
            guest.proposed_until = turn + TurnNumber::from(self.pace.delay) + 24;
        }
        self.controls.push_back(Control::Join(player));
    }

    /// All hear in this turn that a newcomer is let in. Gives the turn from which on it counts.
    pub(super) fn admit(&mut self, now: Instant, turn: TurnNumber, player: u8) {
        if !self.departures.may_admit(player, turn) {
            self.counters.odd += 1;
            return;
        }
        let (at, from) = (usize::from(player), turn + self.notice());
        self.config.players |= 1 << player;
        self.departures.admit(player, from);
        self.remotes[at] = RemotePlayer::new();
        (self.remotes[at].have, self.remotes[at].acked, self.remotes[at].next_send) = (from - 1, turn, now);
        self.remotes.iter_mut().for_each(|remote| remote.departures[at] = None);
        self.owed.iter_mut().for_each(|answers| *answers &= !(1 << player));
        (self.last_ack[at], self.owed[at]) = (-1, 0);
        self.push_event(LockstepEvent::Joined { player, turn: from });
        if player == self.config.me {
            self.begin_to_play(now, from);
        }
    }

    /// The players that take part in this turn and not in the one before it.
    pub(super) fn came(&self, turn: TurnNumber, players: u16) -> u16 {
        mask_of(members(players).filter(|it| self.departures.joined(*it) == turn))
    }
}
