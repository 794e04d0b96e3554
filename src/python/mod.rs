//! PyO3 bindings: converts and delegates.
//!
//! Promises: every name, signature and doc of `python/tickwire/_core.pyi`. Classes are frozen with one lock
//! inside where state changes, and no lock is held while Python code runs. Calls stay attached to the
//! interpreter: all of them take bounded time.

mod address;
mod errors;

/// The extension module.
#[pyo3::pymodule(gil_used = false)]
#[pyo3(name = "_core")]
pub mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::address::Address;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
