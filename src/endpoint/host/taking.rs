//! What the application takes.

use std::collections::HashSet;

use super::Host;
use crate::endpoint::event::Event;
use crate::endpoint::handle::PeerHandle;
use crate::endpoint::inbox::Inbox;
use crate::endpoint::peers::{News, Peer};
use crate::endpoint::stats::PeerStats;
use crate::store::Datagrams;
use crate::time::Instant;
use crate::transport::chunks::ChunkEvent;
use crate::transport::{Notification, PacketNotification, Read, Received, Unread};

impl Host {
    /// Whether there are events, messages or fates that weren't taken.
    pub fn has_news(&self) -> bool {
        let news = !self.events.is_empty()
            || !self.arriving.is_empty()
            || !self.notifications.is_empty()
            || self.incoming.has_events();
        news || !self.leftovers.is_empty() || !self.unfinished.is_empty() || self.peers.have_news()
    }

    /// Appends what became of chunks of ours since the last call; what came in stays to be taken.
    pub fn take_sent_chunk_events(&mut self, out: &mut Vec<(PeerHandle, ChunkEvent)>) {
        self.incoming.take_sent_events(out);
    }

    /// Moves every message that can be read into `inbox`.
    pub fn take_messages(&mut self, inbox: &mut Inbox) {
        let (first, any_arrived) = (inbox.records().len(), !self.arriving.is_empty());
        // First: what of the same peers waits elsewhere came later.
        self.arriving.take_into(inbox, &self.protocol);
        let untold = &self.untold;
        inbox.append(&mut self.leftovers, |peer| !untold.contains(&peer));
        self.told_late.clear();
        let channels = self.protocol.game_channels();
        let is_heard = |peer: &Peer| peer.is_heard() && !untold.contains(&peer.handle);
        for (peer, look_again) in self.peers.with_news(News::Messages, is_heard) {
            peer.connection.swap_scratch(&mut self.scratch);
            let is_left = inbox.take_from(peer.handle, &mut peer.connection, channels);
            // More may have come while the application read what was held.
            if is_left || peer.connection.has_unread() {
                look_again();
            }
            peer.connection.swap_scratch(&mut self.scratch);
        }
        if any_arrived {
            inbox.sort(first);
        }
    }

    /// Moves what ghosts' channels carried into `out`, in the order in which it came: after each datagram.
    pub fn take_ghost_payloads(&mut self, out: &mut Vec<(PeerHandle, Received)>) {
        out.append(&mut self.ghost_payloads);
    }

    /// As [`Host::take_ghost_payloads`], of the channel of inputs and of the server's time.
    pub fn take_time_payloads(&mut self, out: &mut Vec<(PeerHandle, Received)>) {
        out.append(&mut self.time_payloads);
    }

    /// As [`Host::take_ghost_payloads`], of the channels of peers without a server, whatever the application knows of them.
    pub fn take_peer_payloads(&mut self, out: &mut Vec<(PeerHandle, usize, Received)>) {
        out.append(&mut self.peer_payloads);
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

    /// Appends what happened to chunks since the last call.
    pub fn take_chunk_events(&mut self, out: &mut Vec<(PeerHandle, ChunkEvent)>) {
        let untold = &self.untold;
        let is_told = |peer: &Peer| peer.closing.is_none() && !untold.contains(&peer.handle);
        for (peer, _) in self.peers.with_news(News::Chunks, is_told) {
            let Peer { handle, id, connection, quota, .. } = peer;
            self.incoming.poll(*handle, *id, connection, quota);
            quota.read();
            // There may be room now.
            self.incoming.poll(*handle, *id, connection, quota);
        }
        self.incoming.take_events(out, |peer| !untold.contains(&peer));
    }

    /// Appends the fates of messages that are known by now, peer by peer, each in the order of its packets. When a
    /// connection ended, all that was still open is lost, before what its slot's next peer has.
    pub fn take_notifications(&mut self, out: &mut Vec<(PeerHandle, Notification)>) {
        let untold = &self.untold;
        out.extend(self.notifications.extract_if(.., |(peer, _)| !untold.contains(peer)));
        let is_told = |peer: &Peer| peer.is_admitted() && !untold.contains(&peer.handle);
        for (peer, _) in self.peers.with_news(News::Notifications, is_told) {
            let Peer { handle, connection, .. } = peer;
            out.extend(core::iter::from_fn(|| connection.poll_notification()).map(|fate| (*handle, fate)));
        }
    }

    /// Appends the fates of packets that are known by now, in the same order; they are kept if the configuration says so.
    pub fn take_packet_notifications(&mut self, out: &mut Vec<(PeerHandle, PacketNotification)>) {
        let untold = &self.untold;
        let is_told = |peer: &Peer| peer.is_admitted() && !untold.contains(&peer.handle);
        for (peer, _) in self.peers.with_news(News::PacketNotifications, is_told) {
            let Peer { handle, connection, .. } = peer;
            out.extend(
                core::iter::from_fn(|| connection.poll_packet_notification()).map(|fate| (*handle, fate)),
            );
        }
    }

    /// Whether an event can be taken for all that the application has not taken of its peer. A peer's last one can't before
    /// all its messages were taken.
    fn is_ready(&self, event: &Event) -> bool {
        let peer = event.peer();
        let is_unread = || {
            // It came and left between two ticks, and what it said waited for it to be told of.
            let waits = self.told_late.contains(&peer)
                && (self.leftovers.has_any_of(peer) || self.incoming.has_events_of(peer));
            waits || self.unfinished.iter().any(|(over, _)| *over == peer)
        };
        let is_last = matches!(event, Event::Disconnected { .. });
        !(self.is_undecided(peer) || is_last && is_unread())
    }

    /// The next event. Of a peer whose connection came up, all else can be taken from then on.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.front().filter(|event| self.is_ready(event))?;
        let event = self.events.pop_front()?;
        self.note_told(&event);
        Some(event)
    }

