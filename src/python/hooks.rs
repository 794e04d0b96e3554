//! Hooks: the game's own decisions, asked once a tick, in columns.
//!
//! Promises: no lock is held while a hook runs; what a hook gets wrong costs the tick's packets nothing: they go
//! out in the order they have without it, and the exception reaches whoever flushes.

use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::columns::columns_class;
use super::errors::value_error;
use super::events::ClientHandle;
use crate::endpoint;
use crate::time::Instant;
use crate::transport;

columns_class! {
    /// Messages that wait and may go in any order, as columns: what a priority hook is given.
    Candidates of transport::Candidates {
        /// The client slot it is for; 0 on a client.
        slot: U32,
        channel: U8,
        /// Index into ``protocol.messages``; 0 for payloads.
        message_type: U16,
        /// Seconds since it was sent.
        age: F32,
        /// Bytes of its body.
        size: U32,
        key: U32,
        /// How often this value went out before.
        resends: U32,
        tag: U32,
    }
}

/// What a priority hook is asked of.
pub(super) trait Scored {
    fn candidates(&self, now: Instant, candidates: &mut transport::Candidates);
    fn prioritize(
        &mut self,
        candidates: &transport::Candidates,
        scores: &[f32],
    ) -> Result<(), transport::ScoreError>;
}

impl Scored for endpoint::Server {
    fn candidates(&self, now: Instant, candidates: &mut transport::Candidates) {
        self.candidates(now, candidates);
    }

    fn prioritize(
        &mut self,
        candidates: &transport::Candidates,
        scores: &[f32],
    ) -> Result<(), transport::ScoreError> {
        self.prioritize(candidates, scores)
    }
}

impl Scored for endpoint::Client {
    fn candidates(&self, now: Instant, candidates: &mut transport::Candidates) {
        self.candidates(now, candidates);
    }

    fn prioritize(
        &mut self,
        candidates: &transport::Candidates,
        scores: &[f32],
    ) -> Result<(), transport::ScoreError> {
        self.prioritize(candidates, scores)
    }
}

/// Knows whether its core could have changed since some moment.
#[derive(Debug)]
pub(super) struct Versioned<T> {
    core: T,
    version: u64,
}

impl<T> Versioned<T> {
    pub(super) fn new(core: T) -> Self {
        Versioned { core, version: 0 }
    }
}

impl<T> core::ops::Deref for Versioned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.core
    }
}

impl<T> core::ops::DerefMut for Versioned<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.version += 1;
        &mut self.core
    }
}

/// What waits at one moment, and from whom scores for it are awaited.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    /// Kept for their memory.
    candidates: Arc<transport::Candidates>,
    running: bool,
}

/// What a hook is to be asked.
pub(super) struct Question {
    candidates: Arc<transport::Candidates>,
    version: u64,
}

/// What it answered.
pub(super) struct Answer {
    question: Question,
    scores: Vec<f32>,
}

impl Priorities {
    /// What to ask the hook now; None when nothing waits. [`Priorities::asked`] must follow.
    pub(super) fn question<T: Scored>(
        &mut self,
        now: Instant,
        core: &Versioned<T>,
    ) -> PyResult<Option<Question>> {
        if self.running {
            return Err(PyRuntimeError::new_err("flush() was called while the priority hook runs"));
        }
        // Columns that the game kept are its own from then on.
        let mut candidates = Arc::try_unwrap(core::mem::take(&mut self.candidates)).unwrap_or_default();
        core.candidates(now, &mut candidates);
        self.running = !candidates.is_empty();
        self.candidates = Arc::new(candidates);
        let (candidates, version) = (self.candidates.clone(), core.version);
        Ok(self.running.then_some(Question { candidates, version }))
    }

    /// The hook is done.
    pub(super) fn asked(&mut self) {
        self.running = false;
    }
}

impl Question {
    /// Asks the hook; None when it leaves the order as it is.
    pub(super) fn ask(self, hook: &Bound<'_, PyAny>) -> PyResult<Option<Answer>> {
        let py = hook.py();
        let given = hook.call1((Candidates(self.candidates.clone()),))?;
        if given.is_none() {
            return Ok(None);
        }
        let wrong = |what: String| {
            PyTypeError::new_err(format!(
                "the priority hook must return None or a buffer of float32 (format 'f'), a score for each \
                 candidate, not {what}"
            ))
        };
        let Ok(untyped) = pyo3::buffer::PyUntypedBuffer::get(&given) else {
            let class = given.get_type().name()?;
            return Err(wrong(class.to_string()));
        };
        let (format, dimensions) = (untyped.format().to_string_lossy().into_owned(), untyped.dimensions());
        let Ok(scores) = PyBuffer::<f32>::get(&given) else {
            return Err(wrong(format!("one of format {format:?}")));
        };
        if dimensions != 1 {
            return Err(PyValueError::new_err(format!(
                "the priority hook must return scores of 1 dimension, not {dimensions}"
            )));
        }
        Ok(Some(Answer { scores: scores.to_vec(py)?, question: self }))
    }
}

impl Answer {
    /// Puts what waits into the order of its scores.
    pub(super) fn apply<T: Scored>(self, core: &mut Versioned<T>) -> PyResult<()> {
        let Answer { question: Question { candidates, version }, scores } = self;
        if core.version != version {
            return Err(PyRuntimeError::new_err(
                "the priority hook's scores are for what waited before: something was sent or received while it ran",
            ));
        }
        core.prioritize(&candidates, &scores)
            .map_err(|error| value_error(format!("the priority hook: {error}")))
    }
}

/// Asks an admission hook about the newcomers of a tick; returns those it refuses, which are all of them when it
/// gives no proper answer.
pub(super) fn refused_by(
    hook: &Bound<'_, PyAny>,
    newcomers: &[Py<ClientHandle>],
) -> (Vec<endpoint::ClientHandle>, PyResult<()>) {
    match ask_admission(hook, newcomers) {
        Ok(refused) => (refused, Ok(())),
        Err(error) => (newcomers.iter().map(|newcomer| newcomer.get().core).collect(), Err(error)),
    }
}

fn ask_admission(
    hook: &Bound<'_, PyAny>,
    newcomers: &[Py<ClientHandle>],
) -> PyResult<Vec<endpoint::ClientHandle>> {
    let py = hook.py();
    let asked: Vec<_> = newcomers.iter().map(|newcomer| newcomer.clone_ref(py)).collect();
    let answer = hook.call1((asked,))?;
    let mut refused = Vec::new();
    if answer.is_none() {
        return Ok(refused);
    }
    let wrong = |what: &Bound<'_, PyAny>| {
        let class = what.get_type().name().map_or_else(|_| "it".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "the admission hook must return None or the clients it refuses, by handle or id, not {class}"
        ))
    };
    for item in answer.try_iter().map_err(|_| wrong(&answer))? {
        let item = item?;
        let is_meant = |newcomer: &ClientHandle| -> PyResult<bool> {
            match item.cast::<ClientHandle>() {
                Ok(handle) => Ok(newcomer.is(handle.get())),
                Err(_) => Ok(item.extract::<u64>().map_err(|_| wrong(&item))? == newcomer.id),
            }
        };
        for newcomer in newcomers {
            if is_meant(newcomer.get())? {
                refused.push(newcomer.get().core);
            }
        }
    }
    Ok(refused)
}
