//! The addresses by which the players of a game reach each other.

use core::net::SocketAddr;

use super::peers::PeerPart;
use crate::mesh::is_dialable;
use crate::rendezvous::{MemberRelay, Neighbour, lobby_code, member_address, member_of};

impl PeerPart {
    /// The other players, with the addresses of the links to them.
    pub fn neighbours(&self) -> impl Iterator<Item = Neighbour> {
        self.mesh.known().map(|((player, joined), address)| Neighbour { player, joined, address })
    }

    /// Tells who carries for others of the players, and where they are.
    pub fn tell_neighbours(&self, relay: &mut MemberRelay) {
        let neighbours = self.neighbours().map(|it| Neighbour {
            address: it.address.filter(|address| member_of(*address).is_none()),
            ..it
        });
        relay.set_neighbours(self.mesh.number(), neighbours);
    }

    /// Where the connection to a player leads, while there is one.
    pub fn address_of(&self, player: (u8, u32)) -> Option<SocketAddr> {
        self.mesh.known().find(|(other, address)| *other == player && address.is_some())?.1
    }

    /// The addresses by which a newcomer reaches a member.
    pub(super) fn ways_to(
        &self,
        (player, joined): (u8, u32),
        mut addresses: Vec<SocketAddr>,
    ) -> Vec<SocketAddr> {
        addresses.retain(|address| is_dialable(*address));
        // A peer behind a NAT is reached by its code alone.
        if addresses.iter().any(|address| lobby_code(*address).is_some()) {
            addresses.retain(|address| lobby_code(*address).is_some());
        }
        if self.config.relaying {
            addresses.push(member_address(player, joined));
        }
        addresses
    }

    /// An address that stands for a member leads there from here alone: others are told those of the roster.
    pub(super) fn name_elsewhere(&self, addresses: &mut Vec<SocketAddr>) {
        if let Some((player, joined)) = addresses.iter().find_map(|address| member_of(*address)) {
            let member = self.mesh.roster().member(player).filter(|member| member.joined == joined);
            *addresses = member.map(|member| member.addresses.clone()).unwrap_or_default();
        }
    }
}
