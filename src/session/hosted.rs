//! The game that the players host, in a peer's part of a session: seats at the host's server, and the worlds that travel
//! between the players as chunks.
//!
//! Promises: the application never gets a chunk with a world, and only the master's own server is dialled.

use std::any::Any;
use std::sync::Arc;

use super::hosting::{Agreed, Hosting, HostingCounters, News, Transfer, WorldBytes, WorldId};
use super::peer_links::pass_of;
use super::peers::PeerPart;
use crate::endpoint::{DisconnectReason, Host, PeerHandle};
use crate::mesh::{LeaveReason, Member, Phase, Players, bit};
use crate::netcode::{ConnectToken, TOKEN_BYTES};
use crate::rendezvous::member_address;
use crate::time::{Instant, UnixSeconds};
use crate::transport::chunks::{BytesSource, ChunkEvent, Stored};

/// Labels of chunks with worlds begin with it.
const LABEL: &str = "tickwire.world ";

/// Worlds up to this size go out at once.
const MAX_BURST: usize = 4096;

fn label_of((epoch, sequence): WorldId) -> String {
    format!("{LABEL}{epoch}.{sequence}")
}

fn id_in(label: &str) -> Option<WorldId> {
    let (epoch, sequence) = label.strip_prefix(LABEL)?.split_once('.')?;
    Some((epoch.parse().ok()?, sequence.parse().ok()?))
}

/// Where a peer stands in a hosted game.
#[derive(Debug)]
pub struct Standing {
    /// Whether the server that it runs may go on.
    pub serves: bool,
    /// How its client ends, if the game is over for this peer.
    pub end: Option<DisconnectReason>,
    /// The newest seat at the master's server, if another one came.
    pub seat: Option<Seat>,
}

/// A token for the master's server.
#[derive(Debug)]
pub struct Seat {
    pub token: ConnectToken,
    /// The end of the connection to the server before.
    pub end: DisconnectReason,
}

impl Seat {
    /// Puts it where the client finds it. If the client hasn't taken an earlier seat yet, its connection is still the one
    /// that the earlier seat ends, so only the token is replaced.
    pub fn place(self, slot: &mut Option<Seat>) {
        match slot {
            Some(waiting) => waiting.token = self.token,
            None => *slot = Some(self),
        }
    }
}

/// The id of a player's client at every host's server.
pub fn client_id((player, joined): (u8, u32)) -> u64 {
    u64::from(joined) << 8 | u64::from(player)
}

/// The end of a client's connection whose player is out of the game.
fn end_of(reason: LeaveReason) -> DisconnectReason {
    match reason {
        LeaveReason::Kicked => DisconnectReason::Kicked,
        LeaveReason::Closed | LeaveReason::Left => DisconnectReason::Closed,
        LeaveReason::Full => DisconnectReason::ServerFull,
        LeaveReason::Started => DisconnectReason::Refused,
        LeaveReason::Mismatch => DisconnectReason::ProtocolMismatch,
        LeaveReason::Violation => DisconnectReason::ProtocolViolation,
        LeaveReason::UnknownCode => DisconnectReason::UnknownCode,
        LeaveReason::Lost | LeaveReason::Unreachable | LeaveReason::Minority | LeaveReason::NoAnswer => {
            DisconnectReason::TimedOut
        }
    }
}

impl PeerPart {
    /// The counters of a hosted game.
    pub fn hosting_counters(&self) -> Option<HostingCounters> {
        let core: &dyn Any = self.core.get()?;
        Some(core.downcast_ref::<Hosting>()?.counters())
    }

    /// What the hosted game needs next.
    pub fn poll_hosted(&mut self) -> Option<News> {
        self.core::<Hosting>()?.poll_news()
    }

    /// The layer above has made a server, or can't load the world.
    pub fn note_begun(&mut self, now: Instant, is_fine: bool) {
        self.seated.clear();
        if let Some(hosting) = self.core::<Hosting>() {
            hosting.note_begun(now, is_fine);
        }
    }

