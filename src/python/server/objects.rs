//! What a server hands up: who came and went, whom the admission hook lets in, and the messages with their senders.

use core::net::SocketAddr;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{Players, Server};
use crate::endpoint::{self, ServerEvent};
use crate::netcode::USER_DATA_BYTES;
use crate::python::address::Address;
use crate::python::endpoint::Endpoint;
use crate::python::events::{ClientHandle, Connected, Disconnected};
use crate::python::hooks;
use crate::python::inbox::Pending;
use crate::python::lock;
use crate::python::log::{Level, log, log_end};

impl Server {
    /// Asks the admission hook about the newcomers, disconnects those it refuses and takes them out of `events`.
    fn admit(&self, py: Python<'_>, events: &mut Vec<ServerEvent>) -> PyResult<()> {
        let Some(hook) = &self.admission else { return Ok(()) };
        let newcomers = events.iter().filter_map(|event| match event {
            ServerEvent::Connected { client, client_id, address, user_data } => {
                Some(Py::new(py, self.handle(*client, *client_id, *address, user_data.clone())))
            }
            ServerEvent::Disconnected { .. } => None,
        });
        let newcomers = newcomers.collect::<PyResult<Vec<_>>>()?;
        if newcomers.is_empty() {
            return Ok(());
        }
        let protocol = self.endpoint.protocol.get();
        let (goodbyes, answered) =
            self.endpoint.clocked(py, "admission", || hooks::refused_by(hook.bind(py), &newcomers, protocol));
        let refused: Vec<_> = goodbyes.iter().map(|(client, _)| *client).collect();
        // Those who left by themselves meanwhile are gone already; once closed, all are.
        let kicked = self.endpoint.with(|core, driver| {
            driver.transmit(|now, out| {
                for (client, goodbye) in goodbyes {
                    let _ = core.disconnect_with(now, client, goodbye, out);
                }
            });
            core::iter::from_fn(|| core.poll_event()).collect::<Vec<_>>()
        });
        events.extend(kicked.into_iter().flatten());
        events.retain(|event| match event {
            ServerEvent::Connected { client, .. } | ServerEvent::Disconnected { client, .. } => {
                !refused.contains(client)
            }
        });
        for newcomer in newcomers.iter().map(Py::get).filter(|newcomer| refused.contains(&newcomer.core)) {
            log(py, Level::Info, || {
                format!(
                    "{} was refused by the admission hook of {}",
                    newcomer.described(),
                    self.endpoint.described()
                )
            });
        }
        answered
    }

    fn handle(
        &self,
        core: endpoint::ClientHandle,
        id: u64,
        address: SocketAddr,
        user_data: Box<[u8; USER_DATA_BYTES]>,
    ) -> ClientHandle {
        ClientHandle { server: self.id, core, id, address: Address(address), user_data }
    }

    /// Makes Python objects of what was taken. The lock is held for moments only, never while Python runs.
    pub(super) fn make_objects(
        &self,
        py: Python<'_>,
        pending: &mut Pending,
        mut events: Vec<ServerEvent>,
    ) -> PyResult<()> {
        let admitted = self.admit(py, &mut events);
        let mut refused = Vec::new();
        self.make_events(py, pending, events)?;
        // Whoever was not admitted has no handle.
        pending.make_chunks(py, |client| {
            lock(&self.players).handles.get(&client).map(|handle| Some(handle.clone_ref(py)))
        })?;
        let Endpoint { protocol, factory, .. } = &self.endpoint;
        if self.admission.is_some() {
            // Whoever was not admitted has no handle.
            let players = lock(&self.players);
            pending.records.keep_rows(|client| players.handles.contains_key(&client));
        }
        // Messages of one client come one behind the other.
        let mut sender: Option<(endpoint::ClientHandle, Bound<'_, PyAny>)> = None;
        let made =
            pending.make_messages(py, protocol.get(), factory.as_ref(), &mut refused, |client, what| {
                if sender.as_ref().is_none_or(|(last, _)| *last != client) {
                    let handle = lock(&self.players).handles.get(&client).map(|handle| handle.clone_ref(py));
                    // Whoever was not admitted has none.
                    sender = handle.map(|handle| (client, handle.into_bound(py).into_any()));
                }
                let Some((_, handle)) = &sender else { return Ok(None) };
                let tuple = match what {
                    [message] => PyTuple::new(py, [handle, message])?,
                    several => PyTuple::new(py, [core::slice::from_ref(handle), several].concat())?,
                };
                Ok(Some(tuple.into_any().unbind()))
            });
        if !refused.is_empty() {
            let events = self.refuse(&refused);
            self.make_events(py, pending, events)?;
        }
        admitted.and(made)?;
        let forgotten: Vec<Option<Py<ClientHandle>>> = {
            let Players { handles, gone } = &mut *lock(&self.players);
            gone.drain(..).map(|client| handles.remove(&client)).collect()
        };
        drop(forgotten);
        Ok(())
    }

    fn make_events(&self, py: Python<'_>, pending: &mut Pending, events: Vec<ServerEvent>) -> PyResult<()> {
        for event in events {
            let object = match event {
                ServerEvent::Connected { client, client_id, address, user_data } => {
                    let handle = Py::new(py, self.handle(client, client_id, address, user_data))?;
                    lock(&self.players).handles.insert(client, handle.clone_ref(py));
                    log(py, Level::Info, || {
                        let slot = client.slot;
                        format!(
                            "{} connected to {}, slot {slot}",
                            handle.get().described(),
                            self.endpoint.described()
                        )
                    });
                    Py::new(py, Connected { client: Some(handle) })?.into_any()
                }
                ServerEvent::Disconnected { client, reason, violation, detail } => {
                    let handle = {
                        let mut players = lock(&self.players);
                        players.gone.push(client);
                        players.handles.get(&client).map(|handle| handle.clone_ref(py))
                    };
                    log_end(py, reason, violation.as_ref(), detail.as_deref(), || {
                        let client = handle.as_ref().map(|handle| handle.get().described());
                        format!("{} of {}", client.unwrap_or_default(), self.endpoint.described())
                    });
                    Py::new(py, Disconnected { client: handle, reason, detail })?.into_any()
                }
            };
            pending.events.push(object);
        }
        Ok(())
    }

    /// Ends the connections of clients that sent what their class refuses.
    fn refuse(&self, clients: &[endpoint::ClientHandle]) -> Vec<ServerEvent> {
        let refused = self.endpoint.with(|core, driver| {
            driver.transmit(|now, out| {
                clients.iter().for_each(|client| core.refuse_message(now, *client, out));
            });
            core::iter::from_fn(|| core.poll_event()).collect()
        });
        // Closed by the game meanwhile.
        refused.unwrap_or_default()
    }
}
