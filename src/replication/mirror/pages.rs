//! A client's data about the ids of one class, in pages.
//!
//! Promises: a page is allocated when one of its ids is first used, and memory for states when one of its ghosts
//! first has some, so that memory follows what arrived and not how high the ids are.

use super::states::States;

/// Ids of a page.
pub(super) const PAGE: usize = 64;

/// The data of a page's ids. Except for the states, by the id's place in the page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) flags: [u8; PAGE],
    /// The tick of each id's last destroy. One may come before the create that it ends.
    pub(super) destroyed: [u32; PAGE],
    /// Changes whenever history does: a state between others, or an end.
    pub(super) version: u32,
    /// Properties that the game has not seen.
    pub(super) dirty: [u64; PAGE],
    /// None before the first create.
    pub(super) states: Option<Box<States>>,
    /// Bodies of properties without words, by place and then by property. None before the first create.
    pub(super) bodies: Vec<Box<[u8]>>,
}

impl Page {
    fn new() -> Self {
        Page {
            flags: [0; PAGE],
            destroyed: [0; PAGE],
            version: 0,
            dirty: [0; PAGE],
            states: None,
            bodies: Vec::new(),
        }
    }

    /// The tick of a ghost's newest state, or 0.
    #[inline]
    pub(super) fn tick(&self, at: usize) -> u32 {
        self.states.as_ref().map_or(0, |states| states.tick(at))
    }

    /// Gives the newest words, zeros if there are none.
    #[inline]
    pub(super) fn newest(&self, at: usize, words: &mut [u64]) {
        match &self.states {
            Some(states) => states.newest(at, words),
            None => words.fill(0),
        }
    }

    /// Gives the words that a ghost had at exactly this tick; false when there are none.
    #[inline]
    pub(super) fn at(&self, at: usize, tick: u32, words: &mut [u64]) -> bool {
        self.states.as_ref().is_some_and(|states| states.at(at, tick, words))
    }

    /// Gives the words of the newest state before this tick, or this many before it; false when there are none.
    #[inline]
    pub(super) fn before(&self, at: usize, tick: u32, back: u8, words: &mut [u64]) -> bool {
        self.states.as_ref().is_some_and(|states| states.before(at, tick, back, words))
    }
}

#[derive(Debug, Default)]
pub(super) struct Pages {
    /// By page: 1 more than its index; 0 if it doesn't exist.
    places: Vec<u16>,
    #[expect(
        clippy::vec_box,
        reason = "another page is made without moving those there are, or room for more"
    )]
    made: Vec<Box<Page>>,
}

impl Pages {
    /// The page of an id, if it exists, and the id's place in it.
    #[inline]
    pub(super) fn get(&self, id: usize) -> Option<(&Page, usize)> {
        let place = usize::from(*self.places.get(id / PAGE)?);
        Some((self.made.get(place.wrapping_sub(1))?, id % PAGE))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: usize) -> Option<(&mut Page, usize)> {
        let place = usize::from(*self.places.get(id / PAGE)?);
        Some((self.made.get_mut(place.wrapping_sub(1))?, id % PAGE))
    }

    /// Like [`Pages::get_mut`], for an id below a class's capacity: allocates the page if necessary.
    pub(super) fn make(&mut self, id: usize) -> (&mut Page, usize) {
        let page = id / PAGE;
        if self.places.len() <= page {
            self.places.resize(page + 1, 0);
        }
        if self.places[page] == 0 {
            self.made.push(Box::new(Page::new()));
            // Capacities are at most 2^16, which is 1,024 pages.
            self.places[page] = self.made.len() as u16;
        }
        let place = usize::from(self.places[page]) - 1;
        (&mut self.made[place], id % PAGE)
    }
}
