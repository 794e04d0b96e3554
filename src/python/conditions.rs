//! Bad networks on purpose: what a simulated link does to packets.

use crate::python::prelude::*;

use super::events::shown;
use super::protocol::seconds;
use crate::netsim::conditions::{self, MAX_DATAGRAM, MAX_DELAY, MAX_OVERHEAD, MAX_QUEUE, MAX_RATE};
use crate::netsim::presets::{self, Preset};

/// The longest delay that conditions may ask for, in seconds.
pub(super) const MAX_DELAY_SECONDS: f64 = MAX_DELAY.as_secs_f64();

/// The maximum of a latency and of its variation, in seconds: a larger number is one of milliseconds by mistake.
const MAX_LATENCY: f64 = 10.0;

/// By which packets are held back that `reorder` picks.
const REORDER_DELAY: Duration = Duration::from_millis(50);

#[pyclass(frozen, eq, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bursts(conditions::Bursts);

#[pymethods]
impl Bursts {
    #[new]
    fn new(
        #[number] to_bad: f64,
        #[number] to_good: f64,
        #[number] good_loss: f64,
        #[number] bad_loss: f64,
    ) -> PyResult<Self> {
        let bursts = conditions::Bursts { to_bad, to_good, good_loss, bad_loss };
        bursts.check().map_err(value_error)?;
        Ok(Bursts(bursts))
    }

    #[staticmethod]
    fn mean(#[number] loss: f64, #[number] length: f64) -> PyResult<Self> {
        conditions::Bursts::mean(loss, length).map(Bursts).map_err(value_error)
    }

    properties! {
        #[allow(clippy::wrong_self_convention)] // A name of the model's.
        to_bad: f64 = self.0.to_bad;
        #[allow(clippy::wrong_self_convention)] // As above.
        to_good: f64 = self.0.to_good;
        good_loss: f64 = self.0.good_loss;
        bad_loss: f64 = self.0.bad_loss;
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
    fn new(#[seconds(MAX_DELAY_SECONDS)] duration: Duration, #[number] fraction: f64) -> PyResult<Self> {
        let outages = conditions::Outages { duration, fraction };
        outages.check().map_err(value_error)?;
        Ok(Outages(outages))
    }

    properties! {
        duration: f64 = self.0.duration.as_secs_f64();
        fraction: f64 = self.0.fraction;
        __repr__: String = format!("Outages({:?}, {:?})", self.duration(), self.fraction());
    }
}

#[pyclass(frozen, eq, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RandomWalk(conditions::RandomWalk);

#[pymethods]
impl RandomWalk {
    #[new]
    fn new(#[number] delay: f64, #[seconds(MAX_DELAY_SECONDS)] time: Duration) -> PyResult<Self> {
        let walk = conditions::RandomWalk { range: latency_seconds("delay", delay)?, memory: time };
        walk.check().map_err(value_error)?;
        Ok(RandomWalk(walk))
    }

    properties! {
        delay: f64 = self.0.range.as_secs_f64();
        time: f64 = self.0.memory.as_secs_f64();
        __repr__: String = format!("RandomWalk({:?}, {:?})", self.delay(), self.time());
    }
}

#[record(eq, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bottleneck {
    #[whole(1, MAX_RATE)]
    rate: u64,
    #[within(1, MAX_QUEUE)]
    queue: u64,
    #[within(0, MAX_OVERHEAD)]
    overhead: u64,
}

#[pyclass(frozen, eq, module = "tickwire")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Conditions {
    pub(super) core: conditions::Conditions,
}

#[pymethods]
impl Conditions {
    #[new]
    fn new(
        #[number] latency: f64,
        #[number] jitter: f64,
        random_walk: Option<&Bound<'_, RandomWalk>>,
        #[number] loss: f64,
        bursts: Option<&Bound<'_, Bursts>>,
        outages: Option<&Bound<'_, Outages>>,
        #[number] duplicate: f64,
        #[number] reorder: f64,
        bottleneck: Option<&Bound<'_, Bottleneck>>,
        #[within(1, MAX_DATAGRAM)] max_datagram: Option<u64>,
    ) -> PyResult<Self> {
        let latency = latency_seconds("latency", latency)?;
        let jitter = latency_seconds("jitter", jitter)?;
        let mut core = conditions::Conditions::perfect()
            .latency(latency, jitter)
            .loss(loss)
            .duplicate(duplicate)
            .reorder(reorder, if reorder > 0.0 { REORDER_DELAY } else { Duration::ZERO });
        core.max_datagram = max_datagram;
        core.random_walk = random_walk.map(|walk| walk.get().0);
        core.bursts = bursts.map(|bursts| bursts.get().0);
        core.outages = outages.map(|outages| outages.get().0);
        if let Some(Bottleneck { rate, queue, overhead }) = bottleneck.map(|given| *given.get()) {
            core = core.rate(rate, queue).overhead(overhead);
        }
        core.check().map_err(value_error)?;
        Ok(Conditions { core })
    }

    #[staticmethod]
    fn preset(name: &str) -> PyResult<(Self, Self)> {
        let Some(Preset { up, down }) = presets::named(name) else {
            let names = presets::NAMES.join(", ");
            return Err(PyValueError::new_err(format!("name must be one of {names}, not '{name}'")));
        };
        Ok((up.into(), down.into()))
    }

    replaces!();

    properties! {
        latency: f64 = self.core.latency.as_secs_f64();
        jitter: f64 = self.core.jitter.as_secs_f64();
        random_walk: Option<RandomWalk> = self.core.random_walk.map(RandomWalk);
        loss: f64 = self.core.loss;
        bursts: Option<Bursts> = self.core.bursts.map(Bursts);
        outages: Option<Outages> = self.core.outages.map(Outages);
        duplicate: f64 = self.core.duplicate;
        reorder: f64 = self.core.reorder;
        bottleneck: Option<Bottleneck> = {
            let overhead = self.core.overhead;
            self.core.bottleneck.map(|it| Bottleneck { rate: it.rate, queue: it.queue, overhead })
        };
        max_datagram: Option<u64> = self.core.max_datagram;
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf.as_any(), &SETTINGS, 0)
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

impl From<conditions::Conditions> for Conditions {
    fn from(core: conditions::Conditions) -> Self {
        Conditions { core }
    }
}
