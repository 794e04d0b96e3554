//! What servers and clients share: the sans-IO core and its driver behind one lock, the two halves of a tick around
//! them, and the priority hook between.
//!
//! Promises: the lock is held for moments only, never while Python runs; what a hook gets wrong costs the tick's
//! packets nothing. With a driver's thread, all but hooks and Python objects goes on without the game.

use std::sync::{Arc, Mutex};

use core::ops::{Deref, DerefMut};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::address::Address;
use super::chunks::Transfers;
use super::errors::{ClosedError, os_error, value_error};
use super::forks::Process;
use super::hooks::{Candidates, HookClock, Moment, Source, ask_priority};
use super::inbox::{Inbox, Pending};
use super::lock;
use super::log::{DropLog, Dropped};
use super::protocol::Protocol;
use super::sans_io::Core;
use super::shared::{Close, Shared};
use super::stats::Counted;
use crate::driver::udp::UdpSocket;
use crate::driver::{Driver, DriverCounters, Station, Turn};
use crate::time::Duration;
use crate::transport::{Attribute, Column};

/// Datagrams read in one turn between ticks: some 100 microseconds that a call of the game may have to wait.
const READ_BOUND: usize = 64;

/// How long the thread waits for the game when it could go on at once: a lock let go is not a lock handed over.
const BETWEEN_TURNS: Duration = Duration::from_micros(100);

/// How long the thread leaves a socket alone that raised an error.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// The longest that event loops are told to wait: not all of them can wait for ever.
const LONGEST_STEP: Duration = Duration::from_secs(3600);

/// Knows whether its core could have changed since some moment.
#[derive(Debug)]
pub(super) struct Versioned<C> {
    core: C,
    version: u64,
}

impl<C> Deref for Versioned<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.core
    }
}

impl<C> DerefMut for Versioned<C> {
    fn deref_mut(&mut self) -> &mut C {
        self.version += 1;
        &mut self.core
    }
}

pub(super) struct Endpoint<C: Core> {
    pub(super) address: Address,
    pub(super) protocol: Py<Protocol>,
    pub(super) factory: Option<Py<PyAny>>,
    priority: Option<Py<PyAny>>,
    /// Candidates refer to it while their hook runs.
    pub(super) state: Arc<Shared<State<C>>>,
}

pub(super) struct State<C: Core> {
    pub(super) core: Versioned<C>,
    /// None once closed.
    pub(super) driver: Option<Driver>,
    /// Of the driver, once closed.
    driver_counters: DriverCounters,
    drops: DropLog,
    hooks: HookClock,
    /// The priority hook runs, and the thread leaves alone what it was asked about.
    asking: bool,
    /// A socket's error that the game wasn't told of.
    failed: Option<std::io::Error>,
    /// None while objects are being made of it.
    pending: Option<Pending>,
    pub(super) transfers: Transfers,
    /// The last receive raised, and left something for the next.
    unfinished: bool,
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
        let address = Address(driver.local_address());
        // A virtual network is copied whole by a fork, and so are its endpoints.
        let process = driver.socket().map(|_| Process::current(py)).transpose()?;
        let socket = driver.socket().filter(|_| threaded).map(UdpSocket::handle).transpose();
        let socket = socket.map_err(|error| os_error(py, &error, address.0))?;
        let state = State {
            core: Versioned { core, version: 0 },
            driver: Some(driver),
            driver_counters: DriverCounters::default(),
            drops: DropLog::default(),
            hooks,
            asking: false,
            failed: None,
            pending: Some(Pending::default()),
            transfers: Transfers::default(),
            unfinished: false,
        };
        let state = Shared::new(py, C::NAME, state, socket, process)?;
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

