//! Writing a packet.

use super::packet::{Control, DELAY_BITS, DELAY_UNIT_NANOS, MAX_DETAIL_BYTES, VERSION};

use crate::transport::chunks::{self, Item};
use crate::transport::framing::chunk_items::write_item;
use crate::transport::ledger::AckRange;
use crate::transport::message::{Message, Prefix, Selected};
use crate::transport::parts::fragment_of;
use crate::transport::peer_clock::ReceiveTime;
use crate::transport::protocol::{
    Body, FRAGMENT_BYTES, Protocol, bits_to_name_one_of, key_bits, length_bits,
};
use crate::wire::{BitSink, BitWriter, Encoded, Measure};

const HELLO_BITS: usize = 8 + 64;
const MAX_DELAY: u64 = (1 << DELAY_BITS) - 1;
/// The flags of the five optional sections and the end of the entries.
const FLAG_BITS: usize = 6;

/// Bits of everything besides entries, an upper bound.
pub(crate) fn control_bits(control: &Control, protocol: &Protocol, ack: u64) -> usize {
    let mut bits = FLAG_BITS;
    bits += control.hello.map_or(0, |_| HELLO_BITS);
    bits += control.close.map_or(0, |_| 8 + 1);
    bits += control.detail.as_ref().map_or(0, |detail| 8 + 7 + detail.len() * 8);
    bits += control.ack_delay.map_or(0, |_| DELAY_BITS as usize + 1);
    bits += control.received_at.map_or(0, |_| ReceiveTime::BITS as usize);
    bits += control.credits.len() * (protocol.channel_bits() as usize + 16 + 1);
    bits + range_bits(control, ack)
}

/// Bits of the ack ranges.
pub(crate) fn range_bits(control: &Control, ack: u64) -> usize {
    let bits = |(gap, run)| Measure::relative(gap + 1) + Measure::relative(run) + 1;
    gaps_and_runs(&control.ranges, ack).map(bits).sum()
}

pub(crate) fn write_control(writer: &mut BitWriter, control: &Control, protocol: &Protocol, ack: u64) {
    writer.bool(control.hello.is_some());
    if let Some(hash) = control.hello {
        writer.bits(u64::from(VERSION), 8);
        writer.bits(hash, 64);
    }
    writer.bool(control.close.is_some());
    if let Some(reason) = control.close {
        writer.bits(reason as u64, 8);
        writer.bool(control.detail.is_some());
        if let Some(detail) = &control.detail {
            writer.string(detail, MAX_DETAIL_BYTES as u32);
        }
        return;
    }
    writer.bool(control.ack_delay.is_some());
    if let Some(delay) = control.ack_delay {
        writer.bits(((delay.as_nanos() / u128::from(DELAY_UNIT_NANOS)) as u64).min(MAX_DELAY), DELAY_BITS);
        writer.bool(control.received_at.is_some());
        if let Some(received_at) = control.received_at {
            writer.bits(received_at.bits(), ReceiveTime::BITS);
        }
    }
    writer.bool(!control.ranges.is_empty());
    let mut pairs = gaps_and_runs(&control.ranges, ack).peekable();
    while let Some((gap, run)) = pairs.next() {
        writer.int_relative(0, gap + 1);
        writer.int_relative(0, run);
        writer.bool(pairs.peek().is_some());
    }
    writer.bool(!control.credits.is_empty());
    let mut credits = control.credits.iter().peekable();
    while let Some((channel, unread)) = credits.next() {
        write_name(writer, u64::from(*channel), protocol.channel_bits());
        writer.bits(u64::from(*unread), 16);
        writer.bool(credits.peek().is_some());
    }
}

/// Writes the entries of a packet: the selected messages, channels ascending, and the chunk items.
pub(crate) fn write_entries<'a>(
    writer: &mut BitWriter,
    protocol: &Protocol,
    selected: impl Iterator<Item = (usize, &'a [Selected])>,
    chunks: &chunks::Selection,
) {
    let mut selected = selected.peekable();
    let of_chunks = protocol.chunk_channel().filter(|_| !chunks.items.is_empty());
    if let Some(channel) = of_chunks {
        while let Some((before, selected)) = selected.next_if(|(other, _)| *other < channel) {
            write_entry(writer, protocol, before, selected);
        }
        write_chunk_entry(writer, protocol, channel, &chunks.items, &chunks.arena);
    }
    selected.for_each(|(channel, selected)| write_entry(writer, protocol, channel, selected));
}

