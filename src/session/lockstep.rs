//! Lockstep in a session of peers: its payloads are the packets that players exchange.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Carried, Setting};
use crate::lockstep::Lockstep;
use crate::time::{Duration, Instant};
use crate::wire::BitWriter;

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
