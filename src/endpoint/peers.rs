//! The peers of an endpoint, by slot and generation.
//!
//! Promises: a stale handle finds nobody. A peer that is about to end is none to the application.

use super::goodbye::{Closing, Words};
use super::handle::PeerHandle;
use super::incoming::PeerChunkQuota;
use crate::store::Packets;
use crate::time::Instant;
use crate::transport::{CloseReason, Connection};

/// A peer and the conversation with it.
pub(super) struct Peer {
    pub(super) handle: PeerHandle,
    /// By which its chunks are kept for a reconnect: the id in its connect token, or as the dialling application said.
    pub(super) id: u64,
    pub(super) connection: Box<Connection>,
    pub(super) quota: PeerChunkQuota,
    /// When the connection has something to do between ticks; ZERO if that must be found out.
    pub(super) next: Instant,
    /// When it has something to do in a tick; ZERO as for `next`.
    pub(super) next_tick: Instant,
    /// What the application may find here.
    pub(super) news: News,
    /// The application wants it to end: to the application it is gone.
    pub(super) closing: Option<Closing>,
}

/// Of which kinds something may wait in a connection for the application: others aren't asked for it.
#[derive(Clone, Copy)]
pub(super) struct News {
    pub(super) messages: bool,
    pub(super) notifications: bool,
    pub(super) packet_fates: bool,
    pub(super) chunks: bool,
}

impl News {
    /// Anything may wait.
    pub(super) const ALL: News =
        News { messages: true, notifications: true, packet_fates: true, chunks: true };
}

impl Peer {
    /// One whose connection just came up; held until the application has decided about it, if it is a newcomer.
    pub(super) fn new(handle: PeerHandle, id: u64, connection: Box<Connection>, is_held: bool) -> Self {
        Peer {
            handle,
            id,
            connection,
            quota: PeerChunkQuota::new(is_held),
            next: Instant::ZERO,
            next_tick: Instant::ZERO,
            news: News::ALL,
            closing: None,
        }
    }

    /// Whether the application has let it in, if it wants to be asked.
    pub(super) fn is_admitted(&self) -> bool {
        !self.quota.is_held
    }

    /// Whether the application is told of what it does.
    pub(super) fn is_heard(&self) -> bool {
        self.is_admitted() && self.closing.is_none()
    }

    /// Something was sent or received: there may be something else to do, and something for the application.
    pub(super) fn mark_dirty(&mut self) {
        (self.next, self.next_tick, self.news) = (Instant::ZERO, Instant::ZERO, News::ALL);
    }

    /// When something is due between ticks.
    pub(super) fn next_deadline(&self) -> Instant {
        self.closing.as_ref().map_or(Instant::NEVER, |closing| closing.until).min(self.next)
    }
}

/// When packets are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Once a tick, messages included.
    Tick,
    /// What needn't wait for the tick.
    Between,
}

impl Peer {
    pub(super) fn is_due(&self, now: Instant, pace: Pace) -> bool {
        now >= if pace == Pace::Tick { self.next_tick } else { self.next }
    }

    /// Writes what is due, and notes when something is again.
    pub(super) fn transmit(&mut self, now: Instant, pace: Pace, packets: &mut Packets) {
        self.news = News::ALL;
        (self.next, self.next_tick) = match pace {
            Pace::Tick => (Instant::ZERO, self.connection.transmit(now, packets)),
            Pace::Between => (self.connection.transmit_between(now, packets), Instant::ZERO),
        };
    }

    /// The last packet, which says why the connection ends.
    pub(super) fn farewell(
        &mut self,
        now: Instant,
        reason: CloseReason,
        detail: Option<&str>,
    ) -> Option<Words> {
        let understood = self.connection.is_greeted() || reason == CloseReason::Mismatch;
        let payload = self.connection.farewell(now, reason, detail)?;
        Some(Words { payload, understood })
    }
}

/// All peers of an endpoint.
pub(super) struct Peers(Vec<Option<Peer>>);

impl Peers {
    pub(super) fn new(slots: usize) -> Self {
        Peers((0..slots).map(|_| None).collect())
    }

    /// Puts a peer into its slot.
    pub(super) fn insert(&mut self, peer: Peer) {
        let slot = peer.handle.slot as usize;
        if slot >= self.0.len() {
            self.0.resize_with(slot + 1, || None);
        }
        self.0[slot] = Some(peer);
    }

    pub(super) fn remove(&mut self, handle: PeerHandle) -> Option<Peer> {
        self.find(handle)?;
        self.0[handle.slot as usize].take()
    }

    /// A peer, also one that is about to end.
    pub(super) fn find(&self, handle: PeerHandle) -> Option<&Peer> {
        self.0.get(handle.slot as usize)?.as_ref().filter(|peer| peer.handle == handle)
    }

    /// [`Peers::find`], to change it.
    pub(super) fn find_mut(&mut self, handle: PeerHandle) -> Option<&mut Peer> {
        self.0.get_mut(handle.slot as usize)?.as_mut().filter(|peer| peer.handle == handle)
    }

    /// A peer as the application knows it.
    pub(super) fn live(&self, handle: PeerHandle) -> Option<&Peer> {
        self.find(handle).filter(|peer| peer.closing.is_none())
    }

    /// [`Peers::live`], for the application to change: there may be something else to do after that.
    pub(super) fn live_mut(&mut self, handle: PeerHandle) -> Option<&mut Peer> {
        let peer = self.find_mut(handle).filter(|peer| peer.closing.is_none())?;
        peer.mark_dirty();
        Some(peer)
    }

    /// All of them by slot, also those that are about to end.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.0.iter().flatten()
    }

    /// [`Peers::iter`], to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.0.iter_mut().flatten()
    }
}