    /// Whether this peer hosts the game now, and no other can.
    pub fn is_host(&mut self, now: Instant) -> bool {
        let Some(hosting) = self.core::<Hosting>() else { return false };
        let (is_running, leases) = (hosting.is_running(), hosting.leases(now));
        is_running && self.mesh.is_master() && self.is_quorum(leases)
    }

    /// Whether this peer hosts the game and should save its world now.
    pub fn is_save_due(&mut self, now: Instant) -> bool {
        self.is_host(now) && self.core::<Hosting>().is_some_and(|hosting| hosting.is_save_due(now))
    }

    /// This peer, the host, has saved its world; false if that is too large.
    pub fn keep_world(&mut self, now: Instant, world: Vec<u8>) -> bool {
        self.core::<Hosting>().is_none_or(|hosting| hosting.keep(now, WorldBytes::new(world)))
    }

    /// Whether this peer hosts the game, and the next hosts don't have its newest world yet.
    pub(super) fn is_handing_over(&mut self, now: Instant) -> bool {
        self.is_host(now) && self.core::<Hosting>().is_some_and(|hosting| !hosting.has_handed_over())
    }

    /// Sends the players tokens for `server`, which this peer runs, and ends the connections of the players who left. `unix`
    /// is the server's clock, because it refuses tokens from before its start.
    pub fn seat_players(&mut self, unix: UnixSeconds, server: &mut Host) {
        let roster = self.mesh.roster();
        let gone = self.seated.extract_if(.., |who| !roster.has(*who));
        for client in gone.filter_map(|who| server.find(client_id(who))).collect::<Vec<_>>() {
            server.lose(client, DisconnectReason::PeerDisconnected);
        }
        let (Some((player, joined)), Some(listener)) = (self.mesh.identity(), server.listener()) else {
            return;
        };
        let members = roster.members.iter().map(Member::identity);
        let unseated: Vec<_> = members.filter(|who| !self.seated.contains(who)).collect();
        let address = member_address(player, joined);
        for who in unseated {
            let token = listener.local_token(unix, address, client_id(who), None, &mut *self.entropy);
            token.into_iter().for_each(|token| self.offer_seat(who, token));
        }
    }

    /// Sends a player the token for the server that this peer runs; takes its own. The player stays unseated if this isn't
    /// the master, or the player isn't connected.
    fn offer_seat(&mut self, player: (u8, u32), token: ConnectToken) {
        if self.mesh.identity() == Some(player) {
            self.seat = Some(token);
        } else if !self.mesh.offer_seat(player, pass_of(&token)) {
            return;
        }
        self.seated.push(player);
    }

    /// The master sends the token for its server. Whatever the token names, only the master's own server is dialled.
    pub(super) fn keep_seat(&mut self, host: (u8, u32), mut pass: Vec<u8>) {
        pass.resize(TOKEN_BYTES, 0);
        let token = ConnectToken::from_bytes(&pass).ok();
        let leads_there = |token: &ConnectToken| token.addresses() == [member_address(host.0, host.1)];
        self.seat = token.filter(leads_there).or(self.seat.take());
    }

    /// What the hosted game's server and client must do now. Takes the token for the master's server, if another one came.
    pub fn take_standing(&mut self) -> Standing {
        let end = match self.mesh.phase() {
            Phase::Ended(reason) => Some(end_of(reason)),
            _ => None,
        };
        let seat = self.seat.take().map(|token| {
            let before = core::mem::replace(&mut self.seated_at, token.addresses().first().copied());
            let has_left = core::mem::take(&mut self.has_host_left);
            // A host that sends a second token has closed its first server.
            let has_closed = has_left || before == self.seated_at;
            let end = if has_closed { DisconnectReason::ServerClosed } else { DisconnectReason::TimedOut };
            Seat { token, end }
        });
        Standing { serves: self.mesh.is_master() && end.is_none(), end, seat }
    }

