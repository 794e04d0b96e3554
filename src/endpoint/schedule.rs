//! The schedule of the peers: it knows which of them have something to do or to report. Kept apart from the peers,
//! which are far from the processor's cache when there are many and most are idle.
//!
//! Promises: only peers that changed, or whose time has come, are visited, by slot in rising order. A peer that was
//! visited isn't visited again before it changes or its time comes.

use crate::store::{Timers, ones};
use crate::time::Instant;

/// When packets are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Once a tick, messages included.
    Tick,
    /// Whatever needn't wait for the tick.
    Between,
}

/// A kind of data that waits in a connection for the application.
#[derive(Clone, Copy)]
pub(super) enum News {
    Messages = 1,
    Notifications = 2,
    Chunks = 4,
}

/// All kinds of [`News`].
const ALL_NEWS: u8 = 7;

/// How many slots have their marks in a word.
const SLOTS: usize = u64::BITS as usize;

/// Marks of 64 slots, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// Something is due, or may be: when must be recomputed. By [`Pace`].
    due: [u64; 2],
    /// Some [`News`] may wait.
    news: u64,
}

/// What a visit found out about a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    /// When it has something to do again at this pace; ZERO for at once.
    pub(super) next: Instant,
    /// The kinds of [`News`] that wait.
    pub(super) news: u8,
    /// When it has something to do at the other pace, as of this visit; ZERO if that must be recomputed. None: as before.
    pub(super) other: Option<Instant>,
}

/// By slot, what is known of a peer; nothing of one that isn't there.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    marks: Vec<Marks>,
    /// The kinds of [`News`] that may wait, one bit each: others needn't be checked.
    news: Vec<u8>,
    paces: [Deadlines; 2],
}

/// When each peer has something to do at one pace.
#[derive(Debug, Default)]
struct Deadlines {
    /// By slot; out of date while it is marked as due.
    at: Vec<Instant>,
    timers: Timers,
    /// Memory for those whose time has come.
    due: Vec<usize>,
}

impl Schedule {
    /// A peer is new, or sent or received something: anything may be due and wait.
    pub(super) fn mark(&mut self, slot: usize) {
        if slot / SLOTS >= self.marks.len() {
            self.grow(slot);
        }
        let (marks, bit) = (&mut self.marks[slot / SLOTS], 1 << (slot % SLOTS));
        *marks = Marks { due: marks.due.map(|due| due | bit), news: marks.news | bit };
        self.news[slot] = ALL_NEWS;
    }

    #[cold]
    fn grow(&mut self, slot: usize) {
        let words = slot / SLOTS + 1;
        self.marks.resize(words, Marks::default());
        self.news.resize(words * SLOTS, 0);
        self.paces.iter_mut().for_each(|pace| pace.at.resize(words * SLOTS, Instant::NEVER));
    }

    /// A peer is gone.
    pub(super) fn forget(&mut self, slot: usize) {
        let Some(marks) = self.marks.get_mut(slot / SLOTS) else { return };
        let others = !(1 << (slot % SLOTS));
        *marks = Marks { due: marks.due.map(|due| due & others), news: marks.news & others };
        self.news[slot] = 0;
        for pace in &mut self.paces {
            pace.at[slot] = Instant::NEVER;
            pace.timers.clear(slot);
        }
    }

    /// Exactly these kinds of [`News`] wait in this peer.
    pub(super) fn set_news(&mut self, slot: usize, news: u8) {
        let (Some(marks), Some(known)) = (self.marks.get_mut(slot / SLOTS), self.news.get_mut(slot)) else {
            return;
        };
        let bit = 1 << (slot % SLOTS);
        *known = news;
        marks.news = if news == 0 { marks.news & !bit } else { marks.news | bit };
    }

    /// When the first peer has something to do between ticks, or earlier; ZERO if that must be recomputed.
    pub(super) fn next_deadline(&self) -> Instant {
        let is_marked = self.marks.iter().any(|marks| marks.due[Pace::Between as usize] != 0);
        if is_marked { Instant::ZERO } else { self.paces[Pace::Between as usize].timers.next() }
    }

    /// Calls this for each peer that has something to do now, with the next two of its 64, whose memory it may fetch.
    pub(super) fn visit_due(
        &mut self,
        now: Instant,
        pace: Pace,
        mut visit: impl FnMut(usize, [Option<usize>; 2]) -> Option<Visit>,
    ) {
        let (this, other) = (pace as usize, 1 - pace as usize);
        self.mark_late(now, this);
        for word in 0..self.marks.len() {
            let due = core::mem::take(&mut self.marks[word].due[this]);
            let slot_of = |bit| word * SLOTS + bit;
            let (mut ahead, mut later) = (ones(due).skip(1).map(slot_of), ones(due).skip(2).map(slot_of));
            for bit in ones(due) {
                let slot = slot_of(bit);
                let Some(visited) = visit(slot, [ahead.next(), later.next()]) else { continue };
                self.set_news(slot, visited.news);
                self.put(this, slot, visited.next);
                // Unless it changed: otherwise the two paces, taking turns, would visit everybody each time.
                if let Some(at) = visited.other.or((visited.next == Instant::ZERO).then_some(Instant::ZERO)) {
                    self.put(other, slot, at);
                }
            }
        }
        if pace == Pace::Between {
            self.settle();
        }
    }

