//! Chunks after the messages of a tick: items about chunks, and slices at the rate of the congestion controller.

use super::builder::{self, Builder};
use super::send;
use crate::time::Instant;
use crate::transport::connection::KEEP_ALIVE;
use crate::transport::connection::conversation::Conversation;
use crate::transport::connection::outbound::PacketKind;
use crate::transport::outlet::Outlet;

/// Appends chunk items, and then slices as long as the rate allows.
pub(super) fn transmit(parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
    if parts.chunks.is_idle() {
        return;
    }
    parts.chunks.update(now);
    if !parts.can_send(PacketKind::Control, now) {
        parts.outbound.turns.chunks_wait = true;
        return;
    }
    parts.outbound.turns.is_silent = parts.ledger.is_unanswered(now);
    let probe_after = if parts.outbound.turns.is_silent {
        KEEP_ALIVE
    } else {
        parts.ledger.endpoint.acks().probe_interval()
    };
    // A silent peer gets no slices, so their turn is still to come. With ticks so slow that the peer is silent at every
    // other tick, slices would otherwise have their turn at just those ticks.
    parts.outbound.turns.chunks_wait = parts.outbound.turns.is_silent && parts.chunks.has_slices(now);
    let slices_first =
        !parts.outbound.turns.is_silent && core::mem::take(&mut parts.outbound.turns.slices_wait);
    if slices_first {
        transmit_slices(parts, now, out);
    }
    // Asked first, because gathering ack ranges and credit costs more, and chunks that are over are remembered for long.
    if parts.chunks.next_deadline(probe_after) <= now && parts.can_send(PacketKind::Control, now) {
        let mut builder = Builder::begin(parts, now);
        if builder.select_chunk_control(now, probe_after) {
            let planned = builder.finish();
            send(parts, now, planned, out);
        }
    }
    if !slices_first {
        parts.outbound.turns.slices_wait |=
            parts.chunks.has_slices(now) && !parts.outbound.allows(PacketKind::Control, now);
        transmit_slices(parts, now, out);
    }
    if parts.chunks.next_slice_at() != Instant::ZERO {
        parts.outbound.on_app_limited(now);
    }
}

fn transmit_slices(parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
    while may_go(parts, now) {
        // Other packets carry ack ranges and credit: here they would leave no room for a slice.
        let mut builder = Builder::begin_brief(parts, now);
        if !builder.select_slice(now) {
            break;
        }
        let planned = builder.finish();
        parts.send(now, out, planned, builder::write);
    }
}

/// Whether a slice may go out now.
pub(super) fn may_go(parts: &mut Conversation, now: Instant) -> bool {
    !parts.outbound.turns.is_silent && parts.chunks.has_slices(now) && parts.can_send(PacketKind::Slices, now)
}

/// When the next slice may go out.
pub(super) fn next_at(parts: &Conversation) -> Instant {
    if parts.outbound.turns.is_silent {
        return Instant::NEVER;
    }
    parts.chunks.next_slice_at().max(parts.outbound.next_bulk())
}
