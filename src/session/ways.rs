//! The addresses by which the players of a game reach each other, and how they dial these.

use core::net::SocketAddr;

use super::peer_links::MARK;
use super::peers::PeerPart;
use crate::endpoint::{Host, development_names};
use crate::mesh::{Identity, Ticket, is_dialable};
use crate::netcode::{self, ConnectToken, Key, TokenParams, USER_DATA_BYTES};
use crate::rendezvous::{MemberRelay, Neighbour, lobby_code, member_address, member_of};
use crate::time::{Duration, Instant};

/// Seconds that a newcomer's own token is valid, long because players' clocks differ.
const TOKEN_LIFETIME: u32 = 3600;

/// How long one of several addresses of a player is dialled; the last may be that by another player.
const ADDRESS_PATIENCE: Duration = Duration::from_millis(1500);

/// How long a code is dialled, since a way to it is found first.
const CODE_PATIENCE: Duration = Duration::from_secs(5);

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

    /// A token for a peer that doesn't know its own address.
    pub(super) fn token(
        &mut self,
        now: Instant,
        addresses: &[SocketAddr],
        key: Key,
        ticket: Option<Ticket>,
    ) -> Option<ConnectToken> {
        let mut id = [0; 8];
        self.entropy.fill(&mut id);
        let mut user_data = [0; USER_DATA_BYTES];
        if let Some(ticket) = &ticket {
            user_data[..MARK.len()].copy_from_slice(MARK);
            user_data[MARK.len()..MARK.len() + ticket.len()].copy_from_slice(ticket);
        }
        let upper_protocol = self.config.upper_protocol.filter(|_| ticket.is_none());
        let names = development_names(addresses.len(), upper_protocol);
        let params = TokenParams {
            protocol_id: self.config.netcode.protocol_id,
            private_key: &key,
            client_id: u64::from_le_bytes(id),
            created: self.unix(now),
            lifetime: Some(TOKEN_LIFETIME),
            timeout: Some(self.config.timeout),
            public_addresses: addresses,
            internal_addresses: Some(&names),
            user_data: &user_data,
            dated: false,
        };
        ConnectToken::generate(&params, &mut *self.entropy).ok()
    }

    pub(super) fn dial(
        &mut self,
        now: Instant,
        host: &mut Host,
        token: Option<ConnectToken>,
        player: Option<Identity>,
    ) {
        let is_code = |token: &ConnectToken| token.addresses.iter().any(|it| lobby_code(*it).is_some());
        let patience = if token.as_ref().is_some_and(is_code) { CODE_PATIENCE } else { ADDRESS_PATIENCE };
        let config = netcode::ClientConfig {
            development: self.config.netcode.development && player.is_none(),
            patience: player.map(|_| patience),
            ..self.config.netcode
        };
        let id = token
            .as_ref()
            .map_or(0, |token| u64::from_le_bytes(token.identity()[..8].try_into().unwrap_or_default()));
        match token.map(|token| host.dial(now, config, token, id)) {
            Some(Ok(handle)) => self.mesh.note_dialling(now, handle.number(), player),
            _ => self.mesh.note_undialled(player.map(|(player, _)| player)),
        }
    }
}
