//! Reads the heads of records.

use super::{
    AGE_BITS, Audience, Base, DEPTH_BITS, FAR_AGE, FAR_GAP, FAR_GAP_BITS, GAP_TIERS, MAX_DEPTH, TICK_BITS,
    Violation,
};
use crate::wire::BitReader;

/// The operation of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replication) enum Op {
    /// A change against states that the client has.
    Update {
        base: Base,
        mask: u64,
    },
    Create(Audience),
    /// The ghost is gone.
    Destroy,
}

/// The record flag, a gap of 0, an update with the previous base and mask: most records begin so where much changes.
const USUAL: u64 = 0b11111;
const USUAL_BITS: u32 = 5;

/// An update with the previous base and mask.
const ALIKE: u64 = 0b111;

/// Reads a packet's heads.
#[derive(Debug)]
pub(in crate::replication) struct Heads {
    tick: u32,
    class: u32,
    is_chosen: bool,
    next: u32,
    /// The previous update's, in the packet.
    base: Option<Base>,
    /// The previous update's, in the section, or 0.
    mask: u64,
}

impl Heads {
    /// A reader for a packet of this tick.
    pub(in crate::replication) fn new(tick: u32) -> Self {
        Heads { tick, class: 0, is_chosen: false, next: 0, base: None, mask: 0 }
    }

    /// Begins a section of a class; `is_chosen`: the game chooses who is sent some of its properties.
    pub(in crate::replication) fn begin_section(&mut self, class: u32, is_chosen: bool) {
        self.is_chosen = is_chosen;
        (self.class, self.next, self.mask) = (class, 0, 0);
    }

    /// The next record's id and op, or None at the section's end. The class has this many properties, of which updates
    /// may have those of `allowed`.
    #[inline]
    pub(in crate::replication) fn next(
        &mut self,
        reader: &mut BitReader<'_>,
        properties: u32,
        allowed: u64,
        capacity: u32,
    ) -> Result<Option<(u32, Op)>, Violation> {
        if !reader.bool()? {
            return Ok(None);
        }
        let gap = read_gap(reader)?;
        // Both are below 2^17.
        let id = self.next + gap;
        if id >= capacity {
            return Err(Violation::Id { class: self.class, id });
        }
        self.next = id + 1;
        let op = if reader.bool()? {
            let base = self.read_base(reader)?;
            self.base = Some(base);
            self.mask = self.read_mask(reader, properties, allowed)?;
            Op::Update { base, mask: self.mask }
        } else if reader.bool()? {
            let owner = reader.bool()?;
            Op::Create(Audience { owner, chosen: self.is_chosen && reader.bool()? })
        } else {
            Op::Destroy
        };
        Ok(Some((id, op)))
    }

    /// The id of an update like the one before, if these bits begin with one, and how many its head takes. The bits are at least 19.
    #[inline]
    pub(in crate::replication) fn look(&self, bits: u64, capacity: u32) -> Option<(u32, u32)> {
        let (gap, taken) = if bits % (1 << USUAL_BITS) == USUAL {
            (0, USUAL_BITS)
        } else {
            let tier = (bits >> 1).trailing_zeros();
            let (gap_bits, first) = *GAP_TIERS.get(tier as usize)?;
            let (begin, end) = (tier + 2, tier + 2 + gap_bits);
            if bits & 1 == 0 || bits >> end & ALIKE != ALIKE {
                return None;
            }
            // At most 10 bits.
            (first + (bits >> begin & ((1 << gap_bits) - 1)) as u32, end + ALIKE.trailing_ones())
        };
        let id = self.next + gap;
        (id < capacity).then_some((id, taken))
    }

    /// Goes on after an update of [`Heads::look`].
    #[inline]
    pub(in crate::replication) fn pass(&mut self, id: u32) {
        self.next = id + 1;
    }

    fn read_base(&self, reader: &mut BitReader<'_>) -> Result<Base, Violation> {
        if reader.bool()? {
            return self.base.ok_or(Violation::Form);
        }
        if reader.bool()? {
            let depth = reader.bits(DEPTH_BITS)? as u8;
            return if depth <= MAX_DEPTH { Ok(Base::Newest { depth }) } else { Err(Violation::Form) };
        }
        // All have at most 16 bits.
        let age = match reader.bits(AGE_BITS)? as u32 {
            FAR_AGE => {
                let low = reader.bits(TICK_BITS)? as u32;
                let age = self.tick.wrapping_sub(low) & 0xFFFF;
                if age <= FAR_AGE {
                    return Err(Violation::Form);
                }
                age
            }
            age => age + 1,
        };
        let baseline = self.tick.checked_sub(age).filter(|tick| *tick > 0).ok_or(Violation::Form)?;
        if !reader.bool()? {
            return Ok(Base::Named { baseline, older: 0 });
        }
        let before = reader.bits(AGE_BITS)? as u32 + 1;
        let older = baseline.checked_sub(before).filter(|tick| *tick > 0).ok_or(Violation::Form)?;
        Ok(Base::Named { baseline, older })
    }

    fn read_mask(&self, reader: &mut BitReader<'_>, properties: u32, allowed: u64) -> Result<u64, Violation> {
        let same = reader.bool()?;
        let mask = match properties {
            _ if same => self.mask,
            0 => 0,
            bits => reader.bits(bits)?,
        };
        if mask == 0 || mask & !allowed != 0 {
            return Err(Violation::Mask { class: self.class, mask });
        }
        Ok(mask)
    }
}

#[inline]
fn read_gap(reader: &mut BitReader<'_>) -> Result<u32, Violation> {
    for (bits, first) in GAP_TIERS {
        if reader.bool()? {
            // At most 10 bits.
            return Ok(if bits == 0 { first } else { first + reader.bits(bits)? as u32 });
        }
    }
    let gap = reader.bits(FAR_GAP_BITS)? as u32;
    if gap < FAR_GAP { Err(Violation::Form) } else { Ok(gap) }
}
