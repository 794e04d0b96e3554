//! One stream for writing, reading and measuring, so that a message class describes itself in one function: `health =
//! stream.int(health, 0, 100)` writes, measures or reads, depending on the stream.
//!
//! Promises: all arguments are checked, because they come from the application; a reading stream ignores the values
//! and returns what it read. It owns its data, so a Python object can hold it.
//!
//! Neither side is trusted: parameters are checked in every mode, because a game may have read them from the same
//! bytes, and the reader refuses the rest. A read takes no more memory than its bytes.

use super::value::{double, fixed, narrow, quantizable, single, wide, within};
use super::{
    BitReader, BitSink, BitWriter, FixedPoint, MAX_LENGTH, MAX_RELATIVE, Measure, ParameterError, Quantizer,
    ReadError, ValueError, bit_len,
};
use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

/// Why a stream refused an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamError {
    Read(ReadError),
    /// The value to write.
    Value(ValueError),
    Parameter(ParameterError),
}

impl From<ReadError> for StreamError {
    fn from(error: ReadError) -> Self {
        StreamError::Read(error)
    }
}

impl From<ValueError> for StreamError {
    fn from(error: ValueError) -> Self {
        StreamError::Value(error)
    }
}

impl From<ParameterError> for StreamError {
    fn from(error: ParameterError) -> Self {
        StreamError::Parameter(error)
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Read(error) => error.fmt(f),
            StreamError::Value(error) => error.fmt(f),
            StreamError::Parameter(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for StreamError {}

/// A write, read or measure stream.
#[derive(Clone, Debug)]
pub enum Stream {
    Write(BitWriter),
    Read(Source),
    /// Counts the bits of a write, as an upper bound.
    Measure(Measure),
}

/// The bytes of a reading stream and where it is in them.
#[derive(Clone, Debug)]
pub struct Source {
    data: Arc<[u8]>,
    position: usize,
    end: usize,
}

impl Source {
    fn run<'a, T>(
        &'a mut self,
        read: impl FnOnce(&mut BitReader<'a>) -> Result<T, ReadError>,
    ) -> Result<T, StreamError> {
        let Source { data, position, end } = self;
        let mut reader = BitReader::resume(data, *position, *end);
        let result = read(&mut reader);
        *position = reader.position();
        Ok(result?)
    }
}

/// The action of an operation: put a value somewhere, or take one.
enum Side<'a> {
    Sink(&'a mut dyn BitSink),
    Source(&'a mut Source),
}

impl Stream {
    /// A stream that writes.
    pub fn writing() -> Self {
        Stream::Write(BitWriter::new())
    }

    /// A stream that measures.
    pub fn measuring() -> Self {
        Stream::Measure(Measure::new())
    }

    /// A stream that reads `bits` bits of `data` from bit `start` on, or up to its end.
    pub fn reading(data: impl Into<Arc<[u8]>>, start: usize, bits: usize) -> Self {
        Stream::Read(Source { data: data.into(), position: start, end: start.saturating_add(bits) })
    }

    /// Bits written or measured, or the bit position of the next read (beyond the end after a failure).
    pub fn position(&self) -> usize {
        match self {
            Stream::Write(writer) => writer.bit_len(),
            Stream::Read(source) => source.position,
            Stream::Measure(measure) => measure.bits_bound(),
        }
    }

    /// A boolean, in one bit.
    pub fn flag(&mut self, value: bool) -> Result<bool, StreamError> {
        match self.side() {
            Side::Source(source) => source.run(|r| r.bool()),
            Side::Sink(sink) => {
                sink.bool(value);
                Ok(value)
            }
        }
    }

    /// An unsigned integer of `n` bits.
    pub fn bits(&mut self, value: u64, n: u32) -> Result<u64, StreamError> {
        if !(1..=64).contains(&n) {
            return Err(ParameterError::Bits { bits: n }.into());
        }
        match self.side() {
            Side::Source(source) => source.run(|r| r.bits(n)),
            Side::Sink(_) if bit_len(value) > n => {
                let hi = i128::from(u64::MAX >> (64 - n));
                Err(ValueError::OutOfRange { value: value.into(), lo: 0, hi }.into())
            }
            Side::Sink(sink) => {
                sink.bits(value, n);
                Ok(value)
            }
        }
    }

    /// An integer in `lo..=hi`.
    pub fn int(&mut self, value: i64, lo: i64, hi: i64) -> Result<i64, StreamError> {
        ranged(lo.into(), hi.into())?;
        match self.side() {
            Side::Source(source) => source.run(|r| r.int(lo, hi)),
            Side::Sink(sink) => {
                in_range(value.into(), lo.into(), hi.into())?;
                sink.int(value, lo, hi);
                Ok(value)
            }
        }
    }

    /// An integer in `lo..=hi`, beyond 64 bits. The bits are those of [`int`](Self::int) where both apply.
    pub fn int128(&mut self, value: i128, lo: i128, hi: i128) -> Result<i128, StreamError> {
        ranged(lo, hi)?;
        match self.side() {
            Side::Source(source) => source.run(|r| r.int128(lo, hi)),
            Side::Sink(sink) => {
                in_range(value, lo, hi)?;
                sink.int128(value, lo, hi);
                Ok(value)
            }
        }
    }

    /// An unsigned integer of 128 bits.
    pub fn uint128(&mut self, value: u128) -> Result<u128, StreamError> {
        match self.side() {
            Side::Source(source) => source.run(|r| r.uint128()),
            Side::Sink(sink) => {
                sink.uint128(value);
                Ok(value)
            }
        }
    }

    /// A float in 32 bits.
    pub fn float(&mut self, value: f64) -> Result<f64, StreamError> {
        match self.side() {
            Side::Source(source) => Ok(double(source.run(|r| r.float())?)),
            Side::Sink(sink) => {
                sink.float(single(value)?);
                Ok(value)
            }
        }
    }

    /// A float in 64 bits.
    pub fn double(&mut self, value: f64) -> Result<f64, StreamError> {
        match self.side() {
            Side::Source(source) => source.run(|r| r.double()),
            Side::Sink(sink) => {
                sink.double(value);
                Ok(value)
            }
        }
    }

    /// A float in steps of about `resolution` over `lo..=hi`.
    pub fn quantized(&mut self, value: f64, lo: f64, hi: f64, resolution: f64) -> Result<f64, StreamError> {
        let quantizer = Quantizer::new(lo, hi, resolution)?;
        match self.side() {
            Side::Source(source) => Ok(source.run(|r| r.compressed_float(&quantizer))?.into()),
            Side::Sink(sink) => {
                sink.compressed_float(quantizable(value, &quantizer)?, &quantizer);
                Ok(value)
            }
        }
    }

    /// A fixed-point number of `fraction_bits` binary places in `lo..=hi` whole units. What an `f64` does
    /// not carry exactly is rounded; [`Stream::fixed_raw`] is exact.
    pub fn fixed(&mut self, value: f64, fraction_bits: u32, lo: i64, hi: i64) -> Result<f64, StreamError> {
        let format = FixedPoint::new(fraction_bits, lo, hi)?;
        match self.side() {
            Side::Source(source) => Ok(format.value(source.run(|r| r.fixed(&format))?)),
            Side::Sink(sink) => {
                sink.fixed(fixed(value, &format)?, &format);
                Ok(value)
            }
        }
    }

    /// As [`Stream::fixed`], of a raw integer: the number times two to the power of the binary places.
    pub fn fixed_raw(&mut self, raw: i128, format: &FixedPoint) -> Result<i128, StreamError> {
        match self.side() {
            Side::Source(source) => source.run(|r| r.fixed(format)),
            Side::Sink(sink) => {
                let (lo, hi) = (format.raw_lo(), format.raw_hi());
                if !(lo..=hi).contains(&raw) {
                    let [value, lo, hi] = [raw, lo, hi].map(|raw| format.value(raw));
                    return Err(ValueError::FloatOutOfRange { value, lo, hi }.into());
                }
                sink.fixed(raw, format);
                Ok(raw)
            }
        }
    }

    /// A text of at most `max_bytes` bytes of UTF-8, without NUL; aligned.
    pub fn text<'a>(&'a mut self, value: &'a str, max_bytes: u32) -> Result<&'a str, StreamError> {
        length(max_bytes)?;
        match self.side() {
            Side::Source(source) => source.run(|r| r.string(max_bytes)),
            Side::Sink(sink) => {
                sink.string(narrow(value, max_bytes)?, max_bytes);
                Ok(value)
            }
        }
    }

    /// At most `max_bytes` bytes after their length; aligned.
    pub fn data<'a>(&'a mut self, value: &'a [u8], max_bytes: u32) -> Result<&'a [u8], StreamError> {
        length(max_bytes)?;
        match self.side() {
            Side::Source(source) => source.run(|r| r.data(max_bytes)),
            Side::Sink(sink) => {
                sink.data(within(value, max_bytes)?, max_bytes);
                Ok(value)
            }
        }
    }

    /// Exactly `count` bytes, aligned, without a length.
    pub fn bytes<'a>(&'a mut self, value: &'a [u8], count: u32) -> Result<&'a [u8], StreamError> {
        length(count)?;
        match self.side() {
            Side::Source(source) => source.run(|r| r.bytes(count as usize)),
            Side::Sink(sink) if value.len() == count as usize => {
                sink.bytes(value);
                Ok(value)
            }
            Side::Sink(_) => Err(ValueError::Length { length: value.len(), count }.into()),
        }
    }

    /// A text of at most `max_units` UTF-16 units, without NUL, in 32 bits each; not aligned.
    pub fn wide_text<'a>(&mut self, value: &'a str, max_units: u32) -> Result<Cow<'a, str>, StreamError> {
        length(max_units)?;
        match self.side() {
            Side::Source(source) => Ok(source.run(|r| r.wstring(max_units))?.into()),
            Side::Sink(sink) => {
                sink.wstring(wide(value, max_units)?, max_units);
                Ok(value.into())
            }
        }
    }

    /// A number above `previous`, both in `0..=`[`MAX_RELATIVE`]: few bits when it is near.
    pub fn relative(&mut self, previous: u32, value: u32) -> Result<u32, StreamError> {
        in_range(previous.into(), 0, MAX_RELATIVE.into())?;
        match self.side() {
            Side::Source(source) => source.run(|r| r.int_relative(previous)),
            Side::Sink(sink) => {
                in_range(value.into(), 0, MAX_RELATIVE.into())?;
                if value <= previous {
                    return Err(ValueError::NotIncreasing { previous, current: value }.into());
                }
                sink.int_relative(previous, value);
                Ok(value)
            }
        }
    }

    /// A sequence number after `previous`, counting across the wrap, and not equal to it.
    pub fn sequence_relative(&mut self, previous: u16, value: u16) -> Result<u16, StreamError> {
        match self.side() {
            Side::Source(source) => source.run(|r| r.sequence_relative(previous)),
            Side::Sink(_) if previous == value => {
                let (previous, current) = (previous.into(), value.into());
                Err(ValueError::NotIncreasing { previous, current }.into())
            }
            Side::Sink(sink) => {
                sink.sequence_relative(previous, value);
                Ok(value)
            }
        }
    }

    /// Zero bits up to the next byte boundary.
    pub fn align(&mut self) -> Result<(), StreamError> {
        match self.side() {
            Side::Source(source) => source.run(|r| r.align()),
            Side::Sink(sink) => {
                sink.align();
                Ok(())
            }
        }
    }

    /// Ends a strict read: the bits left must be the zero padding of the last byte. Nothing to do when writing.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        match self.side() {
            Side::Source(source) => source.run(|r| r.clone().finish()),
            Side::Sink(_) => Ok(()),
        }
    }

