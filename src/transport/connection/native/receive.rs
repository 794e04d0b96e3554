//! Taking a packet of the peer: read whole, judged, and only then applied.

use crate::store::sequence::ahead;
use crate::time::Instant;
use crate::transport::ack_endpoint::Incoming;
use crate::transport::congestion::RoundTrip;
use crate::transport::connection::conversation::Conversation;
use crate::transport::connection::scratch::Memory;
use crate::transport::connection::{End, Violation};
use crate::transport::direct_tables::{Destination, DirectTables};
use crate::transport::framing::Refusal;
use crate::transport::framing::native::{
    self, MAX_PACKET_MEMORY, Packet, PacketMessage, ReadContext, read_body,
};
use crate::transport::ledger::Notification;
use crate::transport::ledger::acks::RttSampling;
use crate::transport::message::{Bodies, Prefix};
use crate::transport::parts::ChannelFault;
use crate::transport::protocol::Protocol;
use crate::transport::stream::Streams;

/// How much of a packet's memory is kept for the next one: enough for games, so that a peer can't make each
/// connection hold the maximum.
const KEPT_MESSAGES: usize = 64;
const KEPT_ROW_BYTES: usize = 4096;

/// The judgement of a packet that was read.
enum Judgement {
    Accept,
    /// It is not acked, as if it had been lost.
    Drop,
    /// The same, because the messages that weren't taken hold all the memory they may.
    DropWithoutMemory,
    /// The conversation is over.
    Refuse(End),
}

/// Takes a packet of the peer; returns false if it was dropped.
///
/// # Errors
/// The conversation is over, and why.
pub(super) fn handle(
    parts: &mut Conversation,
    now: Instant,
    incoming: Incoming<'_>,
    mut tables: Option<&mut dyn DirectTables>,
) -> Result<bool, End> {
    let header = incoming.header;
    let context = ReadContext {
        now,
        sequence: header.sequence,
        ack: header.ack,
        hello_received: parts.inbound.hello_received,
    };
    // `as_deref_mut` would keep the lifetime of the tables' contents.
    let lent = tables.as_mut().map(|tables| &mut **tables as &mut dyn DirectTables);
    let verdict = match read(parts, &context, incoming.payload(), lent) {
        Judgement::Accept => judge(parts, &context, &incoming),
        verdict => verdict,
    };
    match verdict {
        Judgement::Accept => {}
        Judgement::Drop => {
            parts.ledger.endpoint.recycle(incoming);
            return Ok(false);
        }
        Judgement::DropWithoutMemory => {
            parts.ledger.endpoint.drop_without_memory(incoming);
            return Ok(false);
        }
        Judgement::Refuse(end) => {
            parts.ledger.endpoint.refuse(incoming);
            return Err(end);
        }
    }
    let Memory { packet, acked, .. } = parts.scratch.get();
    let delay = packet.control.ack_delay;
    let sampling = delay.map_or(RttSampling::None, |delay| RttSampling::NewestAck { delay });
    acked.clear();
    parts.ledger.accept(now, incoming, sampling, acked);
    // From the newest packet, unless it was acked before.
    let newest = acked.iter().find(|acked| acked.sequence == header.ack);
    let received_at = packet.control.received_at;
    let round_trip = newest
        .zip(delay)
        .map(|(newest, delay)| RoundTrip { time: (now - newest.sent_at).saturating_sub(delay), received_at });
    parts.apply_acks(now, round_trip);
    if parts.ledger.endpoint.acks.acked_skipped && !parts.inbound.is_replayed {
        return Err(End::Violation(Violation::Ack));
    }
    apply(parts, now, &context, tables)?;
    Ok(true)
}

/// Reads a packet into the scratch memory, and messages that needn't wait into the lent tables.
fn read(
    parts: &mut Conversation,
    context: &ReadContext,
    payload: &[u8],
    tables: Option<&mut dyn DirectTables>,
) -> Judgement {
    let Memory { packet, bodies, .. } = parts.scratch.get();
    let room = |channel| parts.streams.direct_room(channel, context.sequence);
    let bytes = parts.streams.direct_bytes;
    let destination = tables.map(|tables| Destination { tables, room: &room, bytes });
    match native::read(payload, &parts.protocol, *context, packet, bodies, destination) {
        Ok(()) if has_memory(&parts.streams, packet, None) => Judgement::Accept,
        Ok(()) | Err(Refusal::Memory) => Judgement::DropWithoutMemory,
        Err(Refusal::Mismatch) => Judgement::Refuse(End::Mismatch),
        Err(refusal) => Judgement::Refuse(End::Violation(Violation::Packet(refusal))),
    }
}

