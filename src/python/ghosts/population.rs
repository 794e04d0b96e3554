//! A world's ghost classes, by type.

use super::*;

use crate::replication::rows::RowCells;
use crate::replication::{References, Wrong};

/// The ghosts of all classes of a protocol, on one side.
pub(in crate::python) struct Population {
    pub(super) classes: Vec<Arc<GhostRows>>,
    /// "server" or "client", for error sentences.
    side: &'static str,
    pub(super) links: Arc<Links>,
}

/// Reads a dict of ghost classes to derived classes that a client makes instead.
pub(in crate::python) fn made_classes(
    given: Option<&Object<'_>>,
    classes: &[(Py<PyType>, Py<Properties>)],
) -> PyResult<Vec<(usize, Py<PyType>)>> {
    let (mut made, Some(given)) = (Vec::new(), given) else { return Ok(Vec::new()) };
    let given: Bound<'_, PyDict> = argument("ghosts", given, "a dict of ghost classes or None")?;
    for (class, derived) in given.iter() {
        let shown = class.repr()?;
        let Some(place) = classes.iter().position(|(known, _)| known.is(&class)) else {
            refuse!(PyTypeError, "ghosts: {shown} is not among the protocol's ghosts");
        };
        let own =
            derived.cast::<PyType>().ok().filter(|derived| derived.is_subclass(&class).unwrap_or(false));
        let Some(own) = own else {
            refuse!(PyTypeError, "ghosts[{shown}] must be a class derived from it, not {}", derived.repr()?);
        };
        if !own.is(&class) && Properties::of(own).is_some() {
            let sentence = format!(
                "ghosts[{shown}] must be a plain class derived from it, and {} was declared by \
                 @tickwire.ghost: leave out this decorator",
                derived.repr()?
            );
            return Err(PyTypeError::new_err(sentence));
        }
        made.push((place, own.clone().unbind()));
    }
    Ok(made)
}

impl Population {
    /// An empty population. `server` is a server's endpoint, `key` decides its network ids, and `made` are a client's
    /// derived classes, by class number.
    pub(in crate::python) fn new(
        py: Python<'_>,
        classes: &[(Py<PyType>, Py<Properties>)],
        references: &Arc<References>,
        key: u64,
        server: Option<Weak<Shared<State>>>,
        made: &[(usize, Py<PyType>)],
    ) -> PyResult<Self> {
        let each = classes.iter().enumerate().map(|(index, (class, properties))| {
            (class, properties, made.iter().find(|(place, _)| *place == index).map(|(_, class)| class))
        });
        Population::as_seen(py, each, server, None, Links::new(references, key))
    }

    /// The same classes without ghosts, to show another time in.
    pub(super) fn empty_copy(&self, py: Python<'_>) -> PyResult<Self> {
        Population::as_seen(
            py,
            self.classes.iter().map(|rows| (&rows.class, &rows.properties, Some(rows.made()))),
            None,
            Some(self.classes.first().map_or(1, |rows| rows.cells.owners().size())),
            Links::of_view(&self.links),
        )
    }

    /// `view_owners` are the bytes of an owner in the world that a view shows; None: it is no view.
    fn as_seen<'a>(
        py: Python<'_>,
        classes: impl Iterator<Item = (&'a Py<PyType>, &'a Py<Properties>, Option<&'a Py<PyType>>)>,
        server: Option<Weak<Shared<State>>>,
        view_owners: Option<usize>,
        links: Arc<Links>,
    ) -> PyResult<Self> {
        let side = if server.is_some() { "server" } else { "client" };
        let each = classes.enumerate().map(|(index, (class, properties, made))| {
            let made = made.map(|class| class.bind(py));
            let (class, properties) = (class.bind(py), properties.bind(py));
            GhostRows::new(index, class, properties, server.clone(), made, view_owners, &links)
        });
        let classes: Vec<_> = each.collect::<PyResult<_>>()?;
        links.set_classes(&classes);
        Ok(Population { classes, side, links })
    }

    /// Whether the protocol has no ghosts.
    pub(in crate::python) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The rows of all classes.
    pub(in crate::python) fn rows(&self) -> impl Iterator<Item = &RowCells> {
        self.classes.iter().map(|rows| &rows.cells)
    }

    /// The rows of one ghost class.
    ///
    /// # Errors
    /// The class is none of the protocol's.
    pub(super) fn rows_of(&self, class: &Object<'_>) -> PyResult<&Arc<GhostRows>> {
        if let Some(rows) = self.classes.iter().find(|rows| rows.is_of(class)) {
            return Ok(rows);
        }
        let shown = match class.cast::<PyType>() {
            Ok(class) => class.name()?.to_string(),
            Err(_) => class.repr()?.to_string(),
        };
        let names: Vec<&str> = self.classes.iter().map(|rows| rows.name()).collect();
        let (names, class) = (names.join(", "), class.clone());
        Err(GhostError::new_err(match Properties::of(&class) {
            Some(_) => {
                format!(
                    "{shown} is not among the protocol's ghosts ({names}): add it to the list, on both sides"
                )
            }
            None => format!("{shown} must be one of the protocol's ghost classes ({names})"),
        }))
    }

