//! The memory of messages that the application has not taken.
//!
//! Windows and queues count messages and their bits, but a list of mostly omitted fields takes hundreds of times its
//! bits. If that adds up to more than honest peers cause, packets are dropped until the application has taken some:
//! unacked, so that reliable messages come again.

use super::Streams;
use crate::transport::framing::native::Packet;
use crate::transport::message::Prefix;
use crate::transport::protocol::{ChannelKind, Protocol};

/// Below this memory of a packet's messages, held memory isn't checked: with windows of 1,024 messages, 8 MiB in all.
const SMALL: usize = 8 << 10;

/// The maximum held memory, apart from reliable channels.
const MAX_HELD: usize = 16 << 20;

/// How many times its window the messages of a reliable channel may take.
const OF_WINDOW: usize = 16;

/// Whether there is memory for a packet's messages, and for one of a channel that its fragments complete.
pub(super) fn has_memory(
    streams: &Streams,
    protocol: &Protocol,
    packet: &Packet,
    completed: Option<(u8, Prefix)>,
) -> bool {
    if packet.memory <= SMALL && completed.is_none() {
        return true;
    }
    let windows = protocol.channels().iter().map(|channel| match channel.kind {
        ChannelKind::Reliable { receive_bytes, .. } => receive_bytes,
        _ => 0,
    });
    let held = streams.received_memory();
    let most = MAX_HELD.saturating_add(OF_WINDOW.saturating_mul(windows.sum()));
    // The packet that all others wait for must get through: with it they can be taken.
    let awaited = || {
        let messages = packet.messages.iter().map(|message| (message.channel, message.prefix));
        let fragments = packet.fragments.iter().map(|fragment| (fragment.channel, Prefix::Id(fragment.id)));
        let mut all = messages.chain(fragments).chain(completed);
        all.any(|(channel, prefix)| streams.awaits(channel.into(), prefix))
    };
    held <= most || awaited()
}
