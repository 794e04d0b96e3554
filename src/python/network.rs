//! Bad networks on purpose: conditions, and the simulated network with its virtual clock.

use core::net::IpAddr;
use std::io::ErrorKind;

use crate::python::prelude::*;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::types::{PyDict, PyTuple};

use super::address::{Address, AddressLike};
use super::arguments::{int, number, optional_int};
use super::errors::{os_error, value_error};
use super::fields::{whole, within};
use super::parts::counts;
use super::protocol::seconds;
use super::setup::random;
use crate::driver::VirtualNetwork;
use crate::netsim::NatKind;
use crate::netsim::conditions::{
    self, Bottleneck, DEFAULT_QUEUE, MAX_DATAGRAM, MAX_DELAY, MAX_OVERHEAD, MAX_QUEUE, MAX_RATE, RandomWalk,
};
use crate::netsim::network::NetworkCounters;
use crate::netsim::presets::{self, Preset};
use crate::time::{Duration, Instant, UnixSeconds};

/// A year: more virtual time at once is a mistake.
const MAX_STEP: f64 = 366.0 * 86_400.0;

/// The longest delay that conditions may ask for, in seconds.
const MAX_DELAY_SECONDS: f64 = MAX_DELAY.as_secs_f64();

/// The maximum of a latency and of its variation, in seconds: a larger number is one of milliseconds by mistake.
const MAX_LATENCY: f64 = 10.0;

/// For how long a random-walk delay stays similar, by default.
const DEFAULT_RANDOM_WALK_TIME: Duration = Duration::from_secs(1);

#[pyclass(frozen, eq, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bursts(conditions::Bursts);

#[pymethods]
impl Bursts {
    #[new]
    #[pyo3(signature = (to_bad, to_good, *, good_loss = 0.0, bad_loss = 1.0))]
    fn new(
        #[pyo3(from_py_with = number::to_bad)] to_bad: f64,
        #[pyo3(from_py_with = number::to_good)] to_good: f64,
        #[pyo3(from_py_with = number::good_loss)] good_loss: f64,
        #[pyo3(from_py_with = number::bad_loss)] bad_loss: f64,
    ) -> PyResult<Self> {
        let bursts = conditions::Bursts { to_bad, to_good, good_loss, bad_loss };
        bursts.check().map_err(value_error)?;
        Ok(Bursts(bursts))
    }

    #[staticmethod]
    fn mean(
        #[pyo3(from_py_with = number::loss)] loss: f64,
        #[pyo3(from_py_with = number::length)] length: f64,
    ) -> PyResult<Self> {
        conditions::Bursts::mean(loss, length).map(Bursts).map_err(value_error)
    }

    #[getter(to_bad)]
    fn turns_bad(&self) -> f64 {
        self.0.to_bad
    }

    #[getter(to_good)]
    fn turns_good(&self) -> f64 {
        self.0.to_good
    }

    #[getter]
    fn good_loss(&self) -> f64 {
        self.0.good_loss
    }

    #[getter]
    fn bad_loss(&self) -> f64 {
        self.0.bad_loss
    }

    fn __repr__(&self) -> String {
        let conditions::Bursts { to_bad, to_good, good_loss, bad_loss } = self.0;
        format!("Bursts({to_bad:?}, {to_good:?}, good_loss={good_loss:?}, bad_loss={bad_loss:?})")
    }
}

#[pyclass(frozen, eq, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outages(conditions::Outages);

#[pymethods]
impl Outages {
    #[new]
    fn new(
        #[pyo3(from_py_with = number::duration)] duration: f64,
        #[pyo3(from_py_with = number::fraction)] fraction: f64,
    ) -> PyResult<Self> {
        let duration = seconds("duration", duration, MAX_DELAY_SECONDS)?;
        let outages = conditions::Outages { duration, fraction };
        outages.check().map_err(value_error)?;
        Ok(Outages(outages))
    }

    #[getter]
    fn duration(&self) -> f64 {
        self.0.duration.as_secs_f64()
    }

    #[getter]
    fn fraction(&self) -> f64 {
        self.0.fraction
    }

    fn __repr__(&self) -> String {
        format!("Outages({:?}, {:?})", self.duration(), self.fraction())
    }
}

#[pyclass(frozen, eq, module = "tickwire")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Conditions {
    pub(super) core: conditions::Conditions,
    queue: u64,
    random_walk_time: Duration,
}

