//! The settings that servers, clients and peers share, read and checked once.
//!
//! Promises: mistakes raise before anything is made, with the sentences of ordinary parameters.

mod debugging;
mod transfers;
mod tuning;

pub(crate) use debugging::Debugging;
use transfers::Arrivals;
pub(crate) use transfers::Transfers;
pub(crate) use tuning::Tuning;

use core::cell::RefCell;
use core::fmt::Write as _;

use crate::python::prelude::*;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::{PyClass, PyTypeInfo};

use super::ghosts::check_columns;
use super::kind::EndpointKind;
use crate::driver::reports::HookClock;
use crate::endpoint::ChunkLimits;
use crate::transport::ConnectionConfig;

/// The keyword arguments of a call.
pub(super) struct Given<'py> {
    function: &'static str,
    left: Bound<'py, PyDict>,
    /// The arguments that were taken as objects of settings, with their classes.
    groups: RefCell<Vec<(&'static str, Bound<'py, PyType>)>>,
}

impl<'py> Given<'py> {
    pub(super) fn new(
        py: Python<'py>,
        function: &'static str,
        given: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let left = given.map_or_else(|| Ok(PyDict::new(py)), |given| given.copy())?;
        Ok(Given { function, left, groups: RefCell::default() })
    }

    /// Takes one argument; `what` says what it must be.
    pub(super) fn take<T: FromPyObjectOwned<'py>>(&self, name: &str, what: &str) -> PyResult<Option<T>> {
        let Some(value) = self.left.get_item(name)? else { return Ok(None) };
        self.left.del_item(name)?;
        argument(name, &value, what)
    }

    /// Takes an object of settings, or makes the default one.
    pub(super) fn settings<T: PyClass + PyTypeInfo>(&self, name: &'static str) -> PyResult<Bound<'py, T>> {
        let class = <T as PyTypeInfo>::type_object(self.left.py());
        self.groups.borrow_mut().push((name, class.clone()));
        match self.take(name, &format!("a {} or None", class.name()?))? {
            Some(given) => Ok(given),
            None => Ok(class.call0()?.cast_into()?),
        }
    }

    /// Refuses arguments that nobody took. A setting of another object is named with its place.
    fn finish(self) -> PyResult<()> {
        let Ok(name) = self.left.keys().get_item(0) else { return Ok(()) };
        let mut sentence = format!("{}() got an unexpected keyword argument '{name}'", self.function);
        for (group, class) in &*self.groups.borrow() {
            if class.hasattr(name.cast::<PyString>()?)? {
                let (module, class) = (class.module()?, class.name()?);
                write!(sentence, ": give {group}={module}.{class}({name}=...)").map_err(value_error)?;
            }
        }
        Err(PyTypeError::new_err(sentence))
    }
}

/// Makes an object of settings anew with some of its fields changed.
pub(super) fn replaced<'py>(
    settings: &Object<'py>,
    fields: &[&str],
    changes: Option<&Bound<'py, PyDict>>,
) -> PyResult<Object<'py>> {
    let all = PyDict::new(settings.py());
    for field in fields {
        all.set_item(field, settings.getattr(*field)?)?;
    }
    if let Some(changes) = changes {
        all.update(changes.as_mapping())?;
    }
    settings.get_type().call((), Some(&all))
}

/// The settings of an endpoint: a server, a client or a peer.
pub(super) struct Settings<'py> {
    pub(super) kind: &'static EndpointKind,
    pub(super) tuning: Bound<'py, Tuning>,
    pub(super) debugging: Bound<'py, Debugging>,
    pub(super) hooks: HookClock,
    /// Received messages, with tables for the classes that come as columns.
    pub(super) pending: Pending,
    pub(super) arrivals: Arrivals,
    /// The classes that a client makes of the protocol's ghosts.
    pub(super) made: Vec<(usize, Py<PyType>)>,
    pub(super) network: Option<VirtualNetwork>,
    /// The network as Python's object.
    pub(super) simulated: Option<Py<SimulatedNetwork>>,
    pub(super) connection: ConnectionConfig,
}

impl<'py> Settings<'py> {
    /// Gives a client in a server's process the time of the server's `network`. It has no network of its own to set.
    pub(super) fn share_memory_with(
        &mut self,
        py: Python<'_>,
        network: Option<&Py<SimulatedNetwork>>,
    ) -> PyResult<()> {
        let tuning = self.tuning.get();
        let of_network = [
            ("driver must be 'polled'", tuning.is_threaded()),
            ("bind must be None", tuning.bind.is_some()),
            ("network must be left out", self.network.is_some()),
            ("conditions must be None", self.debugging.get().conditions.is_some()),
        ];
        if let Some((complaint, _)) = of_network.iter().find(|(_, is_given)| *is_given) {
            let sentence = format!("{complaint} for a local client: its packets pass through memory");
            return Err(value_error(sentence));
        }
        self.share_network(py, network);
        Ok(())
    }

    /// Gives an endpoint the network of another one.
    pub(super) fn share_network(&mut self, py: Python<'_>, network: Option<&Py<SimulatedNetwork>>) {
        self.simulated = network.map(|network| network.clone_ref(py));
        self.network = network.map(|network| network.get().0.clone());
    }

    /// Reads the arguments that all endpoints have; `made` are the classes
    /// that a client makes of the protocol's ghosts.
    pub(super) fn new(
        given: Given<'py>,
        kind: &'static EndpointKind,
        protocol: &Protocol,
        made: Vec<(usize, Py<PyType>)>,
    ) -> PyResult<Self> {
        let py = given.left.py();
        let tuning: Bound<'py, Tuning> = given.settings("tuning")?;
        let debugging: Bound<'py, Debugging> = given.settings("debugging")?;
        let transfers: Bound<'py, Transfers> = given.settings("transfers")?;
        let simulated: Option<Py<SimulatedNetwork>> =
            given.take("network", "a SimulatedNetwork or None")?.unwrap_or_default();
        given.finish()?;

        let network = simulated.as_ref().map(|network| network.get().0.clone());
        check_network(tuning.get().is_threaded(), network.as_ref())?;
        let columns = tuning.get().columns(py);
        check_columns(&columns, &protocol.ghosts, &made)?;
        let mut pending = Pending::new(protocol, &columns)?;
        let connection = ConnectionConfig {
            congestion: transfers.get().congestion(),
            packets: tuning.get().packets()?,
            replayed: network.as_ref().is_some_and(|network| network.recorded().is_some()),
            ..ConnectionConfig::default()
        };
        let hooks = debugging.get().hook_clock()?;
        let is_client = kind.has_world && !kind.is_server;
        pending.has_senders = !is_client;
        let limits = if kind.is_server { ChunkLimits::SERVER } else { ChunkLimits::CLIENT };
        let arrivals = transfers.get().open(py, limits)?;
        Ok(Settings {
            kind,
            tuning,
            debugging,
            hooks,
            pending,
            arrivals,
            made,
            network,
            simulated,
            connection,
        })
    }
}

/// Refuses a thread on a simulated network.
fn check_network(is_threaded: bool, network: Option<&VirtualNetwork>) -> PyResult<()> {
    if is_threaded && network.is_some() {
        return Err(value_error(
            "driver must be 'polled' on a simulated network, because a thread doesn't run in virtual time",
        ));
    }
    Ok(())
}
