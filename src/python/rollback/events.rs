//! The events of a rollback game.

use crate::python::prelude::*;

#[pyclass(frozen, get_all, eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct PlayerOut {
    pub(super) player: u8,
    pub(super) frame: u32,
}

#[pymethods]
impl PlayerOut {
    properties! {
        __repr__: String = format!("PlayerOut(player={}, frame={})", self.player, self.frame);
    }
}

#[pyclass(frozen, get_all, eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct Desync {
    pub(super) player: u8,
    pub(super) frame: u32,
    pub(super) last_equal: Option<u32>,
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

#[pyclass(frozen, get_all, eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct SpectatorLost {
    pub(super) index: u8,
}

#[pymethods]
impl SpectatorLost {
    properties! {
        __repr__: String = format!("SpectatorLost(index={})", self.index);
    }
}
