//! The content of a sent chunk: bytes that Python holds, or a file.

use crate::python::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use sha2::{Digest, Sha256};

use super::progress::short_hash;
use crate::driver::files::FileSource;
use crate::transport::chunks::{BytesSource, ContentHash, Source};

/// Below this size, hashing takes less time than detaching from the interpreter: some 50 microseconds.
const HASHED_ATTACHED: usize = 64 * 1024;

#[pyclass(frozen, module = "tickwire.transfer")]
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(super) hash: ContentHash,
    pub(super) size: u64,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Bytes(Arc<PyBackedBytes>),
    File(FileSource),
}

#[pymethods]
impl Chunk {
    #[new]
    fn new(data: &Object<'_>) -> PyResult<Self> {
        let py = data.py();
        // Only exact bytes are kept: others may change, and a subclass may run code when it is freed.
        if let Ok(bytes) = data.cast_exact::<PyBytes>() {
            return Ok(Self::of_bytes(py, bytes.clone().into()));
        }
        if data.is_instance_of::<PyString>() || data.hasattr("__fspath__")? {
            return Self::of_file(py, data.extract()?);
        }
        let Ok(view) = PyMemoryView::from(data) else {
            let kind = data.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "data must be bytes, another contiguous buffer, or the path of a file, not {kind}"
            )));
        };
        if !view.getattr("c_contiguous")?.is_truthy()? {
            return Err(PyValueError::new_err("data must be a contiguous buffer: bytes(data) makes one"));
        }
        let copy = view.call_method0("tobytes")?.cast_into::<PyBytes>()?;
        Ok(Self::of_bytes(py, copy.into()))
    }

    properties! {
        size: u64 = self.size;
        hash: Bound<'py, PyBytes> = PyBytes::new(py, &self.hash);
        __repr__: String = format!("<Chunk of {} bytes, {}>", self.size, short_hash(&self.hash));
    }

    #[getter]
    fn path(&self) -> Option<PathBuf> {
        match &self.content {
            Content::Bytes(_) => None,
            Content::File(file) => Some(file.path().to_owned()),
        }
    }
}

impl Chunk {
    /// Reads the content to send: a chunk, or the data to make one of.
    pub(in crate::python) fn given(data: &Object<'_>) -> PyResult<Self> {
        data.cast::<Chunk>().map_or_else(|_| Self::new(data), |chunk| Ok(chunk.get().clone()))
    }

    fn of_bytes(py: Python<'_>, bytes: PyBackedBytes) -> Self {
        let data: &[u8] = &bytes;
        let hash = || Sha256::digest(data).into();
        let hash = if data.len() <= HASHED_ATTACHED { hash() } else { py.detach(hash) };
        Chunk { hash, size: data.len() as u64, content: Content::Bytes(Arc::new(bytes)) }
    }

    fn of_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| FileSource::open(&path));
        let (file, hash) = opened.map_err(|error| file_error(py, &error, &path))?;
        Ok(Chunk { hash, size: file.size(), content: Content::File(file) })
    }

    pub(super) fn source(&self) -> Box<dyn Source> {
        match &self.content {
            Content::Bytes(bytes) => Box::new(BytesSource(bytes.clone())),
            Content::File(file) => Box::new(file.clone()),
        }
    }
}
