//! When which of many slots is due next: a tree of minima, eight to a node, so that a node is a line of the processor's
//! cache.
//!
//! Promises: a slot is due at its time at the latest. A time that is put off stays as it was, so that putting off costs
//! nothing: a slot may be due early, and the owner, who knows its time, sets it again. Finding what is due costs some
//! lines for each slot found, however many there are.

use crate::time::Instant;

/// Children of a node.
const CHILDREN: usize = 8;

/// The times of slots.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// First the times by slot, NEVER for those without one; then on each level the minima of the one before. The last
    /// has one node.
    levels: Vec<Vec<Instant>>,
}

impl Timers {
    /// The slot is due at this time, or earlier if that was set before.
    pub(crate) fn set(&mut self, slot: usize, at: Instant) {
        if self.levels.first().is_none_or(|times| times.len() <= slot) {
            self.grow(slot + 1);
        }
        let mut index = slot;
        for level in &mut self.levels {
            match level.get_mut(index) {
                Some(time) if at < *time => *time = at,
                _ => break,
            }
            index /= CHILDREN;
        }
    }

    #[cold]
    fn grow(&mut self, slots: usize) {
        let mut level = self.levels.drain(..).next().unwrap_or_default();
        // All is built anew: by doubling, so that many slots that come one by one cost no more than twice that.
        level.resize(slots.next_power_of_two().max(CHILDREN), Instant::NEVER);
        while level.len() > CHILDREN {
            let mut above: Vec<Instant> = level.chunks(CHILDREN).map(first_of).collect();
            above.resize(above.len().next_multiple_of(CHILDREN), Instant::NEVER);
            self.levels.push(level);
            level = above;
        }
        self.levels.push(level);
    }

    /// The slot isn't due any more.
    pub(crate) fn clear(&mut self, slot: usize) {
        let Some(time) = self.levels.first_mut().and_then(|times| times.get_mut(slot)) else { return };
        *time = Instant::NEVER;
        let mut index = slot / CHILDREN;
        for at in 1..self.levels.len() {
            let (below, level) = self.levels.split_at_mut(at);
            let first = first_of(&below[at - 1][index * CHILDREN..(index + 1) * CHILDREN]);
            if core::mem::replace(&mut level[0][index], first) == first {
                break;
            }
            index /= CHILDREN;
        }
    }

    /// Appends the slots that may be due by now, in rising order. They have no time afterwards.
    pub(crate) fn take_due(&mut self, now: Instant, due: &mut Vec<usize>) {
        if self.next() <= now {
            take_due(&mut self.levels, 0, now, due);
        }
    }

    /// When the first slot may be due.
    pub(crate) fn next(&self) -> Instant {
        self.levels.last().map_or(Instant::NEVER, |top| first_of(top))
    }

    /// The slot that may be due first, and when.
    pub(crate) fn first(&self) -> Option<(Instant, usize)> {
        let first = self.next();
        let mut node = 0;
        for level in self.levels.iter().rev() {
            let children = level.get(node * CHILDREN..(node + 1) * CHILDREN)?;
            node = node * CHILDREN + children.iter().position(|time| *time == first)?;
        }
        (first < Instant::NEVER).then_some((first, node))
    }
}

fn first_of(times: &[Instant]) -> Instant {
    times.iter().copied().fold(Instant::NEVER, Instant::min)
}

/// Takes what is due of one node of the last level, and returns the first time that is left.
fn take_due(levels: &mut [Vec<Instant>], node: usize, now: Instant, due: &mut Vec<usize>) -> Instant {
    let Some((level, below)) = levels.split_last_mut() else { return Instant::NEVER };
    let mut first = Instant::NEVER;
    for (time, index) in level[node * CHILDREN..][..CHILDREN].iter_mut().zip(node * CHILDREN..) {
        if *time <= now {
            *time = if below.is_empty() {
                due.push(index);
                Instant::NEVER
            } else {
                take_due(below, index, now, due)
            };
        }
        first = first.min(*time);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn each_slot_comes_by_its_time_and_in_order() {
        for slots in [1, 8, 9, 600] {
            let (mut rng, mut timers) = (Rng::seeded(slots), Timers::default());
            let mut times = vec![Instant::NEVER; slots as usize];
            let mut due = Vec::new();
            for millis in 0..5_000 {
                let now = Instant::from_millis(millis);
                for _ in 0..rng.below(20) {
                    let slot = rng.below(slots) as usize;
                    if rng.chance(0.1) {
                        times[slot] = Instant::NEVER;
                        timers.clear(slot);
                    } else {
                        times[slot] = Instant::from_millis(millis + rng.below(200));
                        timers.set(slot, times[slot]);
                    }
                }
                let first = times.iter().copied().min().unwrap();
                assert!(
                    timers.next() <= first
                        && timers.first().map_or(Instant::NEVER, |it| it.0) == timers.next()
                );
                due.clear();
                timers.take_due(now, &mut due);
                assert!(due.is_sorted() && timers.next() > now);
                for &slot in &due {
                    if times[slot] <= now {
                        times[slot] = Instant::NEVER;
                    } else {
                        timers.set(slot, times[slot]);
                    }
                }
                assert!(times.iter().all(|time| *time > now), "none is late");
            }
        }
    }

    #[test]
    fn without_putting_off_the_first_is_exact() {
        let (mut rng, mut timers) = (Rng::seeded(3), Timers::default());
        let mut times = [Instant::NEVER; 100];
        for _ in 0..5_000 {
            let slot = rng.below(100) as usize;
            times[slot] = Instant::from_millis(rng.below(1_000));
            timers.clear(slot);
            timers.set(slot, times[slot]);
            let (at, first) = timers.first().unwrap();
            assert!(times[first] == at && times.iter().all(|time| *time >= at));
        }
    }
}
