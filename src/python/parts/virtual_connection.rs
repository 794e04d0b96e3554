//! The plain virtual connection.

use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::ack_endpoint::{PacketStats, loss_bound};
use super::instant;
use crate::articles::{self, VirtualConfig, VirtualEvent, VirtualSendError, VirtualState};
use crate::driver::OsEntropy;
use crate::python::address::{Address, AddressLike};
use crate::python::errors::{MessageTooLargeError, NotConnectedError, value_error};
use crate::python::fields::bounded;
use crate::python::lock;
use crate::python::protocol::seconds;
use crate::python::setup::random;
use crate::store::Datagrams;

/// A day: a longer timeout is a mistake.
const MAX_TIMEOUT: f64 = 86_400.0;

/// Datagrams to transmit, as `Socket.send_many` takes them.
type Outgoing = Vec<(Address, Py<PyBytes>)>;

/// The plain connection of two peers of the article "Virtual Connection over UDP": no handshake, no secrets.
/// For LANs, for teaching, and as a base for protocols of your own. Made by :meth:`listen` and :meth:`connect`.
///
/// A datagram is the protocol id and a CRC-32 of everything after it, 4 bytes each, little-endian, then a packet
/// of reliable 1.0, as an :class:`AckEndpoint` makes it. The first valid packet connects a listener to its
/// sender; others are ignored until the peer has been silent for ``timeout``, when the listener listens again. A
/// packet goes out at least each ``keep_alive`` seconds.
///
/// Anyone who knows the protocol id can connect, and can forge a peer's packets and address: over the internet
/// use :class:`Server` and :class:`Client`. Until the peer has acked a packet, a listener sends at most one
/// datagram for each it got, never a larger one; its packet numbers begin at random, so that an ack proves an
/// address.
///
/// It has no socket: transmit what :meth:`send` and :meth:`update` return. Times are seconds of a clock of your
/// choice that doesn't go back.
///
/// Example:
///     >>> to_a, to_b = Address("10.0.0.1:5"), Address("10.0.0.2:5")
///     >>> a = VirtualConnection.connect(0.0, to_b, protocol_id=7)
///     >>> b = VirtualConnection.listen(protocol_id=7)
///     >>> sequence, datagrams = a.send(0.0, b"hello")
///     >>> [b.receive(0.05, to_a, datagram) for address, datagram in datagrams]
///     [b'hello']
///     >>> b.events(), b.state, b.peer
///     ([('connected', Address('10.0.0.1:5'))], 'connected', Address('10.0.0.1:5'))
///     >>> [a.receive(0.1, to_b, datagram) for address, datagram in b.update(0.05)]
///     [None]
///     >>> a.acked(), a.state
///     ([0], 'connected')
#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct VirtualConnection {
    core: Mutex<articles::VirtualConnection>,
}

