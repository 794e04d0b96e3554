//! Entropy coding of ghosts: a binary range coder for a packet's records of coded classes.
//!
//! The coder is LZMA's (Pavlov 1999, after Martin 1979) with 12-bit probabilities. A model's estimate moves by 1 / (n +
//! 1.5) of the way at its n-th decision, so that it learns fast and then settles.
//!
//! What a decision's model is follows from the packet and what it begins with, and never from a ghost's states: a record of a
//! ghost that the client doesn't have is passed over like any other. The models begin as a [`Snapshot`] that the packet names: the
//! first one, or how they stood at the end of a packet that the client has acked, with how far words were off in it. So nothing that is lost or late changes what another
//! packet says.
//!
//! Promises: the same calls on a [`Decoder`] give what an [`Encoder`] was given. Any bytes decode: after the last,
//! zeros follow, and [`Decoder::is_beyond`] says that they were used.

mod decoder;
mod guess;
mod heads;
mod note;
mod rotation;
mod snapshot;
mod words;

pub(super) use decoder::Decoder;
pub(super) use guess::{Guess, MAX_RUN, Motion, States, WINDOW};
pub(super) use heads::{Op, Place, STRIDE};
pub(super) use note::Note;
pub(super) use snapshot::{Listed, Listing, SLOT_BITS, SLOTS, Snapshot};
pub(super) use words::{Layout, Off, Trail};

/// Bits of a probability, and its minimum: no decision takes more than 8 bits.
const SCALE: u32 = 12;
const LEAST: u32 = 1 << (SCALE - 8);

/// The maximum of bits that a decision takes.
pub(super) const MAX_DECISION_BITS: usize = 8;

/// The maximum of records in a coded payload. A likely record may take next to no bits, so this bounds the cost of
/// reading.
pub(super) const MAX_RECORDS: usize = 2048;

/// The range is refilled when it is below this.
const SMALL: u32 = 1 << 24;

/// After this many decisions the rate of adaptation stays the same.
const FIRM: usize = 60;

/// The adaption rates in units of 2^-16.
const RATES: [u32; FIRM + 1] = {
    let mut rates = [0; FIRM + 1];
    let mut n = 0;
    while n <= FIRM {
        rates[n] = ((1 << 17) / (2 * n + 3)) as u32;
        n += 1;
    }
    rates
};

/// An estimate of a probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// The probability of a 1, in units of 2^-16.
    one: u16,
    /// Decisions so far, at most [`FIRM`].
    seen: u8,
}

impl Model {
    /// The model of which nothing is known.
    pub(super) const EVEN: Model = Model { one: 1 << 15, seen: 0 };

    #[inline]
    fn probability(self) -> u32 {
        (u32::from(self.one) >> (16 - SCALE)).clamp(LEAST, (1 << SCALE) - LEAST)
    }

    #[inline]
    fn learn(&mut self, bit: bool) {
        let (one, rate) = (u32::from(self.one), RATES[usize::from(self.seen)]);
        // Both are below 2^16.
        self.one =
            if bit { one + (((0xFFFF - one) * rate) >> 16) } else { one - ((one * rate) >> 16) } as u16;
        self.seen += u8::from(usize::from(self.seen) < FIRM);
    }
}

/// Either half of the coder: an encoder takes the values, a decoder returns them.
pub(super) trait Coder {
    /// Codes a decision by the model at this index. An encoder returns `bit`; a decoder ignores it.
    fn code(&mut self, at: usize, bit: bool) -> bool;

    /// Codes up to 16 bits without a model.
    fn raw_few(&mut self, value: u32, bits: u32) -> u32;

    /// Codes bits without a model, the lowest 16 first.
    #[inline]
    fn raw(&mut self, value: u64, bits: u32) -> u64 {
        let (mut found, mut at) = (0, 0);
        while at < bits {
            let few = (bits - at).min(16);
            // 16 bits at most.
            let part = (value >> at) as u32 & ((1 << few) - 1);
            found |= u64::from(self.raw_few(part, few)) << at;
            at += few;
        }
        found
    }
}

/// Lengths of numbers that have models.
const LENGTHS: usize = 12;

/// Models of a number.
const NUMBER: usize = 2 * LENGTHS;

/// The maximum of bits that a number below 2^`bits` takes.
pub(super) const fn number_bits(bits: usize) -> usize {
    (bits + 1) * MAX_DECISION_BITS + bits
}

/// Codes a number from 1 on: its length in unary, then its bits. The bit after the highest has a model.
fn code_number(coder: &mut impl Coder, models: usize, number: u64) -> u64 {
    let of = |length: u32| models + (length as usize).min(LENGTHS - 1);
    let (last, mut length) = (number.max(1).ilog2(), 0);
    while length < 63 && coder.code(of(length), length < last) {
        length += 1;
    }
    if length == 0 {
        return 1;
    }
    let second = coder.code(LENGTHS + of(length), number >> (length - 1) & 1 == 1);
    let rest = coder.raw(number & ((1 << (length - 1)) - 1), length - 1);
    1 << length | u64::from(second) << (length - 1) | rest
}

