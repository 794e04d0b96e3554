//! How a peer breaks the protocol.

use core::fmt;

use super::config::TurnNumber;
use crate::wire::ReadError;

/// How a peer breaks the protocol: its connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It ends too soon.
    CutShort,
    /// It can't be read.
    Read(ReadError),
    /// Entries of nobody, for a newcomer.
    Unfillable,
    /// Data of a turn that nobody can have reached.
    Ahead {
        /// The turn that it is for.
        turn: TurnNumber,
    },
    /// Other data for a turn than it gave before.
    Rewritten {
        /// The turn that it is for.
        turn: TurnNumber,
    },
    /// An ack of what wasn't sent.
    Ack {
        /// The turn that it acks.
        turn: TurnNumber,
    },
    /// Data of another player, who doesn't leave.
    Forged {
        /// That player's own number.
        player: u8,
    },
    /// A player that isn't in the game.
    Stranger {
        /// That player's own number.
        player: u8,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::CutShort => write!(f, "a payload that ends too soon"),
            Fault::Read(error) => write!(f, "{error}"),
            Fault::Unfillable => write!(f, "a turn with more entries than players"),
            Fault::Ahead { turn } => write!(f, "data of turn {turn}, which no player can have reached"),
            Fault::Rewritten { turn } => write!(f, "other data for turn {turn} than before"),
            Fault::Ack { turn } => write!(f, "an ack of turn {turn}, whose data wasn't sent"),
            Fault::Forged { player } => write!(f, "data in the name of player {player}"),
            Fault::Stranger { player } => write!(f, "player {player}, who isn't in the game"),
        }
    }
}

impl core::error::Error for Fault {}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::PastEnd { .. } => Fault::CutShort,
            other => Fault::Read(other),
        }
    }
}
