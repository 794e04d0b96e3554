//! Hooks: the game's own decisions, asked once a tick with columns.
//!
//! Promises: no lock is held while a hook runs; its time is counted, and slow hooks are logged. A hook's mistake
//! reaches the caller as an exception that says so.

use crate::python::prelude::*;

use super::buffers::column;
use super::columns::{Keeper, Layout, view};
use crate::endpoint::{self, Goodbye};
use crate::transport::{Attribute, Column};

// --- priority --------------------------------------------------------------------------------------------

/// When an endpoint asked its hook, and in which state.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedAt {
    pub(super) now: Instant,
    /// Of the core.
    pub(super) version: u64,
}

const ATTRIBUTES: usize = Attribute::Tag as usize + 1;

#[pyclass(frozen, module = "tickwire.columns")]
pub(crate) struct Candidates {
    count: usize,
    asked_at: AskedAt,
    source: Weak<Shared<State>>,
    /// The columns that were read, by attribute.
    columns: [OnceLock<Arc<Column>>; ATTRIBUTES],
}

impl Keeper for Column {}

impl Candidates {
    pub(super) fn new(count: usize, asked_at: AskedAt, source: Weak<Shared<State>>) -> Self {
        Candidates { count, asked_at, source, columns: Default::default() }
    }

    fn column<'py>(&self, py: Python<'py>, attribute: Attribute) -> PyResult<Bound<'py, PyMemoryView>> {
        let column = &self.columns[attribute as usize];
        if column.get().is_none() {
            let source = self.source.upgrade();
            let made = source.and_then(|source| {
                let state = source.lock().ok()?;
                let is_same = state.carrier.session.version() == self.asked_at.version;
                is_same.then(|| state.host().describe_candidates(self.asked_at.now, attribute))
            });
            let made = made.ok_or_else(|| {
                PyRuntimeError::new_err(
                    "the candidates are gone: read their columns while the hook runs, before anything is sent or \
                     received",
                )
            })?;
            // Another thread may have been faster; its column is the same.
            let _ = column.set(Arc::new(made));
        }
        let column: Arc<Column> = column.get().cloned().unwrap_or_else(|| Arc::new(Column::U8(Vec::new())));
        let layout = match &*column {
            Column::U8(entries) => Layout::of(entries),
            Column::U16(entries) => Layout::of(entries),
            Column::U32(entries) => Layout::of(entries),
            Column::F32(entries) => Layout::of(entries),
        };
        view(py, column, layout)
    }
}

#[pymethods]
impl Candidates {
    properties! {
        slot: PyResult<Bound<'py, PyMemoryView>> = self.column(py, Attribute::Slot);
        channel: PyResult<Bound<'py, PyMemoryView>> = self.column(py, Attribute::Channel);
        message_type: PyResult<Bound<'py, PyMemoryView>> = self.column(py, Attribute::MessageType);
        age: PyResult<Bound<'py, PyMemoryView>> = self.column(py, Attribute::Age);
        size: PyResult<Bound<'py, PyMemoryView>> = self.column(py, Attribute::Size);
        key: PyResult<Bound<'py, PyMemoryView>> = self.column(py, Attribute::Key);
        resends: PyResult<Bound<'py, PyMemoryView>> = self.column(py, Attribute::Resends);
        tag: PyResult<Bound<'py, PyMemoryView>> = self.column(py, Attribute::Tag);
        __len__: usize = self.count;
        __repr__: String = format!("<Candidates of {}>", self.count);
    }
}

/// Asks a priority hook for scores; None when it leaves the order as it is.
pub(super) fn ask_priority(hook: &Object<'_>, candidates: Candidates) -> PyResult<Option<Vec<f32>>> {
    let given = exit::call(hook, (candidates,), None)?;
    if given.is_none() {
        return Ok(None);
    }
    let what = "None or a buffer of float32 (format 'f'), a score for each candidate";
    column("the priority hook's answer", &given, what).map(Some)
}

// --- admission -------------------------------------------------------------------------------------------

/// Asks an admission hook about the newcomers of a tick; returns the refused ones with their texts. A hook without a
/// valid answer refuses all.
pub(super) fn refused_by(
    hook: &Object<'_>,
    newcomers: &[Py<ClientHandle>],
    protocol: &Protocol,
) -> (Vec<(endpoint::PeerHandle, Goodbye)>, PyResult<()>) {
    match ask_admission(hook, newcomers, protocol) {
        Ok(refused) => (refused, Ok(())),
        Err(error) => {
            let all = newcomers.iter().map(|newcomer| (newcomer.get().core, Goodbye::default()));
            (all.collect(), Err(error))
        }
    }
}

fn ask_admission(
    hook: &Object<'_>,
    newcomers: &[Py<ClientHandle>],
    protocol: &Protocol,
) -> PyResult<Vec<(endpoint::PeerHandle, Goodbye)>> {
    let py = hook.py();
    let asked: Vec<_> = newcomers.iter().map(|newcomer| newcomer.clone_ref(py)).collect();
    let answer = exit::call(hook, (asked,), None)?;
    let mut refused = Vec::new();
    if answer.is_none() {
        return Ok(refused);
    }
    let wrong = |what: &Object<'_>| {
        let class = class_name(what);
        PyTypeError::new_err(format!(
            "the admission hook must return None or the clients to refuse, as handles or ids, not {class}"
        ))
    };
    let reasons = answer.cast::<PyMapping>().ok();
    let goodbye_to = |item: &Object<'_>| -> PyResult<Goodbye> {
        let Some(reasons) = reasons else { return Ok(Goodbye::default()) };
        let reason: Option<Bound<'_, PyString>> = reasons.get_item(item)?.extract().map_err(|_| {
            PyTypeError::new_err(
                "the admission hook's mapping must have a text or None for each refused client",
            )
        })?;
        goodbye(protocol, 0.0, reason.as_ref().map(Bound::as_any))
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
                refused.push((newcomer.get().core, goodbye_to(&item)?));
            }
        }
    }
    Ok(refused)
}
