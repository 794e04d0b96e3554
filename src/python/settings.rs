//! The settings that servers and clients share: named, read and checked once.
//!
//! Promises: mistakes raise before anything is made, with the sentences of ordinary parameters.

use std::path::PathBuf;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::arguments::argument;
use super::capture::CaptureLike;
use super::chunks::Arrivals;
use super::congestion::Congestion;
use super::endpoint::Endpoint;
use super::errors::value_error;
use super::ghosts::{check_columns, made_classes};
use super::hooks::{self, HookClock};
use super::inbox::Pending;
use super::network::{Conditions, SimulatedNetwork, one_conditions};
use super::protocol::Protocol;
use super::setup::{is_threaded, packets_within};
use crate::driver::VirtualNetwork;
use crate::limits::DEFAULT_MTU;
use crate::transport::ConnectionConfig;

/// The keyword arguments of a call.
struct Given<'py> {
    function: &'static str,
    left: Bound<'py, PyDict>,
}

impl<'py> Given<'py> {
    /// Takes one argument, or the default; `what` says what it must be.
    fn take<T: FromPyObjectOwned<'py>>(&self, name: &str, what: &str, default: T) -> PyResult<T> {
        let Some(value) = self.left.get_item(name)? else { return Ok(default) };
        self.left.del_item(name)?;
        argument(name, &value, what)
    }

    /// Refuses arguments that nobody took.
    fn finish(self) -> PyResult<()> {
        match self.left.keys().get_item(0) {
            Err(_) => Ok(()),
            Ok(name) => {
                let sentence = format!("{}() got an unexpected keyword argument '{name}'", self.function);
                Err(PyTypeError::new_err(sentence))
            }
        }
    }
}

/// The settings of an endpoint, server or client.
pub(super) struct Settings<'py> {
    pub(super) threaded: bool,
    /// Whether a player's doings raise too.
    pub(super) strict: bool,
    pub(super) factory: Option<Py<PyAny>>,
    pub(super) priority: Option<Py<PyAny>>,
    pub(super) hooks: HookClock,
    /// Received messages, with tables for the classes that come as columns.
    pub(super) pending: Pending,
    pub(super) arrivals: Arrivals,
    /// The classes that a client makes of the protocol's ghosts.
    pub(super) made: Vec<(usize, Py<PyType>)>,
    pub(super) network: Option<VirtualNetwork>,
    /// The network as Python's object.
    pub(super) simulated: Option<Py<SimulatedNetwork>>,
    pub(super) conditions: Option<Bound<'py, Conditions>>,
    pub(super) seed: Option<i128>,
    pub(super) capture: Option<CaptureLike<'py>>,
    pub(super) connection: ConnectionConfig,
}

impl<'py> Settings<'py> {
    /// Gives a client in a server's process the server's time. It has no network of its own to set.
    pub(super) fn share_memory_with(&mut self, py: Python<'_>, server: &Endpoint) -> PyResult<()> {
        let of_network = [
            ("driver must be 'polled'", self.threaded),
            ("network must be left out", self.network.is_some()),
            ("conditions must be None", self.conditions.is_some()),
        ];
        if let Some((complaint, _)) = of_network.iter().find(|(_, is_given)| *is_given) {
            let sentence = format!("{complaint} for a local client: its packets pass through memory");
            return Err(value_error(sentence));
        }
        self.simulated = server.network.as_ref().map(|network| network.clone_ref(py));
        self.network = self.simulated.as_ref().map(|network| network.get().0.clone());
        Ok(())
    }

    /// Reads the arguments of `function`; `memory` bounds chunks in memory by default.
    pub(super) fn new(
        py: Python<'py>,
        function: &'static str,
        given: Option<Bound<'py, PyDict>>,
        chunk_memory: u64,
        protocol: &Protocol,
    ) -> PyResult<Self> {
        let left = given.map_or_else(|| Ok(PyDict::new(py)), |given| given.copy())?;
        let given = Given { function, left };
        let factory: Option<Py<PyAny>> = given.take("factory", "a MessageFactory or None", None)?;
        let priority: Option<Py<PyAny>> = given.take("priority", "callable or None", None)?;
        let slow_hook: f64 = given.take("slow_hook", "a number", 0.005)?;
        let chunk_memory: i128 = given.take("chunk_memory", "an int", chunk_memory.into())?;
        let chunk_directory: Option<PathBuf> = given.take("chunk_directory", "a path or None", None)?;
        let chunk_file_limit: Option<i128> = given.take("chunk_file_limit", "an int or None", None)?;
        let chunk_directory_limit: Option<i128> =
            given.take("chunk_directory_limit", "an int or None", None)?;
        let congestion: Option<Bound<'py, Congestion>> =
            given.take("congestion", "a Congestion or None", None)?;
        let driver: String = given.take("driver", "'polled' or 'thread'", "polled".into())?;
        let conditions: Option<Bound<'py, PyAny>> = given.take("conditions", "a Conditions or None", None)?;
        let conditions = conditions.as_ref().map(one_conditions).transpose()?;
        let seed = given.take("seed", "an int or None", None)?;
        let network: Option<Bound<'py, SimulatedNetwork>> =
            given.take("network", "a SimulatedNetwork or None", None)?;
        let columns: Option<Vec<Bound<'py, PyAny>>> =
            given.take("columns", "a list of message classes or None", None)?;
        let capture = given.take("capture", "a Capture, a path or None", None)?;
        let mtu: i128 = given.take("mtu", "an int", DEFAULT_MTU as i128)?;
        let packet_notifications: bool = given.take("packet_notifications", "True or False", false)?;
        let strict: bool = given.take("strict", "True or False", false)?;
        let made: Option<Bound<'py, PyDict>> = if function.starts_with("Client") {
            given.take("ghosts", "a dict of ghost classes or None", None)?
        } else {
            None
        };
        given.finish()?;

        hooks::check(py, "priority", priority.as_ref())?;
        let hooks = HookClock::new(slow_hook)?;
        let simulated = network.map(Bound::unbind);
        let network = simulated.as_ref().map(|network| network.get().0.clone());
        let threaded = is_threaded(&driver, network.as_ref())?;
        if let Some(factory) = &factory
            && !factory.bind(py).hasattr(intern!(py, "create"))?
        {
            let class = factory.bind(py).get_type().name()?;
            let sentence =
                format!("factory must be a MessageFactory, with a method create, or None, not {class}");
            return Err(PyTypeError::new_err(sentence));
        }
        let made = made.map_or(Ok(Vec::new()), |made| made_classes(&made, &protocol.ghosts))?;
        let columns = columns.unwrap_or_default();
        if function.starts_with("Client") {
            check_columns(&columns, &protocol.ghosts, &made)?;
        }
        let pending = Pending::new(protocol, &columns, packet_notifications)?;
        let connection = ConnectionConfig {
            congestion: Congestion::or_default(congestion.as_ref()),
            packets: packets_within(mtu)?,
            packet_notifications,
            replayed: network.as_ref().is_some_and(|network| network.recorded().is_some()),
            ..ConnectionConfig::default()
        };
        let arrivals =
            Arrivals::new(py, chunk_memory, chunk_directory, chunk_file_limit, chunk_directory_limit)?;
        Ok(Settings {
            threaded,
            strict,
            factory,
            priority,
            hooks,
            pending,
            arrivals,
            made,
            network,
            simulated,
            conditions,
            seed,
            capture,
            connection,
        })
    }
}
