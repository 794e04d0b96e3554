//! The lockstep machine, as `tickwire.lockstep` uses it.

use crate::python::prelude::*;

use crate::lockstep::checks::{FIRST_CLASS, TurnLog};
use crate::lockstep::config::{MAX_DELAY, MAX_STEPS, members};
use crate::lockstep::{
    CommandError, JoinRefusal, Lockstep, LockstepConfig, LockstepEvent, Pace, STATE_HEAD, StartedTurn,
    StateHead, replayed_check,
};
use crate::session::SharedLockstep;

/// A turn as Python has it: number, steps, delay, speed, paused, players, left, commands, joined.
pub(super) type TurnTuple = (i32, u8, u8, u8, bool, u16, u16, Vec<(u8, Vec<u8>)>, u16);

/// Two hundred years: later times are mistakes.
const NOTHING: i64 = i64::MIN + 1;

pub(super) fn turn_tuple(turn: StartedTurn) -> TurnTuple {
    let it = turn;
    let commands = it.commands.into_iter().map(|(player, command)| (player, command.to_vec())).collect();
    (it.turn, it.steps, it.delay, it.speed, it.paused, it.players, it.left, commands, it.joined)
}

#[pyclass(frozen, module = "tickwire._core")]
#[derive(Debug)]
pub(crate) struct LockstepCore {
    core: Arc<Mutex<Lockstep>>,
}

#[pymethods]
impl LockstepCore {
    #[new]
    fn new(
        #[within(0, 15)] me: u8,
        players: u16,
        #[within(0, 15)] master: u8,
        #[instant] start: Instant,
        #[seconds(1.0)] step: Duration,
        #[within(1, MAX_STEPS)] steps: u8,
        #[within(1, MAX_DELAY)] delay: u8,
        #[truth] adapt: bool,
        max_steps: Option<&Object<'_>>,
        max_delay: Option<&Object<'_>>,
        #[seconds(10.0)] resend: Option<Duration>,
        #[within(8, 256)] log_turns: usize,
        joins: bool,
        admits: bool,
        heals: bool,
    ) -> PyResult<Self> {
        let mut config = LockstepConfig::new(me, players, master);
        config.step = step;
        config.pace = Pace { steps, delay };
        let max_steps = max_steps.map(|most| bounded("max_steps", most, steps, MAX_STEPS)).transpose()?;
        let max_delay = max_delay.map(|most| bounded("max_delay", most, delay, MAX_DELAY)).transpose()?;
        config.adapt = adapt;
        let most = config.max_pace;
        config.max_pace = Pace {
            steps: max_steps.unwrap_or(most.steps.max(steps)),
            delay: max_delay.unwrap_or(most.delay.max(delay)),
        };
        config.resend = resend;
        config.log_turns = log_turns;
        (config.joins, config.admits, config.heals) = (joins, admits, heals);
        let core = Lockstep::new(config, start).map_err(value_error)?;
        Ok(LockstepCore { core: Arc::new(Mutex::new(core)) })
    }

    fn command(&self, command: &[u8]) -> PyResult<()> {
        lock(&self.core).command(command).map_err(|error| match error {
            CommandError::TooLarge(bytes) => {
                MessageTooLargeError::new_err(format!("a command must be at most 480 bytes, not {bytes}"))
            }
            CommandError::Full => ChannelFullError::new_err("4096 commands wait for a turn; none was added"),
        })
    }

    fn attach(&self, peer: &Peer, commands: u16, objects: u16) -> PyResult<()> {
        let shared = SharedLockstep { game: Arc::clone(&self.core), classes: [commands, objects] };
        let shared = Box::new(shared);
        peer.set_core(shared).map(drop)
    }

