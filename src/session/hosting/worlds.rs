//! The saved worlds of a hosted game, as one player knows of them.
//!
//! Promises: a world whose bytes no trusted hash names is never taken over: the hash came from the host that saved it, or
//! more than half of the players report it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::mesh::{Players, bit};
use crate::time::Instant;
use crate::transport::chunks::ContentHash;

/// The epoch of a world's host, and which of its saves it is: later ones are greater.
pub type WorldId = (u32, u32);

/// The maximum bytes of a world.
pub const MAX_WORLD_BYTES: usize = 4 << 20;

/// The worlds that a note names, at most.
pub(super) const MAX_NAMED: usize = 8;

/// Whole worlds that are kept, and as many whose notes haven't come.
const MAX_HELD: usize = 2;

/// The description of a saved world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorldInfo {
    pub size: u32,
    /// When it was saved, by this player's clock.
    pub saved: Instant,
    pub hash: ContentHash,
}

/// The bytes of a world, with their SHA-256.
#[derive(Clone, Debug)]
pub struct WorldBytes {
    pub hash: ContentHash,
    pub bytes: Arc<Vec<u8>>,
}

impl WorldBytes {
    pub fn new(bytes: Vec<u8>) -> Self {
        WorldBytes { hash: Sha256::digest(&bytes).into(), bytes: Arc::new(bytes) }
    }
}

/// A world to send to a player; `Hosting::note_sent` is told once it is there, or lost.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub player: u8,
    pub id: WorldId,
    pub world: WorldBytes,
}

#[derive(Debug, Default)]
pub(super) struct Worlds {
    /// The worlds that their hosts announced to this player.
    heard: BTreeMap<WorldId, WorldInfo>,
    held: BTreeMap<WorldId, WorldBytes>,
    /// Worlds from the host whose note hasn't come.
    early: BTreeMap<WorldId, WorldBytes>,
    /// Worlds that aren't any, by what loaded them.
    bad: Vec<WorldId>,
}

impl Worlds {
    /// Another host: nothing more comes from the former one.
    pub(super) fn begin_epoch(&mut self) {
        self.early.clear();
    }

    /// The host has announced a world.
    pub(super) fn hear(&mut self, id: WorldId, known: WorldInfo) {
        if self.heard.insert(id, known).is_some() {
            return;
        }
        // One that is the same as another needn't come again.
        let same = |worlds: &BTreeMap<WorldId, WorldBytes>| {
            worlds.values().find(|world| world.hash == known.hash).cloned()
        };
        if let Some(world) =
            self.early.remove(&id).filter(|it| it.hash == known.hash).or_else(|| same(&self.held))
        {
            self.keep(id, world);
        }
        while self.heard.len() > MAX_NAMED {
            self.heard.pop_first();
        }
    }

    pub(super) fn has_heard(&self, id: WorldId) -> bool {
        self.heard.contains_key(&id)
    }

    /// Takes a world that came, if a trusted hash names it; `is_from_host` if the present host sent it.
    pub(super) fn take(
        &mut self,
        id: WorldId,
        world: WorldBytes,
        known: Option<WorldInfo>,
        is_from_host: bool,
    ) -> bool {
        match known.or_else(|| self.heard.get(&id).copied()) {
            Some(known) if known.hash == world.hash => self.keep(id, world),
            None if is_from_host => {
                // The note about it may have been lost, and comes again.
                self.early.insert(id, world);
                if self.early.len() > MAX_HELD {
                    self.early.pop_first();
                }
            }
            _ => return false,
        }
        true
    }

    fn keep(&mut self, id: WorldId, world: WorldBytes) {
        self.held.insert(id, world);
        if self.held.len() > MAX_HELD {
            self.held.pop_first();
        }
    }

    pub(super) fn held(&self, id: WorldId) -> Option<&WorldBytes> {
        self.held.get(&id).filter(|_| !self.bad.contains(&id))
    }

    /// The world can't be loaded.
    pub(super) fn refuse(&mut self, id: WorldId) {
        self.bad.push(id);
        if self.bad.len() > MAX_NAMED {
            self.bad.remove(0);
        }
    }

    /// What this player tells the others.
    pub(super) fn named(&self) -> BTreeMap<WorldId, (WorldInfo, bool)> {
        let named = |(id, known): (&WorldId, &WorldInfo)| (*id, (*known, self.held.contains_key(id)));
        self.heard.iter().map(named).collect()
    }

