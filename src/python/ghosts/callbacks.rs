//! Methods of a ghost class that a client calls when something happens to its ghosts.
//!
//! Promises: all of a tick's methods are called, in the order of its events, after the columns were updated
//! and before the game sees the events. The tick raises the first exception; later ones go to
//! `sys.unraisablehook`.

use super::*;

const METHODS: [&str; 5] = ["on_spawned", "on_changed", "on_owned", "on_linked", "on_despawned"];
const SPAWNED: u8 = 1 << 0;
const CHANGED: u8 = 1 << 1;
const OWNED: u8 = 1 << 2;
const LINKED: u8 = 1 << 3;
const DESPAWNED: u8 = 1 << 4;

/// Which of the methods a class has, as a mask.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::python) struct Callbacks(u8);

impl Callbacks {
    pub(super) fn of(class: &Bound<'_, PyType>) -> PyResult<Self> {
        METHODS.iter().enumerate().try_fold(Callbacks(0), |Callbacks(mask), (place, name)| {
            // Properties may have these names too.
            let found = class.getattr_opt(*name)?;
            let has = found.is_some_and(|found| found.is_callable() && !found.is_instance_of::<Property>());
            Ok(Callbacks(mask | u8::from(has) << place))
        })
    }

    pub(super) fn any(self) -> bool {
        self.0 != 0
    }

    /// The name of its first method.
    fn first(self) -> Option<&'static str> {
        METHODS.get(self.0.trailing_zeros() as usize).copied()
    }

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

/// Refuses columns of a class with callbacks: nothing is called for ghosts that come as columns.
///
/// # Errors
/// Naming the class and its method.
pub(in crate::python) fn check_columns(
    columns: &[Object<'_>],
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
                "columns[{place}] must be a class without callback methods, and {name} has {method}: leave {name} \
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
