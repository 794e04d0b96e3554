//! Runs received calls when the game takes them, and sends the replies.

use std::sync::atomic::Ordering;

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::counts::count;
use super::declared::Declared;
use super::desk::{Arrived, Desk};
use super::ghosts::Ghosts;
use super::objects::Outcome;
use crate::endpoint::PeerHandle;
use crate::python::events::ClientHandle;
use crate::python::exit;
use crate::python::lock;
use crate::python::log::log_traceback;
use crate::transport::SendOptions;

/// The minimum time between logged tracebacks.
const PERIOD: std::time::Duration = std::time::Duration::from_secs(1);

/// Marks that no call is running any more, however it ended.
struct Running<'a>(&'a Desk);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::Release);
    }
}

impl Desk {
    /// Registers the function that runs a call.
    pub(super) fn implement(&self, place: u16, function: &Bound<'_, PyAny>) {
        let before =
            core::mem::replace(&mut lock(&self.handlers)[usize::from(place)], function.clone().unbind());
        drop(before);
    }

    /// Whether calls of this tick wait.
    pub(in crate::python) fn has_calls(&self, tick: u64) -> bool {
        let queue = lock(&self.queue);
        queue.tick == tick && !queue.calls.is_empty()
    }

    /// Runs the calls that arrived before a message of the inbox, or all of them, in order; returns how many. None are
    /// left of another tick than the newest, and none run while one is running.
    ///
    /// # Errors
    /// An exception that ends the program. The calls after it stay waiting.
    pub(in crate::python) fn run(
        &self,
        py: Python<'_>,
        before: Option<usize>,
        tick: Option<u64>,
    ) -> PyResult<usize> {
        if self.running.swap(true, Ordering::Acquire) {
            return Ok(0);
        }
        let _running = Running(self);
        let mut run = 0;
        loop {
            let next = {
                let mut queue = lock(&self.queue);
                let is_due = |call: &Arrived| before.is_none_or(|before| call.place <= before);
                if tick.is_some_and(|tick| tick != queue.tick) || !queue.calls.front().is_some_and(is_due) {
                    break;
                }
                queue.calls.pop_front()
            };
            let Some(arrived) = next else { break };
            run += 1;
            self.run_one(py, arrived)?;
        }
        Ok(run)
    }

    fn run_one(&self, py: Python<'_>, mut arrived: Arrived) -> PyResult<()> {
        let declared = self.declared(arrived.call);
        let item = &arrived.item.bind(py).clone();
        let (client, message) = match item.cast::<PyTuple>() {
            Ok(pair) if self.is_server => (Some(pair.get_item(0)?), pair.get_item(1)?),
            _ => (None, item.clone()),
        };
        let request: Option<u16> = match &declared.reply {
            Some(_) => message.getattr(intern!(py, "tickwire_request"))?.extract()?,
            None => None,
        };
        if !declared.ghosts.is_empty() {
            let outcome = match self.find_ghosts(declared, arrived.peer, &message)? {
                Ghosts::Here(ghosts) => {
                    for (parameter, ghost) in declared.ghosts.iter().zip(ghosts) {
                        message.setattr(parameter.name.bind(py), ghost)?;
                    }
                    None
                }
                Ghosts::Missing(outcome) => Some(outcome),
                Ghosts::Awaited => match self.await_ghosts(py, arrived)? {
                    None => return Ok(()),
                    Some(back) => {
                        arrived = back;
                        Some(Outcome::Gone)
                    }
                },
            };
            if let Some(outcome) = outcome {
                return self.leave_out(py, declared, &arrived, request, outcome);
            }
        }
        let given = self.given(declared, client.as_ref(), &message)?;
        let function = lock(&self.handlers)[usize::from(arrived.call)].clone_ref(py);
        count(&self.counts.run);
        let result = exit::call(function.bind(py), given.0, given.1.as_ref());
        let done = result.and_then(|value| self.say_reply(declared, arrived.peer, request, &value));
        let Err(error) = done else { return Ok(()) };
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        count(&self.counts.failed);
        self.log_failure(py, declared, client.as_ref(), &error);
        self.say_unanswered(py, &arrived, request, Outcome::Failed)
    }

