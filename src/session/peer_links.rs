//! What links between peers carry besides packets of the game: tickets, bodies and ends.

use crate::endpoint::DisconnectReason;
use crate::mesh::{LinkEnd, MAX_PASS_BYTES, Ticket};
use crate::netcode::{ConnectToken, USER_DATA_BYTES};

/// Precedes the ticket in the user data of connect tokens that a master made.
pub(super) const MARK: &[u8; 8] = b"TWPEER01";

/// Precedes the reason in the detail of a connection's end.
pub(super) const OUT: &str = "out of the game: ";

/// The ticket in a token's user data, if a master made the token.
pub(super) fn ticket_in(user_data: &[u8; USER_DATA_BYTES]) -> Option<Ticket> {
    let ticket = user_data.strip_prefix(MARK)?.get(..size_of::<Ticket>())?;
    ticket.try_into().ok()
}

/// A token without the zeros at its end.
pub(super) fn pass_of(token: &ConnectToken) -> Vec<u8> {
    let mut pass = token.to_bytes().to_vec();
    pass.truncate(MAX_PASS_BYTES);
    pass.truncate(pass.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    pass
}

pub(super) fn link_end(reason: DisconnectReason, detail: Option<&str>) -> LinkEnd {
    use DisconnectReason as Reason;
    let is_out = detail.is_some_and(|detail| detail.starts_with(OUT));
    match reason {
        Reason::Kicked | Reason::PeerDisconnected | Reason::ServerClosed | Reason::Closed if is_out => {
            LinkEnd::Parted
        }
        Reason::Kicked | Reason::PeerDisconnected | Reason::ServerClosed | Reason::Closed => LinkEnd::Left,
        Reason::ProtocolViolation | Reason::ReadPacketFailed | Reason::FailedToSerialize | Reason::Desync => {
            LinkEnd::Violation
        }
        Reason::ProtocolMismatch | Reason::Refused => LinkEnd::Mismatch,
        Reason::ServerFull => LinkEnd::Full,
        Reason::UnknownCode => LinkEnd::UnknownCode,
        Reason::TimedOut
        | Reason::Replaced
        | Reason::Stalled
        | Reason::RequestTimedOut
        | Reason::Unreachable
        | Reason::NoPath
        | Reason::ResponseTimedOut
        | Reason::TokenExpired => LinkEnd::Lost,
    }
}
