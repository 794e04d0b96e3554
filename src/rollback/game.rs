//! One player's side of a rollback game: which frames to run, on which inputs.

use std::collections::VecDeque;

use super::checks::CheckHistory;
use super::config::{Config, MAX_DELAY, MAX_PLAYERS, MAX_WINDOW, indices};
use super::input_log::{GameInput, HeldInput, InputLog};
use super::leaving::Leaving;
use super::pace;
use super::peer::{FieldSums, PeerState, Watcher};
use crate::store::counters::counters;
use crate::time::Instant;

/// The maximum of waiting events: more are dropped and counted.
const MAX_EVENTS: usize = 64;

/// A request to the game; they come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Save the state as it is before this frame.
    Save(u32),
    /// Load the state saved before this frame.
    Load(u32),
    /// Run a frame. [`Rollback::input`] has its inputs until the next call of [`Rollback::read`].
    Advance(u32),
}

/// The origin of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The player gave it.
    Confirmed,
    /// It hasn't arrived; the previous input is assumed again.
    Predicted,
    /// The player has left, from a frame that all agree on: the input is zero.
    Left,
}

/// An event of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GameEvent {
    /// A player is out from this frame on, in every player's game.
    Left { player: u8, frame: u32 },
    /// The states before a frame differ.
    Desync {
        player: u8,
        frame: u32,
        /// The newest frame before which the states were equal.
        last_equal: Option<u32>,
        /// The fields that differ, a bit each; 0 if unknown.
        fields: u64,
    },
    /// A spectator lacks frames that are no longer kept.
    SpectatorLost { index: u8 },
}

counters! {
    /// Counters of a rollback game.
    pub struct Counters {
        /// Frames that ran, without repeats.
        frames,
        /// Calls that ran no frame because the window was full.
        stalls,
        /// Corrections: how often a state was loaded.
        rollbacks,
        /// Frames that ran again in corrections.
        replayed,
        /// The maximum of frames in one correction.
        max_replayed,
        /// States that were saved.
        saves,
        /// Inputs that no frame used, as the delay became shorter.
        skipped_inputs,
        /// Payloads that were read.
        payloads,
        /// Inputs that had arrived before.
        repeats,
        /// Payloads of departed players, and others too late to be useful.
        stale,
        /// Values that no honest peer sends, but that do no harm.
        odd,
        /// Checksums that were compared.
        compared,
        /// Events dropped because the game took none.
        lost_events,
    }
}

/// A rollback game of one player. See [the module](super).
#[derive(Debug)]
pub struct Rollback {
    pub(super) config: Config,
    /// The frame that runs next.
    pub(super) frame: u32,
    /// Frames below this have all inputs.
    pub(super) confirmed: u32,
    /// The first frame that ran on a wrong guess; `u32::MAX` if none did.
    incorrect: u32,
    pub(super) delay: u32,
    /// The first frame without each player.
    pub(super) left_at: [u32; MAX_PLAYERS],
    pub(super) logs: Vec<InputLog>,
    pub(super) peers: Vec<PeerState>,
    pub(super) watchers: [Option<Watcher>; MAX_PLAYERS],
    pub(super) leaving: Leaving,
    pub(super) history: CheckHistory,
    requests: Vec<Request>,
    pub(super) events: VecDeque<GameEvent>,
    pub(super) counters: Counters,
    // Scratch memory for reading.
    pub(super) held: HeldInput,
    pub(super) row: Vec<u8>,
    pub(super) sums: FieldSums,
}

impl Rollback {
    /// A game at its first frame. Settings out of their bounds are clamped.
    pub fn new(config: Config) -> Self {
        let mut config = config;
        config.delay = config.delay.min(MAX_DELAY);
        config.window = config.window.clamp(1, MAX_WINDOW);
        config.rate = config.rate.max(1);
        config.players |= 1 << config.me;
        Rollback {
            frame: 0,
            confirmed: 0,
            incorrect: u32::MAX,
            delay: config.delay,
            left_at: [u32::MAX; MAX_PLAYERS],
            logs: (0..MAX_PLAYERS).map(|_| InputLog::new(&config.input)).collect(),
            peers: (0..MAX_PLAYERS).map(|_| PeerState::default()).collect(),
            watchers: [const { None }; MAX_PLAYERS],
            leaving: Leaving::default(),
            history: CheckHistory::new(config.check_every),
            requests: Vec::with_capacity(3 * MAX_WINDOW as usize + 8),
            events: VecDeque::with_capacity(MAX_EVENTS),
            counters: Counters::default(),
            held: HeldInput::new(),
            row: Vec::with_capacity(256),
            sums: [0; super::checks::MAX_FIELDS],
            config,
        }
    }

