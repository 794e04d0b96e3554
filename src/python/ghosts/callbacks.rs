//! Methods of a ghost class that a client calls when something happens to its ghosts.
//!
//! Promises: all of a tick's methods are called, in the order of its events, after the columns were updated
//! and before the game sees the events. The tick raises the first exception; later ones go to
//! `sys.unraisablehook`.

use crate::python::prelude::*;

use super::events::{GhostChanged, GhostDespawned, GhostLinked, GhostOwned, GhostSpawned};
use super::properties::{Properties, Property};

/// Which of the methods a class has.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::python) struct Callbacks {
    spawned: bool,
    changed: bool,
    owned: bool,
    linked: bool,
    despawned: bool,
}

impl Callbacks {
    pub(super) fn of(class: &Bound<'_, PyType>) -> PyResult<Self> {
        // Properties may have these names too.
        let has = |name: &str| -> PyResult<bool> {
            let found = class.getattr_opt(name)?;
            Ok(found.is_some_and(|found| found.is_callable() && !found.is_instance_of::<Property>()))
        };
        Ok(Callbacks {
            spawned: has("on_spawned")?,
            changed: has("on_changed")?,
            owned: has("on_owned")?,
            linked: has("on_linked")?,
            despawned: has("on_despawned")?,
        })
    }

    pub(super) fn any(self) -> bool {
        self.first().is_some()
    }

    /// The name of its first method.
    fn first(self) -> Option<&'static str> {
        let all = [
            (self.spawned, "on_spawned"),
            (self.changed, "on_changed"),
            (self.owned, "on_owned"),
            (self.linked, "on_linked"),
            (self.despawned, "on_despawned"),
        ];
        all.into_iter().find_map(|(has, name)| has.then_some(name))
    }

    /// Calls the event's method, if the class has it.
    fn call(self, event: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = event.py();
        if let Ok(event) = event.cast::<GhostChanged>() {
            if self.changed {
                let old = event.get().old(py)?;
                event.get().ghost.bind(py).call_method1(intern!(py, "on_changed"), (old,))?;
            }
        } else if let Ok(event) = event.cast::<GhostSpawned>() {
            if self.spawned {
                event.get().ghost.bind(py).call_method0(intern!(py, "on_spawned"))?;
            }
        } else if let Ok(event) = event.cast::<GhostOwned>() {
            if self.owned {
                let owned = event.get().owned;
                event.get().ghost.bind(py).call_method1(intern!(py, "on_owned"), (owned,))?;
            }
        } else if let Ok(event) = event.cast::<GhostLinked>() {
            if self.linked {
                let GhostLinked { ghost, name, target } = event.get();
                ghost.bind(py).call_method1(intern!(py, "on_linked"), (name, target))?;
            }
        } else if let (Ok(event), true) = (event.cast::<GhostDespawned>(), self.despawned) {
            event.get().ghost.bind(py).call_method0(intern!(py, "on_despawned"))?;
        }
        Ok(())
    }
}

/// Refuses columns of a class with callbacks: nothing is called for ghosts that come as columns.
///
/// # Errors
/// Naming the class and its method.
pub(in crate::python) fn check_columns(
    columns: &[Bound<'_, PyAny>],
    classes: &[(Py<PyType>, Py<Properties>)],
    made: &[(usize, Py<PyType>)],
) -> PyResult<()> {
    for (place, given) in columns.iter().enumerate() {
        let Some(index) = classes.iter().position(|(class, _)| class.is(given)) else { continue };
        let own = made.iter().find(|(of, _)| *of == index).map_or(&classes[index].0, |(_, own)| own);
        let own = own.bind(given.py());
        if let Some(method) = Callbacks::of(own)?.first() {
            let name = own.name()?;
            return Err(PyValueError::new_err(format!(
                "columns[{place}] must be a class without methods that are called, and {name} has {method}: leave {name} \
                 out of columns, or give ghosts= a class of it in which {method} is None"
            )));
        }
    }
    Ok(())
}

/// Calls the methods for these events.
pub(in crate::python) fn call_all(py: Python<'_>, events: &[(Callbacks, Py<PyAny>)]) -> PyResult<()> {
    let mut raised = Ok(());
    for (callbacks, event) in events {
        if let Err(error) = callbacks.call(event.bind(py)) {
            if raised.is_ok() {
                raised = Err(error);
            } else {
                error.write_unraisable(py, Some(event.bind(py)));
            }
        }
    }
    raised
}
