//! Calls of a server, for one client or several.

use crate::python::prelude::*;

use super::Audience;
use crate::python::arrays::Recipients;

#[pymethods]
impl Server {
    fn call<'py>(
        &self,
        py: Python<'py>,
        client: &Object<'py>,
        call: &Object<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        if let Ok(client) = client.cast::<ClientHandle>() {
            return self.endpoint.call(py, self.core_handle("client", client.get())?, call, args, kwargs);
        }
        let clients = self.recipients(client).map_err(|error| {
            if !error.is_instance_of::<PyTypeError>(py) {
                return error;
            }
            // The wrong type may be that of one item of a list.
            let item = client.try_iter().ok().and_then(|mut items| {
                items.find_map(|item| item.ok().filter(|item| !item.is_instance_of::<ClientHandle>()))
            });
            let class = class_name(item.as_ref().unwrap_or(client));
            let of = if item.is_some() { "one of " } else { "" };
            PyTypeError::new_err(format!(
                "client must be a ClientHandle or an iterable of them, not {of}{class}"
            ))
        })?;
        let left_out = self.call_several(py, Some(clients), call, args, kwargs)?;
        Ok(left_out.into_pyobject(py)?.into_any().unbind())
    }

    fn call_all<'py>(
        &self,
        py: Python<'py>,
        call: &Object<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        self.call_several(py, None, call, args, kwargs)
    }
}

impl Server {
    /// Makes these clients, or all, run a call.
    fn call_several<'py>(
        &self,
        py: Python<'py>,
        clients: Option<Recipients>,
        call: &Object<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Py<ClientHandle>>> {
        let declared = self.endpoint.outgoing(call)?;
        declared.check_for_all()?;
        let object = declared.message.bind(py).call(args, kwargs)?;
        let ghosts = self.endpoint.ghost_arguments(declared, &object)?;
        if ghosts.is_empty() {
            let (message, channel) = self.endpoint.call_message(&object)?;
            let audience = clients.map_or(Audience::Room(&self.everybody), Audience::These);
            let messages = [(message, SendOptions::default())];
            return self.send_all(py, &declared.name, audience, None, (channel, &messages));
        }
        let clients = match clients {
            Some(Recipients(clients)) => clients,
            None => self.everybody.members(),
        };
        let mut left_out = Vec::new();
        for client in clients {
            // Each client knows the ghosts by other numbers.
            if !self.endpoint.number_ghosts(declared, client, &object, &ghosts)? {
                continue;
            }
            let (sent, channel) = self.endpoint.send_call(client, &object)?;
            let Err(error) = sent else { continue };
            if !error.is_refusal() {
                return Err(self.endpoint.send_error(&declared.name, channel, error));
            }
            left_out.extend(lock(&self.players).handles.get(&client).map(|handle| handle.clone_ref(py)));
        }
        Ok(left_out)
    }
}
