//! Reading a packet whole, or refusing it.

use super::packet::{
    CloseReason, Control, DELAY_BITS, DELAY_UNIT_NANOS, MAX_DETAIL_BYTES, Packet, PacketMessage, VERSION,
};

use core::time::Duration;

use crate::store::SmallBytes;
use crate::time::Instant;
use crate::transport::direct_tables::{Destination, DirectRoom, Placed};
use crate::transport::framing::chunk_items::read_item;
use crate::transport::framing::refusal::{MAX_PACKET_MESSAGES, Refusal};
use crate::transport::ledger::AckRange;
use crate::transport::message::{Bodies, MESSAGE_OVERHEAD_BYTES, OpaqueBody, Prefix, Received, window_bytes};
use crate::transport::parts::MessageFragment;
use crate::transport::peer_clock::ReceiveTime;
use crate::transport::protocol::{Body, ChannelKind, FRAGMENT_BYTES, Protocol, length_bits};
use crate::wire::BitReader;

/// Bytes of memory that the messages of one packet may take: a list of mostly omitted fields takes hundreds of times
/// its bits, and the largest packet of such lists would take 160 MB.
pub(crate) const MAX_PACKET_MEMORY: usize = 4 << 20;

/// How far ack ranges may walk: twice the largest window of packets.
const MAX_RANGE_WALK: u64 = 32_768;

/// Reads what [`write_alone`] wrote: the message's type and its body.
pub(in crate::transport::framing) fn read_alone(
    protocol: &Protocol,
    bytes: &[u8],
) -> Result<(u16, SmallBytes), Refusal> {
    let mut reader = BitReader::new(bytes);
    // A number of 16 bits.
    let message_type = read_name(&mut reader, protocol.messages().len())? as u16;
    let mut body = Vec::new();
    read_declared(&mut reader, protocol, message_type, &mut body)?;
    if protocol.is_of_feature(message_type) {
        return Err(Refusal::Type);
    }
    reader.finish()?;
    Ok((message_type, SmallBytes::from(body.as_slice())))
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
    pub(in crate::transport::framing) fn received(
        &self,
        message_type: u16,
        body: SmallBytes,
        bits: usize,
    ) -> Received {
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
        control.ack_delay = Some(Duration::from_nanos(units * DELAY_UNIT_NANOS));
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
    let (mut reader, out) = (BitReader::new(body), bodies.cleared());
    match &protocol.messages()[usize::from(message_type)].body {
        Body::Declared(schema) => schema.read(&mut reader, out)?,
        Body::Opaque { .. } => cut_opaque(&mut reader, bits, out)?,
    }
    if reader.position() != bits {
        return Err(Refusal::Length);
    }
    reader.finish()?;
    if out.len() > MAX_PACKET_MEMORY {
        return Err(Refusal::Memory);
    }
    Ok(context.received(message_type, bodies.kept(), bits))
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
    cut_opaque(reader, bits, out)?;
    Ok(bits)
}

/// Appends an opaque body of this many bits.
fn cut_opaque(reader: &mut BitReader<'_>, bits: usize, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (start_bit, bytes) = reader.cut(bits)?;
    OpaqueBody { start_bit, bits, bytes }.write(out);
    Ok(())
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
