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
mod receive;
mod record;
mod scratch;
mod send;
mod yojimbo;

pub use config::{ConnectionConfig, End, Violation};
pub use scratch::Scratch;
pub use yojimbo::{Read, Unread};

use core::time::Duration;
use std::sync::Arc;

use self::pending_ack::PendingAck;
use self::record::{Carried, Record, notification};
use super::ack_endpoint::{AckEndpoint, EndpointCounters};
use super::candidates::{Attribute, Column};
use super::chunks::Chunks;
use super::congestion::{CongestionConfig, Controller};
use super::error::{ConfigError, SendError};
use super::ledger::estimate::Stats;
use super::ledger::numbers::Skips;
use super::ledger::{AckRanges, Laps, Notification, Notifications, PacketNotification};
use super::message::{Message, Received, SendOptions, Submission};
use super::message_window::MessageWindow;
use super::pacing::{Budget, BudgetConfig};
use super::packet::AckEndpointConfig;
use super::protocol::{MAX_CONTROL_BYTES, Protocol};
use super::stream::{ChannelStats, Streams};
use crate::store::{Lists, SmallBytes, prefetch};
use crate::time::Instant;
use crate::wire::Encoded;

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
            streams: Streams::new(&protocol),
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

    /// Queues a message for the next packets.
    ///
    /// # Errors
    ///
    /// Why the channel refuses it. Nothing was queued then.
    pub fn send(
        &mut self,
        now: Instant,
        channel: usize,
        message: Message,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let payload = self.protocol.channels().get(channel).is_some_and(|config| config.kind.is_payload());
        if payload { Err(SendError::WrongKind) } else { self.submit(now, channel, message, options) }
    }

    /// Queues opaque bits on a payload channel. Their notification has this `tag`.
    ///
    /// # Errors
    ///
    /// Why the channel refuses them. Nothing was queued then.
    pub fn send_payload(
        &mut self,
        now: Instant,
        channel: usize,
        payload: Encoded,
        tag: u32,
    ) -> Result<(), SendError> {
        let messages = self.protocol.channels().get(channel).is_some_and(|config| !config.kind.is_payload());
        if messages {
            return Err(SendError::WrongKind);
        }
        let message = Message::new(0, payload);
        self.submit(now, channel, message, SendOptions { key: 0, tag, notify: true })
    }

    fn submit(
        &mut self,
        now: Instant,
        channel: usize,
        message: Message,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let channels = self.streams.len();
        if channel >= channels {
            return Err(SendError::NoChannel { channel, channels });
        }
        self.protocol.check_bytes(channel, message.encoded.max_bits().div_ceil(8))?;
        self.check_yojimbo(channel, &message)?;
        self.protocol.check_type(channel, message.message_type)?;
        let sending = self.streams.sending(channel).ok_or(SendError::WrongKind)?;
        let replaced = sending.send(Submission { message, at: now, options })?;
        self.tick_open.get_or_insert(now);
        self.notifications.push(notification(channel as u8, replaced, false));
        Ok(())
    }

    /// A feature above has data for a payload channel, if a packet has room for at least this many bits:
    /// [`Connection::transmit_filled`] asks it until it has no more. [`Connection::poll_notification`] reports each
    /// record, with the record as the tag.
    ///
    /// # Errors
    ///
    /// When it is no payload channel, or `least_bits` is more than the channel allows, or than half a datagram holds:
    /// the rest of a packet may take the other half.
    pub fn want(&mut self, channel: usize, least_bits: usize) -> Result<(), SendError> {
        let channels = self.streams.len();
        let config =
            self.protocol.channels().get(channel).ok_or(SendError::NoChannel { channel, channels })?;
        if !config.kind.is_payload() {
            return Err(SendError::WrongKind);
        }
        let max_bits = self.protocol.cost(channel).payload_in(self.datagram_bits / 2).unwrap_or(0);
        if least_bits > max_bits {
            let (bytes, max_bytes) = (least_bits.div_ceil(8), max_bits / 8);
            return Err(SendError::TooLarge { bytes, max_bytes });
        }
        if self.streams.want(channel, least_bits) { Ok(()) } else { Err(SendError::WrongKind) }
    }

    /// Acks of packets with messages of this channel only may wait so long for a packet to carry them: for features
    /// with acks of their own that say something that often. Zero: none waits.
    pub fn set_ack_patience(&mut self, channel: u8, patience: Duration) {
        self.pending_ack.set_patience(channel, patience);
    }

    /// Whether [`Connection::transmit_between`] is called between ticks, too: then acks that no message of a tick
    /// carries wait for one that does, or until they are due between ticks.
    pub fn set_awake(&mut self, awake: bool) {
        self.pending_ack.set_awake(awake);
    }

    /// How many bits of messages may go out now, before packet headers: the rest of the budget, and the line's known
    /// room. The last packet may overdraw.
    pub fn budget_bits(&mut self, now: Instant) -> usize {
        self.budget.refill(now);
        let line = if self.adaptive { self.window.room() } else { f64::INFINITY };
        (self.budget.level().min(line).max(0.0) * 8.0) as usize
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

    /// How many unordered messages are queued.
    pub(crate) fn candidates(&self) -> usize {
        self.streams.candidates()
    }

    /// Appends this attribute of each of them, channel by channel, to be scored.
    pub(crate) fn describe(&self, now: Instant, slot: u32, attribute: Attribute, column: &mut Column) {
        self.streams.describe(now, slot, attribute, column);
    }

    /// Sends those messages in the order of their scores, highest first within their channel, in the next
    /// [`Connection::transmit`]. Scores are in the order of [`Connection::describe`]; nothing may be sent in between.
    pub(crate) fn prioritize(&mut self, scores: &mut &[f32]) {
        self.streams.prioritize(scores);
    }

    /// How much may be sent.
    pub fn budget(&self) -> BudgetConfig {
        BudgetConfig { rate: self.budget.config(), adaptive: self.adaptive }
    }

    /// Changes how much may be sent, from now on.
    ///
    /// # Errors
    /// When a number is out of its bounds. The old ones stay then.
    pub fn set_budget(&mut self, budget: BudgetConfig) -> Result<(), ConfigError> {
        budget.rate.check()?;
        self.budget.reconfigure(budget.rate);
        self.adaptive = budget.adaptive;
        Ok(())
    }

    /// Changes the congestion control of chunks. Settings of the same kind keep what is known of the link; another
    /// kind starts afresh, and ignores packets in flight.
    ///
    /// # Errors
    ///
    /// When a number is out of its bounds. The old settings stay then.
    pub fn set_congestion(&mut self, congestion: CongestionConfig) -> Result<(), ConfigError> {
        congestion.check()?;
        if !self.controller.as_mut().is_some_and(|controller| controller.reconfigure(&congestion)) {
            self.controller = controller(&congestion, &self.protocol)?;
            let acks = self.endpoint.acks_mut();
            let next = acks.next_sequence();
            for back in 1..=acks.sent_window() {
                if let Some(record) = acks.note_mut(next.wrapping_sub(back as u16)) {
                    record.stamp = None;
                }
            }
        }
        Ok(())
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
