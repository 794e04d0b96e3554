//! References from ghosts to ghosts, in one world: which number is whose, what refers to it, and which references lead
//! elsewhere after a tick.
//!
//! A number is drawn for each ghost of a class that something refers to, and comes with its creation. It says nothing: a
//! secret order hides how many ghosts there were. Who is sent a reference is sent its number, whatever else it has.
//!
//! Promises: a number is one ghost's, and never a later one's (of the next four thousand million).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::drawn::drawn_number;
use super::mirror::{GhostEvent, GhostEventKind};
use super::saved::{SavedIdentity, SavedWorld};

/// The number of no ghost.
pub const NO_GHOST: u32 = 0;

/// A reference: the class and row of the ghost that has it, and its property.
pub type Reference = (usize, u32, usize);

/// The properties that are references, by class: each with the classes that it may lead to.
#[derive(Debug, Default)]
pub struct References(pub Vec<Vec<(usize, Box<[bool]>)>>);

impl References {
    /// The mask of the properties of a class that are references.
    pub fn mask(&self, class: usize) -> u64 {
        self.0[class].iter().fold(0, |mask, (property, _)| mask | 1 << property)
    }

    /// Whether a reference may lead to a ghost of another class.
    pub fn allows(&self, (class, property): (usize, usize), other: usize) -> bool {
        let found = self.0[class].iter().find(|(of, _)| *of == property);
        found.is_some_and(|(_, classes)| classes.get(other) == Some(&true))
    }
}

/// The numbers of the ghosts in one world.
#[derive(Debug, Default)]
pub struct Links {
    /// Class and row by number.
    rows: HashMap<u32, (usize, u32)>,
    /// The number that each is known by: its cell may be another's by then.
    numbers: HashMap<(usize, u32), u32>,
    /// On a client: the references that the application hears of, and back.
    held: BTreeMap<Reference, u32>,
    holders: BTreeMap<u32, BTreeSet<Reference>>,
    /// The world's own secret, and how many numbers were drawn by it.
    identity: SavedIdentity,
    /// The numbers of ghosts that came or went, with their classes, since the application was told.
    moved: BTreeMap<u32, usize>,
    /// By class and row: the references whose own ghosts came, or were given others. Those events say so.
    reported: HashMap<(usize, u32), u64>,
}

impl Links {
    /// Those of a world with this identity.
    pub fn new(identity: SavedIdentity) -> Self {
        Links { identity, ..Links::default() }
    }

    /// A number that no ghost has, and none of the last ones had.
    pub fn draw(&mut self) -> u32 {
        loop {
            let SavedIdentity { key, drawn } = self.identity;
            self.identity.drawn = drawn.wrapping_add(1);
            let number = drawn_number(drawn, key);
            if number != NO_GHOST && !self.rows.contains_key(&number) {
                return number;
            }
        }
    }

    /// What its numbers are drawn from.
    pub fn identity(&mut self) -> &mut SavedIdentity {
        &mut self.identity
    }

    /// Notes that a ghost is known by a number.
    pub fn appear(&mut self, at: (usize, u32), number: u32) {
        self.forget(at);
        self.rows.insert(number, at);
        self.numbers.insert(at, number);
    }

    /// Notes that a ghost is known no more.
    pub fn forget(&mut self, at: (usize, u32)) {
        if let Some(number) = self.numbers.remove(&at)
            && self.rows.get(&number) == Some(&at)
        {
            self.rows.remove(&number);
        }
    }

    /// Exactly these ghosts are there.
    pub fn replace(&mut self, ghosts: impl Iterator<Item = ((usize, u32), u32)>) {
        self.rows = ghosts.map(|(at, number)| (number, at)).collect();
    }

    /// The class and row of the ghost with a number.
    pub fn find(&self, number: u32) -> Option<(usize, u32)> {
        self.rows.get(&number).copied().filter(|_| number != NO_GHOST)
    }

    /// Notes a client's event. `number` is the ghost's own, if it has one; `held` says what its references are to, if the
    /// application hears of them.
    pub fn note(
        &mut self,
        references: &References,
        event: &GhostEvent,
        number: Option<u32>,
        held: Option<&dyn Fn(usize) -> u32>,
    ) {
        let at = (usize::from(event.class), event.id);
        let all = references.mask(at.0);
        let mask = match event.kind {
            GhostEventKind::Owned { .. } => return,
            GhostEventKind::Despawned => {
                self.moved.extend(self.numbers.get(&at).map(|number| (*number, at.0)));
                if held.is_some() {
                    self.hold(at, all, &|_| NO_GHOST);
                }
                return;
            }
            GhostEventKind::Spawned => all,
            GhostEventKind::Changed { mask } => mask & all,
        };
        if let Some(number) = number.filter(|number| self.numbers.get(&at) != Some(number)) {
            self.appear(at, number);
            self.moved.insert(number, at.0);
        }
        if let Some(held) = held.filter(|_| mask != 0) {
            self.hold(at, mask, held);
            *self.reported.entry(at).or_default() |= mask;
        }
    }

