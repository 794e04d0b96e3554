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

impl Page {
    #[cold]
    fn new(form: Form) -> Box<Self> {
        Box::new(Page { version: 0, states: States::new(form), bodies: Vec::new(), came: Vec::new() })
    }
}

#[derive(Debug)]
pub(super) struct Pages {
    form: Form,
    made: Vec<Option<Box<Page>>>,
}

impl Pages {
    /// No pages yet, for words of this form.
    pub(super) fn new(form: Form) -> Self {
        Pages { form, made: Vec::new() }
    }

    /// How states are stored.
    #[inline]
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Drops all pages and their states.
    pub(super) fn clear(&mut self) {
        self.made = Vec::new();
    }

    /// The page of an id, if it exists, and the id's place in it.
    #[inline]
    pub(super) fn get(&self, id: usize) -> Option<(&Page, usize)> {
        Some((self.made.get(id / PAGE)?.as_deref()?, id % PAGE))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: usize) -> Option<(&mut Page, usize)> {
        Some((self.made.get_mut(id / PAGE)?.as_deref_mut()?, id % PAGE))
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

    /// What is known of a ghost besides its states; the default if there is no such page.
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
        if self.made.len() <= id / PAGE {
            self.made.resize_with(id / PAGE + 1, || None);
        }
        (self.made[id / PAGE].get_or_insert_with(|| Page::new(self.form)), id % PAGE)
    }
}
