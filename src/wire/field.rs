//! A field of a message class: its name, its kind, and where it lies in a row.

use super::codec::Codec;
use super::{BitReader, BitSink, Column, ParameterError, ReadError, Value, ValueError};
use core::fmt;

/// What a field holds and how it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One bit.
    Bool,
    /// An unsigned integer of 1..=64 bits.
    Bits {
        /// The width.
        bits: u32,
    },
    /// An integer in `lo..=hi`, in as many bits as `hi - lo` has; none when `lo == hi`.
    Ranged {
        /// The smallest.
        lo: i128,
        /// The largest.
        hi: i128,
    },
    /// An unsigned integer of 128 bits.
    Uint128,
    /// An IEEE single of any pattern.
    Float,
    /// An IEEE double of any pattern.
    Double,
    /// A float in steps of about `resolution` over `lo..=hi` (the standard's compressed float).
    Quantized {
        /// The lower bound.
        lo: f64,
        /// The upper bound.
        hi: f64,
        /// The step.
        resolution: f64,
    },
    /// A fixed-point number in `lo..=hi` whole units, at most what an `f64` carries exactly.
    Fixed {
        /// Binary places.
        fraction_bits: u32,
        /// The smallest, in whole units.
        lo: i64,
        /// The largest, in whole units.
        hi: i64,
    },
    /// UTF-8 without NUL, its bytes aligned.
    Text {
        /// The largest length in bytes.
        max_bytes: u32,
    },
    /// Bytes behind their length, aligned.
    Data {
        /// The largest length in bytes.
        max_bytes: u32,
    },
    /// Text without NUL in 32 bits a UTF-16 unit, not aligned.
    WideText {
        /// The largest length in UTF-16 units.
        max_units: u32,
    },
}

impl fmt::Display for Kind {
    /// The canonical form that [`super::Schema::describe`] is made of. The parameters of a quantized float
    /// are given as they are used: the patterns of their singles, in hex.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Kind::Bool => write!(f, "bool"),
            Kind::Bits { bits } => write!(f, "bits({bits})"),
            Kind::Ranged { lo, hi } => write!(f, "ranged({lo},{hi})"),
            Kind::Uint128 => write!(f, "uint128"),
            Kind::Float => write!(f, "float"),
            Kind::Double => write!(f, "double"),
            Kind::Quantized { lo, hi, resolution } => {
                let [lo, hi, resolution] = [lo, hi, resolution].map(|v| (v as f32).to_bits());
                write!(f, "quantized({lo:08x},{hi:08x},{resolution:08x})")
            }
            Kind::Fixed { fraction_bits, lo, hi } => write!(f, "fixed({fraction_bits},{lo},{hi})"),
            Kind::Text { max_bytes } => write!(f, "text({max_bytes})"),
            Kind::Data { max_bytes } => write!(f, "data({max_bytes})"),
            Kind::WideText { max_units } => write!(f, "wide({max_units})"),
        }
    }
}

/// A named field with its place in the row. [`super::Schema::new`] makes these.
#[derive(Clone, Debug)]
pub struct Field {
    name: String,
    kind: Kind,
    offset: usize,
    column: Column,
    codec: Codec,
}

impl Field {
    /// A field in a row whose first `row_size` bytes are taken: at the next offset of its alignment.
    pub(super) fn new(name: String, kind: Kind, row_size: usize) -> Result<Self, ParameterError> {
        let codec = Codec::new(&kind)?;
        let column = codec.column();
        let offset = row_size.next_multiple_of(column.alignment());
        Ok(Field { name, kind, offset, column, codec })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its kind.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Where it lies in a row, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// How it lies in a row.
    pub fn column(&self) -> Column {
        self.column
    }

    /// The least and the most bits it takes, 7 of them for an align.
    pub fn bit_range(&self) -> (usize, usize) {
        self.codec.bit_range()
    }

    /// Checks `value` and writes it. Numeric fields take integers of any variant, float fields also
    /// integers; a boolean is no integer.
    ///
    /// # Errors
    /// When the value is of another type or outside the field's bounds. Nothing is written then.
    #[inline]
    pub fn write<S: BitSink + ?Sized>(&self, value: Value<'_>, sink: &mut S) -> Result<(), ValueError> {
        self.codec.write(value, sink)
    }

    /// Its value in a body that [`super::Schema::read`] appended.
    ///
    /// # Panics
    /// When the body is not one of its schema's. Rows of another origin go through
    /// [`super::Schema::write_row`], which doubts them.
    pub fn load<'a>(&self, body: &'a [u8]) -> Value<'a> {
        self.column.load(body, self.offset).expect("the body is one of this schema's")
    }

    pub(super) fn write_cell<S: BitSink + ?Sized>(
        &self,
        body: &[u8],
        sink: &mut S,
    ) -> Result<(), ValueError> {
        self.codec.write_cell(body, self.offset, self.column, sink)
    }

    pub(super) fn read_cell(
        &self,
        reader: &mut BitReader<'_>,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), ReadError> {
        self.codec.read_cell(reader, out, start, self.offset, self.column)
    }
}
