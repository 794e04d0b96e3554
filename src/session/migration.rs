//! The notes of `tickwire.peers.Migrating`.

use std::sync::{Arc, Mutex, PoisonError};

use super::hosting::Notes;
use super::{Carried, Setting};
use crate::time::Instant;
use crate::wire::BitWriter;

/// Notes that a session and the game share. The session locks them for single calls only.
#[derive(Clone, Debug)]
pub struct SharedMigration(pub Arc<Mutex<Notes>>);

impl SharedMigration {
    /// Does something with the notes.
    pub fn with<T>(&self, work: impl FnOnce(&mut Notes) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Carried for SharedMigration {
    fn settings(&self) -> (&'static str, Vec<Setting>) {
        let timeout = self.with(|notes| notes.timeout());
        ("migration", vec![Setting::of("timeout", timeout.as_secs())])
    }

    fn read(&mut self, now: Instant, player: u8, payload: &[u8]) -> Result<(), String> {
        let read = self.with(|notes| notes.read(now, player, payload));
        read.ok_or_else(|| "bytes that are no note of a game that migrates".to_owned())
    }

    fn fill(&mut self, now: Instant, player: u8, bits: usize, writer: &mut BitWriter) -> bool {
        self.with(|notes| notes.fill(now, player, bits, writer))
    }

    fn note_left(&mut self, _: Instant, player: u8) {
        self.with(|notes| notes.note_left(player));
    }
}
