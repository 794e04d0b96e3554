//! Received rows on their way to the game.

use crate::python::prelude::*;

use super::row_type::numpy;
use super::rows::Rows;
use crate::endpoint::Table;
use crate::python::columns::{Keeper, Layout, view};

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

    /// A NumPy array where NumPy is installed, otherwise [`Rows`].
    pub(in crate::python) fn array<'py>(
        this: &Arc<Self>,
        schema: &Bound<'py, Schema>,
    ) -> PyResult<Object<'py>> {
        let py = schema.py();
        // Looked up once: importing a loaded module takes longer than making an array.
        static NDARRAY: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();
        let ndarray =
            NDARRAY.get_or_try_init(py, || Ok::<_, PyErr>(numpy(py, "ndarray")?.map(Bound::unbind)))?;
        let Some(ndarray) = ndarray else {
            return Ok(Bound::new(py, Rows::new(this.clone(), schema.clone().unbind()))?.into_any());
        };
        let (view, schema) = (view(py, this.clone(), this.layout())?, schema.get());
        let dtype = schema.rows.dtype(py, &schema.core, this.headed)?;
        let shape = PyTuple::new(py, [this.count])?;
        ndarray.bind(py).call1((shape, dtype, view))
    }
}

/// An array of rows that were read outside a tick.
pub(super) fn array<'py>(
    schema: &Bound<'py, Schema>,
    rows: Vec<u8>,
    count: usize,
    arena: Vec<u8>,
) -> PyResult<Object<'py>> {
    let core = &schema.get().core;
    let (format, stride) = (schema.get().rows.format(core, false), core.row_size());
    let received = Received { rows, stride, count, format, arena: Arc::new(arena), headed: false };
    Received::array(&Arc::new(received), schema)
}
