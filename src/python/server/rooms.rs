//! Rooms for Python: see [`endpoint::PeerRoom`]. A room keeps its server alive, but no server its rooms.

use crate::python::prelude::*;

use super::Audience;
use crate::endpoint;

#[pyclass(frozen, generic, weakref, module = "tickwire")]
pub(crate) struct Room {
    server: Py<Server>,
    core: endpoint::PeerRoom,
}

#[pymethods]
impl Room {
    #[new]
    pub(super) fn new(server: Py<Server>) -> PyResult<Self> {
        let core = server.get().endpoint.state.lock()?.carrier.session.rooms().open();
        Ok(Room { server, core })
    }

    #[getter]
    fn server(&self, py: Python<'_>) -> Py<Server> {
        self.server.clone_ref(py)
    }

    fn add(&self, client: &Bound<'_, ClientHandle>) -> PyResult<bool> {
        let server = self.server.get();
        let peer = server.core_handle("client", client.get())?;
        server.endpoint.with(|core, driver| {
            let is_here = server.everybody.has(peer) && core.is_connected(peer);
            is_here && self.core.enter(driver.now(), core, peer)
        })
    }

    fn discard(&self, client: &Bound<'_, ClientHandle>) -> PyResult<bool> {
        let peer = self.server.get().core_handle("client", client.get())?;
        Ok(self.core.leave(peer))
    }

    fn clear(&self) {
        self.core.clear();
    }

    fn broadcast(
        &self,
        message: &Object<'_>,
        channel: Option<&Object<'_>>,
        exclude: Option<&Bound<'_, ClientHandle>>,
        key: Option<&Object<'_>>,
        tag: Option<&Object<'_>>,
        #[truth] notify: bool,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        let server = self.server.get();
        let outgoing = server.endpoint.encode(Sending { message, channel, key, tag, notify })?;
        server.broadcast_to(message, Audience::Room(&self.core), exclude, &outgoing)
    }

    fn forget(&self, channel: &Object<'_>, #[within(0, u32::MAX)] key: Option<u32>) -> PyResult<usize> {
        let channel = self.server.get().endpoint.protocol.get().channel(Some(channel), None)?;
        Ok(self.core.forget(channel, key))
    }

    fn __contains__(&self, client: &Object<'_>) -> bool {
        let Ok(client) = client.cast::<ClientHandle>() else { return false };
        let peer = self.server.get().core_handle("client", client.get());
        peer.is_ok_and(|peer| self.core.has(peer))
    }

    fn __len__(&self) -> usize {
        self.core.members().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let members = self.core.members().into_iter();
        let members: Vec<_> = members.filter_map(|peer| self.server.get().handle_of(py, peer)).collect();
        members.into_pyobject(py)?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!("<Room of {} clients>", self.__len__())
    }

    traverses!(self.server);
}
