//! A rollback game for Python: converts inputs, copies states, and carries out the core's requests.

use crate::python::prelude::*;
use pyo3::types::PyInt;

use super::events::{Desync, PlayerOut, SpectatorLost};
use super::inputs::{InputKind, InputObjects};
use super::moment;
use super::requests::{Advance, Load, Save, Sums, counts};
use super::states::StateKind;
use crate::python::arguments::argument;
use crate::python::fields::{bounded, within};
use crate::python::peer::Peer;
use crate::rollback::{
    self as core, Config, GameEvent, GameInput, MAX_DELAY, MAX_PLAYERS, MAX_WINDOW, Request, StateRing,
    Status,
};
use crate::session::SharedRollback;
use crate::wire::BitWriter;

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct Rollback {
    kind: InputKind,
    states: StateKind,
    peer: Option<Py<Peer>>,
    inner: Mutex<Inner>,
}

struct Inner {
    game: SharedRollback<core::Rollback>,
    ring: StateRing,
    /// The states that the game saved, by frame.
    saved: Vec<Option<Py<Save>>>,
    objects: InputObjects,
    /// The requests of this frame, and how many were handed out.
    queue: Vec<Request>,
    given: usize,
    /// Frames below this one run again.
    newest: u32,
    now: crate::time::Instant,
    writer: BitWriter,
    sums: Vec<u32>,
    names: Vec<String>,
    players: Vec<usize>,
    check_every: u32,
}

/// The players, a bit each, and which of them is local.
pub(super) fn seats(
    peer: Option<&Py<Peer>>,
    players: Option<&Bound<'_, PyAny>>,
    me: Option<i128>,
) -> PyResult<(u16, u8)> {
    let roster = peer.map(|peer| peer.get().part(|part, _| (part.mesh().at_start(), part.mesh().me())));
    let roster = roster.transpose()?;
    let most = MAX_PLAYERS as u8;
    let mask = match (players, &roster) {
        (None, Some((roster, _))) => *roster,
        (None, None) => {
            return Err(PyValueError::new_err("players must be given where peer is None: how many play"));
        }
        (Some(players), _) if players.is_instance_of::<PyInt>() => {
            u16::MAX >> (most - bounded("players", players, 1, most)?)
        }
        (Some(players), _) => {
            let mut mask = 0;
            let what = "an int or numbers of players";
            for number in argument::<Vec<Bound<'_, PyAny>>>("players", players, what)? {
                mask |= 1 << bounded("players[]", &number, 0, most - 1)?;
            }
            mask
        }
    };
    let me = match (me, &roster) {
        (Some(me), _) => within("me", me, 0, most - 1)?,
        (None, Some((_, Some(me)))) if mask >> me & 1 == 1 => *me,
        (None, Some((_, Some(me)))) => {
            let why = "players who joined later or don't play use Spectator";
            return Err(PyValueError::new_err(format!(
                "players must contain the peer's own number, {me}, which did not play at the start: {why}"
            )));
        }
        (None, Some((_, None))) => {
            return Err(PyValueError::new_err(
                "peer must be in the game: make its rollback after its Started event",
            ));
        }
        (None, None) => {
            return Err(PyValueError::new_err("me must be given where peer is None: this player's index"));
        }
    };
    Ok((mask, me))
}

impl Rollback {
    /// The time that the caller gave, or the peer's clock, or the machine's.
    fn now(&self, now: Option<f64>) -> PyResult<crate::time::Instant> {
        match (&self.peer, now) {
            (Some(peer), None) => peer.get().part(|_, now| now),
            _ => Ok(moment(now)),
        }
    }

    /// Puts the request back whose callable raised.
    fn put_back(&self, error: PyErr) -> PyErr {
        let mut inner = lock(&self.inner);
        inner.given = inner.given.saturating_sub(1);
        error
    }

    fn saved_place(inner: &Inner, frame: u32) -> usize {
        frame as usize % inner.saved.len()
    }

