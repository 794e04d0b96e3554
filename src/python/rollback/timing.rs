//! When the inputs of a rollback game apply.

use crate::python::prelude::*;

use crate::rollback::{MAX_DELAY, MAX_WINDOW};

#[pyclass(frozen, eq, get_all, module = "tickwire.rollback")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(super) delay: u32,
    pub(super) window: u32,
    pub(super) rate: u32,
}

#[pymethods]
impl Timing {
    #[new]
    fn new(
        #[within(0, MAX_DELAY)] delay: u32,
        #[within(1, MAX_WINDOW)] window: u32,
        #[within(1, 1_000)] rate: u32,
    ) -> Self {
        Timing { delay, window, rate }
    }

    fn __repr__(&self) -> String {
        format!("Timing(delay={}, window={}, rate={})", self.delay, self.window, self.rate)
    }
}

impl Timing {
    /// The timing that was given, or the default one.
    pub(super) fn or_default(given: Option<&Bound<'_, Self>>) -> Self {
        given.map_or(Timing { delay: 2, window: 8, rate: 60 }, |given| *given.get())
    }
}
