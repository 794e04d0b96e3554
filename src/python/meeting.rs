//! Rendezvous servers and relays, for Python and its command line.
//!
//! Promises: the thread never enters Python, and nobody waits for it while attached; it ends with `close`, with its
//! object, or with the interpreter, whichever comes first.

use crate::python::prelude::*;

use super::exit::{Exit, close_at_exit};
use super::forks::Process;
use super::network::SimulatedNetwork;
use super::token::extract_key;
use crate::driver::meeting::{self, Lookout, Meeting};
use crate::rendezvous::{self, RelayOffer, RelayServerConfig, RendezvousServerConfig};

/// The upper bound of games or channels at a time.
const MAX_PLACES: usize = 1_000_000;

/// The upper bound of a relay's rate in bytes a second: 100 Gbit/s.
const MAX_RATE: f64 = 12.5e9;

/// The service and its thread, which the exit of the interpreter must reach too.
struct Running {
    state: Mutex<Services>,
    /// A fork's child has no thread and must not wait for one.
    process: Process,
}

#[derive(Default)]
struct Services {
    rendezvous: Option<Meeting<rendezvous::RendezvousServer>>,
    lookout: Option<Meeting<Lookout>>,
    relay: Option<Meeting<rendezvous::RelayServer>>,
}

impl Running {
    fn start(py: Python<'_>, services: Services) -> PyResult<Arc<Self>> {
        let running = Arc::new(Running { state: Mutex::new(services), process: Process::current(py)? });
        close_at_exit(py, Arc::downgrade(&running) as _)?;
        Ok(running)
    }

    fn with<T>(&self, ask: impl FnOnce(&Services) -> T) -> T {
        let mut state = lock(&self.state);
        if !self.process.is_here() {
            // The threads belong to another process.
            std::mem::forget(std::mem::take(&mut *state));
        }
        ask(&state)
    }

    fn close(&self) {
        self.with(|services| {
            services.rendezvous.iter().for_each(Meeting::close);
            services.lookout.iter().for_each(Meeting::close);
            services.relay.iter().for_each(Meeting::close);
        });
    }

    fn is_closed(&self) -> bool {
        self.with(|services| {
            let rendezvous = services.rendezvous.as_ref().is_none_or(Meeting::is_closed);
            rendezvous && services.relay.as_ref().is_none_or(Meeting::is_closed)
        })
    }

    fn pump(&self) {
        self.with(|services| {
            services.rendezvous.iter().for_each(Meeting::pump);
            services.lookout.iter().for_each(Meeting::pump);
            services.relay.iter().for_each(Meeting::pump);
        });
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = py.detach(|| {
            self.with(|services| {
                let first = services.rendezvous.as_ref().map(Meeting::counters).unwrap_or_default();
                let relay = services.relay.as_ref().map(Meeting::counters).unwrap_or_default();
                let second = services.lookout.as_ref().map(Meeting::counters).unwrap_or_default();
                let second = second.into_iter().map(|(name, count)| (format!("second_port.{name}"), count));
                let first = first.into_iter().chain(relay).map(|(name, count)| (name.to_owned(), count));
                first.chain(second).collect::<Vec<_>>()
            })
        });
        let counters = PyDict::new(py);
        counted.into_iter().try_for_each(|(name, count)| counters.set_item(name, count))?;
        Ok(counters)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Waits for the thread while attached: until its turn ends, some milliseconds at most.
        self.close();
    }
}

impl Exit for Running {
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.close());
    }
}

#[pyclass(frozen, module = "tickwire.peers")]
pub(crate) struct RendezvousServer {
    address: Address,
    second_address: Option<Address>,
    running: Arc<Running>,
}

