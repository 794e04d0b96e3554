//! The errors of the wire layer, each under a name: for bytes from outside ([`ReadError`]), a caller's value
//! ([`ValueError`]), a caller's parameters ([`ParameterError`]). Class and field names are added above.

use core::fmt;

use crate::exact::short;

/// Why bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The read goes beyond the end.
    PastEnd {
        /// Bits the read needs.
        needed: u64,
        /// Bits that are left.
        remaining: u64,
    },
    /// A ranged integer is outside its range. Numbers beyond 64 bits are given as the largest 64-bit one.
    OutOfRange {
        /// The offset from the lower bound that was read.
        offset: u64,
        /// The largest offset inside the range.
        span: u64,
    },
    /// A quantized float is beyond its last step.
    BeyondLastStep {
        /// The step that was read.
        step: u32,
        last: u32,
    },
    /// The padding of an align is not zero.
    Padding,
    /// A string is not well-formed UTF-8.
    Utf8,
    /// A string has a NUL inside.
    InteriorNul,
    /// A group of a wide string is not a UTF-16 unit.
    CodeUnit {
        /// The group that was read.
        group: u32,
    },
    /// A wide string has half a surrogate pair.
    UnpairedSurrogate,
    /// A relative integer is not above the one before.
    NotIncreasing {
        previous: u32,
        /// The number that was read.
        current: u32,
    },
    /// A relative integer is beyond the standard's domain.
    BeyondRelative {
        /// The number that was read.
        current: u64,
    },
    /// After the last value there is more than zero bits up to the byte's end.
    Trailing {
        /// Bits that are left.
        remaining: u64,
    },
    /// A float is not finite although the field requires that.
    NotFinite,
    /// A value is written out that has a shorter form.
    NotShortest,
    /// The items of a set, or the keys of a map, are not in their order, each once.
    NotRising,
    /// A number names no variant.
    Unknown {
        /// The number that was read.
        number: u64,
    },
    /// A part has its form, and is still not a value that it may have.
    Invalid {
        /// What the part is: "title", "address".
        part: &'static str,
    },
    /// An earlier read failed: nothing after it has a position.
    Failed,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::PastEnd { needed, remaining } => {
                write!(f, "the read needs {needed} bits and {remaining} are left")
            }
            ReadError::OutOfRange { offset, span } => {
                write!(f, "the integer's offset must be 0 to {span}, not {offset}")
            }
            ReadError::BeyondLastStep { step, last } => {
                write!(f, "the quantized float's step must be 0 to {last}, not {step}")
            }
            ReadError::Padding => write!(f, "the padding before a byte boundary is not zero"),
            ReadError::Utf8 => write!(f, "the string is not well-formed UTF-8"),
            ReadError::InteriorNul => write!(f, "the string has a NUL inside"),
            ReadError::CodeUnit { group } => {
                write!(f, "the wide string's group must be 0 to 65535, not {group}")
            }
            ReadError::UnpairedSurrogate => write!(f, "the wide string has an unpaired surrogate"),
            ReadError::NotIncreasing { previous, current } => {
                write!(f, "the relative integer must be above {previous}, not {current}")
            }
            ReadError::BeyondRelative { current } => {
                write!(f, "the relative integer must be 0 to {}, not {current}", super::MAX_RELATIVE)
            }
            ReadError::Trailing { remaining } => {
                write!(f, "{remaining} bits are left after the last value and are not zero padding")
            }
            ReadError::NotFinite => write!(f, "the float is not a finite number"),
            ReadError::NotShortest => write!(f, "the value has a shorter form than the one written"),
            ReadError::NotRising => {
                write!(f, "the items of a set or its keys must be in rising order without duplicates")
            }
            ReadError::Unknown { number } => write!(f, "the number {number} names no variant"),
            ReadError::Invalid { part } => write!(f, "the {part} is not a valid one"),
            ReadError::Failed => write!(f, "an earlier read of this stream failed"),
        }
    }
}

impl core::error::Error for ReadError {}

/// Why a value can't be written.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueError {
    /// The value is of another type than the field.
    Type {
        /// The types that the field accepts.
        expected: &'static str,
        found: &'static str,
    },
    /// An integer is outside its range.
    OutOfRange { value: i128, lo: i128, hi: i128 },
    /// An integer is above an `i128`, and so above its range.
    AboveRange { value: u128, hi: i128 },
    /// A negative integer for an unsigned field.
    Negative { value: i128 },
    /// A float is outside its range.
    FloatOutOfRange { value: f64, lo: f64, hi: f64 },
    /// A NaN or an infinity although the field requires a finite number.
    NotFinite { value: f64 },
    /// A text or data is too long.
    TooLong {
        length: usize,
        /// The largest length allowed.
        max: u32,
        /// What the length counts.
        unit: &'static str,
    },
    /// Data of another length than the one agreed on.
    Length {
        /// Its length in bytes.
        length: usize,
        /// The length agreed on.
        count: u32,
    },
    /// A text has a NUL inside, which no reader accepts.
    InteriorNul {
        /// The byte it is at.
        at: usize,
    },
    /// A relative integer is not above the one before.
    NotIncreasing { previous: u32, current: u32 },
    /// An integer is none of an enumeration's values.
    NotAMember { value: i128 },
    /// A vector of length zero where a direction is needed.
    NoDirection,
    /// A vector with another number of components.
    Components {
        /// How many it has.
        length: usize,
        /// How many it should have.
        count: usize,
    },
    /// A cell of a row that points to bytes outside of its arena.
    OutsideArena {
        offset: usize,
        /// The number of things.
        count: usize,
        /// Their size in bytes.
        bytes: usize,
        arena: usize,
    },
    /// An item of a set, or a key of a map, that is not above the one before.
    NotRising,
    /// The bytes of a row's text are not UTF-8.
    NotUtf8,
    /// A row is too short, or its text or data lies outside of it.
    Row,
}

