//! Methods of a ghost class that a client calls when something happens to its ghosts: which of them a class has.

use super::*;

const METHODS: [&str; 5] = ["on_spawned", "on_changed", "on_owned", "on_linked", "on_despawned"];
pub(super) const SPAWNED: u8 = 1 << 0;
pub(super) const CHANGED: u8 = 1 << 1;
pub(super) const OWNED: u8 = 1 << 2;
pub(super) const LINKED: u8 = 1 << 3;
pub(super) const DESPAWNED: u8 = 1 << 4;

/// Which of the methods a class has, as a mask.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::python) struct Callbacks(pub(super) u8);

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
