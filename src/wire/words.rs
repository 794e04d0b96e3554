//! Words: the integers that the wire carries of a value, one for each of its numbers, and how one is written against
//! an earlier one.
//!
//! A word lies in `0..=last`. **Whole** it takes the bits of `last`, as serialize writes an integer of that range. As a
//! **delta** it is a residual against a base, a word of the same range that both sides have:
//!
//! | metric | residual of a word against a base |
//! |---|---|
//! | line | numbers in the order of their distance from the base: 0 for the base, 1 for base + 1, 2 for base - 1, 3 for base + 2 ...; where one side has ended, the other's go on by one |
//! | circle | the same, the word after `last` being 0 |
//! | float | as line, of the patterns in the order of what they stand for: those with the sign bit inverted whole, the others' sign bit set |
//! | choice | 0 for the base, then the other words as they rise |
//!
//! A residual is in one of the word's **tiers**: a tier of b bits has the next 2^b residuals, and after the last one
//! lie all others. On the wire: a flag 0 for each tier that is passed over, flag 1, and b bits; or only flags 0 and
//! the rest, an integer of `0..=last - (residuals in tiers)`. A word of n bits has the tiers of 2, 5, 8, 12, 16, 24,
//! 32 and 48 bits that are at most n - 4. A choice of more than one bit has the tier of 0 bits alone, for no change,
//! and that only if it is one of several words: of a single one the property's mask said that it changed.
//!
//! Why so. Of a word nothing is known but its range, so that each number of bits is about as likely for its change. A
//! tier then wastes half of its bits on average, and costs a flag to each that is passed over: steps of three to four
//! bits are best for words of 9 to 32 bits. The first has room for what was predicted well and for what of a vector
//! stays as it is (3 bits), and beyond 16 bits, where there is little, they lie farther apart. Of eleven sets of tiers over
//! three scenes (a random walk of all, one of a tenth, falling cubes), baselines 1, 3 and 6 ticks old, as they are and
//! extrapolated, this one took the fewest bits in sum, with 3-6-9-12-16: 11 to 45 bits for a position of 3 x 21 and 11
//! to 31 for a rotation of 2 + 3 x 9. A tier of 0 bits before it saves 2 bits a position where half of the words stay,
//! and costs 3 where all change.
//!
//! Promises: each residual in `0..=last` is of one word, so a word has one form and no base makes it another word
//! than one of its range; what a delta takes does not depend on the base, so one can be passed over without it.
//! Refuses, when reading, a number above `last`. Trusted: words and bases given to write and to read against.

use super::{BitReader, BitSink, ReadError, bit_len};

/// Which words are near each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Numbers, or steps of a range.
    Line,
    /// Steps of a circle: the first comes after the last.
    Circle,
    /// The pattern of an IEEE single or double.
    Float,
    /// One of several things, none of which is closer to another than the rest.
    Choice,
}

/// Bits of the tiers: a word has as many of them as are small enough.
const TIER_BITS: [u32; 8] = [2, 5, 8, 12, 16, 24, 32, 48];

/// The first residual of each tier, and the first beyond all tiers; then the end of all numbers.
const TIER_STARTS: [u64; TIER_BITS.len() + 2] = {
    let mut starts = [0; TIER_BITS.len() + 2];
    let mut tier = 0;
    while tier < TIER_BITS.len() {
        starts[tier + 1] = starts[tier] + (1 << TIER_BITS[tier]);
        tier += 1;
    }
    starts[tier + 1] = u64::MAX;
    starts
};

/// By the logarithm of a residual, the tier of the least one that has as many bits, and the first residual of the next tier: no
/// other tier than that begins among them.
const TIER_OF_LOG: [(u8, u64); u64::BITS as usize] = {
    let mut tiers = [(0, 0); u64::BITS as usize];
    let mut log = 0;
    while log < tiers.len() {
        let (least, mut tier) = (1 << log, 0);
        while least >= TIER_STARTS[tier + 1] {
            tier += 1;
        }
        assert!(tier + 2 >= TIER_STARTS.len() || TIER_STARTS[tier + 2] / 2 >= least);
        tiers[log] = (tier as u8, TIER_STARTS[tier + 1]);
        log += 1;
    }
    tiers
};

/// A place for each tier and for what lies beyond all of them, rounded up to a power of two, so that no index is checked.
const TIER_PLACES: usize = (TIER_BITS.len() + 2).next_power_of_two();

/// The tier in which a residual lies, if its range has that many.
#[inline]
fn tier_of(residual: u64) -> usize {
    // 0 is in the tier of 1.
    let (least, next) = TIER_OF_LOG[(residual | 1).ilog2() as usize];
    usize::from(least) + usize::from(residual >= next)
}

/// By how many bits a tier must be smaller than the word: one larger would save little more than its flag costs.
const TIER_MARGIN: u32 = 4;

