//! One conversation with one peer: channels above, reliable packets below, the framing between.
//!
//! Promises: messages arrive as their channel promises, for as long as the connection lives; memory is bounded by the
//! channels' windows and queues; a packet is applied after it was read whole. Refuses: whatever the framing's
//! standard refuses ends the connection with a reason ([`End`]); datagrams that are not a packet are dropped and
//! counted.
//!
//! Everything here comes from a peer that proved its identity: invalid input is a violation, not noise.
//!
//! Each part owns its state:
//!
//! | module | owns |
//! |---|---|
//! | `ledger` | packets sent and received: contents until their outcome is known, pending acks, numbers |
//! | `outbound` | limits on sending: budget, window, congestion controller |
//! | `held_packets` | packets that only code above the transport can read |
//! | `conversation` | these three, the peer's greeting and farewell, streams and chunks; sends written packets |
//! | `outcomes` | the effects of acks and losses on all of them |
//! | `framing` | the trait that `native` and `yojimbo` implement: when packets are composed, how they are written and read |
//!
//! Trusted: nothing. An ack of a packet that was never sent ends the connection, and numbers are skipped so that
//! guesses are found out. The framing checks everything else before anything is applied, and the channels' windows
//! when it is; no more than some kilobytes of a packet's memory outlive it. A peer can make us send one packet a
//! tick, within the budget.

mod config;
mod conversation;
mod framing;
mod held_packets;
mod ledger;
mod native;
mod outbound;
mod outcomes;
mod pending_ack;
mod queueing;
mod record;
mod scratch;
mod yojimbo;

pub use config::{ConnectionConfig, End, Violation};
pub use scratch::Scratch;
pub use yojimbo::{ReadPackets, UnreadPackets};

use core::time::Duration;
use std::sync::Arc;

use self::conversation::Conversation;
use self::framing::Framing;
use self::held_packets::HeldPackets;
use super::chunks::{ChunkError, Chunks, ContentHash, MAX_BURST_CHUNK_BYTES, Source};
use super::congestion::CongestionConfig;
use super::direct_tables::DirectTables;
use super::framing::CloseReason;
#[cfg(doc)]
use super::framing::MAX_DETAIL_BYTES;
use super::ledger::Notification;
use super::ledger::acks::PacketCounters;
use super::ledger::estimate::Stats;
use super::message::Received;
use super::outlet::Outlet;
use super::pacing::BudgetConfig;
use super::packet::fragment::Fragment;
use super::protocol::Protocol;
use super::stream::ChannelStats;
use super::stream::Fill;
use crate::limits::ConfigError;
use crate::store::{SmallBytes, prefetch};
use crate::time::Instant;

/// A packet goes out at least this often: acks, RTT and loss stay fresh, and the peer knows we live.
const KEEP_ALIVE: Duration = Duration::from_millis(100);

/// Bytes around a slice in its packet: header, control sections, entry, item.
const SLICE_OVERHEAD: usize = 20;

/// One conversation with one peer.
///
/// Memory, with the default windows and a lent [`Scratch`]: 4 KiB until the first packet, 5.5 KiB when idle, 13 KiB
/// at 60 packets a second each way of 850 bytes and a reliable message, an RTT of 100 ms and 10 % loss. Messages that
/// the application queues or doesn't read come on top, and partial packets while they come in.
#[derive(Debug)]
pub struct Connection {
    parts: Conversation,
    framing: Box<dyn Framing>,
}

impl Connection {
    /// A new conversation.
    ///
    /// # Errors
    ///
    /// When a setting is out of its bounds.
    pub fn new(config: &ConnectionConfig, protocol: Arc<Protocol>) -> Result<Self, ConfigError> {
        let mut config = config.clone();
        let framing = framing::open(&mut config, &protocol)?;
        Ok(Connection { parts: Conversation::new(&config, protocol)?, framing })
    }

    // --- receiving ---------------------------------------------------------------------------------------

    /// Takes a datagram of the peer. Its messages wait for [`Connection::poll_received`].
    ///
    /// The layer below gives it its number, and hands over each number at most once: it has a replay protection, and
    /// authenticates the number. Numbers may come in any order, and with gaps.
    ///
    /// # Errors
    /// The conversation is over, and why.
    pub fn handle_datagram(&mut self, now: Instant, number: u64, datagram: &[u8]) -> Result<(), End> {
        self.handle(now, number, datagram, None).map(drop)
    }

