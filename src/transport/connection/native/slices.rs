//! Chunks after the messages of a tick: items about chunks, and slices at the rate of the congestion controller.

use super::builder::{self, Builder};
use super::send;
use crate::time::Instant;
use crate::transport::connection::KEEP_ALIVE;
use crate::transport::connection::conversation::Conversation;
use crate::transport::outlet::Outlet;

/// Appends chunk items, and then slices as long as the rate allows.
pub(super) fn transmit(parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
    if parts.chunks.is_idle() {
        return;
    }
    parts.chunks.update(now);
    let probe_after = if parts.ledger.is_unanswered(now) {
        KEEP_ALIVE
    } else {
        parts.ledger.endpoint.acks.probe_interval()
    };
    // Asked first, because gathering ack ranges and credit costs more, and chunks that are over are remembered for long.
    if parts.chunks.next_deadline(probe_after) <= now {
        let mut builder = Builder::begin(parts, now);
        if builder.select_chunk_control(now, probe_after) {
            let planned = builder.finish();
            send(parts, now, planned, out);
        }
    }
    transmit_slices(parts, now, out);
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

/// Whether a slice may go out now. A peer that may be gone gets none.
pub(super) fn may_go(parts: &mut Conversation, now: Instant) -> bool {
    !parts.ledger.is_unanswered(now) && parts.chunks.has_slices(now) && parts.outbound.allows_slice(now)
}

/// When the next slice may go out.
pub(super) fn next_at(parts: &Conversation, now: Instant) -> Instant {
    if parts.ledger.is_unanswered(now) {
        return Instant::NEVER;
    }
    parts.chunks.next_slice_at().max(parts.outbound.next_bulk())
}