    methods! {
        pause(paused: bool) = lock(&self.core).pause(paused);
        set_speed(speed: u8) = lock(&self.core).set_speed(speed);
        set_master(player: u8) = lock(&self.core).set_master(player.min(15));
        note_left(#[instant] now: Instant, player: u8) = lock(&self.core).note_left(now, player);
        vote(#[instant] now: Instant, player: u8, out: bool) = lock(&self.core).vote(now, player, out);
        read(#[instant] now: Instant, player: u8, payload: &[u8]) -> Option<String> =
            lock(&self.core).read(now, player, payload).err().map(|fault| fault.to_string());
        poll_turn(#[instant] now: Instant) -> Option<TurnTuple> = lock(&self.core).poll_turn(now).map(turn_tuple);
        states_wanted() -> Vec<u16> = lock(&self.core).states_wanted().into_iter().map(u16::from).collect();
        state_head(#[instant] now: Instant, player: u8) -> Option<Vec<u8>> =
            lock(&self.core).state_head(now, player).map(|head| head.write());
        is_served(player: u8) -> bool = lock(&self.core).is_served(player);
        take_state(peer: &Peer) -> Option<(u8, Vec<u8>)> = peer.take_state();
        load(#[instant] now: Instant, player: u8, state: &[u8]) -> bool =
            StateHead::read(state).is_some_and(|head| lock(&self.core).load(now, player, &head));
        give_up(reason: u8) =
            lock(&self.core).give_up(JoinRefusal::from_number(reason).unwrap_or(JoinRefusal::Closed));
        ask_again(#[instant] now: Instant) = lock(&self.core).ask_again(now);
        heal_again(#[instant] now: Instant) = lock(&self.core).heal_again(now);
        note_healed() = lock(&self.core).note_healed();
        resume(turn: i32) = lock(&self.core).resume(turn);
    }

    fn fill(&self, #[instant] now: Instant, player: u8, max_bytes: usize) -> Option<Vec<u8>> {
        let mut writer = BitWriter::new();
        let bits = max_bytes.min(1 << 16) * 8;
        lock(&self.core).fill(now, player, bits, &mut writer).then(|| writer.into_bytes())
    }

    fn check(
        &self,
        #[instant] now: Instant,
        turn: i32,
        draw: u16,
        rows: &Bound<'_, PyList>,
        arrays: Option<&Bound<'_, PyList>>,
    ) -> PyResult<u32> {
        let log = read_world(rows, arrays)?;
        let checked = lock(&self.core).check(now, turn, draw, &log);
        let refuse = || {
            PyValueError::new_err(
                "turn must be the newest that ran, checked once; 60,000 objects and 1,048,576 values at most",
            )
        };
        checked.map(|check| check.crc).ok_or_else(refuse)
    }

    fn refuse(&self, #[instant] now: Instant, player: u8, reason: u8) {
        let reason = JoinRefusal::from_number(reason).unwrap_or(JoinRefusal::Closed);
        lock(&self.core).refuse(now, player, reason);
    }

    fn expects(&self, player: u8, state: &[u8]) -> Option<(i32, usize)> {
        let head = StateHead::read(state)?;
        lock(&self.core).expects(player, &head).then_some((head.turn, STATE_HEAD))
    }

    properties! {
        joining: bool = lock(&self.core).is_joining();
        healing: bool = lock(&self.core).is_healing();
        waiting: Option<(i32, u16, f64)> =
            lock(&self.core).waiting().map(|it| (it.turn, it.players, it.since.as_secs_f64()));
        turn: i32 = lock(&self.core).turn();
        due: f64 = lock(&self.core).due().as_secs_f64();
        length: f64 = lock(&self.core).length().as_secs_f64();
        players: Vec<u16> = members(lock(&self.core).players()).map(u16::from).collect();
        excluded: bool = lock(&self.core).is_excluded();
        counters: PyResult<Bound<'py, PyDict>> = counts(py, lock(&self.core).counters().iter());
    }

    fn poll_event(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Some(event) = lock(&self.core).poll_event() else { return Ok(None) };
        let made = match event {
            LockstepEvent::Dropped { player, turn } => ("dropped", player, turn).into_py_any(py),
            LockstepEvent::Joined { player, turn } => ("joined", player, turn).into_py_any(py),
            LockstepEvent::Refused { reason } => ("refused", reason as u8).into_py_any(py),
            LockstepEvent::Healed { player, turn } => ("healed", player, turn).into_py_any(py),
            LockstepEvent::Excluded => ("excluded",).into_py_any(py),
            LockstepEvent::PaceChanged { turn, pace } => {
                ("pace", turn, pace.steps, pace.delay).into_py_any(py)
            }
            LockstepEvent::Mismatch { turn, player } => ("mismatch", turn, player).into_py_any(py),
            LockstepEvent::Desync(it) => ("desync", it.turn, it.right, it.odd).into_py_any(py),
            LockstepEvent::Report { turn, player, differences } => {
                let each = differences.into_iter();
                let list: Vec<_> = each.map(|it| (it.class, it.id, it.field, it.mine, it.theirs)).collect();
                ("report", turn, player, list).into_py_any(py)
            }
        };
        made.map(Some)
    }

    #[getter]
    fn pace(&self) -> (u8, u8) {
        let pace = lock(&self.core).pace();
        (pace.steps, pace.delay)
    }
}

/// Reads the rows of [`LockstepCore::check`].
fn read_rows(rows: &Bound<'_, PyList>) -> PyResult<TurnLog> {
    let mut log = TurnLog::default();
    let mut words = Vec::new();
    for (number, class) in rows.iter().enumerate() {
        let (name, fields, objects): (Bound<'_, PyString>, Bound<'_, PyTuple>, Bound<'_, PyList>) =
            class.extract()?;
        let class = FIRST_CLASS + u8::try_from(number).ok().filter(|it| *it < 200).unwrap_or(200);
        let mut sorted = Vec::with_capacity(objects.len());
        for object in objects.iter() {
            let row = object.cast_into::<PyTuple>()?;
            let id = row.get_item(0)?;
            sorted.push((bounded(&format!("{name}.id"), &id, 0, u32::MAX)?, row));
        }
        sorted.sort_by_key(|it| it.0);
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            refuse!(PyValueError, "two objects of {name} have the id {}", pair[0].0);
        }
        for (id, row) in &sorted {
            words.clear();
            for (at, value) in row.iter_borrowed().enumerate().skip(1) {
                let field = || fields.get_item(at - 1).map_or_else(|_| String::new(), |it| it.to_string());
                words.push(word(&value).ok_or_else(|| {
                    let kind = value.get_type();
                    PyTypeError::new_err(format!(
                        "{name}.{} of object {id} must be a whole number of 64 bits, a float, a str, bytes or None, not {value:?} ({kind})",
                        field()
                    ))
                })?);
            }
            log.push(class, *id, &words);
        }
    }
    Ok(log)
}

#[pyfunction]
pub(crate) fn replayed_crc(
    turn: TurnTuple,
    draw: u16,
    rows: &Bound<'_, PyList>,
    arrays: Option<&Bound<'_, PyList>>,
) -> PyResult<u32> {
    Ok(replayed_check(&started(turn), draw, &read_world(rows, arrays)?).crc)
}

fn read_world(rows: &Bound<'_, PyList>, arrays: Option<&Bound<'_, PyList>>) -> PyResult<TurnLog> {
    let mut log = read_rows(rows)?;
    if let Some(arrays) = arrays {
        super::arrays::push(arrays, rows.len(), &mut log)?;
    }
    Ok(log)
}

/// A turn tuple as the core's type.
pub(super) fn started(turn: TurnTuple) -> StartedTurn {
    let (turn, steps, delay, speed, paused, players, left, commands, joined) = turn;
    let commands = commands.into_iter().map(|(player, command)| (player, command.into())).collect();
    StartedTurn { turn, steps, delay, speed, paused, players, left, joined, commands }
}

/// A value in 64 bits that are equal if the values are; None for types without such a form.
fn word(value: &Object<'_>) -> Option<i64> {
    if let Ok(number) = value.extract::<i64>() {
        return Some(number);
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        return Some(float.value().to_bits() as i64);
    }
    let hash = |bytes: &[u8]| i64::from(crc32fast::hash(bytes)) | ((bytes.len() & 0x7FFF_FFFF) as i64) << 32;
    if let Ok(text) = value.cast::<PyString>() {
        return text.to_str().ok().map(|text| hash(text.as_bytes()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Some(hash(bytes.as_bytes()));
    }
    value.is_none().then_some(NOTHING)
}
