//! Residuals of words of up to 32 bits, many in a row.
//!
//! How each is read is compiled once for a class: the flags in front of a residual say by a table how many bits are its own.
//!
//! Promises: the residuals, and the refusals, are those of [`WordRange::read_residual`] one by one.

use core::num::NonZeroU64;

use super::words::WordRange;
use super::{BitReader, ReadError};

/// How many tiers a word of 32 bits may have, the rest included, rounded up to a power of two.
const TIERS: usize = 8;

/// How many bits, at most, say how many a residual takes: those of its flags.
const LOOK: u32 = TIERS as u32 - 2;

/// What is read of a residual after a number of flags of 0.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    first: u32,
    mask: u32,
    flags: u8,
    /// Bits of flags and number.
    taken: u8,
}

/// How a word is read.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) range: WordRange,
    last: u64,
    max_bits: u32,
    /// The flag that ends the search, whatever it is.
    end: NonZeroU64,
    tiers: [Tier; TIERS],
    /// By the next bits, how many are taken: where the next residual begins is to be known before this one is.
    taken: [u8; 1 << LOOK],
}

impl Step {
    pub(super) fn new(range: &WordRange) -> Self {
        let mut step = Step {
            range: *range,
            last: range.last(),
            max_bits: range.max_bits(),
            end: NonZeroU64::MIN,
            tiers: [Tier::default(); TIERS],
            taken: [0; 1 << LOOK],
        };
        for (i, (first, flags, bits)) in range.tiers().enumerate() {
            // All of words of 32 bits have at most 38.
            let (mask, taken) = (u32::MAX.unbounded_shr(u32::BITS - bits), (flags + bits) as u8);
            step.tiers[i] = Tier { first: first as u32, mask, flags: flags as u8, taken };
            step.end = NonZeroU64::new(1 << i).unwrap_or(step.end);
        }
        for (bits, taken) in (0..).zip(&mut step.taken) {
            *taken = step.tiers[(step.end | bits).trailing_zeros() as usize % TIERS].taken;
        }
        step
    }
}

/// Reads the residuals of words in a row, from bits that are fetched as many at a time as there are.
///
/// How many are left counts as if each residual had taken its most: when more are fetched doesn't depend on what is read then,
/// and the processor foresees it.
#[inline]
pub(super) fn read_run(
    reader: &mut BitReader<'_>,
    steps: &[Step],
    residuals: &mut [u32],
) -> Result<(), ReadError> {
    // Its own, which need not be in memory.
    let mut own = reader.clone();
    let (mut bits, mut used, mut left) = (0u64, 0, 0);
    for (step, place) in steps.iter().zip(residuals) {
        if left < step.max_bits {
            own.skip_peeked(used);
            (used, left) = (0, u64::BITS);
            let Some(next) = own.peek() else {
                *reader = own;
                *place = read_slowly(reader, step)?;
                own = reader.clone();
                left = 0;
                continue;
            };
            bits = next;
        }
        let tier = &step.tiers[(step.end | bits).trailing_zeros() as usize % TIERS];
        let residual = u64::from(tier.first) + (bits >> tier.flags & u64::from(tier.mask));
        if residual > step.last {
            own.skip_peeked(used);
            *reader = own;
            *place = read_slowly(reader, step)?;
            own = reader.clone();
            (used, left) = (0, 0);
            continue;
        }
        // Of 32 bits.
        *place = residual as u32;
        let taken = step.taken[bits as usize % (1 << LOOK)];
        bits >>= taken % 64;
        used += u32::from(taken);
        left -= step.max_bits;
    }
    own.skip_peeked(used);
    *reader = own;
    Ok(())
}

/// Near the end, or it is refused.
#[cold]
#[inline(never)]
fn read_slowly(reader: &mut BitReader<'_>, step: &Step) -> Result<u32, ReadError> {
    Ok(step.range.read_residual(reader)? as u32)
}
