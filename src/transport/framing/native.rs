//! Tickwire's own connection packet: `STANDARD.md` beside this file is the norm.
//!
//! Reading promises: a packet is either read whole or refused; nothing is applied here. Every number is
//! checked against what the protocol allows before it is believed, and memory taken is in proportion to the packet.
//!
//! Bounds of one packet: [`MAX_PACKET_MESSAGES`] messages and their bodies, none above its channel's bound; ranges that walk
//! 32,768 numbers; one credit and one entry a channel. Windows and ids are for the channels to judge, and whether
//! fragments fit together.

use core::time::Duration;

use super::chunk_items::{read_item, write_item};
use super::refusal::{MAX_PACKET_MESSAGES, Refusal};
use crate::store::SmallBytes;
use crate::time::Instant;
use crate::transport::chunks::{self, Item};
use crate::transport::direct_tables::{Destination, DirectRoom, Placed};
use crate::transport::ledger::AckRange;
use crate::transport::message::{
    Bodies, MESSAGE_OVERHEAD_BYTES, Message, OpaqueBody, Prefix, Received, Selected, window_bytes,
};
use crate::transport::owner::Owner;
use crate::transport::parts::{MessageFragment, fragment_of};
use crate::transport::peer_clock::ReceiveTime;
use crate::transport::protocol::{
    Body, ChannelKind, FRAGMENT_BYTES, Protocol, bits_to_name_one_of, key_bits, length_bits,
};
use crate::wire::{BitReader, BitSink, BitWriter, Encoded, Measure};

/// The version of this framing.
pub const VERSION: u8 = 4;

const HELLO_BITS: usize = 8 + 64;
const DELAY_BITS: u32 = 14;
const DELAY_UNIT_NANOS: u128 = 64_000;
const MAX_DELAY: u64 = (1 << DELAY_BITS) - 1;
/// The flags of the five optional sections and the end of the entries.
const FLAG_BITS: usize = 6;
/// Bytes of memory that the messages of one packet may take: a list of mostly omitted fields takes hundreds of times
/// its bits, and the largest packet of such lists would take 160 MB.
pub(crate) const MAX_PACKET_MEMORY: usize = 4 << 20;
/// UTF-8 bytes of the text with which an application ends a connection: a sentence, and no more than a game's
/// smallest packets even when it is repeated.
pub const MAX_DETAIL_BYTES: usize = 128;
/// How far ack ranges may walk: twice the largest window of packets.
const MAX_RANGE_WALK: u64 = 32_768;

/// Why the peer ended the connection, or why we do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The application closed it.
    Closed,
    /// The server's application wants this player gone.
    Kicked,
    /// The sides' protocols differ.
    Mismatch,
    /// The peer broke the protocol.
    Violation,
    /// The same client connected again.
    Replaced,
    /// Nothing was heard of the peer for too long.
    TimedOut,
    /// A channel to the peer stayed full for too long.
    Stalled,
}

impl CloseReason {
    fn number(self) -> u8 {
        match self {
            CloseReason::Closed => 1,
            CloseReason::Kicked => 2,
            CloseReason::Mismatch => 3,
            CloseReason::Violation => 4,
            CloseReason::Replaced => 5,
            CloseReason::TimedOut => 6,
            CloseReason::Stalled => 7,
        }
    }

    fn from_number(number: u64) -> Self {
        match number {
            2 => CloseReason::Kicked,
            3 => CloseReason::Mismatch,
            4 => CloseReason::Violation,
            5 => CloseReason::Replaced,
            6 => CloseReason::TimedOut,
            7 => CloseReason::Stalled,
            _ => CloseReason::Closed,
        }
    }
}

/// Everything in a packet besides messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Control {
    /// The protocol hash, while the peer may not know it.
    pub(crate) hello: Option<u64>,
    pub(crate) close: Option<CloseReason>,
    /// The application's text for the close: 1 to [`MAX_DETAIL_BYTES`] bytes.
    pub(crate) detail: Option<Box<str>>,
    pub(crate) ack_delay: Option<Duration>,
    /// When the packet arrived that the ack delay is about. Omitted without a delay.
    pub(crate) received_at: Option<ReceiveTime>,
    pub(crate) ranges: Vec<AckRange>,
    /// (channel, unread id), channels ascending.
    pub(crate) credits: Vec<(u8, u16)>,
}

