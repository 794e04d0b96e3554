//! The players' inputs, as bits and as objects: small ints, or objects of a message class.

use crate::python::prelude::*;

use crate::python::codec::Class;
use crate::rollback::{GameInput, InputShape, MAX_INPUT_BITS};
use crate::wire::Schema;

/// How many objects are kept for each player: an input that comes again is the same object.
const KEPT: usize = 4;

/// The type of a game's inputs.
#[derive(Debug)]
pub(super) enum InputKind {
    Int { bits: u32 },
    Class { class: Box<Class>, schema: Arc<Schema> },
}

impl InputKind {
    /// Reads `inputs`: a number of bits, or a message class.
    pub(super) fn new(inputs: &Bound<'_, PyAny>) -> PyResult<Self> {
        if inputs.is_instance_of::<PyInt>() && !inputs.is_instance_of::<PyBool>() {
            let bits = bounded("inputs", inputs, 1, 64)?;
            return Ok(InputKind::Int { bits });
        }
        let (class, name, schema) = Class::of_inputs(inputs, "a number of bits or ")?;
        if schema.max_bits() > MAX_INPUT_BITS || schema.max_bits() == 0 {
            let most = MAX_INPUT_BITS / 8;
            let bytes = schema.max_bits().div_ceil(8);
            refuse!(PyValueError, "inputs must take 1 to {most} bytes, not {bytes}: {name}");
        }
        let schema = Arc::new(schema);
        if InputShape::of_schema(schema.clone()).is_none() {
            return Err(PyValueError::new_err(format!(
                "inputs must be a class whose fields can all be zero bits, as they are before a player's first input: in \
                 {name} a common value is written shorter"
            )));
        }
        Ok(InputKind::Class { class: Box::new(class), schema })
    }

    pub(super) fn shape(&self) -> InputShape {
        match self {
            InputKind::Int { bits } => InputShape::of_bits(*bits as usize),
            // The class was checked to be short enough.
            InputKind::Class { schema, .. } => {
                InputShape::of_schema(schema.clone()).unwrap_or_else(|| InputShape::of_bits(MAX_INPUT_BITS))
            }
        }
    }

    /// Writes an object as bits to an empty writer.
    pub(super) fn write(&self, input: &Bound<'_, PyAny>, writer: &mut BitWriter) -> PyResult<()> {
        use crate::wire::BitSink;
        match self {
            InputKind::Int { bits } => {
                if !input.is_instance_of::<PyInt>() {
                    refuse!(PyTypeError, "input must be an int, not {}", class_name(input));
                }
                let most = u64::MAX >> (64 - bits);
                let value = match input.extract::<u64>() {
                    Ok(value) if value <= most => value,
                    _ => {
                        refuse!(PyValueError, "input must be 0 to {most}, not {input}");
                    }
                };
                writer.bits(value, *bits);
                Ok(())
            }
            InputKind::Class { class, .. } => {
                if !input.get_type().is(class.class()) {
                    let (class, given) = (class.name(), class_name(input));
                    refuse!(PyTypeError, "input must be of class {class}, not {given}");
                }
                class.write(input, writer)
            }
        }
    }

    fn make(&self, py: Python<'_>, input: GameInput<'_>) -> PyResult<Py<PyAny>> {
        match self {
            InputKind::Int { .. } => {
                let value = input.bytes.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
                Ok(value.into_pyobject(py)?.into_any().unbind())
            }
            InputKind::Class { class, schema } => {
                let mut row = Vec::with_capacity(schema.row_size());
                let mut reader = BitReader::with_range(input.bytes, 0, input.bits);
                // Cannot fail: received inputs were checked when they came, and the neutral one with the class.
                if schema.read(&mut reader, &mut row).is_err() {
                    return Ok(py.None());
                }
                Ok(class.decode(py, &row, None, None)?.unbind())
            }
        }
    }
}

/// The objects of the players' latest inputs.
#[derive(Debug, Default)]
pub(super) struct InputObjects(Vec<KeptInputs>);

#[derive(Debug, Default)]
struct KeptInputs {
    kept: Vec<KeptInput>,
    oldest: usize,
}

impl InputObjects {
    pub(super) fn new(players: usize) -> Self {
        InputObjects((0..players).map(|_| KeptInputs::default()).collect())
    }

    /// The inputs of a frame, player by player: objects that are kept, and bits of those that are still to be made. Runs no code
    /// of the game's.
    pub(super) fn find<'a>(
        &self,
        py: Python<'_>,
        inputs: impl ExactSizeIterator<Item = GameInput<'a>>,
    ) -> InputRow {
        let mut row =
            InputRow { objects: [const { None }; 16], missing: Vec::new(), count: inputs.len().min(16) };
        for (player, (place, input)) in row.objects.iter_mut().zip(inputs).enumerate() {
            let same = |(bytes, bits, _): &&KeptInput| *bits == input.bits && bytes == input.bytes;
            match self.0[player].kept.iter().find(same) {
                Some((_, _, object)) => *place = Some(object.clone_ref(py)),
                None => row.missing.push((player, input.bytes.to_vec(), input.bits)),
            }
        }
        row
    }

    /// Keeps what was made for a row. Drop what it gives when no lock is held: it may run code of the game's.
    pub(super) fn keep(&mut self, py: Python<'_>, row: InputRow) -> Vec<KeptInput> {
        let mut dropped = Vec::new();
        for (player, bytes, bits) in row.missing {
            let Some(object) = &row.objects[player] else { continue };
            let (entry, KeptInputs { kept, oldest }) =
                ((bytes, bits, object.clone_ref(py)), &mut self.0[player]);
            if kept.len() < KEPT {
                kept.push(entry);
            } else {
                dropped.push(core::mem::replace(&mut kept[*oldest], entry));
                *oldest = (*oldest + 1) % KEPT;
            }
        }
        dropped
    }
}

/// Bytes and bits of an input, and the object made of it.
type KeptInput = (Vec<u8>, usize, Py<PyAny>);

/// The inputs of a frame.
pub(super) struct InputRow {
    objects: [Option<Py<PyAny>>; 16],
    missing: Vec<(usize, Vec<u8>, usize)>,
    count: usize,
}

impl InputRow {
    /// Makes what is missing, which may run code of the game's: hold no lock. Gives the objects, player by player.
    pub(super) fn make(&mut self, py: Python<'_>, kind: &InputKind) -> PyResult<Py<PyTuple>> {
        for (player, bytes, bits) in &self.missing {
            self.objects[*player] = Some(kind.make(py, GameInput { bytes, bits: *bits })?);
        }
        if matches!(kind, InputKind::Int { .. }) {
            self.missing.clear();
        }
        let objects = self.objects[..self.count].iter().flatten().map(|object| object.clone_ref(py));
        Ok(PyTuple::new(py, objects.collect::<Vec<_>>())?.unbind())
    }
}
