//! Residuals of words of up to 32 bits, many in a row.
//!
//! How each is read is compiled once for a class: the next bits say by a table what a residual is made of, and where the one
//! after it begins.
//!
//! Promises: the residuals are those of [`WordRange::read_residual`] one by one; what that refuses isn't read here.

use super::words::WordRange;

/// How many bits say what form a residual has: a word of 32 bits has up to six tiers.
const FORM_BITS: u32 = 6;

/// Bits that one look gives at least.
pub(super) const LOOK_BITS: u32 = 57;

/// How a residual is made of the bits after its flags.
#[derive(Clone, Copy, Debug, Default)]
struct Form {
    first: u32,
    mask: u32,
    flags: u32,
}

/// How a word is read.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) range: WordRange,
    last: u64,
    max_bits: u32,
    /// By the next bits.
    forms: [Form; 1 << FORM_BITS],
    /// How many bits flags and number take: where the next residual begins is to be known before this one is.
    taken: [u8; 1 << FORM_BITS],
}

impl Step {
    pub(super) fn new(range: &WordRange) -> Self {
        let (mut forms, mut taken) = ([Form::default(); 1 << FORM_BITS], [0; 1 << FORM_BITS]);
        let last_tier = range.tiers().count() - 1;
        for (bits, (form, taken)) in (0u64..).zip(forms.iter_mut().zip(&mut taken)) {
            // The flag that ends the search, whatever it is.
            let tier = (bits | 1 << last_tier).trailing_zeros() as usize;
            let (first, flags, bits) = range.tiers().nth(tier).unwrap_or_default();
            // All of words of 32 bits have at most 38 bits.
            *form = Form { first: first as u32, mask: u32::MAX.unbounded_shr(u32::BITS - bits), flags };
            *taken = (flags + bits) as u8;
        }
        Step { range: *range, last: range.last(), max_bits: range.max_bits(), forms, taken }
    }
}

/// Reads the residuals of words in a row, from these bits and those of `look`, which gives what is from a position on: gives the
/// position after them. Gives none if one is of no word, or `look` gives none.
///
/// Most updates take few bits, so that one look has all of them.
#[inline(always)]
pub(super) fn read_run(
    steps: &[Step],
    (bits, mut position): (&mut u64, usize),
    left: &mut u32,
    look: impl Fn(usize) -> Option<u64>,
    residuals: &mut [u32],
) -> Option<usize> {
    for (step, place) in steps.iter().zip(residuals) {
        if *left < step.max_bits {
            (*bits, *left) = (look(position)?, LOOK_BITS);
        }
        let next = *bits as usize % (1 << FORM_BITS);
        let (form, taken) = (&step.forms[next], u32::from(step.taken[next]));
        let residual = u64::from(form.first) + (*bits >> (form.flags % 64) & u64::from(form.mask));
        if residual > step.last {
            return None;
        }
        // Of 32 bits.
        *place = residual as u32;
        *bits >>= taken % 64;
        position += taken as usize;
        *left -= taken;
    }
    Some(position)
}