    /// What each player gave to a frame. The objects are made with no lock held, as their class may call back in here.
    fn give_advance(&self, py: Python<'_>, frame: u32) -> PyResult<Py<PyAny>> {
        let (mut guessed, mut left, mut mask) = (0u16, 0u16, 0u16);
        let mut row = {
            let guard = lock(&self.inner);
            let game = guard.game.lock();
            for player in &guard.players {
                let status = game.input(*player, frame).1;
                mask |= 1 << player;
                guessed |= u16::from(status == Status::Predicted) << player;
                left |= u16::from(status == Status::Left) << player;
            }
            guard.objects.find(py, guard.players.iter().map(|player| game.input(*player, frame).0))
        };
        let inputs = row.make(py, &self.kind).map_err(|error| self.put_back(error))?;
        let mut guard = lock(&self.inner);
        let dropped = guard.objects.keep(py, row);
        let again = frame < guard.newest;
        guard.newest = guard.newest.max(frame + 1);
        drop(guard);
        drop(dropped);
        Ok(Py::new(py, Advance { frame, inputs, again, players: mask, guessed, left })?.into_any())
    }

    fn is_checked(inner: &Inner, frame: u32) -> bool {
        inner.check_every > 0 && frame.is_multiple_of(inner.check_every)
    }

    /// The next request for the game itself.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            let mut guard = lock(&self.inner);
            let inner = &mut *guard;
            let Some(request) = inner.queue.get(inner.given).copied() else {
                self.finish(inner, py);
                return Ok(None);
            };
            inner.given += 1;
            match (request, &self.states) {
                (Request::Advance(frame), _) => {
                    drop(guard);
                    return self.give_advance(py, frame).map(Some);
                }
                (Request::Save(frame), StateKind::Arrays(arrays)) => arrays.save(inner.ring.save(frame)),
                (Request::Load(frame), StateKind::Arrays(arrays)) => {
                    // The core only loads what it has saved.
                    if let Some(saved) = inner.ring.get(frame) {
                        arrays.load(saved);
                    }
                }
                (Request::Save(frame), kind) => {
                    let is_checked = Self::is_checked(inner, frame);
                    let place = Self::saved_place(inner, frame);
                    drop(guard);
                    // In CPython 3.11 a new object may collect garbage, whose destructors run code of the game.
                    let request = Py::new(py, Save::new(frame, is_checked))?;
                    let before = lock(&self.inner).saved[place].replace(request.clone_ref(py));
                    // The old state's destructor may run code of the game.
                    drop(before);
                    let StateKind::Calls { save, check, .. } = kind else {
                        return Ok(Some(request.into_any()));
                    };
                    let done = (|| {
                        *lock(&request.get().state) = Some(save.call0(py)?);
                        if let Some(check) = check.as_ref().filter(|_| is_checked) {
                            let sums = Sums::of(check.call0(py)?.bind(py))?;
                            *lock(&request.get().sums) = Some(sums);
                        }
                        Ok(())
                    })();
                    done.map_err(|error| self.put_back(error))?;
                }
                (Request::Load(frame), kind) => {
                    let place = Self::saved_place(inner, frame);
                    let saved = inner.saved[place].as_ref().map(|saved| saved.clone_ref(py));
                    drop(guard);
                    let state = saved
                        .and_then(|saved| lock(&saved.get().state).as_ref().map(|state| state.clone_ref(py)));
                    let StateKind::Calls { load, .. } = kind else {
                        let Some(state) = state else {
                            return Err(PyRuntimeError::new_err(format!(
                                "state must be set for each Save, which frame {frame} misses: request.state = copy"
                            )));
                        };
                        return Ok(Some(Py::new(py, Load { frame, state: Some(state) })?.into_any()));
                    };
                    load.call1(py, (state,)).map_err(|error| self.put_back(error))?;
                }
            }
        }
    }

    /// Gives the core the checksums of frames that are confirmed by now.
    fn finish(&self, inner: &mut Inner, py: Python<'_>) {
        loop {
            let Some(frame) = inner.game.lock().poll_check() else { return };
            inner.sums.clear();
            if let StateKind::Arrays(arrays) = &self.states {
                if let Some(saved) = inner.ring.get(frame) {
                    arrays.sums(saved, &mut inner.sums);
                }
                if inner.names.is_empty() {
                    inner.names = arrays.names();
                }
            } else {
                let place = Self::saved_place(inner, frame);
                let save = inner.saved[place].as_ref().map(|save| save.clone_ref(py));
                let save = save.filter(|save| save.get().frame == frame);
                if let Some(sums) = save.and_then(|save| lock(&save.get().sums).clone()) {
                    inner.sums.extend(sums.values);
                    inner.names = sums.names;
                }
            }
            let sums = ::core::mem::take(&mut inner.sums);
            inner.game.lock().note_check(inner.now, frame, &sums);
            inner.sums = sums;
        }
    }
}

