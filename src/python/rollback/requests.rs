//! The requests that a rollback game gets: save, load, advance.

use super::*;

use crate::rollback::{MAX_FIELDS, hash};

#[pyclass(frozen, module = "tickwire.rollback")]
pub(crate) struct Save {
    #[pyo3(get)]
    pub(super) frame: u32,
    #[pyo3(get)]
    pub(super) checked: bool,
    pub(super) state: ObjectCell,
    pub(super) sums: Mutex<Option<Sums>>,
    checksum: ObjectCell,
}

/// A state's checksums by field.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) names: Vec<String>,
    pub(super) values: Vec<u32>,
}

impl Sums {
    /// Reads one value, or a mapping of names to values.
    pub(super) fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(mapping) = value.cast::<PyMapping>() {
            let mut sums = Sums::default();
            for item in mapping.items()?.iter() {
                let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
                let Ok(name) = name.extract::<String>() else {
                    refuse!(PyTypeError, "checksum must have keys of str, not {}", name.get_type().name()?);
                };
                sums.values.push(sum_of(&value, &format!("checksum[\"{name}\"]"))?);
                sums.names.push(name);
            }
            sums.names.truncate(MAX_FIELDS);
            return Ok(sums);
        }
        Ok(Sums { names: vec!["state".into()], values: vec![sum_of(value, "checksum")?] })
    }
}

fn sum_of(value: &Bound<'_, PyAny>, shown: &str) -> PyResult<u32> {
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyString>() {
        return Ok(hash(1, value.str()?.to_str()?.as_bytes()));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(hash(2, &number.value().to_bits().to_le_bytes()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(hash(3, bytes.as_bytes()));
    }
    if let Ok(raw) = Raw::get(value, pyo3::ffi::PyBUF_FULL_RO) {
        let mut bytes = Vec::new();
        raw.append_to(value.py(), &mut bytes)?;
        return Ok(hash(3, &bytes));
    }
    let class = value.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!(
        "{shown} must be an int, float, str, bytes or a buffer, or a mapping of names to such, not {class}"
    )))
}

impl Save {
    pub(super) fn new(frame: u32, checked: bool) -> Self {
        Save {
            frame,
            checked,
            state: ObjectCell::default(),
            sums: Mutex::default(),
            checksum: ObjectCell::default(),
        }
    }
}

#[pymethods]
impl Save {
    properties! {
        state: Option<Py<PyAny>> = self.state.get(py);
        checksum: Option<Py<PyAny>> = self.checksum.get(py);
        __repr__: String = format!("<Save of frame {}>", self.frame);
    }

    #[setter]
    fn set_state(&self, value: Py<PyAny>) {
        self.state.set(Some(value));
    }

    #[setter]
    fn set_checksum(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let sums = if value.is_none() { None } else { Some(Sums::of(value)?) };
        *lock(&self.sums) = sums;
        self.checksum.set(Some(value.clone().unbind()));
        Ok(())
    }

    traverses!(self.state, self.checksum);

    fn __clear__(&self) {
        self.state.set(None);
        self.checksum.set(None);
    }
}

#[pyclass(frozen, module = "tickwire.rollback")]
pub(crate) struct Load {
    #[pyo3(get)]
    pub(super) frame: u32,
    #[pyo3(get)]
    pub(super) state: Option<Py<PyAny>>,
}

#[pymethods]
impl Load {
    properties! {
        __repr__: String = format!("<Load of frame {}>", self.frame);
    }
}

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct Advance {
    #[pyo3(get)]
    pub(super) frame: u32,
    #[pyo3(get)]
    pub(super) inputs: Py<PyTuple>,
    #[pyo3(get)]
    pub(super) again: bool,
    pub(super) players: u16,
    pub(super) guessed: u16,
    pub(super) left: u16,
}

#[pymethods]
impl Advance {
    #[getter]
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut words = Vec::with_capacity(16);
        for player in (0..16).filter(|player| self.players >> player & 1 == 1) {
            words.push(match () {
                () if self.left >> player & 1 == 1 => "left",
                () if self.guessed >> player & 1 == 1 => "guessed",
                () => "given",
            });
        }
        PyTuple::new(py, words)
    }

    properties! {
        confirmed: bool = self.guessed == 0;
        __repr__: PyResult<String> =
            Ok(format!("<Advance frame {} on {}>", self.frame, self.inputs.bind(py).repr()?));
    }
}

/// The requests of one call of `advance`.
#[pyclass(frozen, module = "tickwire._core")]
pub(crate) struct Requests(pub(super) RequestSource);

pub(super) enum RequestSource {
    Game(Py<Rollback>),
    Test(Py<SyncTest>),
}

#[pymethods]
impl Requests {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match &self.0 {
            RequestSource::Game(game) => game.get().next(py),
            RequestSource::Test(test) => test.get().next(py),
        }
    }
}
