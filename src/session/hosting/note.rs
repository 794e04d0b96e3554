//! The bytes of notes about a game's worlds: the host's, and those of the other players.

use std::collections::BTreeMap;

use super::worlds::{MAX_NAMED, WorldId, WorldInfo};
use crate::time::Instant;
use crate::transport::chunks::ContentHash;
use crate::wire::packet::{Counted, from_bytes, packet, to_bytes};

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

type Id = (u32, u32);
/// A world's size, when it was saved by the sender's clock, and its hash.
type Info = (u32, u32, ContentHash);

packet! {
    /// A note as it is sent: its times are milliseconds of the sender's clock, which wrap.
    enum Sent as u8 {
        1 => Host {
            is_running: bool,
            base: Option<(Id, u32)>,
            wanted: Option<Id>,
            saved: Counted<(Id, Info), 4, MAX_NAMED>,
        },
        2 => Member { worlds: Counted<(Id, Info, bool), 4, MAX_NAMED> },
    }
}

fn milliseconds(at: Instant) -> u32 {
    (at.as_nanos() / 1_000_000) as u32
}

fn info_of(known: &WorldInfo) -> (u32, u32, ContentHash) {
    (known.size, milliseconds(known.saved), known.hash)
}

impl Note {
    pub(super) fn write(&self) -> Vec<u8> {
        to_bytes::<Sent>(&match self {
            Note::Host(HostNote { is_running, base, wanted, saved }) => Sent::Host {
                is_running: *is_running,
                base: base.map(|(id, at)| (id, milliseconds(at))),
                wanted: *wanted,
                saved: saved.iter().map(|(id, known)| (*id, info_of(known))).collect(),
            },
            Note::Member(worlds) => {
                let worlds = worlds.iter().map(|(id, (known, is_held))| (*id, info_of(known), *is_held));
                Sent::Member { worlds: worlds.collect() }
            }
        })
    }

    /// A note that was sent at `sent_ms` of its sender's clock, and came at `came_at` of ours. None if the bytes are none.
    pub(super) fn read(bytes: &[u8], sent_ms: u32, came_at: Instant) -> Option<Self> {
        let time = |at: u32| {
            let age = u64::from(sent_ms.wrapping_sub(at)) * 1_000_000;
            Instant::from_nanos(came_at.as_nanos().saturating_sub(age))
        };
        let known = |(size, saved, hash): Info| WorldInfo { size, saved: time(saved), hash };
        Some(match from_bytes::<Sent>(bytes).ok()? {
            Sent::Host { is_running, base, wanted, saved } => Note::Host(HostNote {
                is_running,
                base: base.map(|(id, at)| (id, time(at))),
                wanted,
                saved: saved.into_iter().map(|(id, info)| (id, known(info))).collect(),
            }),
            Sent::Member { worlds } => {
                let worlds = worlds.into_iter().map(|(id, info, is_held)| (id, (known(info), is_held)));
                Note::Member(worlds.collect())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_NOTE_BYTES;
    use super::*;
    use crate::rng::{Entropy, Rng};

    const SENT_MS: u32 = 5_000;

    fn read(bytes: &[u8]) -> Option<Note> {
        Note::read(bytes, SENT_MS, Instant::from_millis(9_000))
    }

    fn worlds(count: u32) -> BTreeMap<WorldId, WorldInfo> {
        let info = WorldInfo { size: 7, saved: Instant::from_millis(4_000), hash: [9; 32] };
        (0..count).map(|number| ((1, number), info)).collect()
    }

    fn notes() -> [Note; 4] {
        let most = worlds(MAX_NAMED as u32);
        let base = Some(((1, 2), Instant::from_millis(3_000)));
        [
            Note::Host(HostNote { is_running: false, base: None, wanted: None, saved: BTreeMap::new() }),
            Note::Host(HostNote { is_running: true, base, wanted: Some((1, 2)), saved: most.clone() }),
            Note::Member(BTreeMap::new()),
            Note::Member(most.into_iter().map(|(id, known)| (id, (known, true))).collect()),
        ]
    }

    #[test]
    fn a_note_is_read_whole_or_not_at_all() {
        for note in notes() {
            let bytes = note.write();
            assert!(bytes.len() <= MAX_NOTE_BYTES, "{}", bytes.len());
            assert_eq!(Note::read(&bytes, 9_000, Instant::from_millis(9_000)), Some(note));
            assert!((0..bytes.len()).all(|end| read(&bytes[..end]).is_none()), "{bytes:?}");
            assert_eq!(read(&[&bytes[..], &[0]].concat()), None, "a byte too many");
        }
        let too_many = [2, MAX_NAMED as u8 + 1].into_iter().chain([0; 512]).collect::<Vec<u8>>();
        for bytes in [&[][..], &[3, 0, 0, 0], &[0], &too_many] {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn what_was_read_is_written_alike() {
        let mut rng = Rng::seeded(3);
        let mut notes = 0;
        for _ in 0..100_000 {
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
