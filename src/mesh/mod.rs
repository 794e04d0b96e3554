//! Membership of a game of peers: joining, introductions, the start, and electing a new master.
//!
//! A sans-IO machine: it takes links, messages and time, and [`Mesh::poll_action`] says what to do: send a message,
//! dial a peer, admit a link, end a link. Each pair of players has a link of its own, which the later one to join
//! dials. Only the master changes the roster and sets the start, and a change counts when a quorum of the players has
//! acked it ([`Roster::is_quorum`]); a new master needs the votes of a quorum as well. The idea is Raft's (Ongaro and
//! Ousterhout, "In search of an understandable consensus algorithm", 2014) with one entry, the roster, whose changes
//! both the old and the new roster must agree on.
//!
//! Promises: of parts of a game that don't see each other at most one goes on (of two players, each does); all who go
//! on see the same players join and leave, in one order, and one start; hostile peers cost bounded memory.
//! Refuses: a master's messages from anybody else, while there is a master. A member that lies in an election may
//! become the master, as it could by asking first: members are trusted that far and no further.

mod change;
mod election;
mod joining;
mod links;
mod machine;
mod message;
mod output;
mod roster;
mod start;
mod traffic;

pub use links::{Link, LinkEnd, LinkId};
pub use machine::{Mesh, MeshConfig, Phase};
pub use message::{Key, Message, Stamp, Ticket};
pub use output::{Action, Happening, MeshFault};
pub use roster::{Identity, LeaveReason, Member, Players, Roster, Start, bit, is_dialable};

use crate::time::Duration;

/// The maximum of players: the number of links grows with its square.
pub const MAX_PLAYERS: usize = 16;

/// Bytes of a player's name.
pub const MAX_NAME_BYTES: usize = 32;

/// The maximum of addresses known of a player.
pub const MAX_ADDRESSES: usize = 4;

/// Bytes of the netcode connect token that a newcomer dials with.
pub const MAX_PASS_BYTES: usize = 2048;

/// How long a peer may be connected without a hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a newcomer may take to reach all members.
const JOIN_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a refused newcomer's link stays up to deliver the refusal.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long to wait after two players report each other unreachable: one of them may be gone, which the master notices
/// by then.
const REPORT_GRACE: Duration = Duration::from_millis(1500);

/// How often the time left until the start is sent.
const COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// How long a player waits for the claim of the next lower number.
const CLAIM_STAGGER: Duration = Duration::from_millis(250);

/// How long a claim waits for votes.
const CLAIM_TIMEOUT: Duration = Duration::from_millis(1000);

/// How long a player that was denied a vote waits before it claims again: another one may be about to win.
const DENIED_PAUSE: Duration = Duration::from_millis(250);

/// How long an election goes on for members whose own timeout comes later.
const ELECTION_GRACE: Duration = Duration::from_millis(2000);

/// How far ahead of the known epoch a claim may be: each claim of an election raises it by one.
const MAX_EPOCH_STEP: u32 = 1 << 16;

/// How many messages wait until their sender is known.
const MAX_DEFERRED: usize = 64;

/// How often a newcomer is sent on to another master.
const MAX_HOPS: u32 = 8;

/// How long a newcomer waits before it asks again during an election.
const ASK_AGAIN: Duration = Duration::from_millis(1000);
