//! The ack endpoint: all of reliable 1.0.

use crate::python::prelude::*;

use crate::articles::StandardEstimate;
use crate::python::stats::shown;
use crate::transport;
use crate::transport::ack_endpoint::{self, AckEndpointConfig};
use crate::transport::acks::{Acked, RttSampling};
use crate::transport::fragment::{FRAGMENT_HEADER_SIZE, MAX_FRAGMENTS};
use crate::transport::header::Header;
use crate::transport::packet::LossBound;

/// A day: a longer time until a packet counts as lost is a mistake.
pub(super) const MAX_LOSS: f64 = 86_400.0;

/// How many acks are kept for a caller that doesn't fetch them: half of the sequence numbers.
const MAX_UNREPORTED: usize = 32_768;

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct AckEndpoint {
    state: Mutex<AckEndpointState>,
}

#[derive(Debug)]
struct AckEndpointState {
    core: ack_endpoint::AckEndpoint,
    /// With the profile of the standard.
    standard: Option<StandardEstimate>,
    /// The output of [`ack_endpoint::AckEndpoint::accept`].
    newly: Vec<Acked>,
    /// Acked packets that weren't fetched yet.
    acked: VecDeque<u16>,
}

#[pymethods]
impl AckEndpoint {
    #[new]
    fn new(
        #[either("standard", "large")] profile: String,
        #[within(1, MAX_BYTES)] max_packet_size: Option<usize>,
        fragments: Option<&Fragments>,
        #[within(1, 32_768)] sent_window: Option<usize>,
        #[within(1, 32_768)] received_window: Option<usize>,
        #[number] rtt_smoothing: Option<f64>,
        #[seconds(MAX_LOSS)] lost_after: Duration,
        #[number] lost_after_rtts: Option<f64>,
        #[seconds(MAX_LOSS)] lost_not_before: Duration,
        #[truth] in_order_only: bool,
    ) -> PyResult<Self> {
        let is_standard = profile == "standard";
        let mut config = if is_standard { AckEndpointConfig::standard() } else { AckEndpointConfig::large() };
        let AckEndpointConfig { max_packet_size: largest, fragment_above: above, reassembly, acks, .. } =
            &mut config;
        for (given, setting) in [
            (sent_window, &mut acks.sent_window),
            (received_window, &mut acks.received_window),
            (max_packet_size, largest),
        ] {
            *setting = given.unwrap_or(*setting);
        }
        let fragments = fragments.copied();
        if let Some(Fragments { above: from, size, count, .. }) = fragments {
            *above = from.unwrap_or(*above);
            reassembly.fragment_size = size.unwrap_or(reassembly.fragment_size);
            reassembly.max_fragments = count.unwrap_or(reassembly.max_fragments);
        }
        let one_packet = reassembly.fragment_size * reassembly.max_fragments;
        reassembly.max_bytes = match fragments.and_then(|given| given.reassembly_bytes) {
            Some(bytes) if bytes < one_packet => {
                refuse!(PyValueError, "reassembly_bytes must be {one_packet} to {MAX_BYTES}, not {bytes}");
            }
            Some(bytes) => bytes,
            None => reassembly.max_bytes.max(one_packet),
        };
        let reachable = one_packet.max(*above);
        if max_packet_size.is_none() && reachable < *largest {
            refuse!(
                PyValueError,
                "fragments must reach max_packet_size ({largest}) by above, or by size x count, not {reachable}"
            );
        }
        acks.rtt_smoothing = rtt_smoothing.unwrap_or(acks.rtt_smoothing);
        acks.in_order_only = in_order_only;
        acks.loss_bound = loss_bound(lost_after, lost_after_rtts, lost_not_before)?;
        let core = ack_endpoint::AckEndpoint::new(config.clone()).map_err(value_error)?;
        let standard = is_standard.then(|| StandardEstimate::new(&config));
        Ok(AckEndpoint {
            state: Mutex::new(AckEndpointState { core, standard, newly: Vec::new(), acked: VecDeque::new() }),
        })
    }

    properties! {
        counters: PyResult<Bound<'py, PyDict>> = counts(py, lock(&self.state).core.acks.counters.iter());
        next_sequence: u16 = lock(&self.state).core.acks.next_sequence() as u16;
        newest_received: Option<u16> =
            lock(&self.state).core.acks.received.newest.map(|sequence| sequence as u16);
        stats: PacketStats = PacketStats(lock(&self.state).stats());
    }

    fn send(&self, #[instant] now: Instant, payload: &Bound<'_, PyBytes>) -> PyResult<(u16, Vec<Vec<u8>>)> {
        let payload = payload.as_bytes();
        let mut state = lock(&self.state);
        let outgoing = state.core.send(now, payload);
        let outgoing = outgoing.map_err(|error| MessageTooLargeError::new_err(error.to_string()))?;
        if let Some(standard) = &mut state.standard {
            standard.note_sent(now, outgoing.header.sequence, payload.len());
        }
        drop(state);
        let datagrams = outgoing.pieces().map(|piece| {
            let mut datagram = Vec::new();
            piece.write(&mut datagram);
            datagram
        });
        Ok((outgoing.header.sequence as u16, datagrams.collect()))
    }

