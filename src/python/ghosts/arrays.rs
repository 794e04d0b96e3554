//! The ghosts of a class as arrays: a column for each property, a row for each ghost.
//!
//! Promises: no Python object is made for a ghost; a column is the world's own memory. Rows and views are stable: a
//! view made before the world grew has the rows of that time.

use super::*;
use pyo3::types::PySlice;

use crate::python::columns::{self, Keeper, view_with};
use crate::python::row_type::format as cell_format;
use crate::wire::{Column, Node};

#[pyclass(frozen, mapping, module = "tickwire.world")]
pub(crate) struct GhostArrays(pub(super) Arc<GhostRows>);

#[pymethods]
impl GhostArrays {
    properties! {
        ghost_class: Py<PyAny> = self.0.class.clone_ref(py).into_any();
        capacity: u32 = self.0.properties.get().capacity();
        living: usize = self.0.cells.living();
        alive: PyResult<Object<'py>> = self.view(py, self.0.cells.alive(), false, (c"?", None));
        rows: PyResult<Object<'py>> = numbers(py, &self.0.cells.alive_rows());
        spawned: PyResult<Object<'py>> = numbers(py, &self.0.news().spawned);
        changed: PyResult<Object<'py>> = numbers(py, &self.0.news().changed);
        despawned: PyResult<Object<'py>> = numbers(py, &self.0.news().despawned);
        __len__: usize = self.0.cells.count();
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        let properties = self.0.properties.get();
        let with_words = (0..properties.len()).filter(|property| properties.core(*property).has_words());
        with_words.map(|property| properties.property_name(property).to_owned()).collect()
    }

    #[getter]
    fn network_ids<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let Some(column) = self.0.properties.get().number_column() else {
            let name = self.0.name();
            return Err(GhostError::new_err(format!(
                "{name} has no network ids, because nothing in the protocol refers to it: declare a property as tw.Ref[\"{name}\"]"
            )));
        };
        self.view(py, self.0.cells.column(column), false, (c"I", None))
    }

    #[getter]
    fn owners<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let format = if self.0.cells.owners().size() == size_of::<u64>() { c"Q" } else { c"?" };
        self.view(py, self.0.cells.owners(), false, (format, None))
    }

    fn ghost<'py>(&self, row: &Object<'py>) -> PyResult<Bound<'py, Ghost>> {
        let number = bounded("row", row, 0, self.capacity() - 1)?;
        if !self.0.cells.is_alive(number) {
            refuse!(GhostError, "no {} lives in row {number}", self.0.name());
        }
        self.0.object(row.py(), number)
    }

    fn __getitem__<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Object<'py>> {
        let property = self.property(name)?;
        let py = name.py();
        let node = self.0.properties.get().core(property).field().node();
        let memory = self.0.cells.column(property);
        let column = if let Node::Leaf(leaf) = node { format_of(leaf.column()) } else { None };
        if let Some(format) = column {
            return self.view(py, memory, self.0.is_servers(), format);
        }
        // A property with parts: an array of records, or bytes without NumPy.
        let bytes = self.view(py, memory, self.0.is_servers(), (c"B", Some(memory.size())))?;
        let Some(dtype) = numpy(py, "dtype")? else { return Ok(bytes) };
        let records = bytes.call_method1(intern!(py, "view"), (dtype.call1((cell_format(node),))?,))?;
        records.call_method1(intern!(py, "reshape"), (self.0.cells.count(),))
    }

    fn __setitem__(&self, name: &Bound<'_, PyString>, value: &Object<'_>) -> PyResult<()> {
        let property = self.property(name)?;
        let py = name.py();
        if !self.0.is_servers() {
            return Err(GhostError::new_err(format!(
                "{}.{name} can't be set on a client: only its server can, so send it a message",
                self.0.name()
            )));
        }
        let memory = self.0.cells.column(property);
        // The result of `column += ...`: the column itself, already changed.
        if let Ok(raw) = Raw::get(value, ffi::PyBUF_FULL_RO)
            && raw.address() == memory.address()
            && raw.len() == memory.size() * self.0.cells.count()
        {
            return Ok(());
        }
        let column = self.__getitem__(name)?;
        if numpy(py, "ndarray")?.is_some() {
            return column.set_item(py.Ellipsis(), value);
        }
        column.set_item(PySlice::full(py), value)
    }

    methods! {
        __contains__(name: &Bound<'_, PyString>) -> PyResult<bool> = Ok(self.property(name).is_ok());
    }

    fn __repr__(&self) -> String {
        let (name, living, count) = (self.0.name(), self.0.cells.living(), self.0.cells.count());
        format!("<GhostArrays of {name}: {living} ghosts in {count} rows>")
    }
}

