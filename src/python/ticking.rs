//! An endpoint's tick: receives, makes objects, and sends.

use crate::python::prelude::*;
use pyo3::exceptions::PyRuntimeWarning;

use super::calls::{Desk, Taken};
use super::endpoint::SENT;
use super::hooks::{AskedAt, Candidates, ask_priority};
use super::log::log_drops;
use crate::driver::reports::Dropped;
use crate::driver::{BETWEEN_TURNS, Next};

/// The longest wait that event loops are given: not all of them can wait forever.
const MAX_STEP: Duration = Duration::from_secs(3600);

/// After this many calls of `receive` without a `flush`, the game has forgotten it.
const RECEIVED_ALONE: u32 = 256;

/// The peer whose connection this event ends, and the reason.
fn ended(event: &Event) -> Option<(PeerHandle, DisconnectReason)> {
    let Event::Disconnected { peer, reason, .. } = event else { return None };
    Some((*peer, *reason))
}

impl Endpoint {
    /// The first half of a tick: takes what arrived.
    pub(super) fn receive(&self, py: Python<'_>, facade: &(impl Facade + ?Sized)) -> PyResult<Inbox> {
        self.ticked.store(true, Ordering::Relaxed);
        if self.received_alone.load(Ordering::Relaxed) != SENT {
            self.warn_never_sent(py)?;
        }
        self.run_calls(py)?;
        let mut pending = self.receive_datagrams(py)?;
        let admitted = facade.admit(py);
        // A newcomer is admitted only after the hook was asked, so later ones wait for the next tick. Leftovers of the
        // last tick are handed over alone: a second tick beside them might hold the end of a peer that sent some of
        // them.
        let taken = if pending.is_empty() { self.take(py, &mut pending) } else { Ok(Ok(())) };
        let events = core::mem::take(&mut pending.tick.events);
        if self.desk.is_some() {
            pending.calls.ended.extend(events.iter().filter_map(ended));
        }
        let made = taken.and_then(|read| facade.make_objects(py, &mut pending, events).and(read));
        let calls = made.and_then(|()| self.take_calls(py, &mut pending.calls));
        let inbox = admitted.and(calls).and_then(|calls| pending.take(py, calls));
        *lock(&self.pending) = Some(pending);
        self.state.lock()?.unfinished = inbox.is_err();
        inbox
    }

    /// Warns once that a game receives and never sends: its connections can't come up.
    #[cold]
    fn warn_never_sent(&self, py: Python<'_>) -> PyResult<()> {
        if self.received_alone.fetch_add(1, Ordering::Relaxed) + 1 < RECEIVED_ALONE {
            return Ok(());
        }
        self.received_alone.store(SENT, Ordering::Relaxed);
        let sentence = format!(
            "{} called receive() {RECEIVED_ALONE} times and never flush(), so no connection can start: call flush() after receive(), \
             or tick() in a with statement",
            self.described()
        );
        warn::<PyRuntimeWarning>(py, sentence)
    }

    /// Reads the socket, unless the thread does.
    fn receive_datagrams(&self, py: Python<'_>) -> PyResult<Box<Pending>> {
        let mut state = self.state.lock()?;
        if state.is_closed() {
            return Err(self.closed_error());
        }
        let Some(pending) = lock(&self.pending).take() else {
            return Err(PyRuntimeError::new_err(
                "another receive() is still running: call it from one thread",
            ));
        };
        let received = self.read(&mut state).map_err(|error| os_error(py, &error, self.address.0));
        let (dropped, ended) = (state.look_for_drops(), state.look_at_capture());
        let pending = match received {
            Ok(()) => Ok(pending),
            Err(error) => {
                *lock(&self.pending) = Some(pending);
                state.unfinished = true;
                Err(error)
            }
        };
        drop(state);
        self.log_drops(py, dropped);
        if let Some(ended) = ended {
            log(py, Level::Warning, || format!("{} {ended}", self.described()));
        }
        pending
    }

