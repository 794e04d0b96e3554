//! Writes the heads of records.
//!
//! A record is drafted first: its size must be known before any of it is written.

use super::{
    AGE_BITS, Audience, Base, DEPTH_BITS, FAR_AGE, FAR_GAP, FAR_GAP_BITS, GAP_TIERS, TICK_BITS, Visit,
};
use crate::wire::{BitSink, BitWriter};

/// A record's head, not yet written.
#[derive(Clone, Copy, Debug)]
pub(in crate::replication) struct HeadDraft {
    id: u32,
    head: u64,
    head_bits: u32,
    /// Bits of the mask to write after the head, or 0.
    mask_bits: u32,
    mask: u64,
    base: Base,
}

impl HeadDraft {
    #[inline]
    pub(in crate::replication) fn bits(&self) -> usize {
        (self.head_bits + self.mask_bits) as usize
    }
}

/// Writes a packet's heads.
#[derive(Debug)]
pub(in crate::replication) struct Writer {
    tick: u32,
    class_bits: u32,
    /// The caller changes it after records that it wrote by itself.
    pub(in crate::replication) at: Position,
}

/// The place in a section that the next head is written against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::replication) struct Position {
    /// One more than the previous id.
    pub(in crate::replication) next: u32,
    base: Base,
    /// The previous update's mask in the section, or 0.
    mask: u64,
}

impl Writer {
    pub(in crate::replication) fn new(tick: u32, class_bits: u32) -> Self {
        Writer { tick, class_bits, at: Position::default() }
    }

    /// Writes the tick and, until the client has acked one, the visit.
    pub(in crate::replication) fn begin(&self, bits: &mut BitWriter, visit: Option<Visit>) {
        bits.bits(u64::from(self.tick) & 0xFFFF, TICK_BITS);
        bits.bool(visit.is_some());
        if let Some(visit) = visit {
            visit.write(self.tick, bits);
        }
    }

    /// Bits of what [`Writer::begin`] writes, and of the packet's end.
    pub(in crate::replication) fn frame_bits(visit: Option<Visit>) -> usize {
        TICK_BITS as usize + 1 + visit.map_or(0, Visit::bits) + 1
    }

    /// Bits of a section without records.
    pub(in crate::replication) fn section_bits(&self) -> usize {
        (1 + self.class_bits + 1) as usize
    }

    pub(in crate::replication) fn begin_section(&self, bits: &mut BitWriter, class: usize) {
        bits.bits(1 | (class as u64) << 1, 1 + self.class_bits);
    }

    /// Goes to the start of a section: before its first record is drafted.
    #[inline]
    pub(in crate::replication) fn reset_section(&mut self) {
        (self.at.next, self.at.mask) = (0, 0);
    }

    pub(in crate::replication) fn end_section(&self, bits: &mut BitWriter) {
        bits.bool(false);
    }

    pub(in crate::replication) fn end(&self, bits: &mut BitWriter) {
        bits.bool(false);
    }

    pub(in crate::replication) fn create(&self, id: u32, audience: Audience, is_chosen: bool) -> HeadDraft {
        let chosen = u64::from(is_chosen && audience.chosen) << 3;
        self.draft(id, 0b10 | u64::from(audience.owner) << 2 | chosen, 3 + u32::from(is_chosen))
    }

    pub(in crate::replication) fn destroy(&self, id: u32) -> HeadDraft {
        self.draft(id, 0b00, 2)
    }

    /// Drafts an update, with a mask of this many properties.
    #[inline]
    pub(in crate::replication) fn update(
        &self,
        id: u32,
        base: Base,
        mask: u64,
        properties: u32,
    ) -> HeadDraft {
        let (mut rest, mut bits) = (1, 1);
        if base == self.at.base {
            rest |= 1 << 1;
            bits += 1;
        } else {
            match base {
                Base::Newest { depth } => {
                    rest |= (1 << 1 | u64::from(depth) << 2) << bits;
                    bits += 2 + DEPTH_BITS;
                }
                // Coded classes have no section of these.
                Base::UpTo { .. } => {}
                Base::Named { baseline, older } => {
                    let age = self.tick - baseline;
                    bits += 2;
                    if age <= FAR_AGE {
                        rest |= u64::from(age - 1) << bits;
                        bits += AGE_BITS;
                    } else {
                        rest |= u64::from(FAR_AGE | (baseline & 0xFFFF) << AGE_BITS) << bits;
                        bits += AGE_BITS + TICK_BITS;
                    }
                    if older != 0 {
                        rest |= (1 | u64::from(baseline - older - 1) << 1) << bits;
                        bits += AGE_BITS;
                    }
                    bits += 1;
                }
            }
        }
        let mut drafted = HeadDraft { base, mask, ..self.draft(id, rest, bits) };
        if mask == self.at.mask {
            drafted.head |= 1 << drafted.head_bits;
        } else {
            drafted.mask_bits = properties;
        }
        drafted.head_bits += 1;
        drafted
    }

    /// The head of an update with the same base and mask as the one before in its section, and its bits; None for
    /// others.
    #[inline]
    pub(in crate::replication) fn alike(&self, id: u32, base: Base, mask: u64) -> Option<(u64, u32)> {
        if base != self.at.base || mask != self.at.mask {
            return None;
        }
        let (gap, gap_bits) = gap(id - self.at.next);
        Some((1 | gap << 1 | 0b111 << (1 + gap_bits), 1 + gap_bits + 3))
    }

    /// Writes the record's flag and its gap, then `rest`.
    #[inline]
    fn draft(&self, id: u32, rest: u64, rest_bits: u32) -> HeadDraft {
        let (gap, gap_bits) = gap(id - self.at.next);
        HeadDraft {
            id,
            head: 1 | gap << 1 | rest << (1 + gap_bits),
            head_bits: 1 + gap_bits + rest_bits,
            mask_bits: 0,
            mask: 0,
            base: Base::default(),
        }
    }

    #[inline]
    pub(in crate::replication) fn write(&mut self, bits: &mut BitWriter, drafted: &HeadDraft) {
        bits.bits(drafted.head, drafted.head_bits);
        if drafted.mask_bits > 0 {
            bits.bits(drafted.mask, drafted.mask_bits);
        }
        if drafted.mask != 0 {
            (self.at.base, self.at.mask) = (drafted.base, drafted.mask);
        }
        self.at.next = drafted.id + 1;
    }
}

#[inline]
fn gap(gap: u32) -> (u64, u32) {
    if gap == 0 {
        return (1, 1);
    }
    for (tier, (bits, first)) in (1u32..).zip(&GAP_TIERS[1..]) {
        if gap < first + (1 << bits) {
            return ((1 | u64::from(gap - first) << 1) << tier, tier + 1 + bits);
        }
    }
    debug_assert!(gap >= FAR_GAP);
    (u64::from(gap) << GAP_TIERS.len(), GAP_TIERS.len() as u32 + FAR_GAP_BITS)
}
