//! The bit writer: values of any width into bytes, little-endian, lowest bit first.
//!
//! Promises: the bits past the last one written are zero, and the memory is used again after
//! [`BitWriter::clear`]. Refuses nothing; see [`BitSink`].

use super::{BitSink, Encoded, padding};

const WORD: usize = size_of::<u64>();

/// Bytes at a byte boundary from which copying beats shifting words in.
const WORTH_A_COPY: usize = 32;

/// Room for most messages, so that writing one asks for memory once.
const USUAL_BYTES: usize = 96;

/// Bytes that are made ready at a time: most packets have no more.
const GROWTH: usize = 256;

/// Writes bits into memory that it owns and grows.
#[derive(Clone, Debug)]
pub struct BitWriter {
    /// What is written, then at least room for the word that `scratch` collects. The bytes there are of earlier use: they
    /// needn't be cleared, because `scratch` is stored over them as a whole.
    buffer: Vec<u8>,
    /// Bytes written before those in `scratch`: any number of them, so that after a copy nothing is moved.
    at: usize,
    /// The bits since then; zero above `used`.
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
    pub fn with_buffer(mut buffer: Vec<u8>) -> Self {
        // Not with zeros: memory asked for with zeros in it comes another way, which takes twice as long.
        buffer.resize(buffer.capacity().max(WORD), !0);
        BitWriter { buffer, at: 0, scratch: 0, used: 0, first_align: None }
    }

    /// A writer that appends to these bytes.
    pub fn after(bytes: Vec<u8>) -> Self {
        let at = bytes.len();
        let mut writer = BitWriter { buffer: bytes, at, scratch: 0, used: 0, first_align: None };
        writer.make_room(0);
        writer
    }

    /// Clears it, keeping its memory.
    pub fn clear(&mut self) {
        (self.at, self.scratch, self.used) = (0, 0, 0);
        self.first_align = None;
    }

    // Bits written.
    #[inline]
    pub fn bit_len(&self) -> usize {
        self.at * 8 + self.used as usize
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
        let (bytes, head_bits, tail) = message.runs();
        self.run(bytes, head_bits);
        if let Some((start, tail_bits)) = tail {
            self.align();
            self.run(&bytes[start..], tail_bits);
        }
    }

    /// The first `bits` bits of `data`, without an align.
    fn run(&mut self, data: &[u8], bits: usize) {
        let whole = bits / 8;
        let done = if self.used.is_multiple_of(8) && whole >= WORTH_A_COPY {
            self.copy(&data[..whole]);
            whole
        } else {
            let (words, _) = data[..whole].as_chunks::<WORD>();
            if !words.is_empty() {
                self.words(words.iter().map(|word| u64::from_le_bytes(*word)));
            }
            words.len() * WORD
        };
        // Less than a word.
        if let n @ 1.. = bits - done * 8 {
            self.bits(load(data, done) & !(u64::MAX << n), n as u32);
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
        let bytes = words.len() * WORD;
        self.make_room(bytes);
        let (places, _) = self.buffer[self.at..self.at + bytes].as_chunks_mut::<WORD>();
        for (place, word) in places.iter_mut().zip(words) {
            *place = (self.scratch | word << self.used).to_le_bytes();
            // What did not fit; nothing at a whole word (a shift by 64).
            self.scratch = word.unbounded_shr(64 - self.used);
        }
        self.at += bytes;
    }

    /// Appends bytes at a byte boundary.
    fn copy(&mut self, data: &[u8]) {
        debug_assert!(self.used.is_multiple_of(8));
        self.store_scratch();
        self.at += self.used as usize / 8;
        (self.scratch, self.used) = (0, 0);
        self.make_room(data.len());
        self.buffer[self.at..self.at + data.len()].copy_from_slice(data);
        self.at += data.len();
    }

    /// The bit position of the first align, before its padding.
    pub(super) fn first_align(&self) -> Option<usize> {
        self.first_align
    }

    #[inline]
    fn store_scratch(&mut self) {
        self.buffer[self.at..self.at + WORD].copy_from_slice(&self.scratch.to_le_bytes());
    }

    /// Has room for as many bytes, and for the word after them.
    #[inline]
    fn make_room(&mut self, bytes: usize) {
        let end = self.at + bytes + WORD;
        if end > self.buffer.len() {
            self.grow(end);
        }
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        self.buffer.reserve(end - self.buffer.len());
        // Not all of it: behind one of many datagrams, most of the memory is for the next ones.
        self.buffer.resize(self.buffer.capacity().min(end + GROWTH), !0);
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
            self.at += WORD;
            self.make_room(0);
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

    fn packed(&mut self, data: &[u8]) {
        self.run(data, data.len() * 8);
    }
}

/// The word at a byte of the data; zero beyond its end.
#[inline]
fn load(data: &[u8], at: usize) -> u64 {
    let rest = &data[at..];
    match (rest.first_chunk(), data.last_chunk()) {
        (Some(word), _) => u64::from_le_bytes(*word),
        (None, Some(last)) => u64::from_le_bytes(*last).unbounded_shr(64 - 8 * rest.len() as u32),
        (None, None) => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

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
    fn what_was_written_before_shows_nowhere() {
        let mut used = BitWriter::new();
        for seed in 0..300 {
            let mut rng = Rng::seeded(seed);
            let mut fresh = BitWriter::with_buffer(Vec::new());
            used.bytes(&[0xFF; 300]);
            used.clear();
            for _ in 0..rng.below(12) {
                let n = 1 + rng.below(64) as u32;
                let (kind, value) = (rng.below(4), rng.next_u64() >> (64 - n));
                let data = vec![value as u8; rng.below(100) as usize];
                for writer in [&mut fresh, &mut used] {
                    match kind {
                        0 => writer.bytes(&data),
                        1 => writer.packed(&data),
                        2 => assert_eq!(writer.as_bytes().len(), writer.byte_len()),
                        _ => writer.bits(value, n),
                    }
                }
            }
            assert_eq!(used.as_bytes(), fresh.as_bytes(), "seed {seed}");
            assert_eq!(used.encoded(), fresh.encoded(), "seed {seed}");
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
