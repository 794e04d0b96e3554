//! A client's data about the ids of one class, in pages.
//!
//! Promises: a page is allocated when one of its ids is first used, and memory for states when one of its ghosts
//! first has some, so that memory follows what arrived and not how high the ids are.

use super::super::form::Form;
use super::super::packet::Base;
use super::states::{Head, PAGE, States};

/// The data of a page's ids.
#[derive(Debug)]
pub(super) struct Page {
    /// Changes whenever history does: a state between others, or an end.
    pub(super) version: u32,
    /// By the id's place in the page.
    pub(super) states: States,
    /// Bodies of properties without words, by place and then by property. None before the first create.
    pub(super) bodies: Vec<Box<[u8]>>,
    /// By place: the tick of the create that the ghost came with. None before the first create.
    pub(super) came: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Pages {
    form: Form,
    /// By page: 1 more than its index; 0 if it doesn't exist. Two bytes each, as a packet may name the highest id of each class.
    places: Vec<u16>,
    #[expect(
        clippy::vec_box,
        reason = "another page is made without moving those there are, or room for more"
    )]
    made: Vec<Box<Page>>,
}

impl Pages {
    /// No pages yet, for words of this form.
    pub(super) fn new(form: Form) -> Self {
        Pages { form, places: Vec::new(), made: Vec::new() }
    }

    /// How states are stored.
    #[inline]
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Drops all pages and their states.
    pub(super) fn clear(&mut self) {
        (self.places, self.made) = (Vec::new(), Vec::new());
    }

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

    /// The state that an update of a plain class of this tick is against, and the one before it where the base has one: a server that
    /// names these knows that they are there.
    #[inline]
    pub(super) fn states_of(&self, id: usize, tick: u32, base: Base) -> Option<(&[u32], Option<&[u32]>)> {
        let (Page { states, .. }, at) =
            self.get(id).filter(|(page, at)| page.states.may_change(*at, tick))?;
        match base {
            // No more than one older state is used.
            Base::Newest { depth } => {
                let mut before = states.before(at, tick);
                Some((before.next()?, if depth > 0 { Some(before.next()?) } else { None }))
            }
            Base::Named { baseline, older: 0 } => Some((states.at(at, baseline)?, None)),
            Base::Named { baseline, older } => Some((states.at(at, baseline)?, Some(states.at(at, older)?))),
            Base::UpTo { .. } => None,
        }
    }

    /// A ghost's data besides its states; the default if there is no such page.
    pub(super) fn head(&self, id: usize) -> Head {
        self.get(id).map(|(page, at)| page.states.heads[at]).unwrap_or_default()
    }

    /// Has what is known of a ghost fetched.
    #[inline]
    pub(super) fn fetch(&self, id: usize) {
        if let Some((page, at)) = self.get(id) {
            page.states.fetch(at);
        }
    }

    /// Like [`Pages::get_mut`], for an id below a class's capacity: allocates the page if necessary.
    #[inline]
    pub(super) fn make(&mut self, id: usize) -> (&mut Page, usize) {
        if self.places.get(id / PAGE).is_none_or(|place| *place == 0) {
            self.make_page(id / PAGE);
        }
        let place = usize::from(self.places[id / PAGE]) - 1;
        (&mut self.made[place], id % PAGE)
    }

    #[cold]
    fn make_page(&mut self, page: usize) {
        if self.places.len() <= page {
            self.places.resize(page + 1, 0);
        }
        let empty = Page { version: 0, states: States::new(self.form), bodies: Vec::new(), came: Vec::new() };
        self.made.push(Box::new(empty));
        // Capacities are at most 2^16, which is 1,024 pages.
        self.places[page] = self.made.len() as u16;
    }
}
