//! Rollback in a session of peers: the session passes payloads, and the game runs the core.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Carried;
use super::settings::Setting;
use crate::rollback::{Rollback, Spectator};
use crate::time::Instant;
use crate::wire::BitWriter;

/// A game, or a watched one, shared by its owner and a session.
#[derive(Debug)]
pub struct SharedRollback<T>(Arc<Mutex<T>>);

impl<T> Clone for SharedRollback<T> {
    fn clone(&self) -> Self {
        SharedRollback(self.0.clone())
    }
}

impl<T> SharedRollback<T> {
    /// Wraps a game to be shared by clones.
    pub fn new(game: T) -> Self {
        SharedRollback(Arc::new(Mutex::new(game)))
    }

    /// Locks the game; a panic elsewhere leaves it consistent.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

macro_rules! carried {
    ($($Game:ty, $compares:expr;)*) => {$(
        impl Carried for SharedRollback<$Game> {
            fn settings(&self) -> (&'static str, Vec<Setting>) {
                let game = self.lock();
                let config = game.config();
                let (least, most) = config.input.bounds();
                let check_every = if $compares {
                    Setting::of("check_every", config.check_every.into())
                } else {
                    Setting::any("check_every")
                };
                let settings = vec![
                    Setting::of("players", config.players.into()),
                    Setting::of("inputs", (least as u64) << 32 | most as u64),
                    check_every,
                    Setting::of("rate", config.rate.into()),
                    match config.state {
                        0 => Setting::any("state"),
                        state => Setting::of("state", state),
                    },
                ];
                ("rollback", settings)
            }

            fn read(&mut self, now: Instant, player: u8, payload: &[u8]) -> Result<(), String> {
                self.lock().read(now, player, payload).map_err(|fault| fault.to_string())
            }

            fn fill(&mut self, now: Instant, player: u8, bits: usize, writer: &mut BitWriter) -> bool {
                self.lock().fill(now, player, bits, writer)
            }

            fn note_left(&mut self, now: Instant, player: u8) {
                self.lock().note_left(now, player);
            }
        }
    )*};
}

carried!(Rollback, true; Spectator, false;);