#[pymethods]
impl Conditions {
    #[new]
    #[pyo3(signature = (*, latency = 0.0, jitter = 0.0, random_walk = 0.0, random_walk_time = 1.0, loss = 0.0,
                        bursts = None, outages = None, duplicate = 0.0, reorder = 0.0, reorder_delay = 0.05,
                        rate = None, queue = 65_536, overhead = 28, max_datagram = None))]
    fn new(
        #[pyo3(from_py_with = number::latency)] latency: f64,
        #[pyo3(from_py_with = number::jitter)] jitter: f64,
        #[pyo3(from_py_with = number::random_walk)] random_walk: f64,
        #[pyo3(from_py_with = number::random_walk_time)] random_walk_time: f64,
        #[pyo3(from_py_with = number::loss)] loss: f64,
        bursts: Option<&Bound<'_, Bursts>>,
        outages: Option<&Bound<'_, Outages>>,
        #[pyo3(from_py_with = number::duplicate)] duplicate: f64,
        #[pyo3(from_py_with = number::reorder)] reorder: f64,
        #[pyo3(from_py_with = number::reorder_delay)] reorder_delay: f64,
        rate: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = int::queue)] queue: i128,
        #[pyo3(from_py_with = int::overhead)] overhead: i128,
        #[pyo3(from_py_with = optional_int::max_datagram)] max_datagram: Option<i128>,
    ) -> PyResult<Self> {
        let latency = latency_seconds("latency", latency)?;
        let jitter = latency_seconds("jitter", jitter)?;
        let range = latency_seconds("random_walk", random_walk)?;
        let random_walk_time = seconds("random_walk_time", random_walk_time, MAX_DELAY_SECONDS)?;
        let reorder_delay = seconds("reorder_delay", reorder_delay, MAX_DELAY_SECONDS)?;
        let rate = rate.map(|rate| whole("rate", rate, 1, MAX_RATE)).transpose()?;
        let queue = within("queue", queue, 1, MAX_QUEUE)?;
        let mut core = conditions::Conditions::perfect()
            .latency(latency, jitter)
            .loss(loss)
            .duplicate(duplicate)
            .reorder(reorder, reorder_delay)
            .overhead(within("overhead", overhead, 0, MAX_OVERHEAD)?);
        core.max_datagram =
            max_datagram.map(|bytes| within("max_datagram", bytes, 1, MAX_DATAGRAM)).transpose()?;
        core.random_walk = (!range.is_zero()).then_some(RandomWalk { range, memory: random_walk_time });
        core.bursts = bursts.map(|bursts| bursts.get().0);
        core.outages = outages.map(|outages| outages.get().0);
        core.bottleneck = rate.map(|rate| Bottleneck { rate, queue });
        core.check().map_err(value_error)?;
        Ok(Conditions { core, queue, random_walk_time })
    }

    #[staticmethod]
    #[pyo3(signature = (name, /))]
    fn preset(name: &str) -> PyResult<(Self, Self)> {
        let Some(Preset { up, down }) = presets::named(name) else {
            let names = presets::NAMES.join(", ");
            return Err(PyValueError::new_err(format!("name must be one of {names}, not '{name}'")));
        };
        Ok((up.into(), down.into()))
    }

    #[pyo3(signature = (**changes))]
    fn replace<'py>(
        slf: &Bound<'py, Self>,
        changes: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let settings = PyDict::new(slf.py());
        for name in SETTINGS {
            settings.set_item(name, slf.getattr(name)?)?;
        }
        if let Some(changes) = changes {
            settings.update(changes.as_mapping())?;
        }
        slf.get_type().call((), Some(&settings))
    }

    #[getter]
    fn latency(&self) -> f64 {
        self.core.latency.as_secs_f64()
    }

    #[getter]
    fn jitter(&self) -> f64 {
        self.core.jitter.as_secs_f64()
    }

    #[getter]
    fn random_walk(&self) -> f64 {
        self.core.random_walk.map_or(0.0, |random_walk| random_walk.range.as_secs_f64())
    }

    #[getter]
    fn random_walk_time(&self) -> f64 {
        self.random_walk_time.as_secs_f64()
    }

    #[getter]
    fn loss(&self) -> f64 {
        self.core.loss
    }

    #[getter]
    fn bursts(&self) -> Option<Bursts> {
        self.core.bursts.map(Bursts)
    }

    #[getter]
    fn outages(&self) -> Option<Outages> {
        self.core.outages.map(Outages)
    }

    #[getter]
    fn duplicate(&self) -> f64 {
        self.core.duplicate
    }

    #[getter]
    fn reorder(&self) -> f64 {
        self.core.reorder
    }

    #[getter]
    fn reorder_delay(&self) -> f64 {
        self.core.reorder_delay.as_secs_f64()
    }

    #[getter]
    fn rate(&self) -> Option<u64> {
        self.core.bottleneck.map(|bottleneck| bottleneck.rate)
    }

    #[getter]
    fn queue(&self) -> u64 {
        self.queue
    }

    #[getter]
    fn overhead(&self) -> u64 {
        self.core.overhead
    }

    #[getter]
    fn max_datagram(&self) -> Option<u64> {
        self.core.max_datagram
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let setting = |name| Ok(format!("{name}={}", slf.getattr(name)?.repr()?));
        let settings: Vec<String> = SETTINGS.into_iter().map(setting).collect::<PyResult<_>>()?;
        Ok(format!("Conditions({})", settings.join(", ")))
    }
}

