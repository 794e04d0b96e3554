//! Bad networks on purpose: conditions, and the simulated network with its virtual clock.

use core::net::IpAddr;
use std::io::ErrorKind;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
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

/// Losses in bursts: a link is good or bad, and after each packet may turn from one to the other (the chain
/// of Gilbert and Elliott). :meth:`mean` makes it from measured values.
///
/// Args:
///     to_bad: probability that a good link turns bad after a packet, 0 to 1.
///     to_good: probability that a bad link turns good after a packet.
///     good_loss: probability of loss while the link is good.
///     bad_loss: probability of loss while the link is bad.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
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

    /// Bursts that lose all their packets, ``length`` of them on average, and the fraction ``loss`` of all.
    ///
    /// Raises:
    ///     ValueError: the length is below 1, or the loss above ``length / (length + 1)``: between two bursts
    ///         at least one packet passes.
    #[staticmethod]
    fn mean(
        #[pyo3(from_py_with = number::loss)] loss: f64,
        #[pyo3(from_py_with = number::length)] length: f64,
    ) -> PyResult<Self> {
        conditions::Bursts::mean(loss, length).map(Bursts).map_err(value_error)
    }

    /// Probability that a good link turns bad after a packet.
    #[getter(to_bad)]
    fn turns_bad(&self) -> f64 {
        self.0.to_bad
    }

    /// Probability that a bad link turns good after a packet.
    #[getter(to_good)]
    fn turns_good(&self) -> f64 {
        self.0.to_good
    }

    /// Probability of loss while the link is good.
    #[getter]
    fn good_loss(&self) -> f64 {
        self.0.good_loss
    }

    /// Probability of loss while the link is bad.
    #[getter]
    fn bad_loss(&self) -> f64 {
        self.0.bad_loss
    }

    fn __repr__(&self) -> String {
        let conditions::Bursts { to_bad, to_good, good_loss, bad_loss } = self.0;
        format!("Bursts({to_bad:?}, {to_good:?}, good_loss={good_loss:?}, bad_loss={bad_loss:?})")
    }
}

/// Outages that come and go at random: while there is one, all that is transmitted is lost. Their durations
/// and the times between them are exponential.
///
/// Args:
///     duration: seconds that an outage takes on average, up to an hour.
///     fraction: of all time, 0 to 1.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
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

    /// Seconds that an outage takes on average.
    #[getter]
    fn duration(&self) -> f64 {
        self.0.duration.as_secs_f64()
    }

    /// The fraction of all time, 0 to 1.
    #[getter]
    fn fraction(&self) -> f64 {
        self.0.fraction
    }

    fn __repr__(&self) -> String {
        format!("Outages({:?}, {:?})", self.duration(), self.fraction())
    }
}

/// What a simulated link does to each packet, per direction.
///
/// A packet first waits its turn at the bottleneck, then it may be lost, then doubled, and last it takes its
/// time to arrive. A lost packet has had its turn too; a second copy needs none.
///
/// Args:
///     latency (float, default 0.0): seconds, one way, after the queue; at most 10.
///     jitter (float, default 0.0): seconds, at most the latency; each packet is late by latency +- jitter,
///         uniformly, so packets may overtake.
///     random_walk (float, default 0.0): seconds; jitter in runs: a delay within +- random_walk that is similar for
///         neighbouring packets, none of which overtakes for it. With the jitter at most the latency.
///     random_walk_time (float, default 1.0): seconds for which that delay stays similar (its correlation time).
///     loss (float, default 0.0): probability that a packet is lost by itself, 0 to 1.
///     bursts (Bursts | None, default None): losses in bursts.
///     outages (Outages | None, default None): times at which nothing passes.
///     duplicate (float, default 0.0): probability that a packet arrives twice.
///     reorder (float, default 0.0): probability that a packet is held back by a further ``reorder_delay`` seconds.
///     reorder_delay (float, default 0.05): seconds by which packets are held back.
///     rate (int | None, default None): bytes per second that pass, up to 12,500,000,000 (100 Gbit/s); None: any
///         number at once.
///     queue (int, default 65536): bytes that may wait for the rate, the packet in transmission included; what would
///         be more is dropped and counted as ``queue_dropped``.
///     overhead (int, default 28): bytes that each packet takes of rate and queue beside its own: 28 for IPv4 and
///         UDP.
///     max_datagram (int | None, default None): bytes of the largest datagram that passes, without headers, 1 to
///         65,535; larger ones vanish and are counted as ``too_large``, as on a path with a small MTU that doesn't
///         say so. None: any.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, eq, module = "tickwire")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Conditions {
    pub(super) core: conditions::Conditions,
    /// Settings that matter only with others.
    queue: u64,
    random_walk_time: Duration,
}

