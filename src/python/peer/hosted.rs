//! The game that players host, on a peer: its server while this player hosts, and this player's client.

use crate::python::prelude::*;

use crate::python::ghosts::made_classes;
use crate::python::reconnect::SeatSlot;
use crate::python::settings::{Debugging, Tuning};

/// The settings of the servers and of the client.
const SETTINGS: [&str; 3] = ["tuning", "debugging", "transfers"];

/// A peer's part in a hosted game.
pub(super) struct HostedGame {
    pub(super) client: Py<Client>,
    /// Where the client finds the token for another host's server.
    pub(super) seat: SeatSlot,
    pub(super) settings: Py<PyDict>,
    /// The server that this peer runs.
    pub(super) serving: Mutex<Option<Py<Server>>>,
    /// Whether the warning about a large world was logged.
    pub(super) warned: AtomicBool,
}

/// The settings of the servers and of the client, and the classes that the client makes of the protocol's ghosts.
pub(super) type HostedSettings<'py> = (Bound<'py, PyDict>, Vec<(usize, Py<PyType>)>);

/// Takes the settings of a hosted game's servers and client from those of a peer.
pub(super) fn settings_of<'py>(
    py: Python<'py>,
    given: Option<&Bound<'py, PyDict>>,
    ghosts: Option<&Object<'py>>,
    protocol: &Protocol,
) -> PyResult<Option<HostedSettings<'py>>> {
    let (settings, made) = (PyDict::new(py), made_classes(ghosts, &protocol.ghosts)?);
    let Some(given) = given.filter(|_| protocol.is_hosted()) else {
        return Ok(protocol.is_hosted().then_some((settings, made)));
    };
    for name in SETTINGS {
        if let Some(value) = given.get_item(name)?.filter(|value| !value.is_none()) {
            settings.set_item(name, value)?;
        }
    }
    // The peer's port has these.
    let changes = PyDict::new(py);
    changes.set_item("bind", py.None())?;
    changes.set_item("driver", "polled")?;
    changed::<Tuning>(&settings, "tuning", &changes)?;
    let changes = PyDict::new(py);
    changes.set_item("conditions", py.None())?;
    changes.set_item("capture", py.None())?;
    changed::<Debugging>(&settings, "debugging", &changes)?;
    // Between players go only worlds, which are received into memory.
    if given.contains("transfers")? {
        given.del_item("transfers")?;
    }
    Ok(Some((settings, made)))
}

/// Replaces an object of settings by one with these changes; a wrong one is refused by its user.
fn changed<T: pyo3::PyTypeInfo>(
    settings: &Bound<'_, PyDict>,
    name: &str,
    changes: &Bound<'_, PyDict>,
) -> PyResult<()> {
    match settings.get_item(name)?.filter(|value| value.is_instance_of::<T>()) {
        Some(value) => settings.set_item(name, value.call_method("replace", (), Some(changes))?),
        None => Ok(()),
    }
}

holds!(HostedGame: client, settings, serving);

impl HostedGame {
    pub(super) fn new<'py>(
        py: Python<'py>,
        peer: &Endpoint,
        (settings, made): HostedSettings<'py>,
    ) -> PyResult<Self> {
        let seat = SeatSlot::default();
        let given = Given::new(py, "Peer", Some(settings.clone()))?;
        let client = Client::hosted(py, peer.protocol.clone_ref(py), (given, made), (peer, seat.clone()))?;
        Ok(HostedGame {
            client: Py::new(py, client)?,
            seat,
            settings: settings.unbind(),
            serving: Mutex::default(),
            warned: AtomicBool::new(false),
        })
    }

    /// The server that this peer runs, whether it hosts at the moment or not.
    pub(super) fn server(&self, py: Python<'_>) -> Option<Py<Server>> {
        let server = lock(&self.serving).as_ref().map(|server| server.clone_ref(py));
        server.filter(|server| !server.get().endpoint.closed().unwrap_or(true))
    }

    /// Ends the server: another player hosts, or nobody.
    pub(super) fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let serving = lock(&self.serving).take();
        serving.map_or(Ok(()), |server| server.get().end_hosted(py))
    }

    /// Ends the server and the client with their peer.
    pub(super) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let stopped = self.stop(py);
        self.client.get().close_hosted(py).and(stopped)
    }
}
