//! The worlds of a lockstep game, which travel between the players as chunks.
//!
//! Promises: the application never gets a chunk with a world, and of each player only the newest world is kept.

use std::collections::VecDeque;

use crate::endpoint::PeerHandle;
use crate::transport::chunks::{ChunkEvent, Stored};

/// Labels of chunks with worlds begin with it.
const LABEL: &str = "tickwire.lockstep ";

/// The worlds that came, by player.
#[derive(Debug, Default)]
pub(super) struct LockstepWorlds(VecDeque<(u8, Stored)>);

impl LockstepWorlds {
    /// Keeps a player's world. Returns an older one of the same player, which the new one replaces: no player takes the
    /// place of another's world.
    fn keep(&mut self, player: u8, world: Stored) -> Option<Stored> {
        let older = self.0.iter().position(|(of, _)| *of == player).and_then(|place| self.0.remove(place));
        self.0.push_back((player, world));
        older.map(|(_, world)| world)
    }

    /// Takes the worlds out of what came. Returns the worlds that nobody will read: a newer one of the same player came, or
    /// the sender is no player.
    pub(super) fn take(
        &mut self,
        chunks: &mut Vec<(PeerHandle, ChunkEvent)>,
        player_of: impl Fn(PeerHandle) -> Option<u8>,
    ) -> Vec<Stored> {
        let mut unread = Vec::new();
        for (peer, event) in chunks.extract_if(.., |(_, event)| event.has_label(LABEL)) {
            let ChunkEvent::Received { stored, .. } = event else { continue };
            match player_of(peer) {
                Some(player) => unread.extend(self.keep(player, stored)),
                None => unread.push(stored),
            }
        }
        unread
    }

    /// The next world that came, and its sender.
    pub(super) fn poll(&mut self) -> Option<(u8, Stored)> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_player_the_newest_world_is_kept() {
        let mut worlds = LockstepWorlds::default();
        let world = |number: u8| Stored::Bytes(vec![number]);
        assert!(worlds.keep(1, world(1)).is_none() && worlds.keep(2, world(2)).is_none());
        assert!(matches!(worlds.keep(1, world(3)), Some(Stored::Bytes(bytes)) if bytes == [1]));
        let left = std::iter::from_fn(|| worlds.poll());
        let left: Vec<_> = left
            .filter_map(|(player, it)| match it {
                Stored::Bytes(bytes) => Some((player, bytes)),
                _ => None,
            })
            .collect();
        assert_eq!(left, [(2, vec![2]), (1, vec![3])]);
    }
}
