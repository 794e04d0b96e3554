//! One conversation with one peer: channels above, reliable packets below, the framing between.
//!
//! Promises: what is put into a channel arrives as the channel promises, for as long as the connection
//! lives; memory is bounded by the channels' windows and queues; a packet is applied after it was read whole.
//! Refuses: whatever the framing's standard refuses ends the connection with a reason ([`End`]); datagrams that
//! are not a packet are dropped and counted.
//!
//! Everything here comes from a peer that proved its identity: what it sends wrong is a violation, not noise.
//!
//! Trusted: nothing. An ack of what was never sent ends the connection, and numbers are left out so that guesses are found
//! out. All else is checked by the framing before anything is applied and by the channels' windows when it is; no memory of
//! one packet outlives it but some kilobytes. A peer can make us send one packet a tick, within the budget.

mod fragments;
mod held;
mod yojimbo;

pub use yojimbo::{Read, Unread};

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use super::ack_endpoint::{AckEndpoint, AckEndpointConfig, EndpointCounters};
use super::ack_ranges::{AckRanges, Reported};
use super::acks::{Acked, ConfigError, LossBound, RttSampling};
use super::candidates::{Attribute, Column, Wanted};
use super::channel::{
    self, ChannelStats, CreditMark, Fate, Moment, ResendTimer, Selected, SendError, Submission,
    WindowViolation,
};
use super::chunks::{
    Assembly, ChunkCounters, ChunkError, ChunkEvent, Chunks, ContentHash, Offer, Progress, Rejection,
    Selection, Source,
};
use super::congestion::{CongestionConfig, Controller, RoundTrip, SentStamp};
use super::estimate::Stats;
use super::fates::{Fates, Notification, PacketFate};
#[cfg(doc)]
use super::framing::MAX_DETAIL_BYTES;
use super::framing::native::{self, Control, Packet, ReadContext};
use super::framing::{CloseReason, Fault, Refusal, cost};
use super::header::{self, Header};
use super::in_flight::InFlight;
use super::laps::Laps;
use super::message::{Bodies, Message, Received};
use super::message_window::MessageWindow;
use super::numbers::{self, Skips};
use super::pacing::{Budget, BudgetConfig};
use super::peer_clock::ReceiveTime;
use super::protocol::{ChannelConfig, MAX_CONTROL_BYTES, Protocol};
use super::stream_manager::{Lane, StreamManager, busy};
use crate::limits::MAX_DATAGRAM;
use crate::store::sequence::distance;
use crate::store::{List, Lists, Packets, SmallBytes};
use crate::time::Instant;
use crate::wire::{BitWriter, Encoded};

/// A packet goes out at least this often: acks, RTT and loss stay fresh, and the peer knows we live.
const KEEP_ALIVE: Duration = Duration::from_millis(100);

/// A peer that has acked nothing for so long gets no more slices until it does: it may be gone.
const SILENCE: Duration = Duration::from_secs(1);

/// How long an ack may wait between ticks for a packet to ride in: longer than a tick of 60 Hz and its jitter, so that
/// a game's own packets carry it; told to the peer, so no round trip looks longer for it.
const ACK_DELAY: Duration = Duration::from_millis(25);

/// So many packets aren't kept waiting for their ack: as many as the ack bits of one header cover.
const MOST_UNACKED: u32 = 32;

/// A game that sent something so long ago and didn't flush since isn't about to: what it sent goes out.
const LONGEST_TICK: Duration = Duration::from_millis(100);

/// Between ticks, connections needn't be looked at more often, unless something arrives.
const GRAIN: Duration = Duration::from_millis(1);

/// A packet that does nothing but ack takes no more bytes than what it acks, so that nobody is made to send more
/// than he is sent; what was received and not acked counts up to two datagrams.
const MOST_PAID_FOR: usize = 2 * MAX_DATAGRAM;

/// The largest chunk that may go out at once: the article has some 100 KiB, and warns of more.
pub(super) const MAX_BURST_CHUNK_BYTES: u64 = 256 * 1024;

/// Bytes around a slice in its packet: header, control sections, entry, item.
const SLICE_OVERHEAD: usize = 20;

/// What of a packet's memory is kept for the next one: enough for what games send, so that a peer can't make each
/// connection hold the most that a packet may take.
const KEPT_MESSAGES: usize = 64;
const KEPT_ROW_BYTES: usize = 4096;

/// Settings of one connection's transport.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Packets, acks, fragments.
    pub packets: AckEndpointConfig,
    /// How much may be sent in messages.
    pub budget: BudgetConfig,
    /// How fast chunks may go out beside them.
    pub congestion: CongestionConfig,
    /// Whether the fates of packets are kept for [`Connection::poll_packet_fate`].
    pub packet_fates: bool,
    /// Leaves out numbers of packets now and then, so that a peer that acks what it has not received is found out: by this
    /// seed, which the peer must not know. None: no numbers are left out. A server gives each connection its own.
    pub skip_seed: Option<u64>,
    /// Whether the peer may speak of packets and messages that were never sent: those of the game whose capture is replayed.
    pub replayed: bool,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        let mut packets = AckEndpointConfig::large();
        packets.acks.early_loss = true;
        packets.acks.loss_bound = LossBound::Rtt { multiple: 2.0, at_least: LossBound::DEFAULT_TIME };
        ConnectionConfig {
            packets,
            budget: BudgetConfig::default(),
            congestion: CongestionConfig::default(),
            packet_fates: false,
            skip_seed: None,
            replayed: false,
        }
    }
}

/// Why a connection is over, seen from this side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer said so.
    ByPeer(CloseReason),
    /// The sides' protocols differ.
    Mismatch,
    /// The peer broke the protocol: how.
    Violation(Violation),
}

/// How a peer broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A packet's bits.
    Packet(Refusal),
    /// A message or credit beyond the window that both sides know.
    Window,
    /// Fragments of a message that don't fit together.
    Fragments,
    /// An ack of a packet that was never sent.
    Ack,
    /// An opaque message that its own code refused: why.
    Message(String),
    /// What yojimbo's framing refuses.
    Yojimbo(Fault),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Packet(refusal) => refusal.fmt(f),
            Violation::Window => f.write_str("a message or credit is beyond the receive window"),
            Violation::Fragments => f.write_str("the fragments of a message don't fit together"),
            Violation::Ack => f.write_str("a packet is acked that was never sent"),
            Violation::Message(why) => write!(f, "a message is refused by its own serialize: {why}"),
            Violation::Yojimbo(fault) => fault.fmt(f),
        }
    }
}

