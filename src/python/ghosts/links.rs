//! References from ghosts to ghosts: numbers in columns, and objects for the game.
//!
//! A number is drawn for each ghost of a class that something refers to, and comes with its creation. It says nothing: a secret
//! order hides how many ghosts there were. Who is sent a reference is sent its number, whatever else it has.
//!
//! Promises: a number is one ghost's, and never a later one's (of the next four thousand million). What a peer or a column has in
//! place of one is of no ghost, or of one that may stand there.

use std::collections::{BTreeMap, BTreeSet};

use crate::python::prelude::*;

use super::ghost::{Ghost, Live};
use super::properties::Properties;
use super::rows::GhostRows;
use crate::python::errors::{FieldTypeError, GhostError};
use crate::replication::{SavedIdentity, drawn_number};

/// What a column has where a reference is of nothing.
pub(super) const NOTHING: u32 = 0;

/// A property that is a reference, and which of the protocol's classes may stand there.
#[derive(Debug)]
struct RefTarget {
    property: usize,
    classes: Box<[bool]>,
}

/// The references of a protocol's classes, by class.
#[derive(Debug, Default)]
pub(in crate::python) struct References(Vec<Vec<RefTarget>>);

impl References {
    /// Finds what the references of these classes are of; those classes get numbers.
    ///
    /// # Errors
    /// Naming a reference to none of them.
    pub(in crate::python) fn resolve(
        py: Python<'_>,
        ghosts: &mut [(Py<PyType>, Py<Properties>)],
    ) -> PyResult<Arc<Self>> {
        let (mut all, mut numbered) = (Vec::new(), vec![false; ghosts.len()]);
        for (_, properties) in ghosts.iter() {
            let properties = properties.get();
            let mut targets = Vec::new();
            for property in (0..properties.len()).filter(|property| properties.reference(*property).is_some())
            {
                let wanted = properties.reference(property).map(|wanted| wanted.bind(py));
                let Some(wanted) = wanted else { continue };
                let fits = |(class, _): &(Py<PyType>, Py<Properties>)| fits(class.bind(py), wanted);
                let classes: Box<[bool]> = ghosts.iter().map(fits).collect::<PyResult<_>>()?;
                if !classes.contains(&true) {
                    let names: Vec<&str> = ghosts.iter().map(|(_, of)| of.get().name()).collect();
                    return Err(PyTypeError::new_err(format!(
                        "{}.{}: tw.Ref must name one of the protocol's ghosts ({}), not {}",
                        properties.name(),
                        properties.property_name(property),
                        names.join(", "),
                        shown(wanted)
                    )));
                }
                numbered.iter_mut().zip(&classes).for_each(|(numbered, fits)| *numbered |= fits);
                targets.push(RefTarget { property, classes });
            }
            all.push(targets);
        }
        for ((_, properties), _) in ghosts.iter_mut().zip(numbered).filter(|(_, numbered)| *numbered) {
            *properties = Py::new(py, properties.get().numbered(py)?)?;
        }
        Ok(Arc::new(References(all)))
    }

    /// The mask of the properties of a class that are references.
    fn mask(&self, class: usize) -> u64 {
        self.0[class].iter().fold(0, |mask, target| mask | 1 << target.property)
    }

    fn allows(&self, (class, property): (usize, usize), other: usize) -> bool {
        let target = self.0[class].iter().find(|target| target.property == property);
        target.is_some_and(|target| target.classes.get(other) == Some(&true))
    }
}

