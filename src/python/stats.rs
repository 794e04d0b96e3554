//! Statistics of connections.

use crate::python::prelude::*;

use super::columns::columns_class;
use crate::endpoint::PeerStats;
use crate::transport::chunks::ChunkCounters;
use crate::transport::{self, Protocol};

#[pyclass(frozen, get_all, module = "tickwire.connections")]
#[derive(Clone, Debug)]
pub(crate) struct ChannelStats {
    name: String,
    kind: &'static str,
    queued: usize,
    sent: u64,
    resent: u64,
    delivered: u64,
    lost: u64,
    received: u64,
    duplicates: u64,
    missed: u64,
    dropped: u64,
    bytes_sent: u64,
    latency_ms: f64,
}

#[pyclass(frozen, get_all, module = "tickwire.transfer")]
#[derive(Clone, Debug)]
pub(crate) struct ChunkStats {
    slices_sent: u64,
    slices_resent: u64,
    bytes_sent: u64,
    slices_received: u64,
    slice_duplicates: u64,
    slices_unexpected: u64,
    slices_invalid: u64,
    offers_invalid: u64,
    offers_too_fast: u64,
    chunks_reused: u64,
    answers_invalid: u64,
}

#[pymethods]
impl ChunkStats {
    fn __repr__(&self) -> String {
        format!(
            "<ChunkStats: {} slices sent, {} resent, {} received>",
            self.slices_sent, self.slices_resent, self.slices_received
        )
    }
}

impl From<ChunkCounters> for ChunkStats {
    fn from(counters: ChunkCounters) -> Self {
        ChunkStats {
            slices_sent: counters.slices_sent,
            slices_resent: counters.slices_resent,
            bytes_sent: counters.bytes_sent,
            slices_received: counters.slices_received,
            slice_duplicates: counters.slice_duplicates,
            slices_unexpected: counters.slices_unexpected,
            slices_invalid: counters.slices_invalid,
            offers_invalid: counters.offers_invalid,
            offers_too_fast: counters.offers_too_fast,
            chunks_reused: counters.chunks_reused,
            answers_invalid: counters.answers_invalid,
        }
    }
}

#[pyclass(frozen, get_all, module = "tickwire.connections")]
#[derive(Debug)]
pub(crate) struct ConnectionStats {
    rtt_ms: f64,
    rtt_min_ms: f64,
    rtt_max_ms: f64,
    jitter_ms: f64,
    packet_loss_percent: f64,
    packet_loss_received_percent: f64,
    sent_kbps: f64,
    received_kbps: f64,
    acked_kbps: f64,
    packets_sent: u64,
    packets_received: u64,
    packets_acked: u64,
    packets_lost: u64,
    budget_bytes_per_second: f64,
    budget_burst_bytes: f64,
    budget_adaptive: bool,
    bulk_rate: f64,
    chunks: ChunkStats,
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
    pub(super) fn new(peer: PeerStats, protocol: &Protocol) -> Self {
        let PeerStats { packets: stats, counters, budget, bulk_rate, chunks, channels } = peer;
        let channels = protocol.channels().iter().zip(channels).map(|(config, counts)| ChannelStats {
            name: config.name.clone(),
            kind: config.kind.name(),
            queued: counts.queued,
            sent: counts.sent,
            resent: counts.resent,
            delivered: counts.delivered,
            lost: counts.lost,
            received: counts.received,
            duplicates: counts.duplicates,
            missed: counts.missed,
            dropped: counts.dropped,
            bytes_sent: counts.bytes_sent,
            latency_ms: milliseconds(counts.latency),
        });
        ConnectionStats {
            rtt_ms: stats.rtt,
            rtt_min_ms: stats.rtt_min,
            rtt_max_ms: stats.rtt_max,
            jitter_ms: stats.jitter,
            packet_loss_percent: stats.packet_loss,
            packet_loss_received_percent: stats.packet_loss_received,
            sent_kbps: stats.sent_kbps,
            received_kbps: stats.received_kbps,
            acked_kbps: stats.acked_kbps,
            packets_sent: counters.sent,
            packets_received: counters.received,
            packets_acked: counters.acked,
            packets_lost: counters.lost,
            budget_bytes_per_second: budget.rate.bytes_per_second,
            budget_burst_bytes: budget.rate.burst_bytes,
            budget_adaptive: budget.adaptive,
            bulk_rate,
            chunks: chunks.into(),
            channels: channels.collect(),
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

columns_class! {
    ChannelSnapshot of SnapshotColumns {
        slot: u32,
        channel: u8,
        queued: u64,
        sent: u64,
        resent: u64,
        delivered: u64,
        lost: u64,
        received: u64,
        dropped: u64,
        bytes_sent: u64,
        latency_ms: f32,
    }
}

impl SnapshotColumns {
    pub(super) fn push(&mut self, slot: u32, channel: u8, counts: &transport::ChannelStats) {
        self.push_row(
            slot,
            channel,
            counts.queued as u64,
            counts.sent,
            counts.resent,
            counts.delivered,
            counts.lost,
            counts.received,
            counts.dropped,
            counts.bytes_sent,
            milliseconds(counts.latency) as f32,
        );
    }
}
