//! Chunks for Python: sending them, their progress, and received ones.
//!
//! Promises: a content is hashed and held once, however many clients it goes to; progress can be read without
//! waiting for the endpoint, which notes it once a tick; nothing here keeps an endpoint alive.

mod content;
mod progress;
mod received;
mod settings;
mod transfer;

pub(crate) use content::Chunk;
pub(crate) use progress::IncomingChunk;
pub(crate) use received::ReceivedChunk;
pub(super) use settings::Arrivals;
pub(crate) use settings::Transfers;
pub(crate) use transfer::Transfer;

use crate::python::prelude::*;

use super::errors::chunk_error;
use crate::endpoint::{SendChunkError, never_queued};
use crate::transport::chunks::{ChunkError, Offer};

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
        data: &Bound<'_, PyAny>,
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
        let number = session.change().send_chunk(now, peer, chunk.source(), chunk.hash, label, burst);
        let (number, status) = match number {
            Ok(number) => {
                if ask_first {
                    session.change().ask_first(peer, number);
                }
                (number, transfers.add(session.host(), now, peer, number))
            }
            // A player's doing is no reason to end the game.
            Err(error @ (SendChunkError::NotConnected | SendChunkError::Chunk(ChunkError::Full)))
                if !self.strict =>
            {
                let why = match error {
                    SendChunkError::NotConnected => self.kind.absent_text.to_owned(),
                    SendChunkError::Chunk(error) => error.to_string(),
                };
                (NEVER_QUEUED, never_queued(chunk.size, why))
            }
            Err(SendChunkError::NotConnected) => return Err((self.kind.missing)()),
            Err(SendChunkError::Chunk(error)) => return Err(chunk_error(label, &error)),
        };
        drop(state);
        let transfer = Transfer::new(peer, client, number, chunk, label, status, Arc::downgrade(&self.state));
        Ok(transfer)
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
        let chunks = state.host().incoming_chunks(now, peer);
        drop(state);
        let make = |(offer, progress)| {
            let client = client.map(|client| client.clone_ref(py));
            IncomingChunk::new(peer, client, offer, progress, Arc::downgrade(&self.state))
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

    /// Whether a peer's chunk is in transfer: ids are reused after a while.
    fn is_incoming(&self, peer: PeerHandle, offer: &Offer) -> bool {
        let Some(now) = self.carrier.driver().map(Driver::now) else { return false };
        self.host().incoming_chunks(now, peer).iter().any(|(open, _)| open == offer)
    }
}

/// Runs work on the endpoint of a chunk. False if it is gone.
fn act(endpoint: &Weak<Shared<State>>, work: impl FnOnce(&mut State) -> bool) -> PyResult<bool> {
    endpoint.upgrade().map_or(Ok(false), |shared| Ok(work(&mut *shared.lock()?)))
}