/// Whether a class is one that a reference is of: itself or derived from it, by type or by name.
fn fits(class: &Bound<'_, PyType>, wanted: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(name) = wanted.cast::<PyString>() {
        // A game may call a class Ghost, as the library calls the base of all of them.
        let common = class.py().get_type::<Ghost>();
        for base in class.mro() {
            if !base.is(&common) && base.cast::<PyType>()?.name()?.as_any().eq(name)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    class.is_subclass(wanted)
}

/// What a reference is of, for sentences.
pub(super) fn shown(wanted: &Bound<'_, PyAny>) -> String {
    let name = match wanted.cast::<PyType>() {
        Ok(class) if class.is(class.py().get_type::<Ghost>()) => return "ghost".into(),
        Ok(class) => class.name(),
        Err(_) => wanted.str(),
    };
    name.map_or_else(|_| "ghost".into(), |name| name.to_string())
}

/// A reference: class, row and property.
type RefHolder = (usize, u32, usize);

/// What the game is told: a reference whose ghost came after it, or went before it.
pub(super) struct Relinked {
    pub(super) class: usize,
    pub(super) row: u32,
    pub(super) property: usize,
}

#[derive(Default)]
struct Numbered {
    /// Class and row by number.
    rows: HashMap<u32, (usize, u32)>,
    /// The number that each is known by: its cell may be another's by then.
    numbers: HashMap<(usize, u32), u32>,
    /// On a client: the references of classes that come as objects, and back.
    held: BTreeMap<RefHolder, u32>,
    holders: BTreeMap<u32, BTreeSet<RefHolder>>,
    /// The world's own secret, and how many numbers were drawn by it.
    identity: SavedIdentity,
    /// Of a view: rows were shown since these were found.
    stale: bool,
}

/// The numbers of the ghosts in one world.
pub(super) struct Links {
    references: Arc<References>,
    classes: OnceLock<Box<[Weak<GhostRows>]>>,
    /// Of a view: the links of the world that it shows.
    world: Option<Arc<Links>>,
    known: Mutex<Numbered>,
}

impl Links {
    pub(super) fn new(references: &Arc<References>, key: u64) -> Arc<Self> {
        let identity = SavedIdentity { key, drawn: 0 };
        let known = Mutex::new(Numbered { identity, ..Numbered::default() });
        Arc::new(Links { references: references.clone(), classes: OnceLock::new(), world: None, known })
    }

    /// Those of a view of this world.
    pub(super) fn of_view(world: &Arc<Links>) -> Arc<Self> {
        Arc::new(Links {
            references: world.references.clone(),
            classes: OnceLock::new(),
            world: Some(world.clone()),
            known: Mutex::default(),
        })
    }

    /// Says where the ghosts are, once.
    pub(super) fn set_classes(&self, classes: &[Arc<GhostRows>]) {
        let _ = self.classes.set(classes.iter().map(Arc::downgrade).collect());
    }

    fn class(&self, class: usize) -> Option<Arc<GhostRows>> {
        self.classes.get()?.get(class)?.upgrade()
    }

    // --- numbers -----------------------------------------------------------------------------------------

    /// A number that no ghost has, and none of the last ones had.
    pub(super) fn draw(&self) -> u32 {
        let mut known = lock(&self.known);
        loop {
            let SavedIdentity { key, drawn } = known.identity;
            known.identity.drawn = drawn.wrapping_add(1);
            let number = drawn_number(drawn, key);
            if number != NOTHING && !known.rows.contains_key(&number) {
                return number;
            }
        }
    }

    /// What its numbers are drawn from.
    pub(super) fn identity(&self) -> SavedIdentity {
        lock(&self.known).identity
    }

    /// Goes on drawing where another world stopped.
    pub(super) fn set_identity(&self, identity: SavedIdentity) {
        lock(&self.known).identity = identity;
    }

    /// Notes that a row is known by the number in its cell.
    pub(super) fn appear(&self, rows: &GhostRows, row: u32) {
        let Some(number) = rows.network_id(row) else { return };
        let mut known = lock(&self.known);
        forget(&mut known, (rows.index, row));
        known.rows.insert(number, (rows.index, row));
        known.numbers.insert((rows.index, row), number);
    }

    /// Notes that a row is known no more.
    pub(super) fn forget(&self, class: usize, row: u32) {
        forget(&mut lock(&self.known), (class, row));
    }

    /// Of a view: other rows are there than before.
    pub(super) fn handle_shown(&self) {
        lock(&self.known).stale = true;
    }

    fn find(&self, number: u32) -> Option<(usize, u32)> {
        if number == NOTHING {
            return None;
        }
        let mut known = lock(&self.known);
        if known.stale {
            (known.stale, known.rows) = (false, HashMap::new());
            for rows in self.classes.get()?.iter().filter_map(Weak::upgrade) {
                if rows.properties.get().number_column().is_some() {
                    let each = rows.alive_rows().into_iter();
                    let each = each.filter_map(|row| Some((rows.network_id(row)?, (rows.index, row))));
                    known.rows.extend(each);
                }
            }
        }
        known.rows.get(&number).copied()
    }

    // --- references --------------------------------------------------------------------------------------

    /// The ghost that a reference is of; None if it isn't here.
    pub(super) fn target<'py>(
        &self,
        py: Python<'py>,
        (class, property): (usize, usize),
        number: u32,
    ) -> PyResult<Option<Bound<'py, Ghost>>> {
        let found = self.find(number).filter(|(other, _)| self.references.allows((class, property), *other));
        let Some((rows, row)) = found.and_then(|(other, row)| Some((self.class(other)?, row))) else {
            return Ok(None);
        };
        if !rows.is_alive(row) {
            return Ok(None);
        }
        if let Some(world) = &self.world
            && rows.without_words() != 0
        {
            // Texts and the like are as they are now.
            match world.find(number).and_then(|(other, row)| Some((world.class(other)?, row))) {
                Some((of, at)) => of
                    .bodies_of(at)
                    .into_iter()
                    .for_each(|(property, body)| rows.keep_body(row, property, body.to_vec())),
                None => rows.keep_default_bodies(row),
            }
        }
        rows.object(py, row).map(Some)
    }

    /// The number of what the game puts into a reference.
    ///
    /// # Errors
    /// It is no ghost that may stand there, or none of this world.
    pub(super) fn number_of(
        &self,
        rows: &GhostRows,
        property: usize,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<u32> {
        if value.is_none() {
            return Ok(NOTHING);
        }
        let py = value.py();
        let properties = rows.properties.get();
        let classes = self.classes.get().map_or(&[][..], |classes| classes);
        let class = value.get_type();
        let index = classes.iter().position(|of| of.upgrade().is_some_and(|of| of.is_of(class.as_any())));
        let allowed = index.filter(|other| self.references.allows((rows.index, property), *other));
        let (Ok(ghost), Some(_)) = (value.cast::<Ghost>(), allowed) else {
            return Err(wrong_class(py, properties, property, value));
        };
        let why = match ghost.get().live() {
            Some(Live { rows: of, row }) if classes.iter().any(|each| each.as_ptr() == Arc::as_ptr(&of)) => {
                return Ok(of.network_id(row).unwrap_or(NOTHING));
            }
            Some(_) => "one of another world",
            None if ghost.get().was().is_some() => "one that was despawned",
            None => "one that is in no world yet: spawn() it first",
        };
        Err(GhostError::new_err(format!(
            "{}.{} must be a ghost of this world, not {why}",
            properties.name(),
            properties.property_name(property)
        )))
    }

    // --- a client's tick ---------------------------------------------------------------------------------

    /// The mask of a class's references.
    pub(super) fn mask(&self, class: usize) -> u64 {
        self.references.mask(class)
    }

    /// Whether a class has references.
    pub(super) fn has_references(&self, class: usize) -> bool {
        !self.references.0[class].is_empty()
    }

    /// Notes what a row refers to now by the properties of a mask.
    pub(super) fn hold(&self, rows: &GhostRows, row: u32, mask: u64) {
        let mut known = lock(&self.known);
        for target in self.references.0[rows.index].iter().filter(|it| mask >> it.property & 1 == 1) {
            let holder = (rows.index, row, target.property);
            release(&mut known, holder);
            let number = rows.reference_number(row, target.property);
            if number != NOTHING {
                known.held.insert(holder, number);
                known.holders.entry(number).or_default().insert(holder);
            }
        }
    }

    /// Notes that a row refers to nothing any more.
    pub(super) fn release(&self, class: usize, row: u32) {
        let mut known = lock(&self.known);
        for target in &self.references.0[class] {
            release(&mut known, (class, row, target.property));
        }
    }

    /// The number that a row is known by.
    pub(super) fn known_number(&self, class: usize, row: u32) -> Option<u32> {
        lock(&self.known).numbers.get(&(class, row)).copied()
    }

    /// The references to ghosts of these numbers that may be to them, in the order of their classes, rows and properties.
    pub(super) fn relinked(&self, moved: &BTreeMap<u32, usize>) -> Vec<Relinked> {
        let known = lock(&self.known);
        let mut all = BTreeSet::new();
        for (number, class) in moved {
            let holders = known.holders.get(number).into_iter().flatten();
            all.extend(holders.filter(|(of, _, property)| self.references.allows((*of, *property), *class)));
        }
        all.into_iter().map(|(class, row, property)| Relinked { class, row, property }).collect()
    }
}

fn forget(known: &mut Numbered, at: (usize, u32)) {
    if let Some(number) = known.numbers.remove(&at)
        && known.rows.get(&number) == Some(&at)
    {
        known.rows.remove(&number);
    }
}

fn release(known: &mut Numbered, holder: RefHolder) {
    let Some(number) = known.held.remove(&holder) else { return };
    if let Some(holders) = known.holders.get_mut(&number) {
        holders.remove(&holder);
        if holders.is_empty() {
            known.holders.remove(&number);
        }
    }
}

/// The exception for what may not stand in a reference.
pub(super) fn wrong_class(
    py: Python<'_>,
    properties: &Properties,
    property: usize,
    value: &Bound<'_, PyAny>,
) -> PyErr {
    let wanted = properties.reference(property).map_or_else(String::new, |wanted| shown(wanted.bind(py)));
    FieldTypeError::new_err((
        properties.name().to_owned(),
        properties.property_name(property).to_owned(),
        value.clone().unbind(),
        format!("a {wanted} or None"),
    ))
}