    /// The settings of the game.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The frame that runs next.
    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// Frames below this have all inputs, and never run again after they ran with them.
    pub fn confirmed(&self) -> u32 {
        self.confirmed
    }

    /// The mask of the players that take part now.
    pub fn present(&self) -> u16 {
        indices(self.config.players)
            .fold(0, |mask, player| mask | u16::from(self.left_at[player] == u32::MAX) << player)
    }

    /// The other players that can still be reached.
    pub(super) fn others(&self) -> u16 {
        self.config.players & !(1 << self.config.me) & !self.leaving.gone
    }

    /// The mask of the players whose inputs the game waits for, or would wait for if its window were full.
    pub fn waiting_for(&self) -> u16 {
        let lacks =
            |player: &usize| self.left_at[*player] == u32::MAX && self.logs[*player].next() <= self.confirmed;
        let others = self.config.players & !(1 << self.config.me);
        if self.confirmed > self.frame {
            return 0;
        }
        indices(others).filter(lacks).fold(0, |mask, player| mask | 1 << player)
    }

    /// Whether a frame would run now.
    pub fn can_advance(&self) -> bool {
        self.frame < self.others_confirmed().saturating_add(self.config.window)
    }

    fn others_confirmed(&self) -> u32 {
        let others = indices(self.config.players & !(1 << self.config.me));
        others.map(|player| self.known(player)).min().unwrap_or(u32::MAX - MAX_WINDOW)
    }

    /// The first frame for which a player's input is missing.
    fn known(&self, player: usize) -> u32 {
        if self.left_at[player] == u32::MAX { self.logs[player].next() } else { u32::MAX - MAX_WINDOW }
    }

    pub(super) fn confirm(&mut self) {
        self.confirmed = self.others_confirmed().min(self.logs[usize::from(self.config.me)].next());
    }

    /// Changes the delay of this side's own input, in frames.
    pub fn set_delay(&mut self, delay: u32) {
        self.delay = delay.min(MAX_DELAY);
    }

    // The input delay in frames.
    pub fn delay(&self) -> u32 {
        self.delay
    }

    /// Takes this side's input and returns the requests: corrections first, then the next frame. If the window is full,
    /// no frame runs and the input is not taken.
    pub fn advance(&mut self, now: Instant, input: GameInput<'_>) -> &[Request] {
        self.requests.clear();
        for player in indices(self.others()) {
            let peer = &mut self.peers[player];
            let next = i64::from(self.logs[player].next());
            peer.advantage.measure(i64::from(self.frame) - (next - i64::from(peer.delay)));
        }
        self.report_suspicions(now);
        self.correct();
        if !self.can_advance() {
            self.counters.stalls += 1;
            return &self.requests;
        }
        self.take_own(input);
        self.confirm();
        let frame = self.frame;
        self.run(frame);
        self.frame += 1;
        self.counters.frames += 1;
        &self.requests
    }

    fn correct(&mut self) {
        let first = core::mem::replace(&mut self.incorrect, u32::MAX);
        if first >= self.frame {
            return;
        }
        self.requests.push(Request::Load(first));
        for frame in first..self.frame {
            self.guess(frame);
            if frame > first {
                self.save(frame);
            }
            self.requests.push(Request::Advance(frame));
        }
        let count = u64::from(self.frame - first);
        self.counters.rollbacks += 1;
        self.counters.replayed += count;
        self.counters.max_replayed = self.counters.max_replayed.max(count);
    }

    fn run(&mut self, frame: u32) {
        self.guess(frame);
        self.save(frame);
        self.requests.push(Request::Advance(frame));
    }

    fn guess(&mut self, frame: u32) {
        for player in indices(self.config.players) {
            if self.left_at[player] <= frame {
                self.logs[player].clear(frame);
            } else {
                self.logs[player].guess(frame);
            }
        }
    }

