//! The reading side of the range coder.

use super::{Coder, DIGIT, SCALE, end_bytes};

/// Decodes an encoder's bytes.
#[derive(Debug)]
pub(in crate::replication) struct Decoder<'a> {
    /// The models of the current section: by index, the probability of a 1.
    models: &'a [u16],
    /// By model, how often its decision was 0 and 1 in the current section.
    seen: &'a mut Vec<[u16; 2]>,
    bytes: &'a [u8],
    taken: usize,
    code: u64,
    range: u64,
}

impl<'a> Decoder<'a> {
    /// A decoder of these bytes; `seen` is scratch memory.
    pub(in crate::replication) fn new(bytes: &'a [u8], seen: &'a mut Vec<[u16; 2]>) -> Self {
        let mut decoder = Decoder { models: &[], seen, bytes, taken: 0, code: 0, range: u64::MAX };
        (0..2).for_each(|_| decoder.take());
        decoder.range = u64::MAX;
        decoder
    }

    /// Starts a section with these models.
    pub(in crate::replication) fn load(&mut self, models: &'a [u16]) {
        self.models = models;
        self.seen.clear();
        self.seen.resize(models.len(), [0; 2]);
    }

    /// By model, how often its decision was 0 and 1 in the section.
    pub(in crate::replication) fn seen(&self) -> &[[u16; 2]] {
        self.seen
    }

    /// How many bytes it took to say what was read.
    fn taken(&self) -> usize {
        self.taken - 8 + end_bytes(self.range)
    }

    /// How many bytes are left.
    pub(in crate::replication) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.taken())
    }

    /// Whether more was consumed than there is.
    #[inline]
    pub(in crate::replication) fn is_beyond(&self) -> bool {
        self.taken() > self.bytes.len()
    }

    /// Moves the next four bytes into the code; zeros behind the end.
    #[cold]
    fn take(&mut self) {
        let digit = core::array::from_fn(|i| self.bytes.get(self.taken + i).copied().unwrap_or(0));
        self.code = self.code << DIGIT | u64::from(u32::from_be_bytes(digit));
        (self.taken, self.range) = (self.taken + 4, self.range << DIGIT);
    }

    #[inline]
    fn refill(&mut self) {
        if self.range >> DIGIT == 0 {
            self.take();
        }
    }
}

impl Coder for Decoder<'_> {
    #[inline]
    fn code(&mut self, at: usize, _: bool) -> bool {
        let bound = (self.range >> SCALE) * u64::from(self.models[at]);
        let bit = self.code < bound;
        let seen = &mut self.seen[at][usize::from(bit)];
        *seen = seen.saturating_add(1);
        // Selections instead of branches, which the processor couldn't predict.
        self.code -= if bit { 0 } else { bound };
        self.range = if bit { bound } else { self.range - bound };
        self.refill();
        bit
    }

    #[inline]
    fn raw_few(&mut self, _: u32, bits: u32) -> u32 {
        self.range >>= bits;
        // A forged input may lie beyond the last value, which has 16 bits.
        let value = (self.code / self.range).min((1 << bits) - 1);
        self.code -= self.range * value;
        self.refill();
        value as u32
    }
}
