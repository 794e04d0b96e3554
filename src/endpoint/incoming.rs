//! Chunks that come in: how many bytes of them a peer may have here, where they go, and what is kept of them for a
//! reconnect.
//!
//! Promises: no memory is taken for a chunk before its size was found to be within the limit; chunks that were received and not
//! taken count, so that what waits for a slow reader is bounded too. An offer that will fit when others are
//! through waits, and so do all offers of a client that isn't let in yet; one that never will fit is refused. Chunks get their places in the order in which the application gets them:
//! those behind would otherwise hold what those in front wait for.
//!
//! Facing a hostile peer: its chunks take at most the limit, and [`MAX_PARTIAL`] of them outlive connections. A store
//! has its own limits. While [`MAX_UNTAKEN`] ends of its chunks wait for the application, none of its offers is
//! accepted, and those that it withdraws meanwhile aren't told.

use std::collections::VecDeque;

use super::handle::PeerHandle;
use crate::store::sequence::less;
use crate::transport::Connection;
use crate::transport::chunks::{Assembly, ChunkEvent, MemorySink, Offer, Rejection, Stored};

/// Unfinished chunks of connections that are over, kept for the same peer to go on with; the oldest make room.
const MAX_PARTIAL: usize = 8;

/// Ends of a peer's chunks that may wait for the application.
const MAX_UNTAKEN: usize = 64;

/// Where an endpoint's incoming chunks go instead of memory.
pub trait ChunkStore: Send {
    /// A place for a chunk that a peer offers, with what is there of it; `client_id` is the peer's, 0 on a client. When
    /// the connection ends before the chunk is whole, it is dropped.
    ///
    /// # Errors
    /// Why it has none.
    fn open(&mut self, client_id: u64, offer: &Offer) -> Result<Assembly, Rejection>;

    /// Bytes of the chunks that a peer may have under way: those beyond wait, so that offers alone don't take all room.
    fn bytes_at_once(&self) -> u64;
}

/// Which chunks an endpoint takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Bytes of chunks that each peer may have in memory, those under way and those not taken yet; 0 for no chunks.
    pub memory_bytes: u64,
}

impl ChunkLimits {
    /// What a client takes if nothing is said: 64 MiB, from a server that it chose.
    pub const CLIENT: ChunkLimits = ChunkLimits { memory_bytes: 64 << 20 };

    /// What a server takes if nothing is said: nothing, because there are many clients and none was chosen.
    pub const SERVER: ChunkLimits = ChunkLimits { memory_bytes: 0 };
}

/// Chunks in memory of connections that are over, to go on with: by client id.
#[derive(Debug, Default)]
pub struct PartialChunks(VecDeque<(u64, Assembly)>);

impl PartialChunks {
    fn keep(&mut self, client_id: u64, assembly: Assembly) {
        if self.0.len() == MAX_PARTIAL {
            self.0.pop_front();
        }
        self.0.push_back((client_id, assembly));
    }

    fn take(&mut self, client_id: u64, offer: &Offer) -> Option<Assembly> {
        let at = self.0.iter().position(|(id, assembly)| *id == client_id && assembly.is_of(offer))?;
        self.0.remove(at).map(|(_, assembly)| assembly)
    }
}

/// The incoming chunks of one endpoint, and what happened to chunks of either direction.
pub(super) struct IncomingChunks {
    limits: ChunkLimits,
    store: Option<Box<dyn ChunkStore>>,
    pub(super) partial: PartialChunks,
    events: VecDeque<(PeerHandle, ChunkEvent)>,
}

/// What one peer has here.
#[derive(Debug, Default)]
pub(super) struct PeerChunkQuota {
    /// In the order of their ids, in which the application gets them.
    waiting: VecDeque<Offer>,
    /// Chunks under way: id and size.
    open: Vec<(u16, u64)>,
    /// Bytes in memory that the application has not taken.
    unread: u64,
    /// Events that it has not taken.
    untaken: usize,
    /// The peer isn't let in yet: its offers wait.
    pub(super) is_held: bool,
}

impl IncomingChunks {
    pub(super) fn new(limits: ChunkLimits) -> Self {
        IncomingChunks { limits, store: None, partial: PartialChunks::default(), events: VecDeque::new() }
    }

    pub(super) fn set_store(&mut self, store: Box<dyn ChunkStore>) {
        self.store = Some(store);
    }