/// Judges a packet that was read, and assembles its fragments. Nothing else of it is applied.
fn judge(parts: &mut Conversation, context: &ReadContext, incoming: &Incoming<'_>) -> Judgement {
    let Memory { packet, bodies, .. } = parts.scratch.get();
    if !parts.chunks.affords(context.now, &packet.chunk_items) {
        return Judgement::Drop;
    }
    if let Some(reason) = packet.control.close {
        parts.inbound.detail = packet.control.detail.take();
        return Judgement::Refuse(End::ByPeer(reason));
    }
    if !packet.fragments.is_empty() {
        match assemble(&mut parts.streams, &parts.protocol, context, packet, bodies) {
            Ok(true) => {}
            Ok(false) => return Judgement::DropWithoutMemory,
            Err(end) => return Judgement::Refuse(end),
        }
    }
    let acks_unsent = parts.ledger.acks_unsent(incoming, !packet.control.ranges.is_empty());
    if acks_unsent && !parts.inbound.is_replayed {
        return Judgement::Refuse(End::Violation(Violation::Ack));
    }
    match check_windows(parts, context.sequence) {
        Ok(()) => Judgement::Accept,
        Err(violation) => Judgement::Refuse(violation.into()),
    }
}

/// Hands a packet's fragments to their channels, and adds the messages that they complete to the packet's; false when there is
/// no memory for one, so that the packet isn't acked and comes again. Its fragments stay: they are the same then.
fn assemble(
    streams: &mut Streams,
    protocol: &Protocol,
    context: &ReadContext,
    packet: &mut Packet,
    bodies: &mut Bodies,
) -> Result<bool, End> {
    let fragments = core::mem::take(&mut packet.fragments);
    for fragment in &fragments {
        let data = &packet.fragment_bytes[fragment.bytes.clone()];
        let handled = streams.receive_reliable(fragment.channel.into(), |receiver| {
            receiver.handle_message_fragment(fragment, data, context.sequence)
        });
        let whole = handled.ok_or(ChannelFault::Window)??;
        let Some(body) = whole else { continue };
        let prefix = Prefix::Id(fragment.id);
        // Checked before reading, because an unacked packet may come again and again.
        if !has_memory(streams, packet, Some((fragment.channel, prefix))) {
            return Ok(false);
        }
        let read = read_body(&body, fragment.bits, fragment.message_type, protocol, context, bodies);
        let received = read.map_err(|refusal| End::Violation(Violation::Packet(refusal)))?;
        packet.memory += received.memory();
        if packet.memory > MAX_PACKET_MEMORY {
            // As of a packet that has them whole. They come again one by one.
            return Ok(false);
        }
        packet.messages.push(PacketMessage { channel: fragment.channel, prefix, received });
    }
    packet.fragments = fragments;
    Ok(true)
}

/// Whether there is memory for a packet's messages, and for one of a channel that its fragments complete: see
/// [`HeldMemory`](crate::transport::stream::HeldMemory).
fn has_memory(streams: &Streams, packet: &Packet, completed: Option<(u8, Prefix)>) -> bool {
    // The packet that all others wait for must get through: with it they can be taken.
    let awaited = || {
        let messages = packet.messages.iter().map(|message| (message.channel, message.prefix));
        let fragments = packet.fragments.iter().map(|fragment| (fragment.channel, Prefix::Id(fragment.id)));
        let mut all = messages.chain(fragments).chain(completed);
        all.any(|(channel, prefix)| streams.awaits(channel.into(), prefix))
    };
    streams.held.has_room(packet.memory) || awaited()
}

/// Checks that the windows allow everything in the packet, before anything of it is applied.
fn check_windows(parts: &mut Conversation, arrival: u64) -> Result<(), ChannelFault> {
    let Packet { control, messages, placed, fragments, .. } = &parts.scratch.get().packet;
    for (channel, unread) in control.credits.iter().filter(|_| !parts.inbound.is_replayed) {
        parts.streams.check_credit((*channel).into(), *unread, arrival)?;
    }
    if !fragments.is_empty() {
        placed.iter().try_for_each(|placed| parts.streams.check_placed(placed))?;
    }
    // Messages of a channel are adjacent.
    let (mut channel, mut claimed) = (None, 0);
    for message in messages {
        if channel.replace(message.channel) != Some(message.channel) {
            let placed = placed.iter().find(|placed| placed.channel == message.channel);
            claimed = placed.map_or(0, |placed| placed.window_bytes as isize);
        }
        let place = (message.prefix, arrival);
        parts.streams.check(message.channel.into(), place, message.received.window_bytes, &mut claimed)?;
    }
    Ok(())
}

