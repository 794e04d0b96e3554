//! The parts of a connection that every framing uses, and the way of a written packet into the ledger.

use std::sync::Arc;

use super::config::ConnectionConfig;
use super::inbound::Inbound;
use super::ledger::Ledger;
use super::outbound::{Outbound, PacketKind};
use super::record::Record;
use super::scratch::Scratch;
use crate::store::{List, Packets};
use crate::time::{Duration, Instant};
use crate::transport::chunks::Chunks;
use crate::transport::error::ConfigError;
use crate::transport::ledger::Reported;
use crate::transport::packet::{AckEndpointConfig, HeaderKind};
use crate::transport::protocol::Protocol;
use crate::transport::stream::{ResendTimer, Streams};

/// Once in this many packets the ledger may give back memory.
const PACKETS_TO_SHRINK: u64 = 64;

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

/// A packet in the scratch memory's writer, ready to be sent.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) hello: bool,
    pub(super) messages: bool,
    /// The runs that its ack ranges report.
    pub(super) reported: Reported,
    pub(super) carried: List,
    /// Ack ranges had no room beside a message, so another ack must follow.
    pub(super) owes_ranges: bool,
}

impl Conversation {
    /// A new conversation.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub(super) fn new(
        config: &ConnectionConfig,
        packets: &AckEndpointConfig,
        protocol: Arc<Protocol>,
        skip_seed: Option<u64>,
    ) -> Result<Self, ConfigError> {
        // A packet is composed to the smaller of a datagram and the largest packet.
        let datagram_bytes = packets.fragment_above.min(packets.max_packet_size);
        Ok(Conversation {
            ledger: Ledger::new(packets, config, skip_seed)?,
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
        self.ledger.endpoint.update(now);
        self.outbound.update(now);
    }

    /// Whether a packet of this kind may go out.
    pub(super) fn can_send(&mut self, kind: PacketKind, now: Instant) -> bool {
        self.outbound.allows(kind, now)
    }

    /// When messages of the streams are due.
    pub(super) fn next_message(&self) -> Instant {
        self.streams.next_deadline(self.resend_timer())
    }

    /// The timer after which messages are sent again.
    pub(super) fn resend_timer(&self) -> ResendTimer {
        let not_before = if self.outbound.has_queue() { self.ledger.acked_at() } else { Instant::ZERO };
        // A message that is due before the middle of two ticks goes with the first of them: an ack takes whole ticks, and
        // a margin of milliseconds would cost one more. Never at once: it would go twice in one packet.
        let timeout = self.ledger.endpoint.acks().resend_timeout();
        let is_awake = self.ledger.pending_ack.is_awake();
        let margin = if is_awake { Duration::ZERO } else { self.outbound.half_tick() };
        ResendTimer { timeout: timeout.saturating_sub(margin).max(timeout / 2), not_before }
    }

    /// Sends the packet in the scratch memory's writer, and records its contents.
    pub(super) fn send_written(&mut self, now: Instant, out: &mut Packets, written: Written) {
        let Written { hello, messages, reported, carried, .. } = written;
        let kind = self.ledger.endpoint.header_kind();
        let skipped = if kind == HeaderKind::Numbered { self.skip_numbers(now) } else { 0 };
        self.make_room_in_ledger(now);
        let (before, datagrams) = (out.total_bytes(), out.len());
        let awaited = !carried.is_empty() || self.ledger.notifications.keeps_packets();
        let mut record = Some(Record::new(hello, reported, carried, awaited));
        let payload = self.scratch.get().writer.as_bytes();
        // The bounds on messages and on everything else in a packet keep it below the endpoint's bound. A larger packet
        // would be lost.
        let Ok(packet) = self.ledger.endpoint.send_noted(now, skipped, payload, &mut record) else {
            self.lose_unsent(record.unwrap_or_default().carried);
            return;
        };
        let sequence = packet.sequence();
        for (number, piece) in (self.ledger.next_number..).zip(packet.pieces()) {
            out.push_with(number, |arena| piece.write_as(kind, arena));
        }
        let datagrams = out.len() - datagrams;
        self.ledger.next_number += datagrams as u64;
        let bytes = out.total_bytes() - before + datagrams * self.outbound.datagram_overhead;
        // The budget is for messages: acks are paid for by what they ack, and slices have a rate of their own. If slices
        // were charged, a chunk faster than the budget would silence the game for as long as it lasts. At most 256 KiB and
        // their headers.
        let message_bytes = if messages { bytes as u32 } else { 0 };
        let stamp = self.outbound.on_sent(now, bytes as u32, message_bytes);
        if let Some(record) = self.ledger.endpoint.acks_mut().note_mut(sequence) {
            (record.stamp, record.message_bytes) = (stamp, message_bytes);
        }
        self.ledger.forget(record);
        self.ledger.ranges.commit(reported);
        self.ledger.note_sent(now);
        if self.ledger.endpoint.acks().counters().sent.is_multiple_of(PACKETS_TO_SHRINK) {
            let passed = self.ledger.endpoint.acks_mut().shrink();
            self.ledger.forget(passed.into_iter().flatten());
        }
    }

    /// Goes on to the number of the next packet; returns how many before it have no packet, as its header says it.
    fn skip_numbers(&mut self, now: Instant) -> u8 {
        let number = self.ledger.take_number();
        let before = self.ledger.endpoint.next_sequence();
        for _ in before..number {
            self.make_room_in_ledger(now);
            let passed = self.ledger.endpoint.acks_mut().skip_number();
            self.ledger.forget(passed);
        }
        u8::try_from(number - before).unwrap_or(u8::MAX)
    }

    /// The contents of a packet that the endpoint refused to send are lost.
    fn lose_unsent(&mut self, carried: List) {
        self.lose(&carried);
        let lost = &mut self.scratch.get().notifications;
        lost.drain(..).for_each(|lost| self.ledger.notifications.push(Some(lost)));
        self.ledger.carried.clear(carried);
    }

    /// Gives up the oldest packet if the next one takes its place: its contents may have to be sent again.
    fn make_room_in_ledger(&mut self, now: Instant) {
        if self.ledger.endpoint.acks().is_full()
            && let Some(lost) = self.ledger.endpoint.acks_mut().give_up_oldest()
        {
            self.apply_loss(now, lost);
        }
    }
}
