//! Entropy coding of ghosts: a binary range coder for a packet's records of the classes that ask for it.
//!
//! The coder is the one of LZMA (Pavlov 1999, after Martin 1979) with probabilities of 12 bits. A model's estimate moves by
//! 1 / (n + 1.5) of the way at its n-th decision, so that a few tell it much and many make it firm.
//!
//! What a decision's model is follows from the packet and what it begins with, and never from a ghost's states: a record of a
//! ghost that the client doesn't have is passed over like any other. The models begin as a [`Snapshot`] that the packet names: the
//! first one, or how they stood at the end of a packet that the client has acked, with how far words were off in it. So nothing that is lost or late changes what another
//! packet says.
//!
//! Promises: what [`Encoder`] was given is what [`Decoder`] gives, through the same calls. Any bytes are decisions: behind the
//! last lie zeros, and [`Decoder::is_beyond`] says that these were taken.

mod decoder;
mod guess;
mod heads;
mod snapshot;
mod words;

pub(super) use decoder::Decoder;
pub(super) use guess::{GUESSES, Guess, States, WINDOW, guesses, turn};
pub(super) use heads::{Op, Place};
pub(super) use snapshot::{Listed, Listing, SLOT_BITS, SLOTS, Snapshot};
pub(super) use words::{Layout, Off, Trail};

/// Bits of a probability, and the least one: no decision takes more than 8 bits.
const SCALE: u32 = 12;
const LEAST: u32 = 1 << (SCALE - 8);

/// The most bits that a decision takes.
pub(super) const MAX_DECISION_BITS: usize = 8;

/// The most records of a coded payload: a likely one may take next to nothing, and what a payload costs to read is bounded.
pub(super) const MAX_RECORDS: usize = 2048;

/// The range is refilled below this.
const SMALL: u32 = 1 << 24;

/// After this many decisions an estimate gets no firmer.
const FIRM: usize = 60;

/// By how many 2^-16 of the way an estimate moves.
const RATES: [u32; FIRM + 1] = {
    let mut rates = [0; FIRM + 1];
    let mut n = 0;
    while n <= FIRM {
        rates[n] = ((1 << 17) / (2 * n + 3)) as u32;
        n += 1;
    }
    rates
};

/// How likely a decision is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// That it is 1, of 2^16.
    one: u16,
    /// Decisions so far, at most [`FIRM`].
    seen: u8,
}

impl Model {
    /// That of which nothing is known.
    pub(super) const EVEN: Model = Model { one: 1 << 15, seen: 0 };

    #[inline]
    fn probability(self) -> u32 {
        (u32::from(self.one) >> (16 - SCALE)).clamp(LEAST, (1 << SCALE) - LEAST)
    }

    #[inline]
    fn learn(&mut self, bit: bool) {
        let (one, rate) = (u32::from(self.one), RATES[usize::from(self.seen)]);
        // Both below 2^16.
        self.one =
            if bit { one + (((0xFFFF - one) * rate) >> 16) } else { one - ((one * rate) >> 16) } as u16;
        self.seen += u8::from(usize::from(self.seen) < FIRM);
    }
}

/// One side of the coder: what is written is given, what is read is found.
pub(super) trait Coder {
    /// A decision of the model at this place. An encoder gives back `bit`; a decoder doesn't look at it.
    fn code(&mut self, at: usize, bit: bool) -> bool;

    /// At most 16 bits of which nothing is known.
    fn raw_few(&mut self, value: u32, bits: u32) -> u32;

    /// Bits of which nothing is known, the lowest 16 first.
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

/// Lengths of numbers that have models of their own.
const LENGTHS: usize = 12;

/// Models of a number.
const NUMBER: usize = 2 * LENGTHS;

/// The most bits that a number of this many takes.
pub(super) const fn number_bits(bits: usize) -> usize {
    (bits + 1) * MAX_DECISION_BITS + bits
}

/// A number from 1 on: its length in ones and a zero, then its bits. The one behind the highest has a model.
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

/// What is coded, as bytes.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    /// Of the section that is written.
    models: Vec<Model>,
    /// What decisions since the last mark changed.
    undo: Vec<(u32, Model)>,
    low: u64,
    range: u32,
    cache: u8,
    /// Bytes that a carry may still change, the first of them being `cache`.
    pending: usize,
    /// What no carry changes any more. The first byte is always 0, and isn't sent.
    bytes: Vec<u8>,
    shifts: usize,
    /// What was spent, in 2^-16 of bits, each decision rounded down.
    spent: u64,
}

/// Where an encoder was.
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
    /// Begins a packet, with nothing written.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        (self.low, self.range, self.cache, self.pending) = (0, u32::MAX, 0, 1);
        (self.shifts, self.spent) = (0, 0);
    }

    /// Begins a section with these models.
    pub(super) fn load(&mut self, models: &[Model]) {
        self.models.clear();
        self.models.extend_from_slice(models);
        self.undo.clear();
    }

    /// The models as they are.
    pub(super) fn models(&self) -> &[Model] {
        &self.models
    }

    /// Bits that it takes if it ends here.
    pub(super) fn bits(&self) -> usize {
        8 * (self.shifts + 1)
    }

    /// What was spent so far, in 2^-16 of bits: no more than it takes.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    pub(super) fn mark(&mut self) -> Mark {
        self.undo.clear();
        let Encoder { low, range, cache, pending, shifts, spent, .. } = *self;
        Mark { low, range, cache, pending, bytes: self.bytes.len(), shifts, spent }
    }

    /// Goes back to the last mark.
    pub(super) fn restore(&mut self, mark: Mark) {
        let Mark { low, range, cache, pending, bytes, shifts, spent } = mark;
        (self.low, self.range, self.cache, self.pending) = (low, range, cache, pending);
        (self.shifts, self.spent) = (shifts, spent);
        self.bytes.truncate(bytes);
        while let Some((at, model)) = self.undo.pop() {
            self.models[at as usize] = model;
        }
    }

    /// Ends it and gives the bytes: as many as [`Encoder::bits`] says.
    pub(super) fn finish(&mut self) -> &[u8] {
        let count = self.shifts + 1;
        // Of the numbers in the range, one whose three last bytes are 0.
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

/// What a decision takes whose probability lies in this 256th of 1 or below, in 2^-16 of bits, rounded down.
const COSTS: [u32; 257] = {
    // 2^16 * log2(256 / n), by squaring: a bit of the logarithm each time.
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
