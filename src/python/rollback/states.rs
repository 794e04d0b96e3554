//! The states of rollback games: arrays are copied here, and `tickwire._states` keeps all others.

use super::*;

use crate::python::checks::wrong;
use crate::rollback::{MAX_FIELDS, StateField, StateLayout, StateRing, hash};

/// The saved states of a game: [`StateArrays`], or the `Copies` of `tickwire._states`.
pub(super) struct States(Py<PyAny>);

impl States {
    /// Keeps the states of `count` frames.
    pub(super) fn new(
        py: Python<'_>,
        state: Option<&Object<'_>>,
        functions: [Option<Py<PyAny>>; 3],
        count: usize,
        is_test: bool,
    ) -> PyResult<Self> {
        let arguments = (state, functions, count, is_test);
        let made = py.import("tickwire._states")?.call_method1("states_of", arguments)?;
        Ok(States(made.unbind()))
    }

    /// The mark of a state that is copied here; 0 for any other.
    pub(super) fn mark(&self, py: Python<'_>) -> u64 {
        self.0.bind(py).cast::<StateArrays>().map_or(0, |arrays| arrays.get().layout.mark())
    }

    /// Carries out a request by one of the methods. Returns what the game has to do itself.
    pub(super) fn ask<'py>(
        &self,
        py: Python<'py>,
        method: &Bound<'py, PyString>,
        arguments: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let request = self.0.bind(py).call_method1(method, arguments)?;
        Ok((!request.is_none()).then(|| request.unbind()))
    }

    /// The names of the fields and their checksums, before a frame.
    pub(super) fn sums(&self, py: Python<'_>, frame: u32) -> PyResult<(Vec<String>, Vec<u32>)> {
        self.0.bind(py).call_method1(intern!(py, "sums"), (frame,))?.extract()
    }
}

impl Traverse for States {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
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

#[pyclass(frozen, module = "tickwire._core")]
pub(crate) struct StateArrays {
    held: Vec<Held>,
    layout: StateLayout,
    ring: Mutex<StateRing>,
    /// The frame to compare.
    compared: Mutex<Option<u32>>,
}

#[pymethods]
impl StateArrays {
    #[new]
    fn new(arrays: Vec<(String, Object<'_>, Vec<Field>)>, count: usize) -> PyResult<Self> {
        let (mut held, mut layout, mut size) = (Vec::new(), StateLayout::default(), 0);
        for (shown, array, fields) in arrays {
            let has_type = fields.iter().all(|(_, kind, ..)| kind.is_some());
            let flags = if has_type { ffi::PyBUF_CONTIG } else { ffi::PyBUF_CONTIG | ffi::PyBUF_FORMAT };
            let raw = Raw::get(&array, flags).map_err(|error| {
                let why = error.value(array.py()).to_string();
                PyTypeError::new_err(format!(
                    "{shown} must be a C-contiguous array that can be written to: {why}"
                ))
            })?;
            if raw.has_objects() {
                refuse!(
                    PyTypeError,
                    "{shown} must be an array of numbers, not of Python objects: give save and load for these"
                );
            }
            let (whole, stride) = (size..size + raw.len(), raw.item_size().max(1));
            size = whole.end;
            layout.fields.extend(fields.into_iter().map(|(name, kind, offset, size)| {
                let kind = kind.unwrap_or_else(|| raw.format().to_string_lossy().into_owned());
                let part = (size > 0).then_some(offset..offset + size);
                StateField { name, kind, array: whole.clone(), stride, part }
            }));
            held.push(Held(raw));
        }
        if size == 0 {
            return Err(PyValueError::new_err("state must have at least one byte, not 0"));
        }
        if layout.fields.len() > MAX_FIELDS {
            let count = layout.fields.len();
            refuse!(PyValueError, "state must have at most {MAX_FIELDS} fields, not {count}");
        }
        Ok(StateArrays {
            held,
            layout,
            ring: Mutex::new(StateRing::new(size, count)),
            compared: Mutex::default(),
        })
    }

    fn save(&self, frame: u32, checked: bool) {
        let _ = checked;
        self.copy_to(lock(&self.ring).save(frame));
    }

    #[allow(unsafe_code)]
    fn load(&self, frame: u32) {
        let ring = lock(&self.ring);
        // The core only loads what it has saved.
        let mut rest = ring.get(frame).unwrap_or_default();
        for Held(raw) in &self.held {
            let Some((from, others)) = rest.split_at_checked(raw.len()) else { return };
            rest = others;
            // SAFETY: as for `copy_to`, and the buffer was requested as writable.
            unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), raw.address() as *mut u8, from.len()) };
        }
    }

    fn sums(&self, frame: u32) -> (Vec<String>, Vec<u32>) {
        let sums = lock(&self.ring).get(frame).map(|saved| self.layout.sums(saved));
        (self.layout.names(), sums.unwrap_or_default())
    }

    fn compare(&self, frame: u32) {
        *lock(&self.compared) = Some(frame);
    }

    fn finish_comparison(&self) -> PyResult<()> {
        let Some(frame) = lock(&self.compared).take() else { return Ok(()) };
        let mut ring = lock(&self.ring);
        let Some(saved) = ring.get(frame) else { return Ok(()) };
        let mut own = vec![0; saved.len()];
        self.copy_to(&mut own);
        if own == saved {
            return Ok(());
        }
        let fields = self.layout.differences(saved, &own);
        // The test goes on with the new result.
        ring.save(frame).copy_from_slice(&own);
        Err(SyncTestError::new_err((frame, fields)))
    }
}

