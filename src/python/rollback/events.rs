//! The events of a rollback game.

use crate::python::events::event_class;
use crate::python::prelude::*;

event_class! { PlayerOut in "tickwire.rollback", comparable { player: u8, frame: u32 } }

event_class! { Desync in "tickwire.rollback", comparable { player: u8, frame: u32, last_equal: Option<u32>, fields: Vec<String> } }

event_class! { SpectatorLost in "tickwire.rollback", comparable { index: u8 } }
