//! The requests to run frames, with the players' inputs as objects.

use std::sync::atomic::AtomicU32;

use super::*;

/// Makes the requests to run frames.
pub(super) struct Frames {
    pub(super) kind: InputKind,
    /// Frames below this one run again.
    newest: AtomicU32,
}

impl Frames {
    pub(super) fn new(inputs: &Object<'_>) -> PyResult<Self> {
        Ok(Frames { kind: InputKind::new(inputs)?, newest: AtomicU32::new(0) })
    }

    /// Returns the request to run a frame. The masks are of players, of guesses and of the players that left. Hold no
    /// lock.
    pub(super) fn advance(
        &self,
        py: Python<'_>,
        frame: u32,
        inputs: &[CopiedInput],
        [players, guessed, left]: [u16; 3],
    ) -> PyResult<Py<PyAny>> {
        let inputs = inputs.iter().map(|input| self.kind.make(py, input)).collect::<PyResult<Vec<_>>>()?;
        let inputs = PyTuple::new(py, inputs)?.unbind();
        let again = frame < self.newest.fetch_max(frame + 1, Ordering::Relaxed);
        Ok(Py::new(py, Advance { frame, inputs, again, players, guessed, left })?.into_any())
    }
}

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct Advance {
    #[pyo3(get)]
    frame: u32,
    #[pyo3(get)]
    inputs: Py<PyTuple>,
    #[pyo3(get)]
    again: bool,
    /// A bit for each player, and for those whose input is guessed or who left.
    players: u16,
    guessed: u16,
    left: u16,
}

#[pymethods]
impl Advance {
    #[getter]
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let word = |player: usize| match () {
            () if self.left >> player & 1 == 1 => "left",
            () if self.guessed >> player & 1 == 1 => "guessed",
            () => "given",
        };
        PyTuple::new(py, members(self.players).map(word).collect::<Vec<_>>())
    }

    properties! {
        confirmed: bool = self.guessed == 0;
        __repr__: PyResult<String> =
            Ok(format!("<Advance frame {} on {}>", self.frame, self.inputs.bind(py).repr()?));
    }
}

/// A game or a test that makes requests.
pub(super) trait NextRequest: Send + Sync {
    /// The next request of the call; None after the last one.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>>;
}

/// The requests of one call of `advance`.
#[pyclass(frozen, module = "tickwire._core")]
pub(crate) struct Requests(pub(super) Box<dyn NextRequest>);

#[pymethods]
impl Requests {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.0.next(py)
    }
}

/// The bytes of a packet, if there is one.
pub(super) fn filled(fill: impl FnOnce(&mut BitWriter) -> bool) -> Option<Vec<u8>> {
    let mut writer = BitWriter::new();
    fill(&mut writer).then(|| writer.into_bytes())
}