/// The range of a word, and its coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordRange {
    last: u64,
    metric: Metric,
    /// How many of [`TIER_BITS`] it has.
    tiers: u8,
    /// Bits of a residual beyond all tiers.
    rest_bits: u8,
    /// A choice that has the tier of 0 bits.
    may_stay: bool,
    /// Bits of a residual at most.
    max_bits: u8,
    /// Bits of a residual by its tier, where no choice may stay.
    bits_in: [u8; TIER_PLACES],
}

impl WordRange {
    /// Words in `0..=last`, as one of `several` of a property or alone. Floats have a `last` of 32 or 64 bits.
    pub(super) fn new(last: u64, metric: Metric, several: bool) -> Self {
        debug_assert!(metric != Metric::Float || [u64::MAX, u32::MAX.into()].contains(&last));
        debug_assert!(metric != Metric::Circle || last <= u32::MAX.into());
        let (bits, choice) = (bit_len(last), metric == Metric::Choice);
        let small = |tier: &&u32| !choice && **tier + TIER_MARGIN <= bits;
        let tiers = TIER_BITS.iter().filter(small).count();
        let may_stay = choice && several && bits > 1;
        let passed = TIER_STARTS[tiers] + u64::from(may_stay);
        let rest_bits = bit_len(last - passed);
        let in_tiers = (0..tiers).map(|tier| tier as u32 + 1 + TIER_BITS[tier]).max().unwrap_or(0);
        let max_bits = in_tiers.max(tiers as u32 + u32::from(may_stay) + rest_bits);
        // All at most 72.
        let mut bits_in = [(tiers as u32 + rest_bits) as u8; TIER_PLACES];
        for (tier, bits) in TIER_BITS.iter().enumerate().take(tiers) {
            bits_in[tier] = (tier as u32 + 1 + bits) as u8;
        }
        let [tiers, rest_bits, max_bits] = [tiers as u8, rest_bits as u8, max_bits as u8];
        WordRange { last, metric, tiers, rest_bits, may_stay, max_bits, bits_in }
    }

    pub fn last(&self) -> u64 {
        self.last
    }

    /// Bits of a word written whole.
    pub fn bits(&self) -> u32 {
        bit_len(self.last)
    }

    /// Which words are near each other.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Writes a word whole.
    #[inline]
    pub fn write<S: BitSink + ?Sized>(&self, word: u64, sink: &mut S) {
        debug_assert!(word <= self.last, "{word} is not in 0..={}", self.last);
        if let bits @ 1.. = self.bits() {
            sink.bits(word, bits);
        }
    }

    /// Reads a word that was written whole.
    ///
    /// # Errors
    /// At the end of the bits, and a number above the largest word.
    #[inline]
    pub fn read(&self, reader: &mut BitReader<'_>) -> Result<u64, ReadError> {
        reader.offset(self.last)
    }

    /// Writes a word against a base.
    #[inline]
    pub fn write_delta<S: BitSink + ?Sized>(&self, word: u64, base: u64, sink: &mut S) {
        self.write_residual(self.residual(word, base), sink);
    }

    /// Reads a word that was written against this base.
    ///
    /// # Errors
    /// At the end of the bits, and a residual of no word.
    #[inline]
    pub fn read_delta(&self, base: u64, reader: &mut BitReader<'_>) -> Result<u64, ReadError> {
        Ok(self.word(self.read_residual(reader)?, base))
    }

    /// A word's distance from a base: in `0..=last`, small for close values. A coder other than the tiers may use it.
    #[inline]
    pub fn residual(&self, word: u64, base: u64) -> u64 {
        debug_assert!(word.max(base) <= self.last, "{word} and {base} are not in 0..={}", self.last);
        // Most are, and need no call.
        if self.metric == Metric::Line { self.line(word, base) } else { self.other_residual(word, base) }
    }

    #[inline(never)]
    fn other_residual(&self, word: u64, base: u64) -> u64 {
        match self.metric {
            Metric::Line => self.line(word, base),
            Metric::Float => self.line(self.ordered(word), self.ordered(base)),
            Metric::Circle => {
                let ahead = self.turned(word, base);
                let behind = self.turned(base, word);
                if ahead <= behind { (2 * ahead).saturating_sub(1) } else { 2 * behind }
            }
            Metric::Choice if word == base => 0,
            Metric::Choice => word + u64::from(word < base),
        }
    }

    /// The word of this residual, which is in `0..=last`.
    #[inline]
    pub fn word(&self, residual: u64, base: u64) -> u64 {
        debug_assert!(residual.max(base) <= self.last, "{residual} and {base} are not in 0..={}", self.last);
        match self.metric {
            Metric::Line => self.at(residual, base),
            _ if residual == 0 => base,
            _ => self.other_word(residual, base),
        }
    }

