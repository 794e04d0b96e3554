//! An endpoint's waiting calls: received ones until the game takes them, and its own requests until they are answered.
//!
//! Promises: each request ends once: by its reply, by its timeout in the endpoint's clock, or with its connection. A
//! peer's calls that wait here are bounded. No lock is held while Python runs.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicBool;

use crate::python::prelude::*;

use super::counts::{CallCounts, CallOutcome};
use super::declared::{Declared, Role};
use super::objects::request_class;
use crate::calls::Requests;
use crate::endpoint::DisconnectReason;
use crate::python::errors::{NotConnectedError, StaleClientError};
use crate::python::ghosts::Population;
use crate::python::log::LogPace;
use crate::python::protocol::Protocol;
use crate::python::shared::Shared;
use crate::python::state::State;
use crate::store::Bucket;

/// A received call that hasn't run yet.
pub(in crate::python) struct Arrived {
    /// How many of the tick's messages arrived before it.
    pub(in crate::python) place: usize,
    /// The index of the call.
    pub(in crate::python) call: u16,
    pub(in crate::python) peer: PeerHandle,
    /// Its arguments, on a server after the caller, in the form of messages.
    pub(in crate::python) item: Py<PyAny>,
}

/// A tick's calls, replies and ended connections.
#[derive(Default)]
pub(in crate::python) struct Taken {
    pub(in crate::python) calls: Vec<Arrived>,
    /// Replies: sender, role and object.
    pub(in crate::python) replies: Vec<(PeerHandle, Role, Py<PyAny>)>,
    /// Ended connections, with their reasons.
    pub(in crate::python) ended: Vec<(PeerHandle, DisconnectReason)>,
}

impl Taken {
    pub(in crate::python) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.replies.is_empty() && self.ended.is_empty()
    }
}

holds!(Taken: calls, replies);
holds!(Arrived: item);

/// The decision about a received call.
pub(in crate::python) enum Admission {
    Taken,
    Dropped,
    /// Its connection ends for this reason.
    Violation(String),
}

/// The calls of the tick that the game is in.
#[derive(Default)]
pub(super) struct Queue {
    /// The number of that tick.
    pub(super) tick: u64,
    pub(super) calls: VecDeque<Arrived>,
}

/// The requests of all connections.
pub(super) struct Pending {
    pub(super) of: HashMap<PeerHandle, Requests<Py<PyAny>>>,
    /// No request expires before this.
    pub(super) deadline: Instant,
}

pub(in crate::python) struct Desk {
    pub(super) protocol: Py<Protocol>,
    pub(super) is_server: bool,
    /// The functions that run the calls.
    pub(super) handlers: Mutex<Vec<Py<PyAny>>>,
    pub(super) queue: Mutex<Queue>,
    /// Calls that name ghosts which haven't arrived, with their deadlines.
    pub(super) waiting: Mutex<VecDeque<(Instant, Arrived)>>,
    /// Whether a call is running.
    pub(super) running: AtomicBool,
    /// The rate limits of clients that have called.
    limits: Mutex<HashMap<PeerHandle, Vec<Bucket>>>,
    pub(super) requests: Mutex<Pending>,
    pub(super) counts: Arc<CallCounts>,
    pub(super) state: Weak<Shared<State>>,
    pub(super) population: Arc<Population>,
    /// When a traceback was last logged.
    pub(super) log_pace: Mutex<LogPace>,
}

impl Desk {
    pub(in crate::python) fn new(
        py: Python<'_>,
        protocol: &Py<Protocol>,
        is_server: bool,
        counts: Arc<CallCounts>,
        state: Weak<Shared<State>>,
        population: Arc<Population>,
    ) -> Self {
        let declared = &protocol.get().calls.declared;
        let handlers = declared.iter().map(|declared| declared.function.clone_ref(py)).collect();
        Desk {
            protocol: protocol.clone_ref(py),
            is_server,
            handlers: Mutex::new(handlers),
            queue: Mutex::default(),
            waiting: Mutex::default(),
            running: AtomicBool::new(false),
            limits: Mutex::default(),
            requests: Mutex::new(Pending { of: HashMap::new(), deadline: Instant::NEVER }),
            counts,
            state,
            population,
            log_pace: Mutex::default(),
        }
    }

    pub(super) fn declared(&self, place: u16) -> &Declared {
        &self.protocol.get().calls.declared[usize::from(place)]
    }

