//! The bytes of notes about a game's worlds: the host's, and those of the other players.

use std::collections::BTreeMap;

use super::worlds::{MAX_NAMED, WorldId, WorldInfo};
use crate::time::Instant;

const HOST: u8 = 1;
const MEMBER: u8 = 2;

/// A note of one player to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// The note of the master.
    Host(HostNote),
    /// The worlds that a player has heard of, and whether it has them.
    Member(BTreeMap<WorldId, (WorldInfo, bool)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostNote {
    /// Whether the game goes on.
    pub(super) is_running: bool,
    /// The world with which it went on, and when that was saved.
    pub(super) base: Option<(WorldId, Instant)>,
    /// The world that the master asks the receiver for.
    pub(super) wanted: Option<WorldId>,
    /// The newest worlds that it has saved.
    pub(super) saved: BTreeMap<WorldId, WorldInfo>,
}

/// Milliseconds of a clock, which wrap.
fn milliseconds(at: Instant) -> u32 {
    (at.as_nanos() / 1_000_000) as u32
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// The sender's clock when it was sent, and ours when it came.
    sent_ms: u32,
    came_at: Instant,
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        self.array().and_then(|[byte]| (byte < 2).then_some(byte == 1))
    }

    fn id(&mut self) -> Option<WorldId> {
        Some((self.u32()?, self.u32()?))
    }

    /// A time by our clock.
    fn time(&mut self) -> Option<Instant> {
        let age = self.sent_ms.wrapping_sub(self.u32()?);
        let nanos = self.came_at.as_nanos().saturating_sub(u64::from(age) * 1_000_000);
        Some(Instant::from_nanos(nanos))
    }

    fn known(&mut self) -> Option<WorldInfo> {
        Some(WorldInfo { size: self.u32()?, saved: self.time()?, hash: self.array()? })
    }
}

fn write_id(out: &mut Vec<u8>, id: WorldId) {
    out.extend(id.0.to_le_bytes());
    out.extend(id.1.to_le_bytes());
}

fn write_known(out: &mut Vec<u8>, known: &WorldInfo) {
    out.extend(known.size.to_le_bytes());
    out.extend(milliseconds(known.saved).to_le_bytes());
    out.extend(known.hash);
}

impl Note {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Note::Host(HostNote { is_running, base, wanted, saved }) => {
                out.extend([
                    HOST,
                    u8::from(*is_running),
                    u8::from(base.is_some()),
                    u8::from(wanted.is_some()),
                ]);
                if let Some((id, at)) = base {
                    write_id(&mut out, *id);
                    out.extend(milliseconds(*at).to_le_bytes());
                }
                wanted.iter().for_each(|id| write_id(&mut out, *id));
                for (id, known) in saved {
                    write_id(&mut out, *id);
                    write_known(&mut out, known);
                }
            }
            Note::Member(worlds) => {
                out.push(MEMBER);
                for (id, (known, is_held)) in worlds {
                    write_id(&mut out, *id);
                    write_known(&mut out, known);
                    out.push(u8::from(*is_held));
                }
            }
        }
        out
    }

    /// A note that was sent at `sent_ms` of its sender's clock, and came at `came_at` of ours. None if the bytes are none.
    pub(super) fn read(bytes: &[u8], sent_ms: u32, came_at: Instant) -> Option<Self> {
        let mut from = Reader { bytes, sent_ms, came_at };
        match from.array()? {
            [HOST] => {
                let (is_running, has_base, is_asking) = (from.flag()?, from.flag()?, from.flag()?);
                let base = if has_base { Some((from.id()?, from.time()?)) } else { None };
                let wanted = if is_asking { Some(from.id()?) } else { None };
                let mut saved = BTreeMap::new();
                while !from.bytes.is_empty() {
                    saved.insert(from.id()?, from.known()?);
                }
                let is_fine = saved.len() <= MAX_NAMED;
                is_fine.then_some(Note::Host(HostNote { is_running, base, wanted, saved }))
            }
            [MEMBER] => {
                let mut worlds = BTreeMap::new();
                while !from.bytes.is_empty() {
                    worlds.insert(from.id()?, (from.known()?, from.flag()?));
                }
                (worlds.len() <= MAX_NAMED).then_some(Note::Member(worlds))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Entropy, Rng};

    const SENT_MS: u32 = 5_000;

    fn read(bytes: &[u8]) -> Option<Note> {
        Note::read(bytes, SENT_MS, Instant::from_millis(9_000))
    }

    /// The bytes of some worlds, each with a flag behind it if one is given.
    fn worlds(count: u32, flag: Option<u8>) -> Vec<u8> {
        let mut out = Vec::new();
        for number in 0..count {
            write_id(&mut out, (1, number));
            write_known(&mut out, &WorldInfo { size: 7, saved: Instant::from_millis(4_000), hash: [9; 32] });
            out.extend(flag);
        }
        out
    }

    #[test]
    fn a_note_is_read_whole_or_not_at_all() {
        let id = [1, 0, 0, 0, 2, 0, 0, 0];
        let most = MAX_NAMED as u32;
        let malformed: [(&str, Vec<u8>); 13] = [
            ("nothing", vec![]),
            ("another kind", vec![3, 0, 0, 0]),
            ("a kind of zero", vec![0]),
            ("flags that are missing", vec![HOST, 0, 0]),
            ("a flag of 2", vec![HOST, 2, 0, 0]),
            ("half a base", [&[HOST, 1, 1, 0][..], &id].concat()),
            ("half a wanted id", [&[HOST, 0, 0, 1][..], &id[..7]].concat()),
            ("half a world", [&[HOST, 1, 0, 0][..], &worlds(1, None)[..47]].concat()),
            ("a byte too many", [&[HOST, 1, 0, 0][..], &worlds(1, None), &[0]].concat()),
            ("too many saves", [&[HOST, 1, 0, 0][..], &worlds(most + 1, None)].concat()),
            ("a world without its flag", [&[MEMBER][..], &worlds(1, None)].concat()),
            ("a world with a flag of 9", [&[MEMBER][..], &worlds(1, Some(9))].concat()),
            ("too many worlds", [&[MEMBER][..], &worlds(most + 1, Some(1))].concat()),
        ];
        for (what, bytes) in malformed {
            assert_eq!(read(&bytes), None, "{what}");
        }
        let fine = [
            vec![HOST, 0, 0, 0],
            [&[HOST, 1, 1, 1][..], &id, &[0; 4], &id, &worlds(most, None)].concat(),
            vec![MEMBER],
            [&[MEMBER][..], &worlds(most, Some(1))].concat(),
        ];
        for bytes in fine {
            assert!(read(&bytes).is_some(), "{bytes:?}");
        }
    }

    #[test]
    fn what_was_read_is_written_alike() {
        let mut rng = Rng::seeded(3);
        let mut notes = 0;
        for _ in 0..20_000 {
            let mut bytes = vec![0; rng.below(200) as usize];
            rng.fill(&mut bytes);
            bytes.iter_mut().take(4).for_each(|byte| *byte &= 3);
            // As it goes through a clock of milliseconds and back.
            let Some(note) = read(&bytes) else { continue };
            let again = Note::read(&note.write(), 9_000, Instant::from_millis(9_000));
            assert_eq!(again, Some(note));
            notes += 1;
        }
        assert!(notes > 20, "{notes}");
    }
}