impl GhostArrays {
    fn property(&self, name: &Bound<'_, PyString>) -> PyResult<usize> {
        let properties = self.0.properties.get();
        let property = properties.named(name.to_str()?).map_err(PyKeyError::new_err)?;
        if properties.core(property).has_words() {
            return Ok(property);
        }
        Err(PyKeyError::new_err(format!(
            "{}.{name} has no column, because its size varies: use the object, ghost(row).{name}",
            self.0.name()
        )))
    }

    /// Cells as an array, or as a memoryview without NumPy.
    fn view<'py>(
        &self,
        py: Python<'py>,
        memory: &Arc<Cells>,
        writable: bool,
        format: (&'static CStr, Option<usize>),
    ) -> PyResult<Object<'py>> {
        cells(py, memory, self.0.cells.count(), writable, format)
    }
}

/// Integers as an array, or as a memoryview without NumPy.
pub(super) fn numbers<'py>(py: Python<'py>, numbers: &[u32]) -> PyResult<Object<'py>> {
    let memory = Arc::new(Cells::new(size_of::<u32>(), numbers.len()));
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    memory.write(0, &bytes);
    cells(py, &memory, numbers.len(), true, (c"I", None))
}

/// Reads rows from a buffer of integers or an iterable.
pub(super) fn rows_of(given: &Object<'_>) -> PyResult<Vec<u32>> {
    let row = |row: &Object<'_>| bounded("rows", row, 0, u32::MAX);
    if let Ok(one) = row(given) {
        return Ok(vec![one]);
    }
    if let Ok(raw) = Raw::get(given, ffi::PyBUF_FULL_RO) {
        if let Some(numbers) = raw.numbers::<u32>(given.py())? {
            return Ok(numbers);
        }
        if let Some(numbers) = raw.numbers::<i64>(given.py())? {
            let fits = |number: i64| {
                u32::try_from(number).map_err(|_| {
                    PyValueError::new_err(format!("rows must be 0 to {}, not {number}", u32::MAX))
                })
            };
            return numbers.into_iter().map(fits).collect();
        }
    }
    let Ok(each) = given.try_iter() else {
        refuse!(PyTypeError, "rows must be ints or a buffer of them, not {}", class_name(given));
    };
    each.map(|each| row(&each?)).collect()
}

/// The format of a column with one value, and how many numbers that has if it may be several.
fn format_of(column: Column) -> Option<(&'static CStr, Option<usize>)> {
    Some(match column {
        Column::Bool => (c"?", None),
        Column::Uint8 => (c"B", None),
        Column::Uint16 => (c"H", None),
        Column::Uint32 => (c"I", None),
        Column::Uint64 => (c"Q", None),
        Column::Int8 => (c"b", None),
        Column::Int16 => (c"h", None),
        Column::Int32 => (c"i", None),
        Column::Int64 => (c"q", None),
        Column::Float32 => (c"f", None),
        Column::Float64 => (c"d", None),
        Column::Singles(count) => (c"f", Some(count.into())),
        Column::Doubles(count) => (c"d", Some(count.into())),
        Column::Uint128 | Column::Int128 | Column::Text | Column::Data => return None,
    })
}

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
