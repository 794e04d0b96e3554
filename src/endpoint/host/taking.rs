//! The application takes events, messages and notifications.

use std::collections::HashSet;

use super::Host;
use crate::endpoint::PeerHandle;
use crate::endpoint::event::Event;
use crate::endpoint::inbox::Inbox;
use crate::endpoint::peers::Peer;
use crate::endpoint::schedule::News;
use crate::endpoint::stats::PeerStats;
use crate::store::Datagrams;
use crate::time::Instant;
use crate::transport::chunks::ChunkEvent;
use crate::transport::{Connection, Notification, ReadPackets, Received, UnreadPackets};

impl Host {
    /// Whether there are events, messages or notifications to take.
    pub fn has_news(&self) -> bool {
        let news = !self.events.is_empty()
            || !self.arriving.is_empty()
            || !self.notifications.is_empty()
            || self.incoming.has_events();
        news || self.leftovers.has_any() || !self.unfinished.is_empty() || self.peers.have_news()
    }

    /// Whether chunks are under way, in either direction: their packets shouldn't wait for ticks.
    pub fn moves_chunks(&self) -> bool {
        self.protocol.has_chunks() && self.peers.iter().any(|peer| !peer.connection.chunks().is_idle())
    }

    /// Appends the outcomes of outgoing chunks since the last call; incoming ones stay.
    pub fn take_sent_chunk_events(&mut self, out: &mut Vec<(PeerHandle, ChunkEvent)>) {
        self.incoming.take_sent_events(out);
    }

    /// Moves every message that can be read into `inbox`.
    pub fn take_messages(&mut self, inbox: &mut Inbox) {
        let (first, any_arrived) = (inbox.game.records.len(), !self.arriving.is_empty());
        // First, because other messages of the same peers arrived later.
        self.arriving.take_into(inbox, &self.protocol);
        let unannounced = &self.unannounced;
        inbox.append(&mut self.leftovers.game, |peer| !unannounced.contains(&peer));
        self.announced_late.clear();
        let channels = self.protocol.game_channels();
        let is_heard = |peer: &Peer| peer.is_heard() && !unannounced.contains(&peer.handle);
        self.peers.visit_news(News::Messages, is_heard, |peer| {
            peer.connection.swap_scratch(&mut self.scratch);
            let is_left = inbox.take_from(peer.handle, &mut peer.connection, channels);
            // More may have arrived while the application read held packets.
            let may_be_left = is_left || peer.connection.has_unread();
            peer.connection.swap_scratch(&mut self.scratch);
            may_be_left
        });
        if any_arrived {
            inbox.sort(first);
        }
    }

    /// Moves what the features' channels carried into `out`, each with its channel, in order of arrival: after each
    /// datagram, whatever the application knows of the peers.
    pub fn take_payloads(&mut self, out: &mut Vec<(PeerHandle, usize, Received)>) {
        out.append(&mut self.payloads);
    }

    /// What became of links since the last call, whatever the application knows of them.
    pub fn take_link_events(&mut self, out: &mut Vec<Event>) {
        out.append(&mut self.link_events);
    }

    /// Notes an event for the layer above, too.
    pub(super) fn note_link(&mut self, event: &Event) {
        if self.serves_peers {
            self.link_events.push(event.clone());
        }
    }

    /// Appends the events of chunks since the last call.
    pub fn take_chunk_events(&mut self, out: &mut Vec<(PeerHandle, ChunkEvent)>) {
        let unannounced = &self.unannounced;
        let is_announced = |peer: &Peer| peer.closing.is_none() && !unannounced.contains(&peer.handle);
        self.peers.visit_news(News::Chunks, is_announced, |peer| {
            let Peer { handle, id, connection, quota, .. } = peer;
            self.incoming.poll(*handle, *id, connection, quota);
            quota.read();
            // There may be room for it now.
            self.incoming.poll(*handle, *id, connection, quota);
            false
        });
        self.incoming.take_events(out, |peer| !unannounced.contains(&peer));
    }

    /// Appends the known notifications about messages, peer by peer, each peer's in packet order. When a connection
    /// ends, everything still open counts as lost, and comes before anything of the slot's next peer.
    pub fn take_notifications(&mut self, out: &mut Vec<(PeerHandle, Notification)>) {
        let unannounced = &self.unannounced;
        out.extend(self.notifications.extract_if(.., |(peer, _)| !unannounced.contains(peer)));
        let is_announced = |peer: &Peer| peer.is_admitted() && !unannounced.contains(&peer.handle);
        self.peers.visit_news(News::Notifications, is_announced, |peer| {
            let Peer { handle, connection, .. } = peer;
            out.extend(core::iter::from_fn(|| connection.poll_notification()).map(|fate| (*handle, fate)));
            false
        });
    }

