//! Packets of fixed parts: each is declared once, as its parts in their order, and written, measured and read by that.
//!
//! Promises: what was written is read back, and what can't have been written is refused. Memory is in proportion to what
//! is read. Bits after the last part are left to the caller.

use core::net::{IpAddr, SocketAddr};

use super::{BitReader, BitSink, BitWriter, Measure, ReadError};

/// A part of a packet, and how its value is coded: in a bit at least, so that a count of them is bounded by the packet.
pub trait Part {
    /// The Rust type of its values.
    type Value;

    /// Writes a value. The caller ensures that the part can have it.
    fn write<S: BitSink>(value: &Self::Value, sink: &mut S);

    /// Reads a value.
    ///
    /// # Errors
    /// The packet ends too early, or the part can't have this value.
    fn read(reader: &mut BitReader<'_>) -> Result<Self::Value, ReadError>;

    /// The bits that a value takes.
    fn bits(value: &Self::Value) -> usize {
        let mut measure = Measure::new();
        Self::write(value, &mut measure);
        measure.bits_bound()
    }
}

/// The bytes of a packet that has this value.
pub fn to_bytes<P: Part>(value: &P::Value) -> Vec<u8> {
    let mut writer = BitWriter::new();
    P::write(value, &mut writer);
    writer.into_bytes()
}

/// The value of a packet that is exactly these bytes.
///
/// # Errors
/// The bytes are no such packet, or more bytes follow.
pub fn from_bytes<P: Part>(bytes: &[u8]) -> Result<P::Value, ReadError> {
    let mut reader = BitReader::new(bytes);
    let value = P::read(&mut reader)?;
    reader.finish().map(|()| value)
}

/// A number of 0 up to `last` at most, read as `number`.
pub(crate) fn at_most(number: u64, last: u64) -> Result<u64, ReadError> {
    if number <= last { Ok(number) } else { Err(ReadError::OutOfRange { offset: number, span: last }) }
}

macro_rules! integers {
    ($($Integer:ty, $Bits:ty;)*) => { $(
        /// The integer in its full width.
        impl Part for $Integer {
            type Value = $Integer;

            fn write<S: BitSink>(value: &$Integer, sink: &mut S) {
                sink.bits(u64::from(*value as $Bits), <$Integer>::BITS);
            }

            fn read(reader: &mut BitReader<'_>) -> Result<$Integer, ReadError> {
                Ok(reader.bits(<$Integer>::BITS)? as $Integer)
            }
        }

        /// The integer in `BITS` bits, which hold every value of the part.
        impl<const BITS: u32> Part for Low<$Integer, BITS> {
            type Value = $Integer;

            fn write<S: BitSink>(value: &$Integer, sink: &mut S) {
                sink.bits(u64::from(*value as $Bits), BITS);
            }

            fn read(reader: &mut BitReader<'_>) -> Result<$Integer, ReadError> {
                Ok(reader.bits(BITS)? as $Integer)
            }
        }
    )* };
}

integers! { u8, u8; u16, u16; u32, u32; u64, u64; i8, u8; i16, u16; i32, u32; i64, u64; }

/// An integer in this many bits; not below zero.
pub struct Low<T, const BITS: u32>(T);

/// An integer in this many bits, from 1 on.
pub struct FromOne<const BITS: u32>;

impl<const BITS: u32> Part for FromOne<BITS> {
    type Value = u8;

    fn write<S: BitSink>(value: &u8, sink: &mut S) {
        const { assert!(BITS < u8::BITS, "the largest value fits a byte") };
        debug_assert!(*value > 0, "from 1 on");
        sink.bits(u64::from(value.saturating_sub(1)), BITS);
    }

    fn read(reader: &mut BitReader<'_>) -> Result<u8, ReadError> {
        Ok(reader.bits(BITS)? as u8 + 1)
    }
}

/// A number below this, in a byte.
pub struct Below<const END: usize>;

impl<const END: usize> Part for Below<END> {
    type Value = u8;

    fn write<S: BitSink>(value: &u8, sink: &mut S) {
        u8::write(value, sink);
    }

    fn read(reader: &mut BitReader<'_>) -> Result<u8, ReadError> {
        at_most(reader.bits(8)?, END as u64 - 1).map(|number| number as u8)
    }
}

impl Part for bool {
    type Value = bool;

    fn write<S: BitSink>(value: &bool, sink: &mut S) {
        sink.bool(*value);
    }

    fn read(reader: &mut BitReader<'_>) -> Result<bool, ReadError> {
        reader.bool()
    }
}

/// A bit, and the value if that is set.
impl<P: Part> Part for Option<P> {
    type Value = Option<P::Value>;

