//! The bit reader: values of any width out of bytes that anyone may have sent.
//!
//! Promises: every refusal of serialize 1.0, each under its name in [`ReadError`]; the first one is final (nothing
//! after it has a position, so every later read fails too). Strings and bytes borrow from the packet: nothing is
//! allocated but wide strings, and those only once their units are known to be there.
//!
//! Trusted are the widths and bounds that the caller gives, which come from a declaration or were checked by
//! [`Stream`](super::Stream). Checked is each read against the end and each value against its bounds. Work and memory
//! are in proportion to the bits read.

use super::{
    FixedPoint, MAX_RELATIVE, Quantizer, RELATIVE_TIERS, ReadError, bit_len, bit_len128, padding, span,
    span128,
};

/// The position of a reader that has failed: beyond every end, with room to add any width.
const FAILED: usize = usize::MAX / 2;

/// Reads bits out of borrowed bytes.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    data: &'a [u8],
    /// In bits from the start of `data`, so that aligns fall where the writer's did.
    position: usize,
    end: usize,
}

impl<'a> BitReader<'a> {
    /// A reader of all of `data`.
    pub fn new(data: &'a [u8]) -> Self {
        Self::with_range(data, 0, data.len() * 8)
    }

    /// A reader of `bits` bits from bit `start` on, or up to the end. A message cut out of the middle of a packet
    /// keeps its phase: `start` is then 0..=7.
    pub fn with_range(data: &'a [u8], start: usize, bits: usize) -> Self {
        let end = start.saturating_add(bits).min(data.len() * 8);
        BitReader { data, position: start, end }
    }

    /// Bits left to read; none after a failure.
    pub fn remaining_bits(&self) -> usize {
        self.end.saturating_sub(self.position)
    }

    /// Where the next read starts, in bits from the start of the data; beyond the end after a failure.
    pub fn position(&self) -> usize {
        self.position
    }

    /// `n` bits, `n` in 1..=64.
    #[inline]
    pub fn bits(&mut self, n: u32) -> Result<u64, ReadError> {
        debug_assert!((1..=64).contains(&n), "a width of {n} bits is not in 1..=64");
        if self.end.saturating_sub(self.position) < n as usize {
            return self.past_end(n as usize);
        }
        Ok(self.word(n, u64::MAX >> (64 - n)))
    }

    #[inline]
    pub fn bool(&mut self) -> Result<bool, ReadError> {
        // A packet has ten of them and a few bytes: no word is read for one.
        match self.data.get(self.position / 8) {
            Some(byte) if self.position < self.end => {
                let set = byte >> (self.position % 8) & 1 == 1;
                self.position += 1;
                Ok(set)
            }
            _ => self.past_end(1),
        }
    }

    /// An integer in `lo..=hi`; `lo` is at most `hi`.
    pub fn int(&mut self, lo: i64, hi: i64) -> Result<i64, ReadError> {
        debug_assert!(lo <= hi, "{lo}..={hi} is empty");
        let offset = self.offset(span(lo, hi))?;
        Ok(lo.wrapping_add(offset.cast_signed()))
    }

    /// An offset in `0..=span`, in the bits that `span` takes; none when it is 0.
    #[inline]
    pub(super) fn offset(&mut self, span: u64) -> Result<u64, ReadError> {
        let offset = match bit_len(span) {
            0 => self.advance(0).map(|_| 0)?,
            n => self.bits(n)?,
        };
        if offset <= span { Ok(offset) } else { self.refuse(ReadError::OutOfRange { offset, span }) }
    }

    /// As [`int`](Self::int), for bounds beyond 64 bits.
    pub fn int128(&mut self, lo: i128, hi: i128) -> Result<i128, ReadError> {
        debug_assert!(lo <= hi, "{lo}..={hi} is empty");
        let span = span128(lo, hi);
        let offset = self.bits128(bit_len128(span))?;
        if offset > span {
            let saturated = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
            return self.refuse(ReadError::OutOfRange { offset: saturated(offset), span: saturated(span) });
        }
        Ok(lo.wrapping_add(offset.cast_signed()))
    }

