//! Entropy coding of ghosts: a binary range coder for a packet's records of coded classes.
//!
//! The coder is Martin's (1979) in 64 bits, with 12-bit probabilities. They stay the same within a packet.
//!
//! The model of a decision follows from the packet and the ticks that it names, and never from a ghost's states: a record of a
//! ghost that the client doesn't have is passed over like any other. A packet names ticks whose packets the client has all acked; the
//! models are the frequencies of decisions in these ([`Models`]). So nothing that is lost or late changes what another packet says. What two
//! clients are sent is the same as soon as what they acked in the last ticks is the same.
//!
//! Promises: the same calls on a [`Decoder`] give what an [`Encoder`] was given. Any bytes decode: after the last,
//! zeros follow, and [`Decoder::is_beyond`] says that they were used.

mod decoder;
mod guess;
mod heads;
mod note;
mod rotation;
mod samples;
mod track;
mod words;

pub(super) use decoder::Decoder;
pub(super) use guess::{Guess, Motion, States};
pub(super) use heads::{Op, Place, STRIDE};
pub(super) use note::Note;
pub(super) use samples::{
    AGE_BITS, GhostList, KEPT_TICKS, Listing, MAX_ENTRIES, MAX_PACKETS, MAX_READ_ENTRIES, Models,
    OLDER_TICKS, READ_TICKS, Sample,
};
pub(super) use track::{MAX_RUN, MAX_STEPS};
pub(super) use words::{Layout, Off, Trail};

/// Bits of a probability, and its minimum: no decision takes more than 8 bits.
const SCALE: u32 = 12;
const LEAST: u32 = 1 << (SCALE - 8);

/// The maximum of bits that a decision takes.
pub(super) const MAX_DECISION_BITS: usize = 8;

/// The maximum of records in a coded payload. A likely record may take next to no bits, so this bounds the cost of
/// reading.
pub(super) const MAX_RECORDS: usize = 2048;

/// Bits of a digit, of which the output consists. The range has two, and gets another one as soon as it would fit one.
const DIGIT: u32 = 32;

/// How many bytes are enough to name a number in a range, if all bytes behind them are 0.
#[inline]
fn end_bytes(range: u64) -> usize {
    // The range is at least 2^32; a forged one may be 0.
    8 - (range.max(1).ilog2() / 8) as usize
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
    /// The models of the current section: by index, the probability of a 1.
    models: Vec<u16>,
    /// The decisions of the current section, each a model's index and then the bit.
    decisions: Vec<u32>,
    /// Scratch memory: by model, how often its decision was 0 and 1.
    seen: Vec<[u16; 2]>,
    low: u64,
    range: u64,
    /// The digits so far. A carry is in the last one only, until the packet ends.
    digits: Vec<u64>,
    bytes: Vec<u8>,
}

/// A position to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    low: u64,
    range: u64,
    digits: usize,
    last: Option<u64>,
    decisions: usize,
}

impl Encoder {
    /// Starts a new packet.
    pub(super) fn clear(&mut self) {
        self.digits.clear();
        (self.low, self.range) = (0, u64::MAX);
    }

    /// Starts a section with these models.
    pub(super) fn load(&mut self, models: &[u16]) {
        self.models.clear();
        self.models.extend_from_slice(models);
        self.decisions.clear();
    }

    /// By model, how often its decision was 0 and 1 in the section.
    pub(super) fn seen(&mut self) -> &[[u16; 2]] {
        self.seen.clear();
        self.seen.resize(self.models.len(), [0; 2]);
        for decision in &self.decisions {
            let seen = &mut self.seen[*decision as usize >> 1][*decision as usize & 1];
            *seen = seen.saturating_add(1);
        }
        &self.seen
    }

    /// The size in bits if the packet ends here.
    pub(super) fn bits(&self) -> usize {
        8 * (4 * self.digits.len() + end_bytes(self.range))
    }

    /// The cost so far in units of 2^-16 bits, at most the true size: what is left of the range says it.
    #[inline]
    pub(super) fn spent(&self) -> u64 {
        let halved = self.range.leading_zeros();
        let part = COSTS[(self.range << halved >> 56) as usize + 1];
        ((u64::from(DIGIT) * self.digits.len() as u64 + u64::from(halved)) << 16) + u64::from(part)
    }

    pub(super) fn mark(&self) -> Mark {
        let Encoder { low, range, digits, decisions, .. } = self;
        let (low, range, last) = (*low, *range, digits.last().copied());
        Mark { low, range, digits: digits.len(), last, decisions: decisions.len() }
    }

    /// Returns to a mark of this section.
    pub(super) fn restore(&mut self, mark: Mark) {
        (self.low, self.range) = (mark.low, mark.range);
        self.digits.truncate(mark.digits);
        if let (Some(digit), Some(last)) = (self.digits.last_mut(), mark.last) {
            *digit = last;
        }
        self.decisions.truncate(mark.decisions);
    }

    /// Ends the packet; returns as many bytes as [`Encoder::bits`] says.
    pub(super) fn finish(&mut self) -> &[u8] {
        let count = self.bits() / 8;
        // The lowest number whose bytes behind these are 0.
        let rest = (1 << (8 * (8 - end_bytes(self.range)))) - 1;
        self.rise(rest);
        let low = self.low & !rest;
        self.digits.extend([low >> DIGIT, low & u64::from(u32::MAX)]);
        let mut carry = 0;
        for digit in self.digits.iter_mut().rev() {
            *digit += carry;
            carry = *digit >> DIGIT;
        }
        self.bytes.clear();
        // The low 32 bits.
        self.bytes.extend(self.digits.iter().flat_map(|digit| (*digit as u32).to_be_bytes()));
        &self.bytes[..count]
    }

    #[inline]
    fn rise(&mut self, by: u64) {
        let (low, carries) = self.low.overflowing_add(by);
        self.low = low;
        if carries {
            self.carry();
        }
    }

    #[cold]
    fn carry(&mut self) {
        // Nothing is above the first digit's range.
        if let Some(last) = self.digits.last_mut() {
            *last += 1;
        }
    }

    #[inline]
    fn refill(&mut self) {
        if self.range >> DIGIT == 0 {
            self.push_digit();
        }
    }

    #[cold]
    fn push_digit(&mut self) {
        self.digits.push(self.low >> DIGIT);
        (self.low, self.range) = (self.low << DIGIT, self.range << DIGIT);
    }
}

/// The cost of what leaves this many 256ths of a range, in units of 2^-16 bits, rounded down.
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
        let one = u64::from(self.models[at]);
        // A class has fewer than 2^31 models.
        self.decisions.push((at as u32) << 1 | u32::from(bit));
        let bound = (self.range >> SCALE) * one;
        // Selections instead of branches, which the processor couldn't predict.
        self.rise(if bit { 0 } else { bound });
        self.range = if bit { bound } else { self.range - bound };
        self.refill();
        bit
    }

    #[inline]
    fn raw_few(&mut self, value: u32, bits: u32) -> u32 {
        self.range >>= bits;
        self.rise(self.range * u64::from(value));
        self.refill();
        value
    }
}

#[cfg(test)]
mod tests;