/// Applies the contents of a packet that was accepted.
fn apply(
    parts: &mut Conversation,
    now: Instant,
    &ReadContext { sequence: arrival, ack, .. }: &ReadContext,
    tables: Option<&mut dyn DirectTables>,
) -> Result<(), End> {
    parts.inbound.hello_received |= parts.scratch.get().packet.control.hello.is_some();
    note_pending_ack(parts, now);
    apply_credits(parts, now, arrival)?;
    apply_messages(parts, arrival, tables)?;
    let Packet { chunk_items, slices, .. } = &mut parts.scratch.get().packet;
    if !chunk_items.is_empty() {
        // A peer may name any packet.
        let newest = parts.ledger.endpoint.acks.newest_sent();
        let known = if ahead(ack, newest) > 0 { newest } else { ack };
        chunk_items.drain(..).for_each(|item| parts.chunks.handle(now, item, slices, known, arrival));
        parts.chunks.update(now);
    }
    free(parts.scratch.get());
    Ok(())
}

/// Notes whether and how soon the packet wants to be acked.
fn note_pending_ack(parts: &mut Conversation, now: Instant) {
    let Packet { control, messages, placed, fragments, chunk_items, .. } = &parts.scratch.get().packet;
    let is_empty = messages.is_empty() && placed.is_empty() && fragments.is_empty();
    let is_brief = control.hello.is_none() && control.credits.is_empty() && chunk_items.is_empty();
    if is_empty && is_brief {
        return;
    }
    let pending = &mut parts.ledger.pending_ack;
    let is_reliable = |channel: u8| parts.streams.is_reliable(channel.into());
    let mut can_wait = is_brief && fragments.is_empty();
    can_wait &= placed.iter().all(|it| is_reliable(it.channel) && pending.is_patient(it.channel));
    can_wait &= messages.iter().all(|it| pending.is_patient(it.channel));
    pending.count(now, !can_wait);
    let resends =
        messages.iter().any(|it| is_reliable(it.channel)) || placed.iter().any(|it| is_reliable(it.channel));
    if resends || !(fragments.is_empty() && chunk_items.is_empty() && control.credits.is_empty()) {
        pending.urgent = true;
    }
}

/// Hands the packet's credit to the streams.
fn apply_credits(parts: &mut Conversation, now: Instant, arrival: u64) -> Result<(), ChannelFault> {
    for (channel, unread) in parts.scratch.get().packet.control.credits.drain(..) {
        let notifications = &mut parts.ledger.notifications;
        let mut delivered = |tag| notifications.push(Notification { channel, tag, delivered: true });
        let Some(sender) = parts.streams.sending_reliable(channel.into()) else { continue };
        let credited = sender.handle_credit(now, unread, arrival, &mut delivered);
        if !parts.inbound.is_replayed {
            credited?;
        }
    }
    Ok(())
}

/// Hands the packet's messages to the streams.
fn apply_messages(
    parts: &mut Conversation,
    arrival: u64,
    mut tables: Option<&mut dyn DirectTables>,
) -> Result<(), ChannelFault> {
    let Memory { packet, bodies, .. } = parts.scratch.get();
    let Packet { messages, placed, placed_memory, .. } = packet;
    let direct_bytes = &mut parts.streams.direct_bytes;
    *direct_bytes = direct_bytes.saturating_sub(core::mem::take(placed_memory));
    for placed in placed.drain(..) {
        parts.streams.note_placed(arrival, &placed);
    }
    for message in messages.drain(..) {
        let index = usize::from(message.channel);
        let handled = parts
            .streams
            .receive(index, |receiving| receiving.handle(message.prefix, arrival, message.received));
        let Some(handled) = handled else { continue };
        let (dropped, pushes_out) = (handled?, parts.streams.pushes_out(index));
        dropped.into_iter().for_each(|dropped| bodies.spares.reclaim(dropped.body));
        if let Some(tables) = tables.as_deref_mut().filter(|_| pushes_out) {
            tables.push_out(message.channel);
        }
    }
    Ok(())
}

/// Gives back the memory of a large packet.
fn free(memory: &mut Memory) {
    let Memory { packet: Packet { messages, fragments, fragment_bytes, .. }, bodies, .. } = memory;
    messages.shrink_to(KEPT_MESSAGES);
    fragments.clear();
    fragments.shrink_to(KEPT_MESSAGES);
    fragment_bytes.clear();
    fragment_bytes.shrink_to(KEPT_ROW_BYTES);
    bodies.scratch.clear();
    bodies.scratch.shrink_to(KEPT_ROW_BYTES);
}
