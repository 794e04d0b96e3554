//! What the requests of a game act on: its states, and the objects of its inputs.
//!
//! The game's code runs with no lock held, as it may call back in here: its functions, the classes of its inputs and
//! the destructors of its states.

use super::*;
use crate::rollback::StateRing;

pub(super) struct Acts {
    pub(super) kind: InputKind,
    states: StateKind,
    kept: Mutex<StateStore>,
}

struct StateStore {
    ring: StateRing,
    /// The states that the game saved, by frame.
    saved: Vec<Option<Py<Save>>>,
    objects: InputObjects,
    /// Frames below this one run again.
    newest: u32,
}

fn missing(frame: u32) -> PyErr {
    let sentence =
        format!("state must be set for each Save, which frame {frame} misses: request.state = copy");
    PyRuntimeError::new_err(sentence)
}

/// The state that the game saved before a frame.
pub(super) fn state_of(py: Python<'_>, save: &Py<Save>, frame: u32) -> PyResult<Py<PyAny>> {
    save.get().state.get(py).ok_or_else(|| missing(frame))
}

impl Acts {
    /// Keeps as many states.
    pub(super) fn new(kind: InputKind, states: StateKind, count: usize, players: usize) -> Self {
        let kept = StateStore {
            ring: StateRing::new(states.size(), count),
            saved: (0..count).map(|_| None).collect(),
            objects: InputObjects::new(players),
            newest: 0,
        };
        Acts { kind, states, kept: Mutex::new(kept) }
    }

    /// Saves the state before a frame, or returns the request that asks the game to.
    pub(super) fn save(&self, py: Python<'_>, frame: u32, is_checked: bool) -> PyResult<Option<Py<PyAny>>> {
        if let StateKind::Arrays(arrays) = &self.states {
            arrays.save(lock(&self.kept).ring.save(frame));
            return Ok(None);
        }
        // In CPython 3.11 a new object may collect garbage, whose destructors run code of the game.
        let request = Py::new(py, Save::new(frame, is_checked))?;
        let before = {
            let mut kept = lock(&self.kept);
            let place = frame as usize % kept.saved.len();
            kept.saved[place].replace(request.clone_ref(py))
        };
        drop(before);
        self.fill(py, request)
    }

    /// Fills a request to save by the game's functions, or returns it.
    pub(super) fn fill(&self, py: Python<'_>, request: Py<Save>) -> PyResult<Option<Py<PyAny>>> {
        let StateKind::Calls { save, check, .. } = &self.states else { return Ok(Some(request.into_any())) };
        request.get().state.set(Some(save.call0(py)?));
        if let Some(check) = check.as_ref().filter(|_| request.get().checked) {
            let sums = Sums::of(check.call0(py)?.bind(py))?;
            *lock(&request.get().sums) = Some(sums);
        }
        Ok(None)
    }

    /// Loads the state before a frame, or returns the request that asks the game to.
    pub(super) fn load(&self, py: Python<'_>, frame: u32) -> PyResult<Option<Py<PyAny>>> {
        if let StateKind::Arrays(arrays) = &self.states {
            // The core only loads what it has saved.
            if let Some(saved) = lock(&self.kept).ring.get(frame) {
                arrays.load(saved);
            }
            return Ok(None);
        }
        let save = self.saved(py, frame).ok_or_else(|| missing(frame))?;
        let state = state_of(py, &save, frame)?;
        if let StateKind::Calls { load, .. } = &self.states {
            return load.call1(py, (state,)).map(|_| None);
        }
        Ok(Some(Py::new(py, Load { frame, state: Some(state) })?.into_any()))
    }

    /// Finds what each player gave to a frame.
    pub(super) fn find<'a>(
        &self,
        py: Python<'_>,
        inputs: impl ExactSizeIterator<Item = GameInput<'a>>,
    ) -> InputRow {
        lock(&self.kept).objects.find(py, inputs)
    }

    /// Returns the request to run a frame. The masks are of players, of guesses and of the players that left.
    pub(super) fn advance(
        &self,
        py: Python<'_>,
        frame: u32,
        mut row: InputRow,
        [players, guessed, left]: [u16; 3],
    ) -> PyResult<Py<PyAny>> {
        let inputs = row.make(py, &self.kind)?;
        let (dropped, again) = {
            let mut kept = lock(&self.kept);
            let again = frame < kept.newest;
            kept.newest = kept.newest.max(frame + 1);
            (kept.objects.keep(py, row), again)
        };
        drop(dropped);
        Ok(Py::new(py, Advance { frame, inputs, again, players, guessed, left })?.into_any())
    }

    /// The game's own save before a frame, if it is still kept.
    pub(super) fn saved(&self, py: Python<'_>, frame: u32) -> Option<Py<Save>> {
        let kept = lock(&self.kept);
        let saved = kept.saved[frame as usize % kept.saved.len()].as_ref();
        saved.map(|saved| saved.clone_ref(py)).filter(|saved| saved.get().frame == frame)
    }

    /// The checksums of the state before a frame, with the fields' names.
    pub(super) fn sums(&self, py: Python<'_>, frame: u32) -> Sums {
        if let StateKind::Arrays(arrays) = &self.states {
            let values = lock(&self.kept).ring.get(frame).map(|saved| arrays.layout.sums(saved));
            return Sums { names: arrays.layout.names(), values: values.unwrap_or_default() };
        }
        self.saved(py, frame).and_then(|save| lock(&save.get().sums).clone()).unwrap_or_default()
    }

    /// The fields whose values differ from the arrays saved before a frame. None if the game saves itself.
    pub(super) fn differences(&self, frame: u32) -> Option<Vec<String>> {
        let StateKind::Arrays(arrays) = &self.states else { return None };
        let kept = lock(&self.kept);
        Some(kept.ring.get(frame).map_or_else(Vec::new, |saved| arrays.differences(saved)))
    }
}

holds!(Acts: states, kept);
holds!(StateStore: saved);
