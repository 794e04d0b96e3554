//! The contents of one tick, taken as a whole.

use std::collections::HashSet;

use crate::endpoint::{Event, Inbox, PeerHandle, PeerStats};
use crate::mesh::Happening;
use crate::transport::chunks::ChunkEvent;
use crate::transport::{Notification, UnreadPackets};

/// Everything that arrived since the last tick.
#[derive(Default)]
pub struct Tick {
    /// Packets that only the application's own code can read, by peer: while there are any, the rest of the tick
    /// waits for [`Session::handle_read`](super::Session::handle_read).
    pub unread: Vec<(PeerHandle, UnreadPackets)>,
    /// Messages, in order within each channel of each peer: their bodies and records, and tables.
    pub inbox: Inbox,
    /// Events of chunks in either direction.
    pub chunks: Vec<(PeerHandle, ChunkEvent)>,
    /// Notifications about messages, peer by peer, each peer's in packet order.
    pub notifications: Vec<(PeerHandle, Notification)>,
    /// Connections that came up or ended, in order. Nothing else in this tick is from these peers: all their messages
    /// are in ticks after their first event and before their last.
    pub events: Vec<Event>,
    /// What happened to the players of a game without a server, in order; the application takes these instead of the events.
    pub players: Vec<Happening>,
    /// The final statistics of peers whose last event is in this tick.
    pub final_stats: Vec<(PeerHandle, PeerStats)>,
}

impl Tick {
    pub fn is_empty(&self) -> bool {
        let Tick { unread, chunks, notifications, events, players, .. } = self;
        let rest = unread.is_empty() && chunks.is_empty() && notifications.is_empty();
        rest && events.is_empty() && players.is_empty() && !self.inbox.has_any()
    }

    /// The peers that have anything in this tick.
    pub(super) fn peers(&self) -> HashSet<PeerHandle> {
        let mut peers = HashSet::new();
        self.inbox.note_peers(&mut peers);
        peers.extend(self.chunks.iter().map(|(peer, _)| *peer));
        peers.extend(self.notifications.iter().map(|(peer, _)| *peer));
        peers.extend(self.events.iter().map(Event::peer));
        peers
    }
}
