//! Methods of a ghost class that a client calls when something happens to its ghosts.
//!
//! Promises: all of a tick's methods are called, in the order of its events, after the columns were updated
//! and before the game sees the events. The tick raises the first exception; later ones go to
//! `sys.unraisablehook`.

use super::*;

/// The methods, with the attributes of their events that they take.
const METHODS: [(&str, &[&str]); 5] = [
    ("on_spawned", &[]),
    ("on_changed", &["old"]),
    ("on_owned", &["owned"]),
    ("on_linked", &["name", "target"]),
    ("on_despawned", &[]),
];

/// A method, by its place among [`METHODS`].
#[derive(Clone, Copy, Debug)]
pub(in crate::python) enum Callback {
    Spawned,
    Changed,
    Owned,
    Linked,
    Despawned,
}

/// Which of the methods a class has, as a mask.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Callbacks(u8);

impl Callbacks {
    pub(super) fn of(class: &Bound<'_, PyType>) -> PyResult<Self> {
        METHODS.iter().enumerate().try_fold(Callbacks(0), |Callbacks(mask), (place, (name, _))| {
            // Properties may have these names too.
            let found = class.getattr_opt(*name)?;
            let has = found.is_some_and(|found| found.is_callable() && !found.is_instance_of::<Property>());
            Ok(Callbacks(mask | u8::from(has) << place))
        })
    }

    pub(super) fn has(self, callback: Callback) -> bool {
        self.0 >> callback as u8 & 1 == 1
    }

    /// The name of its first method.
    fn first(self) -> Option<&'static str> {
        METHODS.get(self.0.trailing_zeros() as usize).map(|(name, _)| *name)
    }
}

/// Calls the methods for these events.
pub(in crate::python) fn call_all(py: Python<'_>, events: &[(Callback, Py<PyAny>)]) -> PyResult<()> {
    let mut raised = FirstError::default();
    for (callback, event) in events {
        let (name, attributes) = METHODS[*callback as usize];
        let call = || {
            let given = attributes.iter().map(|attribute| event.getattr(py, *attribute));
            let given = PyTuple::new(py, given.collect::<PyResult<Vec<_>>>()?)?;
            event.getattr(py, intern!(py, "ghost"))?.call_method1(py, name, given)
        };
        raised.keep(event.bind(py), call());
    }
    raised.result()
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
