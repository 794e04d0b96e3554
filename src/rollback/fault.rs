//! How a peer breaks the rules of a rollback game.

use core::fmt;

use crate::wire::ReadError;

/// What no honest peer sends: it ends the peer's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The payload ends too soon, or a value in it is none.
    Read(ReadError),
    /// Inputs that were never sent are said to be here.
    ForgedAck,
    /// Inputs begin behind the first one that lacks.
    Gap,
    /// An input is for a frame that the peer can't have reached.
    FarAhead,
    /// Bits that are no input of the game's class.
    NotAnInput,
    /// A change that changes nothing.
    NoChange,
    /// It speaks for a player whose inputs aren't its to say.
    NotItsPlayer,
    /// Bits after the end.
    Trailing,
    /// The index is none of the game's.
    Unknown,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            Fault::Read(error) => return write!(f, "{error}"),
            Fault::ForgedAck => "an ack of inputs that were never sent",
            Fault::Gap => "inputs with a gap before them",
            Fault::FarAhead => "an input for a frame that the peer can't have reached",
            Fault::NotAnInput => "bits that are no input",
            Fault::NoChange => "a change of an input that changes nothing",
            Fault::NotItsPlayer => "inputs of a player that are not the peer's to say",
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
