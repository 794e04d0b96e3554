//! The parts of a connection that every framing uses, and the way of a written packet into the ledger.

use std::sync::Arc;

use super::config::ConnectionConfig;
use super::held_packets::HeldPackets;
use super::ledger::Ledger;
use super::outbound::Outbound;
use super::record::Record;
use super::scratch::{Memory, Scratch};
use crate::limits::ConfigError;
use crate::store::List;
use crate::time::{Duration, Instant};
use crate::transport::chunks::{Chunks, Selection};
use crate::transport::framing::native::Control;
use crate::transport::ledger::Reported;
use crate::transport::ledger::acks::FullHeader;
use crate::transport::outlet::Outlet;
use crate::transport::packet::HeaderKind;
use crate::transport::protocol::Protocol;
use crate::transport::stream::{Draft, ResendTimer, Streams};
use crate::wire::BitWriter;

/// Once in this many packets the ledger may give back memory.
const PACKETS_TO_SHRINK: u64 = 64;

/// The peer's greeting, its farewell, and its packets that can't be read here.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    /// A packet of the peer had a hello.
    pub(super) hello_received: bool,
    /// The peer application's text about the end.
    pub(super) detail: Option<Box<str>>,
    /// The peer is a replayed capture: see [`ConnectionConfig`].
    pub(super) is_replayed: bool,
    /// Packets that only code above the transport can read: only yojimbo's framing has them.
    pub(super) held: HeldPackets,
}

/// A connection without its framing.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) protocol: Arc<Protocol>,
    pub(super) ledger: Ledger,
    pub(super) inbound: Inbound,
    pub(super) outbound: Outbound,
    pub(super) streams: Streams,
    pub(super) chunks: Chunks,
    pub(super) scratch: Scratch,
}

/// What is known of a packet that is ready to be written.
#[derive(Debug, Default)]
pub(super) struct PacketPlan {
    /// It is certain to fit one datagram.
    pub(super) fits: bool,
    pub(super) hello: bool,
    pub(super) messages: bool,
    /// Bytes of a slice in it.
    pub(super) slice_bytes: usize,
    /// The runs that its ack ranges report.
    pub(super) reported: Reported,
    pub(super) carried: List,
    /// Ack ranges had no room beside a message, so another ack must follow.
    pub(super) owes_ranges: bool,
}

/// The contents of a planned packet, in the scratch memory.
pub(super) struct Contents<'a> {
    pub(super) protocol: &'a Protocol,
    pub(super) ack: u64,
    pub(super) control: &'a Control,
    pub(super) draft: &'a Draft,
    pub(super) chunk: &'a Selection,
}

