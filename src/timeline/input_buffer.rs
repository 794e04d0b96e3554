//! One client's inputs on the server, by tick.
//!
//! Promises: each input is taken once, and memory is bounded by a ring. Refuses, each under a counter's name, inputs
//! for past ticks, for ticks too far ahead, and for ticks that have one already. A late input is repeated from the next tick on if
//! it is the newest one. Presses in late or skipped inputs run in the next ticks, one of each kind in a tick.

use std::sync::Arc;

use super::presses::Presses;
use crate::store::counters::counters;

/// How many ticks an input may be ahead of the current one, and for how many past ticks the outcome is kept.
pub const MAX_AHEAD: u32 = 128;

/// The outcome of a tick's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputState {
    /// It was there when its tick ran.
    Here,
    /// It came after its tick had run without it.
    Late,
    /// It has not come.
    Missing,
}

/// What a tick without an input gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingPolicy {
    /// The newest input before it, which may be a late one, for at most this many ticks in a row.
    Repeat {
        /// The ticks in a row.
        limit: u32,
    },
    /// No input: the game decides.
    None,
}

counters! {
    /// Outcomes of a client's inputs.
    pub struct InputCounters {
        /// Ticks that had their input.
        here,
        /// Ticks that ran without their input.
        missing,
        /// Of these, ticks that repeated the input before.
        repeated,
        /// Inputs that came after their tick had run without them.
        late,
        /// Inputs that were there already.
        duplicates,
        /// Inputs for ticks too far ahead.
        far_ahead,
        /// Inputs for ticks too long ago to know of.
        far_behind,
        /// Inputs of ticks that were skipped without taking them.
        skipped,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Empty,
    Full,
    Ran(InputState),
}

/// A place of the ring.
#[derive(Clone, Debug)]
struct RingPlace {
    tick: u32,
    slot: Slot,
    input: Vec<u8>,
    view: Option<u64>,
}

/// The input for one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickInput<'a> {
    pub state: InputState,
    /// Its own input, a repetition of the one before, or none.
    pub input: Option<&'a [u8]>,
    /// The tick that the player saw, in 1/256, if the client sent it.
    pub view: Option<u64>,
}

/// One client's inputs, by tick.
#[derive(Debug)]
pub struct InputBuffer {
    /// A ring of twice [`MAX_AHEAD`] places: half for the past, half for the future.
    slots: Vec<RingPlace>,
    policy: MissingPolicy,
    /// The tick that ran last.
    last: u32,
    /// The newest input that was taken or late, its tick, and how many ticks in a row had no input since.
    newest: Vec<u8>,
    newest_tick: u32,
    newest_view: Option<u64>,
    in_a_row: u32,
    /// Some input has come.
    has_begun: bool,
    /// Presses in late or skipped inputs.
    presses: Presses,
    counters: InputCounters,
}

/// Slots of the ring.
const SLOTS: u32 = 2 * MAX_AHEAD;
/// Presses of a kind that wait: an outage saves up no more than that.
const MAX_LATE_PRESSES: u8 = 8;

impl InputBuffer {
    /// A buffer without inputs; `last` is the tick that ran last, `presses` are the offsets of presses in a row.
    pub fn new(last: u32, policy: MissingPolicy, presses: Arc<[usize]>) -> Self {
        InputBuffer {
            slots: vec![
                RingPlace { tick: 0, slot: Slot::Empty, input: Vec::new(), view: None };
                SLOTS as usize
            ],
            policy,
            last,
            newest: Vec::new(),
            newest_tick: 0,
            newest_view: None,
            in_a_row: 0,
            has_begun: false,
            presses: Presses::new(presses, MAX_LATE_PRESSES),
            counters: InputCounters::default(),
        }
    }

    /// Sets what ticks without an input get from now on.
    pub fn set_policy(&mut self, policy: MissingPolicy) {
        self.policy = policy;
    }

