//! What servers and clients share: the sans-IO core and its driver behind one lock, the two halves of a tick around
//! them, and the priority hook between.
//!
//! Promises: the lock is held for moments only, never while Python runs; what a hook gets wrong costs the tick's
//! packets nothing. With a driver's thread, all but hooks and Python objects goes on without the game.

use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::address::Address;
use super::errors::{ClosedError, os_error, value_error};
use super::forks::Process;
use super::hooks::{Candidates, HookClock, Moment, ask_priority};
use super::inbox::{Inbox, Pending};
use super::log::{Dropped, Level, log};
use super::protocol::Protocol;
use super::sans_io::Core;
use super::shared::Shared;
use super::state::{BETWEEN_TURNS, State};
use crate::driver::udp::UdpSocket;
use crate::driver::{Bell, Driver, Turn};
use crate::time::Duration;

/// The longest that event loops are told to wait: not all of them can wait for ever.
const LONGEST_STEP: Duration = Duration::from_secs(3600);

pub(super) struct Endpoint<C: Core> {
    pub(super) address: Address,
    pub(super) protocol: Py<Protocol>,
    pub(super) factory: Option<Py<PyAny>>,
    priority: Option<Py<PyAny>>,
    /// Candidates refer to it while their hook runs.
    pub(super) state: Arc<Shared<State<C>>>,
}

impl<C: Core> Endpoint<C> {
    #[expect(clippy::too_many_arguments, reason = "they are settings")]
    pub(super) fn new(
        py: Python<'_>,
        core: C,
        driver: Driver,
        threaded: bool,
        protocol: Py<Protocol>,
        factory: Option<Py<PyAny>>,
        priority: Option<Py<PyAny>>,
        hooks: HookClock,
    ) -> PyResult<Self> {
        if let Some(factory) = &factory
            && !factory.bind(py).hasattr(intern!(py, "create"))?
        {
            let class = factory.bind(py).get_type().name()?;
            let sentence =
                format!("factory must be a MessageFactory, with a method create, or None, not {class}");
            return Err(PyTypeError::new_err(sentence));
        }
        let address = Address(driver.local_address());
        // A virtual network is copied whole by a fork, and so are its endpoints.
        let process = driver.socket().map(|_| Process::current(py)).transpose()?;
        let socket = driver.socket().filter(|_| threaded);
        let bell = socket.map(|socket| Bell::new(socket.handle()?)).transpose();
        let bell = bell.map_err(|error| os_error(py, &error, address.0))?;
        let state = Shared::new(py, C::NAME, State::new(core, driver, hooks), bell, process)?;
        Ok(Endpoint { address, protocol, factory, priority, state })
    }

    /// Lets messages of these classes come as columns.
    ///
    /// # Errors
    /// When one of them is not declared by its fields, or not in the protocol.
    pub(super) fn with_columns(
        self,
        py: Python<'_>,
        columns: Option<Vec<Bound<'_, PyAny>>>,
    ) -> PyResult<Self> {
        let pending = Pending::new(self.protocol.bind(py).get(), &columns.unwrap_or_default())?;
        self.state.lock()?.pending = Some(pending);
        Ok(self)
    }

    // --- a tick ------------------------------------------------------------------------------------------

    /// The first half of a tick: takes what arrived. `admit` decides about newcomers before, and `make` makes Python objects
    /// of what was taken.
    pub(super) fn receive(
        &self,
        py: Python<'_>,
        admit: impl FnOnce() -> PyResult<()>,
        make: impl FnOnce(&mut Pending, Vec<C::Event>) -> PyResult<()>,
    ) -> PyResult<Inbox> {
        let mut pending = self.receive_datagrams(py)?;
        let admitted = admit();
        // Nobody is admitted who was not asked about, so the others wait for the next tick.
        let taken = self.take(py, &mut pending);
        let made = taken.and_then(|(events, read)| make(&mut pending, events).and(read));
        let inbox = admitted.and(made).and_then(|()| pending.take(py));
        let mut state = self.state.lock()?;
        state.pending = Some(pending);
        state.unfinished = inbox.is_err();
        drop(state);
        inbox
    }

