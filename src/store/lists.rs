//! Many short lists in one block of memory: a removed entry makes room for a new one of any list.
//!
//! Promises: memory for the maximum of simultaneous entries, and no allocation below it.

use super::prefetch;

/// Marks the absence of an entry.
const END: u32 = u32::MAX;

/// Entries of all lists of a connection that has little in flight.
const PREFETCHED: usize = 8;

/// One list of a [`Lists`]. Dropping it with entries in it leaks their memory: see [`Lists::clear`].
#[derive(Debug)]
pub struct List {
    last: u32,
}

impl Default for List {
    fn default() -> Self {
        List { last: END }
    }
}

impl List {
    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.last == END
    }
}

/// The memory of many lists.
#[derive(Debug)]
pub struct Lists<T> {
    /// Each with its successor: in its list, where the last is followed by the first, or among the free ones.
    entries: Vec<(T, u32)>,
    free: u32,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Lists { entries: Vec::new(), free: END }
    }
}

impl<T: Copy> Lists<T> {
    /// Appends an entry to a list.
    pub fn push(&mut self, list: &mut List, entry: T) {
        let at = match self.entries.get_mut(self.free as usize) {
            Some(free) => {
                let at = self.free;
                (free.0, self.free) = (entry, free.1);
                at
            }
            None => {
                self.entries.push((entry, END));
                // The number of listed things is bounded far below.
                (self.entries.len() - 1) as u32
            }
        };
        let last = self.entries.get_mut(list.last as usize);
        let first = last.map_or(at, |last| core::mem::replace(&mut last.1, at));
        self.entries[at as usize].1 = first;
        list.last = at;
    }

    /// The entries of a list, in order.
    pub fn iter(&self, list: &List) -> impl Iterator<Item = T> {
        let last = list.last;
        let mut before = self.entries.get(last as usize);
        core::iter::from_fn(move || {
            let (_, at) = *before?;
            let entry = self.entries.get(at as usize)?;
            before = (at != last).then_some(entry);
            Some(entry.0)
        })
    }

    /// Has the entries fetched, if they are few.
    pub(crate) fn prefetch(&self) {
        prefetch(&self.entries[..self.entries.len().min(PREFETCHED)]);
    }

    /// Frees the entries of a list.
    pub fn clear(&mut self, list: List) {
        if let Some(last) = self.entries.get_mut(list.last as usize) {
            self.free = core::mem::replace(&mut last.1, self.free);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn lists_keep_their_entries_apart_and_in_order() {
        let (mut rng, mut lists) = (Rng::seeded(1), Lists::default());
        let mut kept: Vec<(List, Vec<u64>)> = Vec::new();
        for n in 0..20_000 {
            match rng.below(4) {
                0 if kept.len() < 20 => kept.push((List::default(), Vec::new())),
                1 if !kept.is_empty() => {
                    let (list, expected) = kept.swap_remove(rng.below(kept.len() as u64) as usize);
                    assert_eq!(list.is_empty(), expected.is_empty());
                    assert_eq!(lists.iter(&list).collect::<Vec<_>>(), expected);
                    lists.clear(list);
                }
                _ if !kept.is_empty() => {
                    let at = rng.below(kept.len() as u64) as usize;
                    let (list, expected) = &mut kept[at];
                    lists.push(list, n);
                    expected.push(n);
                }
                _ => {}
            }
        }
        let most = kept.iter().map(|(_, expected)| expected.len()).sum::<usize>();
        assert!(lists.entries.len() < most + 400, "{} entries", lists.entries.len());
    }
}
