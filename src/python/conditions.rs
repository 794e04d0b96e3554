//! Bad networks on purpose: what a simulated link does to packets.

use crate::python::prelude::*;

use crate::netsim::conditions::{self, MAX_DATAGRAM, MAX_DELAY, MAX_OVERHEAD, MAX_QUEUE, MAX_RATE};
use crate::netsim::presets::{self, Preset};

/// The longest delay that conditions may ask for, in seconds.
pub(super) const MAX_DELAY_SECONDS: f64 = MAX_DELAY.as_secs_f64();

/// By which packets are held back that `reorder` picks.
const REORDER_DELAY: Duration = Duration::from_millis(50);

#[record(checked, eq, from_py_object, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bursts {
    #[number]
    to_bad: f64,
    #[number]
    to_good: f64,
    #[number]
    good_loss: f64,
    #[number]
    bad_loss: f64,
}

#[pymethods]
impl Bursts {
    #[staticmethod]
    fn mean(#[number] loss: f64, #[number] length: f64) -> PyResult<Self> {
        conditions::Bursts::mean(loss, length).map(Bursts::from).map_err(value_error)
    }
}

impl Bursts {
    fn core(self) -> conditions::Bursts {
        let Bursts { to_bad, to_good, good_loss, bad_loss } = self;
        conditions::Bursts { to_bad, to_good, good_loss, bad_loss }
    }
}

impl From<conditions::Bursts> for Bursts {
    fn from(core: conditions::Bursts) -> Self {
        let conditions::Bursts { to_bad, to_good, good_loss, bad_loss } = core;
        Bursts { to_bad, to_good, good_loss, bad_loss }
    }
}

#[record(checked, eq, from_py_object, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outages {
    #[span(0.0, MAX_DELAY_SECONDS)]
    duration: f64,
    #[number]
    fraction: f64,
}

impl Outages {
    fn core(self) -> conditions::Outages {
        conditions::Outages { duration: Duration::from_secs_f64(self.duration), fraction: self.fraction }
    }
}

#[record(checked, eq, from_py_object, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RandomWalk {
    #[latency]
    delay: f64,
    #[span(0.0, MAX_DELAY_SECONDS)]
    time: f64,
}

impl RandomWalk {
    fn core(self) -> conditions::RandomWalk {
        let [range, memory] = [self.delay, self.time].map(Duration::from_secs_f64);
        conditions::RandomWalk { range, memory }
    }
}

#[record(eq, from_py_object, module = "tickwire.testing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bottleneck {
    #[whole(1, MAX_RATE)]
    rate: u64,
    #[within(1, MAX_QUEUE)]
    queue: u64,
    #[within(0, MAX_OVERHEAD)]
    overhead: u64,
}

#[record(checked, eq, from_py_object, module = "tickwire")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Conditions {
    #[latency]
    latency: f64,
    #[latency]
    jitter: f64,
    #[copied]
    random_walk: Option<RandomWalk>,
    #[number]
    loss: f64,
    #[copied]
    bursts: Option<Bursts>,
    #[copied]
    outages: Option<Outages>,
    #[number]
    duplicate: f64,
    #[number]
    reorder: f64,
    #[copied]
    bottleneck: Option<Bottleneck>,
    #[within(1, MAX_DATAGRAM)]
    max_datagram: Option<u64>,
}

#[pymethods]
impl Conditions {
    #[staticmethod]
    fn preset(name: &str) -> PyResult<(Self, Self)> {
        let Some(Preset { up, down }) = presets::named(name) else {
            let names = presets::NAMES.join(", ");
            refuse!(PyValueError, "name must be one of {names}, not '{name}'");
        };
        Ok((up.into(), down.into()))
    }
}

impl Conditions {
    pub(super) fn core(self) -> conditions::Conditions {
        let [latency, jitter] = [self.latency, self.jitter].map(Duration::from_secs_f64);
        let mut core = conditions::Conditions::perfect()
            .latency(latency, jitter)
            .loss(self.loss)
            .duplicate(self.duplicate)
            .reorder(self.reorder, if self.reorder > 0.0 { REORDER_DELAY } else { Duration::ZERO });
        core.max_datagram = self.max_datagram;
        core.random_walk = self.random_walk.map(RandomWalk::core);
        core.bursts = self.bursts.map(Bursts::core);
        core.outages = self.outages.map(Outages::core);
        match self.bottleneck {
            Some(Bottleneck { rate, queue, overhead }) => core.rate(rate, queue).overhead(overhead),
            None => core,
        }
    }
}

/// Conditions that hold no packets back, which is what presets are.
impl From<conditions::Conditions> for Conditions {
    fn from(core: conditions::Conditions) -> Self {
        let conditions::Conditions { loss, duplicate, overhead, max_datagram, .. } = core;
        let random_walk = core
            .random_walk
            .map(|it| RandomWalk { delay: it.range.as_secs_f64(), time: it.memory.as_secs_f64() });
        let outages =
            core.outages.map(|it| Outages { duration: it.duration.as_secs_f64(), fraction: it.fraction });
        Conditions {
            latency: core.latency.as_secs_f64(),
            jitter: core.jitter.as_secs_f64(),
            random_walk,
            loss,
            bursts: core.bursts.map(Bursts::from),
            outages,
            duplicate,
            reorder: 0.0,
            bottleneck: core.bottleneck.map(|it| Bottleneck { rate: it.rate, queue: it.queue, overhead }),
            max_datagram,
        }
    }
}

/// The core checks what is made.
macro_rules! checked {
    ($($Class:ident),*) => {
        $(impl $Class {
            fn check(self, _: Python<'_>) -> PyResult<()> {
                self.core().check().map_err(value_error)
            }
        })*
    };
}

checked!(Bursts, Outages, RandomWalk, Conditions);
