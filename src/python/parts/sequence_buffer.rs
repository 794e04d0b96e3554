//! The sequence buffer, of Python objects.

use crate::python::prelude::*;

use crate::store;
use crate::store::sequence::{ahead, unwrap};

#[pyclass(frozen, generic, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct SequenceBuffer {
    capacity: usize,
    state: Mutex<SequenceBufferState>,
}

/// Objects that leave the state are dropped after the lock is released: that can run their `__del__`, which may come
/// back here.
#[derive(Debug)]
struct SequenceBufferState {
    values: store::SequenceBuffer<Py<PyAny>>,
    /// Whether the window has ever moved.
    begun: bool,
}

#[pymethods]
impl SequenceBuffer {
    #[new]
    fn new(capacity: &Bound<'_, PyAny>) -> PyResult<Self> {
        let refused = || {
            let complaint = format!("capacity must be a power of two, 1 to 32768, not {capacity}");
            PyValueError::new_err(complaint)
        };
        let capacity = bounded("capacity", capacity, 1, 32_768).map_err(|error| {
            if error.is_instance_of::<PyValueError>(capacity.py()) { refused() } else { error }
        })?;
        if !store::SequenceBuffer::<Py<PyAny>>::valid_capacity(capacity) {
            return Err(refused());
        }
        Ok(SequenceBuffer { capacity, state: Mutex::new(SequenceBufferState::new(capacity)) })
    }

    properties! {
        capacity: usize = self.capacity;
        __len__: usize = lock(&self.state).sequences().count();
        __repr__: String = format!("<SequenceBuffer of {} in {}>", self.__len__(), self.capacity);
    }

    #[getter]
    fn newest(&self) -> Option<u16> {
        let state = lock(&self.state);
        state.begun.then(|| state.newest() as u16)
    }

    fn is_stale(&self, #[within(0, u16::MAX)] sequence: u16) -> bool {
        let state = lock(&self.state);
        state.values.stale(state.full(sequence))
    }

    fn insert(&self, #[within(0, u16::MAX)] sequence: u16, value: Py<PyAny>) -> bool {
        let mut state = lock(&self.state);
        let sequence = state.full(sequence);
        let mut passed = state.advance(sequence);
        passed.extend(state.values.remove(sequence));
        let refused = state.values.insert(sequence, value).err();
        drop(state);
        refused.is_none()
    }

    fn advance(&self, #[within(0, u16::MAX)] sequence: u16) {
        let mut state = lock(&self.state);
        let sequence = state.full(sequence);
        let passed = state.advance(sequence);
        drop(state);
        drop(passed);
    }

    #[pyo3(signature = (sequence, default = None, /))]
    fn get(
        &self,
        py: Python<'_>,
        #[within(0, u16::MAX)] sequence: u16,
        default: Option<Py<PyAny>>,
    ) -> Option<Py<PyAny>> {
        let state = lock(&self.state);
        let found = state.values.get(state.full(sequence)).map(|value| value.clone_ref(py));
        drop(state);
        found.or(default)
    }

    #[pyo3(signature = (sequence, default = None, /))]
    fn remove(&self, #[within(0, u16::MAX)] sequence: u16, default: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
        let mut state = lock(&self.state);
        let sequence = state.full(sequence);
        let removed = state.values.remove(sequence);
        drop(state);
        removed.or(default)
    }

    fn reset(&self) {
        let _emptied = std::mem::replace(&mut *lock(&self.state), SequenceBufferState::new(self.capacity));
    }

    fn __getitem__(&self, py: Python<'_>, #[within(0, u16::MAX)] sequence: u16) -> PyResult<Py<PyAny>> {
        self.get(py, sequence, None).ok_or_else(|| PyKeyError::new_err(sequence))
    }

    fn __delitem__(&self, #[within(0, u16::MAX)] sequence: u16) -> PyResult<()> {
        self.remove(sequence, None).map(drop).ok_or_else(|| PyKeyError::new_err(sequence))
    }

    fn __contains__(&self, #[within(0, u16::MAX)] sequence: u16) -> bool {
        let state = lock(&self.state);
        state.values.contains(state.full(sequence))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let sequences: Vec<u16> = lock(&self.state).sequences().map(|sequence| sequence as u16).collect();
        sequences.into_pyobject(py)?.try_iter()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A locked mutex is in use, so its objects are reachable anyway.
        let Ok(state) = self.state.try_lock() else { return Ok(()) };
        state.sequences().filter_map(|s| state.values.get(s)).try_for_each(|value| visit.call(value))
    }

    fn __clear__(&self) {
        self.reset();
    }
}

impl SequenceBufferState {
    fn new(capacity: usize) -> Self {
        SequenceBufferState { values: store::SequenceBuffer::new(capacity), begun: false }
    }

    /// The newest sequence of the window.
    fn newest(&self) -> u64 {
        self.values.next().wrapping_sub(1)
    }

    /// The 64-bit sequence with these low bits that is nearest to the window's newest.
    fn full(&self, sequence: u16) -> u64 {
        unwrap(sequence.into(), 16, self.newest())
    }

    /// Moves the window up to `sequence`; returns the objects that fall out of it.
    fn advance(&mut self, sequence: u64) -> Vec<Py<PyAny>> {
        let skipped = ahead(sequence, self.newest());
        if skipped <= 0 {
            return Vec::new();
        }
        let skipped = skipped as usize;
        let passed = self.window().take(skipped).collect::<Vec<_>>();
        let passed = passed.into_iter().filter_map(|s| self.values.remove(s)).collect();
        self.values.advance(sequence);
        self.begun = true;
        passed
    }

    /// The sequences that have a value, oldest first.
    fn sequences(&self) -> impl Iterator<Item = u64> {
        self.window().filter(|sequence| self.values.contains(*sequence))
    }

    fn window(&self) -> impl Iterator<Item = u64> + use<> {
        let capacity = self.values.capacity() as u64;
        let oldest = self.values.next().wrapping_sub(capacity);
        (0..capacity).map(move |i| oldest.wrapping_add(i))
    }
}