/// A packet read whole.
#[derive(Debug, Default)]
pub(crate) struct Packet {
    pub(crate) control: Control,
    pub(crate) messages: Vec<PacketMessage>,
    /// Messages, with those that needn't wait.
    count: usize,
    /// The messages that were placed directly in the tables.
    pub(crate) placed: Vec<Placed>,
    /// Bytes of memory of those.
    pub(crate) placed_memory: usize,
    /// Fragments of messages, and their bytes.
    pub(crate) fragments: Vec<MessageFragment>,
    pub(crate) fragment_bytes: Vec<u8>,
    /// Bytes of memory that the messages and fragments take.
    pub(crate) memory: usize,
    /// The chunk items, with the bytes of their slices.
    pub(crate) chunk_items: Vec<Item>,
    pub(crate) slices: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct PacketMessage {
    pub(crate) channel: u8,
    pub(crate) prefix: Prefix,
    pub(crate) received: Received,
}

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
        writer.bits(u64::from(reason.number()), 8);
        writer.bool(control.detail.is_some());
        if let Some(detail) = &control.detail {
            writer.string(detail, MAX_DETAIL_BYTES as u32);
        }
        return;
    }
    writer.bool(control.ack_delay.is_some());
    if let Some(delay) = control.ack_delay {
        writer.bits(((delay.as_nanos() / DELAY_UNIT_NANOS) as u64).min(MAX_DELAY), DELAY_BITS);
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
pub(super) fn write_entry(
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

/// Reads what [`write_alone`] wrote: the message's type and its body.
pub(super) fn read_alone(protocol: &Protocol, bytes: &[u8]) -> Result<(u16, SmallBytes), Refusal> {
    let mut reader = BitReader::new(bytes);
    // A number of 16 bits.
    let message_type = read_name(&mut reader, protocol.messages().len())? as u16;
    let mut body = Vec::new();
    read_declared(&mut reader, protocol, message_type, &mut body)?;
    if protocol.owner(message_type) != Owner::Game {
        return Err(Refusal::Type);
    }
    reader.finish()?;
    Ok((message_type, SmallBytes::from(body.as_slice())))
}

/// Writes the entry of a channel of chunks: nothing when there are no items.
pub(super) fn write_chunk_entry(
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

/// Reads a packet whole into `packet`, whose memory is reused; messages with a place at the `destination` are there
/// afterwards.
///
/// # Errors
///
/// What is wrong with it. The contents of `packet` are meaningless then, and the destination must be cut.
pub(crate) fn read(
    bytes: &[u8],
    protocol: &Protocol,
    context: ReadContext,
    packet: &mut Packet,
    bodies: &mut Bodies,
    mut destination: Option<Destination<'_>>,
) -> Result<(), Refusal> {
    packet.messages.clear();
    packet.placed.clear();
    packet.placed_memory = 0;
    packet.count = 0;
    packet.fragments.clear();
    packet.fragment_bytes.clear();
    packet.memory = 0;
    packet.chunk_items.clear();
    packet.slices.clear();
    let mut reader = BitReader::new(bytes);
    read_control(&mut reader, protocol, &context, &mut packet.control)?;
    if packet.control.close.is_none() {
        let mut channels = Ascending::default();
        while reader.bool()? {
            let channel = channels.next(read_name(&mut reader, protocol.channels().len())?)?;
            if protocol.channels()[channel].kind.is_chunks() {
                read_chunk_entry(&mut reader, packet)?;
            } else {
                let mut entry = Entry { protocol, context: &context, channel, packet, bodies };
                entry.read(&mut reader, destination.as_mut())?;
            }
        }
        read_fragments(&mut reader, protocol, packet)?;
    }
    Ok(reader.finish()?)
}

/// Facts about a packet that its bits don't carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadContext {
    pub(crate) now: Instant,
    pub(crate) sequence: u64,
    pub(crate) ack: u64,
    /// Whether an earlier packet had a hello.
    pub(crate) hello_received: bool,
}

impl ReadContext {
    pub(super) fn received(&self, message_type: u16, body: SmallBytes, bits: usize) -> Received {
        Received {
            message_type,
            packet_sequence: self.sequence,
            received_at: self.now,
            key: 0,
            missed: 0,
            body,
            block: None,
            window_bytes: window_bytes(bits),
        }
    }
}

fn read_control(
    reader: &mut BitReader<'_>,
    protocol: &Protocol,
    context: &ReadContext,
    control: &mut Control,
) -> Result<(), Refusal> {
    control.ranges.clear();
    control.credits.clear();
    control.hello = None;
    control.close = None;
    control.detail = None;
    (control.ack_delay, control.received_at) = (None, None);
    if reader.bool()? {
        let version = reader.bits(8)?;
        if version != u64::from(VERSION) || reader.bits(64)? != protocol.hash() {
            return Err(Refusal::Mismatch);
        }
        control.hello = Some(protocol.hash());
    } else if !context.hello_received {
        return Err(Refusal::NoHello);
    }
    if reader.bool()? {
        control.close = Some(CloseReason::from_number(reader.bits(8)?));
        if reader.bool()? {
            let detail = reader.string(MAX_DETAIL_BYTES as u32)?;
            if detail.is_empty() {
                return Err(Refusal::Length);
            }
            control.detail = Some(detail.into());
        }
        return Ok(());
    }
    if reader.bool()? {
        let units = reader.bits(DELAY_BITS)?;
        control.ack_delay = Some(Duration::from_nanos(units * DELAY_UNIT_NANOS as u64));
        if reader.bool()? {
            control.received_at = Some(ReceiveTime::from_bits(reader.bits(ReceiveTime::BITS)?));
        }
    }
    if reader.bool()? {
        read_ranges(reader, context.ack, &mut control.ranges)?;
    }
    if reader.bool()? {
        read_credits(reader, protocol, &mut control.credits)?;
    }
    Ok(())
}

fn read_ranges(reader: &mut BitReader<'_>, ack: u64, ranges: &mut Vec<AckRange>) -> Result<(), Refusal> {
    let mut walked = 32;
    loop {
        let gap = read_relative(reader)? - 1;
        let run = read_relative(reader)?;
        let newest = walked + gap;
        walked = newest + run;
        if u64::from(walked) > ack.saturating_add(1).min(MAX_RANGE_WALK) {
            return Err(Refusal::Ranges);
        }
        ranges.push(AckRange {
            newest: ack.wrapping_sub(newest.into()),
            oldest: ack.wrapping_sub((walked - 1).into()),
        });
        if !reader.bool()? {
            return Ok(());
        }
    }
}

fn read_credits(
    reader: &mut BitReader<'_>,
    protocol: &Protocol,
    credits: &mut Vec<(u8, u16)>,
) -> Result<(), Refusal> {
    let mut channels = Ascending::default();
    loop {
        let channel = channels.next(read_name(reader, protocol.channels().len())?)?;
        if !protocol.channels()[channel].kind.has_credit() {
            return Err(Refusal::Channel);
        }
        credits.push((channel as u8, reader.bits(16)? as u16));
        if !reader.bool()? {
            return Ok(());
        }
    }
}

/// A channel's part of a packet that is being read.
struct Entry<'a> {
    protocol: &'a Protocol,
    context: &'a ReadContext,
    channel: usize,
    packet: &'a mut Packet,
    bodies: &'a mut Bodies,
}

impl Entry<'_> {
    fn read(
        &mut self,
        reader: &mut BitReader<'_>,
        mut destination: Option<&mut Destination<'_>>,
    ) -> Result<(), Refusal> {
        let config = &self.protocol.channels()[self.channel];
        let (kind, max_window_bytes) = (config.kind, window_bytes(config.max_message_bytes * 8));
        let room = destination.as_ref().map_or(DirectRoom::default(), |it| (it.room)(self.channel));
        // At most 64 channels.
        let mut placed = Placed { channel: self.channel as u8, count: 0, window_bytes: 0 };
        let mut previous = None;
        loop {
            let prefix = match (kind, previous) {
                (kind, None) if kind.has_ids() => Prefix::Id(reader.bits(16)? as u16),
                (kind, Some(previous)) if kind.has_ids() => {
                    let step = u16::try_from(read_relative(reader)?).map_err(|_| Refusal::RelativeInteger)?;
                    Prefix::Id(u16::wrapping_add(previous, step))
                }
                // At most 65,536 keys.
                (ChannelKind::Latest { keys }, _) => Prefix::Key(read_name(reader, keys)? as u16),
                _ => Prefix::None,
            };
            if let Prefix::Id(id) = prefix {
                previous = Some(id);
            }
            let memory = self.packet.placed_memory;
            let fits = room.takes(prefix, &placed, max_window_bytes);
            let destination = destination.as_deref_mut().filter(|it| fits && memory < it.bytes);
            if let Some(window_bytes) = self.read_message(reader, prefix, destination)? {
                placed.count += 1;
                placed.window_bytes += window_bytes;
            }
            if !reader.bool()? {
                break;
            }
        }
        if placed.count > 0 {
            self.packet.placed.push(placed);
        }
        Ok(())
    }

    /// Reads a message; what it takes of the window when it went to the destination.
    fn read_message(
        &mut self,
        reader: &mut BitReader<'_>,
        prefix: Prefix,
        mut destination: Option<&mut Destination<'_>>,
    ) -> Result<Option<usize>, Refusal> {
        let Entry { protocol, context, channel, packet, bodies } = self;
        let (channel, config) = (*channel as u8, &protocol.channels()[*channel]);
        let is_payload = config.kind.is_payload();
        let message_type = if is_payload { 0 } else { read_name(reader, protocol.messages().len())? as u16 };
        let place = match &mut destination {
            Some(destination) if !is_payload => {
                destination.tables.place(context.sequence, channel, message_type)
            }
            _ => None,
        };
        let is_placed = place.is_some();
        let body = place.unwrap_or_else(|| bodies.cleared());
        let start = body.len();
        let bits = if is_payload {
            read_opaque(reader, config.max_message_bytes, body)?
        } else {
            read_declared(reader, protocol, message_type, body)?
        };
        let memory = body.len() - start;
        if !is_payload && !protocol.takes(channel.into(), message_type) {
            return Err(Refusal::Type);
        }
        if window_bytes(bits) > window_bytes(config.max_message_bytes * 8) {
            return Err(Refusal::Length);
        }
        if packet.count == MAX_PACKET_MESSAGES {
            return Err(Refusal::Messages);
        }
        packet.count += 1;
        packet.memory += memory;
        if packet.memory > MAX_PACKET_MEMORY {
            return Err(Refusal::Memory);
        }
        if let Some(destination) = destination.filter(|_| is_placed) {
            packet.placed_memory += memory + MESSAGE_OVERHEAD_BYTES;
            destination.tables.settle();
            return Ok(Some(window_bytes(bits)));
        }
        let received = context.received(message_type, bodies.kept(), bits);
        packet.messages.push(PacketMessage { channel, prefix, received });
        Ok(None)
    }
}

