//! The game's hooks on its world, called once a flush: which rows each client gets, and how much each row
//! matters.
//!
//! Promises: no lock is held while a hook runs. A hook that raises or returns something unusable changes
//! nothing: its last answer holds, everything is sent, and then the flush raises.

use super::*;

/// Marks that hooks run, also until one of them panics.
struct Asking<'a>(&'a AtomicBool);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Sets rows of a class for a client.
type SetRows = fn(&mut Interests, PeerHandle, usize, Vec<u8>);

impl World {
    /// Whether any class has a hook.
    pub(in crate::python) fn has_hooks(&self) -> bool {
        lock(&self.hooks)
            .iter()
            .any(|hooks| hooks.relevancy.is_some() || hooks.priority.is_some() || hooks.condition.is_some())
    }

    /// Calls all hooks, each by way of `clock`, which gets its name. Returns the first error after all were
    /// called; later errors go to `sys.unraisablehook`.
    pub(in crate::python) fn ask_hooks(
        &self,
        py: Python<'_>,
        clients: &[Py<ClientHandle>],
        clock: &dyn Fn(&'static str, &mut dyn FnMut()),
    ) -> PyResult<()> {
        let hooks: Vec<_> = {
            let hooks = lock(&self.hooks);
            let copy = |hook: &Option<Py<PyAny>>| hook.as_ref().map(|hook| hook.clone_ref(py));
            hooks
                .iter()
                .map(|hooks| [copy(&hooks.relevancy), copy(&hooks.condition), copy(&hooks.priority)])
                .collect()
        };
        if self.asking.swap(true, Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err("flush() was called while a hook of the world runs"));
        }
        let _asking = Asking(&self.asking);
        let mut raised = FirstError::default();
        for (rows, [relevancy, condition, priority]) in self.population.classes.iter().zip(hooks) {
            // Without clients there is nothing to decide.
            let kinds: [(_, _, SetRows); 2] = [
                ("relevancy", relevancy, Interests::set_mask),
                ("condition", condition, Interests::set_chosen),
            ];
            for (kind, hook, set) in kinds {
                let Some(hook) = hook.filter(|_| !clients.is_empty()) else { continue };
                let (hook, mut done) = (hook.bind(py), Ok(()));
                clock(kind, &mut || done = self.ask_masks(kind, rows, hook, clients, set));
                raised.keep(hook, done);
            }
            if let Some(hook) = priority {
                let (hook, mut done) = (hook.bind(py), Ok(()));
                clock("world's priority", &mut || done = self.ask_priority(rows, hook));
                raised.keep(hook, done);
            }
        }
        raised.result()
    }

    /// Asks a hook for a mask for each client, and sets them.
    fn ask_masks(
        &self,
        kind: &str,
        rows: &Arc<GhostRows>,
        hook: &Object<'_>,
        clients: &[Py<ClientHandle>],
        set: SetRows,
    ) -> PyResult<()> {
        let (py, before) = (hook.py(), rows.cells.count());
        let asked: Vec<_> = clients.iter().map(|client| client.clone_ref(py)).collect();
        let answer = exit::call(hook, (asked, GhostArrays(rows.clone())), None)?;
        if answer.is_none() {
            return Ok(());
        }
        let masks = masks(kind, rows, &answer, clients.len(), before)?;
        for (client, mask) in clients.iter().zip(masks) {
            let client = client.get().core;
            self.with(|state| {
                let is_connected = state.host().is_connected(client);
                if let Some(world) = core::world(state).filter(|_| is_connected) {
                    set(world.interests(), client, rows.index, mask);
                }
            })?;
        }
        Ok(())
    }

    fn ask_priority(&self, rows: &Arc<GhostRows>, hook: &Object<'_>) -> PyResult<()> {
        let before = rows.cells.count();
        let answer = exit::call(hook, (GhostArrays(rows.clone()),), None)?;
        if answer.is_none() {
            return Ok(());
        }
        let name = rows.name();
        let weights = interest::weights(&answer)
            .map_err(|error| said_of(hook.py(), &error, &format!("the priority hook of {name}")))?;
        if weights.len() != before && weights.len() != rows.cells.count() {
            return Err(PyValueError::new_err(format!(
                "the priority hook of {name} must return {} weights, one per row, not {}",
                rows.cells.count(),
                weights.len()
            )));
        }
        self.publish(|it| it.set_weights(rows.index, &weights))
    }
}

/// A mask for each client.
fn masks(
    kind: &str,
    rows: &GhostRows,
    answer: &Object<'_>,
    clients: usize,
    before: usize,
) -> PyResult<Vec<Vec<u8>>> {
    let name = rows.name();
    let wrong = |what: String| {
        PyTypeError::new_err(format!(
            "the {kind} hook of {name} must return None, a buffer of bool of the shape (clients, rows), here ({clients}, \
             {}), or a list with a buffer of bool for each client, not {what}",
            rows.cells.count()
        ))
    };
    let masks: Vec<Vec<u8>> = if let Ok(raw) = Raw::get(answer, ffi::PyBUF_FULL_RO) {
        let &[lines, length] = raw.shape() else {
            return Err(wrong(format!("one of {} dimensions", raw.dimensions())));
        };
        if raw.item_size() != 1 {
            return Err(wrong(format!("one of format '{}'", raw.format().to_string_lossy())));
        }
        let mut bytes = Vec::new();
        raw.append_to(answer.py(), &mut bytes)?;
        let length = length as usize;
        (0..lines as usize).map(|line| bytes[line * length..][..length].to_vec()).collect()
    } else {
        let each = answer.try_iter().map_err(|_| wrong(class_name(answer)))?;
        let mask = |mask: PyResult<Object<'_>>| {
            interest::mask(&mask?)
                .map_err(|error| said_of(answer.py(), &error, &format!("the {kind} hook of {name}")))
        };
        each.map(mask).collect::<PyResult<_>>()?
    };
    if masks.len() != clients {
        let count = masks.len();
        refuse!(
            PyValueError,
            "the {kind} hook of {name} must return a mask for each of {clients} clients, not {count}"
        );
    }
    let count = rows.cells.count();
    match masks.iter().map(Vec::len).find(|length| ![before, count].contains(length)) {
        Some(length) => {
            refuse!(
                PyValueError,
                "the {kind} hook of {name} must return {count} rows for each client, not {length}"
            )
        }
        None => Ok(masks),
    }
}

/// The same error, with the hook's name in its sentence.
fn said_of(py: Python<'_>, error: &PyErr, whose: &str) -> PyErr {
    let sentence = format!("{whose}: {}", error.value(py));
    PyErr::from_type(error.get_type(py), sentence)
}
