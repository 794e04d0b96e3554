//! How a game's states are kept: arrays copied here, callables, or by the game itself.

use super::*;

use crate::rollback::{MAX_FIELDS, StateField, StateLayout};

/// How states are saved and loaded.
pub(super) enum StateKind {
    Arrays(Arrays),
    Calls { save: Py<PyAny>, load: Py<PyAny>, check: Option<Py<PyAny>> },
    Requests,
}

impl StateKind {
    pub(super) fn new(
        state: Option<&Bound<'_, PyAny>>,
        save: Option<Py<PyAny>>,
        load: Option<Py<PyAny>>,
        check: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        match (state, save, load) {
            (Some(state), None, None) => {
                if check.is_some() {
                    return Err(PyValueError::new_err(
                        "check must be None with state: its fields are compared",
                    ));
                }
                Ok(StateKind::Arrays(Arrays::new(state)?))
            }
            (None, Some(save), Some(load)) => Ok(StateKind::Calls { save, load, check }),
            (None, None, None) if check.is_some() => {
                Err(PyValueError::new_err("check must be None if save and load aren't given"))
            }
            (None, None, None) => Ok(StateKind::Requests),
            (Some(_), ..) => Err(PyValueError::new_err("state must be None if save and load are given")),
            _ => Err(PyValueError::new_err("save and load must be given together, or neither of them")),
        }
    }

    /// The mark of a state that is copied here; 0 for any other.
    pub(super) fn mark(&self) -> u64 {
        if let StateKind::Arrays(arrays) = self { arrays.layout.mark() } else { 0 }
    }

    /// Bytes of a state that is copied here.
    pub(super) fn size(&self) -> usize {
        if let StateKind::Arrays(arrays) = self { arrays.size } else { 0 }
    }
}

/// A buffer that is held while the game lives.
struct Held(Raw);

// SAFETY: the address and length are only read. Releasing the buffer needs an attached thread, which is given where a
// Python object is freed. The memory is the game's: it is copied and never referenced. The docs tell the game to change
// its state in one thread, because a copy of what another one changes may be torn.
#[allow(unsafe_code)]
unsafe impl Send for Held {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Held {}

/// Name, type, offset and size of a field: see `tickwire._states`.
type Field = (String, Option<String>, usize, usize);

/// Arrays that together are the state.
pub(super) struct Arrays {
    held: Vec<Held>,
    pub(super) layout: StateLayout,
    size: usize,
}

impl Arrays {
    fn new(state: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut arrays = Arrays { held: Vec::new(), layout: StateLayout::default(), size: 0 };
        let module = state.py().import("tickwire._states")?;
        for array in module.call_method1("arrays_of", (state,))?.try_iter()? {
            let (shown, array, fields): (String, Bound<'_, PyAny>, Vec<Field>) = array?.extract()?;
            arrays.add(&shown, &array, fields)?;
        }
        if arrays.size == 0 {
            return Err(PyValueError::new_err("state must have at least one byte, not 0"));
        }
        let count = arrays.layout.fields.len();
        if count > MAX_FIELDS {
            refuse!(PyValueError, "state must have at most {MAX_FIELDS} fields, not {count}");
        }
        Ok(arrays)
    }

    fn add(&mut self, shown: &str, array: &Bound<'_, PyAny>, fields: Vec<Field>) -> PyResult<()> {
        let has_type = fields.iter().all(|(_, kind, ..)| kind.is_some());
        let flags = if has_type { ffi::PyBUF_CONTIG } else { ffi::PyBUF_CONTIG | ffi::PyBUF_FORMAT };
        let raw = Raw::get(array, flags).map_err(|error| {
            let why = error.value(array.py()).to_string();
            PyTypeError::new_err(format!(
                "{shown} must be a C-contiguous array that can be written to: {why}"
            ))
        })?;
        if raw.format().to_bytes().contains(&b'O') {
            return Err(PyTypeError::new_err(format!(
                "{shown} must be an array of numbers, not of Python objects: give save and load for these"
            )));
        }
        let (whole, stride) = (self.size..self.size + raw.len(), raw.item_size().max(1));
        self.size = whole.end;
        for (name, kind, offset, size) in fields {
            let kind = kind.unwrap_or_else(|| raw.format().to_string_lossy().into_owned());
            let part = (size > 0).then_some(offset..offset + size);
            self.layout.fields.push(StateField { name, kind, array: whole.clone(), stride, part });
        }
        self.held.push(Held(raw));
        Ok(())
    }

    #[allow(unsafe_code)]
    pub(super) fn save(&self, to: &mut [u8]) {
        let mut start = 0;
        for Held(raw) in &self.held {
            let to = &mut to[start..start + raw.len()];
            // SAFETY: a held buffer has this many bytes at its address. They are copied as bytes of any value and never
            // referenced, because the game may write to them at any time.
            unsafe { core::ptr::copy_nonoverlapping(raw.address() as *const u8, to.as_mut_ptr(), to.len()) };
            start += raw.len();
        }
    }

    #[allow(unsafe_code)]
    pub(super) fn load(&self, from: &[u8]) {
        let mut start = 0;
        for Held(raw) in &self.held {
            let from = &from[start..start + raw.len()];
            // SAFETY: as for saving, and the buffer was requested as writable.
            unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), raw.address() as *mut u8, from.len()) };
            start += raw.len();
        }
    }

    /// The fields of the current state that differ from a saved one.
    pub(super) fn differences(&self, saved: &[u8]) -> Vec<String> {
        let mut own = vec![0; self.size];
        self.save(&mut own);
        if own == saved { Vec::new() } else { self.layout.differences(saved, &own) }
    }
}

/// The names of what differs between two states of the game's own type.
pub(super) fn differing(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    one.py().import("tickwire._states")?.call_method1("differing", (one, other))?.extract()
}

impl Traverse for StateKind {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let StateKind::Calls { save, load, check } = self else { return Ok(()) };
        visit.call(save)?;
        visit.call(load)?;
        check.traverse(visit)
    }
}