/// A latency, or its variation.
fn latency_seconds(name: &str, value: f64) -> PyResult<Duration> {
    if value > MAX_LATENCY {
        let sentence = format!(
            "{name} must be 0 to {MAX_LATENCY} seconds, not {value}: 50 milliseconds are {name}=0.05"
        );
        return Err(PyValueError::new_err(sentence));
    }
    seconds(name, value, MAX_LATENCY)
}

/// Conditions of a single direction.
pub(super) fn one_conditions<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Conditions>> {
    if let Ok(conditions) = given.cast::<Conditions>() {
        return Ok(conditions.clone());
    }
    let kind = given.get_type().name()?;
    let hint = if given.is_instance_of::<PyTuple>() {
        ", as up, down = Conditions.preset(...) gives one for each direction"
    } else {
        ""
    };
    Err(PyTypeError::new_err(format!("conditions must be one Conditions{hint}, not {kind}")))
}

/// The settings of the constructor of conditions.
const SETTINGS: [&str; 14] = [
    "latency",
    "jitter",
    "random_walk",
    "random_walk_time",
    "loss",
    "bursts",
    "outages",
    "duplicate",
    "reorder",
    "reorder_delay",
    "rate",
    "queue",
    "overhead",
    "max_datagram",
];

impl From<conditions::Conditions> for Conditions {
    fn from(core: conditions::Conditions) -> Self {
        let queue = core.bottleneck.map_or(DEFAULT_QUEUE, |bottleneck| bottleneck.queue);
        let random_walk_time =
            core.random_walk.map_or(DEFAULT_RANDOM_WALK_TIME, |random_walk| random_walk.memory);
        Conditions { core, queue, random_walk_time }
    }
}

#[pyclass(frozen, module = "tickwire.testing")]
#[derive(Debug)]
pub(crate) struct SimulatedNetwork(pub(super) VirtualNetwork);

#[pymethods]
impl SimulatedNetwork {
    #[new]
    #[pyo3(signature = (*, seed = 0, conditions = None))]
    fn new(
        #[pyo3(from_py_with = int::seed)] seed: i128,
        conditions: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let conditions = conditions.map(one_conditions).transpose()?;
        let conditions = conditions.map(|conditions| conditions.get().core).unwrap_or_default();
        let seed = within("seed", seed, 0, u64::MAX)?;
        VirtualNetwork::new(conditions, seed).map(SimulatedNetwork).map_err(value_error)
    }

    #[staticmethod]
    fn _replaying(drawn: Vec<u8>, epoch: u64) -> Self {
        SimulatedNetwork(VirtualNetwork::replaying(drawn, UnixSeconds(epoch)))
    }

    fn _advance_to(&self, nanoseconds: u64) {
        self.0.advance(Instant::from_nanos(nanoseconds) - self.0.now());
    }

    fn _deliver(&self, sender: AddressLike, receiver: AddressLike, datagram: &[u8]) {
        self.0.deliver(sender.0, receiver.0, datagram);
    }

    fn _random(&self) -> u64 {
        random(&mut self.0.clone())
    }

    #[getter]
    fn now(&self) -> f64 {
        self.0.now().as_secs_f64()
    }

    #[getter]
    fn unix(&self) -> u64 {
        self.0.unix().0
    }

    #[pyo3(signature = (seconds, /))]
    fn advance(&self, #[pyo3(from_py_with = number::seconds)] seconds: f64) -> PyResult<()> {
        let time: Duration = self::seconds("seconds", seconds, MAX_STEP)?;
        self.0.advance(time);
        Ok(())
    }

