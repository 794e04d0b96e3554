//! The binary congestion avoidance.

use std::sync::Mutex;

use crate::python::prelude::*;

use super::instant;
use crate::python::errors::value_error;
use crate::python::lock;
use crate::python::protocol::seconds;
use crate::transport::good_bad::{self, GoodBadConfig, Mode};

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
        bad_rtt: f64,
        good_packets_per_second: f64,
        bad_packets_per_second: f64,
        recovery_time: f64,
        min_recovery_time: f64,
        max_recovery_time: f64,
        double_below: f64,
        halve_every: f64,
    ) -> PyResult<Self> {
        let config = good_bad_config(
            bad_rtt,
            good_packets_per_second,
            bad_packets_per_second,
            recovery_time,
            min_recovery_time,
            max_recovery_time,
            double_below,
            halve_every,
        )?;
        let core = good_bad::GoodBad::new(config).map_err(value_error)?;
        Ok(GoodBad { core: Mutex::new(core) })
    }

    fn update(&self, now: f64, rtt: f64) -> PyResult<&'static str> {
        let (now, rtt) = (instant(now)?, seconds("rtt", rtt, MAX_SECONDS)?);
        Ok(name(lock(&self.core).update(now, rtt)))
    }

    properties! {
        mode: &'static str = name(lock(&self.core).mode());
        packets_per_second: f64 = lock(&self.core).packets_per_second();
        recovery_time: f64 = lock(&self.core).recovery_time().as_secs_f64();
    }

    fn __repr__(&self) -> String {
        format!("<GoodBad: {}, {} packets/s>", self.mode(), self.packets_per_second())
    }
}

/// The settings, all times in seconds.
#[allow(clippy::too_many_arguments)] // As Python has them.
pub(in crate::python) fn good_bad_config(
    bad_rtt: f64,
    good_packets_per_second: f64,
    bad_packets_per_second: f64,
    recovery_time: f64,
    min_recovery_time: f64,
    max_recovery_time: f64,
    double_below: f64,
    halve_every: f64,
) -> PyResult<GoodBadConfig> {
    Ok(GoodBadConfig {
        bad_rtt: seconds("bad_rtt", bad_rtt, MAX_SECONDS)?,
        good_packets_per_second,
        bad_packets_per_second,
        recovery_time: seconds("recovery_time", recovery_time, MAX_SECONDS)?,
        min_recovery_time: seconds("min_recovery_time", min_recovery_time, MAX_SECONDS)?,
        max_recovery_time: seconds("max_recovery_time", max_recovery_time, MAX_SECONDS)?,
        double_below: seconds("double_below", double_below, MAX_SECONDS)?,
        halve_every: seconds("halve_every", halve_every, MAX_SECONDS)?,
    })
}

fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Good => "good",
        Mode::Bad => "bad",
    }
}