impl From<WindowViolation> for End {
    fn from(_: WindowViolation) -> Self {
        End::Violation(Violation::Window)
    }
}

/// What a message is sent with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// On latest channels: what the message is the value of.
    pub key: u32,
    /// The application's own name for it: notifications and candidates carry it.
    pub tag: u32,
    /// Have the message's fate told: see [`Connection::poll_notification`].
    pub notify: bool,
}

/// What the packet that was just written is.
struct Launched {
    hello: bool,
    /// It carries messages.
    messages: bool,
    /// What its ack ranges told.
    reported: Reported,
    carried: List,
}

/// What to do when a packet is acked.
#[derive(Debug)]
struct SentPacket {
    hello: bool,
    stamp: SentStamp,
    /// Its bytes on the wire if it carries messages, or 0.
    message_bytes: u32,
    /// What its ack ranges told.
    reported: Reported,
    carried: List,
}

#[derive(Clone, Copy, Debug)]
enum Carried {
    /// So many messages of a channel, whose marks follow each other.
    Messages {
        channel: u8,
        count: u16,
        first: u64,
    },
    Credit {
        channel: u8,
        mark: CreditMark,
    },
    Chunk(super::chunks::Carried),
    Fragment {
        channel: u8,
        mark: u64,
        index: u16,
    },
}

/// One conversation with one peer.
///
/// Memory, with the default windows: 7 KiB until the first packet, 9 KiB when idle however long,
/// 20 KiB at 60 packets a second each way of 850 bytes and a reliable message, an RTT of 100 ms and 10 % loss.
/// What the application queues or doesn't read comes on top, and partial packets while they come in. Connections that share
/// their [`Scratch`] take less.
#[derive(Debug)]
pub struct Connection {
    protocol: Arc<Protocol>,
    endpoint: AckEndpoint,
    lanes: Vec<Lane>,
    streams: StreamManager,
    chunks: Chunks,
    /// A message that needs a packet of its own was due when the last packet was composed.
    large_due: bool,
    sent: InFlight<SentPacket>,
    /// What they carry.
    carried: Lists<Carried>,
    fates: Fates,
    /// Numbers the peer's packets without wrapping: of the newest one.
    newest_arrival: u64,
    ranges: AckRanges,
    budget: Budget,
    /// Whether messages yield to the line besides: see [`MessageWindow`].
    adaptive: bool,
    window: MessageWindow,
    /// Messages were due, and the window had no room for them.
    messages_wait: bool,
    last_slice: Option<Instant>,
    controller: Box<dyn Controller>,
    /// Bits of a packet that one datagram holds.
    datagram_bits: usize,
    /// What the peer's application said of its end of the conversation.
    detail: Option<Box<str>>,
    /// The peer has a packet with our hello.
    hello_known: bool,
    /// A packet of the peer had a hello.
    greeted: bool,
    owed: Owed,
    /// When the application sent the first message since the tick's last [`Connection::transmit`].
    tick_open: Option<Instant>,
    /// Bytes of datagrams received that no ack was sent for: see [`MOST_PAID_FOR`].
    paid_for: usize,
    /// Bytes that the layers below add to each datagram.
    datagram_overhead: usize,
    /// When the newest packet was handled, until our next packet has told the delay.
    newest_at: Option<Instant>,
    last_sent: Option<Instant>,
    /// When the peer last acked a packet.
    acked_at: Instant,
    /// When any packet went out.
    last_launch: Option<Instant>,
    skips: Option<Skips>,
    /// How far packets sent had come when packets of the peer came.
    sent_laps: Laps,
    /// When the first packet went out since the peer acked one.
    unanswered_since: Option<Instant>,
    /// That is too long ago for slices.
    silent: bool,
    /// What only yojimbo's framing needs.
    yojimbo: Box<yojimbo::State>,
    /// See [`ConnectionConfig`].
    replayed: bool,
    /// Chunks had something to say, and acks or keep-alives had taken the last packet that might go: next time they wait.
    chunks_wait: bool,
    /// Likewise slices, of which what is to be said of chunks took it.
    slices_wait: bool,
    /// The last packet of messages had no room for ack ranges: an ack goes by itself.
    ranges_wait: bool,
    scratch: Box<Scratch>,
}

/// What the peer sent since our last packet that it wants acked.
#[derive(Debug, Default)]
struct Owed {
    packets: u32,
    /// When the first of them came.
    since: Instant,
    /// An ack alone would have been more than what it acks.
    unpaid: bool,
}

impl Owed {
    fn count(&mut self, now: Instant) {
        if self.packets == 0 {
            self.since = now;
        }
        self.packets = self.packets.saturating_add(1);
    }

    /// When an ack is due that no other packet carried.
    fn due_at(&self) -> Instant {
        match self.packets {
            0 => Instant::NEVER,
            _ if self.unpaid => Instant::NEVER,
            MOST_UNACKED.. => Instant::ZERO,
            _ => self.since + ACK_DELAY,
        }
    }
}

/// Memory used again by each packet, of whichever connection: what is in it then means nothing any more.
#[derive(Debug, Default)]
pub struct Scratch {
    writer: BitWriter,
    control: Control,
    packet: Packet,
    bodies: Bodies,
    acked: Vec<Acked>,
    lost: Vec<u16>,
    credits: Vec<(u8, CreditMark)>,
    notifications: Vec<Notification>,
    stamps: Vec<(SentStamp, bool)>,
    chunk: Selection,
    /// See [`SentPacket`].
    reported: Reported,
}

