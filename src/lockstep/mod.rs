//! Lockstep: all players run the same commands in the same turns, so that only commands travel. After the book's
//! RoboCat RTS and "1500 Archers on a 28.8".
//!
//! Promises: a function of payloads and time, both inputs. Nobody runs a turn with a player's commands that another
//! runs without them, even when a player departs. Controls (turn length, delay, pause and speed) are part of the turns'
//! own data, so they change at the same turn everywhere. Memory is bounded whatever a peer sends: a violation is a
//! [`Fault`], and old or odd data is counted.
//!
//! | module | what it is |
//! |---|---|
//! | [`config`] | settings and bounds |
//! | [`entry`] | one player's data for one turn |
//! | [`packet`], [`fault`] | the payloads, and the ways they can be wrong |
//! | [`remote`] | the state kept about a player |
//! | [`schedule`] | when the next turn is due |
//! | [`adapt`] | the delay and the length that the margins ask for |
//! | [`departure`] | how all agree from which turn on a player is not waited for |
//! | [`checks`] | what the world was after each turn, and who differs |
//! | [`joining`] | how newcomers get the world and the turns since |
//! | [`machine`] | [`Lockstep`], which puts them together |
//! | [`random`] | the generator that all share |
//! | [`recording`] | a match as bytes, and back |

pub mod adapt;
pub mod checks;
pub mod config;
pub mod departure;
pub mod entry;
pub mod fault;
pub mod joining;
pub mod machine;
pub mod packet;
pub mod random;
pub mod recording;
pub mod remote;
pub mod schedule;

pub use checks::{Difference, LogRow, Verdict};
pub use config::{LockstepConfig, LockstepConfigError, Pace, TurnNumber};
pub use entry::{Control, TurnCheck, TurnEntry};
pub use fault::Fault;
pub use joining::{JoinRefusal, STATE_HEAD, StateHead};
pub use machine::{
    CommandError, Lockstep, LockstepCounters, LockstepEvent, StartedTurn, Waiting, replayed_check,
};
pub use random::SharedRandom;
