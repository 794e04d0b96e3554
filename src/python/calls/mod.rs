//! Calls for Python: functions that the other side runs.
//!
//! Promises: a call is a message of its function's parameters, and follows the rules of messages. The game's
//! functions run where the game takes its tick, in the order of their channel, and never under a lock; an
//! exception ends that call and nothing else.

mod desk;
mod run;

use crate::python::prelude::*;
pub(super) use desk::{Arrived, Desk, Taken};
use desk::{Ghosts, Outcome};

use super::declared::{Declared, Role};
