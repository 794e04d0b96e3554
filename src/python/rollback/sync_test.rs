//! The sync test of rollback, for Python.

use crate::python::prelude::*;

use super::inputs::{InputKind, InputObjects};
use super::requests::{Advance, Load, Save};
use super::states::{StateKind, differing};
use crate::python::arguments::wrong;
use crate::python::errors::SyncTestError;
use crate::rollback::{self as core, GameInput, MAX_PLAYERS, MAX_WINDOW, ReplayStep, StateRing};
use crate::wire::BitWriter;

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct SyncTest {
    kind: InputKind,
    states: StateKind,
    inner: Mutex<TestInner>,
}

struct TestInner {
    test: core::SyncTest,
    ring: StateRing,
    saved: Vec<Option<Py<Save>>>,
    objects: InputObjects,
    steps: Vec<ReplayStep>,
    given: usize,
    newest: u32,
    /// The frame to compare, with its request.
    compare: Option<(u32, Py<Save>)>,
    players: usize,
}

fn differs(frame: u32, fields: &[String]) -> PyErr {
    SyncTestError::new_err((frame, fields.to_vec()))
}

impl SyncTest {
    fn state_of(py: Python<'_>, save: &Py<Save>, frame: u32) -> PyResult<Py<PyAny>> {
        lock(&save.get().state).as_ref().map(|state| state.clone_ref(py)).ok_or_else(|| {
            PyRuntimeError::new_err(format!(
                "state must be set for each Save, which frame {frame} misses: request.state = copy"
            ))
        })
    }

    /// Compares the state that the game saved again.
    fn judge(&self, py: Python<'_>) -> PyResult<()> {
        let (frame, again, before) = {
            let mut inner = lock(&self.inner);
            let Some((frame, again)) = inner.compare.take() else { return Ok(()) };
            let place = frame as usize % inner.saved.len();
            (frame, again, inner.saved[place].as_ref().map(|saved| saved.clone_ref(py)))
        };
        let Some(before) = before else { return Ok(()) };
        let (again, before) = (Self::state_of(py, &again, frame)?, Self::state_of(py, &before, frame)?);
        let fields = differing(before.bind(py), again.bind(py))?;
        if fields.is_empty() { Ok(()) } else { Err(differs(frame, &fields)) }
    }

    fn step(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            self.judge(py)?;
            let mut guard = lock(&self.inner);
            let inner = &mut *guard;
            let Some(step) = inner.steps.get(inner.given).copied() else { return Ok(None) };
            inner.given += 1;
            match (step, &self.states) {
                (ReplayStep::Advance(frame), _) => {
                    let TestInner { test, objects, players, .. } = inner;
                    let mut row = objects.find(py, (0..*players).map(|player| test.input(player, frame)));
                    drop(guard);
                    // Their class may call back in here.
                    let inputs = row.make(py, &self.kind)?;
                    let mut guard = lock(&self.inner);
                    let inner = &mut *guard;
                    let dropped = inner.objects.keep(py, row);
                    let again = frame < inner.newest;
                    inner.newest = inner.newest.max(frame + 1);
                    let players = u16::MAX >> (MAX_PLAYERS - inner.players);
                    drop(guard);
                    drop(dropped);
                    let advance = Advance { frame, inputs, again, players, guessed: 0, left: 0 };
                    return Ok(Some(Py::new(py, advance)?.into_any()));
                }
                (ReplayStep::Save(frame), StateKind::Arrays(arrays)) => arrays.save(inner.ring.save(frame)),
                (ReplayStep::Load(frame), StateKind::Arrays(arrays)) => {
                    if let Some(saved) = inner.ring.get(frame) {
                        arrays.load(saved);
                    }
                }
                (ReplayStep::Compare(frame), StateKind::Arrays(arrays)) => {
                    if let Some(saved) = inner.ring.get(frame)
                        && !arrays.equals(saved)
                    {
                        return Err(differs(frame, &arrays.differences(saved)));
                    }
                }
                (ReplayStep::Save(frame) | ReplayStep::Compare(frame), kind) => {
                    drop(guard);
                    let request = Py::new(py, Save::new(frame, false))?;
                    let kept = request.clone_ref(py);
                    let mut guard = lock(&self.inner);
                    let before = if matches!(step, ReplayStep::Save(_)) {
                        let place = frame as usize % guard.saved.len();
                        guard.saved[place].replace(kept)
                    } else {
                        guard.compare.replace((frame, kept)).map(|(_, request)| request)
                    };
                    drop(guard);
                    // The old state's destructor may run code of the game.
                    drop(before);
                    let StateKind::Calls { save, .. } = kind else { return Ok(Some(request.into_any())) };
                    *lock(&request.get().state) = Some(save.call0(py)?);
                }
                (ReplayStep::Load(frame), kind) => {
                    let place = frame as usize % inner.saved.len();
                    let saved = inner.saved[place].as_ref().map(|saved| saved.clone_ref(py));
                    drop(guard);
                    let state = saved.map(|saved| Self::state_of(py, &saved, frame)).transpose()?;
                    let StateKind::Calls { load, .. } = kind else {
                        return Ok(Some(Py::new(py, Load { frame, state })?.into_any()));
                    };
                    load.call1(py, (state,))?;
                }
            }
        }
    }
}

#[pymethods]
impl SyncTest {
    #[new]
    #[pyo3(signature = (inputs, *, players = 2, back = 7, state = None, save = None, load = None))]
    fn new(
        inputs: &Bound<'_, PyAny>,
        #[within(1, MAX_PLAYERS)] players: usize,
        #[within(1, MAX_WINDOW)] back: u32,
        state: Option<&Bound<'_, PyAny>>,
        save: Option<&Bound<'_, PyAny>>,
        load: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let kind = InputKind::new(inputs)?;
        let states = StateKind::new(state, save, load, None)?;
        let test = core::SyncTest::new(players, &kind.shape(), back);
        let count = test.states();
        let inner = TestInner {
            test,
            ring: StateRing::new(states.size(), count),
            saved: (0..count).map(|_| None).collect(),
            objects: InputObjects::new(players),
            steps: Vec::with_capacity(128),
            given: 0,
            newest: 0,
            compare: None,
            players,
        };
        Ok(SyncTest { kind, states, inner: Mutex::new(inner) })
    }

    fn advance(slf: Bound<'_, Self>, inputs: &Bound<'_, PyAny>) -> PyResult<TestSteps> {
        let this = slf.get();
        let mut encoded = Vec::new();
        for input in inputs.try_iter().map_err(|error| wrong("inputs", inputs, "a sequence", error))? {
            let mut writer = BitWriter::new();
            this.kind.write(&input?, &mut writer)?;
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
        Ok(TestSteps(slf.unbind()))
    }

    properties! {
        frame: u32 = lock(&self.inner).test.frame();
        __repr__: String = format!("<SyncTest at frame {}>", lock(&self.inner).test.frame());
    }
}

/// What one call of advance() gives.
#[pyclass(frozen, module = "tickwire._core")]
pub(crate) struct TestSteps(Py<SyncTest>);

#[pymethods]
impl TestSteps {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.0.get().step(py)
    }
}