    fn write<S: BitSink>(value: &Self::Value, sink: &mut S) {
        sink.bool(value.is_some());
        value.iter().for_each(|value| P::write(value, sink));
    }

    fn read(reader: &mut BitReader<'_>) -> Result<Self::Value, ReadError> {
        if reader.bool()? { P::read(reader).map(Some) } else { Ok(None) }
    }
}

/// A bit, and the value if that is set; without, it is the default one.
pub struct OrDefault<P>(P);

impl<P: Part<Value: Default + PartialEq>> Part for OrDefault<P> {
    type Value = P::Value;

    fn write<S: BitSink>(value: &Self::Value, sink: &mut S) {
        let is_other = *value != P::Value::default();
        sink.bool(is_other);
        if is_other {
            P::write(value, sink);
        }
    }

    fn read(reader: &mut BitReader<'_>) -> Result<Self::Value, ReadError> {
        if !reader.bool()? {
            return Ok(P::Value::default());
        }
        let value = P::read(reader)?;
        if value == P::Value::default() { Err(ReadError::NotShortest) } else { Ok(value) }
    }
}

impl<const N: usize> Part for [u8; N] {
    type Value = [u8; N];

    fn write<S: BitSink>(value: &[u8; N], sink: &mut S) {
        sink.packed(value);
    }

    fn read(reader: &mut BitReader<'_>) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = u8::read(reader)?;
        }
        Ok(bytes)
    }
}

/// `N` values, without a count.
pub struct Array<P, const N: usize>(P);

impl<P: Part, const N: usize> Part for Array<P, N> {
    type Value = [P::Value; N];

    fn write<S: BitSink>(value: &Self::Value, sink: &mut S) {
        value.iter().for_each(|one| P::write(one, sink));
    }

    fn read(reader: &mut BitReader<'_>) -> Result<Self::Value, ReadError> {
        let values: Vec<P::Value> = (0..N).map(|_| P::read(reader)).collect::<Result<_, _>>()?;
        values.try_into().map_err(|_| ReadError::Failed)
    }
}

macro_rules! tuples {
    ($(($($Part:ident $value:ident),*))*) => { $(
        impl<$($Part: Part),*> Part for ($($Part,)*) {
            type Value = ($($Part::Value,)*);

            fn write<S: BitSink>(($($value,)*): &Self::Value, sink: &mut S) {
                $($Part::write($value, sink);)*
            }

            fn read(reader: &mut BitReader<'_>) -> Result<Self::Value, ReadError> {
                Ok(($($Part::read(reader)?,)*))
            }
        }
    )* };
}

tuples! { (A a, B b) (A a, B b, C c) (A a, B b, C c, D d) }

/// Up to `MAX` values after their count, which has `COUNT_BITS` bits.
pub struct Counted<P, const COUNT_BITS: u32, const MAX: usize>(P);

impl<P: Part, const COUNT_BITS: u32, const MAX: usize> Part for Counted<P, COUNT_BITS, MAX> {
    type Value = Vec<P::Value>;

    fn write<S: BitSink>(value: &Self::Value, sink: &mut S) {
        debug_assert!(value.len() <= MAX, "{} of {MAX}", value.len());
        sink.bits(value.len() as u64, COUNT_BITS);
        value.iter().for_each(|one| P::write(one, sink));
    }

    fn read(reader: &mut BitReader<'_>) -> Result<Self::Value, ReadError> {
        let count = at_most(reader.bits(COUNT_BITS)?, MAX as u64)?;
        (0..count).map(|_| P::read(reader)).collect()
    }
}

/// [`Counted`], and at least one of them.
pub struct AtLeastOne<P, const COUNT_BITS: u32, const MAX: usize>(P);

impl<P: Part, const COUNT_BITS: u32, const MAX: usize> Part for AtLeastOne<P, COUNT_BITS, MAX> {
    type Value = Vec<P::Value>;

    fn write<S: BitSink>(value: &Self::Value, sink: &mut S) {
        Counted::<P, COUNT_BITS, MAX>::write(value, sink);
    }

    fn read(reader: &mut BitReader<'_>) -> Result<Self::Value, ReadError> {
        let values = Counted::<P, COUNT_BITS, MAX>::read(reader)?;
        if values.is_empty() { Err(ReadError::NotShortest) } else { Ok(values) }
    }
}

/// Up to `MAX` bytes after their count.
pub type Bytes<const COUNT_BITS: u32, const MAX: usize> = Counted<u8, COUNT_BITS, MAX>;

