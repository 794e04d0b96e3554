//! Rooms: groups of a server's clients, to send to.
//!
//! Promises: a client that leaves the server has left its rooms when its last event is handed over, and a newcomer to a
//! room is sent the room's retained values. A room keeps its server alive, but no server its rooms.

use std::collections::BTreeMap;

use crate::python::prelude::*;
use pyo3::types::PyIterator;

use super::retained::Retained;
use super::{Audience, Server};
use crate::python::sending::Sending;

/// The members of a room. Locked alone and briefly, or inside the endpoint's lock.
pub(super) type Members = Mutex<BTreeMap<PeerHandle, Py<ClientHandle>>>;

/// With fewer rooms, dropped ones aren't looked for.
const MIN_ROOMS: usize = 16;

/// The rooms of a server.
#[derive(Debug, Default)]
pub(super) struct Rooms(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    rooms: Vec<Weak<Members>>,
    /// Twice the number of rooms after dropped ones were last removed.
    look_at: usize,
}

impl Rooms {
    fn add(&self, room: &Arc<Members>) {
        let mut known = lock(&self.0);
        if known.rooms.len() >= known.look_at {
            known.rooms.retain(|room| room.strong_count() > 0);
            known.look_at = MIN_ROOMS.max(2 * known.rooms.len());
        }
        known.rooms.push(Arc::downgrade(room));
    }

    /// Removes clients that are gone from all rooms. Returns their handles, to be dropped when nothing is locked.
    pub(super) fn leave(&self, gone: &[PeerHandle]) -> Vec<Py<ClientHandle>> {
        if gone.is_empty() {
            return Vec::new();
        }
        let rooms: Vec<Arc<Members>> = lock(&self.0).rooms.iter().filter_map(Weak::upgrade).collect();
        let mut left = Vec::new();
        for room in rooms {
            let mut members = lock(&room);
            left.extend(gone.iter().filter_map(|client| members.remove(client)));
        }
        left
    }
}

#[pyclass(frozen, generic, weakref, module = "tickwire")]
pub(crate) struct Room {
    server: Py<Server>,
    members: Arc<Members>,
    retained: Mutex<Retained>,
}

#[pymethods]
impl Room {
    #[new]
    pub(super) fn new(server: Py<Server>) -> Self {
        let members = Arc::default();
        server.get().rooms.add(&members);
        Room { server, members, retained: Mutex::default() }
    }

    #[getter]
    fn server(&self, py: Python<'_>) -> Py<Server> {
        self.server.clone_ref(py)
    }

    fn add(&self, client: &Bound<'_, ClientHandle>) -> PyResult<bool> {
        let server = self.server.get();
        let peer = server.core_handle(client.get())?;
        server.endpoint.with(|core, driver| {
            if !lock(&server.players).handles.contains_key(&peer) || !core.is_connected(peer) {
                return false;
            }
            if lock(&self.members).insert(peer, client.clone().unbind()).is_some() {
                return false;
            }
            for (channel, message, options) in lock(&self.retained).values() {
                // Latest channels are never full.
                let _ = core.send(driver.now(), peer, channel, message.clone(), options);
            }
            true
        })
    }

    fn discard(&self, client: &Bound<'_, ClientHandle>) -> PyResult<bool> {
        let peer = self.server.get().core_handle(client.get())?;
        let left = lock(&self.members).remove(&peer);
        Ok(left.is_some())
    }

    fn clear(&self) {
        let left = core::mem::take(&mut *lock(&self.members));
        drop(left);
    }

    fn broadcast(
        &self,
        message: &Bound<'_, PyAny>,
        channel: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, ClientHandle>>,
        key: Option<&Bound<'_, PyAny>>,
        tag: Option<&Bound<'_, PyAny>>,
        #[truth] notify: bool,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        let server = self.server.get();
        let outgoing = server.endpoint.encode(Sending { message, channel, key, tag, notify })?;
        server.broadcast_to(message, Audience::Room(&self.members), exclude, &outgoing, Some(&self.retained))
    }

    fn forget(&self, channel: &Bound<'_, PyAny>, #[within(0, u32::MAX)] key: Option<u32>) -> PyResult<usize> {
        let channel = self.server.get().endpoint.protocol.get().channel(Some(channel), None)?;
        Ok(lock(&self.retained).forget(channel, key))
    }

    fn __contains__(&self, client: &Bound<'_, PyAny>) -> bool {
        let Ok(client) = client.cast::<ClientHandle>() else { return false };
        let peer = self.server.get().core_handle(client.get());
        peer.is_ok_and(|peer| lock(&self.members).contains_key(&peer))
    }

    fn __len__(&self) -> usize {
        lock(&self.members).len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let members: Vec<_> = lock(&self.members).values().map(|client| client.clone_ref(py)).collect();
        members.into_pyobject(py)?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!("<Room of {} clients>", lock(&self.members).len())
    }

    traverses!(self.server, self.members);
}