    /// Sets when a peer has something to do at a pace; ZERO marks it.
    fn put(&mut self, pace: usize, slot: usize, at: Instant) {
        let (due, bit) = (&mut self.marks[slot / SLOTS].due[pace], 1 << (slot % SLOTS));
        if at == Instant::ZERO {
            *due |= bit;
        } else {
            *due &= !bit;
            self.paces[pace].at[slot] = at;
            self.paces[pace].timers.set(slot, at);
        }
    }

    /// Marks the peers whose time has come.
    fn mark_late(&mut self, now: Instant, pace: usize) {
        let Deadlines { at, timers, due } = &mut self.paces[pace];
        timers.take_due(now, due);
        for slot in due.drain(..) {
            if at[slot] <= now {
                self.marks[slot / SLOTS].due[pace] |= 1 << (slot % SLOTS);
            } else {
                timers.set(slot, at[slot]);
            }
        }
    }

    /// Finds when the first peer is really due, if times were put off since.
    fn settle(&mut self) {
        let Deadlines { at, timers, .. } = &mut self.paces[Pace::Between as usize];
        while let Some((early, slot)) = timers.first()
            && at[slot] > early
        {
            timers.clear(slot);
            timers.set(slot, at[slot]);
        }
    }

    /// Calls this for each peer in which news of this kind may wait: it returns whether more may be left, or None if
    /// it didn't look. A peer isn't visited again until it changes, unless it did not look or more may be left.
    pub(super) fn visit_news(&mut self, kind: News, mut visit: impl FnMut(usize) -> Option<bool>) {
        let kind = kind as u8;
        for word in 0..self.marks.len() {
            for bit in ones(self.marks[word].news) {
                let slot = word * SLOTS + bit;
                let known = self.news[slot];
                if known & kind != 0 && visit(slot) == Some(false) {
                    self.set_news(slot, known & !kind);
                }
            }
        }
    }

    /// The peers in which any [`News`] may wait.
    pub(super) fn with_news(&self) -> impl Iterator<Item = usize> {
        let words = self.marks.iter().enumerate();
        words.flat_map(|(word, marks)| ones(marks.news).map(move |bit| word * SLOTS + bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// What is visited, against a walk over all peers.
    #[test]
    fn whoever_is_due_is_visited_once_and_in_order() {
        const PEERS: usize = 300;
        let (mut rng, mut schedule) = (Rng::seeded(7), Schedule::default());
        let mut expected = [[Instant::NEVER; 2]; PEERS];
        let mut visits = 0;
        for millis in 0..5_000 {
            let now = Instant::from_millis(millis);
            for _ in 0..rng.below(6) {
                let slot = rng.below(PEERS as u64) as usize;
                if rng.chance(0.1) {
                    schedule.forget(slot);
                    expected[slot] = [Instant::NEVER; 2];
                } else {
                    schedule.mark(slot);
                    expected[slot] = [Instant::ZERO; 2];
                }
            }
            let pace = if rng.chance(0.3) { Pace::Tick } else { Pace::Between };
            let due: Vec<usize> = (0..PEERS).filter(|slot| expected[*slot][pace as usize] <= now).collect();
            let mut visited = Vec::new();
            schedule.visit_due(now, pace, |slot, _| {
                visited.push(slot);
                let waits = if rng.chance(0.2) { 0 } else { millis + 1 + rng.below(150) };
                let next = Instant::from_millis(waits);
                let later = Instant::from_millis(millis + 1 + rng.below(150));
                let other = rng.chance(0.5).then(|| if rng.chance(0.5) { Instant::ZERO } else { later });
                if waits == 0 {
                    expected[slot] = [Instant::ZERO; 2];
                }
                expected[slot][pace as usize] = next;
                if let Some(other) = other {
                    expected[slot][1 - pace as usize] = other;
                }
                Some(Visit { next, news: 0, other })
            });
            assert_eq!(visited, due, "{pace:?} at {millis}");
            visits += visited.len();
            let next = expected.iter().map(|times| times[Pace::Between as usize]).min();
            if pace == Pace::Between {
                assert_eq!(Some(schedule.next_deadline()), next, "at {millis}");
            } else {
                assert!(Some(schedule.next_deadline()) <= next, "at {millis}");
            }
        }
        assert!(visits > 10_000);
    }

    #[test]
    fn news_wait_until_they_are_taken() {
        let mut schedule = Schedule::default();
        [3, 64, 200].into_iter().for_each(|slot| schedule.mark(slot));
        schedule.set_news(64, News::Messages as u8);
        schedule.forget(200);
        let mut look = |kind, left: Option<bool>| {
            let mut visited = Vec::new();
            schedule.visit_news(kind, |slot| {
                visited.push(slot);
                left
            });
            (visited, schedule.with_news().collect::<Vec<_>>())
        };
        assert_eq!(look(News::Messages, None), (vec![3, 64], vec![3, 64]));
        assert_eq!(look(News::Messages, Some(true)), (vec![3, 64], vec![3, 64]));
        assert_eq!(look(News::Messages, Some(false)), (vec![3, 64], vec![3]));
        assert_eq!(look(News::Messages, Some(false)), (vec![], vec![3]), "nothing has come since");
        assert_eq!(look(News::Chunks, Some(false)), (vec![3], vec![3]));
    }
}
