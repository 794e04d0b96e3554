//! A packet of ghosts: the payload of their channel.
//!
//! | part | bits |
//! |---|---|
//! | tick | 16: the low ones of the tick whose states these are |
//! | visit | 0; until the client has acked one, 1, its number in 64, the high 16 of the tick, then 0, or 1 and the number of the visit that it continues in 64 and that one's last tick in 32 |
//! | sections | each 1, the class id, records, 0; then 0 |
//! | record | 1, gap, op, what the op has |
//! | gap | id - (id before in this section) - 1, or the first id. 0: 1; to 8: 01 and 3 bits; to 72: 001 and 6; to 1,096: 0001 and 10; others: 0000 and 16 |
//! | op | update 1; create 01; destroy 00 |
//! | create | 1 when the client owns the ghost, else 0; of a class with a condition of the game's own, 1 when the client is sent what it covers, else 0; the properties whole |
//! | update | base: 1 that of the update before in this packet; or 01 and 2 bits of how many states before it are used, for the newest state that the client has of an earlier tick; or 00 and 6 bits of the baseline's age - 1, or 63 and the low 16 of its tick; then 1 and 6 bits of (age of an older one - age - 1), or 0. Mask: 1 that of the update before in this section, or 0 and a bit a property. Then the mask's properties, against the baseline |
//! | properties | those with words in the order of the fields, then those without, whole. Against a base with an older state, a bit stands before them: 1 when the words go on, 0 when they stay. By their ticks to the packet's where these are named, else by one more step from the state before to the newest |
//!
//! All numbers have one form. What is read may be anything: see [`Violation`].

mod read;
mod visit;
mod write;

use core::fmt;

pub(in crate::replication) use read::{Heads, Op};
pub(in crate::replication) use visit::{EarlierVisit, Visit};
pub(in crate::replication) use write::{HeadDraft, Position, Writer};

use super::class::{GhostClass, MAX_GROUPS};
use crate::wire::ReadError;

/// The low bits of its tick that a packet carries.
pub(in crate::replication) const TICK_BITS: u32 = 16;

/// The tiers of a gap: bits, and the first gap.
const GAP_TIERS: [(u32, u32); 4] = [(0, 0), (3, 1), (6, 9), (10, 73)];

/// The first gap beyond all tiers, and its bits.
const FAR_GAP: u32 = 1097;
const FAR_GAP_BITS: u32 = 16;

/// Bits of an age, and the number that announces another form.
const AGE_BITS: u32 = 6;
const FAR_AGE: u32 = (1 << AGE_BITS) - 1;

/// Bits of the number of states before the newest, and its maximum.
const DEPTH_BITS: u32 = 2;
pub(in crate::replication) const MAX_DEPTH: u8 = 2;

/// Who a client is to a ghost that is created for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::replication) struct Audience {
    pub(in crate::replication) owner: bool,
    /// Whether the game chose it for what only some are sent; false in classes without that.
    pub(in crate::replication) chosen: bool,
}

impl Audience {
    /// Its group in a class: a number below [`MAX_GROUPS`].
    #[inline]
    pub(in crate::replication) fn group(self, class: &GhostClass) -> u8 {
        const { assert!(MAX_GROUPS <= 1 << u8::BITS) };
        class.group(self.owner, self.chosen) as u8
    }
}

/// The states that an update is written against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replication) enum Base {
    /// The client's newest state of an earlier tick than the packet's, and this many before it.
    Newest { depth: u8 },
    /// The state of a tick, and of an older one or 0.
    Named { baseline: u32, older: u32 },
    /// Of coded classes: the newest state up to a tick, and as many older ones as `run`, each `past` ticks before the next, or
    /// the one before it where `past` is 0.
    UpTo { tick: u32, past: u32, run: u8 },
}

impl Base {
    /// Whether there is an older state to extrapolate from.
    #[inline]
    pub(in crate::replication) fn has_older(self) -> bool {
        match self {
            Base::Newest { depth } => depth > 0,
            Base::Named { older, .. } => older != 0,
            Base::UpTo { run, .. } => run > 0,
        }
    }

