//! The events of a rollback game.

use super::*;

#[record(eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct PlayerOut {
    pub(super) player: u8,
    pub(super) frame: u32,
}

#[record(eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct Desync {
    pub(super) player: u8,
    pub(super) frame: u32,
    pub(super) last_equal: Option<u32>,
    pub(super) fields: Vec<String>,
}

#[record(eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct SpectatorLost {
    pub(super) index: u8,
}
