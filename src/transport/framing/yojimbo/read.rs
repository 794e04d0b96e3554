//! Reading: `YOJIMBO.md`, "Packet" and "What is refused".

use super::Fault;
use crate::store::SmallBytes;
use crate::time::Instant;
use crate::transport::framing::native::{PacketMessage, ReadContext};
use crate::transport::framing::refusal::Refusal;
use crate::transport::message::{Block, OpaqueBody, Prefix, Received};
use crate::transport::parts::BlockFragment;
use crate::transport::protocol::{Body, ChannelKind, Protocol, YojimboChannel};
use crate::wire::{BitReader, ReadError};

/// One thing that a packet brings, in the packet's order.
#[derive(Debug)]
pub(crate) enum Item {
    Message(PacketMessage),
    Fragment { channel: u8, fragment: BlockFragment },
}

/// Finds the end of a message's body that only its own code can read: of this type, in these bytes, from this bit on.
/// Or why it is refused.
pub type Extent<'a> = &'a mut dyn FnMut(u16, &[u8], usize) -> Result<usize, String>;

/// A fault of a message's body.
enum BodyFault {
    Bits(ReadError),
    /// The error of its own code.
    Own(String),
}

impl From<ReadError> for BodyFault {
    fn from(error: ReadError) -> Self {
        BodyFault::Bits(error)
    }
}

impl BodyFault {
    /// The fault of a message on a channel.
    fn on(self, channel: u8) -> Fault {
        Fault::messages(match self {
            BodyFault::Bits(error) => format!("the messages of channel {channel}: {error}"),
            BodyFault::Own(why) => {
                format!("a message of channel {channel} is refused by its own serialize: {why}")
            }
        })
    }
}

/// Reads a packet whole. Bits after it are ignored, as in yojimbo.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn read(
    bytes: &[u8],
    protocol: &Protocol,
    context: ReadContext,
    extent: Extent<'_>,
    items: &mut Vec<Item>,
) -> Result<(), Fault> {
    items.clear();
    if bytes.is_empty() {
        return Err(Fault::packet("a packet has no bytes"));
    }
    let reader = BitReader::new(bytes);
    let mut packet = Reading { bytes, reader, protocol, context, extent, row: Vec::new() };
    let channels = protocol.channels().len();
    let entries = packet.reader.int(0, channels as i64)?;
    for _ in 0..entries {
        // Below 64.
        let channel = packet.reader.int(0, channels as i64 - 1)? as u8;
        if packet.reader.bool()? {
            let fragment = packet.fragment(channel)?;
            items.push(Item::Fragment { channel, fragment });
        } else {
            packet.messages(channel, items)?;
        }
    }
    Ok(())
}

/// Reads a message with its type, and zero bits up to the next byte.
pub(crate) fn read_alone(
    protocol: &Protocol,
    bytes: &[u8],
    extent: Extent<'_>,
) -> Result<(u16, SmallBytes), Refusal> {
    let context = ReadContext { now: Instant::ZERO, sequence: 0, ack: 0, hello_received: true };
    let reader = BitReader::new(bytes);
    let mut alone = Reading { bytes, reader, protocol, context, extent, row: Vec::new() };
    let message_type = alone.message_type()?;
    let received = alone.body(message_type).map_err(|error| match error {
        BodyFault::Bits(error) => Refusal::Bits(error),
        BodyFault::Own(_) => Refusal::Length,
    })?;
    alone.reader.finish()?;
    Ok((received.message_type, received.body))
}

struct Reading<'a, 'e> {
    bytes: &'a [u8],
    reader: BitReader<'a>,
    protocol: &'a Protocol,
    context: ReadContext,
    extent: Extent<'e>,
    row: Vec<u8>,
}

