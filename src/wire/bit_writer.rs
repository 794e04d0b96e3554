//! The bit writer: values of any width into bytes, little-endian, lowest bit first.
//!
//! Promises: the bits past the last one written are zero, and the memory is used again after
//! [`BitWriter::clear`]. Refuses nothing; see [`BitSink`].

use super::{BitSink, Encoded, padding};

const WORD: usize = size_of::<u64>();

/// Bytes from which copying beats shifting words in (measured: a copy's fixed cost is some 20 ns).
const WORTH_A_COPY: usize = 64;

/// Room for most messages, so that writing one asks for memory once.
const USUAL_BYTES: usize = 96;

/// Writes bits into memory that it owns and grows.
#[derive(Clone, Debug)]
pub struct BitWriter {
    /// Whole words, then room for the one that `scratch` collects.
    buffer: Vec<u8>,
    /// The bits since the last whole word; zero above `used`.
    scratch: u64,
    /// Bits in `scratch`, below 64.
    used: u32,
    /// Where the first align happened, before its padding: all that [`Encoded`] must know.
    first_align: Option<usize>,
}

impl Default for BitWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl BitWriter {
    pub fn new() -> Self {
        Self::with_buffer(Vec::with_capacity(USUAL_BYTES))
    }

    /// An empty writer in the memory of `buffer`, whose contents are discarded.
    pub fn with_buffer(buffer: Vec<u8>) -> Self {
        let mut writer = BitWriter { buffer, scratch: 0, used: 0, first_align: None };
        writer.clear();
        writer
    }

    /// Clears it, keeping its memory.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.buffer.resize(WORD, 0);
        self.scratch = 0;
        self.used = 0;
        self.first_align = None;
    }

    // Bits written.
    pub fn bit_len(&self) -> usize {
        (self.buffer.len() - WORD) * 8 + self.used as usize
    }

    /// Bytes that the bits written take.
    pub fn byte_len(&self) -> usize {
        self.bit_len().div_ceil(8)
    }

    /// The bytes written so far, the unused bits of the last byte zero. Writing may go on afterwards.
    pub fn as_bytes(&mut self) -> &[u8] {
        self.store_scratch();
        &self.buffer[..self.byte_len()]
    }

    /// The bytes written, with their memory.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.store_scratch();
        self.buffer.truncate(self.byte_len());
        self.buffer
    }

    /// The bits written, as a message that can be placed at any bit position.
    pub fn encoded(&mut self) -> Encoded {
        let (bits, first_align) = (self.bit_len(), self.first_align);
        Encoded::new(self.as_bytes(), bits, first_align)
    }

    /// Places an encoded message here, as if it had been written at this bit position in the first place.
    pub fn append(&mut self, message: &Encoded) {
        let (head, head_bits) = message.head();
        self.run(head, head_bits);
        if let Some((tail, tail_bits)) = message.tail() {
            self.align();
            self.run(tail, tail_bits);
        }
    }

    /// The first `bits` bits of `data`, without an align.
    fn run(&mut self, data: &[u8], bits: usize) {
        let (whole, rest) = data.split_at(bits / 8);
        if self.used.is_multiple_of(8) && whole.len() >= WORTH_A_COPY {
            self.copy(whole);
        } else {
            let (words, bytes) = whole.as_chunks::<WORD>();
            self.words(words.iter().map(|word| u64::from_le_bytes(*word)));
            bytes.iter().for_each(|byte| self.bits(u64::from(*byte), 8));
        }
        if let (Some(&last), n @ 1..) = (rest.first(), bits % 8) {
            self.bits(u64::from(last), n as u32);
        }
    }

    /// Appends `bits` bits of words, from the bit `start` on.
    pub(crate) fn run_of_words(&mut self, words: &[u64], start: usize, bits: usize) {
        let (words, shift) = (&words[start / 64..], start % 64);
        let word = |i: usize| {
            let next = words.get(i + 1).copied().unwrap_or(0);
            words[i] >> shift | next.unbounded_shl(64 - shift as u32)
        };
        self.words((0..bits / 64).map(word));
        if let n @ 1.. = bits % 64 {
            self.bits(word(bits / 64) & !(u64::MAX << n), n as u32);
        }
    }

    /// Appends whole words at any bit position.
    #[inline]
    fn words(&mut self, words: impl ExactSizeIterator<Item = u64>) {
        let start = self.buffer.len() - WORD;
        self.buffer.resize(self.buffer.len() + words.len() * WORD, 0);
        let (places, _) = self.buffer[start..].as_chunks_mut::<WORD>();
        for (place, word) in places.iter_mut().zip(words) {
            *place = (self.scratch | word << self.used).to_le_bytes();
            // What did not fit; nothing at a whole word (a shift by 64).
            self.scratch = word.unbounded_shr(64 - self.used);
        }
    }

    /// Appends bytes at a byte boundary.
    fn copy(&mut self, data: &[u8]) {
        debug_assert!(self.used.is_multiple_of(8));
        self.store_scratch();
        self.buffer.truncate(self.byte_len());
        self.buffer.extend_from_slice(data);
        // What lies beyond the last whole word is scratch again.
        let rest = self.buffer.len() % WORD;
        self.used = rest as u32 * 8;
        self.buffer.resize(self.buffer.len() - rest + WORD, 0);
        self.scratch = self.buffer.last_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    }

    /// The bit position of the first align, before its padding.
    pub(super) fn first_align(&self) -> Option<usize> {
        self.first_align
    }

    fn store_scratch(&mut self) {
        let word = self.buffer.len() - WORD;
        self.buffer[word..].copy_from_slice(&self.scratch.to_le_bytes());
    }
}

