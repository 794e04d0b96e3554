//! The proxy that puts simulated links between other programs, for Python and its command line.
//!
//! Promises: the proxy's thread never enters Python, and nobody waits for it while attached; it ends with `close`,
//! with its object, or with the interpreter, whichever comes first.

use crate::python::prelude::*;

use super::exit::{Background, Running};
use crate::driver::proxy::{self, Both, ProxyConfig, ProxyCounters, ProxyError, ProxyThread};
use crate::netsim::conditions;

/// The maximum of clients: one for each port for their sockets.
const MAX_CLIENTS: usize = 65_536;

/// The minimum of memory: one datagram of any length.
const MIN_BYTES: u64 = 1 << 17;

/// The maximum of memory: a terabyte.
const MAX_BYTES: u64 = 1 << 40;

#[pyclass(frozen, module = "tickwire.testing")]
#[derive(Debug)]
pub(crate) struct Proxy {
    address: Address,
    to: Address,
    running: Arc<Running<ProxyState>>,
}

#[derive(Debug)]
enum ProxyState {
    Open { thread: ProxyThread, conditions: Both<conditions::Conditions> },
    Closed(ProxyCounters),
}

#[pymethods]
impl Proxy {
    #[new]
    fn new(
        py: Python<'_>,
        listen: Address,
        to: Address,
        conditions: Option<&Conditions>,
        up: Option<&Conditions>,
        down: Option<&Conditions>,
        #[within(0, u64::MAX)] seed: u64,
        #[within(1, MAX_CLIENTS)] max_clients: usize,
        #[span(1.0, 86_400.0)] idle_timeout: f64,
        #[within(MIN_BYTES, MAX_BYTES)] max_bytes: u64,
    ) -> PyResult<Self> {
        if to.0.port() == 0 {
            refuse!(PyValueError, "to must have a port to send to, not {}", to.0);
        }
        let Both { up, down } = chosen(conditions, up, down);
        let conditions = Both { up: up.unwrap_or_default(), down: down.unwrap_or_default() };
        let config = ProxyConfig {
            conditions,
            seed,
            max_clients,
            idle_timeout: Duration::from_secs_f64(idle_timeout),
            max_bytes: usize::try_from(max_bytes).unwrap_or(usize::MAX),
            ..ProxyConfig::new(to.0)
        };
        let started = proxy::Proxy::bind(listen.0, config)
            .and_then(|proxy| ProxyThread::start(proxy).map_err(ProxyError::from));
        let thread = started.map_err(|error| match error {
            ProxyError::Io(error) => os_error(py, &error, listen.0),
            error => value_error(error),
        })?;
        let address = Address(thread.address());
        let running = Running::start(py, ProxyState::Open { thread, conditions })?;
        Ok(Proxy { address, to: Address(to.0), running })
    }

    properties! {
        address, to: Address of self;
        closed: bool = self.running.with(py, |state| matches!(state, ProxyState::Closed(_)));
    }

    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.running.with(py, |state| match state {
            ProxyState::Open { thread, .. } => thread.counters(),
            ProxyState::Closed(counters) => *counters,
        });
        counts(py, counters.iter().map(|(group, name, count)| (format!("{group}.{name}"), count)))
    }

    fn set_conditions(
        &self,
        py: Python<'_>,
        conditions: Option<&Conditions>,
        up: Option<&Conditions>,
        down: Option<&Conditions>,
    ) -> PyResult<()> {
        let Both { up, down } = chosen(conditions, up, down);
        self.running.with(py, |state| {
            let ProxyState::Open { thread, conditions } = state else {
                return Err(ClosedError::new_err("the proxy is closed: make a new one to continue"));
            };
            let changed = Both { up: up.unwrap_or(conditions.up), down: down.unwrap_or(conditions.down) };
            thread.set_conditions(changed).map_err(value_error)?;
            *conditions = changed;
            Ok(())
        })
    }

    fn close(&self, py: Python<'_>) {
        self.running.with(py, ProxyState::close);
    }

    closes!();

    fn __repr__(&self, py: Python<'_>) -> String {
        let closed = if self.closed(py) { ", closed" } else { "" };
        format!("<Proxy at {} to {}{closed}>", self.address.0, self.to.0)
    }
}

/// The conditions given for each direction, if any.
fn chosen(
    conditions: Option<&Conditions>,
    up: Option<&Conditions>,
    down: Option<&Conditions>,
) -> Both<Option<conditions::Conditions>> {
    let of = |own: Option<&Conditions>| own.or(conditions).map(|given| given.core());
    Both { up: of(up), down: of(down) }
}

impl Default for ProxyState {
    fn default() -> Self {
        ProxyState::Closed(ProxyCounters::default())
    }
}

impl Background for ProxyState {
    fn close(&mut self) {
        *self = match std::mem::take(self) {
            ProxyState::Open { thread, .. } => ProxyState::Closed(thread.stop()),
            closed => closed,
        };
    }
}