    /// Takes the session's data under one lock: events, and the messages, notifications and chunks of just those
    /// connections that the events have announced. What a thread receives meanwhile stays for the next tick. The inner
    /// result is an exception of the game's code that read packets.
    fn take(&self, py: Python<'_>, pending: &mut Pending) -> PyResult<PyResult<()>> {
        let mut state = self.state.lock()?;
        let now = state.carrier.now();
        state.carrier.session.take(now, &mut pending.tick);
        let unread = core::mem::take(&mut pending.tick.unread);
        let mut read = Ok(());
        if !unread.is_empty() {
            drop(state);
            let (what, raised) = self.read_held(py, unread);
            read = raised;
            state = self.state.lock()?;
            state.handle_read(what, &mut pending.tick);
        }
        state.transfers.apply_events(&pending.tick.chunks);
        state.carrier.take_inputs();
        Ok(read)
    }

    /// Runs the calls that the game left unread in its last tick's inbox.
    pub(super) fn run_calls(&self, py: Python<'_>) -> PyResult<()> {
        self.desk.as_ref().map_or(Ok(()), |desk| desk.run(py, None, None).map(drop))
    }

    /// Takes over the calls of a tick; they run after this tick's messages are read.
    pub(super) fn take_calls(
        &self,
        py: Python<'_>,
        taken: &mut Taken,
    ) -> PyResult<Option<(Weak<Desk>, u64)>> {
        let Some(desk) = &self.desk else { return Ok(None) };
        let now = self.state.lock()?.carrier.driver().map_or(Instant::ZERO, Driver::now);
        let tick = desk.take(py, taken, now)?;
        Ok(Some((Arc::downgrade(desk), tick)))
    }

    /// Drops the calls of a peer whose connection the game ended.
    pub(super) fn discard_calls(&self, peer: PeerHandle) {
        if let Some(desk) = &self.desk {
            desk.discard_calls(peer);
        }
    }

    /// Ends the calls and requests of an endpoint that is closed.
    pub(super) fn end_calls(&self, py: Python<'_>) -> PyResult<()> {
        match &self.desk {
            Some(desk) if self.closed().unwrap_or(true) => desk.close(py),
            _ => Ok(()),
        }
    }