    /// Carries out the actions of a hosted game.
    pub(super) fn host_game(&mut self, now: Instant, host: &mut Host) {
        let Some(hosting) = self.core::<Hosting>() else { return };
        let leases = hosting.leases(now);
        let is_host = self.is_quorum(leases);
        let agreed = Agreed {
            epoch: self.mesh.epoch(),
            me: self.mesh.me(),
            master: self.mesh.master().filter(|_| !self.mesh.is_electing()),
            others: self.connected(),
        };
        let mut transfers = Vec::new();
        if let Some(hosting) = self.core::<Hosting>() {
            hosting.update(now, agreed, is_host);
            transfers.extend(std::iter::from_fn(|| hosting.poll_transfer()));
        }
        for transfer in transfers {
            self.send_world(now, host, &transfer);
        }
    }

    /// The other players of the roster that are connected.
    fn connected(&self) -> Players {
        let here = self.players.iter().filter(|link| !link.over);
        here.fold(0, |all, link| all | bit(link.who.0)) & self.mesh.roster().players()
    }

    fn send_world(&mut self, now: Instant, host: &mut Host, transfer: &Transfer) {
        let Transfer { player, id, world } = transfer;
        let player = *player;
        let is_small = world.bytes.len() <= MAX_BURST;
        let source = Box::new(BytesSource(world.bytes.clone()));
        let handle = self.handle_of(player);
        let sent = handle.and_then(|handle| {
            let connection = host.connection_mut(handle)?;
            let number = connection.send_chunk(now, source, world.hash, &label_of(*id), is_small).ok()?;
            Some((handle, number, player))
        });
        match sent {
            Some(sent) => self.worlds.push(sent),
            None => self.note_sent(player, false),
        }
    }

    fn note_sent(&mut self, player: u8, is_there: bool) {
        if let Some(hosting) = self.core::<Hosting>() {
            hosting.note_sent(player, is_there);
        }
    }

    /// Takes the worlds out of what came.
    pub(super) fn take_worlds(&mut self, chunks: &mut Vec<(PeerHandle, ChunkEvent)>) {
        if chunks.is_empty() || self.core::<Hosting>().is_none() {
            return;
        }
        let is_sent = |peer, number| self.worlds.iter().any(|(to, sent, _)| (*to, *sent) == (peer, number));
        let is_world = |(peer, event): &mut (PeerHandle, ChunkEvent)| match event {
            ChunkEvent::Sent { number } | ChunkEvent::NotSent { number, .. } => is_sent(*peer, *number),
            _ => event.has_label(LABEL),
        };
        let worlds: Vec<_> = chunks.extract_if(.., is_world).collect();
        for (peer, event) in worlds {
            self.handle_world_event(peer, event);
        }
    }

