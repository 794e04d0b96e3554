//! A server's world as bytes, and worlds that continue them: see [`crate::replication::SavedWorld`].

use super::*;
use crate::replication::{BadWorld, SavedWorld, repeated_number};

#[pymethods]
impl World {
    pub(in crate::python) fn load(&self, data: &Object<'_>) -> PyResult<()> {
        let bad = |error: BadWorld| BadWorldError::new_err(error.to_string());
        let bytes: Bound<'_, PyBytes> = argument("data", data, "bytes")?;
        let asked =
            self.with(|state| core::publisher(state).map(|it| (it.classes().clone(), it.is_new())))?;
        let Some((classes, is_new)) = asked else { return Err(bad(BadWorld::Classes)) };
        if !is_new {
            refuse!(GhostError, "the world must be new: call load() before the first tick and spawn");
        }
        let saved = SavedWorld::read(bytes.as_bytes(), &classes, self.slots).map_err(bad)?;
        let columns = self.population.classes.iter().map(|rows| rows.properties.get().number_column());
        if let Some(number) = repeated_number(&saved, columns) {
            refuse!(BadWorldError, "the saved world has two ghosts with the network id {number}");
        }
        *self.population.links.known().identity() = saved.identity;
        self.publish(|publisher| publisher.load(&saved))?;
        for (rows, saved) in self.population.classes.iter().zip(&saved.classes) {
            rows.restore(saved);
        }
        Ok(())
    }

    pub(in crate::python) fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let cells: Vec<_> = self.population.classes.iter().map(|rows| rows.cells.copy_cells()).collect();
        let column = |cells| Column { cells, scan: false };
        let columns = cells.iter().map(|class| class.iter().map(|cells| column(cells)).collect());
        let columns: Vec<Vec<Column<'_>>> = columns.collect();
        let identity = *self.population.links.known().identity();
        let bytes = self.with(|state| core::publisher(state).map(|it| it.save(&columns, identity)))?;
        Ok(PyBytes::new(py, &bytes.unwrap_or_default()))
    }

    fn waiting<'py>(&self, class_: &Object<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (py, rows) = (class_.py(), self.population.rows_of(class_)?);
        let all = PyDict::new(py);
        let waiting = self.publish(|publisher| {
            let each = rows.cells.alive_rows().into_iter();
            each.filter_map(|row| Some((row, publisher.waits_for(rows.index, row)?))).collect::<Vec<_>>()
        });
        for (row, client) in waiting? {
            all.set_item(rows.object(py, row)?, client)?;
        }
        Ok(all)
    }
}
