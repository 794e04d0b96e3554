//! One conversation with one peer: channels above, reliable packets below, the framing between.
//!
//! Promises: messages arrive as their channel promises, for as long as the connection lives; memory is bounded by the
//! channels' windows and queues; a packet is applied after it was read whole. Refuses: whatever the framing's
//! standard refuses ends the connection with a reason ([`End`]); datagrams that are not a packet are dropped and
//! counted.
//!
//! Everything here comes from a peer that proved its identity: invalid input is a violation, not noise.
//!
//! Trusted: nothing. An ack of a packet that was never sent ends the connection, and numbers are skipped so that
//! guesses are found out. The framing checks everything else before anything is applied, and the channels' windows
//! when it is; no more than some kilobytes of a packet's memory outlive it. A peer can make us send one packet a
//! tick, within the budget.

mod acks;
mod builder;
mod chunks;
mod config;
mod fragments;
mod held;
mod pending_ack;
mod queueing;
mod receive;
mod record;
mod scratch;
mod send;
mod settings;
mod yojimbo;

pub use config::{ConnectionConfig, End, Violation};
pub use scratch::Scratch;
pub use yojimbo::{Read, Unread};

use core::time::Duration;
use std::sync::Arc;

use self::pending_ack::PendingAck;
use self::record::{Carried, Record};
use super::ack_endpoint::{AckEndpoint, EndpointCounters};
use super::chunks::Chunks;
use super::congestion::{CongestionConfig, Controller};
use super::error::ConfigError;
use super::ledger::estimate::Stats;
use super::ledger::numbers::Skips;
use super::ledger::{AckRanges, Laps, Notification, Notifications, PacketNotification};
use super::message::Received;
use super::message_window::MessageWindow;
use super::pacing::Budget;
use super::packet::AckEndpointConfig;
use super::protocol::{MAX_CONTROL_BYTES, Protocol};
use super::stream::{ChannelStats, Streams};
use crate::store::{Lists, SmallBytes, prefetch};
use crate::time::Instant;

/// A packet goes out at least this often: acks, RTT and loss stay fresh, and the peer knows we live.
const KEEP_ALIVE: Duration = Duration::from_millis(100);

/// One conversation with one peer.
///
/// Memory, with the default windows and a lent [`Scratch`]: 4 KiB until the first packet, 5.5 KiB when idle, 13 KiB
/// at 60 packets a second each way of 850 bytes and a reliable message, an RTT of 100 ms and 10 % loss. Messages that
/// the application queues or doesn't read come on top, and partial packets while they come in.
#[derive(Debug)]
pub struct Connection {
    protocol: Arc<Protocol>,
    /// The ledger: of each packet sent its record, of those received which they are.
    endpoint: AckEndpoint<Record>,
    streams: Streams,
    chunks: Chunks,
    /// The contents of sent packets.
    carried: Lists<Carried>,
    notifications: Notifications,
    /// Numbers the peer's packets without wrapping: of the newest one.
    newest_arrival: u64,
    ranges: AckRanges,
    budget: Budget,
    /// Whether messages also yield to the line: see [`MessageWindow`].
    adaptive: bool,
    window: MessageWindow,
    /// None if nothing asks one: there are no chunks, and messages needn't.
    controller: Option<Box<dyn Controller>>,
    /// Bits of a packet that one datagram holds.
    datagram_bits: usize,
    /// The peer application's text about the end.
    detail: Option<Box<str>>,
    /// The peer has a packet with our hello.
    hello_acked: bool,
    /// A packet of the peer had a hello.
    hello_received: bool,
    pending_ack: PendingAck,
    /// When the application sent the first message since the tick's last [`Connection::transmit`].
    tick_open: Option<Instant>,
    /// Bytes that the layers below add to each datagram.
    datagram_overhead: usize,
    /// When the newest packet was handled, until our next packet reports the delay.
    newest_at: Option<Instant>,
    last_sent: Option<Instant>,
    /// When the peer last acked a packet.
    acked_at: Instant,
    /// When any packet went out.
    last_packet_at: Option<Instant>,
    skips: Option<Skips>,
    /// How far packets sent had come when packets of the peer came.
    sent_laps: Laps,
    /// When the first packet went out since the peer acked one.
    unanswered_since: Option<Instant>,
    /// That is too long ago for slices.
    silent: bool,
    /// The state of yojimbo's framing, if this connection uses it.
    yojimbo: Option<Box<yojimbo::YojimboState>>,
    // See `ConnectionConfig`.
    replayed: bool,
    /// Chunks had something to send, and acks or keep-alives took the last packet allowed: next time those wait.
    chunks_wait: bool,
    /// Slices had something to send, and chunk items took the packet: next time those wait.
    slices_wait: bool,
    /// The last packet of messages had no room for ack ranges: an ack goes alone.
    ranges_wait: bool,
    scratch: Scratch,
}