/// The encoder: collects the coded bytes.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    /// The models of the current section.
    models: Vec<Model>,
    /// The changes by decisions since the last mark.
    undo: Vec<(u32, Model)>,
    low: u64,
    range: u32,
    cache: u8,
    /// How many bytes a carry may still change; the first of them is `cache`.
    pending: usize,
    /// Bytes that no carry can change any more. The first is always 0 and isn't sent.
    bytes: Vec<u8>,
    shifts: usize,
    /// The cost so far in units of 2^-16 bits, each decision rounded down.
    spent: u64,
}

/// A position to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    low: u64,
    range: u32,
    cache: u8,
    pending: usize,
    bytes: usize,
    shifts: usize,
    spent: u64,
}

impl Encoder {
    /// Starts a new packet.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        (self.low, self.range, self.cache, self.pending) = (0, u32::MAX, 0, 1);
        (self.shifts, self.spent) = (0, 0);
    }

    /// Starts a section with these models.
    pub(super) fn load(&mut self, models: &[Model]) {
        self.models.clear();
        self.models.extend_from_slice(models);
        self.undo.clear();
    }

    /// The current state of the models.
    pub(super) fn models(&self) -> &[Model] {
        &self.models
    }

    /// The size in bits if the packet ends here.
    pub(super) fn bits(&self) -> usize {
        8 * (self.shifts + 1)
    }

    /// The cost so far in units of 2^-16 bits, at most the true size.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    pub(super) fn mark(&mut self) -> Mark {
        self.undo.clear();
        let Encoder { low, range, cache, pending, shifts, spent, .. } = *self;
        Mark { low, range, cache, pending, bytes: self.bytes.len(), shifts, spent }
    }

    /// Returns to the last mark.
    pub(super) fn restore(&mut self, mark: Mark) {
        let Mark { low, range, cache, pending, bytes, shifts, spent } = mark;
        (self.low, self.range, self.cache, self.pending) = (low, range, cache, pending);
        (self.shifts, self.spent) = (shifts, spent);
        self.bytes.truncate(bytes);
        while let Some((at, model)) = self.undo.pop() {
            self.models[at as usize] = model;
        }
    }

    /// Ends the packet; returns as many bytes as [`Encoder::bits`] says.
    pub(super) fn finish(&mut self) -> &[u8] {
        let count = self.shifts + 1;
        // Picks a number in the range whose last three bytes are 0.
        self.low = (self.low + u64::from(SMALL) - 1) & !u64::from(SMALL - 1);
        (0..5).for_each(|_| self.shift());
        &self.bytes[1..][..count]
    }

    fn shift(&mut self) {
        self.shifts += 1;
        let (carry, low) = ((self.low >> 32) as u8, self.low as u32);
        if low < 0xFF00_0000 || carry > 0 {
            self.bytes.push(self.cache.wrapping_add(carry));
            let rest = core::iter::repeat_n(0xFF_u8.wrapping_add(carry), self.pending - 1);
            self.bytes.extend(rest);
            self.pending = 0;
            self.cache = (low >> 24) as u8;
        }
        self.pending += 1;
        self.low = u64::from(low << 8);
    }

    #[inline]
    fn refill(&mut self) {
        while self.range < SMALL {
            self.range <<= 8;
            self.shift();
        }
    }
}

/// The cost of a decision, by its probability in 256ths, in units of 2^-16 bits, rounded down.
const COSTS: [u32; 257] = {
    // 2^16 * log2(256 / n) by repeated squaring, one bit of the logarithm each time.
    let mut costs = [8 << 16; 257];
    let mut n = 1;
    while n <= 256 {
        let whole = 63 - (n as u64).leading_zeros();
        let (mut left, mut log, mut at) = ((n as u64) << (32 - whole), whole << 16, 16);
        while at > 0 {
            at -= 1;
            left = ((left as u128 * left as u128) >> 32) as u64;
            if left >= 2 << 32 {
                left >>= 1;
                log += 1 << at;
            }
        }
        // The logarithm was rounded down too.
        let cost = (8u32 << 16) - log;
        costs[n] = cost.saturating_sub(1);
        n += 1;
    }
    costs
};

impl Coder for Encoder {
    #[inline]
    fn code(&mut self, at: usize, bit: bool) -> bool {
        let model = &mut self.models[at];
        // A section has fewer models.
        self.undo.push((at as u32, *model));
        let one = model.probability();
        model.learn(bit);
        let bound = (self.range >> SCALE) * one;
        let taken = if bit {
            self.range = bound;
            one
        } else {
            self.low += u64::from(bound);
            self.range -= bound;
            (1 << SCALE) - one
        };
        self.spent += u64::from(COSTS[taken.div_ceil(1 << (SCALE - 8)) as usize]);
        self.refill();
        bit
    }

    #[inline]
    fn raw_few(&mut self, value: u32, bits: u32) -> u32 {
        self.range >>= bits;
        self.low += u64::from(self.range) * u64::from(value);
        self.spent += u64::from(bits) << 16;
        self.refill();
        value
    }
}

#[cfg(test)]
mod tests;
