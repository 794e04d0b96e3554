//! The peers of an endpoint, by slot and generation.
//!
//! Promises: a stale handle finds nobody. A lingering peer doesn't exist for the application.

use super::PeerHandle;
use super::full_channels::FullChannels;
use super::goodbye::Closing;
use super::incoming::PeerChunkQuota;
use super::schedule::{News, Pace, Schedule, Visit};
use crate::netcode::Farewell;
use crate::store::prefetch;
use crate::time::Instant;
use crate::transport::{CloseReason, Connection};

/// A peer and its conversation.
pub(super) struct Peer {
    pub(super) handle: PeerHandle,
    /// The id under which its chunks are kept for a reconnect: from its connect token, or from the dialling
    /// application.
    pub(super) id: u64,
    pub(super) connection: Box<Connection>,
    pub(super) quota: PeerChunkQuota,
    /// The application ended it: for the application it is gone.
    pub(super) closing: Option<Closing>,
    /// Its channels that refused a message because they were full, and have taken none since.
    pub(super) full: FullChannels,
}

impl Peer {
    /// A peer whose connection just came up; held until the application has decided about it if it is a newcomer.
    pub(super) fn new(handle: PeerHandle, id: u64, connection: Box<Connection>, is_held: bool) -> Self {
        Peer {
            handle,
            id,
            connection,
            quota: PeerChunkQuota::new(is_held),
            closing: None,
            full: FullChannels::default(),
        }
    }

    /// Whether the application has admitted it, if it decides.
    pub(super) fn is_admitted(&self) -> bool {
        !self.quota.is_held
    }

    /// The kinds of [`News`] that wait here, found while the connection is in the cache.
    pub(super) fn news(&self, has_chunks: bool) -> u8 {
        let connection = &self.connection;
        let kinds = [
            // Unread packets become messages once the application has read them.
            (News::Messages, connection.has_received() || connection.has_unread()),
            (News::Notifications, connection.has_notification()),
            (News::Chunks, has_chunks),
        ];
        let news =
            kinds.into_iter().filter(|(_, is_here)| *is_here).fold(0, |news, (kind, _)| news | kind as u8);
        let asked_for = News::Messages as u8 | News::Notifications as u8;
        debug_assert_eq!(news & asked_for != 0, connection.has_news(), "as Connection::has_news sees it");
        news
    }

    /// Whether the application is notified of what it does.
    pub(super) fn is_heard(&self) -> bool {
        self.is_admitted() && self.closing.is_none()
    }

    /// The last packet, which carries the reason.
    pub(super) fn farewell(
        &mut self,
        now: Instant,
        reason: CloseReason,
        detail: Option<&str>,
    ) -> Option<Farewell> {
        let understood = self.connection.has_received_hello() || reason == CloseReason::Mismatch;
        let payload = self.connection.farewell(now, reason, detail)?;
        Some(Farewell { payload, understood })
    }
}

/// All peers of an endpoint.
pub(super) struct Peers {
    slots: Vec<Option<Peer>>,
    pub(super) schedule: Schedule,
}

impl Peers {
    pub(super) fn new(slots: usize) -> Self {
        Peers { slots: (0..slots).map(|_| None).collect(), schedule: Schedule::default() }
    }