    #[inline(never)]
    fn other_word(&self, residual: u64, base: u64) -> u64 {
        match self.metric {
            Metric::Line => self.at(residual, base),
            Metric::Float => self.unordered(self.at(residual, self.ordered(base))),
            Metric::Circle => {
                let step = residual.div_ceil(2);
                if residual % 2 == 1 { self.turned(base + step, 0) } else { self.turned(base, step) }
            }
            Metric::Choice if residual == 0 => base,
            Metric::Choice => residual - u64::from(residual <= base),
        }
    }

    /// The word `ahead` ticks after `newer` if it goes on changing as in the `past` ticks since `older`: at the end
    /// of its range it stays. Floats and choices, and everything if `past` is 0, stay unchanged. In integers, so that
    /// both sides get the same.
    #[inline]
    pub fn extrapolate(&self, older: u64, newer: u64, past: u16, ahead: u16) -> u64 {
        // Most are words of up to 32 bits, of states that follow each other.
        if self.metric == Metric::Line && past == 1 && self.last <= u32::MAX.into() {
            // By a number of ticks they take 49 bits.
            let step = (newer as i64 - older as i64) * i64::from(ahead);
            return (newer as i64 + step).clamp(0, self.last as i64) as u64;
        }
        self.extrapolate_any(older, newer, past, ahead)
    }

    #[inline(never)]
    fn extrapolate_any(&self, older: u64, newer: u64, past: u16, ahead: u16) -> u64 {
        if past == 0 || older == newer {
            return newer;
        }
        // Words of 32 bits by a number of ticks take 49 bits. Most states follow each other: a quotient costs more than all else.
        let per = |step: i64| if past == 1 { step } else { step / i64::from(past) };
        let wide = self.last > u32::MAX.into();
        match self.metric {
            Metric::Line if wide => {
                let step = (i128::from(newer) - i128::from(older)) * i128::from(ahead) / i128::from(past);
                (i128::from(newer) + step).clamp(0, self.last.into()) as u64
            }
            Metric::Line => {
                let step = per((newer as i64 - older as i64) * i64::from(ahead));
                (newer as i64 + step).clamp(0, self.last as i64) as u64
            }
            Metric::Circle => {
                let (forth, back) = (self.turned(newer, older) as i64, self.turned(older, newer) as i64);
                let turn = if forth <= back { forth } else { -back };
                let step = per(turn * i64::from(ahead));
                (newer as i64 + step).rem_euclid(self.last as i64 + 1) as u64
            }
            Metric::Float | Metric::Choice => newer,
        }
    }

    /// The word this many steps from another: at the end of its range a word stays, a circle goes on.
    #[inline]
    pub fn moved_by(&self, word: u64, steps: i64) -> u64 {
        match self.metric {
            Metric::Line => (word as i64).saturating_add(steps).clamp(0, self.last as i64) as u64,
            Metric::Circle => (word as i64 + steps).rem_euclid(self.last as i64 + 1) as u64,
            Metric::Float | Metric::Choice => word,
        }
    }

    /// How far a word is from the newest, on a circle by the shorter way.
    #[inline]
    pub fn behind(&self, word: u64, newest: u64) -> i64 {
        if self.metric == Metric::Circle {
            let (forth, back) = (self.turned(word, newest) as i64, self.turned(newest, word) as i64);
            return if forth <= back { forth } else { -back };
        }
        word.wrapping_sub(newest) as i64
    }

    /// Writes a residual of [`WordRange::residual`].
    #[inline]
    pub(super) fn write_residual<S: BitSink + ?Sized>(&self, residual: u64, sink: &mut S) {
        if self.may_stay {
            sink.bool(residual == 0);
            if residual > 0 {
                sink.bits(residual - 1, self.rest_bits.into());
            }
            return;
        }
        let (tiers, tier) = (usize::from(self.tiers), tier_of(residual));
        if let (true, Some(start)) = (tier < tiers, TIER_STARTS.get(tier)) {
            // The flags first: at most 8 and 48 bits.
            let rest = residual - start;
            return sink.bits((rest << 1 | 1) << tier, self.bits_in[tier % TIER_PLACES].into());
        }
        let (rest, bits) = (residual - TIER_STARTS[tiers], u32::from(self.rest_bits));
        match bits + tiers as u32 {
            0 => {}
            both @ 1..=64 => sink.bits(rest << tiers, both),
            _ => {
                sink.bits(0, tiers as u32);
                sink.bits(rest, bits);
            }
        }
    }

    /// Bits that a word takes against a base.
    #[inline]
    pub fn delta_bits(&self, word: u64, base: u64) -> u32 {
        self.residual_bits(self.residual(word, base))
    }

    /// Bits that a residual takes.
    #[inline]
    pub(super) fn residual_bits(&self, residual: u64) -> u32 {
        if self.may_stay {
            return if residual == 0 { 1 } else { 1 + u32::from(self.rest_bits) };
        }
        self.bits_in[tier_of(residual) % TIER_PLACES].into()
    }