#[pymethods]
impl Conditions {
    #[new]
    #[pyo3(signature = (*, latency = 0.0, jitter = 0.0, random_walk = 0.0, random_walk_time = 1.0, loss = 0.0,
                        bursts = None, outages = None, duplicate = 0.0, reorder = 0.0, reorder_delay = 0.05,
                        rate = None, queue = 65_536, overhead = 28, max_datagram = None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
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

    /// Plausible conditions of a kind of network, as a player has them: ``(up, down)``.
    ///
    /// ================= ====================================================================================
    /// ``3g``            phone (HSPA): 1 Mbit/s up, 3 down, 75 ms one way in runs, deep queues, handovers
    /// ``4g``            phone (LTE): 8 Mbit/s up, 25 down, 25 ms one way, few losses, short handovers
    /// ``wifi-bad``      crowded 2.4 GHz: 5 Mbit/s up, 10 down, 20 ms one way, 3 % lost in bursts, silences
    /// ``transatlantic`` fibre to another continent: 50 Mbit/s up, 100 down, 45 ms one way, 0.05 % lost
    /// ``satellite``     geostationary: 3 Mbit/s up, 25 down, 300 ms one way, losses in bursts
    /// ================= ====================================================================================
    ///
    /// Raises:
    ///     ValueError: there is no preset of that name; it says which there are.
    #[staticmethod]
    #[pyo3(signature = (name, /))]
    fn preset(name: &str) -> PyResult<(Self, Self)> {
        let Some(Preset { up, down }) = presets::named(name) else {
            let names = presets::NAMES.join(", ");
            return Err(PyValueError::new_err(format!("name must be one of {names}, not '{name}'")));
        };
        Ok((up.into(), down.into()))
    }

    /// A copy with the given settings changed; they are those of the constructor.
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

    /// Seconds, one way, after the queue.
    #[getter]
    fn latency(&self) -> f64 {
        self.core.latency.as_secs_f64()
    }

    /// Seconds that each packet is early or late at most.
    #[getter]
    fn jitter(&self) -> f64 {
        self.core.jitter.as_secs_f64()
    }

    /// The same of a delay that changes slowly.
    #[getter]
    fn random_walk(&self) -> f64 {
        self.core.random_walk.map_or(0.0, |random_walk| random_walk.range.as_secs_f64())
    }

    /// Seconds for which that delay stays similar.
    #[getter]
    fn random_walk_time(&self) -> f64 {
        self.random_walk_time.as_secs_f64()
    }

    /// Probability that a packet is lost, independently of others.
    #[getter]
    fn loss(&self) -> f64 {
        self.core.loss
    }

    /// Losses in bursts.
    #[getter]
    fn bursts(&self) -> Option<Bursts> {
        self.core.bursts.map(Bursts)
    }

    /// Times at which nothing passes.
    #[getter]
    fn outages(&self) -> Option<Outages> {
        self.core.outages.map(Outages)
    }

    /// Probability that a packet arrives twice.
    #[getter]
    fn duplicate(&self) -> f64 {
        self.core.duplicate
    }

    /// Probability that a packet is held back.
    #[getter]
    fn reorder(&self) -> f64 {
        self.core.reorder
    }

