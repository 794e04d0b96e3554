//! Whether there is memory for what a packet brings: see [`HeldMemory`](crate::transport::stream::HeldMemory).

use crate::transport::framing::native::Packet;
use crate::transport::message::Prefix;
use crate::transport::stream::Streams;

/// Whether there is memory for a packet's messages, and for one of a channel that its fragments complete.
pub(super) fn has_memory(streams: &Streams, packet: &Packet, completed: Option<(u8, Prefix)>) -> bool {
    // The packet that all others wait for must get through: with it they can be taken.
    let awaited = || {
        let messages = packet.messages.iter().map(|message| (message.channel, message.prefix));
        let fragments = packet.fragments.iter().map(|fragment| (fragment.channel, Prefix::Id(fragment.id)));
        let mut all = messages.chain(fragments).chain(completed);
        all.any(|(channel, prefix)| streams.awaits(channel.into(), prefix))
    };
    streams.held.has_room(packet.memory) || awaited()
}
