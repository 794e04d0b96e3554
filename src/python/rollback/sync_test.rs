//! The sync test of rollback, for Python.

use crate::python::prelude::*;

use super::acts::{Acts, state_of};
use super::inputs::InputKind;
use super::requests::{RequestSource, Requests, Save};
use super::states::{StateKind, differing};
use crate::python::arguments::wrong;
use crate::rollback::{self as core, GameInput, MAX_PLAYERS, MAX_WINDOW, ReplayStep};

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct SyncTest {
    acts: Acts,
    inner: Mutex<TestInner>,
}

struct TestInner {
    test: core::SyncTest,
    steps: Vec<ReplayStep>,
    given: usize,
    /// The frame to compare, with its request.
    compare: Option<(u32, Py<Save>)>,
    players: usize,
}

fn differs(frame: u32, fields: &[String]) -> PyErr {
    SyncTestError::new_err((frame, fields.to_vec()))
}

impl SyncTest {
    /// Compares the state that the game saved again.
    fn judge(&self, py: Python<'_>) -> PyResult<()> {
        let Some((frame, again)) = lock(&self.inner).compare.take() else { return Ok(()) };
        let Some(before) = self.acts.saved(py, frame) else { return Ok(()) };
        let (again, before) = (state_of(py, &again, frame)?, state_of(py, &before, frame)?);
        let fields = differing(before.bind(py), again.bind(py))?;
        if fields.is_empty() { Ok(()) } else { Err(differs(frame, &fields)) }
    }

    /// Compares arrays with those saved before a frame, or asks the game to save again.
    fn compare(&self, py: Python<'_>, frame: u32) -> PyResult<Option<Py<PyAny>>> {
        match self.acts.differences(frame) {
            Some(fields) if fields.is_empty() => Ok(None),
            Some(fields) => Err(differs(frame, &fields)),
            None => {
                let request = Py::new(py, Save::new(frame, false))?;
                let before = lock(&self.inner).compare.replace((frame, request.clone_ref(py)));
                drop(before);
                self.acts.fill(py, request)
            }
        }
    }

    /// The next request for the game itself.
    pub(super) fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            self.judge(py)?;
            let step = {
                let mut inner = lock(&self.inner);
                let Some(step) = inner.steps.get(inner.given).copied() else { return Ok(None) };
                inner.given += 1;
                step
            };
            let made = match step {
                ReplayStep::Advance(frame) => {
                    let (row, players) = {
                        let TestInner { test, players, .. } = &*lock(&self.inner);
                        let inputs = (0..*players).map(|player| test.input(player, frame));
                        (self.acts.find(py, inputs), u16::MAX >> (MAX_PLAYERS - players))
                    };
                    Some(self.acts.advance(py, frame, row, [players, 0, 0])?)
                }
                ReplayStep::Save(frame) => self.acts.save(py, frame, false)?,
                ReplayStep::Load(frame) => self.acts.load(py, frame)?,
                ReplayStep::Compare(frame) => self.compare(py, frame)?,
            };
            if made.is_some() {
                return Ok(made);
            }
        }
    }
}

#[pymethods]
impl SyncTest {
    #[new]
    fn new(
        inputs: &Bound<'_, PyAny>,
        #[within(1, MAX_PLAYERS)] players: usize,
        #[within(1, MAX_WINDOW)] back: u32,
        state: Option<&Bound<'_, PyAny>>,
        #[callable] save: Option<Py<PyAny>>,
        #[callable] load: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let kind = InputKind::new(inputs)?;
        let states = StateKind::new(state, save, load, None)?;
        let test = core::SyncTest::new(players, &kind.shape(), back);
        let count = test.states();
        let inner = TestInner { test, steps: Vec::with_capacity(128), given: 0, compare: None, players };
        Ok(SyncTest { acts: Acts::new(kind, states, count, players), inner: Mutex::new(inner) })
    }

    fn advance(slf: Bound<'_, Self>, inputs: &Bound<'_, PyAny>) -> PyResult<Requests> {
        let this = slf.get();
        let mut encoded = Vec::new();
        for input in inputs.try_iter().map_err(|error| wrong("inputs", inputs, "a sequence", error))? {
            let mut writer = BitWriter::new();
            this.acts.kind.write(&input?, &mut writer)?;
            encoded.push((writer.bit_len(), writer.into_bytes()));
        }
        let mut guard = lock(&this.inner);
        let inner = &mut *guard;
        if encoded.len() != inner.players {
            let (players, count) = (inner.players, encoded.len());
            refuse!(PyValueError, "inputs must have one of each player ({players}), not {count}");
        }
        if inner.given != inner.steps.len() {
            return Err(PyRuntimeError::new_err(
                "advance() must be run through to its end before it is called again: for request in test.advance(inputs)",
            ));
        }
        for (player, (bits, bytes)) in encoded.iter().enumerate() {
            inner.test.give(player, GameInput { bytes, bits: *bits });
        }
        inner.test.advance(&mut inner.steps);
        inner.given = 0;
        drop(guard);
        Ok(Requests(RequestSource::Test(slf.unbind())))
    }

    properties! {
        frame: u32 = lock(&self.inner).test.frame();
        __repr__: String = format!("<SyncTest at frame {}>", lock(&self.inner).test.frame());
    }
}