    /// Seconds for which it is held back.
    #[getter]
    fn reorder_delay(&self) -> f64 {
        self.core.reorder_delay.as_secs_f64()
    }

    /// Bytes per second that pass; None: any number.
    #[getter]
    fn rate(&self) -> Option<u64> {
        self.core.bottleneck.map(|bottleneck| bottleneck.rate)
    }

    /// Bytes that may wait for the rate.
    #[getter]
    fn queue(&self) -> u64 {
        self.queue
    }

    /// Bytes that each packet takes beside its own.
    #[getter]
    fn overhead(&self) -> u64 {
        self.core.overhead
    }

    /// Bytes of the largest datagram that passes; None: any.
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

/// A network in one process with a virtual clock: the same seed and the same calls, the same bytes.
///
/// Servers and clients made with ``network=`` live on it; time passes only in :meth:`advance`. Each direction of
/// each pair of hosts is a link of its own, with its own queue and its own luck.
///
/// Args:
///     seed (int, default 0): 0 to 2**64 - 1; what it does follows from it and from the calls.
///     conditions (Conditions | None, default None): of all links; None: perfect ones.
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

    /// For :class:`tickwire.capture.Replay`: a perfect network that begins at this second since 1970, where a server
    /// draws the random bytes of the captured run.
    #[staticmethod]
    fn _replaying(drawn: Vec<u8>, epoch: u64) -> Self {
        SimulatedNetwork(VirtualNetwork::replaying(drawn, UnixSeconds(epoch)))
    }

    /// Moves the clock to this many nanoseconds since the start.
    fn _advance_to(&self, nanoseconds: u64) {
        self.0.advance(Instant::from_nanos(nanoseconds) - self.0.now());
    }

    /// Lets a datagram arrive now, from any sender.
    fn _deliver(&self, sender: AddressLike, receiver: AddressLike, datagram: &[u8]) {
        self.0.deliver(sender.0, receiver.0, datagram);
    }

    /// A random number of 64 bits.
    fn _random(&self) -> u64 {
        random(&mut self.0.clone())
    }