/// The section of fragments. Without fragments it has no flag: zero bits fill the last byte instead.
fn read_fragments(
    reader: &mut BitReader<'_>,
    protocol: &Protocol,
    packet: &mut Packet,
) -> Result<(), Refusal> {
    let mut ahead = reader.clone();
    if ahead.remaining_bits() == 0 || !ahead.bool()? {
        return Ok(());
    }
    *reader = ahead;
    loop {
        let channel = read_name(reader, protocol.channels().len())?;
        let config = &protocol.channels()[channel];
        if !config.kind.has_credit() {
            return Err(Refusal::Channel);
        }
        let id = reader.bits(16)? as u16;
        let message_type = read_name(reader, protocol.messages().len())?;
        if !protocol.takes(channel, message_type as u16) {
            return Err(Refusal::Type);
        }
        let bits = reader.bits(length_bits(config.max_message_bytes))? as usize;
        let bytes = bits.div_ceil(8);
        let max_bytes = match protocol.messages()[message_type].body {
            Body::Declared(_) => config.max_message_bytes,
            Body::Opaque { max_bytes } => config.max_message_bytes.min(max_bytes as usize),
        };
        if bytes <= FRAGMENT_BYTES || bytes > max_bytes {
            return Err(Refusal::Length);
        }
        let count = bytes.div_ceil(FRAGMENT_BYTES);
        let index = read_name(reader, count)?;
        let data = reader.bytes(FRAGMENT_BYTES.min(bytes - index * FRAGMENT_BYTES))?;
        if packet.count + packet.fragments.len() == MAX_PACKET_MESSAGES {
            return Err(Refusal::Messages);
        }
        let start = packet.fragment_bytes.len();
        packet.fragment_bytes.extend_from_slice(data);
        packet.memory += data.len();
        packet.fragments.push(MessageFragment {
            channel: channel as u8,
            id,
            message_type: message_type as u16,
            bits,
            count,
            index,
            bytes: start..packet.fragment_bytes.len(),
        });
        if !reader.bool()? {
            return Ok(());
        }
    }
}

