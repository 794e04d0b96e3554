//! Rendezvous servers and relays, for Python and its command line.
//!
//! Promises: the thread never enters Python, and nobody waits for it while attached; it ends with `close`, with its
//! object, or with the interpreter, whichever comes first.

use crate::python::prelude::*;

use super::exit::{Background, Running};
use crate::driver::meeting::{self, Meetings};
use crate::rendezvous::{RelayOffer, RelayServerConfig, RendezvousServerConfig};

/// The upper bound of games or channels at a time.
const MAX_PLACES: usize = 1_000_000;

/// The upper bound of a relay's rate in bytes a second: 100 Gbit/s.
const MAX_RATE: f64 = 12.5e9;

impl Background for Meetings {
    fn close(&mut self) {
        Meetings::close(self);
    }
}

#[pyclass(frozen, module = "tickwire.peers")]
pub(crate) struct RendezvousServer {
    address: Address,
    second_address: Option<Address>,
    running: Arc<Running<Meetings>>,
}

#[pymethods]
impl RendezvousServer {
    #[new]
    fn new(
        py: Python<'_>,
        listen: Address,
        #[within(0, u16::MAX)] second_port: Option<u16>,
        relay: Option<Address>,
        relay_key: Option<&Object<'_>>,
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
            _ => return Err(value_error("relay and relay_key must be given together")),
        };
        let config = RendezvousServerConfig { relay, max_games, ..RendezvousServerConfig::default() };
        let network: Option<VirtualNetwork> = network.map(|network| network.get().0.clone());
        let (rendezvous, lookout) = meeting::rendezvous(listen.0, second_port, config, network)
            .map_err(|error| os_error(py, &error, listen.0))?;
        let address = Address(rendezvous.address());
        let second_address = lookout.as_ref().map(|lookout| Address(lookout.address()));
        let meetings = Meetings { rendezvous: Some(rendezvous), lookout, relay: None };
        Ok(RendezvousServer { address, second_address, running: Running::start(py, meetings)? })
    }

    properties! {
        second_address: Option<Address> = self.second_address;
    }
}

#[pyclass(frozen, module = "tickwire.peers")]
pub(crate) struct Relay {
    address: Address,
    running: Arc<Running<Meetings>>,
}

#[pymethods]
impl Relay {
    #[new]
    fn new(
        py: Python<'_>,
        listen: Address,
        key: &Object<'_>,
        #[within(1, MAX_PLACES)] max_channels: usize,
        #[number] max_bytes_per_second: f64,
        network: Option<&Bound<'_, SimulatedNetwork>>,
    ) -> PyResult<Self> {
        if !(1000.0..=MAX_RATE).contains(&max_bytes_per_second) {
            let given = short(max_bytes_per_second);
            refuse!(PyValueError, "max_bytes_per_second must be 1000 to {MAX_RATE}, not {given}");
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
        let meetings = Meetings { relay: Some(relay), ..Meetings::default() };
        Ok(Relay { address, running: Running::start(py, meetings)? })
    }
}

/// Makes what servers and relays have in common.
macro_rules! meeting {
    ($($Class:ident)*) => {
        $(#[pymethods]
        impl $Class {
            properties! {
                address: Address = self.address;
                closed: bool = self.running.with(py, |meetings| meetings.is_closed());
                counters: PyResult<Bound<'py, PyDict>> = counts(py, self.running.with(py, |it| it.counters()).into_iter());
            }

            fn pump(&self, py: Python<'_>) {
                self.running.with(py, |meetings| meetings.pump());
            }

            fn close(&self, py: Python<'_>) {
                self.running.with(py, |meetings| meetings.close());
            }

            closes!();

            fn __repr__(&self, py: Python<'_>) -> String {
                let closed = if self.closed(py) { ", closed" } else { "" };
                format!("<{} at {}{closed}>", stringify!($Class), self.address.0)
            }
        })*
    };
}

meeting!(RendezvousServer Relay);
