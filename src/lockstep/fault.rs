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
    /// More bytes of commands than a turn has.
    TooLarge {
        /// This many of them at least.
        bytes: usize,
    },
    /// Nothing of this kind is a control.
    Control,
    /// A check of a turn that wasn't run before.
    Check,
    /// Data of a turn that nobody can have reached.
    Ahead {
        /// The turn that it is for.
        turn: TurnNumber,
    },
    /// A gap in front of the data that came.
    Gap {
        /// The turn of the first entry.
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
            Fault::TooLarge { bytes } => write!(f, "{bytes} bytes of commands for one turn"),
            Fault::Control => write!(f, "a control of no known kind"),
            Fault::Check => write!(f, "a check of a turn that can't have run"),
            Fault::Ahead { turn } => write!(f, "data of turn {turn}, which nobody can have reached"),
            Fault::Gap { turn } => write!(f, "data of turn {turn} with a gap in front of it"),
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
