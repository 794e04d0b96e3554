//! Bytes and bits: the serialize 1.0 bitstream and message schemas.
//!
//! Promises: [`BitWriter`] writes byte for byte the standard's format, at any bit position; a [`Measure`] is never less
//! than the write it measures; a [`BitReader`] refuses everything that the standard says to refuse, stops for good at
//! the first refusal, and allocates nothing beyond the bytes it has.
//! Refuses to check writers twice. [`BitSink`] trusts its caller; [`Stream`] (a message class that serializes itself)
//! and [`Schema`] (one that declares its fields) are the checked entries.
//!
//! An [`Encoded`] message is written once and can be placed at any bit position of any later packet.

mod batch;
pub mod bit_reader;
pub mod bit_sink;
pub mod bit_writer;
mod codec;
pub mod column;
mod common;
pub mod direction;
pub mod encoded;
pub mod error;
mod field;
pub mod kind;
mod lanes;
mod layout;
mod leaf_words;
pub mod measure;
mod narrow;
mod narrow_cells;
pub mod node;
pub mod order;
pub mod packet;
mod plain;
pub mod properties;
pub mod property;
pub mod quantize;
mod residuals;
pub mod rows;
mod runs;
mod schema;
mod slots;
pub mod steps;
pub mod stream;
pub mod transform;
pub mod value;
mod word_columns;
pub mod words;

pub use batch::Batch;
pub use bit_reader::BitReader;
pub use bit_sink::BitSink;
pub use bit_writer::BitWriter;
pub use column::Column;
pub use direction::{Octahedral, SignedThree, SmallestThree};
pub use encoded::Encoded;
pub use error::{ParameterError, ReadError, SchemaError, ValueError};
pub use kind::Kind;
pub use measure::Measure;
pub(crate) use narrow::{MaskWords, Narrow};
pub use node::{Field, Node, Schema};
pub use properties::Properties;
pub use property::Property;
pub use quantize::{FixedPoint, Quantizer};
pub use rows::{RowError, Rows};
pub use steps::Steps;
pub use stream::{Stream, StreamError};
pub use transform::Transform;
pub use value::{Cells, Value};
pub use words::{Metric, WordRange};

/// The maximum of a 16-bit length: bytes of a string or bytes field, UTF-16 units of a wide string.
pub const MAX_LENGTH: u32 = 65_535;

/// The maximum of a relative integer: the standard's domain is 0..=2^31 - 1.
pub const MAX_RELATIVE: u32 = i32::MAX.cast_unsigned();

/// Most fraction bits of a fixed-point number: whole units are an `i64`, and both fit an `i128`.
pub const MAX_FRACTION_BITS: u32 = 64;

/// Bits that a component of a direction may have. Above 16 the singles of a row would add errors of their own.
pub const COMPONENT_BITS: core::ops::RangeInclusive<u32> = 4..=16;

/// Maximum bytes of a message's lists once read: a bit in a packet can be a row of many bytes in memory, and a game
/// must be able to bear the total.
pub const MAX_TAIL_BYTES: usize = 1 << 18;

/// Parts within parts, at most: reading and writing go as deep.
pub const MAX_DEPTH: usize = 16;

/// Most fields of a schema. With [`MAX_LENGTH`] it keeps a body below 4 GiB.
pub const MAX_FIELDS: usize = 1024;

/// Most fields of a schema that is sent by mask.
pub const MAX_PROPERTIES: usize = u64::BITS as usize;

/// The bounded tiers of the relative integer, as inclusive ranges of the difference. A flag for a difference of 1
/// precedes them; after them comes the number itself in 32 bits.
const RELATIVE_TIERS: [(i64, i64); 5] = [(2, 6), (7, 23), (24, 280), (281, 4377), (4378, 69_914)];

/// Bits to tell the integers `0..=span` apart; 0 if there is only one.
pub const fn bit_len(span: u64) -> u32 {
    u64::BITS - span.leading_zeros()
}

/// [`bit_len`] for spans beyond 64 bits.
pub const fn bit_len128(span: u128) -> u32 {
    u128::BITS - span.leading_zeros()
}

/// `hi - lo`, exact over the whole range of an `i64`.
const fn span(lo: i64, hi: i64) -> u64 {
    hi.wrapping_sub(lo).cast_unsigned()
}

/// [`span`] for 128 bits.
const fn span128(lo: i128, hi: i128) -> u128 {
    hi.wrapping_sub(lo).cast_unsigned()
}

/// Zero bits between this bit position and the next byte boundary.
const fn padding(position: usize) -> usize {
    position.wrapping_neg() % 8
}
