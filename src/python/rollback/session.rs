//! A rollback game for Python: converts inputs, copies states, and carries out the core's requests.

use super::*;
use crate::python::peer::numbers_of;

use crate::rollback::{self as core, Config, GameEvent, MAX_DELAY, Request, Status};
use crate::session::SharedRollback;

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct Rollback {
    acts: Acts,
    peer: Option<Py<Peer>>,
    inner: Mutex<Inner>,
}

struct Inner {
    game: SharedRollback<core::Rollback>,
    /// The requests of this frame, and how many were handed out.
    queue: Vec<Request>,
    given: usize,
    now: crate::time::Instant,
    writer: BitWriter,
    names: Vec<String>,
    players: Vec<usize>,
    check_every: u32,
}

/// The players, a bit each: those given, as their count or their numbers.
pub(super) fn players_of(players: &Bound<'_, PyAny>) -> PyResult<u16> {
    let most = MAX_PLAYERS as u8;
    if players.is_instance_of::<PyInt>() {
        return Ok(u16::MAX >> (most - bounded("players", players, 1, most)?));
    }
    let mut mask = 0u16;
    for number in argument::<Vec<Bound<'_, PyAny>>>("players", players, "an int or numbers of players")? {
        let number = bounded("players[]", &number, 0, most - 1)?;
        if mask >> number & 1 == 1 {
            refuse!(PyValueError, "players must contain each number once, not {number} twice");
        }
        mask |= 1 << number;
    }
    if mask == 0 {
        return Err(PyValueError::new_err("players must contain at least one number, not none"));
    }
    Ok(mask)
}

/// The players, a bit each, and which of them is local.
fn seats(peer: Option<&Py<Peer>>, players: Option<&Bound<'_, PyAny>>, me: Option<u8>) -> PyResult<(u16, u8)> {
    let roster = peer.map(|peer| peer.get().part(|part, _| (part.mesh().at_start(), part.mesh().me())));
    let roster = roster.transpose()?;
    let mask = match (players, &roster) {
        (Some(players), _) => players_of(players)?,
        (None, Some((roster, _))) => *roster,
        (None, None) => {
            return Err(PyValueError::new_err("players must be given where peer is None: how many play"));
        }
    };
    let me = match (me, &roster) {
        (Some(me), _) if mask >> me & 1 == 1 => me,
        (Some(me), _) => refuse!(PyValueError, "me must be one of players, not {me}: {}", numbers(mask)),
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

/// The numbers of a mask, for a sentence.
fn numbers(mask: u16) -> String {
    let numbers = (0..MAX_PLAYERS).filter(|player| mask >> player & 1 == 1);
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
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

    /// The request to run a frame.
    fn advance_to(&self, py: Python<'_>, frame: u32) -> PyResult<Py<PyAny>> {
        let [mut players, mut guessed, mut left] = [0u16; 3];
        let row = {
            let guard = lock(&self.inner);
            let game = guard.game.lock();
            for player in &guard.players {
                let status = game.input(*player, frame).1;
                players |= 1 << player;
                guessed |= u16::from(status == Status::Predicted) << player;
                left |= u16::from(status == Status::Left) << player;
            }
            self.acts.find(py, guard.players.iter().map(|player| game.input(*player, frame).0))
        };
        self.acts.advance(py, frame, row, [players, guessed, left])
    }

    /// The next request for the game itself.
    pub(super) fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            let (request, check_every) = {
                let mut guard = lock(&self.inner);
                let inner = &mut *guard;
                let Some(request) = inner.queue.get(inner.given).copied() else {
                    self.finish(inner, py);
                    return Ok(None);
                };
                inner.given += 1;
                (request, inner.check_every)
            };
            let made = match request {
                Request::Advance(frame) => self.advance_to(py, frame).map(Some),
                Request::Load(frame) => self.acts.load(py, frame),
                Request::Save(frame) => {
                    let is_checked = check_every > 0 && frame.is_multiple_of(check_every);
                    self.acts.save(py, frame, is_checked)
                }
            };
            if let Some(made) = made.map_err(|error| self.put_back(error))? {
                return Ok(Some(made));
            }
        }
    }

    /// Gives the core the checksums of frames that are confirmed by now.
    fn finish(&self, inner: &mut Inner, py: Python<'_>) {
        loop {
            let Some(frame) = inner.game.lock().poll_check() else { return };
            let Sums { names, values } = self.acts.sums(py, frame);
            if !names.is_empty() {
                inner.names = names;
            }
            inner.game.lock().note_check(inner.now, frame, &values);
        }
    }
}

