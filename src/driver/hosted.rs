//! The server and the client of a game that a player hosts, on the port of that player's peer.
//!
//! Promises: a datagram reaches the server or the client only if it comes from the address of a player's link, and goes
//! out only to such an address; what waits is bounded. The datagrams are netcode's, sealed between a client and its server,
//! so a player or a carrier can lose them, and neither read nor change them.
//!
//! On the wire: [`HOSTED`], and the datagram.

use core::net::SocketAddr;

use super::clock::Clock;
use super::local::{LocalPort, Way};
use crate::rendezvous::{Neighbour, member_address};
use crate::store::Datagrams;
use crate::store::counters::counters;

/// The first byte of datagrams of a hosted game. No packet of netcode begins with it, nor any that is carried or of a
/// rendezvous.
pub const HOSTED: u8 = 0xF9;

counters! {
    /// Counters of a hosted game's datagrams on a peer's port.
    pub struct HostedCounters {
        /// Datagrams from an address that is no player's.
        refused,
        /// Datagrams for players who aren't connected.
        no_path,
        /// Datagrams dropped because the server or the client takes none.
        overflowed,
    }
}

/// The two queues of a port.
#[derive(Debug)]
struct Queues {
    incoming: Way,
    outgoing: Way,
}

/// The ports of a hosted game's server and client on a peer's port.
#[derive(Debug, Default)]
pub struct HostedPorts {
    /// This player and its joining.
    me: Option<(u8, u32)>,
    others: Vec<Neighbour>,
    server: Option<Queues>,
    client: Option<Queues>,
    counters: HostedCounters,
}

impl HostedPorts {
    pub fn counters(&self) -> HostedCounters {
        self.counters
    }

    /// Sets this player, and the addresses of the links to the other players.
    pub fn set_players(&mut self, me: Option<(u8, u32)>, others: impl Iterator<Item = Neighbour>) {
        self.me = me;
        self.others.clear();
        self.others.extend(others.filter(|other| other.address.is_some()));
    }

    /// Makes the port of the server, in place of an earlier one.
    pub(super) fn open_server(&mut self, address: SocketAddr, clock: Clock) -> LocalPort {
        open(&mut self.server, address, clock)
    }

    /// Makes the port of the client, in place of an earlier one.
    pub(super) fn open_client(&mut self, address: SocketAddr, clock: Clock) -> LocalPort {
        open(&mut self.client, address, clock)
    }

    /// Takes a datagram that came from this address; false if it belongs to no hosted game.
    pub(super) fn handle_datagram(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let [HOSTED, inside @ ..] = datagram else { return false };
        let sender = self.others.iter().find(|other| other.address == Some(from));
        match sender.map(|other| member_address(other.player, other.joined)) {
            Some(sender) => self.deliver(sender, inside, self.server.is_some()),
            None => self.counters.refused += 1,
        }
        true
    }

    fn side(&mut self, is_server: bool) -> &mut Option<Queues> {
        if is_server { &mut self.server } else { &mut self.client }
    }

    fn deliver(&mut self, from: SocketAddr, datagram: &[u8], to_server: bool) {
        let queues = self.side(to_server);
        let fits = queues.as_ref().is_some_and(|queues| queues.incoming.push(from, datagram));
        self.counters.overflowed += u64::from(!fits);
    }

    /// Passes on what the server and the client have sent: to each other, or into a batch for the network.
    pub(super) fn take_outgoing(&mut self, out: &mut Datagrams) {
        for is_server in [true, false] {
            let Some(queues) = self.side(is_server).take() else { continue };
            while let Some((to, datagram)) = queues.outgoing.pop() {
                self.send(to, &datagram, !is_server, out);
            }
            *self.side(is_server) = Some(queues).filter(|queues| !queues.outgoing.is_over());
        }
    }

    fn send(&mut self, to: SocketAddr, datagram: &[u8], to_server: bool, out: &mut Datagrams) {
        if let Some(me) = self.me.map(|(player, joined)| member_address(player, joined))
            && me == to
        {
            return self.deliver(me, datagram, to_server);
        }
        let is_it = |other: &&Neighbour| member_address(other.player, other.joined) == to;
        match self.others.iter().find(is_it).and_then(|other| other.address) {
            Some(address) => out.push_with(address, |out| {
                out.push(HOSTED);
                out.extend_from_slice(datagram);
            }),
            None => self.counters.no_path += 1,
        }
    }
}

