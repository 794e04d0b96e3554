//! Statistics of connections.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::calls::CallCounters;
use super::columns::columns_class;
use super::hooks::HookCounters;
use super::refusals::RefusalCounters;
use crate::driver::DriverCounters;
use crate::endpoint::{ConnectionCounters, PeerStats};
use crate::netcode::Counters;
use crate::time::Duration;
use crate::transport::chunks::ChunkCounters;
use crate::transport::{self, PacketCounters, Protocol};

/// Counts of one channel of one connection since it began.
#[pyclass(frozen, get_all, module = "tickwire.connections")]
#[derive(Clone, Debug)]
pub(crate) struct ChannelStats {
    /// The channel's name.
    name: String,
    /// The channel's kind, such as ``reliable_ordered``.
    kind: &'static str,
    /// Messages now waiting to be sent or acked.
    queued: usize,
    /// Messages sent, each counted once.
    sent: u64,
    /// Times a message was sent again.
    resent: u64,
    /// Messages that the other side has acked.
    delivered: u64,
    /// Messages given up as lost; none of a reliable channel.
    lost: u64,
    /// Messages received, each counted once.
    received: u64,
    /// Messages received again, or too old to be of use, and dropped.
    duplicates: u64,
    /// Messages that the other side sent and that never arrived; redundant channels only.
    missed: u64,
    /// Messages dropped before they were sent or read: the queue was full, the tick's budget was used up, or a
    /// newer value replaced them.
    dropped: u64,
    /// Bytes of messages sent, resends included.
    bytes_sent: u64,
    /// Smoothed time from send to ack, in milliseconds; 0 before the first.
    latency_ms: f64,
}

