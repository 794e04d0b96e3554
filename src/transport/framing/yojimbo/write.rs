//! Writing: `YOJIMBO.md`, "Packet".

use crate::transport::message::{Message, Prefix, Selected};
use crate::transport::parts::fragment_of;
use crate::transport::protocol::Protocol;
use crate::wire::{BitSink, BitWriter, bit_len};

/// Bits of a packet apart from its entries.
pub(crate) fn header_bits(protocol: &Protocol) -> usize {
    bit_len(protocol.channels().len() as u64) as usize
}

/// Writes a packet of these entries, channels ascending, each with messages or a fragment of a block.
pub(crate) fn write(writer: &mut BitWriter, protocol: &Protocol, entries: &[(usize, &[Selected])]) {
    writer.int(entries.len() as i64, 0, protocol.channels().len() as i64);
    for &(channel, selected) in entries {
        writer.int(channel as i64, 0, protocol.channels().len() as i64 - 1);
        // A fragment is alone in its channel's entry: `Streams::select_block_fragment` sees to that.
        if let [Selected { prefix: Prefix::Id(id), message, fragment: Some(index), .. }] = selected {
            writer.bool(true);
            write_fragment(writer, protocol, channel, (*id, message), (*index).into());
        } else {
            debug_assert!(selected.iter().all(|selected| selected.fragment.is_none()));
            writer.bool(false);
            write_messages(writer, protocol, channel, selected);
        }
    }
}

fn write_messages(writer: &mut BitWriter, protocol: &Protocol, channel: usize, selected: &[Selected]) {
    let bits = protocol.yojimbo_channel(channel).widths();
    writer.bool(!selected.is_empty());
    write_bits(writer, selected.len().saturating_sub(1), bits.messages);
    let mut previous = None;
    for selected in selected {
        let Prefix::Id(id) = selected.prefix else { continue };
        match previous {
            None => writer.bits(id.into(), 16),
            Some(previous) => writer.sequence_relative(previous, id),
        }
        previous = Some(id);
    }
    for Selected { message, .. } in selected {
        write_message(writer, protocol, message);
        if let Some(block) = &message.block {
            write_bits(writer, block.len().saturating_sub(1), bits.block_bytes);
            writer.bytes(block);
        }
    }
}

fn write_fragment(
    writer: &mut BitWriter,
    protocol: &Protocol,
    channel: usize,
    (id, message): (u16, &Message),
    index: usize,
) {
    let settings = protocol.yojimbo_channel(channel);
    let (bits, size) = (settings.widths(), settings.block_fragment_bytes);
    let block = message.block_bytes();
    let (count, data) = (block.len().div_ceil(size), fragment_of(block, index, size));
    writer.bits(id.into(), 16);
    write_bits(writer, count - 1, bits.fragment_count);
    write_bits(writer, index, bit_len(count as u64 - 1));
    write_bits(writer, data.len().saturating_sub(1), bits.fragment_bytes);
    writer.bytes(data);
    if index == 0 {
        write_message(writer, protocol, message);
    }
}

/// Writes a message's type and body.
fn write_message(writer: &mut BitWriter, protocol: &Protocol, message: &Message) {
    write_bits(writer, message.message_type.into(), protocol.type_bits());
    writer.append(&message.encoded);
}

fn write_bits(writer: &mut BitWriter, value: usize, bits: u32) {
    if bits > 0 {
        writer.bits(value as u64, bits);
    }
}
