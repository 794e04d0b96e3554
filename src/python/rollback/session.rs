//! A rollback game for Python: carries out the core's requests.

use super::*;
use crate::python::peer::numbers_of;

use crate::rollback::{self as core, Config, GameEvent, KEPT, MAX_DELAY, MAX_FIELDS, Request, Status};
use crate::session::SharedRollback;

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct Rollback {
    frames: Frames,
    states: States,
    peer: Option<Py<Peer>>,
    players: u16,
    check_every: u32,
    /// Locked after `inner` where both are.
    pub(super) game: SharedRollback<core::Rollback>,
    inner: Mutex<Inner>,
}

struct Inner {
    queue: Queue<Request>,
    now: Instant,
    writer: BitWriter,
    /// The names of the fields in checked frames, with the first frame that has them.
    names: VecDeque<(u32, Vec<String>)>,
}

impl Inner {
    /// The names of the fields in this mask, in a checked frame.
    fn named(&self, frame: u32, mask: u64) -> Vec<String> {
        let known = self.names.iter().rev().find(|(first, _)| *first <= frame);
        let names = known.into_iter().flat_map(|(_, names)| names).take(MAX_FIELDS).enumerate();
        names.filter(|(i, _)| mask >> i & 1 == 1).map(|(_, name)| name.clone()).collect()
    }
}

/// The players, a bit each, and which of them is local.
fn seats(peer: Option<&Py<Peer>>, players: Option<&Object<'_>>, me: Option<u8>) -> PyResult<(u16, u8)> {
    let roster = peer.map(|peer| peer.get().part(|part, _| (part.mesh().at_start(), part.mesh().me())));
    let roster = roster.transpose()?;
    let mask = match (players, roster) {
        (Some(players), _) => mask_of(players)?,
        (None, Some((at_start, _))) => at_start,
        (None, None) => {
            refuse!(PyValueError, "players must be given if peer is None: the number of players")
        }
    };
    match (me, roster.map(|(_, own)| own)) {
        (Some(me), _) if mask >> me & 1 == 1 => Ok((mask, me)),
        (Some(me), _) => refuse!(PyValueError, "me must be one of players, not {me}"),
        (_, Some(Some(own))) if mask >> own & 1 == 1 => Ok((mask, own)),
        (_, Some(Some(own))) => refuse!(
            PyValueError,
            "players must contain the peer's own number, {own}, which did not play at the start: players who joined later or \
             don't play use Spectator"
        ),
        (_, Some(None)) => {
            refuse!(PyValueError, "peer must be in the game: make its rollback after its Started event")
        }
        (_, None) => refuse!(PyValueError, "me must be given if peer is None: this player's number"),
    }
}

impl Rollback {
    /// The time that the caller gave, or the peer's clock, or the machine's.
    fn now(&self, now: Option<Instant>) -> PyResult<Instant> {
        match (&self.peer, now) {
            (Some(peer), None) => peer.get().part(|_, now| now),
            _ => Ok(moment(now)),
        }
    }

    /// The request to run a frame.
    fn advance_to(&self, py: Python<'_>, frame: u32) -> PyResult<Py<PyAny>> {
        let (mut inputs, [mut guessed, mut left]) = (Vec::new(), [0u16; 2]);
        let game = self.game.lock();
        for player in members(self.players) {
            let (input, status) = game.input(player, frame);
            inputs.push(copied(input));
            guessed |= u16::from(status == Status::Predicted) << player;
            left |= u16::from(status == Status::Left) << player;
        }
        drop(game);
        self.frames.advance(py, frame, &inputs, [self.players, guessed, left])
    }

    /// The next request for the game itself.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            let request = lock(&self.inner).queue.next();
            let Some(request) = request else { return self.finish(py).map(|()| None) };
            let made = match request {
                Request::Advance(frame) => self.advance_to(py, frame).map(Some),
                Request::Load(frame) => self.states.ask(py, intern!(py, "load"), (frame,)),
                Request::Save(frame) => {
                    let is_checked = self.check_every > 0 && frame.is_multiple_of(self.check_every);
                    self.states.ask(py, intern!(py, "save"), (frame, is_checked))
                }
            };
            if let Some(made) = made.inspect_err(|_| lock(&self.inner).queue.put_back())? {
                return Ok(Some(made));
            }
        }
    }

    /// Gives the core the checksums of frames that are confirmed by now.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            let Some(frame) = self.game.lock().poll_check() else { return Ok(()) };
            let (names, values) = self.states.sums(py, frame)?;
            let mut inner = lock(&self.inner);
            if inner.names.back().is_none_or(|(_, known)| *known != names) {
                inner.names.push_back((frame, names));
                let old = inner.names.len().saturating_sub(KEPT);
                inner.names.drain(..old);
            }
            self.game.lock().note_check(inner.now, frame, &values);
        }
    }
}

impl NextRequest for Py<Rollback> {
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.get().next(py)
    }
}