/// Up to `MAX` bytes of UTF-8 after their count; without NUL.
pub struct Text<const COUNT_BITS: u32, const MAX: usize>;

impl<const COUNT_BITS: u32, const MAX: usize> Part for Text<COUNT_BITS, MAX> {
    type Value = String;

    fn write<S: BitSink>(value: &String, sink: &mut S) {
        debug_assert!(value.len() <= MAX, "{} of {MAX}", value.len());
        sink.bits(value.len() as u64, COUNT_BITS);
        sink.packed(value.as_bytes());
    }

    fn read(reader: &mut BitReader<'_>) -> Result<String, ReadError> {
        let text = String::from_utf8(Bytes::<COUNT_BITS, MAX>::read(reader)?).map_err(|_| ReadError::Utf8)?;
        if text.contains('\0') { Err(ReadError::InteriorNul) } else { Ok(text) }
    }
}

/// A bit for the family, the IP address and the port.
impl Part for SocketAddr {
    type Value = SocketAddr;

    fn write<S: BitSink>(value: &SocketAddr, sink: &mut S) {
        sink.bool(value.is_ipv6());
        match value.ip() {
            IpAddr::V4(ip) => sink.packed(&ip.octets()),
            IpAddr::V6(ip) => sink.packed(&ip.octets()),
        }
        u16::write(&value.port(), sink);
    }

    fn read(reader: &mut BitReader<'_>) -> Result<SocketAddr, ReadError> {
        let ip: IpAddr =
            if reader.bool()? { <[u8; 16]>::read(reader)?.into() } else { <[u8; 4]>::read(reader)?.into() };
        Ok(SocketAddr::new(ip, u16::read(reader)?))
    }
}

