//! The NumPy types of a class's rows.

use crate::python::prelude::*;
use pyo3::exceptions::{PyImportError, PyModuleNotFoundError};

use crate::endpoint::{HEAD, HEAD_BYTES, stride};
use crate::wire::{Node, Schema};

/// The NumPy types and `struct` formats of a class's rows, made on demand: without heads, and with heads.
#[derive(Debug, Default)]
pub(super) struct RowTypes {
    types: [OnceLock<Py<PyAny>>; 2],
    formats: [OnceLock<Arc<CStr>>; 2],
    /// The types of lists' items and unions' members.
    parts: OnceLock<Vec<Py<PyAny>>>,
}

/// A class of NumPy; None if NumPy is not installed.
pub(super) fn numpy<'py>(py: Python<'py>, class: &str) -> PyResult<Option<Object<'py>>> {
    match py.import("numpy") {
        Ok(numpy) => numpy.getattr(class).map(Some),
        Err(error) if error.is_instance_of::<PyModuleNotFoundError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

impl RowTypes {
    /// The type of rows.
    pub(super) fn dtype<'py>(&self, py: Python<'py>, schema: &Schema, headed: bool) -> PyResult<Object<'py>> {
        let made = &self.types[usize::from(headed)];
        if let Some(dtype) = made.get() {
            return Ok(dtype.bind(py).clone());
        }
        let dtype = numpy(py, "dtype")?.ok_or_else(|| {
            PyImportError::new_err(
                "NumPy is not installed: pip install numpy, or use tickwire.columns.row_format",
            )
        })?;
        let spec = if headed { RecordFields::with_head(schema) } else { RecordFields::of(schema) };
        // Two threads may both make it; the first one's is shared.
        let dtype = dtype.call1((spec,))?.unbind();
        Ok(made.get_or_init(|| dtype).bind(py).clone())
    }

    /// The types of the arena's contents, except strings and bytes.
    pub(super) fn parts<'py>(&self, py: Python<'py>, schema: &Schema) -> PyResult<Vec<Object<'py>>> {
        if self.parts.get().is_none() {
            let Some(dtype) = numpy(py, "dtype")? else { return Ok(Vec::new()) };
            let mut formats = Vec::new();
            schema.fields().iter().for_each(|field| parts(field.node(), &mut formats));
            let types = formats.into_iter().map(|format| Ok(dtype.call1((format,))?.unbind()));
            let types = types.collect::<PyResult<Vec<_>>>()?;
            // Two threads may both make them.
            let _ = self.parts.set(types);
        }
        Ok(self.parts.get().into_iter().flatten().map(|dtype| dtype.bind(py).clone()).collect())
    }

    /// The `struct` format of rows.
    pub(super) fn format(&self, schema: &Schema, headed: bool) -> Arc<CStr> {
        let format = || if headed { headed_format(schema) } else { schema.row_format() };
        let made = &self.formats[usize::from(headed)];
        made.get_or_init(|| CString::new(format()).unwrap_or_default().into()).clone()
    }
}

/// A type as NumPy takes it: its name, or the fields of a record.
#[derive(IntoPyObject)]
pub(super) enum Format {
    Name(String),
    Record(RecordFields),
}

/// The fields of a record, as NumPy takes them.
#[derive(Default, IntoPyObject)]
pub(super) struct RecordFields {
    names: Vec<String>,
    formats: Vec<Format>,
    offsets: Vec<usize>,
    itemsize: usize,
}

impl RecordFields {
    fn new(itemsize: usize) -> Self {
        RecordFields { itemsize, ..RecordFields::default() }
    }

    fn with(mut self, name: impl Into<String>, format: Format, offset: usize) -> Self {
        self.names.push(name.into());
        self.formats.push(format);
        self.offsets.push(offset);
        self
    }

    fn with_fields(self, schema: &Schema, at: usize) -> Self {
        let fields = schema.fields().iter();
        fields.fold(self, |it, field| it.with(field.name(), format(field.node()), at + field.offset()))
    }

    fn of(schema: &Schema) -> Self {
        RecordFields::new(schema.row_size()).with_fields(schema, 0)
    }

    fn with_head(schema: &Schema) -> Self {
        let columns = HEAD.iter().zip(head_names(schema));
        let head = columns.fold(RecordFields::new(stride(schema.row_size())), |it, (column, name)| {
            it.with(name, Format::Name(column.dtype.into()), column.offset)
        });
        head.with_fields(schema, HEAD_BYTES)
    }
}

/// The names of the heads' columns. Where the class has such a field, the column gets underscores.
pub(super) fn head_names(schema: &Schema) -> impl Iterator<Item = String> {
    HEAD.iter().map(|column| {
        let mut name = column.name.to_owned();
        while schema.fields().iter().any(|field| field.name() == name) {
            name.push('_');
        }
        name
    })
}

/// The type of a node's cell.
pub(super) fn format(node: &Node) -> Format {
    match node {
        Node::Leaf(leaf) => Format::Name(leaf.column().dtype().into_owned()),
        Node::Optional(optional) => {
            let (item, present) = (format(optional.item()), Format::Name("?".into()));
            let record = RecordFields::new(node.size()).with("value", item, 0);
            Format::Record(record.with("present", present, optional.item().size()))
        }
        // The offset and count in the arena.
        Node::List(_) | Node::Sparse(_) | Node::Union(_) => Format::Name("(2,)<u4".into()),
        Node::Nested(schema) => Format::Record(RecordFields::of(schema)),
    }
}

/// Adds the types of what a node has in the arena.
fn parts(node: &Node, formats: &mut Vec<Format>) {
    match node {
        Node::Leaf(_) => {}
        Node::Optional(optional) => parts(optional.item(), formats),
        Node::List(list) => {
            formats.push(format(list.item()));
            parts(list.item(), formats);
        }
        Node::Sparse(sparse) => {
            let entry = RecordFields::new(sparse.stride()).with("slot", Format::Name("<u4".into()), 0);
            formats.push(Format::Record(entry.with("value", format(sparse.item()), sparse.item_at())));
            parts(sparse.item(), formats);
        }
        Node::Union(union) => union.variants().iter().for_each(|variant| {
            formats.push(format(variant));
            parts(variant, formats);
        }),
        Node::Nested(schema) => schema.fields().iter().for_each(|field| parts(field.node(), formats)),
    }
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