#[pymethods]
impl Rollback {
    #[new]
    fn new(
        peer: Option<Py<Peer>>,
        inputs: &Object<'_>,
        players: Option<&Object<'_>>,
        #[within(0, MAX_PLAYERS as u8 - 1)] me: Option<u8>,
        timing: Option<&Timing>,
        state: Option<&Object<'_>>,
        #[callable(0)] save: Option<Py<PyAny>>,
        #[callable(1)] load: Option<Py<PyAny>>,
        #[callable(0)] check: Option<Py<PyAny>>,
        #[within(0, 100_000)] check_every: u32,
    ) -> PyResult<Self> {
        let frames = Frames::new(inputs)?;
        let (players, me) = seats(peer.as_ref(), players, me)?;
        let mut config = Config::new(1, me, frames.kind.shape.clone());
        config.players = players;
        let timing = timing.copied().unwrap_or_default();
        (config.delay, config.window, config.rate) = (timing.delay, timing.window, timing.rate);
        config.check_every = check_every;
        let py = inputs.py();
        let states = States::new(py, state, [save, load, check], config.window as usize + 2, false)?;
        config.state = states.mark(py);
        let game = SharedRollback::new(core::Rollback::new(config));
        if let Some(peer) = &peer {
            peer.get().set_core(Box::new(game.clone()))?;
        }
        let inner = Inner {
            queue: Queue::new("game.advance(input)"),
            now: Instant::ZERO,
            writer: BitWriter::new(),
            names: VecDeque::new(),
        };
        Ok(Rollback { frames, states, peer, players, check_every, game, inner: Mutex::new(inner) })
    }

    fn advance(
        slf: Bound<'_, Self>,
        input: &Object<'_>,
        #[instant] now: Option<Instant>,
    ) -> PyResult<Requests> {
        let this = slf.get();
        let mut writer = ::core::mem::take(&mut lock(&this.inner).writer);
        writer.clear();
        let written = this.frames.kind.write(input, &mut writer);
        let now = written.and_then(|()| this.now(now));
        let mut guard = lock(&this.inner);
        let Inner { queue, now: of_frame, .. } = &mut *guard;
        let begun = now.and_then(|now| {
            let Some(requests) = queue.begin(|request| !matches!(request, Request::Advance(_)))? else {
                return Ok(());
            };
            *of_frame = now;
            let bits = writer.bit_len();
            let input = GameInput { bytes: writer.as_bytes(), bits };
            requests.extend_from_slice(this.game.lock().advance(now, input));
            Ok(())
        });
        guard.writer = writer;
        begun?;
        drop(guard);
        Ok(Requests(Box::new(slf.unbind())))
    }

    fn fill(
        &self,
        #[within(0, MAX_PLAYERS as u8 - 1)] player: u8,
        #[within(8, 65_536usize)] max_bytes: usize,
        #[instant] now: Option<Instant>,
    ) -> Option<Vec<u8>> {
        filled(|writer| self.game.lock().fill(moment(now), player, max_bytes * 8, writer))
    }

    fn events(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let mut events = Vec::new();
        loop {
            let Some(event) = self.game.lock().poll_event() else { return Ok(events) };
            events.push(match event {
                GameEvent::Left { player, frame } => PlayerOut { player, frame }.into_py_any(py)?,
                GameEvent::Desync { player, frame, last_equal, fields } => {
                    let fields = lock(&self.inner).named(frame, fields);
                    Desync { player, frame, last_equal, fields }.into_py_any(py)?
                }
                GameEvent::SpectatorLost { index } => SpectatorLost { index }.into_py_any(py)?,
            });
        }
    }

    properties! {
        frame(), confirmed(), delay(): u32 of self.game.lock();
        can_advance: bool = self.game.lock().can_advance();
        ahead(), pace(): f64 of self.game.lock();
    }

    #[setter]
    fn set_delay(&self, #[within(0, MAX_DELAY)] delay: u32) {
        self.game.lock().set_delay(delay);
    }

    properties! {
        waiting_for: PyResult<Bound<'py, PyTuple>> = numbers_of(py, self.game.lock().waiting_for());
        players: PyResult<Bound<'py, PyTuple>> = numbers_of(py, self.game.lock().present());
        stats: PyResult<Bound<'py, PyDict>> = counts(py, self.game.lock().counters().iter());
    }

    traverses!(self.peer, self.states);

    fn __repr__(&self) -> String {
        let game = self.game.lock();
        format!("<Rollback at frame {}, {} confirmed>", game.frame(), game.confirmed())
    }
}

exchanges!(Rollback);

#[record(eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct PlayerOut {
    pub(super) player: u8,
    pub(super) frame: u32,
}

#[record(eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct Desync {
    pub(super) player: u8,
    pub(super) frame: u32,
    pub(super) last_equal: Option<u32>,
    pub(super) fields: Vec<String>,
}

#[record(eq, module = "tickwire.rollback")]
#[derive(PartialEq)]
pub(crate) struct SpectatorLost {
    pub(super) index: u8,
}