    /// The worlds that there are, the newest first: of which this player heard from their hosts, or that more than half of
    /// the players report. A world that only one player has heard of may be that player's own.
    pub(super) fn trusted<'a>(
        &self,
        epoch: u32,
        reports: impl Iterator<Item = (u8, &'a BTreeMap<WorldId, (WorldInfo, bool)>)>,
        players: u32,
    ) -> Vec<(WorldId, WorldInfo)> {
        let mut known: BTreeMap<WorldId, WorldInfo> = self.heard.clone();
        let mut votes: BTreeMap<(WorldId, ContentHash, u32), (Players, Vec<Instant>)> = BTreeMap::new();
        for (player, worlds) in reports {
            for (id, (world, _)) in worlds.iter().filter(|(id, _)| id.0 < epoch) {
                let (who, when) = votes.entry((*id, world.hash, world.size)).or_default();
                *who |= bit(player);
                when.push(world.saved);
            }
        }
        for ((id, hash, size), (who, mut when)) in votes {
            if !known.contains_key(&id) && 2 * who.count_ones() > players {
                // The median of when it was: some may lie.
                when.sort_unstable();
                known.insert(id, WorldInfo { size, saved: when[when.len() / 2], hash });
            }
        }
        known.into_iter().rev().filter(|(id, _)| !self.bad.contains(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: (WorldId, u8) = ((1, 5), 5);

    /// A world whose hash is this byte throughout.
    fn known(hash: u8, at: u64) -> WorldInfo {
        WorldInfo { size: 9, saved: Instant::from_millis(at), hash: [hash; 32] }
    }

    /// The trusted worlds of a game whose other players report these, each by id, hash and time.
    fn trusted(worlds: &Worlds, players: u32, reports: &[(u8, WorldId, u8, u64)]) -> Vec<(WorldId, u8, u64)> {
        let mut said: BTreeMap<u8, BTreeMap<WorldId, (WorldInfo, bool)>> = BTreeMap::new();
        for (player, id, hash, at) in reports {
            said.entry(*player).or_default().insert(*id, (known(*hash, *at), true));
        }
        let trusted = worlds.trusted(2, said.iter().map(|(player, worlds)| (*player, worlds)), players);
        trusted.into_iter().map(|(id, it)| (id, it.hash[0], it.saved.as_nanos() / 1_000_000)).collect()
    }

    #[test]
    fn a_world_counts_if_its_host_announced_it_here_or_more_than_half_report_it() {
        let mut worlds = Worlds::default();
        worlds.hear(OURS.0, known(OURS.1, 10));
        let ours = (OURS.0, OURS.1, 10);
        let (id, earlier) = ((1, 6), (1, 4));
        type Case<'a> = (&'a str, u32, &'a [(u8, WorldId, u8, u64)], &'a [(WorldId, u8, u64)]);
        let cases: [Case<'_>; 9] = [
            ("nobody reports anything", 4, &[], &[ours]),
            ("a single witness of two", 2, &[(1, id, 6, 20)], &[ours]),
            ("a single witness of four", 4, &[(1, id, 6, 20)], &[ours]),
            ("half of four", 4, &[(1, id, 6, 20), (2, id, 6, 20)], &[ours]),
            (
                "more than half, of whom one lies about the time",
                4,
                &[(1, id, 6, 20), (2, id, 6, 21), (3, id, 6, 99_999)],
                &[(id, 6, 21), ours],
            ),
            ("three that don't say the same", 4, &[(1, id, 6, 20), (2, id, 6, 20), (3, id, 7, 20)], &[ours]),
            (
                "three who say another hash than the host",
                4,
                &[(1, OURS.0, 7, 10), (2, OURS.0, 7, 10), (3, OURS.0, 7, 10)],
                &[ours],
            ),
            (
                "an earlier world follows",
                3,
                &[(1, earlier, 4, 5), (2, earlier, 4, 6)],
                &[ours, (earlier, 4, 6)],
            ),
            ("a world of an epoch that isn't over", 3, &[(1, (2, 1), 8, 20), (2, (2, 1), 8, 20)], &[ours]),
        ];
        for (what, players, reports, expected) in cases {
            assert_eq!(trusted(&worlds, players, reports), expected, "{what}");
        }
        worlds.refuse(OURS.0);
        assert_eq!(trusted(&worlds, 4, &[]), [], "it can't be loaded");
    }

    #[test]
    fn a_flood_of_worlds_costs_bounded_memory() {
        let mut worlds = Worlds::default();
        for number in 0..200_u8 {
            let (id, other) = ((1, u32::from(number)), (1, 1_000 + u32::from(number)));
            worlds.hear(id, known(number, 1));
            worlds.take(other, WorldBytes::new(vec![number]), None, true);
            worlds.take(id, WorldBytes { hash: [number; 32], bytes: Arc::default() }, None, false);
            worlds.refuse(other);
        }
        let sizes = [worlds.heard.len(), worlds.held.len(), worlds.early.len(), worlds.bad.len()];
        assert_eq!(sizes, [MAX_NAMED, MAX_HELD, MAX_HELD, MAX_NAMED]);
    }
}
