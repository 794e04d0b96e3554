//! Writing: `YOJIMBO.md`, "Packet".

use crate::transport::message::{Message, Prefix, Selected};
use crate::transport::parts::Fragment;
use crate::transport::protocol::Protocol;
use crate::wire::{BitSink, BitWriter, bit_len};

/// One channel's part of a packet.
pub(crate) enum Entry<'a> {
    Messages(&'a [Selected]),
    Fragment(&'a Fragment),
}

/// Bits of a packet apart from its entries.
pub(crate) fn header_bits(protocol: &Protocol) -> usize {
    bit_len(protocol.channels().len() as u64) as usize
}

/// Writes a packet of these entries, channels ascending, each with something in it.
pub(crate) fn write(writer: &mut BitWriter, protocol: &Protocol, entries: &[(usize, Entry<'_>)]) {
    writer.int(entries.len() as i64, 0, protocol.channels().len() as i64);
    for (channel, entry) in entries {
        writer.int(*channel as i64, 0, protocol.channels().len() as i64 - 1);
        match entry {
            Entry::Messages(selected) => {
                writer.bool(false);
                write_messages(writer, protocol, *channel, selected);
            }
            Entry::Fragment(fragment) => {
                writer.bool(true);
                write_fragment(writer, protocol, *channel, fragment);
            }
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

fn write_fragment(writer: &mut BitWriter, protocol: &Protocol, channel: usize, fragment: &Fragment) {
    let bits = protocol.yojimbo_channel(channel).widths();
    let data = fragment.data();
    writer.bits(fragment.id.into(), 16);
    write_bits(writer, fragment.count - 1, bits.fragment_count);
    write_bits(writer, fragment.index, bit_len(fragment.count as u64 - 1));
    write_bits(writer, data.len().saturating_sub(1), bits.fragment_bytes);
    writer.bytes(data);
    if fragment.index == 0 {
        write_message(writer, protocol, &fragment.message);
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