    /// Decides about a received call before an object is made of it.
    pub(in crate::python) fn admit(&self, peer: PeerHandle, place: u16, now: Instant) -> Admission {
        let declared = self.declared(place);
        if declared.runs_on_server() != self.is_server {
            return Admission::Violation(format!("{}: a call that runs on the other side", declared.name));
        }
        if !self.is_server {
            return Admission::Taken;
        }
        let mut limits = lock(&self.limits);
        let buckets = limits.entry(peer).or_default();
        if buckets.is_empty() {
            buckets.resize(self.protocol.get().calls.declared.len(), Bucket::default());
        }
        if declared.rate.take(&mut buckets[usize::from(place)], now) {
            return Admission::Taken;
        }
        drop(limits);
        self.counts.count(CallOutcome::Limited);
        if declared.disconnects {
            return Admission::Violation(format!(
                "{}: called more often than its rate allows",
                declared.name
            ));
        }
        Admission::Dropped
    }

    /// Takes over a tick's calls at its end: replies and timeouts are handled at once, calls wait for the game. Returns
    /// the number of the tick.
    ///
    /// # Errors
    /// The first exception of the game's code, after everything else is done; received calls stay where they are.
    pub(in crate::python) fn take(&self, py: Python<'_>, taken: &mut Taken, now: Instant) -> PyResult<u64> {
        let mut raised = FirstError::default();
        for (peer, role, reply) in core::mem::take(&mut taken.replies) {
            raised.keep(py, self.answer(peer, role, reply.bind(py)));
        }
        for (peer, reason) in core::mem::take(&mut taken.ended) {
            lock(&self.limits).remove(&peer);
            self.discard_waiting(peer);
            let requests = lock(&self.requests).of.remove(&peer);
            let requests = requests.map(|mut requests| requests.take_all()).unwrap_or_default();
            for request in requests {
                raised.keep(py, self.fail_ended(request.bind(py), Some(reason)));
            }
        }
        raised.keep(py, self.expire(py, now));
        let ready = self.take_ready(py, now, &mut raised);
        let mut queue = lock(&self.queue);
        queue.tick += 1;
        // Calls left over by a handler that ticks come first.
        queue.calls.iter_mut().for_each(|call| call.place = 0);
        queue.calls.extend(ready);
        raised.0.map_or(Ok(()), Err)?;
        queue.calls.extend(taken.calls.drain(..));
        Ok(queue.tick)
    }

