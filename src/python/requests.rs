//! Calls and requests that the game makes.

use crate::python::prelude::*;

use super::calls::Desk;
use super::declared::Declared;
use super::ghosts::number_for;
use super::kind::Sent;
use crate::calls::MAX_REQUESTS;

impl Endpoint {
    /// The desk of an endpoint whose protocol has calls, and the index of a call.
    fn desk_of(&self, call: &Object<'_>) -> PyResult<(&Desk, u16)> {
        let place = self.protocol.get().calls.place(call)?;
        // An endpoint whose protocol has calls has a desk.
        let desk = self.desk.as_deref().ok_or_else(|| PyValueError::new_err("the protocol has no calls"))?;
        Ok((desk, place))
    }

    /// The call, if this side makes it.
    pub(super) fn outgoing(&self, call: &Object<'_>) -> PyResult<&Declared> {
        let (_, place) = self.desk_of(call)?;
        self.protocol.get().calls.check(place, !self.kind.is_server)
    }

    /// Queues the message of a call for a peer; returns its channel too.
    pub(super) fn send_call(
        &self,
        peer: PeerHandle,
        object: &Object<'_>,
    ) -> PyResult<(Result<(), SendError>, usize)> {
        let (message, channel) = self.call_message(object)?;
        let options = SendOptions::default();
        let sent = self.with(|core, driver| core.send(driver.now(), peer, channel, message, options))?;
        Ok((sent, channel))
    }

    /// The arguments as a message for one peer, with its channel.
    pub(super) fn call_message(&self, object: &Object<'_>) -> PyResult<(Message, usize)> {
        let encoded = self.protocol.get().encode_message(object)?;
        let channel = self.protocol.get().channel(None, Some(encoded.message_type))?;
        Ok((encoded, channel))
    }

    /// The arguments of a call as an object of its class, and whether the peer is sent all ghosts in them. Mistakes raise as in
    /// a call of the function itself.
    fn arguments<'py>(
        &self,
        py: Python<'py>,
        declared: &Declared,
        peer: PeerHandle,
        (arguments, keywords): (&Bound<'py, PyTuple>, Option<&Bound<'py, PyDict>>),
    ) -> PyResult<(Object<'py>, bool)> {
        let object = declared.message.bind(py).call(arguments, keywords)?;
        let ghosts = self.ghost_arguments(declared, &object)?;
        let are_sent = self.number_ghosts(declared, peer, &object, &ghosts)?;
        Ok((object, are_sent))
    }

    /// Queues a call for a peer.
    pub(super) fn call<'py>(
        &self,
        py: Python<'py>,
        peer: PeerHandle,
        call: &Object<'py>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let declared = self.outgoing(call)?;
        match self.arguments(py, declared, peer, (arguments, keywords))? {
            (_, false) if self.strict => Err(self.hidden_error(&declared.name)),
            (_, false) => Sent::Hidden.to_python(py),
            (object, true) => {
                let (sent, channel) = self.send_call(peer, &object)?;
                self.answer(py, sent, channel, || declared.name.clone())
            }
        }
    }

    /// Queues a call for a peer that waits for its reply: the request.
    pub(super) fn request<'py>(
        &self,
        py: Python<'py>,
        peer: PeerHandle,
        call: &Object<'py>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object<'py>> {
        let (desk, place) = self.desk_of(call)?;
        let declared = self.outgoing(call)?;
        let name = &declared.name;
        if declared.reply.is_none() {
            return Err(PyTypeError::new_err(format!(
                "{name} returns None, so there is no reply to wait for: annotate its return type, or use \
                 call()"
            )));
        }
        let (object, has_ghosts) = self.arguments(py, declared, peer, (arguments, keywords))?;
        let now = self.with(|_, driver| driver.now())?;
        let (number, request) = desk.begin(py, peer, place, now)?;
        let fail = |error: PyErr| -> PyResult<()> {
            if self.strict {
                return Err(error);
            }
            request.call_method1(intern!(py, "_fail"), (error.into_value(py),)).map(drop)
        };
        let Some(number) = number else {
            let sentence = format!("{name}: {MAX_REQUESTS} requests wait for replies, which is the maximum");
            fail(ChannelFullError::new_err(sentence))?;
            return Ok(request);
        };
        if !has_ghosts {
            desk.forget(peer, number);
            fail(self.hidden_error(name))?;
            return Ok(request);
        }
        object.setattr(intern!(py, "tickwire_request"), number)?;
        let (sent, channel) = self.send_call(peer, &object).inspect_err(|_| desk.forget(peer, number))?;
        if let Err(error) = sent {
            desk.forget(peer, number);
            let is_peers_doing = Sent::of_refusal(&error, self.kind.absent).is_some();
            let error = self.send_error(name, channel, error);
            if !is_peers_doing {
                return Err(error);
            }
            fail(error)?;
        }
        Ok(request)
    }

    /// Registers the function that runs a call on this endpoint.
    pub(super) fn implement(&self, call: &Object<'_>, function: &Object<'_>) -> PyResult<()> {
        let (desk, place) = self.desk_of(call)?;
        self.protocol.get().calls.check(place, self.kind.is_server)?;
        let py = call.py();
        py.import("tickwire._calls")?.call_method1("check_function", (call, function))?;
        desk.implement(place, function);
        Ok(())
    }

    /// The ghosts that are among a call's arguments.
    pub(super) fn ghost_arguments<'py>(
        &self,
        declared: &Declared,
        object: &Object<'py>,
    ) -> PyResult<Vec<Object<'py>>> {
        let py = object.py();
        declared.ghosts.iter().map(|parameter| object.getattr(parameter.name.bind(py))).collect()
    }

    /// Replaces ghosts by the numbers under which a peer knows them. False if the peer isn't sent one of
    /// them.
    ///
    /// # Errors
    /// An argument is no ghost of its class, or not in this world.
    pub(super) fn number_ghosts<'py>(
        &self,
        declared: &Declared,
        peer: PeerHandle,
        object: &Object<'py>,
        ghosts: &[Object<'py>],
    ) -> PyResult<bool> {
        let py = object.py();
        for (parameter, given) in declared.ghosts.iter().zip(ghosts) {
            if given.is_none() && parameter.optional {
                continue;
            }
            let class = self.protocol.get().ghosts[parameter.class].0.bind(py);
            let wrong = || {
                let bound = class.name().map_or_else(|_| "a ghost".into(), |name| format!("a live {name}"));
                let name = parameter.name.bind(py).to_string();
                FieldTypeError::new_err((declared.name.clone(), name, given.clone().unbind(), bound))
            };
            let ghost = given.cast::<Ghost>().map_err(|_| wrong())?;
            let live = self.population.live(ghost)?;
            if live.class() != parameter.class {
                return Err(wrong());
            }
            let client = self.kind.is_server.then_some(peer);
            let Some(number) = number_for(&mut *self.state.lock()?, client, &live) else { return Ok(false) };
            object.setattr(parameter.name.bind(py), number)?;
        }
        Ok(true)
    }

    /// The exception for ghosts that the other side doesn't know.
    fn hidden_error(&self, name: &str) -> PyErr {
        let why = if self.kind.is_server {
            "isn't relevant to the client"
        } else {
            "must be of the new connection's world, which hasn't arrived: call later"
        };
        GhostError::new_err(format!("{name}: a ghost in the arguments {why}"))
    }
}
