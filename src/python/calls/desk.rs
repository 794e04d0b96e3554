//! An endpoint's waiting calls, as Python objects: what is called, what ends a request, and the ghosts among arguments,
//! which are numbers on the wire and objects in the game.
//!
//! Promises: those of [`crate::calls::Desk`]. No lock is held while Python runs. A call that only owners may make never runs
//! for a client that doesn't own the ghost. A server's call that names a ghost the client doesn't have yet waits for
//! it, for a bounded time and among a bounded number, on reliable channels.

use super::*;

use crate::calls::{self, Admission, Awaited, CallCounts, CallOutcome, CallRules};
use crate::driver::reports::LogPace;
use crate::python::events::members;
use crate::python::ghosts::Found;
use crate::python::ghosts::Population;
use crate::python::kind::EndpointKind;

/// A received call: its item are the arguments, on a server after the caller, in the form of messages.
pub(in crate::python) type Arrived = calls::Arrived<PeerHandle, Py<PyAny>>;

/// A tick's calls, replies and ended connections.
#[derive(Default)]
pub(in crate::python) struct Taken {
    pub(in crate::python) calls: Vec<Arrived>,
    /// Replies: sender, role and object.
    pub(in crate::python) replies: Vec<(PeerHandle, Role, Py<PyAny>)>,
    /// Ended connections, with their reasons.
    pub(in crate::python) ended: Vec<(PeerHandle, DisconnectReason)>,
}

pub(in crate::python) struct Desk {
    pub(super) protocol: Py<Protocol>,
    pub(super) is_server: bool,
    /// The functions that run the calls.
    pub(super) handlers: Mutex<Vec<Py<PyAny>>>,
    pub(super) core: Mutex<calls::Desk<PeerHandle, Py<PyAny>>>,
    pub(super) counts: Arc<CallCounts>,
    pub(super) state: Weak<Shared<State>>,
    pub(super) population: Arc<Population>,
    /// When a traceback was last logged.
    pub(super) log_pace: Mutex<LogPace>,
}

/// Why a request has no value, under the names of `tickwire._requests.Outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Failed,
    Refused,
    Gone,
}

members!(Outcome => "tickwire._requests" "Outcome");

/// The ghosts among a call's arguments, where the call runs.
pub(super) enum Ghosts<'py> {
    /// All ghosts are here, in the order of the parameters.
    Here(Vec<Object<'py>>),
    /// A ghost isn't here, or isn't the caller's.
    Missing(Outcome),
    /// A ghost hasn't arrived yet.
    Awaited,
}

impl Taken {
    pub(in crate::python) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.replies.is_empty() && self.ended.is_empty()
    }
}

holds!(Taken: calls, replies);
holds!(Arrived: item);
holds!(Role:);
holds!(Desk: protocol, handlers, core);

impl Traverse for calls::Desk<PeerHandle, Py<PyAny>> {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.items().try_for_each(|item| visit.call(item))
    }
}

impl Desk {
    pub(in crate::python) fn new(
        py: Python<'_>,
        protocol: &Py<Protocol>,
        kind: &'static EndpointKind,
        counts: Arc<CallCounts>,
        state: Weak<Shared<State>>,
        population: Arc<Population>,
    ) -> Self {
        let declared = &protocol.get().calls.declared;
        let handlers = declared.iter().map(|declared| declared.function.clone_ref(py)).collect();
        let rules = declared.iter().map(|declared| CallRules {
            runs_here: kind.has_world && declared.runs_on_server() == kind.is_server,
            // Clients trust their server.
            rate: kind.is_server.then_some(declared.rate),
            disconnects: declared.disconnects,
            waits: protocol.get().is_reliable(declared.message.bind(py)),
            timeout: declared.timeout,
        });
        Desk {
            protocol: protocol.clone_ref(py),
            is_server: kind.is_server,
            handlers: Mutex::new(handlers),
            core: Mutex::new(calls::Desk::new(rules.collect(), counts.clone())),
            counts,
            state,
            population,
            log_pace: Mutex::default(),
        }
    }

    pub(super) fn declared(&self, place: u16) -> &Declared {
        &self.protocol.get().calls.declared[usize::from(place)]
    }

