//! What a tick hands up, taken whole.

use std::collections::HashSet;

use crate::endpoint::{Event, Inbox, PeerHandle, PeerStats};
use crate::mesh::Happening;
use crate::transport::chunks::ChunkEvent;
use crate::transport::{Notification, PacketNotification, Unread};

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
    pub packet_notifications: Vec<(PeerHandle, PacketNotification)>,
    /// Connections that came up or ended, in order. Nothing else of a peer is here with them: all that it sends is in later
    /// ticks than its first event, and in earlier ones than its last.
    pub events: Vec<Event>,
    /// What happened to the players of a game without a server, in order; the application takes these instead of the events.
    pub players: Vec<Happening>,
    /// How those were doing whose last event is here.
    pub final_stats: Vec<(PeerHandle, PeerStats)>,
}

impl Tick {
    pub fn is_empty(&self) -> bool {
        let Tick { unread, chunks, notifications, packet_notifications, events, players, .. } = self;
        let rest = unread.is_empty()
            && chunks.is_empty()
            && notifications.is_empty()
            && packet_notifications.is_empty();
        rest && events.is_empty() && players.is_empty() && !self.inbox.has_any()
    }

    /// From whom there is anything.
    pub(super) fn peers(&self) -> HashSet<PeerHandle> {
        let mut peers = HashSet::new();
        self.inbox.note_peers(&mut peers);
        peers.extend(self.chunks.iter().map(|(peer, _)| *peer));
        peers.extend(self.notifications.iter().map(|(peer, _)| *peer));
        peers.extend(self.packet_notifications.iter().map(|(peer, _)| *peer));
        peers.extend(self.events.iter().map(Event::peer));
        peers
    }
}
