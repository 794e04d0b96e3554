//! The peers of an endpoint, by slot and generation.
//!
//! Promises: a stale handle finds nobody. A lingering peer doesn't exist for the application.

use super::goodbye::{Closing, Words};
use super::handle::PeerHandle;
use super::incoming::PeerChunkQuota;
use super::stalled::FullChannels;
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

/// A kind of data that waits in a connection for the application.
#[derive(Clone, Copy)]
pub(super) enum News {
    Messages = 1,
    Notifications = 2,
    PacketNotifications = 4,
    Chunks = 8,
}

impl News {
    const ALL: u8 = 15;
}

/// The questions that each tick asks of each peer. Kept apart from the peers, which are far from the processor's
/// cache when there are many and most are idle.
#[derive(Clone, Copy)]
struct Schedule {
    /// When the connection has something to do between ticks; ZERO if that must be recomputed.
    between: Instant,
    /// When it has something to do in a tick; ZERO if that must be recomputed.
    tick: Instant,
    /// The kinds of [`News`] that may wait here, one bit each: others needn't be checked.
    news: u8,
}

impl Schedule {
    /// Anything may be due and wait.
    const UNKNOWN: Schedule = Schedule { between: Instant::ZERO, tick: Instant::ZERO, news: News::ALL };
    /// There is no peer.
    const EMPTY: Schedule = Schedule { between: Instant::NEVER, tick: Instant::NEVER, news: 0 };
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
            (News::PacketNotifications, connection.has_packet_fate()),
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
    ) -> Option<Words> {
        let understood = self.connection.has_received_hello() || reason == CloseReason::Mismatch;
        let payload = self.connection.farewell(now, reason, detail)?;
        Some(Words { payload, understood })
    }
}

/// When packets are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Once a tick, messages included.
    Tick,
    /// Whatever needn't wait for the tick.
    Between,
}

/// All peers of an endpoint.
pub(super) struct Peers {
    slots: Vec<Option<Peer>>,
    // By slot.
    schedules: Vec<Schedule>,
}

impl Peers {
    pub(super) fn new(slots: usize) -> Self {
        Peers { slots: (0..slots).map(|_| None).collect(), schedules: vec![Schedule::EMPTY; slots] }
    }

    /// Puts a peer into its slot.
    pub(super) fn insert(&mut self, peer: Peer) {
        let slot = peer.handle.slot as usize;
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
            self.schedules.resize(slot + 1, Schedule::EMPTY);
        }
        self.slots[slot] = Some(peer);
        self.schedules[slot] = Schedule::UNKNOWN;
    }

    pub(super) fn remove(&mut self, handle: PeerHandle) -> Option<Peer> {
        self.find(handle)?;
        let slot = handle.slot as usize;
        self.schedules[slot] = Schedule::EMPTY;
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
        let after = |ahead: usize| self.slots.get(slot as usize + ahead)?.as_ref();
        if let Some(peer) = after(2) {
            peer.connection.prefetch_queues();
        }
        if let Some(peer) = after(1) {
            peer.connection.prefetch_streams();
        }
    }

    /// [`Peers::find`], to send or receive: the peer may have something to do or to report afterwards.
    pub(super) fn change(&mut self, handle: PeerHandle) -> Option<&mut Peer> {
        self.find(handle)?;
        self.schedules[handle.slot as usize] = Schedule::UNKNOWN;
        self.slots[handle.slot as usize].as_mut()
    }

    /// Exactly these kinds of [`News`] wait in this peer.
    pub(super) fn set_news(&mut self, handle: PeerHandle, news: u8) {
        if let Some(schedule) = self.schedules.get_mut(handle.slot as usize) {
            schedule.news = news;
        }
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
        for (schedule, peer) in self.schedules.iter_mut().zip(&self.slots) {
            *schedule = if peer.is_some() { Schedule::UNKNOWN } else { Schedule::EMPTY };
        }
    }

    /// When the first peer has something to do between ticks.
    pub(super) fn next_deadline(&self) -> Instant {
        self.schedules.iter().map(|schedule| schedule.between).min().unwrap_or(Instant::NEVER)
    }

    /// The peers that have something to do now. The callback asks a connection for packets and returns when it is due
    /// again, and which [`News`] wait there.
    pub(super) fn due(
        &mut self,
        now: Instant,
        pace: Pace,
    ) -> impl Iterator<Item = (&mut Peer, impl FnOnce(Instant, u8))> {
        let due = move |schedule: &Schedule| {
            now >= if pace == Pace::Tick { schedule.tick } else { schedule.between }
        };
        let (mut schedules, mut slots) = (&mut self.schedules[..], &mut self.slots[..]);
        let peers = core::iter::from_fn(move || {
            let first = schedules.iter().position(due)?;
            let (schedule, schedules_after) = core::mem::take(&mut schedules)[first..].split_first_mut()?;
            let (peer, slots_after) = core::mem::take(&mut slots)[first..].split_first_mut()?;
            // The one after the next, and what the next one points to: it was fetched itself with the peer before.
            let then = |ahead: usize| {
                schedules_after.get(ahead).filter(|schedule| due(schedule))?;
                slots_after.get(ahead)?.as_ref()
            };
            if let Some(peer) = then(1) {
                prefetch(&*peer.connection);
            }
            if let Some(peer) = then(0) {
                peer.connection.prefetch();
            }
            (schedules, slots) = (schedules_after, slots_after);
            Some((schedule, peer))
        });
        peers.filter_map(move |(schedule, peer)| {
            let next = move |next, news| {
                // The other pace must be recomputed.
                let (tick, between) =
                    if pace == Pace::Tick { (next, Instant::ZERO) } else { (Instant::ZERO, next) };
                *schedule = Schedule { tick, between, news };
            };
            Some((peer.as_mut()?, next))
        })
    }

    /// The peers in which news of this kind may wait, among those for which `wanted` returns true. A peer isn't
    /// listed again until it changes, unless the function that comes with it is called.
    pub(super) fn with_news(
        &mut self,
        kind: News,
        wanted: impl Fn(&Peer) -> bool,
    ) -> impl Iterator<Item = (&mut Peer, impl FnOnce())> {
        let peers = self.schedules.iter_mut().zip(&mut self.slots);
        let peers = peers.filter(move |(schedule, _)| schedule.news & kind as u8 != 0);
        peers.filter_map(move |(schedule, peer)| {
            let peer = peer.as_mut().filter(|peer| wanted(peer))?;
            schedule.news &= !(kind as u8);
            Some((peer, move || schedule.news |= kind as u8))
        })
    }

    /// Whether any connection has something for the application.
    pub(super) fn have_news(&self) -> bool {
        let is_forgotten = |(schedule, peer): (&Schedule, &Option<Peer>)| {
            schedule.news == 0 && peer.as_ref().is_some_and(|peer| peer.connection.has_news())
        };
        debug_assert!(!self.schedules.iter().zip(&self.slots).any(is_forgotten), "every news is noted");
        let peers = self.schedules.iter().zip(&self.slots).filter(|(schedule, _)| schedule.news != 0);
        peers.filter_map(|(_, peer)| peer.as_ref()).any(|peer| peer.connection.has_news())
    }
}
