//! The binary congestion avoidance.

use std::sync::Mutex;

use pyo3::prelude::*;

use super::instant;
use crate::python::errors::value_error;
use crate::python::lock;
use crate::python::protocol::seconds;
use crate::transport::good_bad::{self, GoodBadConfig, Mode};

/// A day: a longer time is a mistake.
const MAX_SECONDS: f64 = 86_400.0;

/// The simple binary congestion avoidance of the article "Reliability, Ordering and Congestion Avoidance over UDP": how
/// many packets a second to send, by the RTT alone.
///
/// Conditions are bad while the RTT is above ``bad_rtt``. Bad conditions lead from good mode to bad mode at once. In bad
/// mode, conditions that were good for :attr:`recovery_time` without a break lead back. Good mode that lasted less than
/// ``double_below`` doubles the recovery time; each ``halve_every`` of good mode halves it. It begins in good mode, counted
/// from the first :meth:`update`. Times are seconds of a clock of your choice that doesn't go back.
///
/// Args:
///     bad_rtt: seconds.
///     good_packets_per_second, bad_packets_per_second: what the modes allow.
///     recovery_time: seconds, to begin with; the article names no number.
///     min_recovery_time, max_recovery_time: its bounds.
///     double_below, halve_every: seconds of good mode.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
///
/// Example:
///     >>> mode = GoodBad(recovery_time=4.0)
///     >>> mode.update(0.0, 0.1), mode.packets_per_second
///     ('good', 30.0)
///     >>> mode.update(1.0, 0.3), mode.packets_per_second, mode.recovery_time
///     ('bad', 10.0, 8.0)
///     >>> mode.update(2.0, 0.1), mode.update(10.0, 0.1)
///     ('bad', 'good')
#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct GoodBad {
    core: Mutex<good_bad::GoodBad>,
}

#[pymethods]
impl GoodBad {
    #[new]
    #[pyo3(signature = (*, bad_rtt = 0.25, good_packets_per_second = 30.0, bad_packets_per_second = 10.0,
                        recovery_time = 4.0, min_recovery_time = 1.0, max_recovery_time = 60.0,
                        double_below = 10.0, halve_every = 10.0))]
    #[allow(clippy::too_many_arguments)] // Settings, all by keyword.
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

    /// Takes the RTT as it is now, in seconds. Call it each tick.
    ///
    /// Returns:
    ///     the mode that follows.
    #[pyo3(signature = (now, rtt, /))]
    fn update(&self, now: f64, rtt: f64) -> PyResult<&'static str> {
        let (now, rtt) = (instant(now)?, seconds("rtt", rtt, MAX_SECONDS)?);
        Ok(name(lock(&self.core).update(now, rtt)))
    }

    /// ``"good"`` or ``"bad"``.
    #[getter]
    fn mode(&self) -> &'static str {
        name(lock(&self.core).mode())
    }

    /// The mode's rate.
    #[getter]
    fn packets_per_second(&self) -> f64 {
        lock(&self.core).packets_per_second()
    }

    /// Seconds of good conditions that lead from bad mode to good mode, now or next time.
    #[getter]
    fn recovery_time(&self) -> f64 {
        lock(&self.core).recovery_time().as_secs_f64()
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