    /// Whether an event can be taken, given what the application has not taken of its peer. A peer's last event waits
    /// for its messages.
    fn is_ready(&self, event: &Event) -> bool {
        let peer = event.peer();
        let is_unread = || {
            // It came and left between two ticks, and its messages wait for its first event.
            let waits = self.announced_late.contains(&peer)
                && (self.leftovers.game.records.iter().any(|record| record.head.peer == peer)
                    || self.incoming.has_events_of(peer));
            waits || self.unfinished.iter().any(|(over, _)| *over == peer)
        };
        let is_last = matches!(event, Event::Disconnected { .. });
        !(self.is_undecided(peer) || is_last && is_unread())
    }

    /// The next event. After a peer's first event, everything else of it can be taken.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.front().filter(|event| self.is_ready(event))?;
        let event = self.events.pop_front()?;
        self.note_taken(&event);
        Some(event)
    }

    /// Takes the events, in order for each slot and for each client id, with the final statistics of ended
    /// connections. A peer's last event stays if `is_here` says that this tick has anything else of it; so do later
    /// events in its slot or with its id. Other peers' events don't wait.
    pub fn take_events(
        &mut self,
        mut is_here: impl FnMut(PeerHandle) -> bool,
        out: &mut Vec<Event>,
        final_stats: &mut Vec<(PeerHandle, PeerStats)>,
    ) {
        if self.events.is_empty() {
            return;
        }
        let mut came = HashSet::new();
        let (mut slots, mut ids) = (HashSet::new(), HashSet::new());
        for event in core::mem::take(&mut self.events) {
            let peer = event.peer();
            let waits = match &event {
                Event::Accepted { client_id, .. } => ids.contains(client_id),
                Event::Dialled { .. } => false,
                Event::Disconnected { .. } => came.contains(&peer) || is_here(peer),
            };
            if waits || slots.contains(&peer.slot) || !self.is_ready(&event) {
                slots.insert(peer.slot);
                ids.extend(self.final_stats.get(&peer).map(|ended| ended.id));
                self.events.push_back(event);
                continue;
            }
            match &event {
                Event::Disconnected { .. } => {
                    final_stats.extend(self.peer_stats(peer).map(|stats| (peer, stats)));
                }
                _ => drop(came.insert(peer)),
            }
            self.note_taken(&event);
            out.push(event);
        }
    }

    /// The application knows that a peer is gone, or will never know of it.
    pub(super) fn forget(&mut self, peer: PeerHandle) {
        self.final_stats.remove(&peer);
        if self.links.dialled(peer).is_some() {
            return;
        }
        if let Some(listener) = &mut self.links.listener {
            listener.release_slot(peer);
        }
    }

    /// An event is taken.
    fn note_taken(&mut self, event: &Event) {
        let peer = event.peer();
        if !matches!(event, Event::Disconnected { .. }) {
            self.unannounced.remove(&peer);
            if self.peers.find(peer).is_none() {
                self.announced_late.insert(peer);
            }
            return;
        }
        self.announced_late.remove(&peer);
        if self.links.dialled(peer).is_none() {
            self.forget(peer);
        }
    }

    /// Takes the packets that the core can't read, peer by peer, if the protocol has such: [`UnreadPackets::read`] them, and
    /// pass the result to [`Host::handle_read`], before [`Host::take_messages`].
    pub fn take_unread(&mut self) -> Vec<(PeerHandle, UnreadPackets)> {
        if !self.protocol.holds_packets() {
            return Vec::new();
        }
        let unannounced = &self.unannounced;
        let live =
            self.peers.iter_mut().filter(|peer| peer.is_heard() && !unannounced.contains(&peer.handle));
        let live = live.map(|peer| (peer.handle, &mut peer.connection));
        let over = self
            .unfinished
            .iter_mut()
            .filter(|(peer, _)| !unannounced.contains(peer))
            .map(|(peer, connection)| (*peer, connection));
        over.chain(live).filter_map(|(peer, held)| Some((peer, held.take_unread()?))).collect()
    }

    /// Takes the contents of a peer's packets: its messages go to `inbox`. Ends the connection at the first that is
    /// refused.
    pub fn handle_read(
        &mut self,
        now: Instant,
        handle: PeerHandle,
        read: ReadPackets,
        inbox: &mut Inbox,
        out: &mut Datagrams,
    ) {
        let channels = self.protocol.game_channels();
        if let Some(place) = self.unfinished.iter().position(|(over, _)| *over == handle) {
            let (_, connection) = &mut self.unfinished[place];
            let taken =
                connection.handle_read(read, |connection| _ = inbox.take_from(handle, connection, channels));
            // More may have arrived, or the connection may have ended, while these were read.
            if taken.is_err() || !connection.has_unread() {
                self.unfinished.remove(place);
            }
        } else if let Some(peer) = self.peers.live_mut(handle) {
            peer.connection.swap_scratch(&mut self.scratch);
            // One by one, so that their messages never wait in the window.
            let take = |connection: &mut Connection| _ = inbox.take_from(handle, connection, channels);
            let taken = peer.connection.handle_read(read, take);
            peer.connection.swap_scratch(&mut self.scratch);
            if let Err(end) = taken {
                self.end(now, handle, &end, out);
            }
        }
    }
}
