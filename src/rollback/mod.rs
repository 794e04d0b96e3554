//! Rollback: every player's game runs at once, on inputs that it guesses, and is run again from where a guess was wrong.
//!
//! The idea is that of GGPO (Tony Cannon, "Fight the Lag", 2012): inputs are delayed by some frames, those that haven't come are
//! predicted to be as the ones before, and what was predicted wrong is corrected by loading a state that was saved and running the
//! frames since again.
//!
//! Promises: all players' confirmed frames ran with the same inputs, whatever the network does; nothing that was confirmed is
//! ever undone, also where a player leaves; a full window stalls and loses neither an input nor a correction. Sans-IO: the game
//! is asked for by [`Request`]s, payloads come by [`Rollback::read`] and go by [`Rollback::fill`]. In the steady state nothing is
//! allocated.
//!
//! Refuses, as a [`Fault`] that ends the peer's connection: payloads that are cut, acks of inputs that were never sent, inputs
//! beyond what the sender may have run. What may come of an honest peer is counted.

mod checks;
mod coding;
mod config;
mod fault;
mod game;
mod input_log;
mod leaving;
mod pace;
mod payload;
mod peer;
mod spectator;
mod states;
mod sync_test;

pub use checks::{MAX_FIELDS, hash, hash_strided};
pub use config::{Config, InputShape, MAX_DELAY, MAX_INPUT_BITS, MAX_PLAYERS, MAX_WINDOW};
pub use fault::Fault;
pub use game::{Counters, GameEvent, Request, Rollback, Status};
pub use input_log::GameInput;
pub use spectator::Spectator;
pub use states::StateRing;
pub use sync_test::{ReplayStep, SyncTest};