    /// Takes what happened on a connection, and finds places for what its peer offers.
    pub(super) fn poll(
        &mut self,
        peer: PeerHandle,
        client_id: u64,
        connection: &mut Connection,
        quota: &mut PeerChunkQuota,
    ) {
        while let Some(event) = connection.poll_chunk_event() {
            match &event {
                ChunkEvent::Offered(offer) => {
                    // It comes again where what the store had of it was something else.
                    quota.open.retain(|(id, _)| *id != offer.id);
                    let at = quota.waiting.partition_point(|other| less(other.id, offer.id));
                    quota.waiting.insert(at, offer.clone());
                    continue;
                }
                ChunkEvent::Received { offer, stored } => {
                    quota.open.retain(|(id, _)| *id != offer.id);
                    quota.untaken += 1;
                    if let Stored::Bytes(bytes) = stored {
                        quota.unread += bytes.len() as u64;
                    }
                }
                ChunkEvent::NotReceived { offer, .. } => {
                    quota.open.retain(|(id, _)| *id != offer.id);
                    quota.waiting.retain(|waiting| waiting.id != offer.id);
                    if quota.is_held || quota.untaken >= MAX_UNTAKEN {
                        continue;
                    }
                    quota.untaken += 1;
                }
                ChunkEvent::Sent { .. } | ChunkEvent::NotSent { .. } => {}
            }
            self.events.push_back((peer, event));
        }
        while let Some(offer) = quota.waiting.front().filter(|offer| connection.is_in_line(offer.id)) {
            if quota.is_held || quota.untaken >= MAX_UNTAKEN {
                return;
            }
            match self.place(client_id, offer, quota) {
                Ok(None) => return,
                Ok(Some(assembly)) => {
                    quota.open.push((offer.id, offer.size));
                    connection.accept_chunk(offer.id, assembly);
                }
                Err(rejection) => {
                    connection.reject_chunk(offer.id, rejection);
                }
            }
            quota.waiting.pop_front();
        }
    }

    /// A place for a chunk; None while others are in the way.
    fn place(
        &mut self,
        client_id: u64,
        offer: &Offer,
        quota: &PeerChunkQuota,
    ) -> Result<Option<Assembly>, Rejection> {
        let taken: u64 = quota.open.iter().map(|(_, size)| size).sum();
        if let Some(store) = &mut self.store {
            let wait = taken > 0 && taken + offer.size > store.bytes_at_once();
            // One that is too large need not wait to hear that.
            let wait = wait && offer.size <= store.bytes_at_once();
            return if wait { Ok(None) } else { store.open(client_id, offer).map(Some) };
        }
        if self.limits.memory_bytes == 0 || offer.size > self.limits.memory_bytes {
            return Err(Rejection::TooLarge);
        }
        if taken + quota.unread + offer.size > self.limits.memory_bytes {
            return Ok(None);
        }
        if let Some(partial) = self.partial.take(client_id, offer) {
            return Ok(Some(partial));
        }
        let sink = MemorySink::new(offer.size).map_err(|_| Rejection::Storage)?;
        Ok(Some(Assembly::new(offer, Box::new(sink))))
    }

    /// Ends the chunks of a connection that is over; what is there of the peer's is kept, for the same peer.
    pub(super) fn finish(&mut self, peer: PeerHandle, client_id: u64, connection: &mut Connection) {
        for assembly in connection.finish_chunks() {
            // A store keeps its own.
            if self.store.is_none() {
                self.partial.keep(client_id, assembly);
            }
        }
        let events = core::iter::from_fn(|| connection.poll_chunk_event());
        let heard = events.filter(|event| !matches!(event, ChunkEvent::Offered(_)));
        self.events.extend(heard.map(|event| (peer, event)));
    }

    /// Forgets what came in of a peer, of which the application is not to hear. What became of chunks of ours stays, as whoever
    /// sent them waits for it.
    pub(super) fn drop_peer(&mut self, peer: PeerHandle) {
        let came_in = |event: &ChunkEvent| {
            matches!(
                event,
                ChunkEvent::Received { .. } | ChunkEvent::NotReceived { .. } | ChunkEvent::Offered(_)
            )
        };
        self.events.retain(|(of, event)| *of != peer || !came_in(event));
    }

    /// What became of chunks of ours. What came in stays, for someone to read.
    pub(super) fn take_sent_events(&mut self, out: &mut Vec<(PeerHandle, ChunkEvent)>) {
        let ours = |event: &ChunkEvent| matches!(event, ChunkEvent::Sent { .. } | ChunkEvent::NotSent { .. });
        let (fates, rest): (VecDeque<_>, _) =
            core::mem::take(&mut self.events).into_iter().partition(|(_, event)| ours(event));
        self.events = rest;
        out.extend(fates);
    }

    /// Whether something happened that the application wasn't told of.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether something happened with this peer that the application wasn't told of.
    pub(super) fn has_events_of(&self, peer: PeerHandle) -> bool {
        self.events.iter().any(|(of, _)| *of == peer)
    }

    /// What happened, for the application, with peers that it was told of.
    pub(super) fn take_events(
        &mut self,
        out: &mut Vec<(PeerHandle, ChunkEvent)>,
        is_announced: impl Fn(PeerHandle) -> bool,
    ) {
        if self.events.iter().all(|(peer, _)| is_announced(*peer)) {
            return out.extend(self.events.drain(..));
        }
        let events = core::mem::take(&mut self.events).into_iter();
        let (announced, waiting): (VecDeque<_>, VecDeque<_>) =
            events.partition(|(peer, _)| is_announced(*peer));
        self.events = waiting;
        out.extend(announced);
    }
}

impl PeerChunkQuota {
    /// Of a peer whose offers wait, or not.
    pub(super) fn new(is_held: bool) -> Self {
        PeerChunkQuota { is_held, ..PeerChunkQuota::default() }
    }

    /// The application takes all that was received.
    pub(super) fn read(&mut self) {
        (self.unread, self.untaken) = (0, 0);
    }
}