    /// Decides about a received call before an object is made of it. False drops it; an error is the reason to disconnect the peer.
    pub(in crate::python) fn admit(
        &self,
        peer: PeerHandle,
        place: u16,
        now: Instant,
    ) -> Result<bool, String> {
        match lock(&self.core).admit(peer, place, now) {
            Admission::Taken => Ok(true),
            Admission::Dropped => Ok(false),
            Admission::Violation(why) => Err(format!("{}: {why}", self.declared(place).name)),
        }
    }

    /// Whether calls of this tick wait.
    pub(in crate::python) fn has_calls(&self, tick: u64) -> bool {
        lock(&self.core).has_calls(tick)
    }

    /// When the next request expires, if there is one.
    pub(in crate::python) fn deadline(&self) -> Option<Instant> {
        lock(&self.core).deadline()
    }

    /// Ends all requests: nothing will arrive any more.
    pub(in crate::python) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let (requests, calls) = lock(&self.core).close();
        let mut raised = FirstError::default();
        for request in requests {
            raised.keep(request.bind(py), self.fail_ended(request.bind(py), None));
        }
        drop(calls);
        raised.result()
    }

    /// Drops a connection's waiting calls after the server has ended it.
    pub(in crate::python) fn discard_calls(&self, peer: PeerHandle) {
        let theirs = lock(&self.core).discard_calls(peer);
        drop(theirs);
    }

    /// Ends the request that this reply answers.
    pub(super) fn answer(&self, peer: PeerHandle, role: Role, reply: &Object<'_>) -> PyResult<()> {
        let py = reply.py();
        let number: u16 = reply.getattr(intern!(py, "request"))?.extract()?;
        let call = if let Role::Reply(call) = role { Some(call) } else { None };
        let request = lock(&self.core).answer(peer, number, call);
        let Some(request) = request.map(|request| request.into_bound(py)).filter(|request| !is_done(request))
        else {
            self.counts.count(CallOutcome::LateReply);
            return Ok(());
        };
        let (method, value) = match call {
            Some(_) => (intern!(py, "_answer"), intern!(py, "value")),
            None => (intern!(py, "_refuse"), intern!(py, "why")),
        };
        request.call_method1(method, (reply.getattr(value)?,)).map(drop)
    }

    /// Ends a request whose connection ended, for this reason or by this side's close.
    pub(super) fn fail_ended(&self, request: &Object<'_>, reason: Option<DisconnectReason>) -> PyResult<()> {
        if is_done(request) {
            return Ok(());
        }
        let py = request.py();
        let reason = reason.unwrap_or(DisconnectReason::Closed);
        let reason = reason.into_pyobject(py)?.str()?;
        let sentence = format!("the connection ended before the reply came: {reason}");
        let error = if self.is_server {
            StaleClientError::new_err(sentence)
        } else {
            NotConnectedError::new_err(sentence)
        };
        request.call_method1(intern!(py, "_fail"), (error.into_value(py),)).map(drop)
    }

    /// Registers a new request. None if the maximum is waiting.
    pub(in crate::python) fn begin<'py>(
        &self,
        py: Python<'py>,
        peer: PeerHandle,
        place: u16,
        now: Instant,
    ) -> PyResult<(Option<u16>, Object<'py>)> {
        let request = request_class(py)?.call1((self.declared(place).name.as_str(),))?;
        self.make_room(py, peer);
        let begun = lock(&self.core).begin_request(peer, place, now, request.clone().unbind());
        Ok((begun.ok(), request))
    }

    /// Forgets the requests that are done, if no more fit. While there is room, cancelled ones keep their numbers, so
    /// that no late reply meets another request.
    fn make_room(&self, py: Python<'_>, peer: PeerHandle) {
        let copy = |request: &Py<PyAny>| request.clone_ref(py);
        let waiting: Vec<Py<PyAny>> = lock(&self.core).full_requests(peer).map(copy).collect();
        // Nothing is locked while they are asked.
        let done: Vec<_> = waiting.iter().filter(|request| is_done(request.bind(py))).collect();
        let is_it = |waiting: &Py<PyAny>| done.iter().any(|request| request.is(waiting));
        let over = lock(&self.core).discard_requests(peer, is_it);
        drop(over);
    }

    /// Forgets a request that could not be sent.
    pub(in crate::python) fn forget(&self, peer: PeerHandle, number: u16) {
        let request = lock(&self.core).forget_request(peer, number);
        drop(request);
    }

    /// Takes over a tick's calls at its end: replies and timeouts are handled at once, calls wait for the game. Returns
    /// the number of the tick.
    ///
    /// # Errors
    /// The first exception of the game's code, after everything else is done; received calls stay where they are.
    pub(in crate::python) fn take(&self, py: Python<'_>, taken: &mut Taken, now: Instant) -> PyResult<u64> {
        let mut raised = FirstError::default();
        for (peer, role, reply) in core::mem::take(&mut taken.replies) {
            raised.keep(reply.bind(py), self.answer(peer, role, reply.bind(py)));
        }
        for (peer, reason) in core::mem::take(&mut taken.ended) {
            let (requests, calls) = lock(&self.core).end_peer(peer);
            drop(calls);
            for request in requests {
                raised.keep(request.bind(py), self.fail_ended(request.bind(py), Some(reason)));
            }
        }
        let late = lock(&self.core).expire(now);
        for request in late.iter().map(|request| request.bind(py)).filter(|request| !is_done(request)) {
            self.counts.count(CallOutcome::TimedOut);
            raised.keep(request, request.call_method0(intern!(py, "_time_out")));
        }
        let ready = self.take_ready(py, now, &mut raised);
        let raised = raised.result();
        let count = if raised.is_ok() { taken.calls.len() } else { 0 };
        let tick = lock(&self.core).begin_tick(ready, taken.calls.drain(..count));
        raised.map(|()| tick)
    }

    /// The calls whose ghosts have arrived, in their order.
    fn take_ready(&self, py: Python<'_>, now: Instant, raised: &mut FirstError) -> Vec<Arrived> {
        let (waiting, mut ready) = (lock(&self.core).take_waiting(), Vec::new());
        for (until, arrived) in waiting {
            let message = arrived.item.bind(py);
            let found = match self.find_ghosts(self.declared(arrived.call), arrived.peer, message) {
                Ok(Ghosts::Awaited) => Awaited::Awaited,
                Ok(_) => Awaited::Here,
                Err(error) => {
                    raised.keep::<()>(message, Err(error));
                    Awaited::Failed
                }
            };
            let dropped = lock(&self.core).keep_waiting(now, (until, arrived), found, &mut ready);
            drop(dropped);
        }
        ready
    }

    /// The ghosts that a received call names.
    pub(super) fn find_ghosts<'py>(
        &self,
        declared: &Declared,
        peer: PeerHandle,
        message: &Object<'py>,
    ) -> PyResult<Ghosts<'py>> {
        let py = message.py();
        let mut found = Vec::new();
        for (place, parameter) in declared.ghosts.iter().enumerate() {
            let number: Option<u32> = message.getattr(parameter.name.bind(py))?.extract()?;
            let Some(number) = number else {
                found.push(py.None().into_bound(py));
                continue;
            };
            let shared = self.state.upgrade().ok_or_else(|| ClosedError::new_err("the endpoint is gone"))?;
            let client = self.is_server.then_some(peer);
            match self.population.named_by(py, &shared, client, parameter.class, number)? {
                Found::Here(ghost) => {
                    let must_own = self.is_server && declared.owned && place == 0;
                    if must_own && self.population.live(&ghost)?.owner() != peer.number() {
                        return Ok(Ghosts::Missing(Outcome::Refused));
                    }
                    found.push(ghost.into_any());
                }
                Found::Gone => return Ok(Ghosts::Missing(Outcome::Gone)),
                Found::Awaited => return Ok(Ghosts::Awaited),
            }
        }
        Ok(Ghosts::Here(found))
    }

    /// Lets a call wait for its ghosts; gives it back if it can't.
    pub(super) fn await_ghosts(&self, arrived: Arrived) -> PyResult<Option<Arrived>> {
        let now = match self.state.upgrade() {
            Some(shared) => shared.lock()?.carrier.driver().map_or(Instant::ZERO, Driver::now),
            None => Instant::ZERO,
        };
        Ok(lock(&self.core).wait(now, arrived))
    }
}

/// Whether a request has ended, or was cancelled.
pub(super) fn is_done(request: &Object<'_>) -> bool {
    request.getattr(intern!(request.py(), "done")).and_then(|done| done.is_truthy()).unwrap_or(true)
}

/// `tickwire._requests.Request`.
pub(super) fn request_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "tickwire._requests", "Request")
}