impl Connection {
    /// A new conversation.
    ///
    /// # Errors
    ///
    /// When a setting is out of its bounds.
    pub fn new(config: &ConnectionConfig, protocol: Arc<Protocol>) -> Result<Self, ConfigError> {
        let packets = &config.packets;
        let packets = protocol.yojimbo().map_or_else(|| packets.clone(), |yojimbo| yojimbo.packets(packets));
        check_packets(&packets, &protocol)?;
        // A packet is composed to the smaller of a datagram and the most that it may have.
        let datagram_bits = packets.fragment_above.min(packets.max_packet_size) * 8;
        Ok(Connection {
            endpoint: AckEndpoint::with_notes(packets.clone())?,
            streams: Streams::new(&protocol, config.pool.clone()),
            chunks: Chunks::new(packets.fragment_above.min(packets.max_packet_size)),
            carried: Lists::default(),
            notifications: Notifications::new(config.packet_notifications),
            newest_arrival: 0,
            ranges: AckRanges::default(),
            budget: Budget::new(config.budget.rate),
            adaptive: config.budget.adaptive,
            window: MessageWindow::default(),
            controller: controller(&config.congestion, &protocol)?,
            datagram_bits,
            detail: None,
            hello_acked: false,
            hello_received: false,
            pending_ack: PendingAck::default(),
            tick_open: None,
            datagram_overhead: config.packets.overhead as usize,
            newest_at: None,
            last_sent: None,
            acked_at: Instant::ZERO,
            last_packet_at: None,
            skips: config.skip_seed.filter(|_| protocol.yojimbo().is_none()).map(Skips::new),
            sent_laps: Laps::new(packets.acks.max_window),
            unanswered_since: None,
            silent: false,
            yojimbo: protocol.yojimbo().map(|_| Box::default()),
            replayed: config.replayed,
            chunks_wait: false,
            ranges_wait: false,
            slices_wait: false,
            scratch: Scratch::default(),
            protocol,
        })
    }

    /// How many packets counted as lost so far.
    pub(crate) fn packets_lost(&self) -> u64 {
        self.endpoint.acks().packets_lost()
    }

    /// Whether there is nothing to do for chunks in either direction.
    pub(crate) fn chunks_are_idle(&self) -> bool {
        self.chunks.is_idle()
    }

    /// The protocol that both sides share.
    pub(crate) fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The next notification about a tagged message, in packet order; for a message that no packet had room for, or
    /// that a newer value replaced, at once.
    pub fn poll_notification(&mut self) -> Option<Notification> {
        self.notifications.poll()
    }

    /// The next notification about a packet, in order: of the newest 1,024, if the configuration asks for them.
    pub fn poll_packet_notification(&mut self) -> Option<PacketNotification> {
        self.notifications.poll_packet()
    }

    /// Whether a message or a notification waits for the application.
    pub fn has_news(&self) -> bool {
        self.notifications.has_ready() || self.has_unread() || self.streams.have_received()
    }

    /// Takes the next message of a channel for the application.
    pub fn poll_received(&mut self, channel: usize) -> Option<Received> {
        self.streams.poll_received(channel)
    }

    /// Has the memory fetched that the next calls need, as far as it is not in the connection itself.
    pub(crate) fn prefetch(&self) {
        self.endpoint.acks().prefetch();
        self.streams.prefetch();
        self.carried.prefetch();
    }

    /// Has that part of the connection fetched that messages are queued in.
    pub(crate) fn prefetch_queues(&self) {
        prefetch(&self.protocol);
        prefetch(&self.streams);
        prefetch(&self.notifications);
        prefetch(&self.tick_open);
    }

    /// Has the streams fetched, to which it points.
    pub(crate) fn prefetch_streams(&self) {
        self.streams.prefetch();
    }

    /// Lends memory to the connection, to be taken back after its next calls by another call of this: connections that share
    /// theirs need less, and find it in the processor's cache.
    pub fn swap_scratch(&mut self, scratch: &mut Scratch) {
        core::mem::swap(&mut self.scratch, scratch);
    }

    /// Takes back the memory of a message's body, for the next ones.
    pub fn reclaim(&mut self, body: SmallBytes) {
        self.scratch.get().bodies.spares.reclaim(body);
    }

    // See `Acks::is_missing`.
    pub(crate) fn is_missing(&self, sequence: u16) -> bool {
        self.endpoint.acks().is_missing(sequence)
    }

    /// How the packets fare.
    pub fn stats(&self) -> Stats {
        self.endpoint.stats()
    }

    /// The counters of the packet layer, drops by name.
    pub fn counters(&self) -> EndpointCounters {
        self.endpoint.counters()
    }

    /// Counts of one channel.
    pub fn channel_stats(&self, channel: usize) -> ChannelStats {
        self.streams.stats(channel)
    }

    /// Whether the peer has shown that it would understand a farewell.
    pub fn has_received_hello(&self) -> bool {
        self.hello_received
    }

    /// The peer application's text for [`End::ByPeer`], if any: 1 to `MAX_DETAIL_BYTES` bytes.
    pub fn take_detail(&mut self) -> Option<Box<str>> {
        self.detail.take()
    }
}

/// The controller of a connection, if anything asks one.
fn controller(
    config: &CongestionConfig,
    protocol: &Protocol,
) -> Result<Option<Box<dyn Controller>>, ConfigError> {
    config.check()?;
    let is_asked = protocol.has_chunks() || config.paces_messages();
    is_asked.then(|| config.controller()).transpose()
}

/// Every message that a channel accepts must fit a packet with everything else in it; in yojimbo's framing the
/// protocol ensures that.
fn check_packets(packets: &AckEndpointConfig, protocol: &Protocol) -> Result<(), ConfigError> {
    let largest = protocol.channels().iter().map(|channel| channel.max_message_bytes).max().unwrap_or(0);
    let bytes = packets.max_packet_size;
    let fits = protocol.yojimbo().is_some() || bytes >= largest + MAX_CONTROL_BYTES;
    ConfigError::unless(
        fits,
        "max_packet_size",
        bytes,
        "at least 1024 above max_message_bytes of each channel",
    )
}