    fn side(&mut self) -> Side<'_> {
        match self {
            Stream::Write(writer) => Side::Sink(writer),
            Stream::Measure(measure) => Side::Sink(measure),
            Stream::Read(source) => Side::Source(source),
        }
    }
}

fn ranged(lo: i128, hi: i128) -> Result<(), ParameterError> {
    if lo > hi { Err(ParameterError::EmptyRange { lo, hi }) } else { Ok(()) }
}

fn in_range(value: i128, lo: i128, hi: i128) -> Result<(), ValueError> {
    if (lo..=hi).contains(&value) { Ok(()) } else { Err(ValueError::OutOfRange { value, lo, hi }) }
}

fn length(max: u32) -> Result<(), ParameterError> {
    if max > MAX_LENGTH { Err(ParameterError::Length { max }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message class's one function, over every operation; returns the final values.
    fn serialize(stream: &mut Stream, v: i64, text: &str) -> Result<String, StreamError> {
        let mut seen = Vec::new();
        seen.push(stream.flag(v > 0)?.to_string());
        seen.push(stream.bits(v.unsigned_abs(), 7)?.to_string());
        seen.push(stream.int(v, -100, 100)?.to_string());
        seen.push(stream.int128(v.into(), i128::MIN, i128::MAX)?.to_string());
        seen.push(stream.uint128(v.unsigned_abs().into())?.to_string());
        seen.push(stream.float(v as f64 / 2.0)?.to_string());
        seen.push(stream.double(v as f64 / 4.0)?.to_string());
        seen.push(stream.quantized(v as f64, -128.0, 128.0, 1.0)?.to_string());
        seen.push(stream.fixed(v as f64 / 8.0, 4, -20, 20)?.to_string());
        seen.push(stream.text(text, 20)?.to_owned());
        seen.push(stream.wide_text(text, 20)?.into_owned());
        seen.push(format!("{:?}", stream.data(text.as_bytes(), 20)?));
        seen.push(stream.relative(5, 6 + v.unsigned_abs() as u32)?.to_string());
        seen.push(stream.sequence_relative(65_535, 3)?.to_string());
        stream.align()?;
        seen.push(format!("{:?}", stream.bytes(&[v as u8; 3], 3)?));
        Ok(seen.join(" "))
    }

    #[test]
    fn one_function_writes_measures_and_reads() {
        for (v, text) in [(-77, "Grüße 🎲"), (0, ""), (100, "x")] {
            let (mut write, mut measure) = (Stream::writing(), Stream::measuring());
            let written = serialize(&mut write, v, text).unwrap();
            assert_eq!(serialize(&mut measure, v, text).as_ref(), Ok(&written));
            assert!(measure.position() >= write.position());
            let Stream::Write(writer) = write else { unreachable!() };
            let bits = writer.bit_len();
            let mut read = Stream::reading(writer.into_bytes(), 0, bits);
            assert_eq!(serialize(&mut read, 1, "ignored"), Ok(written));
            assert_eq!(read.position(), bits);
        }
    }

    #[test]
    fn a_callers_mistake_names_value_and_bound() {
        for mut stream in [Stream::writing(), Stream::measuring()] {
            let message = |result: Result<i64, StreamError>| result.unwrap_err().to_string();
            assert_eq!(message(stream.int(70, 0, 63)), "value must be 0 to 63, not 70");
            assert_eq!(message(stream.int(1, 2, 1)), "low must be at most high (1), not 2");
            assert_eq!(message(stream.bits(8, 3).map(|_| 0)), "value must be 0 to 7, not 8");
            assert_eq!(message(stream.bits(0, 0).map(|_| 0)), "the width must be 1 to 64 bits, not 0");
            assert_eq!(message(stream.relative(5, 5).map(i64::from)), "value must be above 5, not 5");
            assert_eq!(
                message(stream.sequence_relative(5, 5).map(i64::from)),
                "value must be above 5, not 5"
            );
            let beyond = "value must be 0 to 2147483647, not 2147483648";
            assert_eq!(message(stream.relative(5, 1 << 31).map(i64::from)), beyond);
            assert_eq!(message(stream.relative(1 << 31, 5).map(i64::from)), beyond);
            assert_eq!(message(stream.bytes(b"ab", 3).map(|_| 0)), "value must be exactly 3 bytes, not 2");
            assert!(stream.text("a\0b", 9).is_err() && stream.text("abc", 2).is_err());
            assert!(stream.quantized(f64::NAN, 0.0, 1.0, 0.1).is_err());
            assert!(stream.quantized(0.0, 0.0, 1.0, 0.0).is_err());
            assert_eq!(stream.position(), 0, "a refused value leaves no bits");
        }
    }

    #[test]
    fn a_failed_read_ends_the_stream() {
        let mut stream = Stream::reading(vec![0xFF; 8], 3, 30);
        assert_eq!(stream.bits(0, 30), Ok((1 << 30) - 1));
        let past_end = ReadError::PastEnd { needed: 1, remaining: 0 };
        assert_eq!(stream.flag(true), Err(past_end.into()));
        assert_eq!(stream.int(3, 3, 3), Err(ReadError::Failed.into()));
    }
}