    /// Puts a peer into its slot.
    pub(super) fn insert(&mut self, peer: Peer) {
        let slot = peer.handle.slot as usize;
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot] = Some(peer);
        self.schedule.mark(slot);
    }

    pub(super) fn remove(&mut self, handle: PeerHandle) -> Option<Peer> {
        self.find(handle)?;
        let slot = handle.slot as usize;
        self.schedule.forget(slot);
        self.slots[slot].take()
    }

    /// Finds a peer, including lingering ones.
    pub(super) fn find(&self, handle: PeerHandle) -> Option<&Peer> {
        self.slots.get(handle.slot as usize)?.as_ref().filter(|peer| peer.handle == handle)
    }

    /// [`Peers::find`], for changes that don't affect the schedule.
    pub(super) fn find_mut(&mut self, handle: PeerHandle) -> Option<&mut Peer> {
        self.slots.get_mut(handle.slot as usize)?.as_mut().filter(|peer| peer.handle == handle)
    }

    /// Has the memory of the peer in this slot fetched, if there is one: it is about to receive.
    pub(super) fn prefetch(&self, slot: u32) {
        if let Some(Some(peer)) = self.slots.get(slot as usize) {
            prefetch(&*peer.connection);
        }
    }

    /// Has the memory fetched that messages for the peers in the next slots are queued in.
    pub(super) fn prefetch_after(&self, slot: u32) {
        // The handle is the application's: it may be of any slot.
        let after = |ahead: usize| self.slots.get((slot as usize).checked_add(ahead)?)?.as_ref();
        if let Some(peer) = after(2) {
            peer.connection.prefetch_queues();
        }
        if let Some(peer) = after(1) {
            peer.connection.prefetch_streams();
        }
    }

    /// [`Peers::find`], to send or receive: the peer may have something to do or to report afterwards.
    pub(super) fn change(&mut self, handle: PeerHandle) -> Option<&mut Peer> {
        let slot = handle.slot as usize;
        let peer = self.slots.get_mut(slot)?.as_mut().filter(|peer| peer.handle == handle)?;
        self.schedule.mark(slot);
        Some(peer)
    }

    /// A peer that exists for the application.
    pub(super) fn live(&self, handle: PeerHandle) -> Option<&Peer> {
        self.find(handle).filter(|peer| peer.closing.is_none())
    }

    /// [`Peers::live`], for the application to change.
    pub(super) fn live_mut(&mut self, handle: PeerHandle) -> Option<&mut Peer> {
        self.change(handle).filter(|peer| peer.closing.is_none())
    }

    /// All peers by slot, including lingering ones.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.slots.iter().flatten()
    }

    /// [`Peers::iter`], for changes that don't affect the schedule.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.slots.iter_mut().flatten()
    }

    /// Marks all peers as to be checked again.
    pub(super) fn mark_all_dirty(&mut self) {
        let here = self.slots.iter().enumerate().filter(|(_, peer)| peer.is_some());
        here.for_each(|(slot, _)| self.schedule.mark(slot));
    }

    /// Visits the peers that have something to do now, by slot. The callback asks a connection for packets.
    pub(super) fn visit_due(&mut self, now: Instant, pace: Pace, mut visit: impl FnMut(&mut Peer) -> Visit) {
        let slots = &mut self.slots;
        self.schedule.visit_due(now, pace, |slot, ahead| {
            let [next, then] = ahead.map(|slot| slots.get(slot?)?.as_ref());
            if let Some(peer) = then {
                prefetch(&*peer.connection);
            }
            // What it points to: it was fetched itself with the peer before.
            if let Some(peer) = next {
                peer.connection.prefetch();
            }
            slots.get_mut(slot)?.as_mut().map(&mut visit)
        });
    }

    /// Visits the peers in which news of this kind may wait, among those for which `wanted` returns true. A peer isn't
    /// visited again until it changes, unless the callback says that more may be left.
    pub(super) fn visit_news(
        &mut self,
        kind: News,
        wanted: impl Fn(&Peer) -> bool,
        mut visit: impl FnMut(&mut Peer) -> bool,
    ) {
        let slots = &mut self.slots;
        self.schedule.visit_news(kind, |slot| {
            let peer = slots.get_mut(slot)?.as_mut().filter(|peer| wanted(peer))?;
            Some(visit(peer))
        });
    }

    /// Whether any connection has something for the application.
    pub(super) fn have_news(&self) -> bool {
        let mut news = self.schedule.with_news().filter_map(|slot| self.slots.get(slot)?.as_ref());
        let any = news.any(|peer| peer.connection.has_news());
        debug_assert!(any || !self.iter().any(|peer| peer.connection.has_news()), "every news is noted");
        any
    }
}