    /// Virtual seconds since the start.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now().as_secs_f64()
    }

    /// Virtual seconds since 1970, by which connect tokens are judged: whole ones, from 1,000,000,000 on. So tokens for this
    /// network are made with ``ConnectToken.generate(now=network.unix, ...)``.
    #[getter]
    fn unix(&self) -> u64 {
        self.0.unix().0
    }

    /// Lets time pass, and delivers what arrives meanwhile.
    #[pyo3(signature = (seconds, /))]
    fn advance(&self, #[pyo3(from_py_with = number::seconds)] seconds: f64) -> PyResult<()> {
        let time: Duration = self::seconds("seconds", seconds, MAX_STEP)?;
        self.0.advance(time);
        Ok(())
    }

    /// From now on: for all links, or for those from ``sender``, to ``receiver``, or both. The most precise
    /// choice holds, ``sender`` before ``receiver``; for all links means that single ones are forgotten.
    ///
    /// Packets that wait for a link's rate leave under the new conditions; later ones are unaffected.
    ///
    /// Args:
    ///     conditions (Conditions): from now on.
    ///     sender (AddressLike | None, default None): of what it sends alone; None: of all.
    ///     receiver (AddressLike | None, default None): of what it receives alone; None: of all.
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

    /// Like :meth:`set_conditions`, when virtual time comes to ``at`` seconds since the start.
    ///
    /// Args:
    ///     at (float): virtual seconds since the start.
    ///     conditions (Conditions): from then on.
    ///     sender (AddressLike | None, default None): of what it sends alone; None: of all.
    ///     receiver (AddressLike | None, default None): of what it receives alone; None: of all.
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

    /// From now on hosts of different parts don't reach each other; those in no part reach all.
    /// Packets in flight arrive. The last partition holds; :meth:`heal` ends it.
    ///
    /// Args:
    ///     parts: the addresses of the hosts of each.
    #[pyo3(signature = (*parts))]
    fn partition(&self, parts: &Bound<'_, PyTuple>) -> PyResult<()> {
        let hosts = |part: Bound<'_, PyAny>| -> PyResult<Vec<_>> {
            part.try_iter()?.map(|host| Ok(host?.extract::<AddressLike>()?.0)).collect()
        };
        let parts: Vec<_> = parts.iter().map(hosts).collect::<PyResult<_>>()?;
        self.0.partition(&parts);
        Ok(())
    }

    /// Ends the partition.
    fn heal(&self) {
        self.0.partition(&[]);
    }

    /// Moves a host to another address, as when a player goes from Wi-Fi to a phone network: its endpoint sends
    /// from there and receives there. Packets in flight to the old address find nobody.
    ///
    /// Args:
    ///     address: where the host is now.
    ///     to: port 0 picks one.
    ///
    /// Returns:
    ///     where it is. (The ``address`` of its endpoint stays what it was bound to.)
    ///
    /// Raises:
    ///     ValueError: there is no host at that address.
    ///     OSError: ``to`` is in use.
    #[pyo3(signature = (address, to, /))]
    fn move_host(&self, py: Python<'_>, address: AddressLike, to: AddressLike) -> PyResult<Address> {
        self.0.move_host(address.0, to.0).map(Address).map_err(|error| match error.kind() {
            ErrorKind::AddrNotAvailable => value_error(error),
            _ => os_error(py, &error, to.0),
        })
    }

    /// Takes a host off the network, as when its machine loses power: its endpoint sends and receives nothing
    /// any more, and another one can have the address.
    ///
    /// Raises:
    ///     ValueError: there is no host at that address.
    #[pyo3(signature = (address, /))]
    fn unplug(&self, address: AddressLike) -> PyResult<()> {
        let there = self.0.unplug(address.0);
        there.then_some(()).ok_or_else(|| {
            PyValueError::new_err(format!("there is no host at {} on this network", address.0))
        })
    }

    /// Puts a NAT between some hosts and all others, as home routers and carriers do. Those
    /// inside reach each other as before; all others see them as ports of the NAT, and reach them
    /// there if it lets them in. A mapping lasts as long as something goes out.
    ///
    /// Args:
    ///     public: the IP address of the NAT.
    ///     inside: the IP addresses of the hosts behind it, those to come too.
    ///     kind: which senders it lets in. ``"full-cone"``: anyone; ``"restricted"``: hosts to
    ///         which the one inside has sent;
    ///         ``"port-restricted"``: addresses to which it has sent; ``"symmetric"``: as that, with another port
    ///         for each address it sends to.
    ///     lifetime: seconds without anything going out after which a port is given back, up to 3,600.
    ///
    /// Raises:
    ///     ValueError: naming the argument, its value and its bound, or the address that is in use.
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

    /// Makes a NAT forget its mappings; the next ports are different. To those outside, the
    /// hosts behind it then have other addresses.
    ///
    /// Raises:
    ///     ValueError: there is no NAT at that address.
    #[pyo3(signature = (public, /))]
    fn restart_nat(&self, public: &str) -> PyResult<()> {
        let public = host(public)?;
        let there = self.0.restart_nat(public);
        there
            .then_some(())
            .ok_or_else(|| PyValueError::new_err(format!("there is no NAT at {public} on this network")))
    }

    /// SHA-256, in hex digits, over every datagram that was sent until now, with its time and addresses: two runs
    /// with the same transcript sent the same bytes at the same times.
    #[getter]
    fn transcript(&self) -> String {
        self.0.transcript().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Counts of all packets: those of :attr:`Link.counters` for all links together,
    /// ``unknown_destination`` (nobody was there), ``mailbox_full`` (nobody received),
    /// ``partitioned``, and for NATs ``nat_exhausted`` (no port was free), ``nat_unmapped`` (the
    /// port is nobody's) and
    /// ``nat_filtered`` (the sender isn't let in).
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
