//! The worlds that a host has saved, and who has them.
//!
//! Promises: of the worlds at most [`BYTES_PER_SECOND`] go out on average, and a new one is due only when a player can
//! take it.

use std::collections::BTreeMap;

use super::worlds::{MAX_WORLD_BYTES, Transfer, WorldBytes, WorldId, WorldInfo};
use crate::mesh::MAX_PLAYERS;
use crate::store::Bucket;
use crate::time::{Duration, Instant};
use crate::transport::chunks::ContentHash;

/// The time between two saves of a world, unless its bytes take longer.
const SAVE_INTERVAL: Duration = Duration::from_millis(250);

/// Bytes of worlds that a host sends in a second, to all players together.
const BYTES_PER_SECOND: u64 = 128_000;

/// Bytes that may go out at once beyond that rate.
const BURST_BYTES: usize = 32_768;

/// The worlds that a host's notes name.
const MAX_ANNOUNCED: usize = 4;

/// The worlds that a host has saved.
#[derive(Debug, Default)]
pub(super) struct Saves {
    sequence: u32,
    next_at: Instant,
    newest: Option<(WorldId, WorldBytes)>,
    announced: BTreeMap<WorldId, WorldInfo>,
    /// The world that is under way to each player, and the newest that each has.
    sending: [Option<ContentHash>; MAX_PLAYERS],
    has: [Option<ContentHash>; MAX_PLAYERS],
    /// It owes after a large world.
    bucket: Bucket,
}

/// How long this many bytes take at the rate of worlds.
pub(super) fn cost_of(bytes: usize) -> Duration {
    Duration::from_nanos(bytes as u64 * 1_000_000_000 / BYTES_PER_SECOND)
}

impl Saves {
    /// A host begins: its first world is due then.
    pub(super) fn beginning_at(next_at: Instant) -> Self {
        Saves { next_at, ..Saves::default() }
    }

    /// The saves of the next epoch: none so far.
    pub(super) fn begin_epoch(&self) -> Self {
        Saves::beginning_at(self.next_at)
    }

    /// The newest worlds, for the host's notes.
    pub(super) fn announced(&self) -> &BTreeMap<WorldId, WorldInfo> {
        &self.announced
    }

    /// Whether the next world is due, if one of these players is to get it.
    pub(super) fn is_due(&self, now: Instant, mut to: impl Iterator<Item = u8>) -> bool {
        now >= self.next_at
            && self.bucket.has(now, Duration::ZERO, cost_of(BURST_BYTES))
            && to.any(|player| self.sending[usize::from(player)].is_none())
    }

    /// Keeps a world; false if it is too large.
    pub(super) fn keep(&mut self, now: Instant, epoch: u32, world: WorldBytes) -> bool {
        // Not twice after a hitch.
        self.next_at = (self.next_at + SAVE_INTERVAL).max(now + SAVE_INTERVAL / 2);
        if world.bytes.len() > MAX_WORLD_BYTES {
            return false;
        }
        self.sequence += 1;
        let id = (epoch, self.sequence);
        let info = WorldInfo { size: world.bytes.len() as u32, saved: now, hash: world.hash };
        self.announced.insert(id, info);
        if self.announced.len() > MAX_ANNOUNCED {
            self.announced.pop_first();
        }
        self.newest = Some((id, world));
        true
    }

    /// Sends the newest world to those of these players that don't have it.
    pub(super) fn send(&mut self, now: Instant, to: impl Iterator<Item = u8>) -> Vec<Transfer> {
        let Some((id, world)) = &self.newest else { return Vec::new() };
        let mut transfers = Vec::new();
        for player in to {
            let place = usize::from(player);
            if self.sending[place].is_none() && self.has[place] != Some(world.hash) {
                self.sending[place] = Some(world.hash);
                self.bucket.spend(now, cost_of(world.bytes.len()));
                transfers.push(Transfer { player, id: *id, world: world.clone() });
            }
        }
        transfers
    }

    /// Whether these players have the newest world.
    pub(super) fn has_arrived(&self, mut at: impl Iterator<Item = u8>) -> bool {
        let Some((_, world)) = &self.newest else { return true };
        at.all(|player| self.has[usize::from(player)] == Some(world.hash))
    }

    /// A world that was to be sent is at a player, or isn't going to be.
    pub(super) fn note_sent(&mut self, player: u8, is_there: bool) {
        let place = usize::from(player);
        if let Some(hash) = self.sending.get_mut(place).and_then(Option::take) {
            self.has[place] = Some(hash).filter(|_| is_there);
        }
    }

    /// A player left: the next one with its number has nothing.
    pub(super) fn note_left(&mut self, player: u8) {
        let place = usize::from(player);
        (self.sending[place], self.has[place]) = (None, None);
    }
}
