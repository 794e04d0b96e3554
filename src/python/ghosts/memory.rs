//! Views of a column's cells: see [`crate::store::cells`].

use super::*;
use crate::python::columns::{self, Keeper, view_with};

impl Keeper for Cells {
    fn note_writer(&self, begins: bool) {
        Cells::note_writer(self, begins);
    }
}

/// Views this many cells, as an array if NumPy is installed. A cell is `count` numbers of this format, with a
/// dimension of its own unless that is None.
pub(super) fn cells<'py>(
    py: Python<'py>,
    memory: &Arc<Cells>,
    rows: usize,
    writable: bool,
    (format, count): (&'static CStr, Option<usize>),
) -> PyResult<Object<'py>> {
    let item = memory.size() / count.unwrap_or(1).max(1);
    let mut layout = columns::Layout::rows(memory.address(), rows, memory.size(), item, format.into());
    layout.dimensions += i32::from(count.is_some());
    layout.shape[1] = count.unwrap_or(1) as isize;
    let view = view_with(py, memory.clone(), layout, writable)?.into_any();
    match numpy(py, "asarray")? {
        Some(asarray) => asarray.call1((view,)),
        None => Ok(view),
    }
}
