//! How a peer breaks the rules of a rollback game.

use core::fmt;

use crate::wire::ReadError;

/// A violation, which ends the peer's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The payload ends too soon, or holds an invalid value.
    Read(ReadError),
    /// An ack of inputs that were never sent.
    ForgedAck,
    /// Inputs begin after the first missing one.
    Gap,
    /// An input for a frame that the peer can't have reached.
    FarAhead,
    /// Bits that are no input of the game's class.
    NotAnInput,
    /// A change that changes nothing.
    NoChange,
    /// Inputs of a player that this peer may not speak for.
    NotItsPlayer,
    /// Bits after the end.
    Trailing,
    /// The game has no player with this index.
    Unknown,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            Fault::Read(error) => return write!(f, "{error}"),
            Fault::ForgedAck => "an ack of inputs that were never sent",
            Fault::Gap => "inputs with a gap before them",
            Fault::FarAhead => "an input for a frame that the peer can't have reached",
            Fault::NotAnInput => "bits that aren't an input",
            Fault::NoChange => "a change of an input that changes nothing",
            Fault::NotItsPlayer => "inputs of a player that the peer doesn't control",
            Fault::Trailing => "bits after the end",
            Fault::Unknown => "a player that the game doesn't have",
        };
        f.write_str(sentence)
    }
}

impl core::error::Error for Fault {}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Fault::Read(error)
    }
}