impl Conversation {
    /// A new conversation.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub(super) fn new(config: &ConnectionConfig, protocol: Arc<Protocol>) -> Result<Self, ConfigError> {
        let packets = &config.packets;
        // A packet is composed to the smaller of a datagram and the largest packet.
        let datagram_bytes = packets.fragment_above.min(packets.max_packet_size);
        Ok(Conversation {
            ledger: Ledger::new(packets, config.skip_seed)?,
            inbound: Inbound { is_replayed: config.replayed, ..Inbound::default() },
            outbound: Outbound::new(config, &protocol, datagram_bytes)?,
            streams: Streams::new(&protocol, config.pool.clone()),
            chunks: Chunks::new(datagram_bytes),
            scratch: Scratch::default(),
            protocol,
        })
    }

    /// Brings losses, estimates and limits up to date, before packets are composed.
    pub(super) fn begin_transmit(&mut self, now: Instant) {
        self.apply_losses(now);
        self.ledger.endpoint.acks.update(now);
        self.outbound.update(now);
    }

    /// When messages of the streams are due.
    pub(super) fn next_message(&self) -> Instant {
        self.streams.next_deadline(self.resend_timer())
    }

    /// The timer after which messages are sent again.
    pub(super) fn resend_timer(&self) -> ResendTimer {
        let not_before = if self.outbound.window.has_queue() { self.ledger.acked_at } else { Instant::ZERO };
        // A message that is due before the middle of two ticks goes with the first of them: an ack takes whole ticks, and
        // a margin of milliseconds would cost one more. Never at once: it would go twice in one packet.
        let timeout = self.ledger.endpoint.acks.resend_timeout();
        let is_awake = self.ledger.pending_ack.awake;
        let margin = if is_awake { Duration::ZERO } else { self.outbound.half_tick() };
        ResendTimer { timeout: timeout.saturating_sub(margin).max(timeout / 2), not_before }
    }

    /// Sends the packet that `write` writes, and records its contents.
    pub(super) fn send(
        &mut self,
        now: Instant,
        out: &mut dyn Outlet,
        planned: PacketPlan,
        write: impl Fn(&mut BitWriter, &Contents<'_>),
    ) {
        let kind = self.ledger.endpoint.config.header;
        let skipped = if kind == HeaderKind::Numbered { self.skip_numbers() } else { 0 };
        self.make_room_in_ledger();
        let header = FullHeader { skipped, ..self.ledger.endpoint.acks.header() };
        let Memory { writer, control, draft, chunk, .. } = self.scratch.get();
        let contents = Contents { protocol: &self.protocol, ack: header.ack, control, draft, chunk };
        let (mut bytes, mut datagrams, mut fragments) = (0, 1, 0);
        if planned.fits {
            out.push(self.ledger.next_number, &mut |memory| {
                let start = memory.len();
                kind.write(&header, memory);
                let mut writer = BitWriter::after(core::mem::take(memory));
                write(&mut writer, &contents);
                *memory = writer.into_bytes();
                bytes = memory.len() - start;
            });
        } else {
            writer.clear();
            write(writer, &contents);
            // The bounds on messages and on everything else in a packet keep it below the endpoint's bound. A larger
            // packet would be lost.
            let Ok(packet) = self.ledger.endpoint.pack(header, writer.as_bytes()) else {
                return self.lose_unsent(planned.carried);
            };
            fragments = packet.fragments();
            datagrams = fragments.max(1);
            for (number, piece) in (self.ledger.next_number..).zip(packet.pieces()) {
                out.push(number, &mut |memory| {
                    let start = memory.len();
                    piece.write_as(kind, memory);
                    bytes += memory.len() - start;
                });
            }
        }
        self.ledger.next_number += datagrams as u64;
        bytes += datagrams * self.outbound.datagram_overhead;
        self.note_sent(now, bytes, fragments, planned);
    }

    /// Records a packet that was sent.
    fn note_sent(&mut self, now: Instant, bytes: usize, fragments: usize, planned: PacketPlan) {
        let PacketPlan { hello, messages, slice_bytes, reported, carried, .. } = planned;
        // The budget is for messages: acks are paid for by what they ack, and slices have a rate of their own. If slices
        // were charged, a chunk faster than the budget would silence the game for as long as it lasts. At most 256 KiB and
        // their headers.
        let message_bytes = if messages { (bytes - slice_bytes) as u32 } else { 0 };
        let stamp = self.outbound.on_sent(now, bytes as u32, message_bytes);
        self.ledger.notifications.track_sent(!carried.is_empty());
        let record = Record { hello, stamp, message_bytes, reported, carried };
        let passed = self.ledger.endpoint.note_sent(now, bytes as u32, fragments, record);
        self.ledger.forget(passed);
        self.ledger.ranges.commit(reported);
        self.ledger.note_sent(now);
        if self.ledger.endpoint.acks.counters.sent.is_multiple_of(PACKETS_TO_SHRINK) {
            let passed = self.ledger.endpoint.acks.shrink();
            self.ledger.forget(passed.into_iter().flatten());
        }
    }

    /// Goes on to the number of the next packet; returns how many before it have no packet, as its header says it.
    fn skip_numbers(&mut self) -> u8 {
        let number = self.ledger.take_number();
        let before = self.ledger.endpoint.acks.next_sequence();
        for _ in before..number {
            self.make_room_in_ledger();
            self.ledger.notifications.track_sent(false);
            let passed = self.ledger.endpoint.acks.skip_number();
            self.ledger.forget(passed);
        }
        u8::try_from(number - before).unwrap_or(u8::MAX)
    }

    /// The contents of a packet that the endpoint refused to send are lost.
    fn lose_unsent(&mut self, carried: List) {
        self.lose(&carried);
        let lost = &mut self.scratch.get().notifications;
        lost.drain(..).for_each(|lost| self.ledger.notifications.push(lost));
        self.ledger.carried.clear(carried);
    }

    /// Gives up the oldest packet if the next one takes its place: its contents may have to be sent again.
    fn make_room_in_ledger(&mut self) {
        if self.ledger.endpoint.acks.is_full()
            && let Some(lost) = self.ledger.endpoint.acks.give_up_oldest()
        {
            self.apply_loss(lost);
        }
    }
}