/// Counts of the chunks of one connection since it began, both directions. A slice is a piece of a chunk that fills
/// a packet.
#[pyclass(frozen, get_all, module = "tickwire.transfer")]
#[derive(Clone, Debug)]
pub(crate) struct ChunkStats {
    /// Slices sent, each counted once.
    slices_sent: u64,
    /// Slices sent again.
    slices_resent: u64,
    /// Bytes of slices sent, resends included.
    bytes_sent: u64,
    /// Slices received, each counted once.
    slices_received: u64,
    /// Slices received again, and dropped.
    slice_duplicates: u64,
    /// Slices dropped because their chunk is unknown, ended or not yet accepted.
    slices_unexpected: u64,
    /// Slices dropped because their index or length doesn't fit the chunk.
    slices_invalid: u64,
    /// Offers dropped because they are out of order or contradict themselves.
    offers_invalid: u64,
    /// Packets dropped unacked because offers and withdrawals arrived too fast.
    offers_too_fast: u64,
    /// Chunks that were already here when they were offered, and so were not sent.
    chunks_reused: u64,
    /// Answers dropped because their chunk was never offered or has no such slices.
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

/// How one connection is doing. Times in milliseconds, rates in kilobits per second with UDP/IP headers.
#[pyclass(frozen, get_all, module = "tickwire.connections")]
#[derive(Debug)]
pub(crate) struct ConnectionStats {
    /// Round trip time, smoothed.
    rtt_ms: f64,
    /// The shortest of the last 128 round trips.
    rtt_min_ms: f64,
    /// The longest of the last 128 round trips.
    rtt_max_ms: f64,
    /// Smoothed difference of consecutive round trips.
    jitter_ms: f64,
    /// Share of the packets we sent that were lost, in percent.
    packet_loss_percent: f64,
    /// Share of the packets the other side sent that were lost, in percent.
    packet_loss_received_percent: f64,
    /// Rate of sending.
    sent_kbps: f64,
    /// Rate of receiving.
    received_kbps: f64,
    /// Rate of data acked by the other side.
    acked_kbps: f64,
    /// Packets sent.
    packets_sent: u64,
    /// Packets received.
    packets_received: u64,
    /// Packets that the other side has acked.
    packets_acked: u64,
    /// Packets given up as lost.
    packets_lost: u64,
    /// The budget, in bytes a second, UDP/IP headers included.
    budget_bytes_per_second: f64,
    /// The most bytes that may be sent at once after a pause.
    budget_burst_bytes: f64,
    /// Whether less is sent while the link is congested.
    budget_adaptive: bool,
    /// The current rate of chunks, in bytes a second, UDP/IP headers included; 0 without a channel of chunks.
    bulk_rate: f64,
    /// Counts of its chunks.
    chunks: ChunkStats,
    /// Counts by channel, in the protocol's order.
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
    /// Counts of all channels of all connections, as columns; each entry is one channel of one client.
    /// :class:`ChannelStats` describes the counts.
    ChannelSnapshot of SnapshotColumns {
        /// The client slot.
        slot: U32,
        /// The channel's index.
        channel: U8,
        /// Like :attr:`ChannelStats.queued`.
        queued: U64,
        /// Like :attr:`ChannelStats.sent`.
        sent: U64,
        /// Like :attr:`ChannelStats.resent`.
        resent: U64,
        /// Like :attr:`ChannelStats.delivered`.
        delivered: U64,
        /// Like :attr:`ChannelStats.lost`.
        lost: U64,
        /// Like :attr:`ChannelStats.received`.
        received: U64,
        /// Like :attr:`ChannelStats.dropped`.
        dropped: U64,
        /// Like :attr:`ChannelStats.bytes_sent`.
        bytes_sent: U64,
        /// Like :attr:`ChannelStats.latency_ms`.
        latency_ms: F32,
    }
}

/// The columns of [`ChannelSnapshot`].
#[derive(Debug, Default)]
pub(crate) struct SnapshotColumns {
    slot: Vec<u32>,
    channel: Vec<u8>,
    queued: Vec<u64>,
    sent: Vec<u64>,
    resent: Vec<u64>,
    delivered: Vec<u64>,
    lost: Vec<u64>,
    received: Vec<u64>,
    dropped: Vec<u64>,
    bytes_sent: Vec<u64>,
    latency_ms: Vec<f32>,
}

impl SnapshotColumns {
    pub(super) fn push(&mut self, slot: u32, channel: u8, counts: &transport::ChannelStats) {
        self.slot.push(slot);
        self.channel.push(channel);
        self.queued.push(counts.queued as u64);
        self.sent.push(counts.sent);
        self.resent.push(counts.resent);
        self.delivered.push(counts.delivered);
        self.lost.push(counts.lost);
        self.received.push(counts.received);
        self.dropped.push(counts.dropped);
        self.bytes_sent.push(counts.bytes_sent);
        self.latency_ms.push(milliseconds(counts.latency) as f32);
    }
}

/// All counters of an endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) driver: DriverCounters,
    pub(super) netcode: Counters,
    pub(super) packets: PacketCounters,
    pub(super) chunks: ChunkCounters,
    pub(super) refusals: RefusalCounters,
    pub(super) hooks: HookCounters,
    pub(super) connections: ConnectionCounters,
    pub(super) calls: CallCounters,
}

impl Counted {
    /// Layer, name and count.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let of = |layer| move |(name, count)| (layer, name, count);
        let driver =
            self.driver.udp.iter().map(of("socket")).chain(self.driver.link.iter().map(of("simulator")));
        let core = self.netcode.iter().map(of("netcode")).chain(self.packets.iter().map(of("packets")));
        let chunks = self.chunks.iter().map(of("chunks"));
        let refusals = self.refusals.iter().map(of("messages"));
        let connections = self.connections.iter().map(of("connections"));
        let carry = self.driver.carry.iter().flat_map(|carry| carry.iter()).map(of("carrying"));
        let driver = driver.chain(carry);
        let core = driver.chain(core).chain(chunks).chain(connections);
        let above = refusals.chain(self.hooks.iter().map(of("hooks")));
        core.chain(above).chain(self.calls.iter().map(of("calls")))
    }

    /// A dict by name, each name after its layer's.
    pub(super) fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = PyDict::new(py);
        for (layer, name, count) in self.iter() {
            counted.set_item(format!("{layer}.{name}"), count)?;
        }
        Ok(counted)
    }
}