    fn handle_world_event(&mut self, peer: PeerHandle, event: ChunkEvent) {
        match event {
            ChunkEvent::Sent { number } | ChunkEvent::NotSent { number, .. } => {
                let is_it = |(to, sent, _): &(PeerHandle, u64, u8)| (*to, *sent) == (peer, number);
                let Some(place) = self.worlds.iter().position(is_it) else { return };
                let (.., player) = self.worlds.swap_remove(place);
                self.note_sent(player, matches!(event, ChunkEvent::Sent { .. }));
            }
            ChunkEvent::Received { offer, stored: Stored::Bytes(bytes) } => {
                let world = WorldBytes { hash: offer.hash, bytes: Arc::new(bytes) };
                let player = self.player_of(peer).map(|(player, _)| player);
                if let (Some(player), Some(id)) = (player, id_in(&offer.label))
                    && let Some(hosting) = self.core::<Hosting>()
                {
                    hosting.handle_world(player, id, world);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv4Addr, SocketAddr};

    use super::*;
    use crate::endpoint::{ChunkLimits, DEVELOPMENT_KEY, ServerConfig};
    use crate::netcode::{self, TokenParams, USER_DATA_BYTES};
    use crate::rng::Rng;
    use crate::session::Opening;
    use crate::transport::{Body, ChannelConfig, ConnectionConfig, MessageType, Protocol};

    /// The first peer of a hosted game.
    fn part() -> PeerPart {
        let opening = Opening {
            protocol_id: 1,
            upper_protocol: None,
            key: None,
            name: "ann",
            places: 4,
            contact: None,
            timeout: None,
            relaying: false,
            is_hosted: true,
        };
        opening.part(HERE, [1; 32], Box::new(Rng::seeded(1)), Instant::ZERO, UNIX)
    }

    const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7);
    const UNIX: UnixSeconds = UnixSeconds(1_700_000_000);

    fn token(address: SocketAddr) -> ConnectToken {
        let params = TokenParams {
            protocol_id: 1,
            private_key: &DEVELOPMENT_KEY,
            client_id: 1,
            created: UNIX,
            lifetime: Some(60),
            timeout: Some(5),
            public_addresses: &[address],
            internal_addresses: None,
            user_data: &[0; USER_DATA_BYTES],
            dated: false,
        };
        ConnectToken::generate(&params, &mut Rng::seeded(1)).unwrap()
    }

    #[test]
    fn a_seat_leads_only_to_the_server_of_the_host_that_sends_it() {
        let mut part = part();
        let host = (2, 9);
        for elsewhere in [HERE, member_address(2, 8), member_address(1, 9)] {
            part.keep_seat(host, pass_of(&token(elsewhere)));
            assert!(part.take_standing().seat.is_none(), "{elsewhere}");
        }
        part.keep_seat(host, pass_of(&token(member_address(2, 9))));
        // Whatever comes next doesn't take its place.
        part.keep_seat(host, vec![7; 9]);
        part.keep_seat(host, pass_of(&token(HERE)));
        let seat = part.take_standing().seat.expect("the token of the host itself");
        assert_eq!(seat.token.addresses(), [member_address(2, 9)]);
        assert!(part.take_standing().seat.is_none(), "it is taken once");
    }

    #[test]
    fn a_seat_says_how_the_connection_before_ended() {
        let mut part = part();
        let mut seat = |host: (u8, u32), leaves| {
            part.has_host_left = leaves;
            part.keep_seat(host, pass_of(&token(member_address(host.0, host.1))));
            part.take_standing().seat.expect("a token of the host")
        };
        seat((2, 9), false);
        assert_eq!(seat((2, 9), false).end, DisconnectReason::ServerClosed, "the same host, another server");
        assert_eq!(seat((3, 9), false).end, DisconnectReason::TimedOut);
        assert_eq!(seat((4, 9), true).end, DisconnectReason::ServerClosed);

        // The host of the present connection left. The next host was gone too before the client took its token.
        let mut slot = None;
        seat((5, 9), true).place(&mut slot);
        seat((6, 9), false).place(&mut slot);
        let waiting = slot.expect("it waits for the client");
        assert_eq!(waiting.token.addresses(), [member_address(6, 9)]);
        assert_eq!(waiting.end, DisconnectReason::ServerClosed);
    }

    #[test]
    fn a_host_has_a_seat_at_its_own_server_and_takes_it_once() {
        let mut part = part();
        let netcode = netcode::ServerConfig::new(1, [3; 32], 4, vec![member_address(0, 0)]);
        let config = ServerConfig {
            netcode,
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits { memory_bytes: 0 },
        };
        let types = vec![MessageType { name: "A".into(), body: Body::Opaque { max_bytes: 4 } }];
        let protocol = Arc::new(Protocol::new(types, vec![ChannelConfig::unreliable()]).unwrap());
        let mut server = Host::server(config, protocol, &mut Rng::seeded(2), UNIX).unwrap();
        // By the server's clock: it refuses tokens from before its start.
        let later = UnixSeconds(UNIX.0 + 9);
        for expected in [Some((vec![member_address(0, 0)], later)), None] {
            part.seat_players(later, &mut server);
            let seat = part.take_standing().seat;
            assert_eq!(
                seat.map(|Seat { token, .. }| (token.addresses().to_vec(), token.created())),
                expected
            );
        }
        // A server of its own that begins anew has another key.
        part.note_begun(Instant::ZERO, true);
        part.seat_players(UNIX, &mut server);
        assert!(part.take_standing().seat.is_some());
    }
}
