//! Inputs of consecutive frames, coded as changes against the frame before.
//!
//! | part | bits |
//! |---|---|
//! | run | how many frames are as the one before: Elias' gamma code of one more |
//! | more | 0 at the end; 1 before a frame that differs, then a run again |
//! | length | of inputs that vary in length: 1 where it is as before, or 0 and the length |
//! | change | of up to 8 bits: the input; of more: for each group of 8 bits 0, or 1 and the group |

use super::config::InputShape;
use super::fault::Fault;
use super::input_log::{GameInput, HeldInput};
use crate::wire::{BitReader, BitSink, BitWriter};

/// The maximum of runs and counts in a payload.
const MAX_RUN: u64 = 1 << 12;

fn gamma_bits(value: u64) -> usize {
    2 * (value.ilog2() as usize) + 1
}

/// Elias' gamma code of a value of at least 1.
fn write_gamma(value: u64, writer: &mut BitWriter) {
    let length = value.ilog2();
    if length > 0 {
        writer.bits(0, length);
    }
    writer.bool(true);
    if length > 0 {
        writer.bits(value & ((1 << length) - 1), length);
    }
}

fn read_gamma(reader: &mut BitReader<'_>) -> Result<u64, Fault> {
    let mut length = 0;
    while !reader.bool()? {
        length += 1;
        if 1 << length > MAX_RUN {
            return Err(Fault::FarAhead);
        }
    }
    Ok(if length == 0 { 1 } else { 1 << length | reader.bits(length)? })
}

/// The number of bits of a length.
fn length_bits(shape: &InputShape) -> u32 {
    usize::BITS - shape.max_bits().leading_zeros()
}

/// Group `i` of an input, zero after its end.
fn group(input: GameInput<'_>, i: usize) -> u8 {
    input.bytes.get(i).copied().unwrap_or(0)
}

/// How many bits group `i` of an input of `bits` bits has.
fn width(bits: usize, i: usize) -> u32 {
    (bits - 8 * i).min(8) as u32
}

fn change_bits(shape: &InputShape, from: GameInput<'_>, to: GameInput<'_>) -> usize {
    let mut cost = 0;
    if !shape.is_fixed() {
        cost += 1 + if from.bits == to.bits { 0 } else { length_bits(shape) as usize };
    }
    if to.bits <= 8 {
        return cost + to.bits;
    }
    let changed = |i: &usize| group(from, *i) != group(to, *i);
    let groups = to.bits.div_ceil(8);
    cost + groups + (0..groups).filter(changed).map(|i| width(to.bits, i) as usize).sum::<usize>()
}

fn write_change(shape: &InputShape, from: GameInput<'_>, to: GameInput<'_>, writer: &mut BitWriter) {
    if !shape.is_fixed() {
        writer.bool(from.bits == to.bits);
        if from.bits != to.bits {
            writer.bits(to.bits as u64, length_bits(shape));
        }
    }
    let groups = to.bits.div_ceil(8);
    for i in 0..groups {
        let changed = to.bits <= 8 || group(from, i) != group(to, i);
        if to.bits > 8 {
            writer.bool(changed);
        }
        if changed {
            writer.bits(u64::from(group(to, i)), width(to.bits, i));
        }
    }
}

fn read_change(shape: &InputShape, reader: &mut BitReader<'_>, held: &mut HeldInput) -> Result<(), Fault> {
    let (bytes, bits) = held.parts();
    let before = usize::from(*bits);
    let mut length = before;
    if !shape.is_fixed() && !reader.bool()? {
        length = reader.bits(length_bits(shape))? as usize;
        if !(shape.min_bits..=shape.max_bits).contains(&length) {
            return Err(Fault::NotAnInput);
        }
    }
    let mut differs = length != before;
    let groups = length.div_ceil(8);
    for (i, byte) in bytes.iter_mut().enumerate().take(groups) {
        let width = width(length, i);
        if length <= 8 || reader.bool()? {
            let value = reader.bits(width)? as u8;
            differs |= value != *byte;
            *byte = value;
        } else if width < 8 && *byte >> width != 0 {
            // A shorter input than the last ends within a group marked as unchanged.
            return Err(Fault::NotAnInput);
        }
    }
    bytes[groups..before.div_ceil(8).max(groups)].fill(0);
    *bits = length as u16;
    if differs { Ok(()) } else { Err(Fault::NoChange) }
}

/// Writes inputs that follow `base` in at most `room` bits, and returns how many fitted; None if there isn't room for
/// zero.
pub(super) fn write_runs<'a>(
    shape: &InputShape,
    base: GameInput<'a>,
    inputs: impl Iterator<Item = GameInput<'a>>,
    room: usize,
    writer: &mut BitWriter,
) -> Option<u32> {
    let mut left = room.checked_sub(gamma_bits(MAX_RUN) + 1)?;
    let (mut before, mut run, mut count) = (base, 0u64, 0);
    for input in inputs {
        if run + 2 >= MAX_RUN {
            break;
        }
        if input == before {
            run += 1;
        } else {
            let cost = gamma_bits(run + 1) + 1 + change_bits(shape, before, input);
            let Some(rest) = left.checked_sub(cost) else { break };
            left = rest;
            write_gamma(run + 1, writer);
            writer.bool(true);
            write_change(shape, before, input, writer);
            run = 0;
        }
        before = input;
        count += 1;
    }
    write_gamma(run + 1, writer);
    writer.bool(false);
    Some(count)
}