    /// Reads a residual.
    ///
    /// # Errors
    /// At the end of the bits, and a number above the largest word.
    #[inline]
    pub fn read_residual(&self, reader: &mut BitReader<'_>) -> Result<u64, ReadError> {
        if self.may_stay {
            return if reader.bool()? { Ok(0) } else { Ok(1 + reader.offset(self.last - 1)?) };
        }
        let tiers = u32::from(self.tiers);
        // At one look, if no end is near.
        if let Some(word) = reader.peek() {
            let tier = (word | 1 << tiers).trailing_zeros();
            if tier < tiers {
                let bits = TIER_BITS[tier as usize];
                // At most 8 flags and 48 bits.
                reader.skip_peeked(tier + 1 + bits);
                return Ok(TIER_STARTS[tier as usize] + (word >> (tier + 1) & ((1 << bits) - 1)));
            }
            let (start, bits) = (TIER_STARTS[tiers as usize], u32::from(self.rest_bits));
            let rest = word >> tiers & u64::MAX.unbounded_shr(u64::BITS - bits);
            if tiers + bits <= u64::BITS && rest <= self.last - start {
                reader.skip_peeked(tiers + bits);
                return Ok(start + rest);
            }
        }
        let mut passed = 0;
        // All flags at once, where there are as many bits.
        let flags = if tiers > 0 { reader.clone().bits(tiers) } else { Ok(0) };
        match flags {
            Ok(0) => {
                if tiers > 0 {
                    reader.bits(tiers)?;
                }
            }
            Ok(flags) => {
                let tier = flags.trailing_zeros();
                let bits = reader.bits(tier + 1 + TIER_BITS[tier as usize])?;
                return Ok(TIER_STARTS[tier as usize] + (bits >> (tier + 1)));
            }
            Err(_) => {
                while passed < tiers {
                    if reader.bool()? {
                        let rest = reader.bits(TIER_BITS[passed as usize])?;
                        return Ok(TIER_STARTS[passed as usize] + rest);
                    }
                    passed += 1;
                }
            }
        }
        let start = TIER_STARTS[tiers as usize];
        Ok(start + reader.offset(self.last - start)?)
    }

    /// The forms of a residual, by how many flags of 0 there are: the first that has it, the flags and the bits after them.
    pub(super) fn tiers(&self) -> impl Iterator<Item = (u64, u32, u32)> {
        let tiers = usize::from(self.tiers);
        let stays = self.may_stay.then_some((0, 1, 0));
        let each = (0..tiers).map(|tier| (TIER_STARTS[tier], tier as u32 + 1, TIER_BITS[tier]));
        let flags = tiers as u32 + u32::from(self.may_stay);
        let rest = (TIER_STARTS[tiers] + u64::from(self.may_stay), flags, self.rest_bits.into());
        stays.into_iter().chain(each).chain([rest])
    }

    /// Bits of a residual at most.
    #[inline]
    pub(super) fn max_bits(&self) -> u32 {
        self.max_bits.into()
    }

    /// By distance, in turns above and below as far as there are words on both sides.
    #[inline]
    fn line(&self, word: u64, base: u64) -> u64 {
        let both = base.min(self.last - base);
        let distance = word.abs_diff(base);
        if distance > both { both + distance } else { 2 * distance - u64::from(word > base) }
    }

    #[inline]
    fn at(&self, residual: u64, base: u64) -> u64 {
        let both = base.min(self.last - base);
        if residual > 2 * both {
            let distance = residual - both;
            return if base == both { base + distance } else { base - distance };
        }
        // Above where it is odd. Without a branch, because nobody can predict which of both it is.
        let (distance, below) = (residual / 2 + residual % 2, (residual % 2).wrapping_sub(1));
        base.wrapping_add((distance ^ below).wrapping_sub(below))
    }

    /// Steps from `base` on to `word` on a circle. `word` may be up to a whole turn beyond the last.
    #[inline]
    fn turned(&self, word: u64, base: u64) -> u64 {
        let turn = self.last + 1;
        let steps = word + turn - base;
        let steps = if steps >= turn { steps - turn } else { steps };
        if steps >= turn { steps - turn } else { steps }
    }

    /// A float's pattern as a number that rises with it.
    #[inline]
    fn ordered(&self, pattern: u64) -> u64 {
        let sign = self.last - (self.last >> 1);
        if pattern & sign == 0 { pattern | sign } else { !pattern & self.last }
    }

    #[inline]
    fn unordered(&self, order: u64) -> u64 {
        let sign = self.last - (self.last >> 1);
        if order & sign == 0 { !order & self.last } else { order & !sign }
    }
}

#[cfg(test)]
mod tests;
