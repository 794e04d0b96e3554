//! What servers and clients share: the sans-IO core and its driver behind one lock, the two halves of a tick around
//! them, and the priority hook between.
//!
//! Promises: the lock is held for moments only, never while Python runs; what a hook gets wrong costs the tick's
//! packets nothing.

use std::sync::{Arc, Mutex};

use core::ops::{Deref, DerefMut};

use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::address::Address;
use super::chunks::Transfers;
use super::errors::{ClosedError, os_error, value_error};
use super::hooks::{Candidates, HookClock, Moment, Source, ask_priority};
use super::inbox::{Inbox, Pending};
use super::lock;
use super::log::{DropLog, Dropped};
use super::protocol::Protocol;
use super::sans_io::Core;
use super::stats::Counted;
use crate::driver::{Driver, DriverCounters};
use crate::transport::{Attribute, Column};

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
    pub(super) state: Arc<Mutex<State<C>>>,
}

pub(super) struct State<C: Core> {
    pub(super) core: Versioned<C>,
    /// None once closed.
    pub(super) driver: Option<Driver>,
    /// Of the driver, once closed.
    driver_counters: DriverCounters,
    drops: DropLog,
    hooks: HookClock,
    /// The priority hook runs.
    asking: bool,
    /// None while objects are being made of it.
    pending: Option<Pending>,
    pub(super) transfers: Transfers,
}

impl<C: Core> Endpoint<C> {
    pub(super) fn new(
        core: C,
        driver: Driver,
        protocol: Py<Protocol>,
        factory: Option<Py<PyAny>>,
        priority: Option<Py<PyAny>>,
        hooks: HookClock,
    ) -> Self {
        let address = Address(driver.local_address());
        let state = State {
            core: Versioned { core, version: 0 },
            driver: Some(driver),
            driver_counters: DriverCounters::default(),
            drops: DropLog::default(),
            hooks,
            asking: false,
            pending: Some(Pending::default()),
            transfers: Transfers::default(),
        };
        Endpoint { address, protocol, factory, priority, state: Arc::new(Mutex::new(state)) }
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
            let fates = lock(&self.state).core.take_fates();
            pending.take(py, fates)
        });
        lock(&self.state).pending = Some(pending);
        inbox
    }

    /// Reads the socket and takes what the core has, without Python.
    fn receive_datagrams(&self, py: Python<'_>) -> PyResult<(Pending, Vec<C::Event>)> {
        let mut state = lock(&self.state);
        if state.driver.is_none() {
            return Err(closed::<C>());
        }
        let Some(mut pending) = state.pending.take() else {
            return Err(PyRuntimeError::new_err("another receive() is still running"));
        };
        let received = state.receive();
        let dropped = state.look_for_drops();
        state.core.take_messages(&mut pending.records);
        state.take_chunk_events(&mut pending.chunk_events);
        if let Err(error) = received {
            state.pending = Some(pending);
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
            let mut state = lock(&self.state);
            if state.driver.is_none() {
                return Err(closed::<C>());
            }
            (state.receive(), state.look_for_drops())
        };
        self.log_drops(py, dropped);
        received.map_err(|error| os_error(py, &error, self.address.0))?;
        self.flush(py)
    }

    /// Sends what is queued, in the order that the priority hook gives; false once closed.
    pub(super) fn transmit(&self, py: Python<'_>) -> PyResult<bool> {
        let answer = self.ask_priority(py);
        let mut state = lock(&self.state);
        let State { core, driver, .. } = &mut *state;
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
        ordered.map(|()| true)
    }

    /// The scores of what waits, and the version of the core they are for. None without a hook or anything to ask it,
    /// and when it leaves the order as it is.
    fn ask_priority(&self, py: Python<'_>) -> PyResult<Option<(u64, Vec<f32>)>> {
        let Some(hook) = &self.priority else { return Ok(None) };
        let (count, moment) = {
            let mut state = lock(&self.state);
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
        lock(&self.state).asking = false;
        Ok(answer?.map(|scores| (moment.version, scores)))
    }

    /// Runs a hook by the clock.
    pub(super) fn clocked<T>(&self, py: Python<'_>, name: &'static str, hook: impl FnOnce() -> T) -> T {
        let started = std::time::Instant::now();
        let answer = hook();
        let slow = lock(&self.state).hooks.count(started, std::time::Instant::now());
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
        let mut state = lock(&self.state);
        let State { core, driver, .. } = &mut *state;
        let driver = driver.as_mut().ok_or_else(closed::<C>)?;
        Ok(work(core, driver))
    }

    pub(super) fn closed(&self) -> bool {
        lock(&self.state).driver.is_none()
    }

    pub(super) fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = lock(&self.state).counted();
        counted.to_python(py)
    }

    pub(super) fn close(&self) {
        lock(&self.state).close();
    }

    /// For log lines.
    pub(super) fn described(&self) -> String {
        lock(&self.state).core.describe(self.address)
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
            Ok(state) => state.pending.iter().try_for_each(|pending| pending.traverse(visit)),
            // What is being worked on is in use.
            Err(_) => Ok(()),
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

    fn close(&mut self) {
        let Some(mut driver) = self.driver.take() else { return };
        driver.transmit(|now, out| self.core.close(now, out));
        driver.finish();
        self.driver_counters = driver.counters();
        self.transfers.note(&mut *self.core, driver.now());
    }
}

impl<C: Core> Source for Mutex<State<C>> {
    fn describe(&self, moment: Moment, attribute: Attribute) -> Option<Column> {
        let state = lock(self);
        let same = state.core.version == moment.version;
        same.then(|| state.core.describe_candidates(moment.now, attribute))
    }
}

/// An endpoint that is dropped says goodbye.
impl<C: Core> Drop for State<C> {
    fn drop(&mut self) {
        self.close();
    }
}

pub(super) fn closed<C: Core>() -> PyErr {
    ClosedError::new_err(format!("the {} is closed", C::NAME))
}
