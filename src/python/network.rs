//! The simulated network with its virtual clock.

use core::net::IpAddr;
use std::io::ErrorKind;

use crate::python::prelude::*;

use super::checks::duration;
use super::conditions::MAX_DELAY_SECONDS;
use crate::driver::files::hex;
use crate::netsim::NatKind;
use crate::time::UnixSeconds;

/// A year: more virtual time at once is a mistake.
const MAX_STEP: f64 = 366.0 * 86_400.0;

#[pyclass(frozen, module = "tickwire.testing")]
#[derive(Debug)]
pub(crate) struct SimulatedNetwork(pub(super) VirtualNetwork);

#[pymethods]
impl SimulatedNetwork {
    #[new]
    fn new(#[within(0, u64::MAX)] seed: u64, #[one_way] conditions: Option<Conditions>) -> PyResult<Self> {
        let conditions = conditions.map(Conditions::core).unwrap_or_default();
        VirtualNetwork::new(conditions, seed).map(SimulatedNetwork).map_err(value_error)
    }

    methods! {
        _advance_to(nanoseconds: u64) = self.0.advance(Instant::from_nanos(nanoseconds) - self.0.now());
        _deliver(sender: Address, receiver: Address, datagram: &[u8]) =
            self.0.deliver(sender.0, receiver.0, datagram);
        _random() -> u64 = random(&mut self.0.clone());
        advance(#[seconds(MAX_STEP)] seconds: Duration) = self.0.advance(seconds);
        heal() = self.0.partition(&[]);
        #[staticmethod]
        _replaying(drawn: Vec<u8>, epoch: u64) -> Self =
            SimulatedNetwork(VirtualNetwork::replaying(drawn, UnixSeconds(epoch)));
    }

    properties! {
        transcript: String = hex(&self.0.transcript());
        now: f64 = self.0.now().as_secs_f64();
        unix: u64 = self.0.unix().0;
        counters: PyResult<Bound<'py, PyDict>> = counts(py, self.0.counters().iter());
    }

    fn set_conditions(
        &self,
        #[one_way] conditions: Conditions,
        sender: Option<Address>,
        receiver: Option<Address>,
    ) -> PyResult<()> {
        let (from, to) = (sender.map(|address| address.0), receiver.map(|address| address.0));
        self.0.set_conditions(from, to, conditions.core()).map_err(value_error)
    }

    fn schedule(
        &self,
        #[seconds(MAX_STEP)] at: Duration,
        #[one_way] conditions: Conditions,
        sender: Option<Address>,
        receiver: Option<Address>,
    ) -> PyResult<()> {
        let (from, to) = (sender.map(|address| address.0), receiver.map(|address| address.0));
        self.0.schedule(Instant::ZERO + at, from, to, conditions.core()).map_err(value_error)
    }

    fn partition(&self, parts: &Bound<'_, PyTuple>) -> PyResult<()> {
        let hosts = |part: Object<'_>| -> PyResult<Vec<_>> {
            part.try_iter()?.map(|host| Ok(host?.extract::<Address>()?.0)).collect()
        };
        let parts: Vec<_> = parts.iter().map(hosts).collect::<PyResult<_>>()?;
        self.0.partition(&parts);
        Ok(())
    }

    fn move_host(&self, py: Python<'_>, address: Address, to: Address) -> PyResult<Address> {
        self.0.move_host(address.0, to.0).map(Address).map_err(|error| match error.kind() {
            ErrorKind::AddrNotAvailable => value_error(error),
            _ => os_error(py, &error, to.0),
        })
    }

    fn unplug(&self, address: Address) -> PyResult<()> {
        let there = self.0.unplug(address.0);
        there.then_some(()).ok_or_else(|| {
            PyValueError::new_err(format!("there is no host at {} on this network", address.0))
        })
    }

    fn add_nat(
        &self,
        public: &str,
        inside: Vec<String>,
        kind: &str,
        #[number] lifetime: f64,
    ) -> PyResult<()> {
        let public = host(public)?;
        let inside: Vec<_> = inside.iter().map(|ip| host(ip)).collect::<PyResult<_>>()?;
        let Some((_, kind)) = NatKind::NAMED.iter().find(|(name, _)| *name == kind) else {
            let names = NatKind::NAMED.map(|(name, _)| name).join(", ");
            return Err(PyValueError::new_err(format!("kind must be one of {names}, not '{kind}'")));
        };
        let lifetime = duration("lifetime", lifetime, MAX_DELAY_SECONDS)?;
        self.0.add_nat(public, &inside, *kind, lifetime).map_err(value_error)
    }

    fn restart_nat(&self, public: &str) -> PyResult<()> {
        let public = host(public)?;
        let there = self.0.restart_nat(public);
        there
            .then_some(())
            .ok_or_else(|| PyValueError::new_err(format!("there is no NAT at {public} on this network")))
    }
}

fn host(text: &str) -> PyResult<IpAddr> {
    text.parse().map_err(|_| PyValueError::new_err(format!("'{text}' is not an IP address")))
}