    /// Like [`Connection::handle_datagram`]. Messages that needn't wait are read into the lent tables, unless the packet
    /// is refused.
    ///
    /// # Errors
    ///
    /// The conversation is over, and why.
    pub fn handle_into(
        &mut self,
        now: Instant,
        number: u64,
        datagram: &[u8],
        tables: &mut dyn DirectTables,
    ) -> Result<(), End> {
        self.parts.streams.begin_direct(tables.begin(now));
        let handled = self.handle(now, number, datagram, Some(&mut *tables));
        if !matches!(handled, Ok(true)) {
            tables.cut();
        }
        handled.map(drop)
    }

    /// Takes a datagram of the peer; returns false if it was dropped.
    fn handle(
        &mut self,
        now: Instant,
        number: u64,
        datagram: &[u8],
        tables: Option<&mut dyn DirectTables>,
    ) -> Result<bool, End> {
        let Conversation { ledger, outbound, streams, .. } = &mut self.parts;
        ledger.pending_ack.grant(datagram.len() + outbound.datagram_overhead);
        let is_fragment = Fragment::is_fragment(datagram);
        if is_fragment {
            ledger.endpoint.reassembly.limit(streams.held.packets_limit());
        }
        let opened = ledger.endpoint.open_numbered(number, datagram);
        // Packets that arrive whole end partial ones.
        if is_fragment || streams.held.has_packets() {
            streams.held.set_packets(ledger.endpoint.reassembly.reserved_bytes());
        }
        // A datagram that is no packet is dropped, and counted by the endpoint.
        let Ok(Some(incoming)) = opened else { return Ok(false) };
        self.framing.handle(&mut self.parts, now, incoming, tables)
    }

    /// Takes the next message of a channel for the application.
    pub fn poll_received(&mut self, channel: usize) -> Option<Received> {
        self.parts.streams.poll_received(channel)
    }

    /// Whether a message waits for [`Connection::poll_received`].
    pub fn has_received(&self) -> bool {
        self.parts.streams.have_received()
    }

    /// Drops everything that waits for the application, which will never read it, and makes room. Chunk events are
    /// dropped too.
    pub fn discard_received(&mut self) {
        for channel in 0..self.parts.streams.len() {
            while let Some(received) = self.parts.streams.poll_received(channel) {
                self.reclaim(received.body);
            }
        }
        self.parts.inbound.held = HeldPackets::default();
        while self.parts.chunks.poll_event().is_some() {}
    }

    /// Takes back the memory of a message's body, for the next ones.
    pub fn reclaim(&mut self, body: SmallBytes) {
        self.parts.scratch.get().bodies.spares.reclaim(body);
    }

    // --- sending -----------------------------------------------------------------------------------------

    /// The layer below has used all numbers before this one. It sends each packet of the next calls under the number that
    /// the packet comes with: these rise, with gaps.
    pub fn skip_to(&mut self, number: u64) {
        self.parts.ledger.skip_to(number);
    }

    /// Appends the packets due now to `out`: once a tick.
    ///
    /// Returns when a tick has something to do here again, unless something arrives or is sent earlier: until then
    /// this needn't be called.
    pub fn transmit(&mut self, now: Instant, out: &mut dyn Outlet) -> Instant {
        self.transmit_tick(now, out, None)
    }

    /// Like [`Connection::transmit`]; `fill` is offered the room of each packet on the channels of
    /// [`Connection::want`].
    pub fn transmit_filled(&mut self, now: Instant, out: &mut dyn Outlet, fill: &mut dyn Fill) -> Instant {
        self.transmit_tick(now, out, Some(fill))
    }

