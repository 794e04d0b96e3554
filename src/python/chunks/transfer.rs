//! Chunks being sent, and their state.

use crate::python::prelude::*;

use super::act;
use crate::driver::files::hex;
use crate::endpoint::SharedStatus;
use crate::python::shared;
use crate::transport::chunks::{ContentHash, Offer, Progress, Rejection};

type EndpointState = shared::Shared<State>;

#[pyclass(frozen, module = "tickwire.transfer")]
pub(crate) struct Transfer {
    pub(super) peer: PeerHandle,
    pub(super) client: Option<Py<ClientHandle>>,
    pub(super) number: u64,
    pub(super) label: String,
    pub(super) hash: ContentHash,
    pub(super) size: u64,
    pub(super) status: SharedStatus,
    pub(super) endpoint: Weak<EndpointState>,
}

impl Transfer {
    fn progress(&self) -> Progress {
        lock(&self.status).progress
    }

    fn set_paused(&self, paused: bool) -> PyResult<bool> {
        act(&self.endpoint, |state| {
            let is_open = state.change_chunks(self.peer, |it| it.pause(self.number, paused));
            if is_open {
                state.transfers.note_paused(self.peer, self.number, paused);
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
        slices, slices_done: u32 of self.progress();
        fraction: f64 = fraction(&self.progress());
        rate: f64 = self.progress().rate;
        done: bool = matches!(lock(&self.status).end, Some(Ok(())));
        error: Option<String> = lock(&self.status).end.clone()?.err();
        over: bool = lock(&self.status).end.is_some();
        paused, paused_by_peer: bool of self.progress();
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

    methods! {
        pause() -> PyResult<bool> = self.set_paused(true);
        resume() -> PyResult<bool> = self.set_paused(false);
    }

    fn cancel(&self) -> PyResult<bool> {
        act(&self.endpoint, |state| {
            let is_cancelled = state.change_chunks(self.peer, |it| it.cancel(self.number));
            if is_cancelled {
                state.transfers.note_cancelled(self.peer, self.number);
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

/// The transferred share of a chunk, from 0 to 1; an empty chunk is complete when all its slices are.
pub(super) fn fraction(progress: &Progress) -> f64 {
    f64::from(progress.slices_done) / f64::from(progress.slices)
}

/// The seconds that the rest takes at the recent rate.
pub(super) fn time_left(progress: &Progress) -> Option<f64> {
    progress.time_left().map(|left| left.as_secs_f64())
}

/// The first hex digits of a hash, for people.
pub(super) fn short_hash(hash: &ContentHash) -> String {
    hex(&hash[..4])
}

#[pyclass(frozen, module = "tickwire.transfer")]
pub(crate) struct IncomingChunk {
    pub(super) peer: PeerHandle,
    pub(super) client: Option<Py<ClientHandle>>,
    pub(super) offer: Offer,
    pub(super) progress: Progress,
    pub(super) paused: AtomicBool,
    pub(super) endpoint: Weak<Shared<State>>,
}

impl IncomingChunk {
    fn set_paused(&self, paused: bool) -> PyResult<bool> {
        let is_open = act(&self.endpoint, |state| {
            state.is_incoming(self.peer, &self.offer)
                && state.change_chunks(self.peer, |it| it.pause_incoming(self.offer.id, paused))
        })?;
        if is_open {
            self.paused.store(paused, Ordering::Relaxed);
        }
        Ok(is_open)
    }
}

#[pymethods]
impl IncomingChunk {
    properties! {
        client: Option<Py<ClientHandle>> = self.client.as_ref().map(|client| client.clone_ref(py));
        label: &str = &self.offer.label;
        size: u64 = self.offer.size;
        hash: Bound<'py, PyBytes> = PyBytes::new(py, &self.offer.hash);
        bytes_done: u64 = self.progress.bytes;
        slices, slices_done: u32 of self.progress;
        fraction: f64 = fraction(&self.progress);
        rate: f64 = self.progress.rate;
        time_left: Option<f64> = time_left(&self.progress);
        paused: bool = self.paused.load(Ordering::Relaxed);
    }

    traverses!(self.client);

    methods! {
        pause() -> PyResult<bool> = self.set_paused(true);
        resume() -> PyResult<bool> = self.set_paused(false);
    }

    fn cancel(&self) -> PyResult<bool> {
        act(&self.endpoint, |state| {
            state.is_incoming(self.peer, &self.offer)
                && state.change_chunks(self.peer, |it| it.reject(self.offer.id, Rejection::Cancelled))
        })
    }

    fn __repr__(&self) -> String {
        let (done, size) = (self.progress.bytes, self.offer.size);
        format!("<IncomingChunk {:?}: {done} of {size} bytes>", self.offer.label)
    }
}
