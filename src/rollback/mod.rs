//! Rollback: every player's game runs at once on guessed inputs, and runs again from where a guess was wrong.
//!
//! The idea is GGPO's (Tony Cannon, "Fight the Lag", 2012): inputs are delayed by some frames; a missing input is
//! predicted to equal the previous one; a wrong prediction is corrected by loading a saved state and running the frames
//! since then again.
//!
//! Promises: all players' confirmed frames ran with the same inputs, whatever the network does; nothing confirmed is
//! ever undone, even when a player leaves; a full window stalls the game and loses neither inputs nor corrections.
//! Sans-IO: the game carries out [`Request`]s, payloads come in by [`Rollback::read`] and go out by [`Rollback::fill`].
//! The steady state allocates nothing.
//!
//! Refuses, as a [`Fault`] that ends the peer's connection: truncated payloads, acks of inputs that were never sent,
//! and inputs beyond what the sender can have run. Oddities that an honest peer may cause are counted.

mod checks;
mod coding;
mod config;
mod fault;
mod game;
mod input_log;
mod layout;
mod leaving;
mod pace;
mod payload;
mod peer;
mod spectator;
mod states;
mod sync_test;

pub use checks::{KEPT, MAX_FIELDS, hash, hash_strided};
pub use config::{Config, InputShape, MAX_DELAY, MAX_INPUT_BITS, MAX_PLAYERS, MAX_WINDOW};
pub use fault::Fault;
pub use game::{Counters, GameEvent, Request, Rollback, Status};
pub use input_log::GameInput;
pub use layout::{StateField, StateLayout};
pub use spectator::Spectator;
pub use states::StateRing;
pub use sync_test::{ReplayStep, SyncTest};
