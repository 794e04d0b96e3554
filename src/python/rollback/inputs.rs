//! The players' inputs, as bits and as objects: small ints, or objects of a message class.

use super::*;

use crate::python::codec::Class;
use crate::rollback::{InputShape, MAX_INPUT_BITS};
use crate::wire::Schema;

/// The type of a game's inputs.
#[derive(Debug)]
pub(super) struct InputKind {
    pub(super) shape: InputShape,
    /// None for ints.
    class: Option<(Class, Arc<Schema>)>,
}

/// Bytes and bits of an input.
pub(super) type CopiedInput = (Vec<u8>, usize);

/// Copies an input, to make its object when no lock is held.
pub(super) fn copied(input: GameInput<'_>) -> CopiedInput {
    (input.bytes.to_vec(), input.bits)
}

impl InputKind {
    /// Reads `inputs`: a number of bits, or a message class.
    pub(super) fn new(inputs: &Object<'_>) -> PyResult<Self> {
        if inputs.is_instance_of::<PyInt>() && !inputs.is_instance_of::<PyBool>() {
            let bits = bounded("inputs", inputs, 1, 64)?;
            return Ok(InputKind { shape: InputShape::of_bits(bits), class: None });
        }
        let (class, name, schema) = Class::of_inputs(inputs, "a number of bits or ")?;
        if schema.max_bits() > MAX_INPUT_BITS || schema.max_bits() == 0 {
            let most = MAX_INPUT_BITS / 8;
            let bytes = schema.max_bits().div_ceil(8);
            refuse!(PyValueError, "inputs must take 1 to {most} bytes, not {bytes}: {name}");
        }
        let schema = Arc::new(schema);
        let shape = InputShape::of_schema(schema.clone()).ok_or_else(|| {
            PyValueError::new_err(format!(
                "inputs must be a class whose fields can all be zero bits, as they are before a player's \
                 first input: {name} has a common value with a shorter encoding"
            ))
        })?;
        Ok(InputKind { shape, class: Some((class, schema)) })
    }

    /// Writes an object as bits to an empty writer.
    pub(super) fn write(&self, input: &Object<'_>, writer: &mut BitWriter) -> PyResult<()> {
        if let Some((class, _)) = &self.class {
            if !input.get_type().is(class.class()) {
                let (class, given) = (class.name(), class_name(input));
                refuse!(PyTypeError, "input must be of class {class}, not {given}");
            }
            return class.write(input, writer);
        }
        if !input.is_instance_of::<PyInt>() {
            refuse!(PyTypeError, "input must be an int, not {}", class_name(input));
        }
        let bits = self.shape.max_bits();
        let most = u64::MAX >> (64 - bits);
        match input.extract::<u64>() {
            Ok(value) if value <= most => writer.bits(value, bits as u32),
            _ => refuse!(PyValueError, "input must be 0 to {most}, not {input}"),
        }
        Ok(())
    }

    /// Makes the object of an input, which may run code of the game's: hold no lock.
    pub(super) fn make(&self, py: Python<'_>, (bytes, bits): &CopiedInput) -> PyResult<Py<PyAny>> {
        let Some((class, schema)) = &self.class else {
            return bytes
                .iter()
                .rev()
                .fold(0u64, |value, byte| value << 8 | u64::from(*byte))
                .into_py_any(py);
        };
        let mut row = Vec::with_capacity(schema.row_size());
        // Received inputs were checked when they came, and the neutral one with the class.
        schema.read(&mut BitReader::with_range(bytes, 0, *bits), &mut row).map_err(value_error)?;
        Ok(class.decode(py, &row, None, None)?.unbind())
    }
}
