//! The events and counters of a peer's half.

use core::fmt;
use core::net::SocketAddr;

use super::attempt::PathKind;
use crate::rendezvous::code::LobbyCode;
use crate::rendezvous::messages::{ListedGame, LobbyRefusal};
use crate::store::counters::counters;

/// Identifies a question about a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JoinId(pub u64);

/// Why a game has no code, or why the host of a code wasn't reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeetingFault {
    /// The rendezvous server hasn't answered for some time.
    Silent,
    /// The rendezvous server refused the request.
    Refused(LobbyRefusal),
    /// The server introduced the two sides, and none of their addresses answered.
    NoPath,
}

impl fmt::Display for MeetingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MeetingFault::Silent => "the rendezvous server doesn't answer",
            MeetingFault::Refused(LobbyRefusal::UnknownCode) => "no game has this code, or it has ended",
            MeetingFault::Refused(LobbyRefusal::Protocol) => {
                "the game with this code has another protocol id: both sides need the same version of the game"
            }
            MeetingFault::Refused(LobbyRefusal::GameFull) => "the game with this code is full",
            MeetingFault::Refused(LobbyRefusal::ServerFull) => {
                "the rendezvous server has the maximum number of games, or of games from this network"
            }
            MeetingFault::NoPath => {
                "no path leads to the game with this code: its host is gone, or the two NATs need a relay"
            }
        })
    }
}

/// An event for the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RendezvousEvent {
    /// Our game has this code, and we are seen at this address; repeated when either changes.
    Registered { code: LobbyCode, outside: SocketAddr },
    /// The server refuses our game for now; registration goes on.
    NotRegistered(LobbyRefusal),
    /// The server hasn't answered for some time; asking goes on.
    ServerSilent,
    /// The complete list of games.
    Games(Vec<ListedGame>),
    /// The server refuses an introduction.
    Refused { join: JoinId, refusal: LobbyRefusal },
    /// The server didn't answer, or no path to the peer was found. Without `join`: the other side had asked.
    NoPath { join: Option<JoinId>, server_answered: bool },
    /// The path to a peer. Without `join`: the other side had asked.
    Path { join: Option<JoinId>, address: SocketAddr, kind: PathKind },
}

counters! {
    /// Counters of a peer's half.
    pub struct PeerCounters {
        /// Introductions that began an attempt, ours and others'.
        introduced,
        direct,
        punched,
        relayed,
        /// Attempts that found no path.
        no_path,
        /// Datagrams with our first byte that nobody asked for.
        unexpected,
        /// Introductions and probes by senders without their key.
        forged,
        /// Introductions beyond the maximum of attempts.
        too_many,
        /// Events dropped because the game took none.
        events_lost,
    }
}