    /// The ticks between its states, and from the newest of them to a packet of this tick.
    #[inline]
    pub(in crate::replication) fn ages(self, tick: u32) -> (u16, u16) {
        // Ages have 16 bits.
        match self {
            Base::Newest { .. } | Base::UpTo { past: 0, .. } => (1, 1),
            Base::Named { baseline, older } => ((baseline - older) as u16, (tick - baseline) as u16),
            Base::UpTo { tick: newest, past, .. } => (past as u16, (tick - newest) as u16),
        }
    }

    /// From how many states before the newest words may be extrapolated.
    #[inline]
    pub(in crate::replication) fn depth(self) -> u8 {
        match self {
            Base::Newest { depth } => depth,
            Base::Named { older, .. } => u8::from(older != 0),
            Base::UpTo { run, .. } => run,
        }
    }
}

impl Default for Base {
    fn default() -> Self {
        Base::Named { baseline: 0, older: 0 }
    }
}

/// The oldest baseline that can be named.
pub(in crate::replication) const MAX_AGE: u32 = u16::MAX as u32;

/// How far an older state may be before the baseline.
pub(in crate::replication) const MAX_OLDER: u32 = 1 << AGE_BITS;

/// The maximum of bits in front of the properties of a packet's first record, and after the last: the tick; that there is
/// no visit; a section and its class; a record with its gap, op, ages and mask; and three ends.
pub(in crate::replication) const MAX_OVERHEAD: usize =
    (TICK_BITS + 1 + (1 + 8) + (1 + 20 + 2 + 31 + 65) + 3) as usize;

/// Why a packet of ghosts breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A value can't be read.
    Read(ReadError),
    /// No class has this id.
    Class { class: u32 },
    /// A ghost's id is beyond its class's capacity.
    Id { class: u32, id: u32 },
    /// A gap or an age has a shorter form, or repeats an age though there is none.
    Form,
    /// A mask is empty, has properties that updates don't have, or repeats a mask though there is none.
    Mask { class: u32, mask: u64 },
    /// The client never had this baseline.
    Baseline { class: u32, id: u32 },
    /// There are bits after the end.
    Trailing { bits: usize },
    /// The tick is further ahead than a server can be.
    Tick,
    /// The sender isn't the server whose world is shown here.
    Forged,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Read(error) => error.fmt(f),
            Violation::Class { class } => write!(f, "there is no ghost class {class}"),
            Violation::Id { class, id } => {
                write!(f, "ghost {id} of class {class} is beyond the class's capacity")
            }
            Violation::Form => write!(f, "a gap or an age is not in its shortest form"),
            Violation::Mask { class, mask } => {
                write!(f, "an update of class {class} can't have the property mask {mask:#x}")
            }
            Violation::Baseline { class, id } => {
                write!(f, "ghost {id} of class {class} has no state at the tick of its baseline")
            }
            Violation::Trailing { bits } => write!(f, "{bits} bits are left after the last section"),
            Violation::Tick => write!(f, "the tick is beyond the last one"),
            Violation::Forged => write!(f, "only the server may send ghosts"),
        }
    }
}

impl core::error::Error for Violation {}