    /// Drops a call for this reason.
    fn leave_out(
        &self,
        py: Python<'_>,
        declared: &Declared,
        arrived: &Arrived,
        request: Option<u16>,
        outcome: Outcome,
    ) -> PyResult<()> {
        if outcome != Outcome::Refused {
            count(&self.counts.gone);
            return self.say_unanswered(py, arrived, request, outcome);
        }
        count(&self.counts.refused);
        if !declared.disconnects {
            return self.say_unanswered(py, arrived, request, outcome);
        }
        self.discard_calls(arrived.peer);
        let why = format!("{}: called on a ghost that is another's", declared.described());
        let Some(shared) = self.state.upgrade() else { return Ok(()) };
        let mut state = shared.lock()?;
        if let Some((session, driver)) = state.carrier.parts() {
            driver.transmit(|now, out| session.change().refuse_message(now, arrived.peer, &why, out));
        }
        Ok(())
    }

    /// The arguments of the function: positional and by keyword.
    fn given<'py>(
        &self,
        declared: &Declared,
        client: Option<&Bound<'py, PyAny>>,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
        let py = message.py();
        let mut values = Vec::with_capacity(declared.positional.len() + 1);
        values.extend(client.cloned());
        for name in &declared.positional {
            values.push(message.getattr(name.bind(py))?);
        }
        let mut keywords = None;
        if !declared.keywords.is_empty() {
            let given = PyDict::new(py);
            for name in &declared.keywords {
                given.set_item(name, message.getattr(name.bind(py))?)?;
            }
            keywords = Some(given);
        }
        Ok((PyTuple::new(py, values)?, keywords))
    }

    /// Sends a function's return value, if it was requested.
    fn say_reply(
        &self,
        declared: &Declared,
        peer: PeerHandle,
        request: Option<u16>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (Some(request), Some(class)) = (request, &declared.reply) else { return Ok(()) };
        let reply = class.bind(value.py()).call1((request, value))?;
        self.say(peer, &reply)
    }

    /// Tells the caller that a request gets no value, and why.
    fn say_unanswered(
        &self,
        py: Python<'_>,
        arrived: &Arrived,
        request: Option<u16>,
        outcome: Outcome,
    ) -> PyResult<()> {
        let calls = &self.protocol.get().calls;
        let (Some(request), Some(class)) = (request, &calls.unanswered) else { return Ok(()) };
        let reply = class.bind(py).call1((request, outcome.to_python(py)?))?;
        self.say_on(arrived.peer, &reply, self.channel_of(py, arrived.call)?)
    }

    /// The channel of a call and its replies.
    pub(super) fn channel_of(&self, py: Python<'_>, place: u16) -> PyResult<usize> {
        let protocol = self.protocol.get();
        let number = protocol.number_of_class(self.declared(place).message.bind(py).as_any())?;
        protocol.channel(None, Some(number))
    }

    fn say(&self, peer: PeerHandle, reply: &Bound<'_, PyAny>) -> PyResult<()> {
        let protocol = self.protocol.get();
        let number = protocol.number_of_class(reply.get_type().as_any())?;
        self.say_on(peer, reply, protocol.channel(None, Some(number))?)
    }

    /// Queues a reply. A caller without room for it sees its request time out.
    fn say_on(&self, peer: PeerHandle, reply: &Bound<'_, PyAny>, channel: usize) -> PyResult<()> {
        let message = self.protocol.get().encode_message(reply)?;
        let Some(shared) = self.state.upgrade() else { return Ok(()) };
        let mut state = shared.lock()?;
        let Some((session, driver)) = state.carrier.parts().filter(|(session, _)| !session.is_lingering())
        else {
            return Ok(());
        };
        let sent = session.change().send(driver.now(), peer, channel, message, SendOptions::default());
        if sent.is_err() {
            count(&self.counts.unanswered);
        }
        Ok(())
    }

    /// Logs the traceback of a call that raised, at most once a second.
    fn log_failure(
        &self,
        py: Python<'_>,
        declared: &Declared,
        client: Option<&Bound<'_, PyAny>>,
        error: &PyErr,
    ) {
        let now = std::time::Instant::now();
        {
            let mut logged_at = lock(&self.logged_at);
            if logged_at.is_some_and(|logged_at| now - logged_at < PERIOD) {
                return;
            }
            *logged_at = Some(now);
        }
        log_traceback(py, error, || {
            let who = client.and_then(|client| client.cast::<ClientHandle>().ok());
            let who = who.map_or_else(|| "the server".into(), |client| client.get().described());
            let class =
                error.get_type(py).name().map_or_else(|_| "an exception".into(), |name| name.to_string());
            format!("the call {} of {who} raised {class}: {}", declared.described(), error.value(py))
        });
    }
}
