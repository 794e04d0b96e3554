//! The events of a rollback game.

use pyo3::prelude::*;

/// A player is out of a rollback game, from the same frame on in every player's game.
#[pyclass(frozen, get_all, eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct PlayerOut {
    /// The player's index.
    pub(super) player: u8,
    /// The first frame without it.
    pub(super) frame: u32,
}

#[pymethods]
impl PlayerOut {
    fn __repr__(&self) -> String {
        format!("PlayerOut(player={}, frame={})", self.player, self.frame)
    }
}

/// The state of another player differs: some step of the game isn't deterministic.
#[pyclass(frozen, get_all, eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct Desync {
    /// The other player's index.
    pub(super) player: u8,
    /// The first frame before which the states were compared and differed.
    pub(super) frame: u32,
    /// The newest frame before which they were compared and equal; None: never.
    pub(super) last_equal: Option<u32>,
    /// The names of the fields that differ; empty if they are unknown.
    pub(super) fields: Vec<String>,
}

#[pymethods]
impl Desync {
    fn __repr__(&self) -> String {
        let Desync { player, frame, last_equal, fields } = self;
        let last = last_equal.map_or("None".to_owned(), |frame| frame.to_string());
        format!("Desync(player={player}, frame={frame}, last_equal={last}, fields={fields:?})")
    }
}

/// A spectator lacks frames that are no longer kept: it needs a newer state, and a new start.
#[pyclass(frozen, get_all, eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct SpectatorLost {
    /// The spectator's index.
    pub(super) index: u8,
}

#[pymethods]
impl SpectatorLost {
    fn __repr__(&self) -> String {
        format!("SpectatorLost(index={})", self.index)
    }
}
