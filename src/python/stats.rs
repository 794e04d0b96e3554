//! Statistics of connections.

use crate::python::prelude::*;

use crate::endpoint::PeerStats;
use crate::transport::chunks::ChunkCounters;
use crate::transport::{self, Protocol};

#[pyclass(frozen, module = "tickwire.connections")]
#[derive(Clone, Debug)]
pub(crate) struct ChannelStats {
    name: String,
    kind: &'static str,
    counts: transport::ChannelStats,
}

#[pymethods]
impl ChannelStats {
    properties! {
        name: &str = &self.name;
        kind: &'static str = self.kind;
        queued: usize = self.counts.queued;
        sent, resent, delivered, lost, received, duplicates, missed, dropped, bytes_sent: u64 of
            self.counts;
        latency_ms: f64 = milliseconds(self.counts.latency);
    }

    fn __repr__(&self) -> String {
        let transport::ChannelStats { sent, resent, received, queued, .. } = self.counts;
        let (name, kind) = (&self.name, self.kind);
        format!(
            "<ChannelStats {name:?} {kind}: {sent} sent, {resent} resent, {received} received, {queued} queued>"
        )
    }
}

#[pyclass(frozen, module = "tickwire.transfer")]
#[derive(Clone, Debug)]
pub(crate) struct ChunkStats(ChunkCounters);

#[pymethods]
impl ChunkStats {
    properties! {
        slices_sent, slices_resent, bytes_sent, slices_received, slice_duplicates, slices_unexpected,
            slices_invalid, offers_invalid, offers_too_fast, chunks_reused, answers_invalid: u64 of
            self.0;
    }

    fn __repr__(&self) -> String {
        let ChunkCounters { slices_sent, slices_resent, slices_received, .. } = &self.0;
        format!("<ChunkStats: {slices_sent} slices sent, {slices_resent} resent, {slices_received} received>")
    }
}

#[pyclass(frozen, module = "tickwire.connections")]
#[derive(Debug)]
pub(crate) struct ConnectionStats {
    peer: PeerStats,
    channels: Vec<ChannelStats>,
}

#[pymethods]
impl ConnectionStats {
    properties! {
        rtt_ms: f64 = self.peer.packets.rtt;
        rtt_min_ms: f64 = self.peer.packets.rtt_min;
        rtt_max_ms: f64 = self.peer.packets.rtt_max;
        jitter_ms: f64 = self.peer.packets.jitter;
        packet_loss_percent: f64 = self.peer.packets.packet_loss;
        packet_loss_received_percent: f64 = self.peer.packets.packet_loss_received;
        sent_kbps, received_kbps, acked_kbps: f64 of self.peer.packets;
        packets_sent: u64 = self.peer.counters.sent;
        packets_received: u64 = self.peer.counters.received;
        packets_acked: u64 = self.peer.counters.acked;
        packets_lost: u64 = self.peer.counters.lost;
        budget_bytes_per_second: f64 = self.peer.budget.rate.bytes_per_second;
        budget_burst_bytes: f64 = self.peer.budget.rate.burst_bytes;
        budget_adaptive: bool = self.peer.budget.adaptive;
        bulk_rate: f64 = self.peer.bulk_rate;
        chunks: ChunkStats = ChunkStats(self.peer.chunks);
        channels: Vec<ChannelStats> = self.channels.clone();
        __repr__: String = format!("<ConnectionStats {}>", shown(&self.peer.packets));
    }
}

impl ConnectionStats {
    pub(super) fn new(peer: PeerStats, protocol: &Protocol) -> Self {
        let channels = protocol.channels().iter().zip(&peer.channels).map(|(config, counts)| ChannelStats {
            name: config.name.clone(),
            kind: config.kind.name(),
            counts: *counts,
        });
        ConnectionStats { channels: channels.collect(), peer }
    }
}

/// Shows a connection's numbers.
pub(super) fn shown(stats: &transport::PacketStats) -> String {
    let transport::PacketStats { rtt, jitter, packet_loss: loss, sent_kbps: up, received_kbps: down, .. } =
        stats;
    format!(
        "rtt={rtt:.1} ms, jitter={jitter:.1} ms, loss={loss:.1} %, {up:.1} kbit/s up, {down:.1} kbit/s down"
    )
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
        let transport::ChannelStats { queued, sent, resent, delivered, lost, received, dropped, .. } =
            *counts;
        let (latency, bytes) = (milliseconds(counts.latency) as f32, counts.bytes_sent);
        let queued = queued as u64;
        self.push_row(
            slot, channel, queued, sent, resent, delivered, lost, received, dropped, bytes, latency,
        );
    }
}
