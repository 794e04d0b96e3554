//! Calls the methods of ghost classes for a tick's events.
//!
//! Promises: all of a tick's methods are called, in the order of its events, after the columns were updated
//! and before the game sees the events. The tick raises the first exception; later ones go to
//! `sys.unraisablehook`.

use super::*;

use super::callbacks::{CHANGED, DESPAWNED, LINKED, OWNED, SPAWNED};

impl Callbacks {
    /// Calls the event's method, if the class has it.
    fn call(self, event: &Object<'_>) -> PyResult<()> {
        let py = event.py();
        let has = |method: u8| self.0 & method != 0;
        if has(CHANGED)
            && let Ok(event) = event.cast::<GhostChanged>()
        {
            let GhostChanged { ghost, .. } = event.get();
            ghost.bind(py).call_method1(intern!(py, "on_changed"), (event.get().old(py)?,))?;
        } else if has(SPAWNED)
            && let Ok(event) = event.cast::<GhostSpawned>()
        {
            event.get().ghost.bind(py).call_method0(intern!(py, "on_spawned"))?;
        } else if has(OWNED)
            && let Ok(event) = event.cast::<GhostOwned>()
        {
            let GhostOwned { ghost, owned } = event.get();
            ghost.bind(py).call_method1(intern!(py, "on_owned"), (*owned,))?;
        } else if has(LINKED)
            && let Ok(event) = event.cast::<GhostLinked>()
        {
            let GhostLinked { ghost, name, target } = event.get();
            ghost.bind(py).call_method1(intern!(py, "on_linked"), (name, target))?;
        } else if has(DESPAWNED)
            && let Ok(event) = event.cast::<GhostDespawned>()
        {
            event.get().ghost.bind(py).call_method0(intern!(py, "on_despawned"))?;
        }
        Ok(())
    }
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
