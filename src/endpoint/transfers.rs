//! The chunks that an endpoint sends, as seen without it.
//!
//! Promises: a status is written once a tick and whenever a transfer ends; a transfer ends once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Host, PeerHandle};
use crate::time::Instant;
use crate::transport::chunks::{ChunkEvent, ChunkFailure, MAX_OPEN, Progress};

/// Locks a status, which is consistent whatever panicked.
fn lock(status: &SharedStatus) -> MutexGuard<'_, TransferStatus> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of a transfer, written by its endpoint and readable without it.
#[derive(Debug)]
pub struct TransferStatus {
    /// How much of it is done.
    pub progress: Progress,
    /// The result once it is over, with the reason of a failure.
    pub end: Option<Result<(), String>>,
}

/// A transfer's status, shared by the endpoint and the application.
pub type SharedStatus = Arc<Mutex<TransferStatus>>;

/// The transfers of an endpoint.
#[derive(Debug, Default)]
pub struct Transfers {
    /// Open transfers: those of each client in the order of queueing.
    open: BTreeMap<PeerHandle, VecDeque<(u64, SharedStatus)>>,
    /// Whether one ended since the application last received.
    news: bool,
}

impl Transfers {
    /// Adds a chunk that was queued just now.
    pub fn add(&mut self, host: &Host, now: Instant, client: PeerHandle, number: u64) -> SharedStatus {
        let progress = progress_of(host, now, client, number).unwrap_or(nothing(0));
        let status = Arc::new(Mutex::new(TransferStatus { progress, end: None }));
        self.open.entry(client).or_default().push_back((number, status.clone()));
        status
    }

    /// Notes that a transfer was paused or resumed. The next tick would note it too.
    pub fn note_paused(&self, client: PeerHandle, number: u64, paused: bool) {
        let found = self.open.get(&client).and_then(|all| all.iter().find(|(other, _)| *other == number));
        if let Some((_, status)) = found {
            lock(status).progress.paused = paused;
        }
    }

    /// Whether there is nothing to note.
    pub fn are_over(&self) -> bool {
        self.open.is_empty()
    }

    /// Notes ended transfers, and the progress of the others.
    pub fn note(&mut self, host: &mut Host, now: Instant) {
        let mut events = Vec::new();
        host.take_sent_chunk_events(&mut events);
        self.end_all(&events);
        self.news |= !events.is_empty();
        for (client, transfers) in &self.open {
            // Those after them are waiting.
            for (number, status) in transfers.iter().take(MAX_OPEN.into()) {
                if let Some(progress) = progress_of(host, now, *client, *number) {
                    lock(status).progress = progress;
                }
            }
        }
    }

    /// Whether one ended that the application has not seen yet: until [`Transfers::apply_events`].
    pub fn has_news(&self) -> bool {
        self.news
    }

    /// The application receives these events, and may look now.
    pub fn apply_events(&mut self, events: &[(PeerHandle, ChunkEvent)]) {
        self.end_all(events);
        self.news = false;
    }

    /// Notes the results of transfers that ended with these events.
    fn end_all(&mut self, events: &[(PeerHandle, ChunkEvent)]) {
        events.iter().for_each(|(client, event)| self.end(*client, event));
    }

    /// Notes that a transfer was cancelled. Its endpoint notes it later too.
    pub fn note_cancelled(&mut self, client: PeerHandle, number: u64) {
        self.end(client, &ChunkEvent::NotSent { number, failure: ChunkFailure::Cancelled });
    }

    fn end(&mut self, client: PeerHandle, event: &ChunkEvent) {
        let (number, end) = match event {
            ChunkEvent::Sent { number } => (*number, Ok(())),
            ChunkEvent::NotSent { number, failure } => (*number, Err(failure.to_string())),
            _ => return,
        };
        let Some(transfers) = self.open.get_mut(&client) else { return };
        let at = transfers.iter().position(|(other, _)| *other == number);
        if let Some((_, status)) = at.and_then(|at| transfers.remove(at)) {
            lock(&status).finish(end);
        }
        if transfers.is_empty() {
            self.open.remove(&client);
        }
    }
}

/// The progress of an outgoing chunk; None if it is over.
fn progress_of(host: &Host, now: Instant, peer: PeerHandle, number: u64) -> Option<Progress> {
    host.connection(peer)?.chunks().progress(now, number)
}

fn nothing(size: u64) -> Progress {
    Progress { size, bytes: 0, slices: 1, slices_done: 0, rate: 0.0, paused: false, paused_by_peer: false }
}

/// The state of a transfer that failed before it began, for this reason.
pub fn never_queued(size: u64, why: String) -> SharedStatus {
    Arc::new(Mutex::new(TransferStatus { progress: nothing(size), end: Some(Err(why)) }))
}

impl TransferStatus {
    fn finish(&mut self, end: Result<(), String>) {
        (self.progress.paused, self.progress.paused_by_peer) = (false, false);
        if end.is_ok() {
            self.progress.bytes = self.progress.size;
            self.progress.slices_done = self.progress.slices;
        }
        self.end = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PeerHandle = PeerHandle { slot: 0, generation: 0 };

    fn queued(transfers: &mut Transfers, number: u64) -> SharedStatus {
        let status = Arc::new(Mutex::new(TransferStatus { progress: nothing(7), end: None }));
        transfers.open.entry(PEER).or_default().push_back((number, status.clone()));
        status
    }

    #[test]
    fn a_transfer_ends_once() {
        let mut transfers = Transfers::default();
        let (first, second) = (queued(&mut transfers, 0), queued(&mut transfers, 1));
        transfers.note_paused(PEER, 0, true);
        assert!(lock(&first).progress.paused);
        transfers.apply_events(&[(PEER, ChunkEvent::Sent { number: 0 })]);
        let Progress { bytes, paused, .. } = lock(&first).progress;
        assert_eq!((bytes, paused), (7, false));
        transfers.note_cancelled(PEER, 0);
        assert_eq!(lock(&first).end, Some(Ok(())));
        assert!(!transfers.are_over());
        transfers.note_cancelled(PEER, 1);
        assert_eq!(lock(&second).end, Some(Err(ChunkFailure::Cancelled.to_string())));
        assert!(transfers.are_over());
    }

    #[test]
    fn what_was_never_queued_is_over() {
        let status = never_queued(9, "the client is gone".into());
        assert_eq!(lock(&status).end, Some(Err("the client is gone".into())));
    }
}