/// Reads the body of a message that came in fragments: of this many bits, and zero bits up to the next byte.
pub(crate) fn read_body(
    body: &[u8],
    bits: usize,
    message_type: u16,
    protocol: &Protocol,
    context: &ReadContext,
    bodies: &mut Bodies,
) -> Result<Received, Refusal> {
    bodies.scratch.clear();
    let mut reader = BitReader::new(body);
    match &protocol.messages()[usize::from(message_type)].body {
        Body::Declared(schema) => {
            schema.read(&mut reader, &mut bodies.scratch)?;
            if reader.position() != bits {
                return Err(Refusal::Length);
            }
        }
        Body::Opaque { .. } => {
            let (start_bit, bytes) = reader.cut(bits)?;
            OpaqueBody { start_bit, bits, bytes }.write(&mut bodies.scratch);
        }
    }
    reader.finish()?;
    if bodies.scratch.len() > MAX_PACKET_MEMORY {
        return Err(Refusal::Memory);
    }
    Ok(context.received(message_type, bodies.spares.keep(&bodies.scratch), bits))
}

fn read_chunk_entry(reader: &mut BitReader<'_>, packet: &mut Packet) -> Result<(), Refusal> {
    loop {
        packet.chunk_items.push(read_item(reader, &mut packet.slices)?);
        if !reader.bool()? {
            return Ok(());
        }
    }
}

