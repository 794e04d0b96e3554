//! Why an endpoint refuses a request.

use core::fmt;

use crate::limits::ConfigError;
use crate::transport;

/// Why a request about a peer, or about all peers, is refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerError<E> {
    /// The connection is not up, or is over; the slot may belong to another peer by now.
    NotConnected,
    /// The peer's connection refuses it.
    Refused(E),
}

/// Why a message can't be sent.
pub type SendError = PeerError<transport::SendError>;

/// Why a budget or a rate can't be set.
pub type BudgetError = PeerError<ConfigError>;

impl SendError {
    /// Whether the message can be sent to other peers: only this one is gone, or has no room.
    pub fn is_refusal(&self) -> bool {
        use transport::SendError::{Full, TickFull};
        matches!(self, SendError::NotConnected | SendError::Refused(Full { .. } | TickFull { .. }))
    }
}

impl<E> From<E> for PeerError<E> {
    fn from(error: E) -> Self {
        PeerError::Refused(error)
    }
}

impl<E: fmt::Display> fmt::Display for PeerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerError::NotConnected => f.write_str(
                "the peer is not connected: wait for its Connected event, and drop its handle when its \
                 Disconnected event arrives",
            ),
            PeerError::Refused(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for PeerError<E> {}

/// Why messages can't be sent to a room. No member was sent any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomError {
    /// The channel refuses one of the messages, for all peers.
    Send(SendError),
    /// The values to keep are more than the room may keep.
    Full { bytes: usize, values: usize, max_bytes: usize },
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
