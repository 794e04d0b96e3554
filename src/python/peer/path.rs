//! How a player is reached.

use crate::python::prelude::*;

use super::events::Player;
use crate::rendezvous::{PathKind, member_of};

#[record(module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct PlayerPath {
    pub(super) kind: &'static str,
    pub(super) through: Option<Py<Player>>,
}

/// How the peer at this address is reached, and the number of the player who carries.
pub(super) fn of(driver: &mut Driver, address: SocketAddr) -> (PathKind, Option<u8>) {
    if let Some((player, joined)) = member_of(address) {
        let through = driver.member_relay().and_then(|relay| relay.through(player, joined));
        return (PathKind::Relayed, through);
    }
    let found = driver.rendezvous().and_then(|client| client.kind_of(address));
    (found.unwrap_or(PathKind::Direct), None)
}
