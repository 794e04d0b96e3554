//! Tickwire's own framing: the order of sending is messages first, then acks and keep-alives, and chunks in the rest.

mod builder;
mod receive;
mod slices;

use self::builder::Builder;
use super::End;
use super::conversation::{Conversation, PacketPlan};
use super::framing::{Framing, GRAIN};
use crate::store::Packets;
use crate::time::Instant;
use crate::transport::ack_endpoint::Incoming;
use crate::transport::direct_tables::DirectTables;
use crate::transport::framing::CloseReason;
use crate::transport::outlet::Outlet;
use crate::transport::stream::Fill;
use crate::transport::stream::SendContext;

/// The framing of `STANDARD.md`. It has no state of its own, so it takes no memory.
#[derive(Debug, Default)]
pub(super) struct Native;

impl Framing for Native {
    fn transmit(
        &mut self,
        parts: &mut Conversation,
        now: Instant,
        out: &mut dyn Outlet,
        fill: Option<&mut (dyn Fill + '_)>,
    ) {
        parts.begin_transmit(now);
        transmit_messages(parts, now, true, out, fill);
        transmit_others(parts, now, parts.ledger.pending_ack.is_pending(now), out);
    }

    fn transmit_between(&mut self, parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
        parts.begin_transmit(now);
        if parts.outbound.tick_over() <= now {
            transmit_messages(parts, now, false, out, None);
        }
        transmit_others(parts, now, parts.ledger.pending_ack.due_at() <= now, out);
    }

    fn next_tick(&self, parts: &mut Conversation) -> Instant {
        let owed = parts.ledger.pending_ack.next_tick();
        if owed == Instant::ZERO || !parts.chunks.is_idle() || parts.streams.are_busy() {
            return Instant::ZERO;
        }
        let keep_alive = keep_alive_at(parts).unwrap_or(Instant::ZERO);
        keep_alive.min(parts.ledger.endpoint.acks.next_loss()).min(owed)
    }

    fn next_between(&self, parts: &mut Conversation, now: Instant) -> Instant {
        let messages =
            parts.next_message().max(parts.outbound.tick_over()).max(parts.outbound.next_messages());
        let packets = messages
            .min(keep_alive_at(parts).unwrap_or(now))
            .min(parts.ledger.pending_ack.due_at())
            .min(next_chunk_item(parts));
        packets.min(slices::next_at(parts, now)).max(now + GRAIN)
    }

    fn handle(
        &mut self,
        parts: &mut Conversation,
        now: Instant,
        incoming: Incoming<'_>,
        tables: Option<&mut dyn DirectTables>,
    ) -> Result<bool, End> {
        receive::handle(parts, now, incoming, tables)
    }

    fn farewell(
        &mut self,
        parts: &mut Conversation,
        now: Instant,
        reason: CloseReason,
        detail: Option<&str>,
    ) -> Option<Vec<u8>> {
        let mut builder = Builder::begin(parts, now);
        builder.close(reason, detail);
        let planned = builder.finish();
        let mut packets = Packets::new();
        parts.send(now, &mut packets, planned, builder::write);
        packets.iter().next().map(|(_, packet)| packet.to_vec())
    }
}

/// Appends acks, keep-alives and chunks.
fn transmit_others(parts: &mut Conversation, now: Instant, acks: bool, out: &mut dyn Outlet) {
    if acks {
        transmit_ack(parts, now, out);
    }
    transmit_keep_alive(parts, now, out);
    slices::transmit(parts, now, out);
}

/// Appends the packets with messages that are due.
fn transmit_messages(
    parts: &mut Conversation,
    now: Instant,
    tick: bool,
    out: &mut dyn Outlet,
    mut fill: Option<&mut (dyn Fill + '_)>,
) {
    parts.outbound.end_tick();
    // Most often nothing is due after the first packet of a tick. Then nothing is computed.
    while parts.outbound.budget.pacer.allows() && parts.streams.are_busy() {
        let context = SendContext { now, tick, resend: parts.resend_timer(), fills: fill.is_some() };
        // Asked first, because gathering ack ranges and credit costs more.
        if !parts.streams.poll_due(&context, &parts.protocol) || !parts.outbound.line_has_room() {
            break;
        }
        let sends_slices = slices::may_go(parts, now);
        let mut builder = Builder::begin(parts, now);
        if !builder.select_messages(&context, fill.as_deref_mut()) {
            break;
        }
        if sends_slices {
            builder.select_slice(now);
        }
        let planned = builder.finish();
        send(parts, now, planned, out);
    }
}

/// Appends a packet that only acks, if it is no larger than the packets it acks.
fn transmit_ack(parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
    let mut builder = Builder::begin(parts, now);
    if builder.try_spend() {
        let planned = builder.finish();
        send(parts, now, planned, out);
    }
}

/// Appends a keep-alive if it is due.
fn transmit_keep_alive(parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
    if keep_alive_at(parts).is_some_and(|at| now < at) {
        return;
    }
    let mut builder = Builder::begin(parts, now);
    builder.spend();
    let planned = builder.finish();
    send(parts, now, planned, out);
}

/// Sends a packet with all control sections.
fn send(parts: &mut Conversation, now: Instant, planned: PacketPlan, out: &mut dyn Outlet) {
    if !planned.owes_ranges {
        parts.ledger.pending_ack.clear();
    }
    parts.send(now, out, planned, builder::write);
    parts.outbound.last_sent = Some(now);
}

/// When the next keep-alive is due; None before the first packet. A packet goes out at least this often, unless a
/// feature's packets come at regular times.
fn keep_alive_at(parts: &Conversation) -> Option<Instant> {
    parts.outbound.keep_alive_at(parts.ledger.pending_ack.patience())
}

/// When chunk items other than slices are due.
fn next_chunk_item(parts: &Conversation) -> Instant {
    parts.chunks.next_deadline(parts.ledger.endpoint.acks.probe_interval())
}
