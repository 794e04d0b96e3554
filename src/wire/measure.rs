//! The measure: an upper bound of the bits that a write takes, for packet budgets.
//!
//! Promises: never less than the write takes at any bit position: 7 bits for each align, exact widths for everything
//! else. It is not the packet's size: the cost of an align depends on its position.

use super::BitSink;

/// Counts bits instead of writing them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    bits: usize,
}

impl Measure {
    pub fn new() -> Self {
        Self::default()
    }

    /// Bits of a relative integer that is this far, at least 1, from the number before it.
    pub fn relative(difference: u32) -> usize {
        if difference == 1 {
            // As most are.
            return 1;
        }
        let mut measure = Measure::new();
        measure.int_relative(0, difference);
        measure.bits
    }

    /// The bound so far, in bits.
    pub fn bits_bound(&self) -> usize {
        self.bits
    }
}

impl BitSink for Measure {
    fn bits(&mut self, _value: u64, n: u32) {
        self.bits += n as usize;
    }

    fn align(&mut self) {
        self.bits += 7;
    }

    fn bytes(&mut self, data: &[u8]) {
        self.align();
        self.bits += data.len() * 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_seven_bits_for_each_align() {
        let mut measure = Measure::new();
        measure.bits(0, 8);
        measure.align();
        measure.bits(0, 8);
        assert_eq!(measure.bits_bound(), 23);
        measure.string("hello", 63);
        assert_eq!(measure.bits_bound(), 23 + 6 + 7 + 40);
        measure.wstring("ab", 7);
        measure.int(5, 5, 5);
        assert_eq!(measure.bits_bound(), 76 + 3 + 64);
    }
}