impl Connection {
    /// A conversation in which nothing was said.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn new(config: &ConnectionConfig, protocol: Arc<Protocol>) -> Result<Self, ConfigError> {
        let credit = protocol.yojimbo().is_none();
        let lane = |config: &ChannelConfig| Lane::new(channel::open(config, credit), config.share);
        let packets = &config.packets;
        let packets = protocol.yojimbo().map_or_else(|| packets.clone(), |yojimbo| yojimbo.packets(packets));
        check_packets(&packets, &protocol)?;
        // A packet is composed to the smaller of a datagram and the most that it may have.
        let datagram_bits = packets.fragment_above.min(packets.max_packet_size) * 8;
        Ok(Connection {
            endpoint: AckEndpoint::new(packets.clone())?,
            lanes: protocol.channels().iter().map(lane).collect(),
            streams: StreamManager::default(),
            chunks: Chunks::new(packets.fragment_above.min(packets.max_packet_size)),
            large_due: false,
            sent: InFlight::default(),
            carried: Lists::default(),
            fates: Fates::new(config.packet_fates),
            newest_arrival: 0,
            ranges: AckRanges::default(),
            budget: Budget::new(config.budget.rate),
            adaptive: config.budget.adaptive,
            window: MessageWindow::default(),
            messages_wait: false,
            last_slice: None,
            controller: config.congestion.controller()?,
            datagram_bits,
            detail: None,
            hello_known: false,
            greeted: false,
            owed: Owed::default(),
            tick_open: None,
            paid_for: 0,
            datagram_overhead: config.packets.overhead as usize,
            newest_at: None,
            last_sent: None,
            acked_at: Instant::ZERO,
            last_launch: None,
            skips: config.skip_seed.filter(|_| protocol.yojimbo().is_none()).map(Skips::new),
            sent_laps: Laps::new(packets.acks.max_window),
            unanswered_since: None,
            silent: false,
            yojimbo: Box::default(),
            replayed: config.replayed,
            chunks_wait: false,
            ranges_wait: false,
            slices_wait: false,
            scratch: Box::default(),
            protocol,
        })
    }

    /// Queues a message for the next packets.
    ///
    /// # Errors
    /// Why the channel doesn't take it. Nothing was queued then.
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

    /// Queues opaque bits on a payload channel. Their fate is told under `tag`.
    ///
    /// # Errors
    /// Why the channel doesn't take them. Nothing was queued then.
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
        let channels = self.lanes.len();
        if channel >= channels {
            return Err(SendError::NoChannel { channel, channels });
        }
        self.protocol.check_bytes(channel, message.encoded.max_bits().div_ceil(8))?;
        self.check_yojimbo(channel, &message)?;
        let lane = &mut self.lanes[channel];
        let replaced = lane.touch().send(Submission { message, at: now, options })?;
        self.tick_open.get_or_insert(now);
        self.fates.tell(notification(channel as u8, replaced, false));
        Ok(())
    }

    /// What became of a message sent with a tag, in the order of the packets; of one that no packet had room for, or that
    /// a newer value replaced, at once.
    pub fn poll_notification(&mut self) -> Option<Notification> {
        self.fates.poll()
    }

    /// What became of a packet, in the order of the packets: of the newest 1,024, if the configuration says so.
    pub fn poll_packet_fate(&mut self) -> Option<PacketFate> {
        self.fates.poll_packet()
    }

    /// How many messages wait whose order is free.
    pub(crate) fn candidates(&self) -> usize {
        self.lanes.iter().map(|lane| lane.channel().candidates()).sum()
    }

    /// Appends what is wanted of each of them, channel by channel, for someone to score.
    pub(crate) fn describe(&self, now: Instant, slot: u32, attribute: Attribute, column: &mut Column) {
        for (channel, lane) in self.lanes.iter().enumerate() {
            lane.channel().describe(&Wanted { attribute, now, slot, channel: channel as u8 }, column);
        }
    }

    /// Has those messages go out in the order of their scores, highest first within their channel, in the next
    /// [`Connection::transmit`]. Scores come in the order of [`Connection::describe`], with nothing sent in between.
    pub(crate) fn prioritize(&mut self, scores: &mut &[f32]) {
        self.lanes.iter_mut().for_each(|lane| lane.touch().prioritize(scores));
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

    /// Whether a message or a fate waits for the application.
    pub fn has_news(&self) -> bool {
        self.fates.has_told() || self.has_unread() || self.lanes.iter().any(|lane| lane.has_received())
    }

    /// Takes the next message of a channel for the application.
    pub fn poll_received(&mut self, channel: usize) -> Option<Received> {
        self.lanes[channel].poll_received()
    }

    /// Lends memory to the connection, to be taken back after its next calls by another call of this: connections that share
    /// theirs need less, and find it in the processor's cache.
    pub fn swap_scratch(&mut self, scratch: &mut Box<Scratch>) {
        core::mem::swap(&mut self.scratch, scratch);
    }

    /// Takes the memory of a message's body that nobody needs any more, for the next ones.
    pub fn reclaim(&mut self, body: SmallBytes) {
        self.scratch.bodies.spares.reclaim(body);
    }

    /// How the packets fare.
    pub fn stats(&self) -> Stats {
        self.endpoint.stats()
    }

    /// What the packet layer did, drops by name.
    pub fn counters(&self) -> EndpointCounters {
        self.endpoint.counters()
    }

    /// Counts of one channel.
    pub fn channel_stats(&self, channel: usize) -> ChannelStats {
        self.lanes[channel].channel().stats()
    }

    // --- chunks ------------------------------------------------------------------------------------------

    /// Queues a chunk, whose content has this hash; gives the number that names it on this side. With `burst`, all
    /// of it may go out at once, at the risk that a slow link drops some: for small chunks, when nothing else matters.
    ///
    /// # Errors
    /// Why it can't be sent. Nothing was queued then.
    pub fn send_chunk(
        &mut self,
        now: Instant,
        source: Box<dyn Source>,
        hash: ContentHash,
        label: &str,
        burst: bool,
    ) -> Result<u64, ChunkError> {
        self.protocol.chunk_channel().ok_or(ChunkError::NoChannel)?;
        let bytes = source.size();
        if burst && bytes > MAX_BURST_CHUNK_BYTES {
            return Err(ChunkError::Burst { bytes });
        }
        let number = self.chunks.send(now, source, hash, label)?;
        if burst {
            let packets = bytes.div_ceil(self.chunks.slice_bytes().into())
                * (self.datagram_overhead + SLICE_OVERHEAD) as u64;
            self.controller.begin_burst(now, (bytes + packets) as u32);
        }
        Ok(number)
    }

    /// Bytes a second at which chunks may go out now, all headers included.
    pub fn bulk_rate(&self) -> f64 {
        self.controller.rate()
    }

    /// Ends a chunk of ours, wherever it is; false when it is over already.
    pub fn cancel_chunk(&mut self, number: u64) -> bool {
        self.chunks.cancel(number)
    }

    /// Whether the peer's chunks before this one are all known: places are to be given in this order.
    pub(crate) fn is_in_line(&self, id: u16) -> bool {
        self.chunks.is_in_line(id)
    }

    /// Takes a chunk that the peer offers, into what is there of it; false when it is over already.
    pub fn accept_chunk(&mut self, id: u16, assembly: Assembly) -> bool {
        self.chunks.accept(id, assembly)
    }

    /// Ends a chunk of the peer, offered or under way; false when it is over already.
    pub fn reject_chunk(&mut self, id: u16, rejection: Rejection) -> bool {
        self.chunks.reject(id, rejection)
    }

    /// What happened to a chunk.
    pub fn poll_chunk_event(&mut self) -> Option<ChunkEvent> {
        self.chunks.poll_event()
    }

    /// How far a chunk of ours is; None when it is over.
    pub fn chunk_progress(&self, now: Instant, number: u64) -> Option<Progress> {
        self.chunks.progress(now, number)
    }

    /// The chunks of the peer that are offered or under way.
    pub fn incoming_chunks(&self, now: Instant) -> impl Iterator<Item = (&Offer, Progress)> {
        self.chunks.incoming(now)
    }

    /// Ends all chunks, because the connection is over: events tell of them. Gives what is there of the peer's.
    pub fn finish_chunks(&mut self) -> Vec<Assembly> {
        self.chunks.finish()
    }

    /// What chunks cost, and what of the peer's was dropped.
    pub fn chunk_counters(&self) -> ChunkCounters {
        self.chunks.counters()
    }

    // --- receiving ---------------------------------------------------------------------------------------

    /// Takes a datagram of the peer.
    ///
    /// # Errors
    /// The conversation is over, and why.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Result<(), End> {
        let bytes = datagram.len() + self.datagram_overhead;
        self.paid_for = (self.paid_for + bytes).min(MOST_PAID_FOR);
        self.owed.unpaid = false;
        // A datagram that is no packet is dropped, and counted by the endpoint.
        let Ok(Some(mut incoming)) = self.endpoint.open(datagram) else { return Ok(()) };
        if self.protocol.yojimbo().is_some() {
            return self.handle_yojimbo(now, incoming);
        }
        let header = incoming.header();
        let context = ReadContext { now, sequence: header.sequence, ack: header.ack, greeted: self.greeted };
        let Scratch { packet, bodies, .. } = &mut *self.scratch;
        let read = native::read(incoming.payload(), &self.protocol, context, packet, bodies);
        let starved = match &read {
            Ok(()) => !held::has_memory(&self.lanes, &self.protocol, packet, None),
            Err(refusal) => *refusal == Refusal::Memory,
        };
        if starved {
            self.endpoint.forgo(incoming);
            return Ok(());
        }
        if let Err(refusal) = read {
            self.endpoint.refuse(incoming);
            return Err(match refusal {
                Refusal::Mismatch => End::Mismatch,
                refusal => End::Violation(Violation::Packet(refusal)),
            });
        }
        if !self.chunks.affords(now, &packet.chunk_items) {
            self.endpoint.drop_packet(incoming);
            return Ok(());
        }
        if let Some(reason) = packet.control.close {
            self.endpoint.refuse(incoming);
            self.detail = packet.control.detail.take();
            return Err(End::ByPeer(reason));
        }
        let arrival = self.arrival(header.sequence);
        let Scratch { packet, bodies, .. } = &mut *self.scratch;
        if !packet.fragments.is_empty() {
            match fragments::assemble(&mut self.lanes, &self.protocol, &context, arrival, packet, bodies) {
                Ok(true) => {}
                Ok(false) => {
                    self.endpoint.forgo(incoming);
                    return Ok(());
                }
                Err(end) => {
                    self.endpoint.refuse(incoming);
                    return Err(end);
                }
            }
        }
        self.sent_laps.advance(self.endpoint.counters().sent, self.newest_arrival);
        if self.sent_laps.is_old(arrival) {
            // What it acks the window has left behind, and its numbers may stand for newer packets now.
            incoming.ignore_acks();
            self.scratch.packet.control.ranges.clear();
        } else if arrival >= self.newest_arrival && self.acks_ahead(&header) {
            self.endpoint.refuse(incoming);
            return Err(End::Violation(Violation::Ack));
        }
        let Scratch { packet, acked, .. } = &mut *self.scratch;
        let delay = packet.control.ack_delay;
        let sampling = delay.map_or(RttSampling::None, |delay| RttSampling::NewestAck { delay });
        acked.clear();
        self.endpoint.accept(now, incoming, sampling, acked);
        if header::is_after_skip(datagram) {
            self.endpoint.record_skipped();
        }
        self.endpoint.remember_received(self.ranges.len());
        self.ranges.record(header.sequence, self.endpoint.acks().received_window());
        if self.endpoint.acks().newest_received() == Some(header.sequence) {
            self.newest_at = Some(now);
        }
        // Of the newest packet, if nothing acked it before.
        let newest = acked.iter().find(|acked| acked.sequence == header.ack);
        let received_at = packet.control.received_at;
        let round_trip = newest.zip(delay).map(|(newest, delay)| RoundTrip {
            time: (now - newest.sent_at).saturating_sub(delay),
            received_at,
        });
        self.apply_acks(now, round_trip);
        if self.endpoint.acks().acked_skipped() && !self.replayed {
            return Err(End::Violation(Violation::Ack));
        }
        self.apply_packet(now, arrival, header.ack)
    }

    /// The number of a packet of the peer, without wrapping.
    fn arrival(&self, sequence: u16) -> u64 {
        let ahead = distance(sequence, self.newest_arrival as u16);
        // Before the first packet there is nothing to be behind of.
        self.newest_arrival.saturating_add_signed(ahead.into())
    }

    /// Whether the newest packet of the peer acks what was never sent. Of an older one that can't be known: what it acks may
    /// be more than half of all numbers ago.
    fn acks_ahead(&self, header: &Header) -> bool {
        let newest = self.endpoint.next_sequence().wrapping_sub(1);
        distance(header.ack, newest) > 0 && !self.replayed
    }

    fn apply_acks(&mut self, now: Instant, round_trip: Option<RoundTrip>) {
        let Scratch { packet, acked, notifications, stamps, .. } = &mut *self.scratch;
        for range in &packet.control.ranges {
            self.endpoint.ack_range(range.newest, range.oldest, acked);
        }
        // Header and ranges have them newest first.
        acked.reverse();
        stamps.clear();
        for acked in acked.drain(..) {
            let Some(sent) = self.sent.remove(acked.sequence) else { continue };
            stamps.push((sent.stamp, acked.late));
            if sent.message_bytes > 0 {
                self.window.on_acked(sent.message_bytes, acked.late);
            }
            self.hello_known |= sent.hello;
            self.ranges.confirm(sent.reported);
            for carried in self.carried.iter(&sent.carried) {
                match carried {
                    Carried::Messages { channel, count, first } => {
                        let lane = &mut self.lanes[usize::from(channel)];
                        for mark in first..first + u64::from(count) {
                            let fate = lane.touch().handle_ack(now, mark);
                            notifications.extend(notification(channel, fate, true));
                        }
                    }
                    Carried::Credit { channel, mark } => {
                        self.lanes[usize::from(channel)].touch().credit_known(mark);
                    }
                    Carried::Chunk(carried) => {
                        self.chunks.handle_ack(now, (acked.sent_at, acked.sequence), carried);
                    }
                    Carried::Fragment { channel, mark, index } => {
                        let lane = &mut self.lanes[usize::from(channel)];
                        let fate = lane.touch().handle_fragment_ack(now, mark, index.into());
                        notifications.extend(notification(channel, fate, true));
                        // Native framing doesn't look at it.
                        self.yojimbo.pace_blocks(now, true);
                    }
                }
            }
            self.carried.clear(sent.carried);
            self.fates.resolve(acked.sequence, true, notifications);
        }
        if !stamps.is_empty() {
            self.unanswered_since = None;
            self.acked_at = now;
            self.controller.on_acked(now, stamps, round_trip);
        }
        if let Some(round_trip) = round_trip {
            self.window.on_round_trip(now, round_trip.time);
        }
        self.window.judge(now);
    }

    /// Tells channels what the packets carried that count as lost. They may yet be acked.
    fn apply_losses(&mut self, now: Instant) {
        let Scratch { lost, notifications, .. } = &mut *self.scratch;
        lost.clear();
        self.endpoint.poll_lost(now, lost);
        for sequence in lost.drain(..) {
            let sent = self.sent.get(sequence);
            if let Some(sent) = sent {
                self.controller.on_lost(now, sent.stamp);
                if sent.message_bytes > 0 {
                    self.window.on_lost(sent.message_bytes);
                }
            }
            for carried in sent.into_iter().flat_map(|sent| self.carried.iter(&sent.carried)) {
                match carried {
                    Carried::Messages { channel, count, first } => {
                        let lane = &mut self.lanes[usize::from(channel)];
                        for mark in first..first + u64::from(count) {
                            let fate = lane.touch().handle_lost(mark);
                            notifications.extend(notification(channel, fate, false));
                        }
                    }
                    Carried::Chunk(carried) => self.chunks.handle_lost(carried),
                    Carried::Fragment { channel, mark, index } => {
                        let lane = &mut self.lanes[usize::from(channel)];
                        lane.touch().handle_fragment_lost(mark, index.into());
                        self.yojimbo.pace_blocks(now, false);
                    }
                    Carried::Credit { .. } => {}
                }
            }
            self.fates.resolve(sequence, false, notifications);
        }
    }

    fn apply_packet(&mut self, now: Instant, arrival: u64, ack: u16) -> Result<(), End> {
        self.newest_arrival = self.newest_arrival.max(arrival);
        let Packet { control, messages, fragments, fragment_bytes, chunk_items, slices, .. } =
            &mut self.scratch.packet;
        self.greeted |= control.hello.is_some();
        let messages_said = !messages.is_empty() || !fragments.is_empty();
        let said = control.hello.is_some() || !control.credits.is_empty() || messages_said;
        if said || !chunk_items.is_empty() {
            self.owed.count(now);
        }
        for (channel, unread) in control.credits.drain(..) {
            let fates = &mut self.fates;
            let mut told = |fate| fates.tell(notification(channel, fate, true));
            let lane = &mut self.lanes[usize::from(channel)];
            let credited = lane.touch().handle_credit(now, unread, arrival, &mut told);
            if !self.replayed {
                credited?;
            }
        }
        for message in messages.drain(..) {
            let lane = &mut self.lanes[usize::from(message.channel)];
            if let Some(dropped) = lane.touch().handle(message.prefix, arrival, message.received)? {
                self.scratch.bodies.spares.reclaim(dropped.body);
            }
        }
        if !chunk_items.is_empty() {
            let known = (self.endpoint.acks().sent_at(ack).unwrap_or(now), ack);
            chunk_items.drain(..).for_each(|item| self.chunks.handle(now, item, slices, known));
            self.chunks.update(now);
        }
        messages.shrink_to(KEPT_MESSAGES);
        fragments.clear();
        fragments.shrink_to(KEPT_MESSAGES);
        fragment_bytes.clear();
        fragment_bytes.shrink_to(KEPT_ROW_BYTES);
        self.scratch.bodies.scratch.clear();
        self.scratch.bodies.scratch.shrink_to(KEPT_ROW_BYTES);
        Ok(())
    }

    // --- sending -----------------------------------------------------------------------------------------

    /// Appends the packets due now to `out`: once a tick.
    ///
    /// Returns when a tick has something to do here again if nothing arrives and nothing is sent before: until then this
    /// needn't be called.
    pub fn transmit(&mut self, now: Instant, out: &mut Packets) -> Instant {
        if self.protocol.yojimbo().is_some() {
            self.transmit_yojimbo(now, out);
        } else {
            self.transmit_native(now, out);
        }
        for (channel, lane) in self.lanes.iter_mut().enumerate() {
            let fates = &mut self.fates;
            lane.end_of_tick(&mut |fate| fates.tell(notification(channel as u8, fate, false)));
        }
        self.next_tick()
    }

    fn next_tick(&mut self) -> Instant {
        let owed = self.owed.packets > 0 && !self.owed.unpaid;
        // Yojimbo's framing has a packet in each tick.
        let busy = self.protocol.yojimbo().is_some() || owed || !self.chunks.is_idle();
        if busy || !self.lanes.iter_mut().all(Lane::rests) {
            return Instant::ZERO;
        }
        let keep_alive = self.last_sent.map_or(Instant::ZERO, |sent| sent + KEEP_ALIVE);
        keep_alive.min(self.endpoint.acks().next_loss())
    }

    fn transmit_native(&mut self, now: Instant, out: &mut Packets) {
        self.begin_transmit(now);
        self.transmit_messages(now, true, out);
        self.transmit_others(now, self.owed.packets > 0, out);
    }

    /// Appends the packets that needn't wait for the tick's [`Connection::transmit`], for drivers that can be awake
    /// between ticks: chunks as their pace has it, keep-alives, acks that waited long enough. Messages only as long as the
    /// application has sent nothing since the last tick, so that those of a tick share packets, or when the tick takes
    /// very long. Nothing is dropped for want of room.
    ///
    /// Returns when to call again if nothing arrives or is sent before: in a millisecond at the earliest.
    pub fn transmit_between(&mut self, now: Instant, out: &mut Packets) -> Instant {
        if self.protocol.yojimbo().is_some() {
            return self.transmit_yojimbo_between(now, out).max(now + GRAIN);
        }
        self.begin_transmit(now);
        let tick_over = self.tick_open.map_or(Instant::ZERO, |since| since + LONGEST_TICK);
        if tick_over <= now {
            self.transmit_messages(now, false, out);
        }
        self.transmit_others(now, self.owed.due_at() <= now, out);

        let line = if self.adaptive { self.window.next() } else { Instant::ZERO };
        let channels = self.channels_deadline().max(tick_over).max(self.budget.next()).max(line);
        let keep_alive = self.last_sent.map_or(now, |sent| sent + KEEP_ALIVE);
        let chunks = self.chunks.next_deadline(self.endpoint.acks().probe_interval());
        let packets = channels.min(keep_alive).min(self.owed.due_at()).min(chunks);
        let allowed = if self.controller.can_send_packet(now) { now } else { self.controller.next_send() };
        let allowed = allowed.max(self.next_number_at());
        packets.max(allowed).min(self.slices_deadline()).max(now + GRAIN)
    }

    /// When the next packet may have a number: at once unless nothing was acked for very long.
    fn next_number_at(&self) -> Instant {
        numbers::next_at(self.endpoint.acks().numbers_left(), self.last_launch)
    }

    fn can_send_packet(&mut self, now: Instant) -> bool {
        self.controller.can_send_packet(now) && self.next_number_at() <= now
    }

    fn begin_transmit(&mut self, now: Instant) {
        self.apply_losses(now);
        self.endpoint.update(now);
        self.budget.refill(now);
        self.window.update(now);
    }

    fn transmit_messages(&mut self, now: Instant, tick: bool, out: &mut Packets) {
        self.tick_open = None;
        self.messages_wait = false;
        while self.budget.allows() && self.can_send_packet(now) && self.compose(now, tick) {
            self.send_whole_packet(now, out);
        }
    }

    /// Whether the line has room for messages, as far as is known: asked when some are due.
    fn line_has_room(&mut self) -> bool {
        !self.adaptive || self.window.allows()
    }

    /// Acks, keep-alives and chunks. They take turns where so few packets may go that acks and keep-alives need them all.
    fn transmit_others(&mut self, now: Instant, acks: bool, out: &mut Packets) {
        let chunks_first = core::mem::take(&mut self.chunks_wait);
        if chunks_first {
            self.transmit_chunks(now, out);
        }
        if acks {
            self.transmit_ack(now, out);
        }
        self.transmit_keep_alive(now, out);
        if !chunks_first {
            self.transmit_chunks(now, out);
        }
    }

    /// A packet that does nothing but ack, if it is no larger than what it acks.
    fn transmit_ack(&mut self, now: Instant, out: &mut Packets) {
        if !self.can_send_packet(now) {
            return;
        }
        self.begin_packet(now);
        let bytes = self.packet_bytes();
        self.owed.unpaid = self.paid_for < bytes;
        if !self.owed.unpaid {
            self.paid_for -= bytes;
            self.send_whole_packet(now, out);
        }
    }

    fn transmit_keep_alive(&mut self, now: Instant, out: &mut Packets) {
        let kept_alive = self.last_sent.is_some_and(|sent| now - sent < KEEP_ALIVE);
        if !kept_alive && self.can_send_packet(now) {
            self.begin_packet(now);
            if self.paid_for < self.packet_bytes() && !self.scratch.control.ranges.is_empty() {
                self.drop_ranges();
            }
            self.paid_for = self.paid_for.saturating_sub(self.packet_bytes());
            self.send_whole_packet(now, out);
        }
    }

    /// When [`Connection::transmit`] next has something to do if nothing arrives and nothing is sent before: for
    /// drivers that can wake then. Ticks may come at any time.
    pub fn next_deadline(&self) -> Instant {
        if self.owed.packets > 0 && !self.owed.unpaid {
            return Instant::ZERO;
        }
        let keep_alive = self.last_sent.map_or(Instant::ZERO, |sent| sent + KEEP_ALIVE);
        let chunks = self.chunks.next_deadline(self.endpoint.acks().probe_interval());
        self.channels_deadline().min(keep_alive).min(chunks).min(self.slices_deadline())
    }

    fn channels_deadline(&self) -> Instant {
        let timer = self.resend_timer();
        let channels = self.lanes.iter().map(|lane| lane.channel().next_deadline(timer));
        channels.min().unwrap_or(Instant::NEVER)
    }

    fn resend_timer(&self) -> ResendTimer {
        let not_before = if self.window.has_queue() { self.acked_at } else { Instant::ZERO };
        ResendTimer { timeout: self.endpoint.acks().resend_timeout(), not_before }
    }

    fn slices_deadline(&self) -> Instant {
        if self.silent {
            return Instant::NEVER;
        }
        let allowed =
            self.controller.next_send().max(self.next_number_at()).max(self.behind_messages_until());
        self.chunks.next_slice_at().max(allowed)
    }

    /// Whether the peer has shown that it would understand a farewell.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// The conversation is over: every message whose fate is open is told as lost.
    pub fn conclude(&mut self) {
        let fates = &mut self.fates;
        fates.conclude();
        for (channel, lane) in self.lanes.iter_mut().enumerate() {
            lane.touch().conclude(&mut |fate| fates.tell(notification(channel as u8, fate, false)));
        }
    }

    /// What the peer's application said of [`End::ByPeer`], if anything: 1 to [`MAX_DETAIL_BYTES`] bytes.
    pub fn take_detail(&mut self) -> Option<Box<str>> {
        self.detail.take()
    }

    /// Whether the peer is known to have all that was queued here that will ever arrive: nothing waits to be sent or sent
    /// again, and the packets of what isn't sent again are acked or lost. Chunks don't count.
    pub fn is_drained(&self) -> bool {
        self.lanes.iter().all(|lane| lane.channel().is_drained())
    }

    /// Drops what waits for the application, and makes room for more of it: nobody will read it. What happened to chunks is
    /// dropped too.
    pub fn discard_received(&mut self) {
        for lane in &mut self.lanes {
            while let Some(received) = lane.poll_received() {
                self.scratch.bodies.spares.reclaim(received.body);
            }
        }
        self.discard_unread();
        while self.chunks.poll_event().is_some() {}
    }

    /// The last packet of a conversation that this side ends: to be repeated, byte for byte. `detail`, of 1 to
    /// [`MAX_DETAIL_BYTES`] bytes without NUL, is for the peer's application.
    pub fn farewell(&mut self, now: Instant, reason: CloseReason, detail: Option<&str>) -> Option<Vec<u8>> {
        if self.protocol.yojimbo().is_some() {
            // It has none: netcode's own disconnect says it all.
            return None;
        }
        self.begin_packet(now);
        self.scratch.control.close = Some(reason);
        self.scratch.control.detail = detail.map(Into::into);
        let mut packets = Packets::new();
        self.send_packet(now, &mut packets);
        packets.iter().next().map(|(_, packet)| packet.to_vec())
    }

    /// Decides what the next packet carries; false when no message is due.
    fn compose(&mut self, now: Instant, tick: bool) -> bool {
        let moment = Moment { now, tick, resend: self.resend_timer() };
        // Asked first: gathering ack ranges and credit costs more.
        let (lanes, protocol) = (&mut self.lanes, &self.protocol);
        let due =
            |(index, lane): (usize, &mut Lane)| lane.next_bits(&moment, &cost(protocol, index)).is_some();
        if !busy(lanes).any(due) {
            return false;
        }
        self.messages_wait = !self.line_has_room();
        if self.messages_wait {
            return false;
        }
        let control_bits = self.begin_packet(now);
        let mut room = self.datagram_bits.saturating_sub(control_bits);
        if self.ranges_crowd_out_a_message(&moment, room) {
            room += native::range_bits(&self.scratch.control, self.endpoint.acks().ack());
            self.drop_ranges();
            self.ranges_wait = true;
        }
        self.fill(&moment, room)
    }

    /// Whether a message is due that would fit into a packet but for the ack ranges.
    fn ranges_crowd_out_a_message(&mut self, moment: &Moment, room: usize) -> bool {
        if self.scratch.control.ranges.is_empty() {
            return false;
        }
        let more = room + native::range_bits(&self.scratch.control, self.endpoint.acks().ack());
        let (lanes, protocol) = (&mut self.lanes, &self.protocol);
        let crowded_out = |(index, lane): (usize, &mut Lane)| {
            let bits = lane.next_bits(moment, &cost(protocol, index));
            bits.is_some_and(|bits| room < bits && bits <= more)
        };
        busy(lanes).any(crowded_out)
    }

    /// Selects messages for a packet of `room` bits; false when none is due.
    fn fill(&mut self, moment: &Moment, room: usize) -> bool {
        let (lanes, protocol) = (&mut self.lanes, &self.protocol);
        let cost = |channel| cost(protocol, channel);
        // Packets of their own take turns with the others, so that neither starves.
        if core::mem::take(&mut self.large_due) && self.streams.fill_large(lanes, moment, cost, room) {
            return true;
        }
        let filled = self.streams.fill(lanes, moment, cost, room);
        self.large_due = self.streams.large_due(lanes, moment, cost, room);
        filled || (core::mem::take(&mut self.large_due) && self.streams.fill_large(lanes, moment, cost, room))
    }

    /// Selects messages that fit into `room` bits.
    fn fill_rest(&mut self, moment: &Moment, room: usize) {
        let protocol = &self.protocol;
        self.streams.fill(&mut self.lanes, moment, |channel| cost(protocol, channel), room);
    }

    /// Appends what is to be said of chunks, and then slices as long as the budget lasts.
    fn transmit_chunks(&mut self, now: Instant, out: &mut Packets) {
        if self.chunks.is_idle() {
            return;
        }
        self.chunks.update(now);
        if !self.can_send_packet(now) {
            self.chunks_wait = true;
            return;
        }
        self.silent = self.unanswered_since.is_some_and(|since| now.since(since) > SILENCE);
        let probe_after = if self.silent { KEEP_ALIVE } else { self.endpoint.acks().probe_interval() };
        // To a silent peer no slices go, so their turn is still to come: at ticks so slow that the peer is silent at every other
        // one, they would have theirs at just those.
        self.chunks_wait = self.silent && self.chunks.has_slices(now);
        let slices_first = !self.silent && core::mem::take(&mut self.slices_wait);
        if slices_first {
            self.transmit_slices(now, out);
        }
        // Asked first: gathering ack ranges and credit costs more, and chunks that are over are remembered for long.
        if self.chunks.next_deadline(probe_after) <= now && self.can_send_packet(now) {
            self.begin_packet(now);
            if self.chunks.select_control(now, probe_after, &mut self.scratch.chunk) {
                self.send_whole_packet(now, out);
            }
        }
        if !slices_first {
            self.slices_wait |= self.chunks.has_slices(now) && !self.controller.can_send_packet(now);
            self.transmit_slices(now, out);
        }
        if self.chunks.next_slice_at() != Instant::ZERO {
            self.controller.on_app_limited(now);
        }
    }

    fn transmit_slices(&mut self, now: Instant, out: &mut Packets) {
        while !self.silent
            && self.behind_messages_until() <= now
            && self.chunks.has_slices(now)
            && self.controller.can_send(now)
            && self.next_number_at() <= now
        {
            // Ack ranges and credit are for other packets to say: here they would keep out a slice.
            let control_bits = self.begin_brief_packet(now);
            let entry_bits = 2 + self.protocol.channel_bits() as usize;
            let room = self.datagram_bits.saturating_sub(control_bits + entry_bits);
            if !self.chunks.select_slice(now, room, &mut self.scratch.chunk) {
                break;
            }
            self.send_packet(now, out);
            self.last_slice = Some(now);
        }
    }

    /// Until when slices wait because messages wait for the line, which slices would only keep full. One goes now and then, so
    /// that a flood of messages doesn't hold up a chunk for good.
    fn behind_messages_until(&self) -> Instant {
        let held_back = self.last_slice.filter(|_| self.messages_wait);
        held_back.map_or(Instant::ZERO, |sent| sent + KEEP_ALIVE)
    }

    /// Empties what the packet to compose takes and gathers its control sections; returns their bits.
    fn begin_packet(&mut self, now: Instant) -> usize {
        self.begin_brief_packet(now);
        let Scratch { control, credits, reported, .. } = &mut *self.scratch;
        let ack = self.endpoint.acks().ack();
        *reported = self.ranges.select(ack, &mut control.ranges);
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if let Some(mark) = lane.credit_due() {
                credits.push((index as u8, mark));
                control.credits.push((index as u8, mark.id()));
            }
        }
        native::control_bits(control, &self.protocol, ack)
    }

    /// As [`Connection::begin_packet`], without ack ranges and credit.
    fn begin_brief_packet(&mut self, now: Instant) -> usize {
        self.lanes.iter_mut().for_each(|lane| lane.selected.clear());
        let Scratch { control, credits, chunk, reported, .. } = &mut *self.scratch;
        chunk.clear();
        credits.clear();
        *reported = Reported::default();
        control.hello = (!self.hello_known).then(|| self.protocol.hash());
        control.close = None;
        control.detail = None;
        control.ack_delay = self.newest_at.map(|at| now - at);
        // For the peer's chunks.
        let clocked = self.newest_at.filter(|_| self.protocol.chunk_channel().is_some());
        control.received_at = clocked.map(ReceiveTime::at);
        control.ranges.clear();
        control.credits.clear();
        native::control_bits(control, &self.protocol, 0)
    }

    /// Leaves the ack ranges to another packet.
    fn drop_ranges(&mut self) {
        self.scratch.control.ranges.clear();
        self.scratch.reported = Reported::default();
    }

    /// The bytes on the wire of a packet that has no entries.
    fn packet_bytes(&self) -> usize {
        let ack = self.endpoint.acks().ack();
        let payload = native::control_bits(&self.scratch.control, &self.protocol, ack).div_ceil(8);
        self.datagram_overhead + Header::MAX_SIZE + payload
    }

    /// Writes a packet that says all that is to be said besides messages.
    fn send_whole_packet(&mut self, now: Instant, out: &mut Packets) {
        self.send_packet(now, out);
        if !core::mem::take(&mut self.ranges_wait) {
            self.owed = Owed::default();
        }
        self.last_sent = Some(now);
    }

    /// Writes the packet that was composed, appends its datagrams to `out`, and remembers what it carried.
    fn send_packet(&mut self, now: Instant, out: &mut Packets) {
        let ack = self.endpoint.acks().ack();
        let Scratch { writer, control, credits, chunk, reported, .. } = &mut *self.scratch;
        writer.clear();
        native::write_control(writer, control, &self.protocol, ack);
        if control.close.is_none() {
            for (index, lane) in self.lanes.iter().enumerate() {
                native::write_entry(writer, &self.protocol, index, &lane.selected);
                if self.protocol.channels()[index].kind.is_chunks() {
                    native::write_chunk_entry(writer, &self.protocol, index, &chunk.items, &chunk.arena);
                }
            }
            let fragments = self.lanes.iter().enumerate().flat_map(|(index, lane)| {
                let cut = lane.selected.iter().filter(|selected| selected.fragment.is_some());
                cut.map(move |selected| (index, selected))
            });
            native::write_end(writer, &self.protocol, fragments);
        }
        let (hello, reported) = (control.hello.is_some(), *reported);
        let mut carried = List::default();
        let messages = control.close.is_none() && self.lanes.iter().any(|lane| !lane.selected.is_empty());
        if control.close.is_none() {
            let mut carry = |what| self.carried.push(&mut carried, what);
            credits.iter().for_each(|&(channel, mark)| carry(Carried::Credit { channel, mark }));
            chunk.carried.drain(..).for_each(|chunk| carry(Carried::Chunk(chunk)));
            for (channel, lane) in (0..).zip(&self.lanes) {
                runs(channel, &lane.selected).for_each(&mut carry);
            }
        }
        let launched = Launched { hello, messages, reported, carried };
        self.launch(now, out, launched);
    }

    /// Sends the packet that was written, and remembers what it carries.
    fn launch(&mut self, now: Instant, out: &mut Packets, launched: Launched) {
        let Launched { hello, messages, reported, carried } = launched;
        let writer = &mut self.scratch.writer;
        let (before, datagrams) = (out.total_bytes(), out.len());
        let whole = self.endpoint.goes_whole(writer.as_bytes().len());
        let skips = self.skips.as_mut().is_some_and(|skips| skips.is_due(whole));
        if skips {
            self.endpoint.skip_number(now);
        }
        // The bounds on messages and on all else in a packet keep it below the endpoint's. One above would be lost.
        let Ok(packet) = self.endpoint.send(now, writer.as_bytes()) else {
            for carried in self.carried.iter(&carried) {
                let Carried::Messages { channel, count, first } = carried else { continue };
                let lane = &mut self.lanes[usize::from(channel)];
                let fates = (first..first + u64::from(count)).map(|mark| lane.touch().handle_lost(mark));
                fates.for_each(|fate| self.fates.tell(notification(channel, fate, false)));
            }
            self.carried.clear(carried);
            return;
        };
        for piece in packet.pieces() {
            out.push_with((), |arena| {
                let start = arena.len();
                piece.write(arena);
                if skips {
                    header::mark_after_skip(&mut arena[start..]);
                }
            });
        }
        let bytes = out.total_bytes() - before + (out.len() - datagrams) * self.datagram_overhead;
        // The budget is for messages: acks are paid by what they ack, and slices have a rate of their own. Charged here, a
        // chunk faster than the budget would silence the game for as long as it moves.
        // At most 256 KiB and their headers.
        let message_bytes = if messages { bytes as u32 } else { 0 };
        self.budget.spend(message_bytes as usize);
        self.window.on_sent(now, message_bytes);
        let stamp = self.controller.on_sent(now, bytes as u32);
        self.ranges.commit(reported);
        let sent = SentPacket { hello, stamp, message_bytes, reported, carried };
        self.fates.await_packet(packet.sequence(), !sent.carried.is_empty());
        // Those that the window of acks lost in this tick must still be here when the next one tells of them.
        let window = (2 * self.endpoint.acks().sent_window()).min(32_768);
        self.sent.push(packet.sequence(), sent, window, |passed| self.carried.clear(passed.carried));
        self.newest_at = None;
        self.last_launch = Some(now);
        self.unanswered_since.get_or_insert(now);
    }
}

/// Every message that a channel takes must fit a packet, whatever else that says: in yojimbo's framing by the protocol.
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

/// What a packet carries of a channel's messages.
fn runs(channel: u8, selected: &[Selected]) -> impl Iterator<Item = Carried> {
    let whole = |selected: &Selected| selected.fragment.is_none();
    let runs = selected.chunk_by(move |a, b| whole(a) && whole(b) && a.mark + 1 == b.mark);
    runs.map(move |run| match run[0] {
        Selected { fragment: Some(index), mark, .. } => Carried::Fragment { channel, mark, index },
        // A packet has fewer than 65,536 messages.
        Selected { mark, .. } => Carried::Messages { channel, count: run.len() as u16, first: mark },
    })
}

/// What to tell of a message in a packet whose fate is known.
fn notification(channel: u8, fate: Fate, delivered: bool) -> Option<Notification> {
    match fate {
        Fate::Open => None,
        Fate::Told(tag) => Some(Notification { channel, tag, delivered }),
    }
}
