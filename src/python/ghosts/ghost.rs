//! The base class of all ghosts: it holds their values, or where these are.

use super::*;

use super::rows::Life;

impl Live {
    pub(in crate::python) fn class(&self) -> usize {
        self.rows.index
    }

    pub(in crate::python) fn owner(&self) -> u64 {
        self.rows.cells.owner(self.row)
    }
}

#[pymethods]
impl Ghost {
    #[new]
    fn new(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        let _ = (args, kwargs);
        Ghost { life: Mutex::new(Life::Plain(Vec::new())) }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(life) = self.life.try_lock() else { return Ok(()) };
        match &*life {
            Life::Plain(values) | Life::Over { values, .. } => {
                values.iter().flatten().try_for_each(|value| visit.call(value))
            }
            Life::Live(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let taken = match &mut *lock(&self.life) {
            Life::Plain(values) | Life::Over { values, .. } => ::core::mem::take(values),
            Life::Live(_) => Vec::new(),
        };
        drop(taken);
    }
}

impl Ghost {
    pub(super) fn get<'py>(
        slf: &Bound<'py, Self>,
        properties: &Properties,
        property: usize,
    ) -> PyResult<Object<'py>> {
        let py = slf.py();
        let Live { rows, row } = {
            match &*lock(&slf.get().life) {
                Life::Plain(values) | Life::Over { values, .. } => {
                    let value = values.get(property).and_then(Option::as_ref);
                    return value.map(|value| value.bind(py).clone()).ok_or_else(|| {
                        let (class, name) = (properties.name(), properties.property_name(property));
                        PyAttributeError::new_err(format!("this {class} has no value of {name:?} yet"))
                    });
                }
                Life::Live(live) => live.clone(),
            }
        };
        rows.value(py, row, property)
    }

    pub(super) fn set(
        slf: &Bound<'_, Self>,
        properties: &Properties,
        property: usize,
        value: &Object<'_>,
    ) -> PyResult<()> {
        let (mut old, mut live) = (None, None);
        match &mut *lock(&slf.get().life) {
            Life::Plain(values) => {
                if values.len() <= property {
                    values.resize_with(property + 1, || None);
                }
                old = values[property].replace(value.clone().unbind());
            }
            Life::Live(at) => live = Some(at.clone()),
            Life::Over { row, .. } => {
                let (class, name) = (properties.name(), properties.property_name(property));
                refuse!(GhostError, "{class}.{name} of row {row} must be set before its despawn, not after");
            }
        }
        drop(old);
        match live {
            Some(Live { rows, row }) => rows.assign(row, property, value),
            None => Ok(()),
        }
    }

    /// The row it is, if it is live.
    pub(super) fn live(&self) -> Option<Live> {
        match &*lock(&self.life) {
            Life::Live(live) => Some(live.clone()),
            _ => None,
        }
    }

    /// The row that it was, if it was despawned.
    pub(super) fn was(&self) -> Option<u32> {
        match &*lock(&self.life) {
            Life::Over { row, .. } => Some(*row),
            _ => None,
        }
    }

    /// The tick in which it was despawned, if it was.
    pub(super) fn ended_at(&self) -> Option<u32> {
        match &*lock(&self.life) {
            Life::Over { end, .. } => Some(*end),
            _ => None,
        }
    }

    /// Makes it a row. Returns its former values, to be dropped where no lock is held.
    pub(super) fn enter(&self, live: Live) -> Values {
        match ::core::mem::replace(&mut *lock(&self.life), Life::Live(live)) {
            Life::Plain(values) | Life::Over { values, .. } => values,
            Life::Live(_) => Vec::new(),
        }
    }

    /// Ends its life in the world; it keeps these values. A live ghost has no others, so nothing of the game's is
    /// dropped here.
    pub(super) fn leave(&self, values: Values, row: u32, end: u32) {
        *lock(&self.life) = Life::Over { values, row, end };
    }
}
