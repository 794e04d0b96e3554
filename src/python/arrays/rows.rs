//! Rows without NumPy: by index, by name, and by iteration.
//!
//! Promises: a column of numbers is a view of the rows' memory, not a copy. Reading received rows never raises: the
//! game's own types come unconverted, as in NumPy's arrays.

use crate::python::prelude::*;
use pyo3::types::PyRange;

use crate::endpoint::{HEAD, HEAD_BYTES, Table};
use crate::python::columns::{Keeper, Layout, view};
use crate::python::row_type::head_names;
use crate::wire::Node;

#[pyclass(frozen, module = "tickwire.columns")]
pub(crate) struct Rows {
    pub(super) received: Arc<Received>,
    schema: Py<Schema>,
    /// The arena followed by the rows, whose cells point into it; made on demand.
    joined: OnceLock<Vec<u8>>,
    layout: Layout,
}

/// A column of the rows.
#[derive(Clone, Copy)]
enum Which {
    Head(usize),
    Field(usize),
}

impl Rows {
    pub(super) fn new(received: Arc<Received>, schema: Py<Schema>) -> Self {
        let layout = received.layout();
        Rows { received, schema, joined: OnceLock::new(), layout }
    }

    fn head_bytes(&self) -> usize {
        if self.received.headed { HEAD_BYTES } else { 0 }
    }

    /// The columns with their names, in their order.
    fn columns(&self) -> Vec<(String, Which)> {
        let schema = &self.schema.get().fields.core;
        let mut columns = Vec::new();
        if self.received.headed {
            columns.extend((0..).zip(head_names(schema)).map(|(i, name)| (name, Which::Head(i))));
        }
        let fields = schema.fields().iter().enumerate();
        columns.extend(fields.map(|(i, field)| (field.name().to_owned(), Which::Field(i))));
        columns
    }

    /// The value of a column in a row.
    fn cell<'py>(&self, py: Python<'py>, which: Which, row: usize) -> PyResult<Object<'py>> {
        let Received { rows, stride, arena, .. } = &*self.received;
        let at = row * stride;
        match which {
            Which::Head(i) => {
                let (code, size) = (HEAD[i].code, size_of_code(HEAD[i].code));
                let mut number = [0; 8];
                number[..size].copy_from_slice(&rows[at + HEAD[i].offset..][..size]);
                match u64::from_le_bytes(number) {
                    bits if code == 'd' => f64::from_bits(bits).into_bound_py_any(py),
                    number => number.into_bound_py_any(py),
                }
            }
            Which::Field(i) => {
                let schema = self.schema.get();
                let field = &schema.fields.core.fields()[i];
                let at = at + self.head_bytes() + field.offset();
                let shape = schema.fields.shape(i);
                if !schema.fields.core.has_tail() {
                    return shape.load::<false>(py, field.node(), rows, at);
                }
                let body = self.joined.get_or_init(|| [arena.as_slice(), rows.as_slice()].concat());
                shape.load::<false>(py, field.node(), body, arena.len() + at)
            }
        }
    }

    fn row<'py>(&self, py: Python<'py>, columns: &[(String, Which)], row: usize) -> PyResult<Object<'py>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let values = PyDict::new(py);
        for (name, which) in columns {
            values.set_item(name, self.cell(py, *which, row)?)?;
        }
        CLASS.import(py, "tickwire._rows", "Row")?.call((), Some(&values))
    }

    /// A view of a column of plain numbers.
    fn numbers<'py>(&self, py: Python<'py>, which: Which) -> PyResult<Option<Object<'py>>> {
        let (code, offset, size) = match which {
            Which::Head(i) => (HEAD[i].code, HEAD[i].offset, size_of_code(HEAD[i].code)),
            Which::Field(i) => {
                let schema = self.schema.get();
                let field = &schema.fields.core.fields()[i];
                let Node::Leaf(leaf) = field.node() else { return Ok(None) };
                let Some(code) = leaf.column().code().filter(|_| schema.fields.shape(i).is_plain()) else {
                    return Ok(None);
                };
                (code, self.head_bytes() + field.offset(), leaf.column().size())
            }
        };
        if cfg!(target_endian = "big") && size > 1 {
            return Ok(None);
        }
        let Received { rows, stride, count, .. } = &*self.received;
        // Without rows there are no bytes, and nothing is read.
        let address = rows.get(offset..).unwrap_or_default().as_ptr() as usize;
        let layout = Layout::rows(address, *count, *stride, size, CString::new(code.to_string())?.into());
        Ok(Some(view(py, self.received.clone(), layout)?.into_any()))
    }

    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Object<'py>> {
        let columns = self.columns();
        let Some((_, which)) = columns.iter().find(|(column, _)| column == name) else {
            let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
            return Err(PyKeyError::new_err(format!(
                "{} rows have no column {name:?}, only {}",
                self.schema.get().name(),
                names.join(", ")
            )));
        };
        if let Some(numbers) = self.numbers(py, *which)? {
            return Ok(numbers);
        }
        let cells = (0..self.received.count).map(|row| self.cell(py, *which, row));
        cells.collect::<PyResult<Vec<_>>>()?.into_bound_py_any(py)
    }
}