    /// Takes the events, in order for each slot and for each client id, with how those were doing that ended. A peer's last event
    /// stays if `is_here` says that the application takes something else of it besides, or its first one: and so do those
    /// behind it of the next peer in its slot, or with its id. Those of others don't wait for it.
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
            self.note_told(&event);
            out.push(event);
        }
    }

    /// The application knows that a peer is gone, or will never know that it was there.
    pub(super) fn forget(&mut self, peer: PeerHandle) {
        self.final_stats.remove(&peer);
        if self.links.dialled(peer).is_some() {
            return;
        }
        if let Some(listener) = &mut self.links.listener {
            listener.release_slot(peer.into());
        }
    }

    /// An event is taken.
    fn note_told(&mut self, event: &Event) {
        let peer = event.peer();
        if !matches!(event, Event::Disconnected { .. }) {
            self.untold.remove(&peer);
            if self.peers.find(peer).is_none() {
                self.told_late.insert(peer);
            }
            return;
        }
        self.told_late.remove(&peer);
        if self.links.dialled(peer).is_none() {
            self.forget(peer);
        }
    }

    /// Takes the packets that the core can't read, peer by peer, where the protocol holds such: [`Unread::read`] them, and
    /// give what they say to [`Host::handle_read`], before [`Host::take_messages`].
    pub fn take_unread(&mut self) -> Vec<(PeerHandle, Unread)> {
        if !self.protocol.holds_packets() {
            return Vec::new();
        }
        let untold = &self.untold;
        let live = self.peers.iter_mut().filter(|peer| peer.is_heard() && !untold.contains(&peer.handle));
        let live = live.map(|peer| (peer.handle, &mut peer.connection));
        let over = self
            .unfinished
            .iter_mut()
            .filter(|(peer, _)| !untold.contains(peer))
            .map(|(peer, connection)| (*peer, connection));
        over.chain(live).filter_map(|(peer, held)| Some((peer, held.take_unread()?))).collect()
    }

    /// Takes what a peer's packets say: its messages go to `inbox`. Ends the connection at the first that is refused.
    pub fn handle_read(
        &mut self,
        now: Instant,
        handle: PeerHandle,
        read: Read,
        inbox: &mut Inbox,
        out: &mut Datagrams,
    ) {
        let channels = self.protocol.game_channels();
        if let Some(place) = self.unfinished.iter().position(|(over, _)| *over == handle) {
            let (_, connection) = &mut self.unfinished[place];
            let refused = inbox.take_read(handle, connection, channels, read).is_err();
            // It may have received more, and ended, while these were read.
            if refused || !connection.has_unread() {
                self.unfinished.remove(place);
            }
        } else if let Some(peer) = self.peers.live_mut(handle) {
            peer.connection.swap_scratch(&mut self.scratch);
            let taken = inbox.take_read(handle, &mut peer.connection, channels, read);
            peer.connection.swap_scratch(&mut self.scratch);
            if let Err(end) = taken {
                self.end(now, handle, &end, out);
            }
        }
    }
}
