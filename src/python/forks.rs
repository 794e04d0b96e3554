//! Tells a process from its forks.
//!
//! Promises: asking whether this is a fork's child reads one integer. Forks made without `os.fork` aren't noticed, because
//! no Python runs in such children.

use std::sync::atomic::AtomicU32;

use crate::python::prelude::*;

/// How many forks lie between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process, distinguishable from its forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process(u32);

impl Process {
    /// The current process.
    pub(super) fn current(py: Python<'_>) -> PyResult<Self> {
        static REGISTERED: PyOnceLock<()> = PyOnceLock::new();
        REGISTERED.get_or_try_init(py, || {
            let os = py.import("os")?;
            // Windows has no forks.
            if os.hasattr("register_at_fork")? {
                let keywords = PyDict::new(py);
                keywords.set_item("after_in_child", wrap_pyfunction!(count_fork, py)?)?;
                os.call_method("register_at_fork", (), Some(&keywords))?;
            }
            PyResult::Ok(())
        })?;
        Ok(Process(FORKS.load(Ordering::Relaxed)))
    }

    /// Whether this process is the same one, not its child.
    pub(super) fn is_here(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

#[pyfunction]
fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