    /// Ends all requests: nothing will arrive any more.
    pub(in crate::python) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let all = core::mem::take(&mut lock(&self.requests).of);
        let mut raised = FirstError::default();
        for request in all.into_values().flat_map(|mut requests| requests.take_all()) {
            raised.keep(py, self.fail_ended(request.bind(py), None));
        }
        let calls = core::mem::take(&mut lock(&self.queue).calls);
        let waiting = core::mem::take(&mut *lock(&self.waiting));
        drop((calls, waiting));
        raised.0.map_or(Ok(()), Err)
    }

    /// Drops a connection's waiting calls after the server has ended it: their caller is gone.
    pub(in crate::python) fn discard_calls(&self, peer: PeerHandle) {
        let theirs: VecDeque<Arrived> = {
            let mut queue = lock(&self.queue);
            let (theirs, others) =
                core::mem::take(&mut queue.calls).into_iter().partition(|call| call.peer == peer);
            queue.calls = others;
            theirs
        };
        theirs.iter().for_each(|_| self.counts.count(CallOutcome::Gone));
        self.discard_waiting(peer);
    }

    /// When the next request expires, if there is one.
    pub(in crate::python) fn deadline(&self) -> Option<Instant> {
        Some(lock(&self.requests).deadline).filter(|deadline| *deadline != Instant::NEVER)
    }

    /// Ends expired requests.
    fn expire(&self, py: Python<'_>, now: Instant) -> PyResult<()> {
        let late: Vec<Py<PyAny>> = {
            let mut pending = lock(&self.requests);
            if now < pending.deadline {
                return Ok(());
            }
            let late = pending.of.values_mut().flat_map(|requests| requests.expire(now)).collect();
            let deadlines = pending.of.values().map(Requests::deadline);
            pending.deadline = deadlines.min().unwrap_or(Instant::NEVER);
            late
        };
        let mut raised = FirstError::default();
        for request in late {
            let request = request.bind(py);
            if !is_done(request) {
                self.counts.count(CallOutcome::TimedOut);
                raised.keep(py, request.call_method0(intern!(py, "_time_out")));
            }
        }
        raised.0.map_or(Ok(()), Err)
    }

    /// Ends the request that this reply answers.
    fn answer(&self, peer: PeerHandle, role: Role, reply: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = reply.py();
        let number: u16 = reply.getattr(intern!(py, "request"))?.extract()?;
        let request = {
            let mut pending = lock(&self.requests);
            let requests = pending.of.get_mut(&peer);
            let is_it = |call: u16| role == Role::Unanswered || role == Role::Reply(call);
            requests.filter(|requests| requests.call(number).is_some_and(is_it)).and_then(|r| r.end(number))
        };
        let Some(request) = request.map(|request| request.into_bound(py)).filter(|request| !is_done(request))
        else {
            self.counts.count(CallOutcome::LateReply);
            return Ok(());
        };
        if role == Role::Unanswered {
            request.call_method1(intern!(py, "_refuse"), (reply.getattr(intern!(py, "why"))?,))?;
        } else {
            request.call_method1(intern!(py, "_answer"), (reply.getattr(intern!(py, "value"))?,))?;
        }
        Ok(())
    }

    /// Ends a request whose connection ended, for this reason or by this side's close.
    fn fail_ended(&self, request: &Bound<'_, PyAny>, reason: Option<DisconnectReason>) -> PyResult<()> {
        if is_done(request) {
            return Ok(());
        }
        let py = request.py();
        let reason = reason.unwrap_or(DisconnectReason::Closed);
        let reason: String = crate::python::events::reason_to_python(py, reason)?.str()?.extract()?;
        let sentence = format!("the connection ended before the reply came: {reason}");
        let error = if self.is_server {
            StaleClientError::new_err(sentence)
        } else {
            NotConnectedError::new_err(sentence)
        };
        request.call_method1(intern!(py, "_fail"), (error.into_value(py),)).map(drop)
    }

    /// Registers a new request. None if the maximum is waiting.
    pub(super) fn begin<'py>(
        &self,
        py: Python<'py>,
        peer: PeerHandle,
        place: u16,
        now: Instant,
    ) -> PyResult<(Option<u16>, Bound<'py, PyAny>)> {
        let declared = self.declared(place);
        let request = request_class(py)?.call1((declared.name.as_str(),))?;
        self.make_room(py, peer);
        let mut pending = lock(&self.requests);
        let requests = pending.of.entry(peer).or_default();
        let deadline = now + declared.timeout;
        let number = requests.begin(place, deadline, request.clone().unbind());
        pending.deadline = pending.deadline.min(deadline);
        drop(pending);
        Ok((number, request))
    }

    /// Forgets the requests that are done, if no more fit. While there is room, cancelled ones keep their numbers, so
    /// that no late reply meets another request.
    fn make_room(&self, py: Python<'_>, peer: PeerHandle) {
        let waiting: Vec<Py<PyAny>> = {
            let pending = lock(&self.requests);
            let full = pending.of.get(&peer).filter(|requests| requests.is_full());
            full.into_iter().flat_map(Requests::iter).map(|request| request.clone_ref(py)).collect()
        };
        // Nothing is locked while they are asked.
        let done: Vec<_> = waiting.iter().filter(|request| is_done(request.bind(py))).collect();
        if done.is_empty() {
            return;
        }
        let is_it = |waiting: &Py<PyAny>| done.iter().any(|request| request.is(waiting));
        let over = lock(&self.requests).of.get_mut(&peer).map(|requests| requests.discard(is_it));
        drop(over);
    }

    /// Forgets a request that could not be sent.
    pub(super) fn forget(&self, peer: PeerHandle, number: u16) {
        let request = {
            let mut pending = lock(&self.requests);
            let request = pending.of.get_mut(&peer).and_then(|requests| requests.end(number));
            // If the connection is over already, no end event will remove this.
            pending.of.retain(|other, requests| *other != peer || requests.iter().next().is_some());
            request
        };
        drop(request);
    }
}

holds!(Desk: protocol, handlers, queue, waiting, requests);
holds!(Queue: calls);
holds!(Pending: of);

impl<T: Traverse> Traverse for Requests<T> {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.iter().try_for_each(|request| request.traverse(visit))
    }
}

/// Collects the first exception of a loop that must go on; later ones go to `sys.unraisablehook`.
#[derive(Default)]
pub(super) struct FirstError(Option<PyErr>);

impl FirstError {
    pub(super) fn keep<T>(&mut self, py: Python<'_>, result: PyResult<T>) {
        let Err(error) = result else { return };
        if self.0.is_none() {
            self.0 = Some(error);
        } else {
            error.write_unraisable(py, None);
        }
    }
}

/// Whether a request has ended, or was cancelled.
fn is_done(request: &Bound<'_, PyAny>) -> bool {
    request.getattr(intern!(request.py(), "done")).and_then(|done| done.is_truthy()).unwrap_or(true)
}
