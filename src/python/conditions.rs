//! Bad networks on purpose: what a simulated link does to packets.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyClass, PyTypeInfo};

use super::arguments::{int, number, optional_int};
use super::errors::value_error;
use super::fields::{whole, within};
use super::protocol::seconds;
use crate::netsim::conditions::{self, MAX_DATAGRAM, MAX_DELAY, MAX_OVERHEAD, MAX_QUEUE, MAX_RATE};
use crate::netsim::presets::{self, Preset};
use crate::time::Duration;

/// The longest delay that conditions may ask for, in seconds.
pub(super) const MAX_DELAY_SECONDS: f64 = MAX_DELAY.as_secs_f64();

/// The maximum of a latency and of its variation, in seconds: a larger number is one of milliseconds by mistake.
const MAX_LATENCY: f64 = 10.0;

/// By which packets are held back that `reorder` picks.
const REORDER_DELAY: Duration = Duration::from_millis(50);

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

/// Jitter in runs: a delay that walks at random and is similar for neighbouring packets, none of which
/// overtakes for it.
///
/// Args:
///     delay: seconds by which it makes packets early or late at most, up to 10. With the jitter at most the latency.
///     time: seconds for which the delay stays similar (its correlation time).
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, eq, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RandomWalk(conditions::RandomWalk);

#[pymethods]
impl RandomWalk {
    #[new]
    #[pyo3(signature = (delay, time = 1.0))]
    fn new(
        #[pyo3(from_py_with = number::delay)] delay: f64,
        #[pyo3(from_py_with = number::time)] time: f64,
    ) -> PyResult<Self> {
        let range = latency_seconds("delay", delay)?;
        let walk = conditions::RandomWalk { range, memory: seconds("time", time, MAX_DELAY_SECONDS)? };
        walk.check().map_err(value_error)?;
        Ok(RandomWalk(walk))
    }

    /// Seconds by which it makes packets early or late at most.
    #[getter]
    fn delay(&self) -> f64 {
        self.0.range.as_secs_f64()
    }

    /// Seconds for which the delay stays similar.
    #[getter]
    fn time(&self) -> f64 {
        self.0.memory.as_secs_f64()
    }

    fn __repr__(&self) -> String {
        format!("RandomWalk({:?}, {:?})", self.delay(), self.time())
    }
}

/// The slowest part of a link: packets wait for its rate in a finite queue.
///
/// Args:
///     rate (int): bytes per second that pass, up to 12,500,000,000 (100 Gbit/s).
///     queue (int, default 65536): bytes that may wait, the packet in transmission included. A packet that would
///         exceed them is dropped and counted as ``queue_dropped``.
///     overhead (int, default 28): bytes that each packet takes of rate and queue beside its own: 28 for IPv4 and
///         UDP.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, eq, get_all, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bottleneck {
    /// Bytes per second that pass.
    rate: u64,
    /// Bytes that may wait for the rate.
    queue: u64,
    /// Bytes that each packet takes beside its own.
    overhead: u64,
}

#[pymethods]
impl Bottleneck {
    #[new]
    #[pyo3(signature = (rate, *, queue = 65_536, overhead = 28))]
    fn new(
        rate: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = int::queue)] queue: i128,
        #[pyo3(from_py_with = int::overhead)] overhead: i128,
    ) -> PyResult<Self> {
        Ok(Bottleneck {
            rate: whole("rate", rate, 1, MAX_RATE)?,
            queue: within("queue", queue, 1, MAX_QUEUE)?,
            overhead: within("overhead", overhead, 0, MAX_OVERHEAD)?,
        })
    }

    fn __repr__(&self) -> String {
        let Bottleneck { rate, queue, overhead } = self;
        format!("Bottleneck({rate}, queue={queue}, overhead={overhead})")
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
///     random_walk (RandomWalk | None, default None): jitter in runs.
///     loss (float, default 0.0): probability that a packet is lost by itself, 0 to 1.
///     bursts (Bursts | None, default None): losses in bursts.
///     outages (Outages | None, default None): times at which nothing passes.
///     duplicate (float, default 0.0): probability that a packet arrives twice.
///     reorder (float, default 0.0): probability that a packet is held back by a further 50 ms.
///     bottleneck (Bottleneck | None, default None): the rate and queue of the slowest part; None: any number of
///         bytes pass at once.
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
}

#[pymethods]
impl Conditions {
    #[new]
    #[pyo3(signature = (*, latency = 0.0, jitter = 0.0, random_walk = None, loss = 0.0, bursts = None,
                        outages = None, duplicate = 0.0, reorder = 0.0, bottleneck = None,
                        max_datagram = None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn new(
        #[pyo3(from_py_with = number::latency)] latency: f64,
        #[pyo3(from_py_with = number::jitter)] jitter: f64,
        random_walk: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = number::loss)] loss: f64,
        bursts: Option<&Bound<'_, PyAny>>,
        outages: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = number::duplicate)] duplicate: f64,
        #[pyo3(from_py_with = number::reorder)] reorder: f64,
        bottleneck: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = optional_int::max_datagram)] max_datagram: Option<i128>,
    ) -> PyResult<Self> {
        let latency = latency_seconds("latency", latency)?;
        let jitter = latency_seconds("jitter", jitter)?;
        let mut core = conditions::Conditions::perfect()
            .latency(latency, jitter)
            .loss(loss)
            .duplicate(duplicate)
            .reorder(reorder, if reorder > 0.0 { REORDER_DELAY } else { Duration::ZERO });
        core.max_datagram =
            max_datagram.map(|bytes| within("max_datagram", bytes, 1, MAX_DATAGRAM)).transpose()?;
        core.random_walk = group::<RandomWalk>("random_walk", random_walk)?.map(|walk| walk.0);
        core.bursts = group::<Bursts>("bursts", bursts)?.map(|bursts| bursts.0);
        core.outages = group::<Outages>("outages", outages)?.map(|outages| outages.0);
        if let Some(Bottleneck { rate, queue, overhead }) = group("bottleneck", bottleneck)? {
            core = core.rate(rate, queue).overhead(overhead);
        }
        core.check().map_err(value_error)?;
        Ok(Conditions { core })
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

    /// Jitter in runs.
    #[getter]
    fn random_walk(&self) -> Option<RandomWalk> {
        self.core.random_walk.map(RandomWalk)
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

    /// The rate and queue of the slowest part.
    #[getter]
    fn bottleneck(&self) -> Option<Bottleneck> {
        let overhead = self.core.overhead;
        self.core.bottleneck.map(|it| Bottleneck { rate: it.rate, queue: it.queue, overhead })
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
const SETTINGS: [&str; 10] = [
    "latency",
    "jitter",
    "random_walk",
    "loss",
    "bursts",
    "outages",
    "duplicate",
    "reorder",
    "bottleneck",
    "max_datagram",
];

/// One of the groups of settings of conditions.
fn group<T: PyClass + PyTypeInfo + Copy>(
    name: &str,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<T>> {
    let Some(given) = given else { return Ok(None) };
    match given.cast::<T>() {
        Ok(group) => Ok(Some(*group.borrow())),
        Err(_) => {
            let (class, kind) = (T::type_object(given.py()).name()?, given.get_type().name()?);
            Err(PyTypeError::new_err(format!("{name} must be a {class} or None, not {kind}")))
        }
    }
}

impl From<conditions::Conditions> for Conditions {
    fn from(core: conditions::Conditions) -> Self {
        Conditions { core }
    }
}
