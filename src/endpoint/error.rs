//! Why an endpoint refuses a request.

use core::fmt;

use crate::netcode;
use crate::transport::acks;
use crate::transport::{self};

/// Why a message can't be sent. Nothing was queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The connection is not up, or is over; the slot may belong to another peer by now.
    NotConnected,
    /// The channel refuses it.
    Channel(transport::SendError),
}

impl SendError {
    /// Whether the peer's doing is the reason: it is gone, or doesn't ack or read.
    #[must_use]
    pub fn is_peers_doing(&self) -> bool {
        use transport::SendError as Channel;
        matches!(
            self,
            SendError::NotConnected | SendError::Channel(Channel::Full { .. } | Channel::TickFull { .. })
        )
    }
}

/// Why a budget or a rate can't be set. Nothing has changed.
#[derive(Clone, Debug, PartialEq)]
pub enum BudgetError {
    // As `SendError::NotConnected`.
    NotConnected,
    /// A number is out of its bounds.
    Config(acks::ConfigError),
}

/// Settings that an endpoint can't start with.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigError {
    /// An error in the settings of the secure connection.
    Netcode(netcode::ConfigError),
    // An error in the settings of the transport.
    Transport(acks::ConfigError),
}

const NOT_CONNECTED: &str = "the peer is not connected: wait for the event that it is, and forget its handle when its \
                             Disconnected event comes";

/// Implements `Display` and `Error` by the variants' own.
macro_rules! error_of_parts {
    ($Error:ident $(, $not_connected:ident)?: $($Part:ident from $From:ty),+) => {
        impl fmt::Display for $Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($Error::$not_connected => f.write_str(NOT_CONNECTED),)?
                    $($Error::$Part(error) => error.fmt(f),)+
                }
            }
        }

        impl core::error::Error for $Error {}

        $(impl From<$From> for $Error {
            fn from(error: $From) -> Self {
                $Error::$Part(error)
            }
        })+
    };
}

error_of_parts!(SendError, NotConnected: Channel from transport::SendError);
error_of_parts!(BudgetError, NotConnected: Config from acks::ConfigError);
error_of_parts!(ConfigError: Netcode from netcode::ConfigError, Transport from acks::ConfigError);
