//! The sync test of rollback, for Python.

use super::*;

use crate::python::checks::wrong;
use crate::rollback::{self as core, MAX_WINDOW, ReplayStep};

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct SyncTest {
    frames: Frames,
    states: States,
    players: usize,
    inner: Mutex<Inner>,
}

struct Inner {
    test: core::SyncTest,
    steps: Vec<ReplayStep>,
    given: usize,
}

impl SyncTest {
    /// The next request for the game itself.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            self.states.ask(py, intern!(py, "finish_comparison"), ())?;
            let step = {
                let mut inner = lock(&self.inner);
                let Some(step) = inner.steps.get(inner.given).copied() else { return Ok(None) };
                inner.given += 1;
                step
            };
            let made = match step {
                ReplayStep::Advance(frame) => {
                    let input = |player| copied(lock(&self.inner).test.input(player, frame));
                    let inputs: Vec<_> = (0..self.players).map(input).collect();
                    let players = u16::MAX >> (MAX_PLAYERS - self.players);
                    Some(self.frames.advance(py, frame, &inputs, [players, 0, 0])?)
                }
                ReplayStep::Save(frame) => self.states.ask(py, intern!(py, "save"), (frame, false))?,
                ReplayStep::Load(frame) => self.states.ask(py, intern!(py, "load"), (frame,))?,
                ReplayStep::Compare(frame) => self.states.ask(py, intern!(py, "compare"), (frame,))?,
            };
            if made.is_some() {
                return Ok(made);
            }
        }
    }
}

impl NextRequest for Py<SyncTest> {
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.get().next(py)
    }
}

#[pymethods]
impl SyncTest {
    #[new]
    fn new(
        inputs: &Object<'_>,
        #[within(1, MAX_PLAYERS)] players: usize,
        #[within(1, MAX_WINDOW)] back: u32,
        state: Option<&Object<'_>>,
        #[callable] save: Option<Py<PyAny>>,
        #[callable] load: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let frames = Frames::new(inputs)?;
        let test = core::SyncTest::new(players, &frames.kind.shape, back);
        let states = States::new(inputs.py(), state, [save, load, None], test.states(), true)?;
        let inner = Inner { test, steps: Vec::with_capacity(128), given: 0 };
        Ok(SyncTest { frames, states, players, inner: Mutex::new(inner) })
    }

    fn advance(slf: Bound<'_, Self>, inputs: &Object<'_>) -> PyResult<Requests> {
        let this = slf.get();
        let mut encoded = Vec::new();
        for input in inputs.try_iter().map_err(|error| wrong("inputs", inputs, "a sequence", error))? {
            let mut writer = BitWriter::new();
            this.frames.kind.write(&input?, &mut writer)?;
            encoded.push((writer.bit_len(), writer.into_bytes()));
        }
        let mut guard = lock(&this.inner);
        let inner = &mut *guard;
        if encoded.len() != this.players {
            let (players, count) = (this.players, encoded.len());
            refuse!(PyValueError, "inputs must have one input per player ({players}), not {count}");
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
        Ok(Requests(Box::new(slf.unbind())))
    }

    properties! {
        frame: u32 = lock(&self.inner).test.frame();
        __repr__: String = format!("<SyncTest at frame {}>", self.frame());
    }

    traverses!(self.states);
}