#[pymethods]
impl Rollback {
    #[new]
    #[pyo3(signature = (peer, inputs, *, players = None, me = None, delay = 2, window = 8, state = None, save = None,
                        load = None, check = None, check_every = 16, rate = 60))]
    #[allow(clippy::too_many_arguments)] // Keywords in Python.
    fn new(
        peer: Option<Py<Peer>>,
        inputs: &Bound<'_, PyAny>,
        players: Option<&Bound<'_, PyAny>>,
        #[int] me: Option<i128>,
        #[within(0, MAX_DELAY)] delay: u32,
        #[within(1, MAX_WINDOW)] window: u32,
        state: Option<&Bound<'_, PyAny>>,
        save: Option<&Bound<'_, PyAny>>,
        load: Option<&Bound<'_, PyAny>>,
        check: Option<&Bound<'_, PyAny>>,
        #[within(0, 100_000)] check_every: u32,
        #[within(1, 1_000)] rate: u32,
    ) -> PyResult<Self> {
        let kind = InputKind::new(inputs)?;
        let (players, me) = seats(peer.as_ref(), players, me)?;
        let mut config = Config::new(1, me, kind.shape());
        config.players = players;
        config.delay = delay;
        config.window = window;
        config.check_every = check_every;
        config.rate = rate;
        let states = StateKind::new(state, save, load, check)?;
        config.state = states.mark();
        let count = config.window as usize + 2;
        let game = SharedRollback::new(core::Rollback::new(config));
        if let Some(peer) = &peer {
            peer.get().part(|part, now| part.set_core(now, Some(Box::new(game.clone()))))?;
        }
        let inner = Inner {
            ring: StateRing::new(states.size(), count),
            saved: (0..count).map(|_| None).collect(),
            objects: InputObjects::new(MAX_PLAYERS),
            queue: Vec::with_capacity(128),
            given: 0,
            newest: 0,
            now: crate::time::Instant::ZERO,
            writer: BitWriter::new(),
            sums: Vec::new(),
            names: Vec::new(),
            players: (0..MAX_PLAYERS).filter(|player| players >> player & 1 == 1).collect(),
            check_every,
            game,
        };
        Ok(Rollback { kind, states, peer, inner: Mutex::new(inner) })
    }

    fn advance(slf: Bound<'_, Self>, input: &Bound<'_, PyAny>, now: Option<f64>) -> PyResult<Requests> {
        let this = slf.get();
        let mut writer = ::core::mem::take(&mut lock(&this.inner).writer);
        writer.clear();
        let written = this.kind.write(input, &mut writer);
        let now = this.now(now);
        let mut guard = lock(&this.inner);
        let inner = &mut *guard;
        if written.is_ok() && inner.given == inner.queue.len() {
            inner.now = now?;
            let bits = writer.bit_len();
            inner.queue.clear();
            let input = GameInput { bytes: writer.as_bytes(), bits };
            inner.queue.extend_from_slice(inner.game.lock().advance(inner.now, input));
            inner.given = 0;
            inner.writer = writer;
            drop(guard);
            return Ok(Requests(slf.unbind()));
        }
        inner.writer = writer;
        written?;
        Err(PyRuntimeError::new_err(
            "advance() must be run through to its end before it is called again: for request in game.advance(input)",
        ))
    }

    fn read(
        &self,
        #[within(0, MAX_PLAYERS as u8 - 1)] player: u8,
        payload: &[u8],
        now: Option<f64>,
    ) -> PyResult<Option<String>> {
        let read = lock(&self.inner).game.lock().read(moment(now), player, payload);
        Ok(read.err().map(|fault| fault.to_string()))
    }

    fn fill<'py>(
        &self,
        py: Python<'py>,
        #[within(0, MAX_PLAYERS as u8 - 1)] player: u8,
        #[within(8, 65_536usize)] max_bytes: usize,
        now: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let bytes = max_bytes;
        let mut guard = lock(&self.inner);
        let Inner { game, writer, .. } = &mut *guard;
        writer.clear();
        let is_filled = game.lock().fill(moment(now), player, bytes * 8, writer);
        Ok(is_filled.then(|| PyBytes::new(py, writer.as_bytes())))
    }

    fn note_left(&self, #[within(0, MAX_PLAYERS as u8 - 1)] player: u8, now: Option<f64>) -> PyResult<()> {
        lock(&self.inner).game.lock().note_left(moment(now), player);
        Ok(())
    }

    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        loop {
            let guard = lock(&self.inner);
            let event = guard.game.lock().poll_event();
            let Some(event) = event else { return Ok(list) };
            let fields = match &event {
                GameEvent::Desync { fields, .. } => {
                    let names = guard.names.iter().enumerate();
                    names.filter(|(i, _)| fields >> i & 1 == 1).map(|(_, name)| name.clone()).collect()
                }
                _ => Vec::new(),
            };
            drop(guard);
            match event {
                GameEvent::Left { player, frame } => {
                    list.append(Py::new(py, PlayerOut { player, frame })?)?;
                }
                GameEvent::Desync { player, frame, last_equal, .. } => {
                    list.append(Py::new(py, Desync { player, frame, last_equal, fields })?)?;
                }
                GameEvent::SpectatorLost { index } => list.append(Py::new(py, SpectatorLost { index })?)?,
            }
        }
    }

    properties! {
        frame: u32 = lock(&self.inner).game.lock().frame();
        confirmed: u32 = lock(&self.inner).game.lock().confirmed();
        delay: u32 = lock(&self.inner).game.lock().delay();
        can_advance: bool = lock(&self.inner).game.lock().can_advance();
        ahead: f64 = lock(&self.inner).game.lock().ahead();
        pace: f64 = lock(&self.inner).game.lock().pace();
    }

    #[setter]
    fn set_delay(&self, #[within(0, MAX_DELAY)] delay: u32) {
        lock(&self.inner).game.lock().set_delay(delay);
    }

    #[getter]
    fn waiting_for<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mask = lock(&self.inner).game.lock().waiting_for();
        PyTuple::new(py, (0..16u8).filter(|player| mask >> player & 1 == 1).collect::<Vec<_>>())
    }

    #[getter]
    fn players<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mask = lock(&self.inner).game.lock().present();
        PyTuple::new(py, (0..16u8).filter(|player| mask >> player & 1 == 1).collect::<Vec<_>>())
    }

    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = lock(&self.inner).game.lock().counters();
        counts(py, counters.iter())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let StateKind::Calls { save, load, check } = &self.states {
            visit.call(save)?;
            visit.call(load)?;
            visit.call(check)?;
        }
        visit.call(&self.peer)?;
        // A locked mutex is in use, so its objects are reachable anyway.
        let inner = self.inner.try_lock();
        inner.map_or(Ok(()), |inner| inner.saved.iter().try_for_each(|saved| visit.call(saved)))
    }

    fn __repr__(&self) -> String {
        let inner = lock(&self.inner);
        let game = inner.game.lock();
        format!("<Rollback at frame {}, {} confirmed>", game.frame(), game.confirmed())
    }
}

/// What one call of advance() gives.
#[pyclass(frozen, module = "tickwire._core")]
pub(crate) struct Requests(Py<Rollback>);

#[pymethods]
impl Requests {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.0.get().next(py)
    }
}
