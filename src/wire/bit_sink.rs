//! The write side of every primitive of serialize 1.0, defined once for [`super::BitWriter`] and
//! [`super::Measure`].
//!
//! Promises the standard's bits for arguments inside their bounds. Refuses nothing: callers are trusted
//! (bounds are debug assertions); the checked ways in are [`super::Stream`] and [`super::Schema`].

use super::{FixedPoint, MAX_RELATIVE, Quantizer, RELATIVE_TIERS, bit_len, bit_len128, span, span128};

/// Takes bits in order. A sink implements [`bits`](Self::bits), [`align`](Self::align) and [`bytes`](Self::bytes);
/// every other primitive is built from these.
pub trait BitSink {
    /// The low `n` bits of `value`, `n` in 1..=64; the rest of `value` must be zero.
    fn bits(&mut self, value: u64, n: u32);

    /// Zero bits up to the next byte boundary; nothing when already there.
    fn align(&mut self);

    /// Aligns, also before no bytes at all, then writes `data` as it is. The length is not written.
    fn bytes(&mut self, data: &[u8]);

    /// Bytes at this bit position, not aligned.
    fn packed(&mut self, data: &[u8]) {
        let (words, rest) = data.as_chunks();
        words.iter().for_each(|word| self.bits(u64::from_le_bytes(*word), 64));
        rest.iter().for_each(|byte| self.bits(u64::from(*byte), 8));
    }

    fn bool(&mut self, value: bool) {
        self.bits(u64::from(value), 1);
    }

    /// An integer in `lo..=hi`, in the bits that `hi - lo` takes; none when `lo == hi`.
    fn int(&mut self, value: i64, lo: i64, hi: i64) {
        debug_assert!((lo..=hi).contains(&value), "{value} is not in {lo}..={hi}");
        let n = bit_len(span(lo, hi));
        if n > 0 {
            self.bits(span(lo, value), n);
        }
    }

    /// As [`int`](Self::int), for bounds beyond 64 bits. The bits are the same where both apply.
    fn int128(&mut self, value: i128, lo: i128, hi: i128) {
        debug_assert!((lo..=hi).contains(&value), "{value} is not in {lo}..={hi}");
        self.bits128(span128(lo, value), bit_len128(span128(lo, hi)));
    }

    /// The low `n` bits of `value`, `n` in 0..=128, low half first.
    fn bits128(&mut self, value: u128, n: u32) {
        debug_assert!(n <= 128 && bit_len128(value) <= n, "{value} does not fit {n} bits");
        let (low, high) = (value as u64, (value >> 64) as u64);
        match n {
            0 => {}
            1..=64 => self.bits(low, n),
            _ => {
                self.bits(low, 64);
                self.bits(high, n - 64);
            }
        }
    }

    /// 128 bits, low half first.
    fn uint128(&mut self, value: u128) {
        self.bits128(value, 128);
    }

    /// A fixed-point number, given as its raw (scaled) integer.
    fn fixed(&mut self, raw: i128, format: &FixedPoint) {
        self.int128(raw, format.raw_lo(), format.raw_hi());
    }

    /// The 32 bits of an IEEE single, whatever their pattern.
    fn float(&mut self, value: f32) {
        self.bits(u64::from(value.to_bits()), 32);
    }

    /// The 64 bits of an IEEE double, whatever their pattern.
    fn double(&mut self, value: f64) {
        self.bits(value.to_bits(), 64);
    }

    /// A float in the steps of `quantizer`. Values outside its range go to the nearer bound.
    fn compressed_float(&mut self, value: f32, quantizer: &Quantizer) {
        self.bits(u64::from(quantizer.quantize(value)), quantizer.bits());
    }

    /// A text of at most `max_bytes` bytes of UTF-8: its length, then aligned bytes. It is the standard's
    /// string with a buffer of `max_bytes + 1`, and must hold no NUL.
    fn string(&mut self, text: &str, max_bytes: u32) {
        debug_assert!(!text.as_bytes().contains(&0), "a string holds no NUL");
        self.data(text.as_bytes(), max_bytes);
    }

    /// Bytes after their length, which is in `0..=max_bytes`; the bytes are aligned.
    fn data(&mut self, data: &[u8], max_bytes: u32) {
        self.int(data.len() as i64, 0, i64::from(max_bytes));
        self.bytes(data);
    }

    /// A text of at most `max_units` UTF-16 units: its length, then 32 bits a unit, not aligned. It is the
    /// standard's wide string with a buffer of `max_units + 1`, and must hold no NUL.
    fn wstring(&mut self, text: &str, max_units: u32) {
        debug_assert!(!text.as_bytes().contains(&0), "a wide string holds no NUL");
        self.int(text.encode_utf16().count() as i64, 0, i64::from(max_units));
        for unit in text.encode_utf16() {
            self.bits(u64::from(unit), 32);
        }
    }

    /// `current`, which is above `previous` and at most [`MAX_RELATIVE`]: 1 bit when it is the next
    /// number, up to 38 when it is far.
    fn int_relative(&mut self, previous: u32, current: u32) {
        debug_assert!(previous < current, "{current} is not above {previous}");
        debug_assert!(current <= MAX_RELATIVE, "{current} is not in 0..={MAX_RELATIVE}");
        let difference = i64::from(current) - i64::from(previous);
        self.bool(difference == 1);
        if difference == 1 {
            return;
        }
        for (lo, hi) in RELATIVE_TIERS {
            self.bool(difference <= hi);
            if difference <= hi {
                return self.int(difference, lo, hi);
            }
        }
        self.bits(u64::from(current), 32);
    }

    /// A sequence number after `previous`, counting across the wrap. The two must differ.
    fn sequence_relative(&mut self, previous: u16, current: u16) {
        let wrap = if previous > current { 65_536 } else { 0 };
        self.int_relative(u32::from(previous), u32::from(current) + wrap);
    }
}
