//! Netcode clients and servers against each other and against attackers, in virtual time.

use tickwire::netcode::{ClientHandle, Counters, Server};

mod attacks;
mod connecting;
mod ending;
mod explaining;
mod floods;
mod tokens;
mod world;

/// The connection of a client id.
pub(crate) fn client_of(server: &Server, client_id: u64) -> Option<ClientHandle> {
    server.clients().find(|client| server.client_id(*client) == Some(client_id))
}

/// How many datagrams were dropped, for any reason.
pub(crate) fn total_dropped(counters: &Counters) -> u64 {
    counters.iter().map(|(_, count)| count).sum()
}
