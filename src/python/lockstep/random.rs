//! The random generator that all players share.

use crate::python::prelude::*;

use crate::driver::files::hex;
use crate::lockstep::SharedRandom;
use crate::python::checks::wrong;

#[pyclass(frozen, module = "tickwire.lockstep")]
#[derive(Debug)]
pub(crate) struct Random {
    core: Mutex<SharedRandom>,
}

#[pymethods]
impl Random {
    #[new]
    fn new(#[within(0, u64::MAX)] seed: u64) -> PyResult<Self> {
        Ok(Random { core: Mutex::new(SharedRandom::seeded(seed)) })
    }

    #[staticmethod]
    fn from_state(state: &Bound<'_, PyBytes>) -> PyResult<Self> {
        let made = state.as_bytes().try_into().ok().and_then(SharedRandom::from_state);
        let made = made.ok_or_else(|| value_error("state must be the 32 bytes of a generator's state"))?;
        Ok(Random { core: Mutex::new(made) })
    }

    properties! {
        state: Bound<'py, PyBytes> = PyBytes::new(py, &lock(&self.core).state());
    }

    #[setter]
    fn set_state(&self, state: &Bound<'_, PyBytes>) -> PyResult<()> {
        let made = Random::from_state(state)?;
        *lock(&self.core) = lock(&made.core).clone();
        Ok(())
    }

    methods! {
        bits(#[within(1, 64)] count: u32) -> u64 = lock(&self.core).next_u64() >> (64 - count);
        below(#[within(1, u64::MAX)] bound: u64) -> PyResult<u64> = Ok(lock(&self.core).below(bound));
        unit() -> f64 = lock(&self.core).unit();
        copy() -> Random = Random { core: Mutex::new(lock(&self.core).clone()) };
    }

    fn between(&self, #[within(i64::MIN, i64::MAX)] low: i64, high: &Object<'_>) -> PyResult<i64> {
        let high = bounded("high", high, low, i64::MAX)?;
        Ok(lock(&self.core).between(low, high))
    }

    fn choice<'py>(&self, items: &Object<'py>) -> PyResult<Object<'py>> {
        let count = items.len().map_err(|error| wrong("items", items, "a sequence", error))? as u64;
        if count == 0 {
            return Err(PyIndexError::new_err("items must not be empty"));
        }
        let at = lock(&self.core).below(count);
        items.get_item(at)
    }

    fn shuffle(&self, items: &Bound<'_, PyList>) -> PyResult<()> {
        for last in (1..items.len()).rev() {
            let at = lock(&self.core).below(last as u64 + 1) as usize;
            let (a, b) = (items.get_item(last)?, items.get_item(at)?);
            items.set_item(last, b)?;
            items.set_item(at, a)?;
        }
        Ok(())
    }

    #[allow(unsafe_code)] // The buffer protocol hands over addresses.
    fn fill(&self, array: &Object<'_>, bound: Option<&Object<'_>>) -> PyResult<()> {
        let flags = ffi::PyBUF_C_CONTIGUOUS | ffi::PyBUF_FORMAT | ffi::PyBUF_WRITABLE;
        let buffer = Raw::get(array, flags)
            .map_err(|error| wrong("array", array, "an array that can be written to", error))?;
        let (size, code) = (buffer.item_size(), buffer.code().unwrap_or_default());
        let (signed, float) = (b"bhilq".contains(&code), code == b'd');
        let fits = matches!(size, 1 | 2 | 4 | 8) && cfg!(target_endian = "little");
        if !fits || !(signed || float || b"BHILQ".contains(&code)) {
            return Err(PyTypeError::new_err("array must be of integers or float64"));
        }
        if float && bound.is_some() {
            return Err(PyValueError::new_err("bound must be left out for floats"));
        }
        let width = size as u32 * 8 - u32::from(signed);
        let most = if width == 64 { u64::MAX } else { 1 << width };
        let bound = bound.map(|bound| bounded("bound", bound, 1, most)).transpose()?;
        let mut core = lock(&self.core);
        for item in 0..buffer.len() / size {
            let word = match bound {
                _ if float => core.unit().to_bits(),
                Some(bound) => core.below(bound),
                None => core.next_u64() >> (64 - size * 8),
            };
            let to = (buffer.address() + item * size) as *mut u8;
            // SAFETY: the buffer is writable, contiguous and held, with `size` bytes at this address.
            unsafe { core::ptr::copy_nonoverlapping(word.to_le_bytes().as_ptr(), to, size) };
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("Random.from_state(bytes.fromhex('{}'))", hex(&lock(&self.core).state()))
    }
}