fn open(queues: &mut Option<Queues>, address: SocketAddr, clock: Clock) -> LocalPort {
    let (incoming, outgoing) = (Way::default(), Way::default());
    *queues = Some(Queues { incoming: incoming.clone(), outgoing: outgoing.clone() });
    LocalPort { address, clock, incoming, outgoing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(player: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, player], 7))
    }

    /// The ports of the player with the number 0, who reaches player 1.
    fn ports() -> HostedPorts {
        let mut ports = HostedPorts::default();
        let one = Neighbour { player: 1, joined: 9, address: Some(at(1)) };
        let two = Neighbour { player: 2, joined: 9, address: None };
        ports.set_players(Some((0, 5)), [one, two].into_iter());
        ports
    }

    fn clock() -> Clock {
        Clock::System(std::time::Instant::now())
    }

    fn received(port: &LocalPort) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut all = Vec::new();
        port.receive(99, |_, from, datagram| all.push((from, datagram.to_vec())));
        all
    }

    fn send(port: &LocalPort, ports: &mut HostedPorts, to: SocketAddr) -> Vec<(SocketAddr, Vec<u8>)> {
        let (mut batch, mut out) = (Datagrams::new(), Datagrams::new());
        batch.push(to, b"sealed");
        port.send(&batch);
        ports.take_outgoing(&mut out);
        out.iter().map(|(to, datagram)| (to, datagram.to_vec())).collect()
    }

    #[test]
    fn the_host_reaches_players_by_their_links_and_its_own_client_in_memory() {
        let mut ports = ports();
        let server = ports.open_server(member_address(0, 5), clock());
        let client = ports.open_client(member_address(0, 5), clock());
        assert_eq!(
            send(&server, &mut ports, member_address(1, 9)),
            [(at(1), [&[HOSTED][..], b"sealed"].concat())]
        );
        assert_eq!(send(&client, &mut ports, member_address(0, 5)), []);
        assert_eq!(received(&server), [(member_address(0, 5), b"sealed".to_vec())]);
        assert_eq!(send(&server, &mut ports, member_address(0, 5)), []);
        assert_eq!(received(&client), [(member_address(0, 5), b"sealed".to_vec())]);
        for to in [member_address(2, 9), member_address(1, 8), at(1), "6.6.6.6:6".parse().unwrap()] {
            assert_eq!(send(&server, &mut ports, to), [], "only players that are connected");
        }
        assert_eq!(ports.counters(), HostedCounters { no_path: 4, ..HostedCounters::default() });
    }

    #[test]
    fn only_players_reach_the_server_and_without_one_the_client() {
        let mut ports = ports();
        let client = ports.open_client(member_address(0, 5), clock());
        assert!(!ports.handle_datagram(at(1), b"other"));
        assert!(ports.handle_datagram(at(1), &[HOSTED, 1]));
        assert_eq!(received(&client), [(member_address(1, 9), vec![1])]);
        let server = ports.open_server(member_address(0, 5), clock());
        assert!(ports.handle_datagram(at(1), &[HOSTED, 2]));
        assert_eq!((received(&client), received(&server)), (vec![], vec![(member_address(1, 9), vec![2])]));
        for stranger in [at(2), "6.6.6.6:6".parse().unwrap()] {
            assert!(ports.handle_datagram(stranger, &[HOSTED, 3]));
        }
        assert_eq!((received(&server), ports.counters().refused), (vec![], 2));
        drop(server);
        ports.take_outgoing(&mut Datagrams::new());
        assert!(ports.handle_datagram(at(1), &[HOSTED, 4]));
        assert_eq!(received(&client), [(member_address(1, 9), vec![4])]);
    }

    #[test]
    fn a_server_that_is_not_ticked_costs_bounded_memory() {
        let mut ports = ports();
        let _server = ports.open_server(member_address(0, 5), clock());
        let datagram = [&[HOSTED][..], &[7; 1_200]].concat();
        (0..5_000).for_each(|_| assert!(ports.handle_datagram(at(1), &datagram)));
        assert!(ports.counters().overflowed > 1_000);
    }
}
