//! Large blocks of data for Python: what is sent, how far it is, and what came in.
//!
//! Promises: one content is hashed and held once, however many clients it goes to; how far a transfer is can be read
//! without waiting for the endpoint, which writes it down once a tick; nothing here keeps an endpoint alive.

mod content;
mod progress;
mod received;
mod settings;
mod transfer;

pub(crate) use content::Chunk;
pub(crate) use progress::IncomingChunk;
pub(crate) use received::ReceivedChunk;
pub(super) use settings::Arrivals;
pub(crate) use transfer::Transfer;
pub(super) use transfer::Transfers;

use std::sync::Arc;

use pyo3::prelude::*;

use super::endpoint::Endpoint;
use super::errors::send_chunk_error;
use super::events::ClientHandle;
use super::sans_io::Core;
use super::shared::Shared;
use super::state::State;
use crate::endpoint::{self, Client, SendChunkError, Server};
use crate::time::Instant;
use crate::transport::chunks::{ChunkEvent, ContentHash, Offer, Progress, Source};

/// A server or a client, as far as its chunks go; on a client the handle is the default one.
pub(super) trait ChunkCore {
    fn send_chunk(
        &mut self,
        now: Instant,
        client: endpoint::ClientHandle,
        source: Box<dyn Source>,
        hash: ContentHash,
        label: &str,
        burst: bool,
    ) -> Result<u64, SendChunkError>;
    fn cancel_chunk(&mut self, client: endpoint::ClientHandle, number: u64) -> bool;
    fn reject_chunk(&mut self, client: endpoint::ClientHandle, id: u16) -> bool;
    fn chunk_progress(&self, now: Instant, client: endpoint::ClientHandle, number: u64) -> Option<Progress>;
    fn incoming_chunks(&self, now: Instant, client: endpoint::ClientHandle) -> Vec<(Offer, Progress)>;
    fn take_chunk_fates(&mut self, out: &mut Vec<(endpoint::ClientHandle, ChunkEvent)>);
    fn take_chunk_events(&mut self, out: &mut Vec<(endpoint::ClientHandle, ChunkEvent)>);
}

/// The core's methods under the same names; `$handle` is what they take to name the client.
macro_rules! chunk_core {
    ($Core:ty, $client:ident, [$($handle:ident)?]) => {
        impl ChunkCore for $Core {
            fn send_chunk(
                &mut self,
                now: Instant,
                $client: endpoint::ClientHandle,
                source: Box<dyn Source>,
                hash: ContentHash,
                label: &str,
                burst: bool,
            ) -> Result<u64, SendChunkError> {
                self.send_chunk(now, $($handle,)? source, hash, label, burst)
            }

            fn cancel_chunk(&mut self, $client: endpoint::ClientHandle, number: u64) -> bool {
                self.cancel_chunk($($handle,)? number)
            }

            fn reject_chunk(&mut self, $client: endpoint::ClientHandle, id: u16) -> bool {
                self.reject_chunk($($handle,)? id)
            }

            fn chunk_progress(
                &self,
                now: Instant,
                $client: endpoint::ClientHandle,
                number: u64,
            ) -> Option<Progress> {
                self.chunk_progress(now, $($handle,)? number)
            }

            fn incoming_chunks(
                &self,
                now: Instant,
                $client: endpoint::ClientHandle,
            ) -> Vec<(Offer, Progress)> {
                self.incoming_chunks(now, $($handle)?)
            }

            fn take_chunk_fates(&mut self, out: &mut Vec<(endpoint::ClientHandle, ChunkEvent)>) {
                self.take_chunk_fates(out);
            }

            fn take_chunk_events(&mut self, out: &mut Vec<(endpoint::ClientHandle, ChunkEvent)>) {
                self.take_chunk_events(out);
            }
        }
    };
}

chunk_core!(Server, client, [client]);
chunk_core!(Client, _client, []);

impl<C: Core> Endpoint<C> {
    /// Queues a chunk; `client` names whom it goes to on a server.
    pub(super) fn send_chunk(
        &self,
        client: Option<Py<ClientHandle>>,
        chunk: &Chunk,
        label: &str,
        burst: bool,
    ) -> PyResult<Transfer> {
        let to = client.as_ref().map(|client| client.get().core).unwrap_or_default();
        let mut state = self.state.lock()?;
        let State { core, driver, transfers, .. } = &mut *state;
        let now = driver.as_ref().ok_or_else(super::endpoint::closed::<C>)?.now();
        let number = core.send_chunk(now, to, chunk.source(), chunk.hash, label, burst);
        let number = number.map_err(|error| send_chunk_error(label, &error))?;
        let status = transfers.add(&**core, now, to, number);
        drop(state);
        Ok(Transfer::new(client, number, chunk, label, status, Arc::downgrade(&self.state) as _))
    }

    /// The chunks of a peer that are under way.
    pub(super) fn incoming_chunks(
        &self,
        client: Option<&Py<ClientHandle>>,
        py: Python<'_>,
    ) -> PyResult<Vec<IncomingChunk>> {
        let from = client.map(|client| client.get().core).unwrap_or_default();
        let state = self.state.lock()?;
        // Once closed, no connection is left.
        let Some(now) = state.driver.as_ref().map(|driver| driver.now()) else { return Ok(Vec::new()) };
        let chunks = state.core.incoming_chunks(now, from);
        drop(state);
        let make = |(offer, progress)| {
            let client = client.map(|client| client.clone_ref(py));
            IncomingChunk::new(client, offer, progress, Arc::downgrade(&self.state) as _)
        };
        Ok(chunks.into_iter().map(make).collect())
    }
}

impl<C: Core> State<C> {
    /// Appends what happened to chunks, and tells transfers what became of theirs.
    pub(in crate::python) fn take_chunk_events(
        &mut self,
        out: &mut Vec<(endpoint::ClientHandle, ChunkEvent)>,
    ) {
        let before = out.len();
        self.core.take_chunk_events(out);
        self.transfers.tell(&out[before..]);
        self.transfers.told();
    }

    /// Writes down how far transfers are: after all that changes it.
    pub(in crate::python) fn note_transfers(&mut self) {
        let State { core, driver, transfers, .. } = self;
        if let Some(driver) = driver {
            transfers.note(&mut **core, driver.now());
        }
    }
}

/// Where chunks are cancelled: an endpoint, which raises as all its calls do where it can't be used.
pub(super) trait Canceller: Send + Sync {
    /// Ends a chunk of ours; false when it is over already.
    fn cancel(&self, client: endpoint::ClientHandle, number: u64) -> PyResult<bool>;

    /// Ends a chunk of the peer; false when it is over already.
    fn reject(&self, client: endpoint::ClientHandle, offer: &Offer) -> PyResult<bool>;
}

impl<C: Core> Canceller for Shared<State<C>> {
    fn cancel(&self, client: endpoint::ClientHandle, number: u64) -> PyResult<bool> {
        let mut state = self.lock()?;
        let cancelled = state.core.cancel_chunk(client, number);
        if cancelled {
            state.transfers.cancelled(client, number);
        }
        Ok(cancelled)
    }

    fn reject(&self, client: endpoint::ClientHandle, offer: &Offer) -> PyResult<bool> {
        let mut state = self.lock()?;
        let Some(now) = state.driver.as_ref().map(|driver| driver.now()) else { return Ok(false) };
        // Ids come again after a while.
        let open = state.core.incoming_chunks(now, client);
        Ok(open.iter().any(|(open, _)| open == offer) && state.core.reject_chunk(client, offer.id))
    }
}