    #[pyo3(signature = (conditions, *, sender = None, receiver = None))]
    fn set_conditions(
        &self,
        conditions: &Bound<'_, PyAny>,
        sender: Option<AddressLike>,
        receiver: Option<AddressLike>,
    ) -> PyResult<()> {
        let (from, to) = (sender.map(|address| address.0), receiver.map(|address| address.0));
        self.0.set_conditions(from, to, one_conditions(conditions)?.get().core).map_err(value_error)
    }

    #[pyo3(signature = (at, conditions, *, sender = None, receiver = None))]
    fn schedule(
        &self,
        #[pyo3(from_py_with = number::at)] at: f64,
        conditions: &Bound<'_, PyAny>,
        sender: Option<AddressLike>,
        receiver: Option<AddressLike>,
    ) -> PyResult<()> {
        let at = Instant::ZERO + seconds("at", at, MAX_STEP)?;
        let (from, to) = (sender.map(|address| address.0), receiver.map(|address| address.0));
        self.0.schedule(at, from, to, one_conditions(conditions)?.get().core).map_err(value_error)
    }

    #[pyo3(signature = (*parts))]
    fn partition(&self, parts: &Bound<'_, PyTuple>) -> PyResult<()> {
        let hosts = |part: Bound<'_, PyAny>| -> PyResult<Vec<_>> {
            part.try_iter()?.map(|host| Ok(host?.extract::<AddressLike>()?.0)).collect()
        };
        let parts: Vec<_> = parts.iter().map(hosts).collect::<PyResult<_>>()?;
        self.0.partition(&parts);
        Ok(())
    }

    fn heal(&self) {
        self.0.partition(&[]);
    }

    #[pyo3(signature = (address, to, /))]
    fn move_host(&self, py: Python<'_>, address: AddressLike, to: AddressLike) -> PyResult<Address> {
        self.0.move_host(address.0, to.0).map(Address).map_err(|error| match error.kind() {
            ErrorKind::AddrNotAvailable => value_error(error),
            _ => os_error(py, &error, to.0),
        })
    }

    #[pyo3(signature = (address, /))]
    fn unplug(&self, address: AddressLike) -> PyResult<()> {
        let there = self.0.unplug(address.0);
        there.then_some(()).ok_or_else(|| {
            PyValueError::new_err(format!("there is no host at {} on this network", address.0))
        })
    }

    #[pyo3(signature = (public, inside, *, kind = "port-restricted", lifetime = 120.0))]
    fn add_nat(
        &self,
        public: &str,
        inside: Vec<String>,
        kind: &str,
        #[pyo3(from_py_with = number::lifetime)] lifetime: f64,
    ) -> PyResult<()> {
        let public = host(public)?;
        let inside: Vec<_> = inside.iter().map(|ip| host(ip)).collect::<PyResult<_>>()?;
        let Some((_, kind)) = NatKind::NAMED.iter().find(|(name, _)| *name == kind) else {
            let names = NatKind::NAMED.map(|(name, _)| name).join(", ");
            return Err(PyValueError::new_err(format!("kind must be one of {names}, not '{kind}'")));
        };
        let lifetime = seconds("lifetime", lifetime, MAX_DELAY_SECONDS)?;
        self.0.add_nat(public, &inside, *kind, lifetime).map_err(value_error)
    }

    #[pyo3(signature = (public, /))]
    fn restart_nat(&self, public: &str) -> PyResult<()> {
        let public = host(public)?;
        let there = self.0.restart_nat(public);
        there
            .then_some(())
            .ok_or_else(|| PyValueError::new_err(format!("there is no NAT at {public} on this network")))
    }

    #[getter]
    fn transcript(&self) -> String {
        self.0.transcript().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let NetworkCounters {
            links,
            unknown_destination,
            mailbox_full,
            partitioned,
            nat_exhausted,
            nat_unmapped,
            nat_filtered,
        } = self.0.counters();
        let others = [
            ("unknown_destination", unknown_destination),
            ("mailbox_full", mailbox_full),
            ("partitioned", partitioned),
            ("nat_exhausted", nat_exhausted),
            ("nat_unmapped", nat_unmapped),
            ("nat_filtered", nat_filtered),
        ];
        counts(py, links.iter().chain(others))
    }
}

/// An IP address without a port.
fn host(text: &str) -> PyResult<IpAddr> {
    text.parse().map_err(|_| PyValueError::new_err(format!("'{text}' is not an IP address")))
}