    fn transmit_tick(
        &mut self,
        now: Instant,
        out: &mut dyn Outlet,
        fill: Option<&mut (dyn Fill + '_)>,
    ) -> Instant {
        self.parts.outbound.note_tick(now);
        self.framing.transmit(&mut self.parts, now, out, fill);
        let notifications = &mut self.parts.ledger.notifications;
        let streams = &mut self.parts.streams;
        streams.end_of_tick(|channel, tag| {
            notifications.push(Notification { channel: channel as u8, tag, delivered: false });
        });
        self.framing.next_tick(&mut self.parts)
    }

    /// Appends the packets that needn't wait for the tick's [`Connection::transmit`], for drivers that are awake
    /// between ticks: chunks at their pace, keep-alives, acks that have waited long enough. Messages only if the
    /// application has sent nothing since the last tick, so that a tick's messages share packets, or if the tick
    /// takes very long. Nothing is dropped for lack of room.
    ///
    /// Returns when to call again unless something arrives or is sent earlier: in a millisecond at the earliest.
    pub fn transmit_between(&mut self, now: Instant, out: &mut dyn Outlet) -> Instant {
        self.framing.transmit_between(&mut self.parts, now, out);
        self.framing.next_between(&mut self.parts, now)
    }

    /// When [`Connection::transmit_between`] has something to do, if one of the calls that transmit was just made.
    pub fn next_between(&mut self, now: Instant) -> Instant {
        self.framing.next_between(&mut self.parts, now)
    }

    /// When [`Connection::transmit`] has something to do, unless something arrives or is sent earlier; ZERO for at once.
    pub fn next_tick(&mut self) -> Instant {
        self.framing.next_tick(&mut self.parts)
    }

    /// The last packet of a conversation that this side ends: to be repeated, byte for byte. `detail`, of 1 to
    /// [`MAX_DETAIL_BYTES`] bytes without NUL, is for the peer's application. None if netcode's own disconnect is enough.
    pub fn farewell(&mut self, now: Instant, reason: CloseReason, detail: Option<&str>) -> Option<Vec<u8>> {
        self.framing.farewell(&mut self.parts, now, reason, detail)
    }

    /// Whether the peer is known to have everything queued here that will ever arrive: nothing waits to be sent or
    /// resent, and the packets with unreliable messages are acked or lost. Chunks don't count.
    pub fn is_drained(&self) -> bool {
        self.parts.streams.are_drained()
    }

    /// The conversation is over: every open message is reported as lost.
    pub fn abandon_all(&mut self) {
        let Conversation { ledger, streams, .. } = &mut self.parts;
        ledger.notifications.abandon_all();
        streams.abandon_all(|channel, tag| {
            ledger.notifications.push(Notification { channel: channel as u8, tag, delivered: false });
        });
    }

    // --- chunks -------------------------------------------------------------------------------------------

    /// Queues a chunk with this hash; returns the number that names it on this side. With `burst`, all of it may go
    /// out at once, at the risk that a slow link drops some: for small chunks, when nothing else matters.
    ///
    /// # Errors
    ///
    /// Why it can't be sent. Nothing was queued then.
    pub fn send_chunk(
        &mut self,
        now: Instant,
        source: Box<dyn Source>,
        hash: ContentHash,
        label: &str,
        burst: bool,
    ) -> Result<u64, ChunkError> {
        let parts = &mut self.parts;
        parts.protocol.chunk_channel().ok_or(ChunkError::NoChannel)?;
        let bytes = source.size();
        if burst && bytes > MAX_BURST_CHUNK_BYTES {
            return Err(ChunkError::Burst { bytes });
        }
        let number = parts.chunks.send(now, source, hash, label)?;
        if burst {
            let packets = bytes.div_ceil(parts.chunks.slice_bytes.into());
            let overhead = packets * (parts.outbound.datagram_overhead + SLICE_OVERHEAD) as u64;
            parts.outbound.begin_burst((bytes + overhead) as u32);
        }
        Ok(number)
    }

    /// The chunks of both directions.
    pub fn chunks(&self) -> &Chunks {
        &self.parts.chunks
    }

    /// The same, for the application's requests.
    pub fn chunks_mut(&mut self) -> &mut Chunks {
        &mut self.parts.chunks
    }

    /// Bytes a second at which chunks may go out now, all headers included.
    pub fn bulk_rate(&self) -> f64 {
        self.parts.outbound.bulk_rate()
    }

    // --- settings -----------------------------------------------------------------------------------------

    /// Acks of packets with only messages of this channel may wait this long for a packet to carry them: for features
    /// with acks of their own that send something that often. Zero: no ack waits.
    pub fn set_ack_patience(&mut self, channel: u8, patience: Duration) {
        self.parts.ledger.pending_ack.set_patience(channel, patience);
    }

    /// Whether [`Connection::transmit_between`] is called between ticks, too. Then acks that no message of a tick
    /// carries wait for a message that does, or until they are due between ticks.
    pub fn set_awake(&mut self, awake: bool) {
        self.parts.ledger.pending_ack.awake = awake;
    }

    /// How many bits of messages may go out now, before packet headers: the rest of the budget, and the line's known
    /// room. The last packet may overdraw.
    pub fn budget_bits(&mut self, now: Instant) -> usize {
        self.parts.outbound.message_bits(now)
    }

    /// How much may be sent.
    pub fn budget(&self) -> BudgetConfig {
        self.parts.outbound.budget()
    }

    /// Changes how much may be sent, from now on.
    ///
    /// # Errors
    /// When a number is out of its bounds. The old ones stay then.
    pub fn set_budget(&mut self, budget: BudgetConfig) -> Result<(), ConfigError> {
        self.parts.outbound.set_budget(budget)
    }

    /// Changes the congestion control of chunks, which keeps what is known of the link.
    ///
    /// # Errors
    /// When a number is out of its bounds. The old settings stay then.
    pub fn set_congestion(&mut self, congestion: CongestionConfig) -> Result<(), ConfigError> {
        self.parts.outbound.set_congestion(congestion)
    }

    // --- questions ---------------------------------------------------------------------------------------

    /// How many packets counted as lost so far.
    pub(crate) fn packets_lost(&self) -> u64 {
        self.parts.ledger.endpoint.acks.counters.lost
    }

    /// The newest packet of the peer.
    pub fn newest_received(&self) -> Option<u64> {
        self.parts.ledger.endpoint.acks.received.newest
    }

    /// Whether a packet of the peer, older than the newest one, hasn't arrived; true for those long ago.
    pub fn is_missing(&self, sequence: u64) -> bool {
        self.parts.ledger.endpoint.acks.received.is_missing(sequence)
    }

    /// When the newest packet that the peer acked was sent. The peer has our acks of all packets that had arrived by then.
    pub fn acked_sent_at(&self) -> Instant {
        self.parts.ledger.acked_sent_at
    }

    /// How the packets fare.
    pub fn stats(&self) -> Stats {
        self.parts.ledger.endpoint.acks.stats()
    }

    /// The longest of the last round trips; zero before the first.
    pub fn longest_rtt(&self) -> Duration {
        self.parts.ledger.endpoint.acks.longest_rtt()
    }

    /// The counters of the packet layer, drops by name.
    pub fn counters(&self) -> PacketCounters {
        self.parts.ledger.endpoint.acks.counters
    }

    /// Counts of one channel.
    pub fn channel_stats(&self, channel: usize) -> ChannelStats {
        self.parts.streams.stats(channel)
    }

    /// The next notification about a tagged message, in packet order; for a message that no packet had room for, or
    /// that a newer value replaced, at once.
    pub fn poll_notification(&mut self) -> Option<Notification> {
        self.parts.ledger.notifications.poll()
    }

    /// Whether something waits for [`Connection::poll_notification`].
    pub fn has_notification(&self) -> bool {
        self.parts.ledger.notifications.has_ready()
    }

    /// Whether a message or a notification waits for the application.
    pub fn has_news(&self) -> bool {
        self.has_notification() || self.has_unread() || self.has_received()
    }

    /// Whether the peer has shown that it would understand a farewell.
    pub fn has_received_hello(&self) -> bool {
        self.parts.inbound.hello_received
    }

    /// The peer application's text for [`End::ByPeer`], if any: 1 to `MAX_DETAIL_BYTES` bytes.
    pub fn take_detail(&mut self) -> Option<Box<str>> {
        self.parts.inbound.detail.take()
    }

    // --- memory ------------------------------------------------------------------------------------------

    /// Has the memory fetched that the next calls need, as far as it is not in the connection itself.
    pub(crate) fn prefetch(&self) {
        self.parts.ledger.prefetch();
        self.parts.streams.prefetch();
    }

    /// Has that part of the connection fetched that messages are queued in.
    pub(crate) fn prefetch_queues(&self) {
        prefetch(&self.parts.protocol);
        prefetch(&self.parts.streams);
        prefetch(&self.parts.ledger.notifications);
        prefetch(&self.parts.outbound);
    }

    /// Has the streams fetched, to which it points.
    pub(crate) fn prefetch_streams(&self) {
        self.parts.streams.prefetch();
    }

    /// Lends memory to the connection, to be taken back after its next calls by another call of this: connections that share
    /// theirs need less, and find it in the processor's cache.
    pub fn swap_scratch(&mut self, scratch: &mut Scratch) {
        core::mem::swap(&mut self.parts.scratch, scratch);
    }
}