impl ValueError {
    /// The bound in words: the value must be this.
    pub fn bound(&self) -> String {
        match self {
            ValueError::Type { expected, .. } => (*expected).into(),
            ValueError::OutOfRange { lo, hi, .. } => format!("{lo} to {hi}"),
            ValueError::AboveRange { hi, .. } => format!("at most {hi}"),
            ValueError::Negative { .. } => format!("0 to {}", u128::MAX),
            ValueError::FloatOutOfRange { lo, hi, .. } => format!("{} to {}", short(*lo), short(*hi)),
            ValueError::NotFinite { .. } => "a finite number".into(),
            ValueError::TooLong { length, max, unit } => {
                format!("at most {max} {unit}, not {length}")
            }
            ValueError::Length { length, count } => format!("exactly {count} bytes, not {length}"),
            ValueError::InteriorNul { at } => format!("text without NUL, and byte {at} is NUL"),
            ValueError::NotIncreasing { previous, .. } => format!("above {previous}"),
            ValueError::NotAMember { .. } => "a member of the enumeration".into(),
            ValueError::NoDirection => "a direction with a length above 0".into(),
            ValueError::Components { length, count } => format!("{count} numbers, not {length}"),
            ValueError::OutsideArena { count, bytes, arena, .. } if count != bytes => {
                format!(
                    "an offset and a count within the arena of {arena} bytes, and {count} of these are {bytes} bytes"
                )
            }
            ValueError::OutsideArena { arena, .. } => {
                format!("an offset and bytes within the arena of {arena}")
            }
            ValueError::NotRising => "items in rising order without duplicates".into(),
            ValueError::NotUtf8 => "text in UTF-8".into(),
            ValueError::Row => "a row of the schema".into(),
        }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value must be {}", self.bound())?;
        match self {
            ValueError::OutOfRange { value, .. }
            | ValueError::Negative { value }
            | ValueError::NotAMember { value } => write!(f, ", not {value}"),
            ValueError::AboveRange { value, .. } => write!(f, ", not {value}"),
            ValueError::NotIncreasing { current, .. } => write!(f, ", not {current}"),
            ValueError::Type { found, .. } => write!(f, ", not {found}"),
            ValueError::FloatOutOfRange { value, .. } | ValueError::NotFinite { value } => {
                write!(f, ", not {value}")
            }
            _ => Ok(()),
        }
    }
}

impl core::error::Error for ValueError {}