#[pymethods]
impl Rollback {
    #[new]
    fn new(
        peer: Option<Py<Peer>>,
        inputs: &Bound<'_, PyAny>,
        players: Option<&Bound<'_, PyAny>>,
        #[within(0, MAX_PLAYERS as u8 - 1)] me: Option<u8>,
        timing: Option<&Bound<'_, Timing>>,
        state: Option<&Bound<'_, PyAny>>,
        #[callable] save: Option<Py<PyAny>>,
        #[callable] load: Option<Py<PyAny>>,
        #[callable] check: Option<Py<PyAny>>,
        #[within(0, 100_000)] check_every: u32,
    ) -> PyResult<Self> {
        let kind = InputKind::new(inputs)?;
        let (players, me) = seats(peer.as_ref(), players, me)?;
        let mut config = Config::new(1, me, kind.shape());
        config.players = players;
        let timing = timing.map(|given| *given.get()).unwrap_or_default();
        (config.delay, config.window, config.rate) = (timing.delay, timing.window, timing.rate);
        config.check_every = check_every;
        let states = StateKind::new(state, save, load, check)?;
        config.state = states.mark();
        let count = config.window as usize + 2;
        let game = SharedRollback::new(core::Rollback::new(config));
        if let Some(peer) = &peer {
            peer.get().set_core(Box::new(game.clone()))?;
        }
        let inner = Inner {
            queue: Vec::with_capacity(128),
            given: 0,
            now: Instant::ZERO,
            writer: BitWriter::new(),
            names: Vec::new(),
            players: (0..MAX_PLAYERS).filter(|player| players >> player & 1 == 1).collect(),
            check_every,
            game,
        };
        Ok(Rollback { acts: Acts::new(kind, states, count, MAX_PLAYERS), peer, inner: Mutex::new(inner) })
    }

    fn advance(slf: Bound<'_, Self>, input: &Bound<'_, PyAny>, now: Option<f64>) -> PyResult<Requests> {
        let this = slf.get();
        let mut writer = ::core::mem::take(&mut lock(&this.inner).writer);
        writer.clear();
        let written = this.acts.kind.write(input, &mut writer);
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
            return Ok(Requests(RequestSource::Game(slf.unbind())));
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

    fn note_left(&self, #[within(0, MAX_PLAYERS as u8 - 1)] player: u8, now: Option<f64>) {
        lock(&self.inner).game.lock().note_left(moment(now), player);
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
        frame(), confirmed(), delay(): u32 of lock(&self.inner).game.lock();
        can_advance: bool = lock(&self.inner).game.lock().can_advance();
        ahead(), pace(): f64 of lock(&self.inner).game.lock();
    }

    #[setter]
    fn set_delay(&self, #[within(0, MAX_DELAY)] delay: u32) {
        lock(&self.inner).game.lock().set_delay(delay);
    }

    properties! {
        waiting_for: PyResult<Bound<'py, PyTuple>> = numbers_of(py, lock(&self.inner).game.lock().waiting_for());
        players: PyResult<Bound<'py, PyTuple>> = numbers_of(py, lock(&self.inner).game.lock().present());
        stats: PyResult<Bound<'py, PyDict>> = counts(py, lock(&self.inner).game.lock().counters().iter());
    }

    traverses!(self.peer, self.acts);

    fn __repr__(&self) -> String {
        let inner = lock(&self.inner);
        let game = inner.game.lock();
        format!("<Rollback at frame {}, {} confirmed>", game.frame(), game.confirmed())
    }
}
