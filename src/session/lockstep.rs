//! Lockstep in a session of peers: its payloads are the packets that players exchange.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Carried, PeerPart, Setting};
use crate::endpoint::PeerHandle;
use crate::lockstep::Lockstep;
use crate::time::{Duration, Instant};
use crate::transport::chunks::{ChunkEvent, Stored};
use crate::wire::BitWriter;

impl PeerPart {
    /// Takes the worlds of a lockstep game out of what came. Returns the worlds that nobody will read.
    pub fn take_lockstep_worlds(&mut self, chunks: &mut Vec<(PeerHandle, ChunkEvent)>) -> Vec<Stored> {
        if chunks.is_empty() || self.core::<SharedLockstep>().is_none() {
            return Vec::new();
        }
        let mut worlds = core::mem::take(&mut self.lockstep_worlds);
        let unread = worlds.take(chunks, |peer| self.player_of(peer).map(|(player, _)| player));
        self.lockstep_worlds = worlds;
        unread
    }

    /// The next world of a lockstep game that came, and its sender.
    pub fn poll_lockstep_world(&mut self) -> Option<(u8, Stored)> {
        self.lockstep_worlds.poll()
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
