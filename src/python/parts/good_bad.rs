//! The binary congestion avoidance.

use crate::python::prelude::*;

use crate::articles::good_bad::{self, GoodBadConfig, Mode};

/// A day: a longer time is a mistake.
const MAX_SECONDS: f64 = 86_400.0;

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct GoodBad {
    core: Mutex<good_bad::GoodBad>,
}

#[pymethods]
impl GoodBad {
    #[new]
    fn new(
        #[seconds(MAX_SECONDS)] bad_rtt: Duration,
        #[number] good_packets_per_second: f64,
        #[number] bad_packets_per_second: f64,
        #[seconds(MAX_SECONDS)] recovery_time: Duration,
        #[seconds(MAX_SECONDS)] min_recovery_time: Duration,
        #[seconds(MAX_SECONDS)] max_recovery_time: Duration,
        #[seconds(MAX_SECONDS)] double_below: Duration,
        #[seconds(MAX_SECONDS)] halve_every: Duration,
    ) -> PyResult<Self> {
        let core = good_bad::GoodBad::new(GoodBadConfig {
            bad_rtt,
            good_packets_per_second,
            bad_packets_per_second,
            recovery_time,
            min_recovery_time,
            max_recovery_time,
            double_below,
            halve_every,
        });
        Ok(GoodBad { core: Mutex::new(core.map_err(value_error)?) })
    }

    methods! {
        update(#[instant] now: Instant, #[seconds(MAX_SECONDS)] rtt: Duration) -> &'static str =
            name(lock(&self.core).update(now, rtt));
    }

    properties! {
        mode: &'static str = name(lock(&self.core).mode());
        packets_per_second: f64 = lock(&self.core).packets_per_second();
        recovery_time: f64 = lock(&self.core).recovery_time().as_secs_f64();
        __repr__: String = format!("<GoodBad: {}, {} packets/s>", self.mode(), self.packets_per_second());
    }
}

fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Good => "good",
        Mode::Bad => "bad",
    }
}
