//! Netcode clients and servers against each other and against attackers, in virtual time.

use std::collections::BTreeMap;

use tickwire::netcode::{ClientHandle, Counters, SendError, Server, ServerEvent};
use tickwire::store::Datagrams;
use tickwire::time::Instant;

mod attacks;
mod connecting;
mod ending;
mod explaining;
mod floods;
mod tokens;
mod world;

/// Whether the handle names a connection.
pub(crate) fn is_connected(server: &Server, client: ClientHandle) -> bool {
    server.next_number(client).is_ok()
}

/// The clients among these events of a server that are still connected, with their client ids.
pub(crate) fn clients(server: &Server, events: &[ServerEvent]) -> BTreeMap<ClientHandle, u64> {
    let connected = |event: &ServerEvent| match event {
        ServerEvent::Connected { client, client_id, .. } => Some((*client, *client_id)),
        ServerEvent::Disconnected { .. } => None,
    };
    events.iter().filter_map(connected).filter(|(client, _)| is_connected(server, *client)).collect()
}

/// The connection of a client id.
pub(crate) fn client_of(server: &Server, events: &[ServerEvent], client_id: u64) -> Option<ClientHandle> {
    clients(server, events).into_iter().find(|(_, id)| *id == client_id).map(|(client, _)| client)
}

/// Sends a payload under the next number.
pub(crate) fn send_payload(
    server: &mut Server,
    now: Instant,
    client: ClientHandle,
    payload: &[u8],
    out: &mut Datagrams,
) -> Result<(), SendError> {
    let number = server.next_number(client)?;
    server.send_numbered(now, client, number, |out| out.extend_from_slice(payload), out)
}

/// How many datagrams were dropped, for any reason.
pub(crate) fn total_dropped(counters: &Counters) -> u64 {
    counters.iter().map(|(_, count)| count).sum()
}
