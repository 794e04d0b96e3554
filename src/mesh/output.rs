//! What the machine gives out: actions for the layer above, events for the game, and faults of peers.

use core::fmt;
use core::net::SocketAddr;

use super::links::LinkId;
use super::message::{Key, Message};
use super::roster::{Identity, LeaveReason, Players};

/// An action for the layer above to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message to a peer.
    Send { link: LinkId, message: Message },
    /// Ask at these addresses to be let in; [`Mesh::note_dialling`](super::Mesh::note_dialling) then says which link it is.
    Ask { addresses: Vec<SocketAddr> },
    /// Dial a player with the connect token from the master.
    Dial { who: Identity, pass: Vec<u8> },
    /// Make a connect token by which a newcomer can dial a member with this key and these addresses, and announce the
    /// ticket to the member.
    Introduce {
        newcomer: LinkId,
        who: Identity,
        member: LinkId,
        of: Identity,
        key: Key,
        addresses: Vec<SocketAddr>,
    },
    /// The master runs a server, which takes this connect token.
    TakeSeat { host: Identity, pass: Vec<u8> },
    /// Let the game exchange messages with this player.
    Admit { link: LinkId, who: Identity },
    /// End a link that the game needs no more.
    End { link: LinkId, reason: LeaveReason },
    /// End a link because of what was sent on it.
    Refuse { link: LinkId, fault: MeshFault },
}

/// An event for the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A player is in the game; this peer is one too.
    Joined {
        player: u8,
        joined: u32,
    },
    Left {
        player: u8,
        joined: u32,
        reason: LeaveReason,
    },
    /// Another player has become the master.
    Master {
        player: u8,
    },
    /// The game begins at this time.
    Starts {
        seed: u64,
        players: Players,
    },
    /// This peer has left the game, or never got in.
    Ended {
        reason: LeaveReason,
    },
}

/// How a peer broke the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshFault {
    /// The bytes are no message.
    Malformed,
    /// Only the master may send this.
    NotTheMaster,
    /// The peer at that end may not send this, or not now.
    OutOfPlace,
    /// It names a player or state that can't exist.
    Impossible,
    /// It sent too much before its time.
    Flood,
}

impl fmt::Display for MeshFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MeshFault::Malformed => "bytes that aren't a message of peers",
            MeshFault::NotTheMaster => "a message that only the master may send",
            MeshFault::OutOfPlace => "a message that it may not send",
            MeshFault::Impossible => "a player or a state that can't be",
            MeshFault::Flood => "too much before its identity is known",
        })
    }
}

impl core::error::Error for MeshFault {}
