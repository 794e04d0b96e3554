//! Who is in a game of peers, and which of them is the master: joining, introductions, the start, and a master that dies.
//!
//! A sans-IO machine: links come up and end, messages come in, time passes, and [`Mesh::poll_action`] says what is to be done:
//! send this, dial that peer, let this one's messages through, end that link. Each pair of players has a link of its own. The
//! newcomer dials those who are there: of each pair the one that joined later. The master alone says who is in the game and when
//! it begins, and what it says counts when enough of the players know it ([`Roster::is_quorum`]); so it does for a new master,
//! which enough of the players must have voted for. It is Raft's idea (Ongaro and Ousterhout, "In search of an understandable
//! consensus algorithm", 2014) with one entry, the roster, and with changes of it agreed on by both the old and the new one.
//!
//! Promises: of parts of a game that don't see each other at most one goes on (of two players each does); all who go on learn of
//! the same players, in the same order, and of one start; whatever peers send takes bounded memory.
//! Refuses: what only the master may say from anybody else, while there is a master. A member that lies in an election may become
//! the master, as it may by being the first to ask: a member is trusted with that and with no more.

mod change;
mod election;
mod joining;
mod links;
mod machine;
mod message;
mod roster;

pub use links::{Link, LinkEnd, LinkId};
pub use machine::{Action, Happening, Mesh, MeshConfig, MeshFault, Phase};
pub use message::{Key, Message, Stamp, Ticket};
pub use roster::{LeaveReason, Member, Players, Roster, Start, bit, is_dialable};

use crate::time::Duration;

/// Players that a game may have: their links grow with the square.
pub const MAX_PLAYERS: usize = 16;

/// Bytes of a player's name.
pub const MAX_NAME_BYTES: usize = 32;

/// Addresses by which a player may be known.
pub const MAX_ADDRESSES: usize = 4;

/// Bytes of what a newcomer dials with: netcode's connect token.
pub const MAX_PASS_BYTES: usize = 2048;

/// How long someone may be connected and say nothing.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a newcomer may take to reach all others.
const JOIN_TIMEOUT: Duration = Duration::from_secs(15);

/// How long whoever was refused has time to hear so.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long to wait when two players say that they don't reach each other: one of them may be gone, as the master will see.
const REPORT_GRACE: Duration = Duration::from_millis(1500);

/// How often the time until the start is said.
const COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// How much later the next player claims to be the master than the one before it.
const CLAIM_STAGGER: Duration = Duration::from_millis(250);

/// How long a claim is waited for.
const CLAIM_TIMEOUT: Duration = Duration::from_millis(1000);

/// How long after others an election may still go on: for those whose own timeout comes a little later.
const ELECTION_GRACE: Duration = Duration::from_millis(2000);

/// Epochs that one claim may be ahead of what is known: each claim of an election is one.
const MAX_EPOCH_STEP: u32 = 1 << 16;

/// Messages that wait until it is known who says them.
const MAX_DEFERRED: usize = 64;

/// How often a newcomer is sent on to another master.
const MAX_HOPS: u32 = 8;

/// How long a newcomer waits that came during an election.
const ASK_AGAIN: Duration = Duration::from_millis(1000);