    /// Takes an input for a tick, and the tick that the player saw then, in 1/256. Returns true if it is new and in
    /// time.
    pub fn insert(&mut self, tick: u32, input: &[u8], view: Option<u64>) -> bool {
        let ahead = i64::from(tick) - i64::from(self.last);
        if ahead > i64::from(MAX_AHEAD) {
            self.counters.far_ahead += 1;
            return false;
        }
        if ahead <= -i64::from(MAX_AHEAD) {
            self.counters.far_behind += 1;
            return false;
        }
        let place = &mut self.slots[(tick % SLOTS) as usize];
        if place.tick != tick {
            (place.tick, place.slot) = (tick, Slot::Empty);
        }
        match place.slot {
            Slot::Empty if ahead > 0 => {
                (place.slot, place.view) = (Slot::Full, view);
                place.input.clear();
                place.input.extend_from_slice(input);
                true
            }
            // Empty: the tick is from before the buffer began.
            Slot::Ran(InputState::Missing) | Slot::Empty => {
                place.slot = Slot::Ran(InputState::Late);
                self.presses.keep(input);
                self.counters.late += 1;
                self.repeat_late(tick, input, view);
                false
            }
            Slot::Full | Slot::Ran(_) => {
                self.counters.duplicates += 1;
                false
            }
        }
    }

    /// From now on a late input is repeated, if it is the newest one: where all are late, the player still moves.
    fn repeat_late(&mut self, tick: u32, input: &[u8], view: Option<u64>) {
        if self.has_begun && tick <= self.newest_tick {
            return;
        }
        self.newest.clear();
        self.newest.extend_from_slice(input);
        // The first tick that repeats it is the first that runs it.
        self.newest_view = view.map(|view| view.saturating_sub(1 << 8));
        (self.newest_tick, self.has_begun, self.in_a_row) = (tick, true, 0);
    }