impl StateArrays {
    #[allow(unsafe_code)]
    fn copy_to(&self, mut rest: &mut [u8]) {
        for Held(raw) in &self.held {
            let Some((to, others)) = rest.split_at_mut_checked(raw.len()) else { return };
            rest = others;
            // SAFETY: a held buffer has this many bytes at its address. They are copied as bytes of any value and never
            // referenced, because the game may write to them at any time.
            unsafe { core::ptr::copy_nonoverlapping(raw.address() as *const u8, to.as_mut_ptr(), to.len()) };
        }
    }
}

#[pyfunction]
pub(crate) fn state_sum(name: Option<&str>, value: &Object<'_>) -> PyResult<u32> {
    let sum = |kind, bytes: &[u8]| hash(hash(kind, name.unwrap_or_default().as_bytes()), bytes);
    let shown = || name.map_or_else(|| "checksum".into(), |name| format!("checksum[{name:?}]"));
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_str().map_err(|error| wrong(&shown(), value, "text", error))?;
        return Ok(sum(4, text.as_bytes()));
    }
    if value.is_instance_of::<PyInt>() {
        // In hex, because Python refuses to write large ints in decimal.
        let digits =
            value.py().get_type::<PyInt>().call_method1(intern!(value.py(), "__format__"), (value, "x"))?;
        return Ok(sum(1, digits.cast::<PyString>()?.to_str()?.as_bytes()));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(sum(2, &number.value().to_bits().to_le_bytes()));
    }
    let given = match Raw::get(value, ffi::PyBUF_FULL_RO) {
        Ok(raw) if !raw.has_objects() => {
            let shape = raw.shape().iter().map(|extent| *extent as u64);
            let head = shape.chain([raw.item_size() as u64]);
            let mut bytes: Vec<u8> = head.flat_map(u64::to_le_bytes).collect();
            raw.append_to(value.py(), &mut bytes)?;
            return Ok(sum(3, &bytes));
        }
        Ok(_) => "an array of Python objects".into(),
        Err(_) => class_name(value),
    };
    let others = if name.is_none() { ", or a mapping of names to such" } else { "" };
    refuse!(PyTypeError, "{} must be an int, float, str, bytes or a buffer{others}, not {given}", shown())
}
