//! Runs received calls when the game takes them, and sends the replies.

use super::*;

use crate::calls::CallOutcome;
use crate::python::log::log_traceback;

/// Marks that no call is running any more, however it ended.
struct Running<'a>(&'a Desk);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(&self.0.core).end_run();
    }
}

impl Desk {
    /// Registers the function that runs a call.
    pub(in crate::python) fn implement(&self, place: u16, function: &Object<'_>) {
        let before =
            core::mem::replace(&mut lock(&self.handlers)[usize::from(place)], function.clone().unbind());
        drop(before);
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
        if !lock(&self.core).begin_run() {
            return Ok(0);
        }
        let _running = Running(self);
        let mut run = 0;
        loop {
            let next = lock(&self.core).next(before, tick);
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
                Ghosts::Awaited => match self.await_ghosts(arrived)? {
                    None => return Ok(()),
                    Some(back) => {
                        arrived = back;
                        Some(Outcome::Gone)
                    }
                },
            };
            if let Some(outcome) = outcome {
                lock(&self.core).leave_out(outcome == Outcome::Refused);
                return self.refuse(py, &arrived, request, outcome);
            }
        }
        let given = self.given(declared, client.as_ref(), &message)?;
        let function = lock(&self.handlers)[usize::from(arrived.call)].clone_ref(py);
        self.counts.count(CallOutcome::Run);
        let result = exit::call(function.bind(py), given.0, given.1.as_ref());
        let done = result.and_then(|value| {
            self.reply(declared.reply.as_ref(), (arrived.call, arrived.peer, request), value)
        });
        let Err(error) = done else { return Ok(()) };
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        self.counts.count(CallOutcome::Failed);
        self.log_failure(py, declared, client.as_ref(), &error);
        self.refuse(py, &arrived, request, Outcome::Failed)
    }

    /// The arguments of the function: positional and by keyword.
    fn given<'py>(
        &self,
        declared: &Declared,
        client: Option<&Object<'py>>,
        message: &Object<'py>,
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

    /// Tells the caller that a request gets no value, and why.
    fn refuse(
        &self,
        py: Python<'_>,
        arrived: &Arrived,
        request: Option<u16>,
        outcome: Outcome,
    ) -> PyResult<()> {
        let class = self.protocol.get().calls.unanswered.as_ref();
        self.reply(class, (arrived.call, arrived.peer, request), outcome.into_pyobject(py)?)
    }

    /// The channel of a call and its replies.
    pub(super) fn channel_of(&self, py: Python<'_>, place: u16) -> PyResult<usize> {
        let protocol = self.protocol.get();
        let number = protocol.number_of_class(self.declared(place).message.bind(py).as_any())?;
        protocol.channel(None, Some(number))
    }

    /// Queues the reply to a request, if it was one. A caller without room for it sees its request time out.
    fn reply<'py>(
        &self,
        class: Option<&Py<PyType>>,
        (call, peer, request): (u16, PeerHandle, Option<u16>),
        value: Object<'py>,
    ) -> PyResult<()> {
        let py = value.py();
        let (Some(request), Some(class)) = (request, class) else { return Ok(()) };
        let channel = self.channel_of(py, call)?;
        let message = self.protocol.get().encode_message(&class.bind(py).call1((request, value))?)?;
        let Some(shared) = self.state.upgrade() else { return Ok(()) };
        let mut state = shared.lock()?;
        let Some((session, driver)) = state.carrier.parts().filter(|(session, _)| !session.is_lingering())
        else {
            return Ok(());
        };
        let sent = session.change().send(driver.now(), peer, channel, message, SendOptions::default());
        if sent.is_err() {
            self.counts.count(CallOutcome::Unanswered);
        }
        Ok(())
    }

    /// Logs the traceback of a call that raised, at most once a second.
    fn log_failure(&self, py: Python<'_>, declared: &Declared, client: Option<&Object<'_>>, error: &PyErr) {
        if !lock(&self.log_pace).is_due(std::time::Instant::now()) {
            return;
        }
        log_traceback(py, error, || {
            let who = client.and_then(|client| client.cast::<ClientHandle>().ok());
            let who = who.map_or_else(|| "the server".into(), |client| client.get().described());
            let class = class_name(error.value(py).as_any());
            format!("the call {} of {who} raised {class}: {}", declared.name, error.value(py))
        });
    }
}
