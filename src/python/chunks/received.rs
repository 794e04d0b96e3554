//! Received chunks.

use std::path::Path;

use crate::python::prelude::*;
use pyo3::exceptions::PyBufferError;

use super::progress::short_hash;
use crate::transport::chunks::{Offer, Stored};

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