    /// Reads the socket, unless the thread does.
    fn receive_datagrams(&self, py: Python<'_>) -> PyResult<Pending> {
        let mut state = self.state.lock()?;
        if state.driver.is_none() {
            return Err(closed::<C>());
        }
        let Some(pending) = state.pending.take() else {
            return Err(PyRuntimeError::new_err(
                "another receive() is still running: call it from one thread",
            ));
        };
        let received = self.read(&mut state).map_err(|error| os_error(py, &error, self.address.0));
        let (dropped, ended) = (state.look_for_drops(), state.look_at_capture());
        let pending = match received {
            Ok(()) => Ok(pending),
            Err(error) => {
                state.pending = Some(pending);
                state.unfinished = true;
                Err(error)
            }
        };
        drop(state);
        self.log_drops(py, dropped);
        self.log_capture(py, ended);
        pending
    }

    /// Takes what the core has, all under one lock: events, and the messages, notifications and chunks of just those
    /// connections that the events have told of. What a thread receives meanwhile stays for the next tick.
    fn take(&self, py: Python<'_>, pending: &mut Pending) -> PyResult<(Vec<C::Event>, PyResult<()>)> {
        let mut state = self.state.lock()?;
        let unread = state.core.take_unread();
        let mut read = Ok(());
        if !unread.is_empty() {
            drop(state);
            let (what, raised) = self.read_held(py, unread);
            read = raised;
            state = self.state.lock()?;
            state.handle_read(what, &mut pending.records);
        }
        state.core.take_messages(&mut pending.records);
        state.take_chunk_events(&mut pending.chunk_events);
        state.core.take_fates(&mut pending.fates, &mut pending.packets);
        let events = core::iter::from_fn(|| state.core.poll_event()).collect();
        Ok((events, read))
    }

    /// The second half: sends what is queued.
    pub(super) fn flush(&self, py: Python<'_>) -> PyResult<()> {
        if self.transmit(py)? { Ok(()) } else { Err(closed::<C>()) }
    }

    /// Both halves without taking messages.
    pub(super) fn pump(&self, py: Python<'_>) -> PyResult<()> {
        let (received, dropped) = {
            let mut state = self.state.lock()?;
            if state.driver.is_none() {
                return Err(closed::<C>());
            }
            (self.read(&mut state), state.look_for_drops())
        };
        self.log_drops(py, dropped);
        received.map_err(|error| os_error(py, &error, self.address.0))?;
        self.flush(py)
    }

    /// Gives the core the datagrams that wait: with a thread, those since its last turn. A game that looks all the time leaves the
    /// thread no time to read them.
    fn read(&self, state: &mut State<C>) -> std::io::Result<()> {
        state.failed.take().map_or(Ok(()), Err)?;
        state.receive()
    }

    /// Sends what is queued, in the order that the priority hook gives; false once closed.
    pub(super) fn transmit(&self, py: Python<'_>) -> PyResult<bool> {
        let answer = self.ask_priority(py);
        let mut state = self.state.lock()?;
        let State { core, driver, asking, .. } = &mut *state;
        *asking &= !matches!(answer, Ok(Some(_)));
        let Some(driver) = driver else { return Ok(false) };
        let ordered = answer.and_then(|answer| match answer {
            None => Ok(()),
            Some((version, _)) if version != core.version => Err(PyRuntimeError::new_err(
                "the priority hook's scores are for what waited before: something was sent or received while it ran",
            )),
            Some((_, scores)) => core
                .prioritize(&scores)
                .map_err(|error| value_error(format!("the priority hook {error}"))),
        });
        driver.transmit(|now, out| core.transmit(now, out));
        state.note_transfers();
        state.end_linger();
        drop(state);
        // What was sent may be due again before what the thread sleeps for.
        self.state.wake();
        ordered.map(|()| true)
    }

    /// The scores of what waits, and the version of the core they are for, which the thread leaves as it is until they
    /// are used. None without a hook or anything to ask it, and when it leaves the order as it is.
    fn ask_priority(&self, py: Python<'_>) -> PyResult<Option<(u64, Vec<f32>)>> {
        let Some(hook) = &self.priority else { return Ok(None) };
        let (count, moment) = {
            let mut state = self.state.lock()?;
            if state.asking {
                return Err(PyRuntimeError::new_err("flush() was called while the priority hook runs"));
            }
            let Some(driver) = &state.driver else { return Ok(None) };
            let (count, now) = (state.core.candidates(), driver.now());
            if count == 0 {
                return Ok(None);
            }
            state.asking = true;
            (count, Moment { now, version: state.core.version })
        };
        let candidates = Candidates::new(count, moment, Arc::downgrade(&self.state) as _);
        let answer = self.clocked(py, "priority", || ask_priority(hook.bind(py), candidates));
        if !matches!(answer, Ok(Some(_))) {
            self.state.lock()?.asking = false;
        }
        Ok(answer?.map(|scores| (moment.version, scores)))
    }