#[pymethods]
impl VirtualConnection {
    /// An end that waits for a peer.
    ///
    /// Args:
    ///     protocol_id: 32 bits that name your protocol. Both ends need the same.
    ///     timeout: seconds of silence after which a peer is given up.
    ///     keep_alive: seconds of our own silence, at most.
    ///     lost_after, lost_after_rtts, lost_not_before, in_order_only: as for :class:`AckEndpoint`.
    ///
    /// Raises:
    ///     ValueError: naming the argument, its value and its bound.
    #[staticmethod]
    #[pyo3(signature = (*, protocol_id, timeout = 10.0, keep_alive = 0.1, lost_after = 1.0,
                        lost_after_rtts = None, lost_not_before = 0.05, in_order_only = false))]
    fn listen(
        protocol_id: &Bound<'_, PyAny>,
        timeout: f64,
        keep_alive: f64,
        lost_after: f64,
        lost_after_rtts: Option<f64>,
        lost_not_before: f64,
        in_order_only: bool,
    ) -> PyResult<Self> {
        let mut config = config(protocol_id, timeout, keep_alive)?;
        config.packets.acks.loss_bound = loss_bound(lost_after, lost_after_rtts, lost_not_before)?;
        config.packets.acks.in_order_only = in_order_only;
        Self::new(articles::VirtualConnection::listen(config))
    }

    /// An end that connects to the listener at ``address``, from its first :meth:`send` or :meth:`update` on.
    /// When the peer never answers or falls silent, the connection has ended.
    ///
    /// Args:
    ///     protocol_id and the rest: as for :meth:`listen`.
    #[staticmethod]
    #[pyo3(signature = (now, address, /, *, protocol_id, timeout = 10.0, keep_alive = 0.1, lost_after = 1.0,
                        lost_after_rtts = None, lost_not_before = 0.05, in_order_only = false))]
    #[allow(clippy::too_many_arguments)] // Settings, nearly all by keyword.
    fn connect(
        now: f64,
        address: AddressLike,
        protocol_id: &Bound<'_, PyAny>,
        timeout: f64,
        keep_alive: f64,
        lost_after: f64,
        lost_after_rtts: Option<f64>,
        lost_not_before: f64,
        in_order_only: bool,
    ) -> PyResult<Self> {
        let now = instant(now)?;
        if address.0.port() == 0 {
            return Err(PyValueError::new_err(format!(
                "address must have a port to dial, not {}",
                address.0
            )));
        }
        let mut config = config(protocol_id, timeout, keep_alive)?;
        config.packets.acks.loss_bound = loss_bound(lost_after, lost_after_rtts, lost_not_before)?;
        config.packets.acks.in_order_only = in_order_only;
        Self::new(articles::VirtualConnection::connect(now, config, address.0))
    }

    /// The state of the connection: ``"listening"``, ``"connecting"`` (the peer hasn't answered yet),
    /// ``"connected"``, ``"ended"`` (only of one that was made by :meth:`connect`).
    #[getter]
    fn state(&self) -> &'static str {
        match lock(&self.core).state() {
            VirtualState::Listening => "listening",
            VirtualState::Connecting => "connecting",
            VirtualState::Connected => "connected",
            VirtualState::Ended => "ended",
        }
    }

    /// Whether :meth:`send` takes payloads of any size: there is a peer, and a listener's has acked a packet.
    #[getter]
    fn ready(&self) -> bool {
        lock(&self.core).is_ready()
    }

    /// The other end; None when there is none.
    #[getter]
    fn peer(&self) -> Option<Address> {
        lock(&self.core).peer().map(Address)
    }

    /// Makes a packet of a payload. An empty one only keeps the connection alive.
    ///
    /// Returns:
    ///     its number, by which :meth:`acked` and :meth:`lost` name it, and what to transmit: ``(address,
    ///     datagram)`` pairs, as :meth:`Socket.send_many` takes them.
    ///
    /// Raises:
    ///     NotConnectedError: there is no peer; or it is not :attr:`ready`, and this would be more than an
    ///         answer to what it sent.
    ///     MessageTooLargeError: the payload is above 256 KiB.
    #[pyo3(signature = (now, payload, /))]
    fn send(&self, now: f64, payload: &Bound<'_, PyBytes>) -> PyResult<(u16, Outgoing)> {
        let now = instant(now)?;
        let mut out = Datagrams::new();
        let sent = lock(&self.core).send(now, payload.as_bytes(), &mut out);
        let sequence = sent.map_err(|error| match error {
            VirtualSendError::NoPeer | VirtualSendError::Unproven { .. } => {
                NotConnectedError::new_err(error.to_string())
            }
            VirtualSendError::TooLarge(_) => MessageTooLargeError::new_err(error.to_string()),
        })?;
        Ok((sequence, to_python(payload.py(), &out)))
    }

    /// Takes a datagram that came from ``source``.
    ///
    /// Returns:
    ///     the payload it brought; None when it only keeps the connection alive, when more fragments are missing,
    ///     or when it was dropped, which :attr:`counters` has by reason.
    #[pyo3(signature = (now, source, datagram, /))]
    fn receive<'py>(
        &self,
        now: f64,
        source: AddressLike,
        datagram: &Bound<'py, PyBytes>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let now = instant(now)?;
        let payload = match lock(&self.core).handle_datagram(now, source.0, datagram.as_bytes()) {
            Ok(payload) => payload.map(<[u8]>::to_vec),
            // Counted.
            Err(_) => None,
        };
        Ok(payload.map(|payload| PyBytes::new(datagram.py(), &payload)))
    }

    /// Once a tick: keeps the connection alive, notices a silent peer, and brings losses and statistics up to
    /// date. Returns what to transmit, as :meth:`send` does.
    #[pyo3(signature = (now, /))]
    fn update(&self, py: Python<'_>, now: f64) -> PyResult<Outgoing> {
        let now = instant(now)?;
        let mut out = Datagrams::new();
        lock(&self.core).update(now, &mut out);
        Ok(to_python(py, &out))
    }

    /// The events since the last call: ``("connected", peer)``, ``("timed_out", peer)``, and
    /// ``("no_answer", peer)`` for one that connects.
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

    /// The packets that the peer has received, each once, since the last call.
    fn acked(&self) -> Vec<u16> {
        let mut acked = Vec::new();
        lock(&self.core).poll_acked(&mut acked);
        acked
    }

    /// The packets that counted as lost in an :meth:`update`, oldest first, each once, since the last call.
    fn lost(&self) -> Vec<u16> {
        let mut lost = Vec::new();
        lock(&self.core).poll_lost(&mut lost);
        lost
    }

    /// RTT, jitter, packet loss and bandwidth.
    #[getter]
    fn stats(&self) -> PacketStats {
        PacketStats::from(&lock(&self.core).stats())
    }

    /// All counters since the start, with every drop under a name; those of packets begin with ``packets.``.
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
    fn new(core: Result<articles::VirtualConnection, crate::transport::ConfigError>) -> PyResult<Self> {
        Ok(VirtualConnection { core: Mutex::new(core.map_err(value_error)?) })
    }
}

fn config(protocol_id: &Bound<'_, PyAny>, timeout: f64, keep_alive: f64) -> PyResult<VirtualConfig> {
    Ok(VirtualConfig {
        secret: Some(random(&mut OsEntropy)),
        timeout: seconds("timeout", timeout, MAX_TIMEOUT)?,
        keep_alive: seconds("keep_alive", keep_alive, MAX_TIMEOUT)?,
        ..VirtualConfig::new(bounded("protocol_id", protocol_id, 0, u32::MAX)?)
    })
}

fn to_python(py: Python<'_>, out: &Datagrams) -> Outgoing {
    out.iter().map(|(to, datagram)| (Address(to), PyBytes::new(py, datagram).unbind())).collect()
}
