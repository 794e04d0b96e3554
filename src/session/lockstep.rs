//! Lockstep in a session of peers: its payloads are the packets that players exchange, and its worlds travel between them
//! as chunks.
//!
//! Promises: the application never gets a chunk with a world.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Carried, PeerPart, Setting};
use crate::endpoint::PeerHandle;
use crate::lockstep::Lockstep;
use crate::time::{Duration, Instant};
use crate::transport::chunks::{ChunkEvent, Stored};
use crate::wire::BitWriter;

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
}

impl PeerPart {
    /// Takes the worlds of a lockstep game out of what came. Returns the worlds that nobody will read.
    pub fn take_lockstep_worlds(&mut self, chunks: &mut Vec<(PeerHandle, ChunkEvent)>) -> Vec<Stored> {
        let is_world = |event: &ChunkEvent| match event {
            ChunkEvent::Received { offer, .. } | ChunkEvent::NotReceived { offer, .. } => {
                offer.label.starts_with(LABEL)
            }
            _ => false,
        };
        let mut unread = Vec::new();
        if chunks.is_empty() || self.core::<SharedLockstep>().is_none() {
            return unread;
        }
        for (peer, event) in chunks.extract_if(.., |(_, event)| is_world(event)) {
            let ChunkEvent::Received { stored, .. } = event else { continue };
            match self.player_of(peer) {
                Some((player, _)) => unread.extend(self.lockstep_worlds.keep(player, stored)),
                None => unread.push(stored),
            }
        }
        unread
    }

    /// The next world of a lockstep game that came, and its sender.
    pub fn poll_lockstep_world(&mut self) -> Option<(u8, Stored)> {
        self.lockstep_worlds.0.pop_front()
    }
}

/// A lockstep game shared by the session and the game. The session locks it for single calls only.
#[derive(Clone, Debug)]
pub struct SharedLockstep {
    /// The shared lockstep game.
    pub game: Arc<Mutex<Lockstep>>,
    /// Hashes of the commands' classes, and of those that are compared; 0 matches any.
    pub classes: [u16; 2],
}

impl SharedLockstep {
    fn with<T>(&self, work: impl FnOnce(&mut Lockstep) -> T) -> T {
        work(&mut self.game.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Carried for SharedLockstep {
    fn settings(&self) -> (&'static str, Vec<Setting>) {
        let [commands, objects] = self.classes;
        let mut settings = self.with(|core| {
            let pace = core.config().pace;
            vec![
                Setting::of("players", core.config().players.into()),
                Setting::of("step", core.config().step.as_nanos() as u64),
                Setting::of("steps", pace.steps.into()),
                Setting::of("delay", pace.delay.into()),
            ]
        });
        settings.extend([Setting("commands", commands), Setting("objects", objects)]);
        ("lockstep", settings)
    }

    fn read(&mut self, now: Instant, player: u8, payload: &[u8]) -> Result<(), String> {
        self.with(|core| core.read(now, player, payload)).map_err(|fault| fault.to_string())
    }

    fn fill(&mut self, now: Instant, player: u8, bits: usize, writer: &mut BitWriter) -> bool {
        self.with(|core| core.fill(now, player, bits, writer))
    }

    fn note_left(&mut self, now: Instant, player: u8) {
        self.with(|core| core.note_left(now, player));
    }

    fn note_joined(&mut self, _now: Instant, player: u8) {
        self.with(|core| core.note_joined(player));
    }

    fn ack_patience(&self) -> Duration {
        self.with(|core| core.ack_patience())
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
        let left = std::iter::from_fn(|| worlds.0.pop_front());
        let left: Vec<_> = left
            .filter_map(|(player, it)| match it {
                Stored::Bytes(bytes) => Some((player, bytes)),
                _ => None,
            })
            .collect();
        assert_eq!(left, [(2, vec![2]), (1, vec![3])]);
    }
}
