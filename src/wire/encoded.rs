//! A message encoded once, to be placed at any bit position later and in many packets.
//!
//! Promises: appending it gives the same bits as writing the message there. The padding of an align depends on the
//! position, but only the first align's does: after it every position has the same phase. So the message is stored as
//! the bits before its first align and those after the padding.

use super::padding;
use std::sync::Arc;

/// Bytes that lie within the value: with the tag they fill nine words. Most messages have no more, and to allocate their
/// bytes takes longer than to copy them on their way through a queue.
pub(super) const INLINE: usize = 71;

#[derive(Clone, Debug)]
pub(super) enum Bytes {
    /// The rest of them are zero.
    Inline([u8; INLINE]),
    Shared(Arc<[u8]>),
    /// The first byte; those of other messages follow.
    Part(Arc<Vec<u8>>, u32),
}

/// An encoded message. A clone shares the bytes if they are many.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub(super) bytes: Bytes,
    pub(super) bits: usize,
    pub(super) first_align: Option<usize>,
}

impl Encoded {
    /// A message of `bits` bits that was written at bit position 0, whose first align happened at bit
    /// position `first_align`, before its padding. [`super::BitWriter::encoded`] makes these.
    pub(super) fn new(bytes: &[u8], bits: usize, first_align: Option<usize>) -> Self {
        debug_assert!(bits.div_ceil(8) == bytes.len());
        let mut inline = [0; INLINE];
        let bytes = match inline.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Bytes::Inline(inline)
            }
            None => Bytes::Shared(bytes.into()),
        };
        Encoded { bytes, bits, first_align }
    }

    /// The message as it is at bit position 0.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Inline(bytes) => bytes.get(..self.bits.div_ceil(8)).unwrap_or_default(),
            Bytes::Shared(bytes) => bytes,
            Bytes::Part(bytes, start) => bytes
                .get(*start as usize..)
                .and_then(|rest| rest.get(..self.bits.div_ceil(8)))
                .unwrap_or_default(),
        }
    }

    /// Bits it takes at bit position 0.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Bits it takes at a bit position with this phase (the position modulo 8).
    pub fn bits_at(&self, phase: usize) -> usize {
        let (head, tail) = self.run_bits();
        match tail {
            Some(tail) => head + padding(phase + head) + tail,
            None => head,
        }
    }

    /// The most bits it takes at any position. Some position takes them.
    pub fn max_bits(&self) -> usize {
        let (head, tail) = self.run_bits();
        tail.map_or(head, |tail| head + 7 + tail)
    }

    /// Its bytes, the bits before the first align, and after it and its padding the first byte and the bits; those are
    /// `None` without an align.
    #[inline]
    pub(super) fn runs(&self) -> (&[u8], usize, Option<(usize, usize)>) {
        let (head, tail) = self.run_bits();
        (self.bytes(), head, tail.map(|bits| (head.div_ceil(8), bits)))
    }

    fn run_bits(&self) -> (usize, Option<usize>) {
        match self.first_align {
            Some(at) => (at, Some(self.bits - at - padding(at))),
            None => (self.bits, None),
        }
    }
}

impl PartialEq for Encoded {
    fn eq(&self, other: &Self) -> bool {
        let Encoded { bits, first_align, .. } = *self;
        (bits, first_align) == (other.bits, other.first_align) && self.bytes() == other.bytes()
    }
}

impl Eq for Encoded {}

#[cfg(test)]
mod tests {
    use super::super::{Batch, BitSink, BitWriter, Measure};
    use super::*;
    use crate::rng::Rng;

    /// Writes the same random operations to any sink.
    fn scribble(rng: &mut Rng, sink: &mut dyn BitSink) {
        for _ in 0..rng.below(12) {
            let n = 1 + rng.below(64) as u32;
            match rng.below(6) {
                0 => sink.align(),
                1 => sink.bytes(&vec![0xA5; rng.below(100) as usize]),
                2 => sink.string("Grüße", 31),
                _ => sink.bits(rng.next_u64() >> (64 - n), n),
            }
        }
    }

    #[test]
    fn appended_at_any_phase_is_as_if_written_there() {
        for seed in 0..400 {
            let mut alone = BitWriter::new();
            scribble(&mut Rng::seeded(seed), &mut alone);
            let message = alone.encoded();
            let mut measure = Measure::new();
            scribble(&mut Rng::seeded(seed), &mut measure);
            let most = (0..8).map(|phase| message.bits_at(phase)).max();
            assert_eq!(Some(message.max_bits()), most, "the bound is reached");
            assert!(message.max_bits() <= measure.bits_bound());
            for start in 1..=24 {
                let (mut appended, mut written) = (BitWriter::new(), BitWriter::new());
                appended.bits(1, start);
                appended.append(&message);
                written.bits(1, start);
                scribble(&mut Rng::seeded(seed), &mut written);
                let start = start as usize;
                assert_eq!(appended.bit_len(), start + message.bits_at(start), "seed {seed} at {start}");
                // Following bits, and an encoding of the whole, must not distinguish the two either.
                appended.append(&message);
                written.append(&message);
                assert_eq!(appended.encoded(), written.encoded(), "seed {seed} at {start}");
            }
        }
    }

    #[test]
    fn bytes_of_any_length_are_kept() {
        for length in (0..2 * INLINE).chain([255, 1000]) {
            let data: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut writer = BitWriter::new();
            writer.bytes(&data);
            let message = writer.encoded();
            assert_eq!(message.bytes(), data);
            assert_eq!(matches!(message.bytes, Bytes::Inline(_)), length <= INLINE);
            assert_eq!(message.clone(), message);
        }
        assert_eq!(size_of::<Bytes>(), INLINE + 1);
    }

    #[test]
    fn messages_of_a_batch_are_as_those_alone() {
        let (mut batch, mut alone) = (Batch::default(), Vec::new());
        for seed in 0..200 {
            let mut writer = BitWriter::new();
            scribble(&mut Rng::seeded(seed), &mut writer);
            assert_eq!(batch.push(&mut writer), writer.encoded().max_bits());
            alone.push(writer.encoded());
        }
        let messages = batch.finish();
        assert!(messages.iter().filter(|message| matches!(message.bytes, Bytes::Part(..))).count() > 50);
        assert_eq!(messages, alone);
        let appended = |messages: &[Encoded]| {
            let mut writer = BitWriter::new();
            messages.iter().for_each(|message| writer.append(message));
            writer.into_bytes()
        };
        assert_eq!(appended(&messages), appended(&alone));
    }

    #[test]
    fn an_align_at_the_very_end_pads_where_it_lands() {
        let mut writer = BitWriter::new();
        writer.bits(1, 3);
        writer.align();
        let message = writer.encoded();
        assert_eq!((message.bits(), message.bits_at(5), message.bits_at(6)), (8, 3, 10));
        let mut writer = BitWriter::new();
        writer.bits(0, 6);
        writer.append(&message);
        assert_eq!(writer.bit_len(), 16);
        assert_eq!(writer.as_bytes(), [0x40, 0]);
    }
}