impl Reading<'_, '_> {
    fn messages(&mut self, channel: u8, items: &mut Vec<Item>) -> Result<(), Fault> {
        let faulty = |error| BodyFault::Bits(error).on(channel);
        if !self.reader.bool().map_err(faulty)? {
            return Ok(());
        }
        let YojimboChannel { max_messages_per_packet, max_block_bytes, .. } =
            self.protocol.yojimbo_channel(channel.into());
        let count = self.reader.int(1, max_messages_per_packet as i64).map_err(faulty)? as usize;
        let kind = self.protocol.channels()[usize::from(channel)].kind;
        let reliable = matches!(kind, ChannelKind::Reliable { .. });
        let ids = if reliable { self.ids(count).map_err(faulty)? } else { Vec::new() };
        for place in 0..count {
            let mut received = self.message(channel)?;
            if !reliable && self.is_block(received.message_type) {
                let block = self.block(max_block_bytes).map_err(faulty)?;
                received.window_bytes += block.len();
                received.block = Some(block);
            }
            let prefix = ids.get(place).map_or(Prefix::None, |id| Prefix::Id(*id));
            items.push(Item::Message(PacketMessage { channel, prefix, received }));
        }
        Ok(())
    }

    fn ids(&mut self, count: usize) -> Result<Vec<u16>, ReadError> {
        // An id takes at least a bit, and ids come before everything else.
        self.reader.require(16 + count - 1)?;
        let mut ids = Vec::with_capacity(count);
        let mut previous = self.reader.bits(16)? as u16;
        ids.push(previous);
        while ids.len() < count {
            previous = self.reader.sequence_relative(previous)?;
            ids.push(previous);
        }
        Ok(ids)
    }

    fn block(&mut self, most: usize) -> Result<Block, ReadError> {
        let count = self.reader.int(1, most as i64)? as usize;
        Ok(self.reader.bytes(count)?.to_vec().into())
    }

    fn fragment(&mut self, channel: u8) -> Result<BlockFragment, Fault> {
        let settings = self.protocol.yojimbo_channel(channel.into());
        if !settings.blocks {
            return Err(Fault::packet(format!("a block on channel {channel}, whose blocks are disabled")));
        }
        let kind = self.protocol.channels()[usize::from(channel)].kind;
        if !matches!(kind, ChannelKind::Reliable { .. }) {
            let text = format!("a fragment of a block on channel {channel}, which is unreliable");
            return Err(Fault::messages(text));
        }
        let id = self.reader.bits(16)? as u16;
        let count = self.reader.int(1, settings.max_fragments() as i64)? as usize;
        let index = self.reader.int(0, count as i64 - 1)? as usize;
        let length = self.reader.int(1, settings.block_fragment_bytes as i64)? as usize;
        let data = self.reader.bytes(length)?.into();
        let message = if index == 0 { Some(self.block_message()?) } else { None };
        Ok(BlockFragment { id, count, index, data, message })
    }

    /// A block's message, whose faults are the packet's.
    fn block_message(&mut self) -> Result<Received, Fault> {
        let message_type = self.message_type()?;
        if !self.is_block(message_type) {
            let text = format!("a block with a message of type {message_type}, which carries none");
            return Err(Fault::packet(text));
        }
        self.body(message_type).map_err(|error| match error {
            BodyFault::Bits(error) => error.into(),
            BodyFault::Own(why) => {
                Fault::packet(format!("the message of a block is refused by its own serialize: {why}"))
            }
        })
    }

    fn message(&mut self, channel: u8) -> Result<Received, Fault> {
        let body = self.message_type().map_err(BodyFault::Bits).and_then(|it| self.body(it));
        body.map_err(|error| error.on(channel))
    }

    fn message_type(&mut self) -> Result<u16, ReadError> {
        Ok(self.reader.int(0, self.protocol.messages().len() as i64 - 1)? as u16)
    }

    fn body(&mut self, message_type: u16) -> Result<Received, BodyFault> {
        let start = self.reader.position();
        let body: SmallBytes = match &self.protocol.messages()[usize::from(message_type)].body {
            Body::Declared(schema) => {
                self.row.clear();
                schema.read(&mut self.reader, &mut self.row)?;
                self.row.as_slice().into()
            }
            Body::Opaque { .. } => {
                let end = (self.extent)(message_type, self.bytes, start).map_err(BodyFault::Own)?;
                let (start_bit, bytes) = self.reader.cut(end.saturating_sub(start))?;
                let bits = end.saturating_sub(start);
                self.row.clear();
                OpaqueBody { start_bit, bits, bytes }.write(&mut self.row);
                self.row.as_slice().into()
            }
        };
        Ok(self.context.received(message_type, body, self.reader.position() - start))
    }

    fn is_block(&self, message_type: u16) -> bool {
        self.protocol.yojimbo().is_some_and(|config| config.is_block(message_type))
    }
}
