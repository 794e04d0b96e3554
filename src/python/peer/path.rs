//! How a player is reached.

use crate::python::prelude::*;

use super::events::Player;
use crate::python::events::event_class;
use crate::rendezvous::{PathKind, member_of};

event_class! { PlayerPath in "tickwire.peers", holding through { kind: &'static str, through: Option<Py<Player>> } }

/// How the peer at this address is reached, and the number of the player who carries.
pub(super) fn of(driver: &mut Driver, address: SocketAddr) -> (&'static str, Option<u8>) {
    if let Some((player, joined)) = member_of(address) {
        let through = driver.member_relay().and_then(|relay| relay.through(player, joined));
        return ("relayed", through);
    }
    let kind = match driver.rendezvous().and_then(|client| client.kind_of(address)) {
        None | Some(PathKind::Direct) => "direct",
        Some(PathKind::Punched) => "punched",
        Some(PathKind::Relayed) => "relayed",
    };
    (kind, None)
}