/// Writes the entry of a channel: nothing when no message is selected that rides whole.
pub(in crate::transport::framing) fn write_entry(
    writer: &mut BitWriter,
    protocol: &Protocol,
    channel: usize,
    selected: &[Selected],
) {
    let config = &protocol.channels()[channel];
    let mut previous = None;
    let mut whole = selected.iter().filter(|selected| selected.fragment.is_none()).peekable();
    if whole.peek().is_none() {
        return;
    }
    writer.bool(true);
    write_name(writer, channel as u64, protocol.channel_bits());
    while let Some(Selected { prefix, message, .. }) = whole.next() {
        match (*prefix, previous) {
            (Prefix::Id(id), Some(previous)) => {
                writer.int_relative(0, u32::from(u16::wrapping_sub(id, previous)));
            }
            (Prefix::Id(id), None) => writer.bits(id.into(), 16),
            (Prefix::Key(key), _) => write_name(writer, key.into(), key_bits(&config.kind)),
            (Prefix::None, _) => {}
        }
        if let Prefix::Id(id) = *prefix {
            previous = Some(id);
        }
        if config.kind.is_payload() {
            write_opaque(writer, length_bits(config.max_message_bytes), &message.encoded);
        } else {
            write_message(writer, protocol, message);
        }
        writer.bool(whole.peek().is_some());
    }
}

/// Writes a message's type and body.
fn write_message(writer: &mut BitWriter, protocol: &Protocol, message: &Message) {
    write_name(writer, u64::from(message.message_type), protocol.type_bits());
    match protocol.opaque_length_bits(message.message_type) {
        0 => writer.append(&message.encoded),
        length_bits => write_opaque(writer, length_bits, &message.encoded),
    }
}

/// Writes an opaque body after its length.
fn write_opaque(writer: &mut BitWriter, length_bits: u32, body: &Encoded) {
    let start = writer.bit_len() + length_bits as usize;
    writer.bits(body.bits_at(start) as u64, length_bits);
    writer.append(body);
}

/// Room for most messages, so that writing one alone allocates once.
const USUAL_BYTES: usize = 64;

/// One message alone, with its type, as in a packet, padded with zero bits to a byte.
pub fn write_alone(protocol: &Protocol, message: &Message) -> Vec<u8> {
    let mut writer = BitWriter::new();
    write_message(&mut writer, protocol, message);
    writer.into_bytes()
}

/// The beginning of [`write_alone`]'s output for a declared type: its fields follow. None for other types.
pub fn begin_alone(protocol: &Protocol, message_type: u16) -> Option<BitWriter> {
    if let Body::Opaque { .. } = protocol.messages()[usize::from(message_type)].body {
        return None;
    }
    let mut writer = BitWriter::with_buffer(Vec::with_capacity(USUAL_BYTES));
    write_name(&mut writer, u64::from(message_type), protocol.type_bits());
    Some(writer)
}

/// An upper bound of the bits of [`write_alone`], padding aside, for a body of `body_bits`.
pub fn alone_bits(protocol: &Protocol, message_type: u16, body_bits: usize) -> usize {
    (protocol.type_bits() + protocol.opaque_length_bits(message_type)) as usize + body_bits
}

/// Writes the entry of a channel of chunks: nothing when there are no items.
pub(in crate::transport::framing) fn write_chunk_entry(
    writer: &mut BitWriter,
    protocol: &Protocol,
    channel: usize,
    items: &[Item],
    slices: &[u8],
) {
    for (i, item) in items.iter().enumerate() {
        writer.bool(true);
        if i == 0 {
            write_name(writer, channel as u64, protocol.channel_bits());
        }
        write_item(writer, item, slices);
    }
    if !items.is_empty() {
        writer.bool(false);
    }
}

/// Ends the entries of a packet, and writes the fragments of messages after them, their numbers first.
pub(crate) fn write_end<'a>(
    writer: &mut BitWriter,
    protocol: &Protocol,
    fragments: impl Iterator<Item = (usize, &'a Selected)>,
) {
    writer.bool(false);
    let mut any = false;
    for (channel, Selected { prefix, message, fragment, .. }) in fragments {
        let (Prefix::Id(id), Some(index)) = (*prefix, *fragment) else { continue };
        any = true;
        writer.bool(true);
        let body = message.encoded.bytes();
        write_name(writer, channel as u64, protocol.channel_bits());
        writer.bits(id.into(), 16);
        write_name(writer, u64::from(message.message_type), protocol.type_bits());
        let max_bytes = protocol.channels()[channel].max_message_bytes;
        writer.bits(message.encoded.bits() as u64, length_bits(max_bytes));
        write_name(writer, index.into(), bits_to_name_one_of(body.len().div_ceil(FRAGMENT_BYTES)));
        writer.bytes(fragment_of(body, index.into(), FRAGMENT_BYTES));
    }
    if any {
        writer.bool(false);
    }
}

fn write_name(writer: &mut BitWriter, value: u64, bits: u32) {
    if bits > 0 {
        writer.bits(value, bits);
    }
}

/// The walk from `ack - 32` downward: how many packets lie between two ranges, and how many are in one.
fn gaps_and_runs(ranges: &[AckRange], ack: u64) -> impl Iterator<Item = (u32, u32)> {
    let mut at = ack.wrapping_sub(32);
    ranges.iter().map(move |range| {
        let gap = at.wrapping_sub(range.newest);
        let run = range.newest.wrapping_sub(range.oldest) + 1;
        at = range.oldest.wrapping_sub(1);
        (gap as u32, run as u32)
    })
}
