//! What a tick hands up, taken whole.

use crate::endpoint::{Event, Inbox, PeerHandle};
use crate::transport::chunks::ChunkEvent;
use crate::transport::{Notification, PacketFate, Unread};

/// All that came since the last tick.
#[derive(Default)]
pub struct Tick {
    /// Packets in which only the application's own code can read messages, peer by peer: while there are any, the rest
    /// of the tick waits for [`Session::handle_read`](super::Session::handle_read).
    pub unread: Vec<(PeerHandle, Unread)>,
    /// Messages, in order within each channel of each peer: their bodies and records, and tables.
    pub inbox: Inbox,
    /// What happened to chunks, of either direction.
    pub chunks: Vec<(PeerHandle, ChunkEvent)>,
    /// The fates of messages whose sender wanted to know, peer by peer, each in the order of its packets.
    pub notifications: Vec<(PeerHandle, Notification)>,
    /// The fates of packets, in the same order; if the configuration says so.
    pub packet_fates: Vec<(PeerHandle, PacketFate)>,
    /// Connections that came up or ended, in order.
    pub events: Vec<Event>,
}