    /// A ghost's row in this world.
    ///
    /// # Errors
    /// The ghost was never spawned, was despawned, or lives in another world.
    pub(in crate::python) fn live(&self, ghost: &Bound<'_, Ghost>) -> PyResult<Live> {
        let name = ghost.get_type().name()?;
        let Some(live) = ghost.get().live() else {
            return Err(GhostError::new_err(match ghost.get().was() {
                Some(row) => format!("the {name} of row {row} was already despawned"),
                None => format!("this {name} isn't in a world yet: spawn() it first"),
            }));
        };
        if self.classes.iter().any(|rows| Arc::ptr_eq(rows, &live.rows)) {
            return Ok(live);
        }
        Err(GhostError::new_err(format!(
            "the {name} of row {} belongs to another world, not to this {}",
            live.row, self.side
        )))
    }

    /// Calls `write` with the columns for received values, by class and property.
    pub(super) fn receive<T>(&self, write: impl FnOnce(&mut [Vec<&mut [u8]>]) -> T) -> T {
        let mut received: Vec<_> = self.classes.iter().map(|rows| rows.cells.received()).collect();
        let columns = received.iter_mut().map(|cells| cells.iter_mut().map(|cells| &mut **cells).collect());
        write(&mut columns.collect::<Vec<_>>())
    }

    pub(super) fn forget_objects(&self) {
        self.classes.iter().for_each(|rows| rows.forget_objects());
    }

    /// The number of ghosts of each class.
    pub(super) fn counted(&self) -> String {
        let each = self.classes.iter().map(|rows| format!("{} {}", rows.cells.living(), rows.name()));
        let each: Vec<String> = each.collect();
        if each.is_empty() { "no classes".into() } else { each.join(", ") }
    }

    /// Returns the objects of a class, by row.
    pub(super) fn objects<'py>(&self, class: &Object<'py>) -> PyResult<Bound<'py, PyList>> {
        self.filtered(class, |_, _| true)
    }

    fn filtered<'py>(
        &self,
        class: &Object<'py>,
        filter: impl Fn(&GhostRows, u32) -> bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, rows) = (class.py(), self.rows_of(class)?);
        let found = rows.cells.alive_rows().into_iter().filter(|row| filter(rows, *row));
        PyList::new(py, found.map(|row| rows.object(py, row)).collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns the first object of a class that the client owns.
    pub(super) fn mine<'py>(&self, class: &Object<'py>) -> PyResult<Option<Bound<'py, Ghost>>> {
        let rows = self.rows_of(class)?;
        let own = rows.cells.alive_rows().into_iter().find(|row| rows.cells.owner(*row) == SELF);
        own.map(|row| rows.object(class.py(), row)).transpose()
    }

    /// Returns the objects of a class that the client doesn't own, by row.
    pub(super) fn others<'py>(&self, class: &Object<'py>) -> PyResult<Bound<'py, PyList>> {
        self.filtered(class, |rows, row| rows.cells.owner(row) != SELF)
    }

    /// Returns whether the client owns a ghost.
    pub(super) fn owns(&self, ghost: &Bound<'_, Ghost>) -> PyResult<bool> {
        let live = self.live(ghost)?;
        Ok(live.rows.cells.owner(live.row) == SELF)
    }
}

/// The owner of a client's own rows, in its columns.
const SELF: u64 = 1;

impl Drop for Population {
    fn drop(&mut self) {
        // Objects hold the rows that hold them.
        self.forget_objects();
    }
}

holds!(Population: classes);

impl Population {
    /// The exception for the first value that can't be sent.
    #[cold]
    pub(in crate::python) fn error(&self, py: Python<'_>, wrong: &[(usize, Wrong)]) -> Option<PyErr> {
        let (class, wrong) = wrong.first()?;
        self.classes.get(*class).map(|rows| field_error(py, rows, wrong))
    }
}

fn field_error(py: Python<'_>, rows: &GhostRows, wrong: &Wrong) -> PyErr {
    let (properties, row) = (rows.properties.get(), wrong.row);
    let name = format!("{} of row {row}", properties.property_name(wrong.property));
    let value = match wrong.error {
        ValueError::FloatOutOfRange { value, .. } | ValueError::NotFinite { value } => {
            value.into_pyobject(py).map(|value| value.into_any().unbind()).map_err(Into::into)
        }
        _ => rows.plain_value(py, row, wrong.property).map(Bound::unbind),
    };
    match value {
        Ok(value) => FieldError::new_err((
            rows.name().to_owned(),
            name,
            value,
            wrong.error.bound(),
            rows.class.clone_ref(py),
            row,
            properties.property_name(wrong.property).to_owned(),
        )),
        Err(error) => error,
    }
}
