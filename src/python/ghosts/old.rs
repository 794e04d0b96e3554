//! The values that ghosts had before a tick changed them.
//!
//! Promises: cells are copied, and objects made only on demand. A game that never looks pays for a copy of
//! the cells that changed, and their memory as long as an event of that tick is kept.

use super::*;

use crate::replication::Mirror;

/// A value without words, if there was one.
type Body = Option<Arc<[u8]>>;

/// The values that one tick's changes replaced, of all ghosts.
#[derive(Default)]
pub(super) struct Before {
    cells: Vec<u8>,
    /// Where a row's values begin, by class and row.
    starts: HashMap<(usize, u32), usize>,
    /// Values of properties without words.
    bodies: HashMap<(usize, u32, usize), Body>,
}

impl Before {
    /// Copies what the mirror is about to change in a class.
    pub(super) fn copy(&mut self, rows: &GhostRows, mirror: &Mirror) {
        let visible = rows.properties.get().visible();
        for (row, mask) in mirror.changing(rows.index) {
            let mask = mask & visible;
            self.starts.insert((rows.index, row), self.cells.len());
            for property in (0..64).filter(|property| mask >> property & 1 == 1) {
                let memory = rows.cells.column(property);
                if rows.cells.without_words() >> property & 1 == 1 {
                    self.bodies.insert((rows.index, row, property), rows.cells.body(row, property));
                    continue;
                }
                let start = self.cells.len();
                self.cells.resize(start + memory.size(), 0);
                memory.read(row as usize, &mut self.cells[start..]);
            }
        }
    }

    /// The values of the properties in a mask (the row's change mask), by name.
    pub(super) fn values<'py>(
        &self,
        py: Python<'py>,
        rows: &GhostRows,
        row: u32,
        mask: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (values, properties) = (PyDict::new(py), rows.properties.get());
        let Some(mut at) = self.starts.get(&(rows.index, row)).copied() else { return Ok(values) };
        for property in (0..64).filter(|property| mask >> property & 1 == 1) {
            let size = rows.cells.column(property).size();
            let core = properties.core(property);
            let value = if properties.is_reference(property) {
                let number =
                    self.cells[at..].first_chunk().map_or(NO_GHOST, |cell| u32::from_le_bytes(*cell));
                rows.referred(py, property, number)?
            } else if core.has_words() {
                properties.load::<true>(py, property, &self.cells[at..at + size], 0)?
            } else {
                match self.bodies.get(&(rows.index, row, property)) {
                    Some(Some(body)) => properties.load::<true>(py, property, body, core.field().offset())?,
                    _ => py.None().into_bound(py),
                }
            };
            at += size;
            values.set_item(properties.attribute_name(py, property), value)?;
        }
        Ok(values)
    }
}