impl BitSink for BitWriter {
    #[inline]
    fn bits(&mut self, value: u64, n: u32) {
        debug_assert!((1..=64).contains(&n), "a width of {n} bits is not in 1..=64");
        debug_assert!(super::bit_len(value) <= n, "{value} does not fit {n} bits");
        self.scratch |= value << self.used;
        let total = self.used + n;
        if total < 64 {
            self.used = total;
        } else {
            self.store_scratch();
            self.buffer.extend_from_slice(&[0; WORD]);
            // What did not fit; nothing when the word was empty before (a shift by 64).
            self.scratch = value.unbounded_shr(64 - self.used);
            self.used = total - 64;
        }
    }

    fn align(&mut self) {
        let position = self.bit_len();
        self.first_align.get_or_insert(position);
        if let n @ 1.. = padding(position) {
            self.bits(0, n as u32);
        }
    }

    fn bytes(&mut self, data: &[u8]) {
        self.align();
        self.run(data, data.len() * 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_bytes_from_the_lowest_bit() {
        let mut writer = BitWriter::new();
        writer.bool(true);
        writer.bits(0b101, 3);
        assert_eq!(writer.as_bytes(), [0b1011]);
        writer.bits(0xFFF, 12);
        assert_eq!(writer.bit_len(), 16);
        assert_eq!(writer.as_bytes(), [0xFB, 0xFF]);
    }

    #[test]
    fn every_width_lands_at_every_position() {
        for start in 1..=64 {
            for n in 1..=64 {
                let mut writer = BitWriter::new();
                writer.bits(0, start);
                writer.bits(u64::MAX >> (64 - n), n);
                writer.bits(0, 1);
                let expected = (u128::from(u64::MAX >> (64 - n)) << start).to_le_bytes();
                let bytes = writer.into_bytes();
                assert_eq!(bytes.len(), (start + n + 1).div_ceil(8) as usize);
                let shared = bytes.len().min(16);
                assert_eq!(bytes[..shared], expected[..shared], "{n} bits at {start}");
            }
        }
    }

    #[test]
    fn bytes_of_any_length_leave_the_writer_in_step() {
        for length in 0..=130u8 {
            let data: Vec<u8> = (1..=length).collect();
            let mut writer = BitWriter::new();
            writer.bits(1, 1);
            writer.bytes(&data);
            writer.bits(0x1FF, 9);
            let expected = [&[1][..], &data, &[0xFF, 1]].concat();
            assert_eq!(writer.into_bytes(), expected);
        }
    }

    #[test]
    fn starts_again_clean_in_the_same_memory() {
        let mut writer = BitWriter::new();
        writer.bytes(&[0xFF; 100]);
        let bytes = writer.into_bytes();
        let (memory, capacity) = (bytes.as_ptr(), bytes.capacity());
        let mut writer = BitWriter::with_buffer(bytes);
        writer.bits(0, 9);
        let bytes = writer.into_bytes();
        assert_eq!(bytes, [0, 0]);
        assert_eq!((bytes.as_ptr(), bytes.capacity()), (memory, capacity));
    }
}