    /// `n` bits, `n` in 0..=128, low half first.
    pub(super) fn bits128(&mut self, n: u32) -> Result<u128, ReadError> {
        match n {
            0 => self.advance(0).map(|_| 0),
            1..=64 => self.bits(n).map(u128::from),
            _ => Ok(u128::from(self.bits(64)?) | u128::from(self.bits(n - 64)?) << 64),
        }
    }

    pub fn uint128(&mut self) -> Result<u128, ReadError> {
        self.bits128(128)
    }

    /// A fixed-point number, as its raw (scaled) integer.
    pub fn fixed(&mut self, format: &FixedPoint) -> Result<i128, ReadError> {
        self.int128(format.raw_lo(), format.raw_hi())
    }

    /// An IEEE single of any pattern.
    pub fn float(&mut self) -> Result<f32, ReadError> {
        Ok(f32::from_bits(self.bits(32)? as u32))
    }

    /// An IEEE double of any pattern.
    pub fn double(&mut self) -> Result<f64, ReadError> {
        Ok(f64::from_bits(self.bits(64)?))
    }

    /// A float in the steps of `quantizer`.
    pub fn compressed_float(&mut self, quantizer: &Quantizer) -> Result<f32, ReadError> {
        let step = self.bits(quantizer.bits())?;
        quantizer.value(step).or_else(|error| self.refuse(error))
    }

    /// Moves to the next byte boundary; the bits up to there must be zero.
    pub fn align(&mut self) -> Result<(), ReadError> {
        match padding(self.position) {
            0 => self.advance(0).map(drop),
            n if self.bits(n as u32)? != 0 => self.refuse(ReadError::Padding),
            _ => Ok(()),
        }
    }