/// Why the parameters of a field or a primitive make no sense.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterError {
    /// A width in bits outside 1..=64.
    Bits { bits: u32 },
    /// A lower bound above the upper one.
    EmptyRange { lo: i128, hi: i128 },
    /// Float bounds that don't span a finite, positive distance in single precision.
    FloatRange { lo: f64, hi: f64 },
    /// A resolution that is not a finite, positive number in single precision, or too fine for the range.
    Resolution { resolution: f64 },
    /// Too many fraction bits.
    FractionBits { bits: u32 },
    /// A fixed-point range with more bits than a float carries exactly.
    FixedRange {
        /// The lower bound, in whole units.
        lo: i64,
        /// The upper bound, in whole units.
        hi: i64,
        fraction_bits: u32,
    },
    /// A maximum length above [`super::MAX_LENGTH`].
    Length { max: u32 },
    /// Bounds and a resolution that don't make steps of doubles.
    Steps { lo: f64, hi: f64, resolution: f64 },
    /// The range of a transform's translations has no step at zero.
    NoZero { lo: f64, hi: f64, resolution: f64 },
    /// A vector of neither 2 nor 3 components.
    Axes { axes: u32 },
    /// A component's width outside [`super::COMPONENT_BITS`].
    ComponentBits { bits: u32 },
    /// An enumeration without members, with more than [`super::MAX_LENGTH`], or with two of one value.
    Members,
    /// No flags, or more than 64.
    Flags { count: usize },
    /// Common values: none, more than two, equal ones, or invalid for their field.
    Common,
    /// Common values of a field whose encoding has no fixed width of 1 to 128 bits.
    NoFixedWidth,
    /// List items without bits: any number of them would take none.
    NoBits,
    /// Set items or map keys without an order: floats, vectors, lists and the like.
    NoOrder,
    /// A union of fewer than two messages, or of more than [`super::MAX_LENGTH`].
    Variants,
    /// An array without slots.
    NoSlots,
    /// A message's lists can take more than [`super::MAX_TAIL_BYTES`] bytes once read.
    Spread {
        /// The bytes they can take.
        bytes: usize,
    },
    /// Parts within parts beyond [`super::MAX_DEPTH`].
    Depth,
    /// A message within a message is refused.
    Nested(Box<super::SchemaError>),
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::Bits { bits } => write!(f, "the width must be 1 to 64 bits, not {bits}"),
            ParameterError::EmptyRange { lo, hi } => {
                write!(f, "low must be at most high ({hi}), not {lo}")
            }
            ParameterError::FloatRange { lo, hi } => {
                let [lo, hi] = [*lo, *hi].map(short);
                write!(f, "low and high must be finite and rising in single precision, not {lo} and {hi}")
            }
            ParameterError::Resolution { resolution } => {
                write!(
                    f,
                    "resolution must be above 0, finite and within single precision of low and high, not {}",
                    short(*resolution)
                )
            }
            ParameterError::FractionBits { bits } => {
                write!(f, "fraction_bits must be 0 to {}, not {bits}", super::MAX_FRACTION_BITS)
            }
            ParameterError::FixedRange { lo, hi, fraction_bits } => {
                write!(
                    f,
                    "values must have at most 53 bits, which a float holds exactly, and {lo} to {hi} with \
                     {fraction_bits} fraction bits have more"
                )
            }
            ParameterError::Length { max } => {
                write!(f, "the maximum length must be at most {}, not {max}", super::MAX_LENGTH)
            }
            ParameterError::Steps { lo, hi, resolution } => {
                let [lo, hi, resolution] = [*lo, *hi, *resolution].map(short);
                write!(
                    f,
                    "low, high and resolution must be finite and make 1 to 2^32 - 1 steps that floats can \
                     distinguish, not {lo} to {hi} in steps of {resolution}"
                )
            }
            ParameterError::NoZero { lo, hi, resolution } => {
                write!(f, "0 must be one of the steps, and is none of {lo} to {hi} in steps of {resolution}")
            }
            ParameterError::Axes { axes } => write!(f, "a vector must have 2 or 3 components, not {axes}"),
            ParameterError::ComponentBits { bits } => {
                let range = super::COMPONENT_BITS;
                write!(f, "a component must take {} to {} bits, not {bits}", range.start(), range.end())
            }
            ParameterError::Members => {
                write!(f, "an enumeration must have 1 to {} members of different values", super::MAX_LENGTH)
            }
            ParameterError::Flags { count } => write!(f, "there must be 1 to 64 flags, not {count}"),
            ParameterError::Nested(error) => error.fmt(f),
            of_parts => of_parts.fmt_parts(f),
        }
    }
}

impl ParameterError {
    /// Writes an error of a field that holds other fields.
    fn fmt_parts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::Common => {
                write!(f, "common values must be one or two different values of the field")
            }
            ParameterError::NoFixedWidth => {
                write!(
                    f,
                    "a field with common values must always take the same bits, 1 to 128: leave common() out"
                )
            }
            ParameterError::NoBits => write!(f, "items of a list must take at least one bit each"),
            ParameterError::NoOrder => write!(
                f,
                "items of a set and keys of a dict must be whole numbers, bool, enums, text or bytes, or tuples of these"
            ),
            ParameterError::Variants => write!(f, "a union must have 2 to {} messages", super::MAX_LENGTH),
            ParameterError::NoSlots => write!(f, "a sparse array must have at least one slot"),
            ParameterError::Spread { bytes } => {
                write!(
                    f,
                    "a message's full lists must be at most {} bytes, not {bytes}: lower their bounds",
                    super::MAX_TAIL_BYTES
                )
            }
            _ => write!(f, "parts within parts must go at most {} deep", super::MAX_DEPTH),
        }
    }
}

impl core::error::Error for ParameterError {}

/// Why fields don't form a schema.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaError {
    /// A field's parameters make no sense.
    Parameter {
        field: String,
        error: ParameterError,
    },
    /// Two fields have one name.
    Duplicate {
        field: String,
    },
    // More than `MAX_FIELDS`.
    TooManyFields,
    /// More than [`super::MAX_PROPERTIES`], of a schema that is sent by mask.
    TooManyProperties {
        /// How many it has.
        count: usize,
    },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchemaError::Parameter { field, error } => write!(f, "field {field:?}: {error}"),
            SchemaError::Duplicate { field } => write!(f, "field {field:?} is declared twice"),
            SchemaError::TooManyFields => {
                write!(f, "a message must have at most {} fields", super::MAX_FIELDS)
            }
            SchemaError::TooManyProperties { count } => write!(
                f,
                "there must be at most {} properties, not {count}: combine some into a message",
                super::MAX_PROPERTIES
            ),
        }
    }
}

impl core::error::Error for SchemaError {}