/// Reads inputs that follow the one in `held`, and passes each with its index to `each`, which returns whether to go
/// on.
pub(super) fn read_runs(
    shape: &InputShape,
    reader: &mut BitReader<'_>,
    held: &mut HeldInput,
    mut each: impl FnMut(u32, GameInput<'_>, bool) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut place = 0;
    loop {
        let run = read_gamma(reader)? - 1;
        for _ in 0..run {
            each(place, held.get(), false)?;
            place += 1;
        }
        if !reader.bool()? {
            return Ok(());
        }
        read_change(shape, reader, held)?;
        each(place, held.get(), true)?;
        place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn read_back(shape: &InputShape, bytes: &[u8], bits: usize) -> Result<Vec<(Vec<u8>, usize)>, Fault> {
        let mut held = HeldInput::new();
        held.set(GameInput { bytes: &[0; 128][..shape.min_bits.div_ceil(8)], bits: shape.min_bits });
        let mut read = Vec::new();
        let mut reader = BitReader::with_range(bytes, 0, bits);
        read_runs(shape, &mut reader, &mut held, |place, input, _| {
            assert_eq!(place as usize, read.len());
            read.push((input.bytes.to_vec(), input.bits));
            Ok(())
        })?;
        Ok(read)
    }

    #[test]
    fn inputs_come_back_as_they_were_within_the_room() {
        let (mut rng, mut sum) = (Rng::seeded(5), crc32fast::Hasher::new());
        for case in 0..3_000 {
            let fixed = 1 + rng.below(40) as usize;
            let mut shape = InputShape::of_bits(fixed);
            if case % 3 == 0 {
                shape.max_bits += rng.below(60) as usize;
            }
            let mut inputs: Vec<(Vec<u8>, usize)> = Vec::new();
            for _ in 0..rng.below(40) {
                if rng.chance(0.7)
                    && let Some(last) = inputs.last().cloned()
                {
                    inputs.push(last);
                    continue;
                }
                let bits = shape.min_bits + rng.below((shape.max_bits - shape.min_bits + 1) as u64) as usize;
                let mut bytes: Vec<u8> = (0..bits.div_ceil(8)).map(|_| rng.next_u64() as u8).collect();
                if !bits.is_multiple_of(8) {
                    *bytes.last_mut().unwrap() &= (1 << (bits % 8)) - 1;
                }
                inputs.push((bytes, bits));
            }
            let room = rng.below(400) as usize;
            let zeros = [0; 8];
            let base = GameInput { bytes: &zeros[..fixed.div_ceil(8)], bits: fixed };
            let mut writer = BitWriter::new();
            let all = inputs.iter().map(|(bytes, bits)| GameInput { bytes, bits: *bits });
            let Some(count) = write_runs(&shape, base, all, room, &mut writer) else {
                assert!(room < 30 && writer.bit_len() == 0);
                continue;
            };
            assert!(writer.bit_len() <= room, "{} bits in room for {room}", writer.bit_len());
            let bits = writer.bit_len();
            let bytes = writer.into_bytes();
            sum.update(&bytes);
            let read = read_back(&shape, &bytes, bits).unwrap();
            assert_eq!(read, inputs[..count as usize]);
            for cut in 0..bits {
                assert!(read_back(&shape, &bytes, cut).is_err(), "cut at {cut}");
            }
        }
        assert_eq!(sum.finalize(), 1_571_353_350, "the same bytes on every machine");
    }

    #[test]
    fn repeats_cost_next_to_nothing() {
        let shape = InputShape::of_bits(128);
        let base = GameInput { bytes: &[0; 16], bits: 128 };
        let mut writer = BitWriter::new();
        let written = write_runs(&shape, base, core::iter::repeat_n(base, 100), 1000, &mut writer);
        assert_eq!((written, writer.bit_len()), (Some(100), 14));
    }

    #[test]
    fn what_nobody_writes_is_refused() {
        let shape = InputShape::of_bits(8);
        let mut writer = BitWriter::new();
        write_gamma(1, &mut writer);
        writer.bool(true);
        writer.bits(0, 8);
        let bits = writer.bit_len();
        assert_eq!(read_back(&shape, writer.as_bytes(), bits), Err(Fault::NoChange));
        // A run longer than any number of frames.
        assert_eq!(read_back(&shape, &[0; 8], 64), Err(Fault::FarAhead));
        let mut rng = Rng::seeded(8);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..rng.below(24)).map(|_| rng.next_u64() as u8).collect();
            let mut shape = InputShape::of_bits(1 + rng.below(30) as usize);
            shape.max_bits += rng.below(30) as usize;
            if let Ok(read) = read_back(&shape, &bytes, bytes.len() * 8) {
                assert!(
                    read.iter()
                        .all(|(bytes, bits)| *bits <= shape.max_bits && bytes.len() == bits.div_ceil(8))
                );
            }
        }
    }
}
