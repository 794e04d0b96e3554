//! The NumPy types of a class's rows.

use crate::python::prelude::*;
use pyo3::exceptions::{PyImportError, PyModuleNotFoundError};

use crate::endpoint::{HEAD, HEAD_BYTES, stride};
use crate::wire::{Node, Schema};

/// The NumPy types of a class's rows, made on demand.
#[derive(Debug, Default)]
pub(in crate::python) struct RowTypes {
    bare: OnceLock<Py<PyAny>>,
    headed: OnceLock<Py<PyAny>>,
    /// The types of lists' items and unions' members.
    parts: OnceLock<Vec<Py<PyAny>>>,
    bare_format: OnceLock<Arc<CStr>>,
    headed_format: OnceLock<Arc<CStr>>,
}

/// A class of NumPy; None if NumPy is not installed.
pub(in crate::python) fn numpy<'py>(py: Python<'py>, class: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    match py.import("numpy") {
        Ok(numpy) => numpy.getattr(class).map(Some),
        Err(error) if error.is_instance_of::<PyModuleNotFoundError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

impl RowTypes {
    /// The type of rows without heads.
    pub(super) fn dtype<'py>(&self, py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyAny>> {
        once(py, &self.bare, || row(py, schema))
    }

    /// The type of rows with heads.
    pub(super) fn headed<'py>(&self, py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyAny>> {
        once(py, &self.headed, || headed(py, schema))
    }

    /// The types of the arena's contents, except strings and bytes.
    pub(super) fn parts<'py>(&self, py: Python<'py>, schema: &Schema) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if self.parts.get().is_none() {
            let Some(dtype) = numpy(py, "dtype")? else { return Ok(Vec::new()) };
            let mut specs = Vec::new();
            schema.fields().iter().try_for_each(|field| parts(py, field.node(), &mut specs))?;
            let types = specs.into_iter().map(|spec| Ok(dtype.call1((spec,))?.unbind()));
            let types = types.collect::<PyResult<Vec<_>>>()?;
            // Two threads may both make them.
            let _ = self.parts.set(types);
        }
        Ok(self.parts.get().into_iter().flatten().map(|dtype| dtype.bind(py).clone()).collect())
    }

    /// The `struct` format of rows without heads.
    pub(super) fn format(&self, schema: &Schema) -> Arc<CStr> {
        self.bare_format.get_or_init(|| text(schema.row_format())).clone()
    }

    /// The `struct` format of rows with heads.
    pub(super) fn headed_format(&self, schema: &Schema) -> Arc<CStr> {
        self.headed_format.get_or_init(|| text(headed_format(schema))).clone()
    }
}

fn once<'py>(
    py: Python<'py>,
    made: &OnceLock<Py<PyAny>>,
    spec: impl FnOnce() -> PyResult<Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(dtype) = made.get() {
        return Ok(dtype.bind(py).clone());
    }
    let dtype = numpy(py, "dtype")?.ok_or_else(|| {
        PyImportError::new_err(
            "NumPy is not installed: pip install numpy, or use tickwire.columns.row_format",
        )
    })?;
    // Two threads may both make it; the first one's is shared.
    let dtype = dtype.call1((spec()?,))?.unbind();
    Ok(made.get_or_init(|| dtype).bind(py).clone())
}

/// Names, formats and offsets, for `numpy.dtype`.
#[derive(Default)]
struct Fields<'py> {
    names: Vec<String>,
    formats: Vec<Bound<'py, PyAny>>,
    offsets: Vec<usize>,
}

impl<'py> Fields<'py> {
    fn push(&mut self, name: String, format: Bound<'py, PyAny>, offset: usize) {
        self.names.push(name);
        self.formats.push(format);
        self.offsets.push(offset);
    }

    fn push_all(&mut self, py: Python<'py>, schema: &Schema, at: usize) -> PyResult<()> {
        for field in schema.fields() {
            self.push(field.name().into(), format(py, field.node())?, at + field.offset());
        }
        Ok(())
    }

    fn spec(self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyDict>> {
        let spec = PyDict::new(py);
        spec.set_item("names", self.names)?;
        spec.set_item("formats", self.formats)?;
        spec.set_item("offsets", self.offsets)?;
        spec.set_item("itemsize", size)?;
        Ok(spec)
    }
}

fn row<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyDict>> {
    let mut fields = Fields::default();
    fields.push_all(py, schema, 0)?;
    fields.spec(py, schema.row_size())
}

/// The names of a head's columns, with an underscore appended if the class has such a field.
pub(super) fn head_names(schema: &Schema) -> impl Iterator<Item = String> {
    HEAD.iter().map(|column| {
        let mut name = column.name.to_owned();
        while schema.fields().iter().any(|field| field.name() == name) {
            name.push('_');
        }
        name
    })
}

fn headed<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyDict>> {
    let mut fields = Fields::default();
    for (column, name) in HEAD.iter().zip(head_names(schema)) {
        fields.push(name, PyString::new(py, column.dtype).into_any(), column.offset);
    }
    fields.push_all(py, schema, HEAD_BYTES)?;
    fields.spec(py, stride(schema.row_size()))
}

fn format<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyAny>> {
    Ok(match node {
        Node::Leaf(leaf) => PyString::new(py, &leaf.column().dtype()).into_any(),
        Node::Optional(optional) => {
            let mut fields = Fields::default();
            fields.push("value".into(), format(py, optional.item())?, 0);
            fields.push("present".into(), PyString::new(py, "?").into_any(), optional.item().size());
            fields.spec(py, node.size())?.into_any()
        }
        // The offset and count in the arena.
        Node::List(_) | Node::Sparse(_) | Node::Union(_) => PyString::new(py, "(2,)<u4").into_any(),
        Node::Nested(schema) => row(py, schema)?.into_any(),
    })
}

/// The format of a cell, for `numpy.dtype`.
pub(in crate::python) fn cell_format<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyAny>> {
    format(py, node)
}

fn parts<'py>(py: Python<'py>, node: &Node, specs: &mut Vec<Bound<'py, PyAny>>) -> PyResult<()> {
    match node {
        Node::Leaf(_) => Ok(()),
        Node::Optional(optional) => parts(py, optional.item(), specs),
        Node::List(list) => {
            specs.push(format(py, list.item())?);
            parts(py, list.item(), specs)
        }
        Node::Sparse(sparse) => {
            let mut entry = Fields::default();
            entry.push("slot".into(), PyString::new(py, "<u4").into_any(), 0);
            entry.push("value".into(), format(py, sparse.item())?, sparse.item_at());
            specs.push(entry.spec(py, sparse.stride())?.into_any());
            parts(py, sparse.item(), specs)
        }
        Node::Union(union) => union.variants().iter().try_for_each(|variant| {
            specs.push(format(py, variant)?);
            parts(py, variant, specs)
        }),
        Node::Nested(schema) => schema.fields().iter().try_for_each(|field| parts(py, field.node(), specs)),
    }
}

/// A format, which has no NUL.
fn text(format: String) -> Arc<CStr> {
    CString::new(format).unwrap_or_default().into()
}

fn headed_format(schema: &Schema) -> String {
    let mut codes = String::from("<");
    let mut end = 0;
    for column in HEAD {
        codes.push(column.code);
        end = column.offset + 1;
    }
    // The last column is a byte.
    let row = schema.row_format();
    let rest = stride(schema.row_size()) - HEAD_BYTES - schema.row_size();
    format!("{codes}{}x{}{rest}x", HEAD_BYTES - end, row.trim_start_matches('<'))
}
