//! References from ghosts to ghosts: numbers in columns, and objects for the game: see [`crate::replication::Links`].
//!
//! Promises: what a peer or a column has in place of a number is of no ghost, or of one that may stand there.

use std::collections::BTreeSet;

use super::*;

use crate::replication::{self, GhostEvent, Reference, References, SavedIdentity};

/// The references of a protocol's ghosts. Classes that something refers to get network ids.
pub(in crate::python) fn references(
    py: Python<'_>,
    ghosts: &mut [(Py<PyType>, Py<Properties>)],
) -> PyResult<Arc<References>> {
    let classes: Vec<_> = ghosts.iter().map(|(class, properties)| (class, properties)).collect();
    let targets = py.import("tickwire._references")?.call_method1("targets_of", (classes,))?;
    // For each class, the places of its references, and whether each class fits.
    let all: Vec<Vec<(usize, Vec<bool>)>> = targets.extract()?;
    for (place, (_, properties)) in ghosts.iter_mut().enumerate() {
        if all.iter().flatten().any(|(_, fits)| fits[place]) {
            *properties = Py::new(py, properties.get().numbered(py)?)?;
        }
    }
    let boxed = |targets: Vec<(usize, Vec<bool>)>| {
        targets.into_iter().map(|(property, fits)| (property, fits.into_boxed_slice())).collect()
    };
    Ok(Arc::new(References(all.into_iter().map(boxed).collect())))
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

    fn find(&self, number: u32) -> Option<(usize, u32)> {
        let mut known = self.known();
        if self.stale.swap(false, Ordering::Relaxed) {
            let each = self.classes.get()?.iter().filter_map(Weak::upgrade);
            known.replace(each.flat_map(|rows| {
                let numbered = rows.cells.alive_rows().into_iter();
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
        if !rows.cells.is_alive(row) {
            return Ok(None);
        }
        if let Some(world) = &self.world
            && rows.cells.without_words() != 0
        {
            // Texts and the like are as they are now.
            match world.find(number).and_then(|(other, row)| Some((world.class(other)?, row))) {
                Some((of, at)) => of
                    .cells
                    .bodies_of(at)
                    .into_iter()
                    .for_each(|(property, body)| rows.cells.keep_body(row, property, body.to_vec())),
                None => rows.keep_default_bodies(row),
            }
        }
        rows.object(py, row).map(Some)
    }

    /// The number of what the game puts into a reference.
    ///
    /// # Errors
    /// It is no ghost that may stand there, or none of this world.
    pub(super) fn number_of(&self, rows: &GhostRows, property: usize, value: &Object<'_>) -> PyResult<u32> {
        if value.is_none() {
            return Ok(NO_GHOST);
        }
        let properties = rows.properties.get();
        let classes = self.classes.get().map_or(&[][..], |classes| classes);
        let class = value.get_type();
        let index = classes.iter().position(|of| of.upgrade().is_some_and(|of| of.is_of(class.as_any())));
        let allowed = index.filter(|other| self.references.allows((rows.index, property), *other));
        let (Ok(ghost), Some(_)) = (value.cast::<Ghost>(), allowed) else {
            return Err(wrong_class(properties, property, value));
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