    /// Aligns, then `count` bytes as they are.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        self.align()?;
        let from = self.advance(count.saturating_mul(8))? / 8;
        Ok(self.data.get(from..from + count).unwrap_or_default())
    }

    /// A text of at most `max_bytes` bytes.
    pub fn string(&mut self, max_bytes: u32) -> Result<&'a str, ReadError> {
        let bytes = self.data(max_bytes)?;
        if bytes.contains(&0) {
            return self.refuse(ReadError::InteriorNul);
        }
        core::str::from_utf8(bytes).or_else(|_| self.refuse(ReadError::Utf8))
    }

    /// Bytes after their length, which is in `0..=max_bytes`.
    pub fn data(&mut self, max_bytes: u32) -> Result<&'a [u8], ReadError> {
        let length = self.length(max_bytes)?;
        self.bytes(length)
    }

    /// A text of at most `max_units` UTF-16 units.
    pub fn wstring(&mut self, max_units: u32) -> Result<String, ReadError> {
        let mut text = String::new();
        self.wide_chars(max_units, |c| text.push(c))?;
        Ok(text)
    }

    /// The characters of a wide string, one by one. Those before a refusal have been given already.
    pub(super) fn wide_chars(&mut self, max_units: u32, mut each: impl FnMut(char)) -> Result<(), ReadError> {
        let length = self.length(max_units)?;
        let needed = length.saturating_mul(32);
        if needed > self.remaining_bits() {
            return self.past_end(needed);
        }
        let mut left = length;
        while left > 0 {
            left -= 1;
            let unit = self.wide_unit()?;
            let c = match char::from_u32(u32::from(unit)) {
                // Half of a surrogate pair: the other half must be next.
                None if left > 0 => {
                    left -= 1;
                    let low = self.wide_unit()?;
                    char::decode_utf16([unit, low]).next().and_then(Result::ok)
                }
                c => c,
            };
            match c {
                Some(c) => each(c),
                None => return self.refuse(ReadError::UnpairedSurrogate),
            }
        }
        Ok(())
    }

    /// The number after `previous`, which is in `0..=`[`MAX_RELATIVE`].
    pub fn int_relative(&mut self, previous: u32) -> Result<u32, ReadError> {
        debug_assert!(previous <= MAX_RELATIVE, "{previous} is not in 0..={MAX_RELATIVE}");
        let current = match self.relative_difference()? {
            Some(difference) => u64::from(previous) + difference,
            None => self.bits(32)?,
        };
        match u32::try_from(current) {
            Ok(current) if current <= previous => self.refuse(ReadError::NotIncreasing { previous, current }),
            Ok(current) if current <= MAX_RELATIVE => Ok(current),
            _ => self.refuse(ReadError::BeyondRelative { current }),
        }
    }

    /// The sequence number after `previous`, counting across the wrap.
    pub fn sequence_relative(&mut self, previous: u16) -> Result<u16, ReadError> {
        // The standard takes the low 16 bits.
        Ok(self.int_relative(u32::from(previous))? as u16)
    }

    /// Cuts the next `bits` bits out unread: the bit of the first byte at which they begin, and the bytes that
    /// hold them, for [`BitReader::with_range`].
    pub fn cut(&mut self, bits: usize) -> Result<(u32, &'a [u8]), ReadError> {
        let from = self.advance(bits)?;
        let held = self.data.get(from / 8..(from + bits).div_ceil(8)).unwrap_or_default();
        Ok(((from % 8) as u32, held))
    }

    /// The remaining bits as bytes, the last one padded with zero bits.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.remaining_bits().div_ceil(8));
        while let left @ 1.. = self.remaining_bits() {
            let Ok(bits) = self.bits(left.min(8) as u32) else { break };
            bytes.push(bits as u8);
        }
        bytes
    }

    /// Ends a strict read: the bits left must be the zero padding of the last byte. A lenient one (the standard's)
    /// doesn't call this.
    pub fn finish(mut self) -> Result<(), ReadError> {
        let remaining = self.remaining_bits();
        match remaining {
            0 => self.advance(0).map(drop),
            1..8 if self.bits(remaining as u32)? == 0 => Ok(()),
            _ => Err(ReadError::Trailing { remaining: remaining as u64 }),
        }
    }

    /// The difference of a relative integer; `None` when the number itself follows.
    pub(crate) fn relative_difference(&mut self) -> Result<Option<u64>, ReadError> {
        if self.bool()? {
            return Ok(Some(1));
        }
        for (lo, hi) in RELATIVE_TIERS {
            if self.bool()? {
                return Ok(Some(self.int(lo, hi)?.cast_unsigned()));
            }
        }
        Ok(None)
    }

    /// The next `bits` bits, to be read by [`BitReader::word`], or None if there aren't this many.
    #[inline]
    pub(super) fn ahead(&self, bits: usize) -> Option<Self> {
        // Beyond its end after a failure.
        let left = self.end.checked_sub(self.position)?;
        (bits <= left).then(|| self.clone())
    }

    /// The next `n` bits, 0 to 64, which must be there; `mask` has `n` ones.
    #[inline]
    pub(super) fn word(&mut self, n: u32, mask: u64) -> u64 {
        let (byte, shift) = (self.position / 8, (self.position % 8) as u32);
        self.position += n as usize;
        let rest = self.data.get(byte..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(chunk) => (u128::from_le_bytes(*chunk) >> shift) as u64,
            None => self.late_word(rest, shift),
        };
        word & mask
    }

    /// Copies the next bits into whole bytes, from any bit position; false if they aren't all there. The reader hasn't
    /// moved then.
    #[inline]
    pub(super) fn copy(&mut self, to: &mut [u8]) -> bool {
        let (from, shift, bits) = (self.position / 8, (self.position % 8) as u32, to.len() * 8);
        // Beyond its end after a failure.
        if self.end.checked_sub(self.position).is_none_or(|left| left < bits) {
            return false;
        }
        let Some(source) = self.data.get(from..) else { return false };
        self.position += bits;
        if shift == 0 {
            to.iter_mut().zip(source).for_each(|(to, from)| *to = *from);
            return true;
        }
        let (words, rest) = to.as_chunks_mut::<8>();
        let mut at = 0;
        for word in words {
            let low =
                source.get(at..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u64::from_le_bytes);
            at += 8;
            let high = source.get(at).copied().unwrap_or(0);
            *word = (low >> shift | u64::from(high) << (64 - shift)).to_le_bytes();
        }
        let pairs = source.get(at..).unwrap_or_default().windows(2);
        rest.iter_mut().zip(pairs).for_each(|(to, pair)| *to = pair[0] >> shift | pair[1] << (8 - shift));
        true
    }

    /// The next 64 bits, where there are more: what is used of them is to be skipped.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u64> {
        if self.remaining_bits() < 64 {
            return None;
        }
        let chunk = self.data.get(self.position / 8..)?.first_chunk()?;
        Some((u128::from_le_bytes(*chunk) >> (self.position % 8)) as u64)
    }

    /// The bits from a position on, at least 57, if that isn't near the end of the data: some may be beyond the reader's end.
    #[inline]
    pub(crate) fn look(&self, position: usize) -> Option<u64> {
        let chunk = self.data.get(position / 8..)?.first_chunk()?;
        Some(u64::from_le_bytes(*chunk) >> (position % 8))
    }

    /// Whether a position is no more than the end.
    #[inline]
    pub(crate) fn has(&self, position: usize) -> bool {
        position <= self.end
    }

    /// Goes on at a position that it has.
    #[inline]
    pub(crate) fn skip_to(&mut self, position: usize) {
        debug_assert!(self.position <= position && self.has(position), "{position} is not ahead");
        self.position = position;
    }

    /// Goes on by at most as many bits as were seen by [`BitReader::peek`].
    #[inline]
    pub(crate) fn skip_peeked(&mut self, n: u32) {
        debug_assert!(n as usize <= self.remaining_bits(), "{n} bits are not left");
        self.position += n as usize;
    }

    /// The bits from bit `shift` of the last bytes of the data on, fewer than 16.
    fn late_word(&self, rest: &[u8], shift: u32) -> u64 {
        let (word, ninth) = match rest.split_first_chunk::<8>() {
            Some((word, rest)) => (u64::from_le_bytes(*word), rest.first().copied().unwrap_or(0)),
            None => (self.last_word(rest), 0),
        };
        // The ninth byte lies at bit 64 - shift; at shift 0 it is not part of these 64 bits.
        word >> shift | u64::from(ninth).unbounded_shl(64 - shift)
    }

    /// Refuses when fewer than `n` bits are left.
    pub(crate) fn require(&mut self, n: usize) -> Result<(), ReadError> {
        if self.remaining_bits() < n { self.past_end(n) } else { self.advance(0).map(drop) }
    }

    /// A reader that continues at bit `position` of `data`, like an earlier one with the same `end`.
    pub(super) fn resume(data: &'a [u8], position: usize, end: usize) -> Self {
        BitReader { data, position, end: end.min(data.len() * 8) }
    }

    /// The last bytes of the data, fewer than 8, as a word. Where there are 8 in all, one load and a shift.
    fn last_word(&self, rest: &[u8]) -> u64 {
        match self.data.last_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word).unbounded_shr(64 - 8 * rest.len() as u32),
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        }
    }

    fn length(&mut self, max: u32) -> Result<usize, ReadError> {
        // At most `max`, and a `u32` fits a `usize` on every platform with sockets.
        Ok(self.offset(u64::from(max))? as usize)
    }

    fn wide_unit(&mut self) -> Result<u16, ReadError> {
        let group = self.bits(32)? as u32;
        match u16::try_from(group) {
            Ok(0) => self.refuse(ReadError::InteriorNul),
            Ok(unit) => Ok(unit),
            Err(_) => self.refuse(ReadError::CodeUnit { group }),
        }
    }

    /// Moves `n` bits on and gives the position before; refuses to go beyond the end.
    #[inline]
    fn advance(&mut self, n: usize) -> Result<usize, ReadError> {
        let from = self.position;
        let to = from.saturating_add(n);
        if to > self.end {
            return self.past_end(n);
        }
        self.position = to;
        Ok(from)
    }

    #[cold]
    fn past_end<T>(&mut self, n: usize) -> Result<T, ReadError> {
        if self.position == FAILED {
            return Err(ReadError::Failed);
        }
        let remaining = self.remaining_bits() as u64;
        self.refuse(ReadError::PastEnd { needed: n as u64, remaining })
    }

    #[cold]
    pub(super) fn refuse<T>(&mut self, error: ReadError) -> Result<T, ReadError> {
        self.position = FAILED;
        Err(error)
    }
}

#[cfg(test)]
mod tests;
