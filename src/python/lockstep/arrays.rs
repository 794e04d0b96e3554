//! Arrays of numbers that are compared after each turn, without an object for any of them.

use crate::python::prelude::*;

use crate::lockstep::checks::{FIRST_CLASS, MAX_WORDS, TurnLog};

/// Elements of a row: what is hashed, and asked for, at once.
const ROW: usize = 32;
/// Classes of objects and arrays together, at most.
const MAX_CLASSES: usize = 200;

/// Appends arrays to a log, each a class behind those of objects.
pub(super) fn push(arrays: &Bound<'_, PyList>, classes: usize, log: &mut TurnLog) -> PyResult<()> {
    if classes + arrays.len() > MAX_CLASSES {
        let count = arrays.len();
        refuse!(PyValueError, "arrays must have at most {} names, not {count}", MAX_CLASSES - classes);
    }
    let (mut bytes, mut words) = (Vec::new(), Vec::new());
    for (number, item) in arrays.iter().enumerate() {
        let (name, array): (String, Object<'_>) = item.extract()?;
        let raw = Raw::get(&array, ffi::PyBUF_FULL_RO).map_err(|error| {
            PyTypeError::new_err(format!("arrays[{name:?}] must be an array: {}", error.value(array.py())))
        })?;
        if log.words.len() + raw.len() / raw.item_size().max(1) > MAX_WORDS {
            return Err(PyValueError::new_err(format!(
                "arrays must have at most {MAX_WORDS} values in all, and {name:?} exceeds this"
            )));
        }
        bytes.clear();
        raw.append_to(array.py(), &mut bytes)?;
        words.clear();
        if !read(raw.code(), raw.item_size(), &bytes, &mut words) {
            let format = raw.format().to_string_lossy();
            return Err(PyTypeError::new_err(format!(
                "arrays[{name:?}] must be whole numbers, floats of 32 or 64 bits or bools in the machine's byte order, not of format {format:?}"
            )));
        }
        let class = FIRST_CLASS + (classes + number) as u8;
        for (row, words) in words.chunks(ROW).enumerate() {
            log.push(class, row as u32, words);
        }
    }
    Ok(())
}

/// Numbers as the words of a log. False for a code that isn't known.
fn read(code: Option<u8>, size: usize, bytes: &[u8], words: &mut Vec<i64>) -> bool {
    macro_rules! numbers {
        ($Type:ty, $word:expr) => {
            words.extend(bytes.as_chunks().0.iter().map(|it| $word(<$Type>::from_ne_bytes(*it))))
        };
    }
    let Some(code) = code else { return false };
    let (is_signed, is_unsigned) = (b"bhilqn".contains(&code), b"BHILQN".contains(&code));
    match (code, size) {
        (_, 1) if is_signed => numbers!(i8, i64::from),
        (_, 2) if is_signed => numbers!(i16, i64::from),
        (_, 4) if is_signed => numbers!(i32, i64::from),
        (_, 8) if is_signed => numbers!(i64, |it| it),
        (b'?', 1) => numbers!(u8, i64::from),
        (_, 1) if is_unsigned => numbers!(u8, i64::from),
        (_, 2) if is_unsigned => numbers!(u16, i64::from),
        (_, 4) if is_unsigned => numbers!(u32, i64::from),
        (_, 8) if is_unsigned => numbers!(u64, |it: u64| it as i64),
        (b'f', 4) => numbers!(f32, |it: f32| f64::from(it).to_bits() as i64),
        (b'd', 8) => numbers!(f64, |it: f64| it.to_bits() as i64),
        _ => return false,
    }
    true
}