    fn receive<'py>(
        &self,
        #[instant] now: Instant,
        datagram: &Bound<'py, PyBytes>,
        accept: Option<&Object<'py>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let opened = lock(&self.state).core.open(datagram.as_bytes());
        let Ok(Some(incoming)) = opened else { return Ok(None) };
        let payload = PyBytes::new(datagram.py(), incoming.payload());
        let verdict = match accept {
            Some(accept) => accept.call1((&payload,)).and_then(|verdict| verdict.is_truthy()),
            None => Ok(true),
        };
        let mut state = lock(&self.state);
        let AckEndpointState { core, standard, newly, acked } = &mut *state;
        // A copy of it may have been accepted meanwhile, by another thread or from within `accept`.
        let accepted = matches!(verdict, Ok(true)) && core.acks.is_new(incoming.header.sequence).is_ok();
        if accepted {
            standard.iter_mut().for_each(|standard| standard.note_received(now, &incoming));
            core.accept(now, incoming, RttSampling::EveryAck, newly);
            standard.iter_mut().for_each(|standard| standard.note_acked(newly));
            acked.extend(newly.drain(..).filter(|acked| !acked.late).map(|acked| acked.sequence as u16));
            acked.drain(..acked.len().saturating_sub(MAX_UNREPORTED));
        } else {
            core.refuse(incoming);
        }
        drop(state);
        verdict?;
        Ok(accepted.then_some(payload))
    }

    methods! {
        acked() -> Vec<u16> = lock(&self.state).acked.drain(..).collect();
    }

    fn lost(&self, #[instant] now: Instant) -> Vec<u16> {
        let mut lost = Vec::new();
        let mut state = lock(&self.state);
        state.core.acks.poll_lost(now, &mut lost);
        let AckEndpointState { core, standard, .. } = &mut *state;
        core.acks.update(now);
        standard.iter_mut().for_each(|standard| standard.update(&core.acks));
        lost.into_iter().map(|sequence| sequence as u16).collect()
    }

    /// Bytes by which the longest datagram exceeds its payload: headers of packet and fragment.
    #[classattr]
    const MAX_OVERHEAD: usize = FRAGMENT_HEADER_SIZE + Header::MAX_SIZE;

    fn __repr__(&self) -> String {
        let counters = lock(&self.state).core.acks.counters;
        format!(
            "<AckEndpoint: {} sent, {} acked, {} lost, {} received>",
            counters.sent, counters.acked, counters.lost, counters.received
        )
    }
}

impl AckEndpointState {
    fn stats(&self) -> transport::PacketStats {
        let own = self.core.acks.stats();
        self.standard.as_ref().map_or(own, |standard| standard.in_place_of(own))
    }
}

pub(super) fn loss_bound(
    after: Duration,
    after_rtts: Option<f64>,
    at_least: Duration,
) -> PyResult<LossBound> {
    Ok(match after_rtts {
        None => LossBound::After(after),
        Some(multiple) if multiple.is_finite() && multiple > 0.0 => LossBound::Rtt { multiple, at_least },
        Some(multiple) => {
            refuse!(PyValueError, "lost_after_rtts must be above 0 and finite, not {multiple}");
        }
    })
}

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct PacketStats(pub(super) transport::PacketStats);

#[pymethods]
impl PacketStats {
    properties! {
        rtt_ms: f64 = self.0.rtt;
        rtt_min_ms: f64 = self.0.rtt_min;
        rtt_max_ms: f64 = self.0.rtt_max;
        rtt_avg_ms: f64 = self.0.rtt_avg;
        jitter_ms: f64 = self.0.jitter;
        jitter_stddev_ms: f64 = self.0.jitter_stddev;
        packet_loss_percent: f64 = self.0.packet_loss;
        packet_loss_received_percent: f64 = self.0.packet_loss_received;
        sent_kbps, received_kbps, acked_kbps: f64 of self.0;
        __repr__: String = format!("<PacketStats {}>", shown(&self.0));
    }
}

/// The maximum of packet sizes and memory bounds, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 30;

#[record(module = "tickwire.articles")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragments {
    #[within(1, MAX_BYTES)]
    pub(super) above: Option<usize>,
    #[within(1, usize::from(u16::MAX))]
    pub(super) size: Option<usize>,
    #[within(1, MAX_FRAGMENTS)]
    pub(super) count: Option<usize>,
    #[within(1, MAX_BYTES)]
    pub(super) reassembly_bytes: Option<usize>,
}