/// Appends the body of a message of this type; returns its length in bits.
fn read_declared(
    reader: &mut BitReader<'_>,
    protocol: &Protocol,
    message_type: u16,
    out: &mut Vec<u8>,
) -> Result<usize, Refusal> {
    match &protocol.messages()[usize::from(message_type)].body {
        Body::Declared(schema) => {
            let start = reader.position();
            schema.read(reader, out)?;
            Ok(reader.position() - start)
        }
        Body::Opaque { max_bytes } => read_opaque(reader, *max_bytes as usize, out),
    }
}

/// Appends an opaque body; returns its length in bits.
fn read_opaque(reader: &mut BitReader<'_>, max_bytes: usize, out: &mut Vec<u8>) -> Result<usize, Refusal> {
    let bits = reader.bits(length_bits(max_bytes))? as usize;
    if bits > max_bytes * 8 {
        return Err(Refusal::Length);
    }
    let (start_bit, bytes) = reader.cut(bits)?;
    OpaqueBody { start_bit, bits, bytes }.write(out);
    Ok(bits)
}

/// One of `count` things by its number.
fn read_name(reader: &mut BitReader<'_>, count: usize) -> Result<usize, Refusal> {
    if count == 0 {
        // A message in a protocol that has none.
        return Err(Refusal::Type);
    }
    // A number below `count`.
    Ok(reader.int(0, count as i64 - 1)? as usize)
}

/// A number of at least 1; the tier for larger numbers is refused.
fn read_relative(reader: &mut BitReader<'_>) -> Result<u32, Refusal> {
    // At most 69,914.
    reader.relative_difference()?.map(|number| number as u32).ok_or(Refusal::RelativeInteger)
}

/// Channel numbers that must ascend.
#[derive(Default)]
struct Ascending {
    least: usize,
}

impl Ascending {
    fn next(&mut self, channel: usize) -> Result<usize, Refusal> {
        if channel < self.least {
            return Err(Refusal::Channel);
        }
        self.least = channel + 1;
        Ok(channel)
    }
}