impl From<ReadError> for Violation {
    fn from(error: ReadError) -> Self {
        Violation::Read(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::wire::{BitReader, BitSink, BitWriter};

    /// The position in a section, as its records are written and read.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Said {
        id: u32,
        op: Op,
    }

    fn random(rng: &mut Rng, tick: u32) -> Vec<Said> {
        let (mut id, mut said) = (0, Vec::new());
        let one = |rng: &mut Rng, bounds: &[u64]| {
            let bound = bounds[rng.below(bounds.len() as u64) as usize];
            rng.below(bound) as u32
        };
        for _ in 0..rng.below(40) {
            id += one(rng, &[1, 2, 10, 80, 1100, 3000]);
            let baseline = tick - 1 - one(rng, &[1, 3, 70, 65_535]);
            let older = baseline - 1 - one(rng, &[1, 64]);
            let older = if rng.chance(0.5) { older } else { 0 };
            let op = match rng.below(6) {
                0 => Op::Create(Audience { owner: rng.chance(0.5), chosen: rng.chance(0.5) }),
                1 => Op::Destroy,
                2 => Op::Update { base: Base::Newest { depth: rng.below(3) as u8 }, mask: 1 + rng.below(3) },
                _ => Op::Update { base: Base::Named { baseline, older }, mask: 1 + rng.below(3) },
            };
            said.push(Said { id, op });
            id += 1;
        }
        said
    }

    #[test]
    fn heads_are_read_as_they_were_written() {
        let mut looks = 0;
        for seed in 0..300 {
            let mut rng = Rng::seeded(seed);
            let tick = 200_000 + rng.below(100_000) as u32;
            let said = random(&mut rng, tick);
            let (mut bits, mut writer) = (BitWriter::new(), Writer::new(tick, 3));
            writer.begin(&mut bits, None);
            writer.begin_section(&mut bits, 5);
            for Said { id, op } in &said {
                let drafted = match *op {
                    Op::Create(audience) => writer.create(*id, audience, true),
                    Op::Destroy => writer.destroy(*id),
                    Op::Update { base, mask } => writer.update(*id, base, mask, 7),
                };
                let before = bits.bit_len();
                writer.write(&mut bits, &drafted);
                assert_eq!(bits.bit_len() - before, drafted.bits());
            }
            writer.end_section(&mut bits);
            writer.end(&mut bits);
            let length = bits.bit_len();
            let bytes = bits.into_bytes();
            let mut reader = BitReader::with_range(&bytes, 0, length);
            assert_eq!(reader.bits(16).unwrap() as u32, tick & 0xFFFF);
            assert!(!reader.bool().unwrap());
            assert!(reader.bool().unwrap());
            assert_eq!(reader.bits(3).unwrap(), 5);
            let (mut heads, mut found) = (Heads::new(tick), Vec::new());
            heads.begin_section(5, true);
            loop {
                let at = reader.position();
                let seen = reader.look(at).and_then(|bits| heads.look(bits, 1 << 16));
                let Some((id, op)) = heads.next(&mut reader, 7, 0x7F, 1 << 16).unwrap() else { break };
                if let Some((seen, taken)) = seen {
                    let last = found.iter().rev().find(|said: &&Said| matches!(said.op, Op::Update { .. }));
                    assert_eq!((seen, at + taken as usize), (id, reader.position()));
                    assert_eq!(last.map(|said| said.op), Some(op), "seed {seed}: like the one before");
                    looks += 1;
                }
                found.push(Said { id, op });
            }
            assert_eq!(found, said, "seed {seed}");
            assert!(!reader.bool().unwrap());
            assert_eq!(reader.remaining_bits(), 0);
        }
        assert!(looks > 20, "{looks} at one look");
    }

    #[test]
    fn what_has_a_shorter_form_or_no_meaning_is_refused() {
        let read = |write: &dyn Fn(&mut BitWriter)| {
            let mut bits = BitWriter::new();
            bits.bool(true);
            write(&mut bits);
            bits.bits(0, 64);
            let bytes = bits.into_bytes();
            let (mut reader, mut heads) = (BitReader::new(&bytes), Heads::new(100));
            heads.begin_section(0, false);
            heads.next(&mut reader, 3, 0b101, 2000)
        };
        let far = |gap: u64| read(&move |bits| bits.bits(gap << 4, 20));
        assert_eq!(far(1096), Err(Violation::Form));
        assert_eq!(far(2000), Err(Violation::Id { class: 0, id: 2000 }));
        assert!(far(1999).is_ok());
        // Id 0, an update: like none, of an age that has a short form, and of a tick before the first.
        assert_eq!(read(&|bits| bits.bits(0b111, 3)), Err(Violation::Form));
        assert_eq!(read(&|bits| bits.bits(0b11 | 63 << 4 | 99 << 10, 26)), Err(Violation::Form));
        assert_eq!(read(&|bits| bits.bits(0b11 | 63 << 4 | 200 << 10, 26)), Err(Violation::Form));
        assert_eq!(read(&|bits| bits.bits(0b1011 | 3 << 4, 6)), Err(Violation::Form));
        // A mask of nothing, of what updates don't have, and like none.
        let mask = |mask: u64| read(&move |bits| bits.bits(0b011 | mask << 12, 15));
        assert_eq!(mask(0), Err(Violation::Mask { class: 0, mask: 0 }));
        assert_eq!(mask(2), Err(Violation::Mask { class: 0, mask: 2 }));
        assert_eq!(
            mask(5),
            Ok(Some((0, Op::Update { base: Base::Named { baseline: 99, older: 0 }, mask: 5 })))
        );
        assert_eq!(read(&|bits| bits.bits(0b011 | 1 << 11, 12)), Err(Violation::Mask { class: 0, mask: 0 }));
    }
}