#[pymethods]
impl RendezvousServer {
    #[new]
    fn new(
        py: Python<'_>,
        listen: Address,
        #[within(0, u16::MAX)] second_port: Option<u16>,
        relay: Option<Address>,
        relay_key: Option<&Bound<'_, PyAny>>,
        #[within(1000, u32::MAX)] relay_bytes_per_second: u32,
        #[within(1, MAX_PLACES)] max_games: usize,
        network: Option<&Bound<'_, SimulatedNetwork>>,
    ) -> PyResult<Self> {
        let bytes_per_second = relay_bytes_per_second;
        let relay = match (relay, relay_key) {
            (None, None) => None,
            (Some(relay), Some(key)) if relay.0.port() != 0 && !relay.0.ip().is_unspecified() => {
                Some(RelayOffer { address: relay.0, key: extract_key(key)?, bytes_per_second })
            }
            (Some(relay), Some(_)) => {
                let complaint = format!("relay must be an address that peers can send to, not {}", relay.0);
                return Err(PyValueError::new_err(complaint));
            }
            _ => return Err(value_error("relay and relay_key must be given together, or neither of them")),
        };
        let config = RendezvousServerConfig { relay, max_games, ..RendezvousServerConfig::default() };
        let network: Option<VirtualNetwork> = network.map(|network| network.get().0.clone());
        let (rendezvous, lookout) = meeting::rendezvous(listen.0, second_port, config, network)
            .map_err(|error| os_error(py, &error, listen.0))?;
        let address = Address(rendezvous.address());
        let second_address = lookout.as_ref().map(|lookout| Address(lookout.address()));
        let services = Services { rendezvous: Some(rendezvous), lookout, relay: None };
        Ok(RendezvousServer { address, second_address, running: Running::start(py, services)? })
    }

    properties! {
        address: Address = self.address;
        second_address: Option<Address> = self.second_address;
        closed: bool = py.detach(|| self.running.is_closed());
        counters: PyResult<Bound<'py, PyDict>> = self.running.counters(py);
    }

    fn pump(&self, py: Python<'_>) {
        py.detach(|| self.running.pump());
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.running.close());
    }

    closes!();

    fn __repr__(&self, py: Python<'_>) -> String {
        let closed = if self.closed(py) { ", closed" } else { "" };
        format!("<RendezvousServer at {}{closed}>", self.address.0)
    }
}

#[pyclass(frozen, module = "tickwire.peers")]
pub(crate) struct Relay {
    address: Address,
    running: Arc<Running>,
}

#[pymethods]
impl Relay {
    #[new]
    fn new(
        py: Python<'_>,
        listen: Address,
        key: &Bound<'_, PyAny>,
        #[within(1, MAX_PLACES)] max_channels: usize,
        #[number] max_bytes_per_second: f64,
        network: Option<&Bound<'_, SimulatedNetwork>>,
    ) -> PyResult<Self> {
        if !(1000.0..=MAX_RATE).contains(&max_bytes_per_second) {
            return Err(PyValueError::new_err(format!(
                "max_bytes_per_second must be 1000 to {MAX_RATE}, not {max_bytes_per_second}"
            )));
        }
        let config = RelayServerConfig {
            key: extract_key(key)?,
            max_channels,
            max_bytes_per_second: max_bytes_per_second as u64,
        };
        let network: Option<VirtualNetwork> = network.map(|network| network.get().0.clone());
        let relay =
            meeting::relay(listen.0, config, network).map_err(|error| os_error(py, &error, listen.0))?;
        let address = Address(relay.address());
        let services = Services { relay: Some(relay), ..Services::default() };
        Ok(Relay { address, running: Running::start(py, services)? })
    }

    properties! {
        address: Address = self.address;
        closed: bool = py.detach(|| self.running.is_closed());
        counters: PyResult<Bound<'py, PyDict>> = self.running.counters(py);
    }

    fn pump(&self, py: Python<'_>) {
        py.detach(|| self.running.pump());
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.running.close());
    }

    closes!();

    fn __repr__(&self, py: Python<'_>) -> String {
        let closed = if self.closed(py) { ", closed" } else { "" };
        format!("<Relay at {}{closed}>", self.address.0)
    }
}
