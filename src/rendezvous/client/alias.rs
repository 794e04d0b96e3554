//! Addresses that stand for codes: datagrams to one reach the code's host once a path is found.
//!
//! Promises: a bounded number; unused ones are dropped.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::event::{MeetingFault, RendezvousEvent};
use super::relay_line::is_relayed;
use crate::rendezvous::code::LobbyCode;
use crate::time::{Duration, Instant};

/// The network of these addresses, next to the one of relayed peers.
const NETWORK: [u16; 4] = [0xFD3C, 0x9A57, 0xE1D4, 0x7278];

/// The port of all of them.
const PORT: u16 = 7777;

/// An alias that nothing is sent to is dropped after this time.
pub(super) const ALIAS_TIMEOUT: Duration = Duration::from_secs(60);

/// Between two questions about a code after one without answer or path.
pub(super) const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A path older than this is looked for again when the game dials anew: the NAT may have dropped it.
pub(super) const STALE_AFTER: Duration = Duration::from_secs(6);

/// The address that stands for the host with this code.
pub fn lobby_address(code: LobbyCode) -> SocketAddr {
    let [a, b, c, d] = NETWORK;
    let [one, two, three, four, five, six] = code.bytes().map(u16::from);
    let ip = Ipv6Addr::new(a, b, c, d, 0, one << 8 | two, three << 8 | four, five << 8 | six);
    SocketAddr::new(ip.into(), PORT)
}

/// The code that an address stands for, if any.
pub fn lobby_code(address: SocketAddr) -> Option<LobbyCode> {
    let IpAddr::V6(ip) = address.ip() else { return None };
    let (segments, octets) = (ip.segments(), ip.octets());
    let is_such = segments[..4] == NETWORK && segments[4] == 0 && address.port() == PORT;
    LobbyCode::from_bytes(octets[10..].try_into().ok()?).filter(|_| is_such)
}

/// Whether an address stands for a peer: the socket can't send there.
pub fn is_virtual(address: SocketAddr) -> bool {
    is_relayed(address) || lobby_code(address).is_some()
}

pub(super) struct Alias {
    pub(super) code: LobbyCode,
    /// The open question about it.
    pub(super) join: Option<u64>,
    pub(super) path: Option<SocketAddr>,
    /// Why the last question or attempt failed.
    pub(super) fault: Option<MeetingFault>,
    pub(super) found_at: Instant,
    pub(super) again_at: Instant,
    pub(super) used: Instant,
}

/// Updates an alias by the event about its question.
pub(super) fn note_event(now: Instant, aliases: &mut [Alias], event: &RendezvousEvent) {
    let (join, found) = match event {
        RendezvousEvent::Path { join: Some(join), address, .. } => (join, Ok(*address)),
        RendezvousEvent::NoPath { join: Some(join), server_answered: true } => {
            (join, Err(MeetingFault::NoPath))
        }
        RendezvousEvent::NoPath { join: Some(join), .. } => (join, Err(MeetingFault::Silent)),
        RendezvousEvent::Refused { join, refusal } => (join, Err(MeetingFault::Refused(*refusal))),
        _ => return,
    };
    for alias in aliases.iter_mut().filter(|alias| alias.join == Some(join.0)) {
        (alias.join, alias.path, alias.fault, alias.found_at) = (None, found.ok(), found.err(), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_its_code() {
        let code: LobbyCode = "BCDFGX".parse().unwrap();
        let address = lobby_address(code);
        assert_eq!((lobby_code(address), is_virtual(address)), (Some(code), true));
        for text in ["1.2.3.4:7777", "[fd3c:9a57:e1d4:7278::1]:7777", "[::1]:7777"] {
            assert_eq!(lobby_code(text.parse().unwrap()), None);
        }
    }
}
