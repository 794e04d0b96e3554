//! Bad networks on purpose: conditions, and the simulated network with its virtual clock.

use pyo3::prelude::*;

use super::address::AddressLike;
use super::errors::value_error;
use super::fields::within;
use super::protocol::seconds;
use crate::driver::VirtualNetwork;
use crate::netsim::conditions;
use crate::time::Duration;

/// A year: more virtual time at once is a mistake.
const LONGEST_STEP: f64 = 366.0 * 86_400.0;

/// The longest delay that conditions may ask for, in seconds; the core's own bound is checked there.
const LONGEST_DELAY: f64 = 86_400.0;

/// What a simulated link does to each packet, per direction.
///
/// Args:
///     latency: seconds, one way.
///     jitter: seconds, at most the latency; each packet is late by latency +- jitter, uniformly, so packets
///         may overtake.
///     loss: probability that a packet is lost, 0 to 1.
///     duplicate: probability that a packet arrives twice.
///     reorder: probability that a packet is held back by a further ``reorder_delay`` seconds.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, eq, module = "tickwire")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Conditions(pub(super) conditions::Conditions);

#[pymethods]
impl Conditions {
    #[new]
    #[pyo3(signature = (*, latency = 0.0, jitter = 0.0, loss = 0.0, duplicate = 0.0, reorder = 0.0,
                        reorder_delay = 0.05))]
    fn new(
        latency: f64,
        jitter: f64,
        loss: f64,
        duplicate: f64,
        reorder: f64,
        reorder_delay: f64,
    ) -> PyResult<Self> {
        let latency = seconds("latency", latency, LONGEST_DELAY)?;
        let jitter = seconds("jitter", jitter, LONGEST_DELAY)?;
        let reorder_delay = seconds("reorder_delay", reorder_delay, LONGEST_DELAY)?;
        let conditions = conditions::Conditions::perfect()
            .latency(latency, jitter)
            .loss(loss)
            .duplicate(duplicate)
            .reorder(reorder, reorder_delay);
        conditions.check().map_err(value_error)?;
        Ok(Conditions(conditions))
    }

    #[getter]
    fn latency(&self) -> f64 {
        self.0.latency.as_secs_f64()
    }

    #[getter]
    fn jitter(&self) -> f64 {
        self.0.jitter.as_secs_f64()
    }

    #[getter]
    fn loss(&self) -> f64 {
        self.0.loss
    }

    #[getter]
    fn duplicate(&self) -> f64 {
        self.0.duplicate
    }

    #[getter]
    fn reorder(&self) -> f64 {
        self.0.reorder
    }

    #[getter]
    fn reorder_delay(&self) -> f64 {
        self.0.reorder_delay.as_secs_f64()
    }

    fn __repr__(&self) -> String {
        format!(
            "Conditions(latency={:?}, jitter={:?}, loss={:?}, duplicate={:?}, reorder={:?}, reorder_delay={:?})",
            self.latency(),
            self.jitter(),
            self.loss(),
            self.duplicate(),
            self.reorder(),
            self.reorder_delay()
        )
    }
}

/// A network in one process with a virtual clock: the same seed and the same calls, the same bytes.
///
/// Servers and clients made with ``network=`` live on it; time passes only in :meth:`advance`.
#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct SimulatedNetwork(pub(super) VirtualNetwork);

#[pymethods]
impl SimulatedNetwork {
    #[new]
    #[pyo3(signature = (*, seed = 0, conditions = None))]
    fn new(seed: i128, conditions: Option<&Bound<'_, Conditions>>) -> PyResult<Self> {
        let conditions = conditions.map(|conditions| conditions.get().0).unwrap_or_default();
        let seed = within("seed", seed, 0, u64::MAX)?;
        VirtualNetwork::new(conditions, seed).map(SimulatedNetwork).map_err(value_error)
    }

    /// Virtual seconds since the start.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now().as_secs_f64()
    }

    /// Lets time pass, and delivers what arrives meanwhile.
    #[pyo3(signature = (seconds, /))]
    fn advance(&self, seconds: f64) -> PyResult<()> {
        let time: Duration = self::seconds("seconds", seconds, LONGEST_STEP)?;
        self.0.advance(time);
        Ok(())
    }

    /// From now on: for all links, or for those from ``sender``, to ``receiver``, or both.
    #[pyo3(signature = (conditions, *, sender = None, receiver = None))]
    fn set_conditions(
        &self,
        conditions: &Bound<'_, Conditions>,
        sender: Option<AddressLike>,
        receiver: Option<AddressLike>,
    ) -> PyResult<()> {
        let (from, to) = (sender.map(|address| address.0), receiver.map(|address| address.0));
        self.0.set_conditions(from, to, conditions.get().0).map_err(value_error)
    }
}