    /// Runs a hook by the clock.
    pub(super) fn clocked<T>(&self, py: Python<'_>, name: &'static str, hook: impl FnOnce() -> T) -> T {
        let started = std::time::Instant::now();
        let answer = hook();
        let ended = std::time::Instant::now();
        let slow = self.state.lock().ok().and_then(|mut state| state.hooks.count(started, ended));
        if let Some(slow) = slow {
            slow.log(py, name, || self.described());
        }
        answer
    }

    /// Has the thread panic in its next turn.
    #[cfg(feature = "faults")]
    pub(super) fn break_thread(&self) -> PyResult<()> {
        self.state.lock()?.broken = true;
        self.state.wake();
        Ok(())
    }

    // --- more --------------------------------------------------------------------------------------------

    /// Has the core and its driver do something.
    ///
    /// # Errors
    /// When it is closed.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut C, &mut Driver) -> T) -> PyResult<T> {
        let mut state = self.state.lock()?;
        let lingers = state.is_closing();
        let State { core, driver, .. } = &mut *state;
        let driver = driver.as_mut().filter(|_| !lingers).ok_or_else(closed::<C>)?;
        Ok(work(core, driver))
    }

    /// Takes a turn, for event loops: all that a tick does but for what is the game's. Returns the seconds after which
    /// there is something to do again, if nothing arrives before.
    pub(super) fn step(&self, py: Python<'_>) -> PyResult<f64> {
        let mut state = self.state.lock()?;
        let turn = state.step();
        if let Some(error) = state.failed.take() {
            drop(state);
            return Err(os_error(py, &error, self.address.0));
        }
        match turn {
            Turn::Pause(BETWEEN_TURNS) => Ok(0.0),
            Turn::Pause(wait) | Turn::Wait(wait) => Ok(wait.min(LONGEST_STEP).as_secs_f64()),
            Turn::Over => Err(closed::<C>()),
        }
    }

    /// Whether the next receive has something for the game.
    pub(super) fn has_news(&self) -> PyResult<bool> {
        let state = self.state.lock()?;
        Ok(state.core.has_news() || state.transfers.has_news() || state.unfinished)
    }

    /// The system's number of the socket.
    pub(super) fn fileno(&self) -> PyResult<i64> {
        if self.state.is_threaded() {
            let sentence = format!(
                "the {} has a thread, which waits for its socket: make it with driver='polled' to wait yourself",
                C::NAME
            );
            return Err(PyValueError::new_err(sentence));
        }
        let number = self.with(|_, driver| driver.socket().map(UdpSocket::number))?;
        let sentence = || {
            format!(
                "the {} is on a simulated network and has no socket: tick it, and advance the network",
                C::NAME
            )
        };
        number.ok_or_else(|| PyValueError::new_err(sentence()))
    }

    pub(super) fn closed(&self) -> PyResult<bool> {
        Ok(self.state.lock()?.driver.is_none())
    }

    pub(super) fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = self.state.lock()?.counted();
        counted.to_python(py)
    }

    /// For log lines.
    pub(super) fn described(&self) -> String {
        self.state.lock().map_or_else(|_| C::NAME.into(), |state| state.core.describe(self.address))
    }

    fn log_drops(&self, py: Python<'_>, dropped: Option<Dropped>) {
        if let Some(dropped) = dropped {
            dropped.log(py, || self.described());
        }
    }

    fn log_capture(&self, py: Python<'_>, ended: Option<String>) {
        if let Some(ended) = ended {
            log(py, Level::Warning, || format!("{} {ended}", self.described()));
        }
    }

    pub(super) fn traverse(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.protocol)?;
        visit.call(&self.factory)?;
        visit.call(&self.priority)?;
        match self.state.try_lock() {
            Some(state) => state.pending.iter().try_for_each(|pending| pending.traverse(visit)),
            // What is being worked on is in use.
            None => Ok(()),
        }
    }
}

pub(super) fn closed<C: Core>() -> PyErr {
    ClosedError::new_err(format!("the {} is closed: make a new one to go on", C::NAME))
}
