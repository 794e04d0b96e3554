//! Chunks being sent, and their state.

use std::collections::VecDeque;

use crate::python::prelude::*;

use super::progress::{fraction, time_left};
use super::{Chunk, act};
use crate::python::shared;
use crate::transport::chunks::{ChunkEvent, ChunkFailure, ContentHash, MAX_OPEN, Progress};

/// The state of a transfer, written by its endpoint and readable without it.
#[derive(Debug)]
pub(super) struct Status {
    progress: Progress,
    /// The result once it is over, with the reason of a failure.
    end: Option<Result<(), String>>,
}

type EndpointState = shared::Shared<State>;
type Shared = Arc<Mutex<Status>>;

/// The transfers of an endpoint.
#[derive(Debug, Default)]
pub(in crate::python) struct Transfers {
    /// Open transfers: those of each client in the order of queueing.
    open: HashMap<PeerHandle, VecDeque<(u64, Shared)>>,
    /// Whether one ended since the game last received.
    news: bool,
}

impl Transfers {
    /// A chunk was queued.
    pub(super) fn add(&mut self, host: &Host, now: Instant, client: PeerHandle, number: u64) -> Shared {
        // It was queued just now.
        let progress = host.chunk_progress(now, client, number).unwrap_or(nothing(0));
        let status = Arc::new(Mutex::new(Status { progress, end: None }));
        self.open.entry(client).or_default().push_back((number, status.clone()));
        status
    }

    /// A transfer was paused or resumed: the next tick would note it too.
    pub(super) fn paused(&self, client: PeerHandle, number: u64, paused: bool) {
        let found = self.open.get(&client).and_then(|all| all.iter().find(|(other, _)| *other == number));
        if let Some((_, status)) = found {
            lock(status).progress.paused = paused;
        }
    }

    /// Whether there is nothing to note.
    pub(in crate::python) fn are_over(&self) -> bool {
        self.open.is_empty()
    }

    /// Notes ended transfers, and the progress of the others.
    pub(in crate::python) fn note(&mut self, host: &mut Host, now: Instant) {
        let mut events = Vec::new();
        host.take_sent_chunk_events(&mut events);
        self.tell(&events);
        self.news |= !events.is_empty();
        for (client, transfers) in &self.open {
            // Those after them are waiting.
            for (number, status) in transfers.iter().take(MAX_OPEN.into()) {
                if let Some(progress) = host.chunk_progress(now, *client, *number) {
                    lock(status).progress = progress;
                }
            }
        }
    }

    /// Whether one ended that the game has not seen yet: until [`Transfers::apply_events`].
    pub(in crate::python) fn has_news(&self) -> bool {
        self.news
    }

    /// The game receives these events, and may look now.
    pub(in crate::python) fn apply_events(&mut self, events: &[(PeerHandle, ChunkEvent)]) {
        self.tell(events);
        self.news = false;
    }

    /// Notes the results of transfers that ended with these events.
    fn tell(&mut self, events: &[(PeerHandle, ChunkEvent)]) {
        events.iter().for_each(|(client, event)| self.end(*client, event));
    }

    /// A transfer was cancelled: its endpoint notes it later too.
    pub(super) fn cancelled(&mut self, client: PeerHandle, number: u64) {
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

fn nothing(size: u64) -> Progress {
    Progress { size, bytes: 0, slices: 1, slices_done: 0, rate: 0.0, paused: false, paused_by_peer: false }
}

/// The state of a transfer that failed before it began, for this reason.
pub(super) fn never_queued(size: u64, why: String) -> Shared {
    Arc::new(Mutex::new(Status { progress: nothing(size), end: Some(Err(why)) }))
}

impl Status {
    fn finish(&mut self, end: Result<(), String>) {
        (self.progress.paused, self.progress.paused_by_peer) = (false, false);
        if end.is_ok() {
            self.progress.bytes = self.progress.size;
            self.progress.slices_done = self.progress.slices;
        }
        self.end = Some(end);
    }
}

#[pyclass(frozen, module = "tickwire.transfer")]
pub(crate) struct Transfer {
    peer: PeerHandle,
    client: Option<Py<ClientHandle>>,
    number: u64,
    label: String,
    hash: ContentHash,
    size: u64,
    status: Shared,
    endpoint: Weak<EndpointState>,
}

impl Transfer {
    pub(super) fn new(
        peer: PeerHandle,
        client: Option<Py<ClientHandle>>,
        number: u64,
        chunk: &Chunk,
        label: &str,
        status: Shared,
        endpoint: Weak<EndpointState>,
    ) -> Self {
        let Chunk { hash, size, .. } = *chunk;
        Transfer { peer, client, number, label: label.to_owned(), hash, size, status, endpoint }
    }

    fn progress(&self) -> Progress {
        lock(&self.status).progress
    }

    fn set_paused(&self, paused: bool) -> PyResult<bool> {
        act(&self.endpoint, |state| {
            let is_open = state.change().pause_chunk(self.peer, self.number, paused);
            if is_open {
                state.transfers.paused(self.peer, self.number, paused);
            }
            is_open
        })
    }
}

#[pymethods]
impl Transfer {
    properties! {
        client: Option<Py<ClientHandle>> = self.client.as_ref().map(|client| client.clone_ref(py));
        label: &str = &self.label;
        size: u64 = self.size;
        hash: Bound<'py, PyBytes> = PyBytes::new(py, &self.hash);
        bytes_done: u64 = self.progress().bytes;
        slices: u32 = self.progress().slices;
        slices_done: u32 = self.progress().slices_done;
        fraction: f64 = fraction(&self.progress());
        rate: f64 = self.progress().rate;
        done: bool = matches!(lock(&self.status).end, Some(Ok(())));
        error: Option<String> = lock(&self.status).end.clone()?.err();
        over: bool = lock(&self.status).end.is_some();
        paused: bool = self.progress().paused;
        paused_by_peer: bool = self.progress().paused_by_peer;
    }

    traverses!(self.client);

    #[getter]
    fn time_left(&self) -> Option<f64> {
        let status = lock(&self.status);
        match status.end {
            None => time_left(&status.progress),
            Some(Ok(())) => Some(0.0),
            Some(Err(_)) => None,
        }
    }

    fn pause(&self) -> PyResult<bool> {
        self.set_paused(true)
    }

    fn resume(&self) -> PyResult<bool> {
        self.set_paused(false)
    }

    fn cancel(&self) -> PyResult<bool> {
        act(&self.endpoint, |state| {
            let is_cancelled = state.change().cancel_chunk(self.peer, self.number);
            if is_cancelled {
                state.transfers.cancelled(self.peer, self.number);
            }
            is_cancelled
        })
    }

    fn __repr__(&self) -> String {
        let status = lock(&self.status);
        let how = match &status.end {
            None => {
                let paused = status.progress.paused || status.progress.paused_by_peer;
                let paused = if paused { ", paused" } else { "" };
                format!("{} of {} bytes{paused}", status.progress.bytes, self.size)
            }
            Some(Ok(())) => format!("done, {} bytes", self.size),
            Some(Err(error)) => format!("failed: {error}"),
        };
        format!("<Transfer {:?}: {how}>", self.label)
    }
}
