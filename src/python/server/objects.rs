//! A server's Python objects: arrivals and departures, the admission hook's decisions, and messages with their senders.

use crate::python::inbox::EVENTS;
use crate::python::prelude::*;

use super::Players;
use crate::netcode::USER_DATA_BYTES;
use crate::python::hooks;
use crate::python::log::log_end;

impl Server {
    /// Asks the admission hook about the newcomers, and admits all that it doesn't refuse.
    pub(super) fn admit(&self, py: Python<'_>) -> PyResult<()> {
        let Some(hook) = &self.admission else { return Ok(()) };
        let newcomers = self.newcomers(py)?;
        if newcomers.is_empty() {
            return Ok(());
        }
        let protocol = self.endpoint.protocol.get();
        let (refused, answered) =
            self.endpoint.clocked(py, "admission", || hooks::refused_by(hook.bind(py), &newcomers, protocol));
        let goodbye_to = |client| refused.iter().find(|(refused, _)| *refused == client);
        let is_refused = |client| goodbye_to(client).is_some();
        {
            let mut state = self.endpoint.state.lock()?;
            let decide = |core: &mut Host, now, out: &mut Datagrams| {
                for client in newcomers.iter().map(|newcomer| newcomer.get().core) {
                    match goodbye_to(client) {
                        Some((_, goodbye)) => core.refuse(now, client, goodbye.detail.as_ref(), out),
                        None => core.admit(client),
                    }
                }
            };
            match state.carrier.parts() {
                Some((session, driver)) => driver.transmit(|now, out| decide(session.change(), now, out)),
                // The hook closed the server: nobody is left to tell.
                None => decide(state.change(), Instant::ZERO, &mut Datagrams::new()),
            }
        }
        self.forget_newcomers(is_refused);
        for newcomer in newcomers.iter().map(Py::get).filter(|newcomer| is_refused(newcomer.core)) {
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

    /// Handles of the newcomers that the hook wasn't asked about.
    fn newcomers(&self, py: Python<'_>) -> PyResult<Vec<Py<ClientHandle>>> {
        let newcomers: Vec<_> = self.endpoint.state.lock()?.host().newcomers().cloned().collect();
        let newcomers = newcomers.into_iter().filter_map(|event| match event {
            Event::Accepted { peer: client, client_id, address, user_data } => {
                Some(Py::new(py, self.handle(client, client_id, address, user_data)))
            }
            _ => None,
        });
        let newcomers: Vec<Py<ClientHandle>> = newcomers.collect::<PyResult<_>>()?;
        let kept = newcomers.iter().map(|newcomer| (newcomer.get().core, newcomer.clone_ref(py)));
        lock(&self.players).newcomers.extend(kept);
        Ok(newcomers)
    }

    /// Forgets newcomers that the game will never hear of.
    fn forget_newcomers(&self, is_forgotten: impl Fn(PeerHandle) -> bool) {
        let mut players = lock(&self.players);
        let forgotten: Vec<_> = players.newcomers.extract_if(|client, _| is_forgotten(*client)).collect();
        // Destructors in Python may ask for players.
        drop(players);
        drop(forgotten);
    }

    fn handle(
        &self,
        core: PeerHandle,
        id: u64,
        address: SocketAddr,
        user_data: Box<[u8; USER_DATA_BYTES]>,
    ) -> ClientHandle {
        let (server, address, end, data) =
            (self.id, Address(address), OnceLock::new(), ObjectCell::default());
        ClientHandle { server, core, id, address, user_data, end, data }
    }

    /// Makes Python objects of a tick's arrivals. Locks are held briefly, never while Python runs.
    pub(super) fn make_objects(
        &self,
        py: Python<'_>,
        pending: &mut Pending,
        events: Vec<Event>,
    ) -> PyResult<()> {
        self.make_events(py, pending, events)?;
        // The core hands over a client's data only between its two events, so each client has a handle here.
        let sender = |client| Some(Some(self.handle_of(py, client)?.into_any()));
        pending.make_received(py, &self.endpoint, sender)?;
        let forgotten: Vec<Option<Py<ClientHandle>>> = {
            let Players { handles, gone, .. } = &mut *lock(&self.players);
            gone.drain(..).map(|client| handles.remove(&client)).collect()
        };
        drop(forgotten);
        Ok(())
    }

    fn make_events(&self, py: Python<'_>, pending: &mut Pending, events: Vec<Event>) -> PyResult<()> {
        let mut final_stats = core::mem::take(&mut pending.tick.final_stats);
        let gone = events.iter().filter(|event| matches!(event, Event::Disconnected { .. }));
        let gone: Vec<PeerHandle> = gone.map(Event::peer).collect();
        self.world.get().forget_owners(&gone);
        for event in events {
            let object = match event {
                Event::Accepted { peer: client, client_id, address, user_data } => {
                    let asked_about = lock(&self.players).newcomers.remove(&client);
                    let handle = match asked_about {
                        Some(handle) => handle,
                        None => Py::new(py, self.handle(client, client_id, address, user_data))?,
                    };
                    lock(&self.players).handles.insert(client, handle.clone_ref(py));
                    self.world.get().give_back(py, &handle);
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
                Event::Disconnected { peer: client, reason, violation, detail } => {
                    let handle = {
                        let mut players = lock(&self.players);
                        players.gone.push(client);
                        players.handles.get(&client).map(|handle| handle.clone_ref(py))
                    };
                    let place = final_stats.iter().position(|(peer, _)| *peer == client);
                    if let (Some(handle), Some(place)) = (&handle, place) {
                        // It ends once.
                        let _ = handle.get().end.set(final_stats.swap_remove(place).1);
                    }
                    log_end(py, reason, violation.as_ref(), detail.as_deref(), || {
                        let client = handle.as_ref().map(|handle| handle.get().described());
                        format!("{} of {}", client.unwrap_or_default(), self.endpoint.described())
                    });
                    Disconnected::event(py, handle, reason, detail)?
                }
                // A server dials nobody.
                Event::Dialled { .. } => continue,
            };
            pending.lists[EVENTS].push(object);
        }
        if !lock(&self.players).newcomers.is_empty() {
            // A client whose protocol turned out to differ isn't reported at all.
            let gone: HashSet<PeerHandle> = {
                let state = self.endpoint.state.lock()?;
                let players = lock(&self.players);
                let is_gone = |client: &&PeerHandle| state.host().peer_stats(**client).is_none();
                players.newcomers.keys().filter(is_gone).copied().collect()
            };
            self.forget_newcomers(|client| gone.contains(&client));
        }
        Ok(())
    }
}
