//! When the inputs of a rollback game apply.

use super::*;

use crate::rollback::{MAX_DELAY, MAX_WINDOW};

#[record(eq, module = "tickwire.rollback")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    #[within(0, MAX_DELAY)]
    pub(super) delay: u32,
    #[within(1, MAX_WINDOW)]
    pub(super) window: u32,
    #[within(1, 1_000)]
    pub(super) rate: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { delay: 2, window: 8, rate: 60 }
    }
}
