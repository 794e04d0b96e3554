//! Received rows on their way to the game.

use crate::python::prelude::*;

use crate::endpoint::Table;
use crate::python::columns::{Keeper, Layout};

/// Rows, and the arena that holds their strings, bytes and lists.
#[derive(Debug)]
pub(in crate::python) struct Received {
    pub(super) rows: Vec<u8>,
    pub(super) stride: usize,
    pub(super) count: usize,
    pub(super) format: Arc<CStr>,
    pub(super) arena: Arc<Vec<u8>>,
    pub(super) headed: bool,
}

impl Keeper for Received {
    fn arena(&self) -> Option<Layout> {
        Some(Layout::of(self.arena.as_slice()))
    }
}

impl Received {
    pub(super) fn layout(&self) -> Layout {
        let Received { rows, stride, count, format, .. } = self;
        Layout::rows(rows.as_ptr() as usize, *count, *stride, *stride, CString::from(&**format).into())
    }

    /// The messages of one class that arrived in a tick.
    pub(in crate::python) fn new(schema: &Schema, table: Table, arena: Arc<Vec<u8>>) -> Self {
        let (stride, count) = (table.stride(), table.count());
        let format = schema.rows.format(&schema.core, true);
        Received { rows: table.into_rows(), stride, count, format, arena, headed: true }
    }
}
