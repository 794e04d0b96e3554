//! Messages in fragments, reassembled while the packet with the last fragment is checked: an invalid body refuses the
//! packet, and if memory is short the packet isn't acked, so that it comes again.

use super::memory::has_memory;
use crate::transport::connection::{End, Violation};
use crate::transport::framing::native::{MAX_PACKET_MEMORY, Packet, PacketMessage, ReadContext, read_body};
use crate::transport::message::{Bodies, Prefix};
use crate::transport::parts::FragmentFault;
use crate::transport::protocol::Protocol;
use crate::transport::stream::Streams;

/// Hands a packet's fragments to their channels, and adds the messages that they complete to the packet's; false when there is
/// no memory for one. Fragments of a packet that isn't acked stay: they are the same when they come again.
pub(super) fn assemble(
    streams: &mut Streams,
    protocol: &Protocol,
    context: &ReadContext,
    packet: &mut Packet,
    bodies: &mut Bodies,
) -> Result<bool, End> {
    let fragments = core::mem::take(&mut packet.fragments);
    for fragment in &fragments {
        let data = &packet.fragment_bytes[fragment.bytes.clone()];
        let handled = streams.receive_reliable(fragment.channel.into(), |reliable| {
            reliable.handle_message_fragment(fragment, data, context.sequence)
        });
        let whole = handled.ok_or(FragmentFault::Window)??;
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

impl From<FragmentFault> for End {
    fn from(fault: FragmentFault) -> Self {
        End::Violation(match fault {
            FragmentFault::Window => Violation::Window,
            FragmentFault::Differs => Violation::Fragments,
        })
    }
}
