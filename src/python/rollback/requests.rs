//! The requests that a rollback game gets: save, load, advance.

use crate::python::prelude::*;
use pyo3::types::PyMapping;

use crate::rollback::{MAX_FIELDS, hash};

#[pyclass(frozen, module = "tickwire.rollback")]
pub(crate) struct Save {
    #[pyo3(get)]
    pub(super) frame: u32,
    #[pyo3(get)]
    pub(super) checked: bool,
    pub(super) state: Mutex<Option<Py<PyAny>>>,
    pub(super) sums: Mutex<Option<Sums>>,
    checksum: Mutex<Option<Py<PyAny>>>,
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
                let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
                sums.values.push(sum_of(&value)?);
                sums.names.push(name);
            }
            sums.names.truncate(MAX_FIELDS);
            return Ok(sums);
        }
        Ok(Sums { names: vec!["state".into()], values: vec![sum_of(value)?] })
    }
}

fn sum_of(value: &Bound<'_, PyAny>) -> PyResult<u32> {
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
        "checksum must be an int, float, str, bytes or a buffer, or a mapping of names to such, not {class}"
    )))
}

impl Save {
    pub(super) fn new(frame: u32, checked: bool) -> Self {
        Save { frame, checked, state: Mutex::new(None), sums: Mutex::new(None), checksum: Mutex::new(None) }
    }
}

#[pymethods]
impl Save {
    properties! {
        state: Option<Py<PyAny>> = lock(&self.state).as_ref().map(|state| state.clone_ref(py));
        checksum: Option<Py<PyAny>> = lock(&self.checksum).as_ref().map(|value| value.clone_ref(py));
        __repr__: String = format!("<Save of frame {}>", self.frame);
    }

    #[setter]
    fn set_state(&self, value: Py<PyAny>) {
        // Dropping the old state may run code of the game, which may come back here: not under the lock.
        let before = lock(&self.state).replace(value);
        drop(before);
    }

    #[setter]
    fn set_checksum(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let sums = if value.is_none() { None } else { Some(Sums::of(value)?) };
        *lock(&self.sums) = sums;
        let before = lock(&self.checksum).replace(value.clone().unbind());
        drop(before);
        Ok(())
    }

    traverses!(self.state, self.checksum);

    fn __clear__(&self) {
        for held in [&self.state, &self.checksum] {
            let before = lock(held).take();
            drop(before);
        }
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
