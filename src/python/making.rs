//! Makes objects of what arrived in a tick, by the game's classes and factory.
//!
//! Promises: an `Exception` of the game's code ends the connection of the peer that sent the bytes, never the tick: the
//! peer chooses the bytes, and so what `serialize` raises on them. An exception other than `StreamError` may be the game's
//! mistake too: it is counted, and its traceback logged, at most once a second. Exceptions that end programs, such as
//! `KeyboardInterrupt`, are raised. No lock is held while `serialize` runs.

use crate::python::prelude::*;

use super::calls::Arrived;
use super::chunks::ReceivedChunk;
use super::declared::Role;
use super::ghosts::call_all;
use super::inbox::{CHUNK_FAILURES, CHUNKS, GHOSTS};
use super::log::log_traceback;
use crate::endpoint;
use crate::transport::chunks::{ChunkEvent, ChunkFailure};
use crate::transport::{OpaqueBody, ReadPackets, UnreadPackets};

impl Pending {
    /// Makes objects of the chunks and messages of a tick. `sender` finds the object of a peer, which a client doesn't name,
    /// or None for a stranger, whose data are dropped.
    ///
    /// # Errors
    /// As of `make_messages`.
    pub(super) fn make_received<'py>(
        &mut self,
        py: Python<'py>,
        endpoint: &Endpoint,
        sender: impl Fn(PeerHandle) -> Option<Option<Py<PyAny>>>,
    ) -> PyResult<()> {
        self.make_chunks(py, &sender)?;
        let mut refused = Vec::new();
        // Messages of one peer are adjacent.
        let mut last: Option<(PeerHandle, Option<Option<Object<'py>>>)> = None;
        let made = self.make_messages(py, endpoint, &mut refused, |peer, what| {
            if last.as_ref().is_none_or(|(of, _)| *of != peer) {
                last = Some((peer, sender(peer).map(|it| it.map(|it| it.into_bound(py)))));
            }
            let Some((_, Some(sender))) = &last else { return Ok(None) };
            Ok(Some(match (sender, what) {
                (None, [alone]) => alone.clone().unbind(),
                (None, what) => PyTuple::new(py, what)?.into_any().unbind(),
                (Some(sender), [message]) => PyTuple::new(py, [sender, message])?.into_any().unbind(),
                (Some(sender), what) => {
                    PyTuple::new(py, [core::slice::from_ref(sender), what].concat())?.into_any().unbind()
                }
            }))
        });
        endpoint.refuse(&refused);
        made
    }

    /// Makes objects of all records. `wrap` adds the sender to a message, in the form in which it is handed
    /// over; None drops it. Clients whose messages are refused are added to `refused`, with the reason; what else they
    /// sent is dropped.
    ///
    /// # Errors
    /// An exception of the game's code that ends the program. Call again to go on after the message at fault.
    fn make_messages<'py>(
        &mut self,
        py: Python<'py>,
        endpoint: &Endpoint,
        refused: &mut Vec<(PeerHandle, String)>,
        mut wrap: impl FnMut(PeerHandle, &[Object<'py>]) -> PyResult<Option<Py<PyAny>>>,
    ) -> PyResult<()> {
        let Pending { lists, tick, next, calls, .. } = self;
        let [_, messages, latest, payloads, missed, ..] = lists;
        let records = &mut tick.inbox;
        let protocol = endpoint.protocol.get();
        for gap in records.take_gaps() {
            let what = [gap.channel.into_bound_py_any(py)?, gap.missed.into_bound_py_any(py)?];
            missed.extend(wrap(gap.peer, &what)?);
        }
        while let Some(record) = records.game.records.get(*next) {
            *next += 1;
            if refused.iter().any(|(client, _)| *client == record.head.peer) {
                continue;
            }
            let channel = || record.head.channel.into_bound_py_any(py);
            if record.head.missed > 0 {
                missed.extend(wrap(
                    record.head.peer,
                    &[channel()?, record.head.missed.into_bound_py_any(py)?],
                )?);
            }
            let kind = protocol.core.channels()[usize::from(record.head.channel)].kind;
            if kind.is_payload() {
                let data = OpaqueBody::read(records.game.body(record)).reader().rest();
                payloads.extend(wrap(record.head.peer, &[channel()?, PyBytes::new(py, &data).into_any()])?);
                continue;
            }
            let role = protocol.calls.role(record.message_type);
            let body = (records.game.body(record), record.block.as_deref().map(Vec::as_slice));
            let message = match endpoint.admit_message(py, role, record, body)? {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(why) => {
                    refused.push((record.head.peer, why));
                    continue;
                }
            };
            if let Role::Call(call) = role {
                let item = wrap(record.head.peer, &[message])?;
                let (place, peer) = (messages.len(), record.head.peer);
                calls.calls.extend(item.map(|item| Arrived { place, call, peer, item }));
            } else if role != Role::Message {
                calls.replies.push((record.head.peer, role, message.unbind()));
            } else if let ChannelKind::Latest { .. } = kind {
                latest.extend(wrap(record.head.peer, &[record.head.key.into_bound_py_any(py)?, message])?);
            } else {
                messages.extend(wrap(record.head.peer, &[message])?);
            }
        }
        records.game.clear();
        if !refused.is_empty() {
            records.keep_rows(|client| !refused.iter().any(|(refused, _)| *refused == client));
        }
        *next = 0;
        Ok(())
    }

    /// Updates a client's world, and makes objects of its events.
    pub(super) fn make_ghosts(&mut self, py: Python<'_>, endpoint: &Endpoint) -> PyResult<()> {
        let called = endpoint.population.take_news(
            py,
            &endpoint.state,
            &self.ghost_columns,
            &mut self.lists[GHOSTS],
        )?;
        if called.is_empty() {
            return Ok(());
        }
        endpoint.clocked(py, "ghosts", || call_all(py, &called))
    }

    fn make_chunks(
        &mut self,
        py: Python<'_>,
        sender: impl Fn(PeerHandle) -> Option<Option<Py<PyAny>>>,
    ) -> PyResult<()> {
        for (client, event) in self.tick.chunks.drain(..) {
            let Some(client) = sender(client) else { continue };
            match event {
                ChunkEvent::Received { offer, stored } => {
                    self.lists[CHUNKS]
                        .push(Py::new(py, ReceivedChunk::new(client, offer, stored))?.into_any());
                }
                // The game cancelled it itself.
                ChunkEvent::NotReceived { failure: ChunkFailure::Cancelled, .. } => {}
                ChunkEvent::NotReceived { offer, failure } => {
                    let told = (&*offer.label, failure.to_string());
                    let told = match client {
                        Some(client) => (client, told.0, told.1).into_py_any(py)?,
                        None => told.into_py_any(py)?,
                    };
                    self.lists[CHUNK_FAILURES].push(told);
                }
                // Transfers note the ends of ours, and the core has answered the offers.
                ChunkEvent::Sent { .. } | ChunkEvent::NotSent { .. } | ChunkEvent::Offered(_) => {}
            }
        }
        Ok(())
    }
}

impl Endpoint {
    /// Ends the connections of peers whose messages a class refuses. The next tick has their last events.
    pub(super) fn refuse(&self, peers: &[(PeerHandle, String)]) {
        if peers.is_empty() {
            return;
        }
        // If the game has closed the endpoint meanwhile, the connections are gone anyway.
        let _ = self.with(|core, driver| {
            driver.transmit(|now, out| {
                peers.iter().for_each(|(peer, why)| core.refuse_message(now, *peer, why, out));
            });
        });
    }

    /// Makes the object of a message that arrived. None if it comes too often; an error of the peer's is the reason to
    /// disconnect it.
    fn admit_message<'py>(
        &self,
        py: Python<'py>,
        role: Role,
        record: &endpoint::Record,
        (body, block): (&[u8], Option<&[u8]>),
    ) -> PyResult<Result<Option<Object<'py>>, String>> {
        if let (Role::Call(place), Some(desk)) = (role, &self.desk) {
            match desk.admit(record.head.peer, place, record.head.received_at) {
                Ok(true) => {}
                Ok(false) => return Ok(Ok(None)),
                Err(why) => return Ok(Err(why)),
            }
        }
        let factory = if role == Role::Message { self.factory.as_ref() } else { None };
        let (protocol, number) = (self.protocol.get(), record.message_type);
        match protocol.decode_message(py, number, body, block, factory) {
            Ok(message) => Ok(Ok(Some(message))),
            Err(error) => Ok(Err(self.judge(py, protocol.class_of(number).name(), error)?)),
        }
    }

    /// Reads the held packets of each peer, because yojimbo's framing doesn't say how long messages are; returns the first error
    /// that ends the program. A peer whose bytes make it raise is disconnected even then: the message's end is unknown, and its
    /// packet was acked.
    pub(super) fn read_held(
        &self,
        py: Python<'_>,
        unread: Vec<(PeerHandle, UnreadPackets)>,
    ) -> (Vec<(PeerHandle, ReadPackets)>, PyResult<()>) {
        let protocol = self.protocol.get();
        let mut raised = FirstError::default();
        let mut extent = |number, bytes: &[u8], start| {
            protocol.extent(py, number, bytes, start).map_err(|error| {
                let class = protocol.class_of(number);
                self.judge(py, class.name(), error).unwrap_or_else(|error| {
                    let why = error.to_string();
                    raised.keep::<()>(class.class().bind(py), Err(error));
                    why
                })
            })
        };
        let read = unread.into_iter().map(|(client, unread)| (client, unread.read(&mut extent))).collect();
        (read, raised.result())
    }

    /// The reason for refusing a peer's message that class `name` was reading when this was raised.
    ///
    /// # Errors
    /// The exception, if it ends the program.
    pub(super) fn judge(&self, py: Python<'_>, name: &str, error: PyErr) -> PyResult<String> {
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let class = class_name(error.value(py).as_any());
        let is_refusal = error.is_instance_of::<StreamError>(py);
        let said = error.value(py).str().map_or_else(|_| String::new(), |said| said.to_string());
        if self.state.lock()?.refusals.count(is_refusal, std::time::Instant::now()) {
            log_traceback(py, &error, || {
                format!(
                    "{} ends the connection of a peer: reading a message of it, a {name}, raised {class}: {said:?}",
                    self.described()
                )
            });
        }
        if is_refusal {
            return Ok(said);
        }
        Ok(format!("{name}: {class}: {said}"))
    }
}
