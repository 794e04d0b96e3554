//! The states of a client, and why it finished.

use super::explanation::Refusal;

/// The state of a client. The numbers are the standard's; negative ones are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum ClientState {
    /// The token expired before a connection was made.
    TokenExpired = -6,
    /// The token's bytes made no sense. No client is ever in this state: reading the token refuses first.
    InvalidToken = -5,
    /// The server fell silent.
    TimedOut = -4,
    /// A server fell silent after its challenge.
    ResponseTimedOut = -3,
    /// The last server never answered.
    RequestTimedOut = -2,
    /// The last server was full.
    Denied = -1,
    /// Disconnected on purpose, by either side.
    Disconnected = 0,
    /// Dialling: waiting for a challenge.
    SendingRequest = 1,
    /// Answering the challenge: waiting for a keep-alive.
    SendingResponse = 2,
    Connected = 3,
}

impl ClientState {
    pub fn number(self) -> i8 {
        self as i8
    }

    /// Whether the client has finished.
    pub fn is_final(self) -> bool {
        self.number() <= 0
    }
}

/// Why a client has finished, other than by its own [`Client::disconnect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientDisconnect {
    /// The token expired before a connection was made.
    TokenExpired,
    /// The server fell silent.
    TimedOut,
    /// A server fell silent after its challenge.
    ResponseTimedOut,
    /// The last server never answered.
    RequestTimedOut,
    /// The last server was full.
    Denied,
    /// The server disconnected this client.
    ByPeer,
    /// The server refused the token, with a reason.
    Refused(Refusal),
    /// The system reports that nothing listens at the server's address.
    Unreachable,
}

impl ClientDisconnect {
    pub(super) fn state(self) -> ClientState {
        match self {
            ClientDisconnect::TokenExpired => ClientState::TokenExpired,
            ClientDisconnect::TimedOut => ClientState::TimedOut,
            ClientDisconnect::ResponseTimedOut => ClientState::ResponseTimedOut,
            ClientDisconnect::RequestTimedOut | ClientDisconnect::Unreachable => ClientState::RequestTimedOut,
            ClientDisconnect::Denied | ClientDisconnect::Refused(_) => ClientState::Denied,
            ClientDisconnect::ByPeer => ClientState::Disconnected,
        }
    }
}

/// An event of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The server has a slot for us.
    Connected {
        client_index: u32,
        /// The server's number of slots.
        max_clients: u32,
    },
    /// The client has finished. Its own disconnect raises no event.
    Disconnected { reason: ClientDisconnect },
}