/// Declares a packet, or a part of one: a struct of parts, an enum of such, or an enum of names with numbers. Fields have
/// the values of their parts.
macro_rules! packet {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $Part:ty),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $Name {
            $($(#[$field_meta])* $field_vis $field: <$Part as $crate::wire::packet::Part>::Value),*
        }

        impl $crate::wire::packet::Part for $Name {
            type Value = Self;

            fn write<S: $crate::wire::BitSink>(value: &Self, sink: &mut S) {
                $(<$Part as $crate::wire::packet::Part>::write(&value.$field, sink);)*
            }

            fn read(reader: &mut $crate::wire::BitReader<'_>) -> Result<Self, $crate::wire::ReadError> {
                $(let $field = <$Part as $crate::wire::packet::Part>::read(reader)?;)*
                Ok($Name { $($field),* })
            }
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident as $Kind:ty {
            $(
                $(#[$variant_meta:meta])*
                $number:literal => $Variant:ident
                    $(($whole:ident: $Whole:ty))?
                    $({ $($(#[$field_meta:meta])* $field:ident: $Part:ty),* $(,)? })?
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis enum $Name {
            $(
                $(#[$variant_meta])*
                $Variant
                    $((<$Whole as $crate::wire::packet::Part>::Value))?
                    $({ $($(#[$field_meta])* $field: <$Part as $crate::wire::packet::Part>::Value),* })?
            ),*
        }

        impl $crate::wire::packet::Part for $Name {
            type Value = Self;

            fn write<S: $crate::wire::BitSink>(value: &Self, sink: &mut S) {
                match value {
                    $($Name::$Variant $(($whole))? $({ $($field),* })? => {
                        <$Kind as $crate::wire::packet::Part>::write(&$number, sink);
                        $(<$Whole as $crate::wire::packet::Part>::write($whole, sink);)?
                        $($(<$Part as $crate::wire::packet::Part>::write($field, sink);)*)?
                    })*
                }
            }

            fn read(reader: &mut $crate::wire::BitReader<'_>) -> Result<Self, $crate::wire::ReadError> {
                Ok(match <$Kind as $crate::wire::packet::Part>::read(reader)? {
                    $($number => {
                        $(let $whole = <$Whole as $crate::wire::packet::Part>::read(reader)?;)?
                        $($(let $field = <$Part as $crate::wire::packet::Part>::read(reader)?;)*)?
                        $Name::$Variant $(($whole))? $({ $($field),* })?
                    })*
                    other => return Err($crate::wire::ReadError::Unknown { number: other.into() }),
                })
            }
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident: $Kind:ty {
            $($(#[$variant_meta:meta])* $Variant:ident = $number:literal),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $Name {
            $($(#[$variant_meta])* $Variant = $number),*
        }

        impl $Name {
            /// Every variant, in the order of their numbers.
            $vis const ALL: &[$Name] = &[$($Name::$Variant),*];

            /// The variant with this number.
            $vis fn from_number(number: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| *one as u8 == number)
            }
        }

        impl $crate::wire::packet::Part for $Name {
            type Value = Self;

            fn write<S: $crate::wire::BitSink>(value: &Self, sink: &mut S) {
                <$Kind as $crate::wire::packet::Part>::write(&(*value as u8), sink);
            }

            fn read(reader: &mut $crate::wire::BitReader<'_>) -> Result<Self, $crate::wire::ReadError> {
                let number = <$Kind as $crate::wire::packet::Part>::read(reader)?;
                Self::from_number(number).ok_or($crate::wire::ReadError::Unknown { number: number.into() })
            }
        }
    };
}

pub(crate) use packet;

#[cfg(test)]
#[allow(dead_code)] // Nothing asks for all fruit.
mod tests {
    use super::*;
    use crate::rng::Rng;

    packet! {
        #[derive(Clone, Debug, Default, PartialEq)]
        struct Pair { first: Low<u8, 3>, second: Option<i16> }
    }

    packet! {
        enum Fruit: Low<u8, 4> { Apple = 0, Pear = 3 }
    }

    packet! {
        #[derive(Clone, Debug, PartialEq)]
        enum Word as u8 {
            0 => Nothing,
            1 => Basket { fruit: Counted<Fruit, 2, 2>, of: Below<16>, speed: FromOne<6> },
            2 => Whole(pair: OrDefault<Pair>),
            7 => Letter { text: Text<8, 20>, to: SocketAddr, pair: Pair, key: [u8; 3], more: (bool, u64) },
        }
    }

    fn written(word: &Word) -> (Vec<u8>, usize) {
        let mut writer = BitWriter::new();
        Word::write(word, &mut writer);
        let bits = writer.bit_len();
        (writer.into_bytes(), bits)
    }

    fn words() -> [Word; 6] {
        let pair = Pair { first: 5, second: Some(-3) };
        let letter = |to: &str, text: &str| Word::Letter {
            text: text.into(),
            to: to.parse().unwrap(),
            pair: pair.clone(),
            key: [1, 2, 3],
            more: (true, u64::MAX),
        };
        [
            Word::Nothing,
            Word::Basket { fruit: vec![Fruit::Pear, Fruit::Apple], of: 15, speed: 64 },
            Word::Whole(pair.clone()),
            Word::Whole(Pair::default()),
            letter("1.2.3.4:5", "héllo"),
            letter("[::1]:65535", ""),
        ]
    }

    #[test]
    fn what_is_written_is_measured_and_read_back() {
        for word in words() {
            let (bytes, bits) = written(&word);
            assert_eq!(Word::bits(&word), bits);
            let mut reader = BitReader::new(&bytes);
            assert_eq!(Word::read(&mut reader), Ok(word));
            assert_eq!(reader.finish(), Ok(()));
            for end in 0..bits {
                assert!(Word::read(&mut BitReader::with_range(&bytes, 0, end)).is_err());
            }
        }
    }

    #[test]
    fn what_cannot_have_been_written_is_refused() {
        let read = |bytes: &[u8]| Word::read(&mut BitReader::new(bytes));
        assert_eq!(read(&[3]), Err(ReadError::Unknown { number: 3 }), "no such word");
        assert_eq!(read(&[1, 3, 0, 0]), Err(ReadError::OutOfRange { offset: 3, span: 2 }), "too many");
        assert_eq!(read(&[1, 1 | 1 << 2, 0, 0]), Err(ReadError::Unknown { number: 1 }), "no such fruit");
        assert_eq!(read(&[1, 16 << 2, 0]), Err(ReadError::OutOfRange { offset: 16, span: 15 }));
        assert_eq!(read(&[7, 21]), Err(ReadError::OutOfRange { offset: 21, span: 20 }));
        assert_eq!(read(&[7, 1, 0xFF]), Err(ReadError::Utf8));
        assert_eq!(read(&[7, 1, 0]), Err(ReadError::InteriorNul));
    }

    #[test]
    fn mutated_packets_are_refused_or_read_as_they_would_be_written() {
        let mut rng = Rng::seeded(3);
        for _ in 0..5_000 {
            let word = &words()[rng.below(6) as usize];
            let (mut bytes, _) = written(word);
            let place = rng.below(bytes.len() as u64) as usize;
            bytes[place] ^= 1 << rng.below(8);
            let mut reader = BitReader::new(&bytes);
            if let Ok(word) = Word::read(&mut reader)
                && reader.finish().is_ok()
            {
                assert_eq!(written(&word).0, bytes);
            }
        }
    }
}
