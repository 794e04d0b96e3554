//! The content of a sent chunk: bytes that Python holds, or a file.

use crate::python::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use sha2::{Digest, Sha256};

use super::transfer::short_hash;
use crate::driver::files::FileSource;
use crate::transport::chunks::{BytesSource, ContentHash, Offer, Source, Stored};
use pyo3::exceptions::PyBufferError;
use std::path::Path;

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
        if data.is_instance_of::<PyString>() {
            return Self::of_file(py, data.extract()?).inspect_err(|error| {
                let note = "a str is the path of a file: to send the text itself, give text.encode()";
                // Only a hint.
                _ = error.value(py).call_method1("add_note", (note,));
            });
        }
        if data.hasattr("__fspath__")? {
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

#[pyclass(frozen, module = "tickwire.transfer")]
#[derive(Debug)]
pub(crate) struct ReceivedChunk {
    client: Option<Py<PyAny>>,
    offer: Offer,
    stored: Stored,
}

impl ReceivedChunk {
    pub(in crate::python) fn new(client: Option<Py<PyAny>>, offer: Offer, stored: Stored) -> Self {
        ReceivedChunk { client, offer, stored }
    }

    fn bytes(&self) -> PyResult<&[u8]> {
        match &self.stored {
            Stored::Bytes(bytes) => Ok(bytes),
            Stored::File(path) | Stored::Reused(path) => {
                let path = path.display();
                Err(PyBufferError::new_err(format!("the chunk is not in memory but in the file {path}")))
            }
        }
    }
}

#[pymethods]
impl ReceivedChunk {
    properties! {
        client: Option<Py<PyAny>> = self.client.as_ref().map(|client| client.clone_ref(py));
        label: &str = &self.offer.label;
        size: u64 = self.offer.size;
        hash: Bound<'py, PyBytes> = PyBytes::new(py, &self.offer.hash);
        reused: bool = matches!(self.stored, Stored::Reused(_));
    }

    traverses!(self.client);

    #[getter]
    fn path(&self) -> Option<&Path> {
        match &self.stored {
            Stored::Bytes(_) => None,
            Stored::File(path) | Stored::Reused(path) => Some(path),
        }
    }

    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(slf.as_any())
    }

    #[allow(unsafe_code)] // The buffer protocol hands over addresses.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = slf.get().bytes()?;
        let (start, length) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as ffi::Py_ssize_t);
        // SAFETY: the interpreter gives a Py_buffer to fill. Its memory is read-only; nothing changes or moves it while
        // the chunk is alive, and the buffer keeps the chunk alive until it is released.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }

    fn __repr__(&self) -> String {
        let place = match &self.stored {
            Stored::Bytes(_) => String::new(),
            Stored::File(path) | Stored::Reused(path) => format!(" in {}", path.display()),
        };
        let Offer { label, size, hash, .. } = &self.offer;
        format!("<ReceivedChunk {label:?} of {size} bytes, {}{place}>", short_hash(hash))
    }
}