    /// The second half: sends what is queued.
    pub(super) fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.run_calls(py)?;
        if self.sends(py)? { Ok(()) } else { Err(self.closed_error()) }
    }

    /// Does what [`Endpoint::step`] does, and logs drops as a tick does. A game that pumps makes no tick of its world.
    pub(super) fn pump(&self, py: Python<'_>) -> PyResult<()> {
        self.step(py)?;
        let dropped = self.state.lock()?.look_for_drops();
        self.log_drops(py, dropped);
        Ok(())
    }

    /// Reads the waiting datagrams; with a thread, those since its last turn. A game that asks all the time leaves the
    /// thread no time to read them.
    fn read(&self, state: &mut State) -> std::io::Result<()> {
        state.failed.take().map_or(Ok(()), Err)?;
        state.receive()
    }

    /// Sends everything queued, in the order of the priority hook, unless it is closed.
    pub(super) fn transmit(&self, py: Python<'_>) -> PyResult<()> {
        self.sends(py).map(drop)
    }

    /// [`Endpoint::transmit`]; false once closed.
    fn sends(&self, py: Python<'_>) -> PyResult<bool> {
        self.ticked.store(true, Ordering::Relaxed);
        self.received_alone.store(SENT, Ordering::Relaxed);
        let answer = self.ask_priority(py);
        let copies = self.has_world().then(|| self.copies.take(self.population.rows()));
        let mut state = self.state.lock()?;
        state.asking &= !matches!(answer, Ok(Some(_)));
        if state.is_closed() {
            return Ok(false);
        }
        let ordered = answer.and_then(|answer| match answer {
            None => Ok(()),
            Some((version, _)) if version != state.carrier.session.version() => Err(PyRuntimeError::new_err(
                "the priority hook's scores are outdated: the hook must not send or receive",
            )),
            Some((_, scores)) => state
                .change()
                .prioritize(&scores)
                .map_err(|error| value_error(format!("the priority hook {error}"))),
        });
        let mut wrong = Vec::new();
        if let Some(copies) = &copies {
            let world = state.carrier.session.ghosts().world();
            world.into_iter().for_each(|world| world.begin_tick(&copies.columns(), &mut wrong));
        }
        state.transmit();
        drop(state);
        self.pass_on()?;
        drop(copies);
        // A message may be due for resending before the thread's wake-up time.
        self.state.wake();
        ordered?;
        self.population.error(py, &wrong).map_or(Ok(true), Err)
    }

    /// Sends what waits on the port of the peer that carries for it.
    fn pass_on(&self) -> PyResult<()> {
        if let Some(peer) = self.carrier.as_ref().and_then(Weak::upgrade) {
            peer.lock()?.carrier.pass_hosted();
        }
        Ok(())
    }

    /// Whether there are ghosts to send.
    fn has_world(&self) -> bool {
        self.kind.is_server && !self.population.is_empty()
    }

    /// The scores of waiting messages, and the version of the core they are for, which the thread leaves unchanged
    /// until they are used. None without a hook or candidates, or if the hook leaves the order as it is.
    fn ask_priority(&self, py: Python<'_>) -> PyResult<Option<(u64, Vec<f32>)>> {
        let Some(hook) = &self.priority else { return Ok(None) };
        let (count, asked_at) = {
            let mut state = self.state.lock()?;
            if state.asking {
                return Err(PyRuntimeError::new_err("flush() was called while the priority hook runs"));
            }
            let Some(driver) = state.carrier.driver() else { return Ok(None) };
            let (count, now) = (state.host().candidates(), driver.now());
            if count == 0 {
                return Ok(None);
            }
            state.asking = true;
            (count, AskedAt { now, version: state.carrier.session.version() })
        };
        let candidates = Candidates::new(count, asked_at, Arc::downgrade(&self.state));
        let answer = self.clocked(py, "priority", || ask_priority(hook.bind(py), candidates));
        if !matches!(answer, Ok(Some(_))) {
            self.state.lock()?.asking = false;
        }
        Ok(answer?.map(|scores| (asked_at.version, scores)))
    }

    /// Runs a hook, and measures its time.
    pub(super) fn clocked<T>(&self, py: Python<'_>, name: &'static str, hook: impl FnOnce() -> T) -> T {
        let started = std::time::Instant::now();
        let answer = hook();
        let ended = std::time::Instant::now();
        let slow = self.state.lock().ok().and_then(|mut state| state.hooks.count(started, ended));
        if let Some(slow) = slow {
            log(py, Level::Warning, || slow.line(name, &self.described()));
        }
        answer
    }

    /// Makes the thread panic at its next turn.
    #[cfg(feature = "faults")]
    pub(super) fn break_thread(&self) -> PyResult<()> {
        self.state.lock()?.broken = true;
        self.state.wake();
        Ok(())
    }

    /// A turn for event loops: everything a tick does except the game's part. Returns the seconds until the next turn
    /// if nothing arrives before.
    pub(super) fn step(&self, py: Python<'_>) -> PyResult<f64> {
        self.ticked.store(true, Ordering::Relaxed);
        self.received_alone.store(SENT, Ordering::Relaxed);
        let mut state = self.state.lock()?;
        if state.is_closed() {
            return Err(self.closed_error());
        }
        let turn = state.step();
        if self.carrier.is_some() {
            drop(state);
            self.pass_on()?;
            state = self.state.lock()?;
        }
        if let Some(error) = state.failed.take() {
            drop(state);
            return Err(os_error(py, &error, self.address.0));
        }
        match turn {
            Next::Again | Next::Pause(BETWEEN_TURNS) => Ok(0.0),
            Next::Pause(wait) | Next::Wait(wait) => {
                let deadline = self.desk.as_ref().and_then(|desk| desk.deadline());
                let due = deadline.map_or(MAX_STEP, |at| at.since(state.carrier.now()));
                Ok(wait.min(due).min(MAX_STEP).as_secs_f64())
            }
            // Its linger has ended.
            Next::Over => {
                drop(state);
                self.end_calls(py)?;
                Ok(0.0)
            }
        }
    }

    fn log_drops(&self, py: Python<'_>, dropped: Option<Dropped>) {
        if let Some(dropped) = dropped {
            log_drops(py, &dropped, &self.described());
        }
    }
}
