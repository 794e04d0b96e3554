//! Closes what has a thread when the interpreter exits.
//!
//! Promises: each is closed once, if it still exists then.

use std::mem;
use std::sync::{Mutex, Weak};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::lock;

/// An object that has a thread.
pub(super) trait Exit: Send + Sync {
    /// Ends the thread; called at most once.
    fn close(&self, py: Python<'_>);
}

static OPEN: Mutex<Vec<Weak<dyn Exit>>> = Mutex::new(Vec::new());

/// Registers an object to be closed when the interpreter exits.
pub(super) fn close_at_exit(py: Python<'_>, closing: Weak<dyn Exit>) -> PyResult<()> {
    static REGISTERED: PyOnceLock<()> = PyOnceLock::new();
    REGISTERED.get_or_try_init(py, || {
        let close_all = wrap_pyfunction!(close_all, py)?;
        py.import("atexit")?.call_method1("register", (close_all,)).map(drop)
    })?;
    let mut open = lock(&OPEN);
    open.retain(|closing| closing.strong_count() > 0);
    open.push(closing);
    Ok(())
}

#[pyfunction]
fn close_all(py: Python<'_>) {
    let open = mem::take(&mut *lock(&OPEN));
    open.iter().filter_map(Weak::upgrade).for_each(|closing| closing.close(py));
}