    /// The first half of a tick: takes what arrived. `make` makes Python objects of it.
    pub(super) fn receive(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&mut Pending, Vec<C::Event>) -> PyResult<()>,
    ) -> PyResult<Inbox> {
        let (mut pending, events) = self.receive_datagrams(py)?;
        let made = make(&mut pending, events);
        let inbox = made.and_then(|()| {
            let fates = self.state.lock()?.core.take_fates();
            pending.take(py, fates)
        });
        let mut state = self.state.lock()?;
        state.pending = Some(pending);
        state.unfinished = inbox.is_err();
        drop(state);
        inbox
    }

    /// Reads the socket, unless the thread does, and takes what the core has, without Python.
    fn receive_datagrams(&self, py: Python<'_>) -> PyResult<(Pending, Vec<C::Event>)> {
        let mut state = self.state.lock()?;
        if state.driver.is_none() {
            return Err(closed::<C>());
        }
        let Some(mut pending) = state.pending.take() else {
            return Err(PyRuntimeError::new_err(
                "another receive() is still running: call it from one thread",
            ));
        };
        let received = self.read(&mut state);
        let dropped = state.look_for_drops();
        state.core.take_messages(&mut pending.records);
        state.take_chunk_events(&mut pending.chunk_events);
        if let Err(error) = received {
            state.pending = Some(pending);
            state.unfinished = true;
            drop(state);
            self.log_drops(py, dropped);
            return Err(os_error(py, &error, self.address.0));
        }
        let events = core::iter::from_fn(|| state.core.poll_event()).collect();
        drop(state);
        self.log_drops(py, dropped);
        Ok((pending, events))
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

    /// Gives the core the datagrams that wait, or finds out how the thread fared with them.
    fn read(&self, state: &mut State<C>) -> std::io::Result<()> {
        if self.state.is_threaded() { state.failed.take().map_or(Ok(()), Err) } else { state.receive() }
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
                .map_err(|error| value_error(format!("the priority hook: {error}"))),
        });
        driver.transmit(|now, out| core.transmit(now, out));
        state.note_transfers();
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
        let candidates = Candidates::new(count, moment, self.state.weak() as _);
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

    // --- more --------------------------------------------------------------------------------------------

    /// Has the core and its driver do something.
    ///
    /// # Errors
    /// When it is closed.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut C, &mut Driver) -> T) -> PyResult<T> {
        let mut state = self.state.lock()?;
        let State { core, driver, .. } = &mut *state;
        let driver = driver.as_mut().ok_or_else(closed::<C>)?;
        Ok(work(core, driver))
    }

    /// Takes a turn, for event loops: all that a tick does but for what is the game's. Returns the seconds after which
    /// there is something to do again, if nothing arrives before.
    pub(super) fn step(&self, py: Python<'_>) -> PyResult<f64> {
        let mut state = self.state.lock()?;
        let turn = state.turn();
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
        Ok(state.core.has_news() || state.unfinished)
    }

    /// The system's number of the socket.
    pub(super) fn fileno(&self) -> PyResult<i64> {
        if self.state.is_threaded() {
            let sentence = format!("the {} has a thread, which waits for its socket", C::NAME);
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

    pub(super) fn close(&self) {
        self.state.close();
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

impl<C: Core> State<C> {
    /// Gives the core the datagrams that wait.
    fn receive(&mut self) -> std::io::Result<()> {
        let State { core, driver, .. } = self;
        let Some(driver) = driver else { return Ok(()) };
        let received = driver
            .receive(|now, unix, from, datagram, out| core.handle_datagram(now, unix, from, datagram, out));
        self.note_transfers();
        received
    }

    fn counted(&self) -> Counted {
        Counted {
            driver: self.driver.as_ref().map_or(self.driver_counters, Driver::counters),
            netcode: self.core.netcode_counters().clone(),
            packets: self.core.packet_counters(),
            hooks: self.hooks.counters(),
        }
    }

    fn look_for_drops(&mut self) -> Option<Dropped> {
        let now = self.driver.as_ref()?.now();
        if !self.drops.is_due(now) {
            return None;
        }
        let counted = self.counted();
        self.drops.look(now, counted)
    }
}

impl<C: Core> Station for State<C> {
    fn turn(&mut self) -> Turn {
        let State { core, driver, asking, failed, transfers, .. } = self;
        let Some(driver) = driver else { return Turn::Over };
        if *asking {
            return Turn::Pause(BETWEEN_TURNS);
        }
        let received = driver.receive_at_most(READ_BOUND, |now, unix, from, datagram, out| {
            core.handle_datagram(now, unix, from, datagram, out);
        });
        driver.transmit(|now, out| core.transmit_between(now, out));
        transfers.note(&mut **core, driver.now());
        match received {
            Ok(true) => Turn::Pause(BETWEEN_TURNS),
            Ok(false) => {
                let due = core.next_deadline().min(driver.next_delivery());
                Turn::Wait(due - driver.now())
            }
            Err(error) => {
                *failed = Some(error);
                Turn::Pause(AFTER_ERROR)
            }
        }
    }
}

impl<C: Core> Close for State<C> {
    fn close(&mut self) {
        let Some(mut driver) = self.driver.take() else { return };
        driver.transmit(|now, out| self.core.close(now, out));
        driver.finish();
        self.driver_counters = driver.counters();
        self.transfers.note(&mut *self.core, driver.now());
    }

    fn forsake(&mut self) {
        self.driver = None;
    }
}

impl<C: Core> Source for Mutex<State<C>> {
    fn describe(&self, moment: Moment, attribute: Attribute) -> Option<Column> {
        let state = lock(self);
        let same = state.core.version == moment.version;
        same.then(|| state.core.describe_candidates(moment.now, attribute))
    }
}

pub(super) fn closed<C: Core>() -> PyErr {
    ClosedError::new_err(format!("the {} is closed: make a new one to go on", C::NAME))
}
