//! The plain virtual connection.

use crate::python::prelude::*;

use super::ack_endpoint::{MAX_LOSS, PacketStats, loss_bound};
use crate::articles::{self, VirtualConfig, VirtualEvent, VirtualSendError, VirtualState};
use crate::driver::OsEntropy;
use crate::transport::packet::LossBound;

/// A day: a longer timeout is a mistake.
const MAX_TIMEOUT: f64 = 86_400.0;

/// Datagrams to transmit, as `Socket.send_many` takes them.
type Outgoing = Vec<(Address, Vec<u8>)>;

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct VirtualConnection {
    core: Mutex<articles::VirtualConnection>,
}

#[pymethods]
impl VirtualConnection {
    #[staticmethod]
    fn listen(
        #[within(0, u32::MAX)] protocol_id: u32,
        #[seconds(MAX_TIMEOUT)] timeout: Duration,
        #[seconds(MAX_TIMEOUT)] keep_alive: Duration,
        #[seconds(MAX_LOSS)] lost_after: Duration,
        #[number] lost_after_rtts: Option<f64>,
        #[seconds(MAX_LOSS)] lost_not_before: Duration,
        #[truth] in_order_only: bool,
    ) -> PyResult<Self> {
        let losses = loss_bound(lost_after, lost_after_rtts, lost_not_before)?;
        let config = config(protocol_id, timeout, keep_alive, losses, in_order_only);
        Self::new(articles::VirtualConnection::listen(config))
    }

    #[staticmethod]
    fn connect(
        #[instant] now: Instant,
        address: Address,
        #[within(0, u32::MAX)] protocol_id: u32,
        #[seconds(MAX_TIMEOUT)] timeout: Duration,
        #[seconds(MAX_TIMEOUT)] keep_alive: Duration,
        #[seconds(MAX_LOSS)] lost_after: Duration,
        #[number] lost_after_rtts: Option<f64>,
        #[seconds(MAX_LOSS)] lost_not_before: Duration,
        #[truth] in_order_only: bool,
    ) -> PyResult<Self> {
        if address.0.port() == 0 {
            refuse!(PyValueError, "address must have a port to connect to, not {}", address.0);
        }
        let losses = loss_bound(lost_after, lost_after_rtts, lost_not_before)?;
        let config = config(protocol_id, timeout, keep_alive, losses, in_order_only);
        Self::new(articles::VirtualConnection::connect(now, config, address.0))
    }

    #[getter]
    fn state(&self) -> &'static str {
        match lock(&self.core).state() {
            VirtualState::Listening => "listening",
            VirtualState::Connecting => "connecting",
            VirtualState::Connected => "connected",
            VirtualState::Ended => "ended",
        }
    }

    properties! {
        ready: bool = lock(&self.core).is_ready();
        peer: Option<Address> = lock(&self.core).peer().map(Address);
        stats: PacketStats = PacketStats(lock(&self.core).stats());
    }

    fn send(&self, #[instant] now: Instant, payload: &Bound<'_, PyBytes>) -> PyResult<(u16, Outgoing)> {
        let mut out = Datagrams::new();
        let sent = lock(&self.core).send(now, payload.as_bytes(), &mut out);
        let sequence = sent.map_err(|error| match error {
            VirtualSendError::NoPeer | VirtualSendError::Unproven { .. } => {
                NotConnectedError::new_err(error.to_string())
            }
            VirtualSendError::TooLarge(_) => MessageTooLargeError::new_err(error.to_string()),
        })?;
        Ok((sequence, outgoing(&out)))
    }

    fn receive(
        &self,
        #[instant] now: Instant,
        source: Address,
        datagram: &Bound<'_, PyBytes>,
    ) -> Option<Vec<u8>> {
        let mut core = lock(&self.core);
        // A drop is counted.
        let payload = core.handle_datagram(now, source.0, datagram.as_bytes()).unwrap_or(None);
        payload.map(<[u8]>::to_vec)
    }

    fn update(&self, #[instant] now: Instant) -> Outgoing {
        let mut out = Datagrams::new();
        lock(&self.core).update(now, &mut out);
        outgoing(&out)
    }

    fn events(&self) -> Vec<(&'static str, Address)> {
        let mut core = lock(&self.core);
        let events = std::iter::from_fn(|| core.poll_event());
        events
            .map(|event| match event {
                VirtualEvent::Connected { peer } => ("connected", Address(peer)),
                VirtualEvent::TimedOut { peer } => ("timed_out", Address(peer)),
                VirtualEvent::NoAnswer { peer } => ("no_answer", Address(peer)),
            })
            .collect()
    }

    fn acked(&self) -> Vec<u16> {
        let mut acked = Vec::new();
        lock(&self.core).poll_acked(&mut acked);
        acked
    }

    fn lost(&self) -> Vec<u16> {
        let mut lost = Vec::new();
        lock(&self.core).poll_lost(&mut lost);
        lost
    }

    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (counters, packets) = {
            let core = lock(&self.core);
            (core.counters(), core.packet_counters())
        };
        let counted = super::counts(py, counters.iter())?;
        packets.iter().try_for_each(|(name, count)| counted.set_item(format!("packets.{name}"), count))?;
        Ok(counted)
    }

    fn __repr__(&self) -> String {
        let peer = self.peer().map(|peer| format!(", peer {}", peer.0)).unwrap_or_default();
        format!("<VirtualConnection {}{peer}>", self.state())
    }
}

impl VirtualConnection {
    fn new(core: Result<articles::VirtualConnection, crate::limits::ConfigError>) -> PyResult<Self> {
        Ok(VirtualConnection { core: Mutex::new(core.map_err(value_error)?) })
    }
}

fn config(
    protocol_id: u32,
    timeout: Duration,
    keep_alive: Duration,
    loss_bound: LossBound,
    in_order_only: bool,
) -> VirtualConfig {
    let secret = Some(random(&mut OsEntropy));
    let mut config = VirtualConfig { secret, timeout, keep_alive, ..VirtualConfig::new(protocol_id) };
    (config.packets.acks.loss_bound, config.packets.acks.in_order_only) = (loss_bound, in_order_only);
    config
}

fn outgoing(out: &Datagrams) -> Outgoing {
    out.iter().map(|(to, datagram)| (Address(to), datagram.to_vec())).collect()
}
