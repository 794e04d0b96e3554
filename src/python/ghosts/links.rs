//! References from ghosts to ghosts: numbers in columns, and objects for the game: see [`crate::replication::Links`].
//!
//! Promises: what a peer or a column has in place of a number is of no ghost, or of one that may stand there.

use std::collections::BTreeSet;

use super::*;

use crate::replication::{self, GhostEvent, Reference, References, SavedIdentity};

/// Finds what the references of these classes are of; those classes get numbers.
///
/// # Errors
/// Naming a reference to none of them.
pub(in crate::python) fn references(
    py: Python<'_>,
    ghosts: &mut [(Py<PyType>, Py<Properties>)],
) -> PyResult<Arc<References>> {
    let (mut all, mut numbered) = (Vec::new(), vec![false; ghosts.len()]);
    for (_, properties) in ghosts.iter() {
        let properties = properties.get();
        let mut targets = Vec::new();
        for property in 0..properties.len() {
            let Some(wanted) = properties.reference(property) else { continue };
            let wanted = wanted.bind(py);
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
            targets.push((property, classes));
        }
        all.push(targets);
    }
    for ((_, properties), _) in ghosts.iter_mut().zip(numbered).filter(|(_, numbered)| *numbered) {
        *properties = Py::new(py, properties.get().numbered()?)?;
    }
    Ok(Arc::new(References(all)))
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

/// The numbers of the ghosts in one world.
pub(super) struct Links {
    references: Arc<References>,
    classes: OnceLock<Box<[Weak<GhostRows>]>>,
    /// Of a view: the links of the world that it shows.
    world: Option<Arc<Links>>,
    known: Mutex<replication::Links>,
    /// Of a view: rows were shown since those that are known.
    stale: AtomicBool,
}

impl Links {
    pub(super) fn new(references: &Arc<References>, key: u64) -> Arc<Self> {
        Self::over(references, None, SavedIdentity { key, drawn: 0 })
    }

    fn over(references: &Arc<References>, world: Option<Arc<Links>>, identity: SavedIdentity) -> Arc<Self> {
        Arc::new(Links {
            references: references.clone(),
            classes: OnceLock::new(),
            world,
            known: Mutex::new(replication::Links::new(identity)),
            stale: AtomicBool::new(false),
        })
    }

    /// Those of a view of this world.
    pub(super) fn of_view(world: &Arc<Links>) -> Arc<Self> {
        Self::over(&world.references, Some(world.clone()), SavedIdentity::default())
    }

    /// Says where the ghosts are, once.
    pub(super) fn set_classes(&self, classes: &[Arc<GhostRows>]) {
        let _ = self.classes.set(classes.iter().map(Arc::downgrade).collect());
    }

    fn class(&self, class: usize) -> Option<Arc<GhostRows>> {
        self.classes.get()?.get(class)?.upgrade()
    }

    // --- numbers -----------------------------------------------------------------------------------------

    pub(super) fn known(&self) -> MutexGuard<'_, replication::Links> {
        lock(&self.known)
    }

    /// Notes that a row is known by the number in its cell.
    pub(super) fn appear(&self, rows: &GhostRows, row: u32) {
        if let Some(number) = rows.network_id(row) {
            self.known().appear((rows.index, row), number);
        }
    }

    /// Of a view: other rows are there than before.
    pub(super) fn handle_shown(&self) {
        self.stale.store(true, Ordering::Relaxed);
    }

    fn find(&self, number: u32) -> Option<(usize, u32)> {
        let mut known = self.known();
        if self.stale.swap(false, Ordering::Relaxed) {
            let each = self.classes.get()?.iter().filter_map(Weak::upgrade);
            known.replace(each.flat_map(|rows| {
                let numbered = rows.alive_rows().into_iter();
                numbered.filter_map(move |row| Some(((rows.index, row), rows.network_id(row)?)))
            }));
        }
        known.find(number)
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
            return Ok(NO_GHOST);
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
                return Ok(of.network_id(row).unwrap_or(NO_GHOST));
            }
            Some(_) => "one of another world",
            None if ghost.get().was().is_some() => "one that was despawned",
            None => "one that isn't in a world yet: spawn() it first",
        };
        Err(GhostError::new_err(format!(
            "{}.{} must be a ghost of this world, not {why}",
            properties.name(),
            properties.property_name(property)
        )))
    }

    // --- a client's tick ---------------------------------------------------------------------------------

    /// Notes an event of a client's tick, of a class that comes as objects or as columns.
    pub(super) fn note(&self, rows: &GhostRows, event: &GhostEvent, as_objects: bool) {
        let held = |property| rows.reference_number(event.id, property);
        let held: Option<&dyn Fn(usize) -> u32> = if as_objects { Some(&held) } else { None };
        self.known().note(&self.references, event, rows.network_id(event.id), held);
    }

    /// The references that are of another ghost than before, or of none, without a word by their own ghosts' events.
    pub(super) fn take_relinked(&self) -> BTreeSet<Reference> {
        self.known().take_relinked(&self.references)
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
