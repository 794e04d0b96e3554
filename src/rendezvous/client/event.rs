//! What a peer learns of a rendezvous, and what it counts.

use core::net::SocketAddr;

use super::attempt::PathKind;
use crate::rendezvous::code::LobbyCode;
use crate::rendezvous::messages::{ListedGame, LobbyRefusal};
use crate::store::counters::counters;

/// Names a question for a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JoinId(pub u64);

/// What a peer learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RendezvousEvent {
    /// Our game has this code, and we are seen so; again when that has changed.
    Registered { code: LobbyCode, outside: SocketAddr },
    /// The server doesn't take our game now; it is asked again.
    NotRegistered(LobbyRefusal),
    /// The server has not answered for some time; it is asked on.
    ServerSilent,
    /// The listed games, all of them.
    Games(Vec<ListedGame>),
    /// There is no introduction.
    Refused { join: JoinId, refusal: LobbyRefusal },
    /// The server didn't answer, or no way to the peer was found. Without `join`: the other side had asked.
    NoPath { join: Option<JoinId>, server_answered: bool },
    /// This is the way to a peer. Without `join`: the other side had asked.
    Path { join: Option<JoinId>, address: SocketAddr, kind: PathKind },
}

counters! {
    /// What a peer's part did, and what it dropped.
    pub struct PeerCounters {
        /// Introductions, ours and others', that began an attempt.
        introduced,
        direct,
        punched,
        relayed,
        /// Attempts that found no way.
        no_path,
        /// Datagrams with our first byte that nobody was asked for.
        unexpected,
        /// Introductions and probes of who hasn't their key.
        forged,
        /// Introductions while there were as many attempts as may be.
        too_many,
        /// Events that nobody took.
        events_lost,
    }
}
