//! A queue in order of arrival or, for one tick, in the order of scores.
//!
//! Promises: taking by scores gives the order of a full sort, highest first and equals in order of arrival, but only
//! about as many are sorted as are taken. Entries that aren't taken keep their place.

use std::collections::VecDeque;

/// A queue whose order can be overruled.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    /// In order of arrival; None for those taken out of turn.
    entries: VecDeque<Option<T>>,
    pub(super) len: usize,
    /// The places that have scores, see [`rank`]. `ranked[taken..sorted]` is sorted, and precedes everything after
    /// it.
    ranked: Vec<u64>,
    taken: usize,
    sorted: usize,
}

/// How many are sorted at first, at most; later, as many again as were taken.
const FIRST_SORTED: usize = 256;

impl<T> Waiting<T> {
    pub(super) fn new() -> Self {
        Waiting { entries: VecDeque::new(), len: 0, ranked: Vec::new(), taken: 0, sorted: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push(&mut self, entry: T) {
        self.entries.push_back(Some(entry));
        self.len += 1;
    }

    /// The entries in order of arrival.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }

    /// The next entry to take.
    #[inline]
    pub(super) fn front(&mut self) -> Option<&T> {
        if self.ranked.is_empty() {
            return self.entries.front()?.as_ref();
        }
        let place = self.next_place();
        self.entries.get(place)?.as_ref()
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if !self.ranked.is_empty() {
            return self.pop_ranked();
        }
        let entry = self.entries.pop_front().flatten();
        self.len -= usize::from(entry.is_some());
        entry
    }

    fn pop_ranked(&mut self) -> Option<T> {
        let place = self.next_place();
        let entry = self.entries.get_mut(place)?.take()?;
        self.len -= 1;
        if self.ranked.is_empty() {
            self.entries.pop_front();
        } else {
            self.taken += 1;
        }
        Some(entry)
    }

    /// Takes all, in order of arrival.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.forget_scores();
        self.len = 0;
        self.entries.drain(..).flatten()
    }

    /// Takes entries in the order of these scores, one for each, as long as they last and until
    /// [`Waiting::forget_scores`]; later entries follow after them.
    pub(super) fn prioritize(&mut self, scores: &mut &[f32]) {
        self.forget_scores();
        let own = scores.split_off(..self.len.min(scores.len())).unwrap_or_default();
        self.ranked.extend(own.iter().zip(0u32..).map(|(score, place)| rank(*score) | u64::from(place)));
    }

    /// Goes back to the order they came in.
    pub(super) fn forget_scores(&mut self) {
        if self.taken > 0 {
            self.entries.retain(Option::is_some);
        }
        self.ranked.clear();
        (self.taken, self.sorted) = (0, 0);
    }

    fn next_place(&mut self) -> usize {
        if self.taken == self.ranked.len() {
            self.forget_scores();
            return 0;
        }
        if self.taken == self.sorted {
            let mut next = &mut self.ranked[self.sorted..];
            while next.len() > FIRST_SORTED.max(self.taken) {
                let quarter = next.len() / 4;
                (next, ..) = next.select_nth_unstable(quarter);
            }
            next.sort_unstable();
            self.sorted += next.len();
        }
        self.ranked[self.taken] as u32 as usize
    }
}

/// A number whose upper half is smaller for a higher score, in the order of [`f32::total_cmp`], and whose lower half
/// is for the place: single numbers sort several times faster than pairs with a float.
fn rank(score: f32) -> u64 {
    let bits = score.to_bits();
    // Inverts all bits of negative numbers, and the sign of others: then they ascend as integers.
    let ascending = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    u64::from(!ascending) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn waiting(entries: impl IntoIterator<Item = usize>) -> Waiting<usize> {
        let mut waiting = Waiting::new();
        entries.into_iter().for_each(|entry| waiting.push(entry));
        waiting
    }

    fn take(waiting: &mut Waiting<usize>, count: usize) -> Vec<usize> {
        (0..count).map_while(|_| waiting.pop()).collect()
    }

    fn sorted(scores: &[f32]) -> Vec<usize> {
        let mut waiting = waiting(0..scores.len());
        waiting.prioritize(&mut &*scores);
        take(&mut waiting, usize::MAX)
    }

    #[test]
    fn the_highest_score_goes_first_and_equals_stay_as_they_are() {
        let infinite = [f32::INFINITY, f32::NEG_INFINITY];
        assert_eq!(sorted(&[1.0, -2.0, 3.0, 1.0, -0.5, infinite[0], infinite[1]]), [5, 2, 0, 3, 4, 1, 6]);
        let mut rng = Rng::seeded(1);
        for count in [1, 256, 257, 1_000, 5_000] {
            let scores: Vec<f32> = (0..count).map(|_| rng.below(100) as f32 - 50.0).collect();
            let mut expected: Vec<usize> = (0..scores.len()).collect();
            expected.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
            assert_eq!(sorted(&scores), expected);
        }
    }

    #[test]
    fn each_takes_its_own_scores_and_keeps_what_has_none() {
        let mut scores = &[1.0, 2.0, 3.0][..];
        let (mut first, mut second) = (waiting([10, 20]), waiting([30, 40]));
        first.prioritize(&mut scores);
        second.prioritize(&mut scores);
        assert_eq!((take(&mut first, 9), take(&mut second, 9)), (vec![20, 10], vec![30, 40]));
    }

    #[test]
    fn what_is_not_taken_keeps_its_place_and_what_comes_later_is_behind() {
        let mut waiting = waiting(0..6);
        waiting.prioritize(&mut &[0.0, 5.0, 1.0, 4.0, 2.0, 3.0][..]);
        assert_eq!(waiting.front(), Some(&1));
        assert_eq!(take(&mut waiting, 2), [1, 3]);
        waiting.push(6);
        assert_eq!((waiting.len, waiting.iter().copied().collect()), (5, vec![0, 2, 4, 5, 6]));
        waiting.forget_scores();
        assert_eq!(take(&mut waiting, 2), [0, 2]);
        waiting.prioritize(&mut &[0.0, 1.0][..]);
        assert_eq!(take(&mut waiting, 3), [5, 4, 6], "the last has no score");
        assert_eq!((waiting.len, waiting.front()), (0, None));
        waiting.push(7);
        assert_eq!(waiting.drain().collect::<Vec<_>>(), [7]);
        assert!(waiting.is_empty());
    }
}
