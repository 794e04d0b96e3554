//! Incoming chunks: how many bytes of them a peer may have here, where they go, and what is kept of them for a
//! reconnect.
//!
//! Promises: no memory is allocated for a chunk before its size is known to be within the limit; received chunks
//! count until they are taken, so that a slow reader's backlog is bounded too. An offer that will fit once others are
//! done waits, and so do all offers of a client that isn't admitted yet; one that can never fit is refused. Chunks
//! get their places in the order in which the application gets them: otherwise later ones could hold the memory that
//! earlier ones wait for.
//!
//! Facing a hostile peer: its chunks take at most the limit, and [`MAX_PARTIAL`] of them outlive connections. A store
//! has its own limits. While [`MAX_UNTAKEN`] ends of its chunks wait for the application, none of its offers is
//! accepted, and those that it withdraws meanwhile are not reported.

use std::collections::VecDeque;

use super::PeerHandle;
use crate::store::sequence::less;
use crate::transport::Connection;
use crate::transport::chunks::{Assembly, ChunkEvent, MemorySink, Offer, Rejection, Stored};

/// Partial chunks of ended connections that are kept for the same peer to resume; the oldest make room.
const MAX_PARTIAL: usize = 8;

/// How many ends of a peer's chunks may wait for the application.
const MAX_UNTAKEN: usize = 64;

/// A destination for incoming chunks other than memory.
pub trait ChunkStore: Send {
    /// Opens a place for a chunk that a peer offers, with the slices it already has; `client_id` is the peer's, 0 on
    /// a client. If the connection ends before the chunk is complete, the assembly is dropped.
    ///
    /// # Errors
    ///
    /// Why it has no place.
    fn open(&mut self, client_id: u64, offer: &Offer) -> Result<Assembly, Rejection>;

    /// Bytes of chunks that a peer may have under way: others wait, so that offers alone can't take all the room.
    fn bytes_at_once(&self) -> u64;
}

/// Which chunks an endpoint accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Bytes of chunks that each peer may have in memory, both under way and not yet taken; 0 for no chunks.
    pub memory_bytes: u64,
}

impl ChunkLimits {
    /// The default of clients: 64 MiB, from a server that the client chose.
    pub const CLIENT: ChunkLimits = ChunkLimits { memory_bytes: 64 << 20 };

    /// The default of servers: none, because there are many clients and the server chose none of them.
    pub const SERVER: ChunkLimits = ChunkLimits { memory_bytes: 0 };
}

/// Partial chunks in memory of ended connections, by client id.
#[derive(Debug, Default)]
pub(super) struct PartialChunks(VecDeque<(u64, Assembly)>);

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

/// The incoming chunks of one endpoint, and events of chunks in either direction.
pub(super) struct IncomingChunks {
    limits: ChunkLimits,
    store: Option<Box<dyn ChunkStore>>,
    pub(super) partial: PartialChunks,
    events: Vec<(PeerHandle, ChunkEvent)>,
}

/// One peer's chunks here.
#[derive(Debug, Default)]
pub(super) struct PeerChunkQuota {
    /// In the order of their ids, which is the application's order.
    waiting: VecDeque<Offer>,
    /// Chunks under way, by id and size.
    open: Vec<(u16, u64)>,
    /// Bytes in memory that the application has not taken.
    unread: u64,
    /// Events that the application has not taken.
    untaken: usize,
    /// The peer isn't admitted yet, so its offers wait.
    pub(super) is_held: bool,
}

impl IncomingChunks {
    pub(super) fn new(limits: ChunkLimits) -> Self {
        IncomingChunks { limits, store: None, partial: PartialChunks::default(), events: Vec::new() }
    }

    pub(super) fn set_store(&mut self, store: Box<dyn ChunkStore>) {
        self.store = Some(store);
    }

    /// Takes a connection's chunk events, and finds places for its offers.
    pub(super) fn poll(
        &mut self,
        peer: PeerHandle,
        client_id: u64,
        connection: &mut Connection,
        quota: &mut PeerChunkQuota,
    ) {
        while let Some(event) = connection.chunks_mut().poll_event() {
            match &event {
                ChunkEvent::Offered(offer) => {
                    // It is offered again if the store's slices turned out to be of other content.
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
            self.events.push((peer, event));
        }
        let chunks = connection.chunks_mut();
        while let Some(offer) = quota.waiting.front().filter(|offer| chunks.is_in_line(offer.id)) {
            if quota.is_held || quota.untaken >= MAX_UNTAKEN {
                return;
            }
            match self.place(client_id, offer, quota) {
                Ok(None) => return,
                Ok(Some(assembly)) => {
                    quota.open.push((offer.id, offer.size));
                    chunks.accept(offer.id, assembly);
                }
                Err(rejection) => {
                    chunks.reject(offer.id, rejection);
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
            // A chunk that is too large is refused at once.
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

    /// Ends the chunks of a connection that is over; the peer's partial chunks are kept for its return.
    pub(super) fn finish(&mut self, peer: PeerHandle, client_id: u64, connection: &mut Connection) {
        for assembly in connection.chunks_mut().finish() {
            // A store keeps partial chunks itself.
            if self.store.is_none() {
                self.partial.keep(client_id, assembly);
            }
        }
        let events = core::iter::from_fn(|| connection.chunks_mut().poll_event());
        let heard = events.filter(|event| !matches!(event, ChunkEvent::Offered(_)));
        self.events.extend(heard.map(|event| (peer, event)));
    }

    /// Drops a peer's incoming chunks, which the application must not see. The outcomes of outgoing chunks stay,
    /// because their sender waits for them.
    pub(super) fn drop_peer(&mut self, peer: PeerHandle) {
        self.events.retain(|(of, event)| *of != peer || is_of_outgoing(event));
    }

    /// Takes the outcomes of outgoing chunks; events of incoming ones stay.
    pub(super) fn take_sent_events(&mut self, out: &mut Vec<(PeerHandle, ChunkEvent)>) {
        out.extend(self.events.extract_if(.., |(_, event)| is_of_outgoing(event)));
    }

    /// Whether there are events that the application hasn't taken.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether there are events of this peer that the application hasn't taken.
    pub(super) fn has_events_of(&self, peer: PeerHandle) -> bool {
        self.events.iter().any(|(of, _)| *of == peer)
    }

    /// Takes the events of peers that the application knows.
    pub(super) fn take_events(
        &mut self,
        out: &mut Vec<(PeerHandle, ChunkEvent)>,
        is_announced: impl Fn(PeerHandle) -> bool,
    ) {
        out.extend(self.events.extract_if(.., |(peer, _)| is_announced(*peer)));
    }
}

/// Whether it is the outcome of an outgoing chunk.
fn is_of_outgoing(event: &ChunkEvent) -> bool {
    matches!(event, ChunkEvent::Sent { .. } | ChunkEvent::NotSent { .. })
}

impl PeerChunkQuota {
    /// For a peer whose offers wait if `is_held`.
    pub(super) fn new(is_held: bool) -> Self {
        PeerChunkQuota { is_held, ..PeerChunkQuota::default() }
    }

    /// The application takes all that was received.
    pub(super) fn read(&mut self) {
        (self.unread, self.untaken) = (0, 0);
    }
}
