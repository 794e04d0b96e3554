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
    queue: Queue<ReplayStep>,
}

impl SyncTest {
    /// The next request for the game itself.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            let Some(step) = lock(&self.inner).queue.next() else {
                return self.finish_comparison(py).map(|()| None);
            };
            // Only the same comparison can be open before one: the game left it, and it begins again.
            let is_comparison = matches!(step, ReplayStep::Compare(_));
            let finished = if is_comparison { Ok(()) } else { self.finish_comparison(py) };
            let made = finished.and_then(|()| self.carry_out(py, step));
            if let Some(made) = made.inspect_err(|_| lock(&self.inner).queue.put_back())? {
                return Ok(Some(made));
            }
        }
    }

    /// Raises if the last comparison found a difference. The next call doesn't raise it again.
    fn finish_comparison(&self, py: Python<'_>) -> PyResult<()> {
        self.states.ask(py, intern!(py, "finish_comparison"), ()).map(drop)
    }

    /// Carries out a step. Returns what the game has to do itself.
    fn carry_out(&self, py: Python<'_>, step: ReplayStep) -> PyResult<Option<Py<PyAny>>> {
        match step {
            ReplayStep::Advance(frame) => {
                let input = |player| copied(lock(&self.inner).test.input(player, frame));
                let inputs: Vec<_> = (0..self.players).map(input).collect();
                let players = u16::MAX >> (MAX_PLAYERS - self.players);
                self.frames.advance(py, frame, &inputs, [players, 0, 0]).map(Some)
            }
            ReplayStep::Save(frame) => self.states.ask(py, intern!(py, "save"), (frame, false)),
            ReplayStep::Load(frame) => self.states.ask(py, intern!(py, "load"), (frame,)),
            ReplayStep::Compare(frame) => self.states.ask(py, intern!(py, "compare"), (frame,)),
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
        #[callable(0)] save: Option<Py<PyAny>>,
        #[callable(1)] load: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let frames = Frames::new(inputs)?;
        let test = core::SyncTest::new(players, &frames.kind.shape, back);
        let states = States::new(inputs.py(), state, [save, load, None], test.states(), true)?;
        let inner = Inner { test, queue: Queue::new("test.advance(inputs)") };
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
        if encoded.len() != this.players {
            let (players, count) = (this.players, encoded.len());
            refuse!(PyValueError, "inputs must have one input per player ({players}), not {count}");
        }
        let mut guard = lock(&this.inner);
        let Inner { test, queue } = &mut *guard;
        let is_repeatable = |step: &ReplayStep| !matches!(step, ReplayStep::Advance(_));
        if let Some(steps) = queue.begin(is_repeatable)? {
            for (player, (bits, bytes)) in encoded.iter().enumerate() {
                test.give(player, GameInput { bytes, bits: *bits });
            }
            test.advance(steps);
        }
        drop(guard);
        Ok(Requests(Box::new(slf.unbind())))
    }

    properties! {
        frame: u32 = lock(&self.inner).test.frame();
        __repr__: String = format!("<SyncTest at frame {}>", self.frame());
    }

    traverses!(self.states);
}
