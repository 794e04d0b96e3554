//! Why connections end, as the application sees it on either end.

use crate::transport::{CloseReason, End, FaultKind, Violation};

/// Why a connection ended. Each has one cause and one name, on both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DisconnectReason {
    /// This end closed it.
    Closed,
    /// The server's application ended this player's connection.
    Kicked,
    /// The server closed all connections. It does so, too, when its program ends or raises.
    ServerClosed,
    /// The peer left, and sent a goodbye.
    PeerDisconnected,
    /// Nothing arrived for the token's timeout, on one of the two sides.
    TimedOut,
    /// The same client connected once more, and that connection took this one's place.
    Replaced,
    /// A reliable channel to this player stayed full for too long, because the player acked or read too little.
    Stalled,
    /// The server has no free slot.
    ServerFull,
    /// No server of the token answered the connection request. The server may be down, or it drops requests
    /// silently: another key, another protocol id, a used token.
    RequestTimedOut,
    /// The server refuses the connection request and, being in development mode, says why.
    Refused,
    /// The system says that nothing listens at the server's address.
    Unreachable,
    /// No game has this code, or the game has ended.
    UnknownCode,
    /// The rendezvous server didn't answer, or no path to the host of the code was found.
    NoPath,
    /// The server answered the request, then fell silent.
    ResponseTimedOut,
    /// The token expired before the connection was up.
    TokenExpired,
    /// The two sides' messages or channels differ, or their Tickwire versions do.
    ProtocolMismatch,
    /// A side sent what the protocol forbids; its connection was ended for it.
    ProtocolViolation,
    /// Yojimbo's framing: a packet of the peer can't be read.
    ReadPacketFailed,
    /// Yojimbo's framing: a channel's messages in a packet of the peer can't be read.
    FailedToSerialize,
    /// Yojimbo's framing: a message or fragment of the peer can't belong where it says.
    Desync,
}

/// How a connection or a dial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionEnd {
    pub reason: DisconnectReason,
    /// The text from the application that ended it.
    pub detail: Option<Box<str>>,
}

/// The reason on this side for an end, given what a plain close by the peer means here.
pub(super) fn reason_of(end: &End, closed: DisconnectReason) -> DisconnectReason {
    match end {
        End::ByPeer(CloseReason::Closed) => closed,
        End::ByPeer(CloseReason::Kicked) => DisconnectReason::Kicked,
        End::ByPeer(CloseReason::Replaced) => DisconnectReason::Replaced,
        End::ByPeer(CloseReason::TimedOut) => DisconnectReason::TimedOut,
        End::ByPeer(CloseReason::Stalled) => DisconnectReason::Stalled,
        End::ByPeer(CloseReason::Mismatch) | End::Mismatch => DisconnectReason::ProtocolMismatch,
        End::Violation(Violation::Yojimbo(fault)) => match fault.kind {
            FaultKind::ReadPacketFailed => DisconnectReason::ReadPacketFailed,
            FaultKind::FailedToSerialize => DisconnectReason::FailedToSerialize,
            FaultKind::Desync => DisconnectReason::Desync,
        },
        End::ByPeer(CloseReason::Violation) | End::Violation(_) => DisconnectReason::ProtocolViolation,
    }
}

/// The close reason to send to the peer, unless it knows already.
pub(super) fn answer_to(end: &End) -> Option<CloseReason> {
    match end {
        End::ByPeer(_) => None,
        End::Mismatch => Some(CloseReason::Mismatch),
        End::Violation(_) => Some(CloseReason::Violation),
    }
}
