//! Why an endpoint refuses a request.

use core::fmt;

use crate::limits::ConfigError;
use crate::transport;

/// Why a message can't be sent. Nothing was queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The connection is not up, or is over; the slot may belong to another peer by now.
    NotConnected,
    /// The channel refuses it.
    Channel(transport::SendError),
}

impl SendError {
    /// Whether the message can be sent to other peers: only this one is gone, or has no room.
    pub fn is_refusal(&self) -> bool {
        use transport::SendError::{Full, TickFull};
        matches!(self, SendError::NotConnected | SendError::Channel(Full { .. } | TickFull { .. }))
    }
}

/// Why messages can't be sent to a room. No member was sent any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomError {
    /// The channel refuses one of the messages, for all peers.
    Send(SendError),
    /// The values to keep are more than the room may keep.
    Full { bytes: usize, values: usize, max_bytes: usize },
}

/// Why a budget or a rate can't be set. Nothing has changed.
#[derive(Clone, Debug, PartialEq)]
pub enum BudgetError {
    // As `SendError::NotConnected`.
    NotConnected,
    /// A number is out of its bounds.
    Config(ConfigError),
}

impl fmt::Display for RoomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RoomError::Send(error) => error.fmt(f),
            RoomError::Full { bytes, values, max_bytes } => write!(
                f,
                "must be at least {bytes} to keep {values} values, not {max_bytes}: raise it, or forget() keys that \
                 aren't needed any more"
            ),
        }
    }
}

impl core::error::Error for RoomError {}

const NOT_CONNECTED: &str = "the peer is not connected: wait for its Connected event, and drop its handle \
                             when its Disconnected event arrives";

/// Implements `Display` and `Error` by the variant that has an error of its own.
macro_rules! error_of_parts {
    ($Error:ident, $Part:ident from $From:ty) => {
        impl fmt::Display for $Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $Error::NotConnected => f.write_str(NOT_CONNECTED),
                    $Error::$Part(error) => error.fmt(f),
                }
            }
        }

        impl core::error::Error for $Error {}

        impl From<$From> for $Error {
            fn from(error: $From) -> Self {
                $Error::$Part(error)
            }
        }
    };
}

error_of_parts!(SendError, Channel from transport::SendError);
error_of_parts!(BudgetError, Config from ConfigError);
