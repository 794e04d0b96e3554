//! How connections are doing, in numbers.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::driver::DriverCounters;
use crate::netcode::Counters;
use crate::transport::{self, PacketCounters, PacketStats, Protocol};

/// Counts of one channel of one connection since it began.
#[pyclass(frozen, get_all, module = "tickwire")]
#[derive(Clone, Debug)]
pub(crate) struct ChannelStats {
    name: String,
    kind: &'static str,
    /// Messages now waiting to be sent or acked.
    queued: usize,
    /// Messages sent, each counted once.
    sent: u64,
    /// Times a message was sent again.
    resent: u64,
    /// Messages received, each counted once.
    received: u64,
    /// Messages received again and dropped.
    duplicates: u64,
    /// Messages that a full queue, on either side of this end, pushed out.
    dropped: u64,
}

/// How one connection is doing. Times in milliseconds, rates in kilobits per second with UDP/IP headers.
#[pyclass(frozen, get_all, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct ConnectionStats {
    rtt_ms: f64,
    rtt_min_ms: f64,
    rtt_max_ms: f64,
    jitter_ms: f64,
    /// Of the packets we sent.
    packet_loss_percent: f64,
    sent_kbps: f64,
    received_kbps: f64,
    acked_kbps: f64,
    packets_sent: u64,
    packets_received: u64,
    packets_acked: u64,
    packets_lost: u64,
    channels: Vec<ChannelStats>,
}

#[pymethods]
impl ConnectionStats {
    fn __repr__(&self) -> String {
        format!(
            "<ConnectionStats rtt={:.1} ms, jitter={:.1} ms, loss={:.1} %, {:.1} kbit/s up, {:.1} kbit/s down>",
            self.rtt_ms, self.jitter_ms, self.packet_loss_percent, self.sent_kbps, self.received_kbps
        )
    }
}

#[pymethods]
impl ChannelStats {
    fn __repr__(&self) -> String {
        format!(
            "<ChannelStats {:?} {}: {} sent, {} resent, {} received, {} queued>",
            self.name, self.kind, self.sent, self.resent, self.received, self.queued
        )
    }
}

impl ConnectionStats {
    /// `channel` gives the counts of a channel by its index.
    pub(super) fn new(
        (stats, counters): (PacketStats, PacketCounters),
        protocol: &Protocol,
        channel: impl Fn(usize) -> Option<transport::ChannelStats>,
    ) -> Self {
        let channels = protocol.channels().iter().enumerate().filter_map(|(index, config)| {
            let counts = channel(index)?;
            Some(ChannelStats {
                name: config.name.clone(),
                kind: config.kind.name(),
                queued: counts.queued,
                sent: counts.sent,
                resent: counts.resent,
                received: counts.received,
                duplicates: counts.duplicates,
                dropped: counts.dropped,
            })
        });
        ConnectionStats {
            rtt_ms: stats.rtt,
            rtt_min_ms: stats.rtt_min,
            rtt_max_ms: stats.rtt_max,
            jitter_ms: stats.jitter,
            packet_loss_percent: stats.packet_loss,
            sent_kbps: stats.sent_kbps,
            received_kbps: stats.received_kbps,
            acked_kbps: stats.acked_kbps,
            packets_sent: counters.sent,
            packets_received: counters.received,
            packets_acked: counters.acked,
            packets_lost: counters.lost,
            channels: channels.collect(),
        }
    }
}

/// Everything an endpoint counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) driver: DriverCounters,
    pub(super) netcode: Counters,
    pub(super) packets: PacketCounters,
}

impl Counted {
    /// Layer, name and count.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let of = |layer| move |(name, count)| (layer, name, count);
        let driver =
            self.driver.udp.iter().map(of("socket")).chain(self.driver.link.iter().map(of("simulator")));
        driver.chain(self.netcode.iter().map(of("netcode"))).chain(self.packets.iter().map(of("packets")))
    }

    /// By name, each behind its layer's.
    pub(super) fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = PyDict::new(py);
        for (layer, name, count) in self.iter() {
            counted.set_item(format!("{layer}.{name}"), count)?;
        }
        Ok(counted)
    }
}
