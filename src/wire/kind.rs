//! What a field of a message class is declared as.

use core::fmt;

use super::{ParameterError, Steps};

/// The contents of a field and how they are written.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Bool,
    /// A bool of an input that is true in one tick only, however often the input is repeated.
    Press,
    /// An unsigned integer of 1..=64 bits.
    Bits {
        bits: u32,
    },
    /// An integer in `lo..=hi`, in the bits that `hi - lo` takes; none when `lo == hi`.
    Ranged {
        lo: i128,
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
        lo: f64,
        hi: f64,
        resolution: f64,
    },
    /// A fixed-point number in `lo..=hi` whole units, at most what an `f64` carries exactly.
    Fixed {
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
    /// Bytes after their length, aligned.
    Data {
        /// The largest length in bytes.
        max_bytes: u32,
    },
    /// This many bytes, aligned, without their length.
    Raw {
        bytes: u32,
    },
    /// Text without NUL in 32 bits a UTF-16 unit, not aligned.
    WideText {
        /// The largest length in UTF-16 units.
        max_units: u32,
    },
    /// One of the integers of an enumeration, in the bits that tell its members apart.
    Enum {
        /// Names and values, rising by value.
        members: Vec<(String, i64)>,
    },
    /// Booleans as the bits of one integer, the first lowest.
    Flags {
        /// A name for each.
        names: Vec<String>,
    },
    /// A number on a circle from `lo` to `hi`, which is `lo` again; others come round.
    Angle {
        lo: f64,
        hi: f64,
        resolution: f64,
    },
    /// A vector of numbers in `lo..=hi`, each in equal steps.
    Vector {
        /// Components, 2 or 3.
        axes: u32,
        lo: f64,
        hi: f64,
        resolution: f64,
    },
    /// A unit vector in space, on an unfolded octahedron.
    Direction {
        /// Bits of each of two components.
        bits: u32,
    },
    /// A rotation as a quaternion (x, y, z, w), by its three smallest components.
    Rotation {
        /// Bits of each of them.
        bits: u32,
    },
    /// A rotation as a quaternion: x, y and z in 16 bits each and the sign of w, as the book has it.
    SignedRotation,
    /// A translation, a rotation and a scale.
    Transform {
        /// The lower bound of translations.
        lo: f64,
        hi: f64,
        resolution: f64,
        /// Bits of each component of the rotation.
        bits: u32,
    },
    /// A field with one or two values that cost a bit or two.
    Common {
        item: Box<Kind>,
        /// The encodings of the common ones.
        words: Vec<u128>,
    },
    /// A value or none.
    Optional(Box<Kind>),
    /// Up to this many values.
    List {
        max: u32,
        item: Box<Kind>,
    },
    /// Values of some of this many slots.
    Sparse {
        /// How many slots there are.
        slots: u32,
        item: Box<Kind>,
    },
    /// Up to this many different values, in their order.
    Set {
        max: u32,
        item: Box<Kind>,
    },
    /// Up to this many values by key, in the order of the keys.
    Map {
        max: u32,
        /// What the keys are.
        key: Box<Kind>,
        /// What each value is.
        item: Box<Kind>,
    },
    /// One of several messages.
    Union {
        /// Their names and kinds.
        variants: Vec<(String, Kind)>,
    },
    /// The fields of another message.
    Nested {
        /// Their names and kinds.
        fields: Vec<(String, Kind)>,
    },
}

impl Kind {
    /// The path, behind the field's name, of a press that is neither plain nor in nested messages alone.
    pub(super) fn misplaced_press(&self) -> Option<String> {
        match self {
            Kind::Press => None,
            Kind::Nested { fields } => {
                fields.iter().find_map(|(name, kind)| Some(format!(".{name}{}", kind.misplaced_press()?)))
            }
            kind => kind.has_press().then(String::new),
        }
    }

    fn has_press(&self) -> bool {
        match self {
            Kind::Press => true,
            Kind::Common { item, .. }
            | Kind::Optional(item)
            | Kind::List { item, .. }
            | Kind::Sparse { item, .. }
            | Kind::Set { item, .. } => item.has_press(),
            Kind::Map { key, item, .. } => key.has_press() || item.has_press(),
            Kind::Union { variants: parts } | Kind::Nested { fields: parts } => {
                parts.iter().any(|(_, kind)| kind.has_press())
            }
            _ => false,
        }
    }
}

/// The bounds in hex and the last step of what [`Steps`] makes of parameters; nothing when it refuses them.
fn steps(steps: Result<Steps, ParameterError>) -> String {
    steps.map_or_else(
        |_| String::new(),
        |steps| {
            let (lo, hi) = steps.bounds();
            format!("{:016x},{:016x},{}", lo.to_bits(), hi.to_bits(), steps.last())
        },
    )
}

/// Writes items with commas between them.
fn joined<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    write: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        f.write_str(if i > 0 { "," } else { "" })?;
        write(f, item)?;
    }
    Ok(())
}

impl fmt::Display for Kind {
    /// The canonical form from which [`super::Schema::describe`] is built. The parameters of a quantized float are
    /// given in the form that is used: the patterns of their singles, in hex. Steps are given by the patterns of
    /// their bounds and the last one's number. Names follow their length in bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // A press differs only in who keeps it, not on the wire.
            Kind::Bool | Kind::Press => write!(f, "bool"),
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
            Kind::Raw { bytes } => write!(f, "raw({bytes})"),
            Kind::WideText { max_units } => write!(f, "wide({max_units})"),
            Kind::Enum { ref members } => {
                f.write_str("enum(")?;
                joined(f, members, |f, (name, value)| write!(f, "{}:{name}={value}", name.len()))?;
                f.write_str(")")
            }
            Kind::Flags { ref names } => {
                f.write_str("flags(")?;
                joined(f, names, |f, name| write!(f, "{}:{name}", name.len()))?;
                f.write_str(")")
            }
            Kind::Angle { lo, hi, resolution } => {
                write!(f, "angle({})", steps(Steps::circle(lo, hi, resolution)))
            }
            Kind::Vector { axes, lo, hi, resolution } => {
                write!(f, "vector({axes},{})", steps(Steps::range(lo, hi, resolution)))
            }
            Kind::Direction { bits } => write!(f, "direction({bits})"),
            Kind::Rotation { bits } => write!(f, "rotation({bits})"),
            Kind::SignedRotation => write!(f, "rotation"),
            Kind::Transform { lo, hi, resolution, bits } => {
                write!(f, "transform({},{bits})", steps(Steps::range(lo, hi, resolution)))
            }
            Kind::Common { ref item, ref words } => {
                write!(f, "common({item},")?;
                joined(f, words, |f, word| write!(f, "{word:x}"))?;
                f.write_str(")")
            }
            Kind::Optional(ref item) => write!(f, "optional({item})"),
            Kind::List { max, ref item } => write!(f, "list({max},{item})"),
            Kind::Sparse { slots, ref item } => write!(f, "sparse({slots},{item})"),
            Kind::Set { max, ref item } => write!(f, "set({max},{item})"),
            Kind::Map { max, ref key, ref item } => write!(f, "map({max},{key},{item})"),
            Kind::Union { variants: ref parts } | Kind::Nested { fields: ref parts } => {
                f.write_str(if let Kind::Union { .. } = self { "union(" } else { "message(" })?;
                joined(f, parts, |f, (name, kind)| write!(f, "{}:{name} {kind}", name.len()))?;
                f.write_str(")")
            }
        }
    }
}
