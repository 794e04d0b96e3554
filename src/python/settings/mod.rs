//! The settings that servers, clients and peers share, read and checked once.
//!
//! Promises: mistakes raise before anything is made, with the sentences of ordinary parameters.

use core::cell::RefCell;
use core::fmt::Write as _;

use crate::python::prelude::*;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::{PyClass, PyTypeInfo};

use super::ghosts::check_columns;
use super::kind::EndpointKind;
use crate::driver::files::DirectoryStore;
use crate::driver::reports::HookClock;
use crate::endpoint::ChunkLimits;
use crate::limits::{DEFAULT_MTU, MIN_MTU};
use crate::python::capture::{self, Capture, CaptureLike};
use crate::transport::ack_endpoint::AckEndpointConfig;
use crate::transport::chunks::MAX_CHUNK_BYTES;
use crate::transport::{CongestionConfig, ConnectionConfig};

/// The default limit of a file, 1 GiB: larger than games send, smaller than any disk.
const FILE_LIMIT: u64 = 1 << 30;

/// How many files of the largest size a directory takes by default.
const FILES: u64 = 8;

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

#[record(checked, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Tuning {
    #[either("polled", "thread")]
    driver: String,
    pub(super) bind: Option<Address>,
    #[within(1, i32::MAX.unsigned_abs())]
    pub(super) timeout: Option<u32>,
    #[within(MIN_MTU, DEFAULT_MTU)]
    mtu: usize,
    // No game waits longer for one player.
    #[span(0.1, 3600.0)]
    stalled_timeout: Option<f64>,
    #[callable(1)]
    pub(super) priority: Option<Py<PyAny>>,
    pub(super) factory: Option<Py<PyAny>>,
    #[classes]
    columns: Vec<Py<PyAny>>,
}

impl Tuning {
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let Some(factory) = self.factory.as_ref().map(|factory| factory.bind(py)) else { return Ok(()) };
        if factory.hasattr(intern!(py, "create"))? {
            return Ok(());
        }
        let class = class_name(factory);
        refuse!(PyTypeError, "factory must be a MessageFactory, with a method create, or None, not {class}")
    }

    pub(super) fn is_threaded(&self) -> bool {
        self.driver == "thread"
    }

    pub(super) fn columns<'py>(&self, py: Python<'py>) -> Vec<Object<'py>> {
        self.columns.iter().map(|class| class.bind(py).clone()).collect()
    }

    pub(super) fn stalled_timeout(&self) -> Option<Duration> {
        self.stalled_timeout.map(Duration::from_secs_f64)
    }

    /// The packet sizes that fit the largest IP packets.
    pub(super) fn packets(&self) -> PyResult<AckEndpointConfig> {
        ConnectionConfig::default().packets.with_mtu(self.mtu).map_err(value_error)
    }
}

#[record(checked, module = "tickwire.testing")]
#[derive(Debug)]
pub(crate) struct Debugging {
    #[truth]
    pub(super) strict: bool,
    #[one_way]
    pub(super) conditions: Option<Conditions>,
    #[within(0, u64::MAX)]
    pub(super) seed: Option<u64>,
    capture: Option<Py<PyAny>>,
    #[number]
    slow_hook: f64,
}

impl Debugging {
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(capture) = &self.capture {
            argument::<CaptureLike<'_>>("capture", capture.bind(py), "a Capture, a path or None")?;
        }
        self.hook_clock().map(drop)
    }

    pub(super) fn hook_clock(&self) -> PyResult<HookClock> {
        let slow = self.slow_hook;
        let refused = || value_error(format!("slow_hook must be 0 or more seconds, not {slow}"));
        HookClock::new(slow).ok_or_else(refused)
    }

    /// The capture, opened if a path was given, or the process's by the environment.
    pub(super) fn capture<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Capture>>> {
        let given = self.capture.as_ref().map(|given| given.bind(py).extract()).transpose()?;
        capture::chosen(py, given)
    }
}

#[record(checked, module = "tickwire.transfer")]
#[derive(Debug)]
pub(crate) struct Transfers {
    #[within(0, u64::MAX)]
    memory: Option<u64>,
    directory: Option<PathBuf>,
    #[within(0, MAX_CHUNK_BYTES)]
    file_limit: Option<u64>,
    #[within(0, u64::MAX)]
    directory_limit: Option<u64>,
    congestion: Option<Py<Congestion>>,
}

impl Transfers {
    fn check(&self, _: Python<'_>) -> PyResult<()> {
        let limits = [("file_limit", self.file_limit), ("directory_limit", self.directory_limit)];
        if let (None, Some((name, limit))) =
            (&self.directory, limits.into_iter().find_map(|(name, limit)| Some((name, limit?))))
        {
            refuse!(PyValueError, "{name} ({limit}) needs a directory: give directory too");
        }
        match (self.file_limit, self.directory_limit) {
            (Some(file), Some(all)) if file > all => {
                refuse!(PyValueError, "file_limit must be 0 to directory_limit ({all}), not {file}")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn congestion(&self) -> CongestionConfig {
        self.congestion.as_ref().map(|given| given.get().0).unwrap_or_default()
    }

    /// Makes the directory; by default, chunks have these limits.
    pub(super) fn open(&self, py: Python<'_>, limits: ChunkLimits) -> PyResult<Arrivals> {
        let limits = ChunkLimits { memory_bytes: self.memory.unwrap_or(limits.memory_bytes) };
        let Some(directory) = &self.directory else { return Ok(Arrivals { limits, directory: None }) };
        let limit = self.file_limit.unwrap_or(FILE_LIMIT);
        let total = self.directory_limit.unwrap_or(FILES * limit);
        let store = DirectoryStore::new(directory.clone(), limit, total)
            .map_err(|error| file_error(py, &error, directory))?;
        Ok(Arrivals { limits, directory: Some(store) })
    }
}

/// Which chunks an endpoint accepts, and where it stores them.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) limits: ChunkLimits,
    /// Memory if none.
    pub(super) directory: Option<DirectoryStore>,
}

#[pyclass(frozen, module = "tickwire.transfer")]
#[derive(Debug)]
pub(crate) struct Congestion(pub(super) CongestionConfig);

#[pymethods]
impl Congestion {
    #[new]
    fn new(
        #[number] min_bytes_per_second: f64,
        #[number] max_bytes_per_second: f64,
        #[within(1, u32::MAX)] initial_bytes: u32,
        #[within(1, u32::MAX)] max_burst_bytes: u32,
    ) -> PyResult<Self> {
        let config =
            CongestionConfig { min_bytes_per_second, max_bytes_per_second, initial_bytes, max_burst_bytes };
        config.check().map_err(value_error)?;
        Ok(Congestion(config))
    }

    fn __repr__(&self) -> String {
        let CongestionConfig { min_bytes_per_second, max_bytes_per_second, .. } = &self.0;
        format!("<Congestion: {min_bytes_per_second} to {max_bytes_per_second} bytes/s>")
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

/// Refuses a thread on a simulated network.
fn check_network(is_threaded: bool, network: Option<&VirtualNetwork>) -> PyResult<()> {
    if is_threaded && network.is_some() {
        return Err(value_error(
            "driver must be 'polled' on a simulated network, because a thread doesn't run in virtual time",
        ));
    }
    Ok(())
}