    /// Saves a state unless nobody can load it again and it isn't checked.
    fn save(&mut self, frame: u32) {
        if frame >= self.confirmed || self.history.is_checked(frame) {
            self.requests.push(Request::Save(frame));
            self.counters.saves += 1;
        }
    }

    fn take_own(&mut self, input: GameInput<'_>) {
        let own = &mut self.logs[usize::from(self.config.me)];
        let target = self.frame + self.delay;
        if target < own.next() {
            self.counters.skipped_inputs += 1;
            return;
        }
        while own.next() < target {
            own.push_repeat();
        }
        own.push(input);
    }

    /// Takes a player's next input: a frame that ran on a wrong guess will run again.
    pub(super) fn take(&mut self, player: usize, input: GameInput<'_>) {
        let frame = self.logs[player].next();
        // For a frame that hasn't run, the ring holds an old input.
        let differs = self.logs[player].push(input);
        if differs && frame < self.frame {
            self.incorrect = self.incorrect.min(frame);
        }
    }

    /// A player's input for a frame and its origin: for frames that ran, and for the one that runs.
    pub fn input(&self, player: usize, frame: u32) -> (GameInput<'_>, Status) {
        let log = &self.logs[player];
        let status = if self.left_at[player] <= frame {
            Status::Left
        } else if frame < log.next() {
            Status::Confirmed
        } else {
            Status::Predicted
        };
        (log.get(frame), status)
    }

    /// A player can't be reached any more: the others agree from which frame on it is out.
    pub fn note_left(&mut self, _now: Instant, player: u8) {
        let index = usize::from(player);
        if index >= MAX_PLAYERS || player == self.config.me {
            return;
        }
        self.watchers[index] = None;
        if self.config.players >> index & 1 == 1 {
            self.leaving.gone |= 1 << index;
            self.settle();
        }
    }

    pub(super) fn settle(&mut self) {
        if self.leaving.gone == self.leaving.settled {
            return;
        }
        let agreed = self.leaving.agreed(self.others(), |player| self.logs[player].next());
        for player in indices(agreed) {
            let frame = self.logs[player].next();
            self.leaving.settled |= 1 << player;
            self.left_at[player] = frame;
            if frame < self.frame {
                self.incorrect = self.incorrect.min(frame);
            }
            self.push_event(GameEvent::Left { player: player as u8, frame });
        }
        self.confirm();
    }

    /// The next frame whose saved state is confirmed. The game passes its checksums, field by field, to
    /// [`Rollback::note_check`] after it has carried out a call's requests and before the next call.
    pub fn poll_check(&self) -> Option<u32> {
        let frame = self.history.next()?;
        (frame <= self.confirmed.min(self.incorrect) && frame < self.frame).then_some(frame)
    }

    /// Takes a frame's checksums by field, for [`Rollback::poll_check`], and compares them with those of the others.
    pub fn note_check(&mut self, now: Instant, frame: u32, fields: &[u32]) {
        self.history.note(frame, fields);
        for player in indices(self.others()) {
            for place in 0..self.peers[player].early.len() {
                let early = self.peers[player].early[place];
                if let Some(early) = early.filter(|early| early.frame <= frame) {
                    self.peers[player].early[place] = None;
                    if early.frame == frame {
                        self.compare(now, player, frame, early.sum);
                    }
                }
            }
        }
    }

    /// By how many frames this side is ahead of the player that is furthest behind it.
    pub fn ahead(&self) -> f64 {
        indices(self.others()).map(|player| self.peers[player].advantage.ahead()).fold(0.0, f64::max)
    }

    /// The rate to run at: below the game's rate while this side is ahead of others.
    pub fn pace(&self) -> f64 {
        let rate = f64::from(self.config.rate);
        rate * pace::speed(self.ahead(), rate)
    }

    /// The oldest event not yet taken.
    pub fn poll_event(&mut self) -> Option<GameEvent> {
        self.events.pop_front()
    }

    pub(super) fn push_event(&mut self, event: GameEvent) {
        if self.events.len() == MAX_EVENTS {
            self.counters.lost_events += 1;
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }
}
