//! One direction of a simulated link, for any Python objects.

use crate::python::prelude::*;
use pyo3::types::PyByteArray;

use super::to_seconds;
use crate::netsim::{conditions, link};

/// A terabyte: larger items are mistakes.
const MAX_ITEM: usize = 1 << 40;

#[pyclass(frozen, generic, module = "tickwire.testing")]
pub(crate) struct Link {
    core: Mutex<link::Link<Item>>,
    lost: Arc<Lost>,
}

/// Objects that the link no longer holds, until its lock is free: dropping a last reference may run the object's code,
/// which may call the link.
type Lost = Mutex<Vec<Py<PyAny>>>;

/// Each copy in flight has its own reference, as the garbage collector expects.
struct Item {
    /// None once it was taken out.
    object: Option<Py<PyAny>>,
    lost: Arc<Lost>,
}

impl Clone for Item {
    fn clone(&self) -> Self {
        // Copies are made in a call from Python, which is attached already, so this is cheap.
        let object = Python::attach(|py| self.object.as_ref().map(|object| object.clone_ref(py)));
        Item { object, lost: self.lost.clone() }
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        lock(&self.lost).extend(self.object.take());
    }
}

impl Link {
    fn with_core<R>(&self, act: impl FnOnce(&mut link::Link<Item>) -> R) -> R {
        let result = act(&mut lock(&self.core));
        let lost = std::mem::take(&mut *lock(&self.lost));
        drop(lost);
        result
    }
}

fn byte_length(item: &Object<'_>) -> usize {
    let bytes = item.cast::<PyBytes>().map(|bytes| bytes.as_bytes().len());
    bytes.or_else(|_| item.cast::<PyByteArray>().map(|bytes| bytes.len())).unwrap_or(0)
}

#[pymethods]
impl Link {
    #[new]
    fn new(
        conditions: Option<&Bound<'_, Conditions>>,
        #[within(0, u64::MAX)] seed: u64,
        #[within(1, 1 << 24)] capacity: usize,
    ) -> PyResult<Self> {
        let conditions = conditions.map(|conditions| conditions.get().core()).unwrap_or_default();
        let core = link::Link::new(conditions, seed).map_err(value_error)?.with_capacity(capacity);
        Ok(Link { core: Mutex::new(core), lost: Arc::default() })
    }

    fn send(&self, #[instant] now: Instant, item: &Object<'_>, #[within(0, MAX_ITEM)] size: Option<usize>) {
        let size = size.unwrap_or_else(|| byte_length(item));
        let item = Item { object: Some(item.clone().unbind()), lost: self.lost.clone() };
        self.with_core(|core| core.send(now, item, size));
    }

    methods! {
        poll(#[instant] now: Instant) -> PyResult<Option<Py<PyAny>>> =
            Ok(self.with_core(|core| core.poll(now).and_then(|mut item| item.object.take())));
        set_conditions(conditions: &Bound<'_, Conditions>) -> PyResult<()> =
            lock(&self.core).set_conditions(conditions.get().core()).map_err(value_error);
        schedule(#[instant] at: Instant, conditions: &Bound<'_, Conditions>) -> PyResult<()> =
            lock(&self.core).schedule(at, conditions.get().core()).map_err(value_error);
    }

    properties! {
        counters: PyResult<Bound<'py, PyDict>> = counts(py, lock(&self.core).counters().iter());
        next_delivery: Option<f64> = lock(&self.core).next_delivery().map(to_seconds);
        queued_bytes: u64 = lock(&self.core).queued_bytes();
        __len__: usize = lock(&self.core).in_flight();
        __bool__: bool = true;
        __repr__: String = format!("<Link with {} under way>", self.__len__());
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A locked mutex is in use, so its objects are reachable anyway.
        let Ok(core) = self.core.try_lock() else { return Ok(()) };
        core.items().try_for_each(|item| visit.call(&item.object))
    }

    fn __clear__(&self) {
        let Ok(empty) = link::Link::new(conditions::Conditions::perfect(), 0) else { return };
        let items = self.with_core(|core| std::mem::replace(core, empty));
        drop(items);
        // Drops what the link no longer holds.
        self.with_core(|_| ());
    }
}