    /// Takes a tick's input, once. Ticks must rise; inputs of skipped ticks are dropped.
    pub fn take(&mut self, tick: u32) -> TickInput<'_> {
        debug_assert!(tick > self.last);
        let first = (self.last + 1).max(tick.saturating_sub(SLOTS - 1));
        for passed in first..tick {
            let place = &mut self.slots[(passed % SLOTS) as usize];
            if place.tick == passed && place.slot == Slot::Full {
                place.slot = Slot::Ran(InputState::Here);
                self.presses.keep(&place.input);
                self.counters.skipped += 1;
            }
        }
        self.last = tick;
        let place = &mut self.slots[(tick % SLOTS) as usize];
        if place.tick == tick && place.slot == Slot::Full {
            place.slot = Slot::Ran(InputState::Here);
            core::mem::swap(&mut self.newest, &mut place.input);
            self.presses.release(&mut self.newest);
            (self.newest_tick, self.newest_view) = (tick, place.view);
            (self.has_begun, self.in_a_row) = (true, 0);
            self.counters.here += 1;
            return TickInput { state: InputState::Here, input: Some(&self.newest), view: self.newest_view };
        }
        (place.tick, place.slot) = (tick, Slot::Ran(InputState::Missing));
        let mut taken = TickInput { state: InputState::Missing, input: None, view: None };
        if !self.has_begun {
            return taken;
        }
        self.counters.missing += 1;
        self.in_a_row = self.in_a_row.saturating_add(1);
        if let MissingPolicy::Repeat { limit } = self.policy
            && self.in_a_row <= limit
        {
            self.counters.repeated += 1;
            self.presses.clear(&mut self.newest);
            self.presses.release(&mut self.newest);
            taken.input = Some(&self.newest);
            // The player's view advances with the ticks.
            taken.view = self.newest_view.map(|view| view + (u64::from(self.in_a_row) << 8));
        }
        taken
    }

    /// The outcome of a tick's input, for the last [`MAX_AHEAD`] ticks.
    pub fn state(&self, tick: u32) -> Option<InputState> {
        match &self.slots[(tick % SLOTS) as usize] {
            RingPlace { tick: at, slot: Slot::Ran(state), .. } if *at == tick => Some(*state),
            _ => None,
        }
    }

    /// Whether any input has come: before that, none counts as missing.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The tick that ran last.
    pub fn last(&self) -> u32 {
        self.last
    }

    pub fn counters(&self) -> InputCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn taken(buffer: &mut InputBuffer, tick: u32) -> (InputState, Option<&[u8]>) {
        let TickInput { state, input, .. } = buffer.take(tick);
        (state, input)
    }

    fn buffer() -> InputBuffer {
        InputBuffer::new(10, MissingPolicy::Repeat { limit: 2 }, Arc::new([]))
    }

    #[test]
    fn says_of_each_tick_whether_its_input_is_here_late_or_missing() {
        let mut buffer = buffer();
        assert!(
            buffer.insert(12, b"b", None) && buffer.insert(11, b"a", None) && !buffer.insert(12, b"B", None)
        );
        assert_eq!(taken(&mut buffer, 11), (InputState::Here, Some(&b"a"[..])));
        assert_eq!(taken(&mut buffer, 12), (InputState::Here, Some(&b"b"[..])));
        assert_eq!(taken(&mut buffer, 13), (InputState::Missing, Some(&b"b"[..])));
        assert!(!buffer.insert(13, b"c", None), "it ran");
        assert_eq!(buffer.state(13), Some(InputState::Late));
        assert_eq!(taken(&mut buffer, 14), (InputState::Missing, Some(&b"c"[..])));
        assert_eq!(taken(&mut buffer, 15), (InputState::Missing, Some(&b"c"[..])));
        assert_eq!(taken(&mut buffer, 16), (InputState::Missing, None), "no more than the limit");
        assert!(buffer.insert(17, b"d", None));
        assert_eq!(taken(&mut buffer, 17), (InputState::Here, Some(&b"d"[..])));
        let InputCounters { here, missing, repeated, late, duplicates, .. } = buffer.counters();
        assert_eq!((here, missing, repeated, late, duplicates), (3, 4, 3, 1, 1));
    }

    #[test]
    fn the_far_past_and_the_far_future_are_counted_and_dropped() {
        let mut buffer = buffer();
        assert!(!buffer.insert(10 + MAX_AHEAD + 1, b"x", None) && buffer.insert(10 + MAX_AHEAD, b"y", None));
        assert!(!buffer.insert(u32::MAX, b"x", None) && !buffer.insert(0, b"x", None));
        for tick in 11..10 + MAX_AHEAD {
            buffer.take(tick);
        }
        assert_eq!(taken(&mut buffer, 10 + MAX_AHEAD), (InputState::Here, Some(&b"y"[..])));
        assert!(!buffer.insert(10, b"x", None));
        let InputCounters { far_ahead, far_behind, late, .. } = buffer.counters();
        assert_eq!((far_ahead, far_behind, late), (2, 1, 1));
    }

    #[test]
    fn ticks_passed_over_drop_their_inputs() {
        let mut buffer = buffer();
        buffer.insert(11, b"a", None);
        buffer.insert(12, b"b", None);
        assert_eq!(taken(&mut buffer, 12), (InputState::Here, Some(&b"b"[..])));
        assert_eq!(buffer.counters().skipped, 1);
        // A jump beyond the whole ring.
        buffer.insert(100, b"c", None);
        assert_eq!(taken(&mut buffer, 5_000), (InputState::Missing, Some(&b"b"[..])));
        assert!(buffer.insert(5_001, b"d", None));
    }

    #[test]
    fn nobody_waits_for_who_never_sent() {
        let mut buffer = buffer();
        assert_eq!(taken(&mut buffer, 11), (InputState::Missing, None));
        assert!(!buffer.has_begun() && buffer.counters().missing == 0);
    }

    #[test]
    fn a_press_runs_once_whether_it_is_repeated_late_or_skipped() {
        let mut buffer = InputBuffer::new(10, MissingPolicy::Repeat { limit: 2 }, Arc::new([1]));
        let run = |buffer: &mut InputBuffer, tick| taken(buffer, tick).1.map(<[u8]>::to_vec);
        buffer.insert(11, &[7, 1], None);
        assert_eq!(run(&mut buffer, 11), Some(vec![7, 1]));
        assert_eq!(run(&mut buffer, 12), Some(vec![7, 0]), "repeated without the press");
        buffer.insert(12, &[8, 1], None);
        buffer.insert(12, &[8, 1], None);
        assert_eq!(run(&mut buffer, 13), Some(vec![8, 1]), "the late press");
        buffer.insert(13, &[8, 1], None);
        buffer.insert(14, &[9, 0], None);
        assert_eq!(run(&mut buffer, 14), Some(vec![9, 1]));
        buffer.insert(15, &[9, 1], None);
        buffer.insert(16, &[9, 0], None);
        assert_eq!(run(&mut buffer, 16), Some(vec![9, 1]), "of the tick that was skipped");
        assert_eq!(run(&mut buffer, 17), Some(vec![9, 0]));
        assert_eq!((run(&mut buffer, 18), run(&mut buffer, 19)), (Some(vec![9, 0]), None));
        buffer.insert(19, &[9, 1], None);
        assert_eq!(run(&mut buffer, 20), Some(vec![9, 1]));
        buffer.insert(21, &[9, 0], None);
        assert_eq!(run(&mut buffer, 21), Some(vec![9, 0]));
    }

    #[test]
    fn inputs_that_are_steadily_late_run_late() {
        let mut buffer = InputBuffer::new(0, MissingPolicy::Repeat { limit: 2 }, Arc::new([1]));
        for tick in 1..=100u8 {
            if let Some(late) = tick.checked_sub(3).filter(|late| *late > 0) {
                buffer.insert(late.into(), &[late, late % 2], Some(u64::from(late) << 8));
            }
            let TickInput { state, input, view } = buffer.take(tick.into());
            assert_eq!(state, InputState::Missing);
            if tick > 3 {
                let late = tick - 3;
                assert_eq!((input, view), (Some(&[late, late % 2][..]), Some(u64::from(late) << 8)));
            }
        }
        buffer.insert(96, &[1, 0], None);
        assert_eq!(taken(&mut buffer, 101).1, Some(&[97, 0][..]), "the older one isn't repeated");
    }

    #[test]
    fn late_presses_run_in_ticks_of_their_own() {
        let mut buffer = InputBuffer::new(10, MissingPolicy::Repeat { limit: 4 }, Arc::new([0, 1]));
        let run = |buffer: &mut InputBuffer, tick| taken(buffer, tick).1.map(<[u8]>::to_vec);
        buffer.insert(11, &[0, 0], None);
        for tick in 11..=13 {
            buffer.take(tick);
        }
        // Newest first, as in a packet.
        for _ in 0..2 {
            buffer.insert(13, &[1, 0], None);
            buffer.insert(12, &[1, 1], None);
        }
        assert_eq!(run(&mut buffer, 14), Some(vec![1, 1]));
        buffer.insert(15, &[1, 0], None);
        assert_eq!(run(&mut buffer, 15), Some(vec![1, 0]), "its own press");
        assert_eq!(run(&mut buffer, 16), Some(vec![1, 0]));
        assert_eq!(run(&mut buffer, 17), Some(vec![0, 0]));
        for tick in 18..=60 {
            buffer.take(tick);
        }
        for tick in 20..=59 {
            buffer.insert(tick, &[1, 0], None);
        }
        buffer.insert(61, &[0, 0], None);
        let count = (61..=64).filter(|tick| run(&mut buffer, *tick) == Some(vec![1, 0])).count();
        assert_eq!(count, 4);
        for tick in 65..=90 {
            buffer.insert(tick, &[0, 0], None);
        }
        let count = (65..=90).filter(|tick| run(&mut buffer, *tick) == Some(vec![1, 0])).count();
        assert_eq!(count, 4, "an outage saves up no more");
    }

    #[test]
    fn each_input_is_taken_once_whatever_comes() {
        let mut rng = Rng::seeded(3);
        let mut buffer = InputBuffer::new(0, MissingPolicy::None, Arc::new([]));
        let (mut tick, mut count) = (0, 0);
        for _ in 0..20_000 {
            for _ in 0..rng.next_u64() % 4 {
                let for_tick = (u64::from(tick) + rng.next_u64() % 300).saturating_sub(150) as u32;
                buffer.insert(for_tick, &for_tick.to_le_bytes(), None);
            }
            tick += 1 + u32::from(rng.next_u64().is_multiple_of(50)) * (rng.next_u64() % 400) as u32;
            if let (InputState::Here, Some(input)) = taken(&mut buffer, tick) {
                assert_eq!(input, tick.to_le_bytes());
                count += 1;
            }
        }
        assert_eq!(buffer.counters().here, count);
        assert!(count > 1_000 && buffer.counters().duplicates > 100);
    }
}
