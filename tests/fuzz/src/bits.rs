//! Every read of the bit reader, in any order, over any bytes. What is read can be written, and is then read again.

use tickwire::wire::{BitReader, BitSink, BitWriter, FixedPoint, Measure, Quantizer};

use super::input::Input;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let program = input.piece();
    let bytes = input.rest();
    let start = bytes.first().map_or(0, |byte| usize::from(byte % 16)).min(bytes.len() * 8);
    let mut reader = BitReader::with_range(bytes, start, bytes.len() * 8 - start);
    let mut writer = BitWriter::new();
    let mut measure = Measure::new();
    let read = read(program, &mut reader, &mut writer);
    assert!(
        read.len() < program.len() || reader.position() <= bytes.len() * 8,
        "beyond the end only after a failure"
    );
    let _said_by_the_last_bits = reader.finish();
    assert!(
        writer.bit_len() <= bytes.len() * 8 + 8 * program.len(),
        "aligns are the only bits that are added"
    );
    let measured =
        self::read(program, &mut BitReader::with_range(bytes, start, bytes.len() * 8 - start), &mut measure);
    assert_eq!(measured, read);
    assert!(measure.bits_bound() >= writer.bit_len());
    let written = writer.into_bytes();
    let mut again = BitReader::new(&written);
    assert_eq!(self::read(&program[..read.len()], &mut again, &mut BitWriter::new()), read);
}

/// Follows the program until it is over or a read is refused, and writes what it reads. Gives a word for each read.
fn read<S: BitSink>(program: &[u8], reader: &mut BitReader<'_>, out: &mut S) -> Vec<u128> {
    let mut words = Vec::new();
    for op in program {
        let Some(word) = step(*op, reader, out) else { break };
        words.push(word);
    }
    words
}

fn step<S: BitSink>(op: u8, reader: &mut BitReader<'_>, out: &mut S) -> Option<u128> {
    let (kind, size) = (op % 17, u32::from(op / 17));
    Some(match kind {
        0 => {
            let bits = 1 + size * 4;
            let value = reader.bits(bits).ok()?;
            out.bits(value, bits);
            value.into()
        }
        1 => {
            let value = reader.bool().ok()?;
            out.bool(value);
            value.into()
        }
        2 => {
            let (lo, hi) = (-(1i64 << (size * 4)), (1i64 << (size * 3)) + 5);
            let value = reader.int(lo, hi).ok()?;
            assert!((lo..=hi).contains(&value));
            out.int(value, lo, hi);
            value as u128
        }
        3 => {
            let (lo, hi) = (-(1i128 << (size * 8)), (1i128 << (size * 7)) + 9);
            let value = reader.int128(lo, hi).ok()?;
            assert!((lo..=hi).contains(&value));
            out.int128(value, lo, hi);
            value as u128
        }
        4 => {
            let value = reader.uint128().ok()?;
            out.uint128(value);
            value
        }
        5 => {
            let format = FixedPoint::new(size, -100, 1000).ok()?;
            let value = reader.fixed(&format).ok()?;
            out.fixed(value, &format);
            value as u128
        }
        6 => {
            let value = reader.float().ok()?;
            out.float(value);
            value.to_bits().into()
        }
        7 => {
            let value = reader.double().ok()?;
            out.double(value);
            value.to_bits().into()
        }
        8 => {
            let quantizer = Quantizer::new(-10.0, 10.0, 0.01).ok()?;
            let value = reader.compressed_float(&quantizer).ok()?;
            assert!((-10.0..=10.0).contains(&value));
            out.compressed_float(value, &quantizer);
            value.to_bits().into()
        }
        9 => {
            reader.align().ok()?;
            out.align();
            0
        }
        10 => {
            let value = reader.bytes(size as usize).ok()?;
            out.bytes(value);
            sum(value)
        }
        11 => {
            let value = reader.string(size * 9).ok()?;
            out.string(value, size * 9);
            sum(value.as_bytes())
        }
        12 => {
            let value = reader.data(size * 9).ok()?;
            out.data(value, size * 9);
            sum(value)
        }
        13 => {
            let value = reader.wstring(size * 3).ok()?;
            out.wstring(&value, size * 3);
            sum(value.as_bytes())
        }
        14 => {
            let previous = size << 20;
            let value = reader.int_relative(previous).ok()?;
            out.int_relative(previous, value);
            value.into()
        }
        15 => {
            let previous = (size << 12) as u16;
            // The standard's reader takes the low 16 bits of a whole lap too, which nothing writes.
            let value = reader.sequence_relative(previous).ok().filter(|value| *value != previous)?;
            out.sequence_relative(previous, value);
            value.into()
        }
        _ => {
            let bits = size as usize * 5;
            let (start, bytes) = reader.cut(bits).ok()?;
            let mut cut = BitReader::with_range(bytes, start as usize, bits);
            let mut word = 0;
            while cut.remaining_bits() > 0 {
                let bit = cut.bool().ok()?;
                out.bool(bit);
                word = word << 1 | u128::from(bit);
            }
            word
        }
    })
}

fn sum(bytes: &[u8]) -> u128 {
    bytes.iter().fold(bytes.len() as u128, |sum, byte| sum.wrapping_mul(257).wrapping_add(u128::from(*byte)))
}