    /// Notes what the references of a mask are to now.
    fn hold(&mut self, at: (usize, u32), mask: u64, held: &dyn Fn(usize) -> u32) {
        for property in (0..64).filter(|property| mask >> property & 1 == 1) {
            let reference = (at.0, at.1, property);
            if let Some(before) = self.held.remove(&reference)
                && let Some(holders) = self.holders.get_mut(&before)
            {
                holders.remove(&reference);
                if holders.is_empty() {
                    self.holders.remove(&before);
                }
            }
            let number = held(property);
            if number != NO_GHOST {
                self.held.insert(reference, number);
                self.holders.entry(number).or_default().insert(reference);
            }
        }
    }

    /// The references that lead to another ghost than at the last call, or to none, without a word by their own ghosts'
    /// events: in the order of their classes, rows and properties.
    pub fn take_relinked(&mut self, references: &References) -> BTreeSet<Reference> {
        let (moved, reported) = (core::mem::take(&mut self.moved), core::mem::take(&mut self.reported));
        let mut all = BTreeSet::new();
        for (number, other) in moved {
            let holders = self.holders.get(&number).into_iter().flatten();
            all.extend(holders.filter(|(class, row, property)| {
                let is_reported =
                    reported.get(&(*class, *row)).is_some_and(|reported| reported >> property & 1 == 1);
                !is_reported && references.allows((*class, *property), other)
            }));
        }
        all
    }
}

/// A network id that two ghosts of a saved world have, or that is none. `columns` are the properties that hold them, by class.
pub fn repeated_number(saved: &SavedWorld, columns: impl Iterator<Item = Option<usize>>) -> Option<u32> {
    let mut numbers = HashSet::from([NO_GHOST]);
    let held = saved.classes.iter().zip(columns).filter_map(|(class, column)| class.cells.get(column?));
    let mut all = held.flat_map(|cells| cells.as_chunks().0).map(|cell| u32::from_le_bytes(*cell));
    all.find(|number| !numbers.insert(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TANK: usize = 0;
    const CREW: usize = 1;
    /// Property 3 of a tank leads to another tank, property 4 to a crew.
    const TARGET: u64 = 1 << 3;

    fn references() -> References {
        let (tanks, crews) = (Box::from([true, false]), Box::from([false, true]));
        References(vec![vec![(3, tanks), (4, crews)], vec![]])
    }

    fn event(class: usize, id: u32, kind: GhostEventKind) -> GhostEvent {
        GhostEvent { class: class as u16, id, kind }
    }

    #[test]
    fn references_lead_elsewhere_when_ghosts_come_and_go() {
        let (references, mut links) = (references(), Links::default());
        let target = |property| if property == 3 { 77 } else { NO_GHOST };
        links.note(&references, &event(TANK, 0, GhostEventKind::Spawned), Some(11), Some(&target));
        assert!(links.take_relinked(&references).is_empty(), "its own event says so");
        // The crew with the number may not stand there.
        links.note(&references, &event(CREW, 5, GhostEventKind::Spawned), Some(77), None);
        assert!(links.take_relinked(&references).is_empty());
        links.note(&references, &event(TANK, 1, GhostEventKind::Spawned), Some(77), Some(&|_| NO_GHOST));
        assert_eq!(
            (links.take_relinked(&references), links.find(77)),
            ([(TANK, 0, 3)].into(), Some((TANK, 1)))
        );
        links.note(&references, &event(TANK, 1, GhostEventKind::Despawned), None, Some(&target));
        links.forget((TANK, 1));
        assert_eq!((links.take_relinked(&references), links.find(77)), ([(TANK, 0, 3)].into(), None));
        // It is given another target in the tick in which that one comes.
        let changed = GhostEventKind::Changed { mask: TARGET };
        links.note(&references, &event(TANK, 0, changed), Some(11), Some(&|_| 88));
        links.note(&references, &event(TANK, 2, GhostEventKind::Spawned), Some(88), Some(&|_| NO_GHOST));
        assert!(links.take_relinked(&references).is_empty());
        links.note(&references, &event(TANK, 0, GhostEventKind::Despawned), None, Some(&target));
        assert!(links.held.is_empty() && links.holders.is_empty());
    }

    #[test]
    fn a_number_in_use_is_not_drawn_again() {
        let mut links = Links::new(SavedIdentity { key: 7, drawn: 0 });
        let first = links.draw();
        links.appear((TANK, 0), first);
        links.identity().drawn = 0;
        assert_ne!(links.draw(), first);
        assert_eq!((links.identity().drawn, links.find(NO_GHOST)), (2, None));
    }
}
