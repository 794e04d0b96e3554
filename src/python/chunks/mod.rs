//! Chunks for Python: sending them, their progress, and received ones.
//!
//! Promises: a content is hashed and held once, however many clients it goes to; progress can be read without
//! waiting for the endpoint, which notes it once a tick; nothing here keeps an endpoint alive.

mod content;
mod transfer;

pub(crate) use content::{Chunk, ReceivedChunk};
pub(crate) use transfer::{IncomingChunk, Transfer};

use crate::python::prelude::*;

use crate::endpoint::never_queued;
use crate::transport::chunks::{ChunkError, Chunks, Offer, Progress};

/// Stands for a transfer that never existed: the core counts from 0.
const NEVER_QUEUED: u64 = u64::MAX;

impl Endpoint {
    /// Queues a chunk: a [`Chunk`], or the data to make one of. `client` is the peer as a server's game knows it.
    ///
    /// # Errors
    /// If the endpoint is closed, or strict and without this peer, raised before the data is read and hashed in vain.
    pub(super) fn send_chunk(
        &self,
        peer: PeerHandle,
        client: Option<Py<ClientHandle>>,
        data: &Object<'_>,
        label: &str,
        burst: bool,
        ask_first: bool,
    ) -> PyResult<Transfer> {
        if !self.with(|core, _| core.is_connected(peer))? && self.strict {
            return Err((self.kind.missing)());
        }
        let chunk = &Chunk::given(data)?;
        let mut state = self.state.lock()?;
        let State { carrier, transfers, .. } = &mut *state;
        let (session, driver) = carrier.parts().ok_or_else(|| self.closed_error())?;
        let now = driver.now();
        let sent = session.change().connection_mut(peer).map(|connection| {
            let number = connection.send_chunk(now, chunk.source(), chunk.hash, label, burst)?;
            if ask_first {
                connection.chunks_mut().ask_first(number);
            }
            Ok(number)
        });
        let never = |why| (NEVER_QUEUED, never_queued(chunk.size, why));
        let (number, status) = match sent {
            Some(Ok(number)) => (number, transfers.add(session.host(), now, peer, number)),
            // A player's doing is no reason to end the game.
            None if !self.strict => never(self.kind.absent_text.to_owned()),
            Some(Err(ChunkError::Full)) if !self.strict => never(ChunkError::Full.to_string()),
            None => return Err((self.kind.missing)()),
            Some(Err(error)) => return Err(chunk_error(label, &error)),
        };
        drop(state);
        let (label, endpoint) = (label.to_owned(), Arc::downgrade(&self.state));
        let Chunk { hash, size, .. } = *chunk;
        Ok(Transfer { peer, client, number, label, hash, size, status, endpoint })
    }

    /// A peer's chunks in transfer.
    pub(super) fn incoming_chunks(
        &self,
        py: Python<'_>,
        peer: PeerHandle,
        client: Option<&Py<ClientHandle>>,
    ) -> PyResult<Vec<IncomingChunk>> {
        let state = self.state.lock()?;
        // A closed endpoint has no connections.
        let Some(now) = state.carrier.driver().map(Driver::now) else { return Ok(Vec::new()) };
        let chunks = state.incoming(now, peer).map(|(offer, progress)| (offer.clone(), progress));
        let chunks: Vec<_> = chunks.collect();
        drop(state);
        let make = |(offer, progress): (Offer, Progress)| {
            let client = client.map(|client| client.clone_ref(py));
            let (paused, endpoint) = (progress.paused.into(), Arc::downgrade(&self.state));
            IncomingChunk { peer, client, offer, progress, paused, endpoint }
        };
        Ok(chunks.into_iter().map(make).collect())
    }
}

impl State {
    /// Notes the progress of transfers; called after everything that changes it.
    pub(in crate::python) fn note_transfers(&mut self) {
        let State { carrier, transfers, .. } = self;
        if transfers.are_over() {
            return;
        }
        let now = carrier.now();
        transfers.note(carrier.session.change(), now);
    }

    /// A peer's chunks in transfer.
    fn incoming(&self, now: Instant, peer: PeerHandle) -> impl Iterator<Item = (&Offer, Progress)> {
        self.host().connection(peer).into_iter().flat_map(move |it| it.chunks().incoming(now))
    }

    /// Changes the chunks of a peer; false if it is not connected.
    fn change_chunks(&mut self, peer: PeerHandle, change: impl FnOnce(&mut Chunks) -> bool) -> bool {
        self.change().connection_mut(peer).is_some_and(|it| change(it.chunks_mut()))
    }

    /// Whether a peer's chunk is in transfer: ids are reused after a while.
    fn is_incoming(&self, peer: PeerHandle, offer: &Offer) -> bool {
        let Some(now) = self.carrier.driver().map(Driver::now) else { return false };
        self.incoming(now, peer).any(|(open, _)| open == offer)
    }
}

/// Runs work on the endpoint of a chunk. False if it is gone.
fn act(endpoint: &Weak<Shared<State>>, work: impl FnOnce(&mut State) -> bool) -> PyResult<bool> {
    endpoint.upgrade().map_or(Ok(false), |shared| Ok(work(&mut *shared.lock()?)))
}