#[pymethods]
impl Rows {
    properties! {
        names: Vec<String> = self.columns().into_iter().map(|(name, _)| name).collect();
        format: String = self.received.format.to_string_lossy().into_owned();
        __len__: usize = self.received.count;
    }

    fn __getitem__<'py>(&self, key: &Object<'py>) -> PyResult<Object<'py>> {
        let py = key.py();
        let count = self.received.count;
        if let Ok(name) = key.cast::<PyString>() {
            return self.column(py, name.to_str()?);
        }
        let columns = self.columns();
        let row = |row: Object<'py>| self.row(py, &columns, row.extract()?);
        // A range knows what an index or a slice stands for.
        match PyRange::new(py, 0, count as isize)?.get_item(key) {
            Ok(found) if found.is_instance_of::<PyRange>() => {
                let rows = found.try_iter()?.map(|found| row(found?));
                rows.collect::<PyResult<Vec<_>>>()?.into_bound_py_any(py)
            }
            Ok(found) => row(found),
            Err(error) if error.is_instance_of::<PyIndexError>(py) => {
                refuse!(PyIndexError, "row {key} of {count}")
            }
            Err(_) => {
                refuse!(PyTypeError, "rows must be indexed by int, slice or str, not {}", class_name(key))
            }
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        let py = slf.py();
        let rows = PyRange::new(py, 0, slf.get().received.count as isize)?;
        let map = py.import(intern!(py, "builtins"))?.getattr(intern!(py, "map"))?;
        map.call1((slf.getattr(intern!(py, "__getitem__"))?, rows))
    }

    fn __repr__(&self) -> String {
        let name = self.schema.get().name();
        format!("<Rows of {} {name}: {}>", self.received.count, self.names().join(", "))
    }

    #[allow(unsafe_code)] // The buffer protocol hands over addresses.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: the interpreter gives a Py_buffer or null. The layout points into the rows, which nothing changes or
        // moves while they are alive.
        unsafe { slf.get().layout.fill(slf.clone().into_any(), false, view, flags) }
    }
}

impl Rows {
    /// The bytes that the cells of these rows point into.
    pub(super) fn arena<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        view(py, self.received.clone(), Layout::of(self.received.arena.as_slice()))
    }
}

fn size_of_code(code: char) -> usize {
    match code {
        'Q' | 'd' => 8,
        'I' => 4,
        'H' => 2,
        _ => 1,
    }
}

/// Rows, and the arena that holds their strings, bytes and lists.
#[derive(Debug)]
pub(in crate::python) struct Received {
    rows: Vec<u8>,
    stride: usize,
    count: usize,
    format: Arc<CStr>,
    arena: Arc<Vec<u8>>,
    headed: bool,
}

impl Keeper for Received {
    fn arena(&self) -> Option<Layout> {
        Some(Layout::of(self.arena.as_slice()))
    }
}

impl Received {
    fn layout(&self) -> Layout {
        let Received { rows, stride, count, format, .. } = self;
        Layout::rows(rows.as_ptr() as usize, *count, *stride, *stride, CString::from(&**format).into())
    }

    /// The messages of one class that arrived in a tick.
    pub(in crate::python) fn new(schema: &Schema, table: Table, arena: Arc<Vec<u8>>) -> Self {
        let (stride, count) = (table.stride(), table.count());
        let format = schema.rows.format(&schema.fields.core, true);
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
        let dtype = schema.rows.dtype(py, &schema.fields.core, this.headed)?;
        let shape = PyTuple::new(py, [this.count])?;
        ndarray.bind(py).call1((shape, dtype, view))
    }
}

/// An array of rows that were read outside a tick, with the bytes that their cells point into.
pub(in crate::python) fn received_rows<'py>(
    schema: &Bound<'py, Schema>,
    rows: Vec<u8>,
    count: usize,
    arena: Vec<u8>,
) -> PyResult<Object<'py>> {
    let core = &schema.get().fields.core;
    let (format, stride) = (schema.get().rows.format(core, false), core.row_size());
    let received = Received { rows, stride, count, format, arena: Arc::new(arena), headed: false };
    Received::array(&Arc::new(received), schema)
}
