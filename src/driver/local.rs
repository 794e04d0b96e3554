//! Clients in the server's own process, connected in memory.
//!
//! Promises: datagrams arrive in order at the other side's next receive, and none is lost below the bound; a sender on
//! the network can't pass for a local client. Packets are sealed as on a socket, so both sides run the same code.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clock::Clock;
use crate::store::Datagrams;
use crate::store::counters::counters;
use crate::time::Instant;

/// The network of local clients' addresses, next to those of relayed and carried peers.
const NETWORK: [u16; 4] = [0xFD3C, 0x9A57, 0xE1D4, 0x727A];

/// The maximum of bytes that wait for one side: a socket's buffer holds as much.
const MAX_WAITING_BYTES: usize = 4 << 20;

counters! {
    /// Counters of a server's local clients.
    pub struct LocalCounters {
        /// Datagrams from the network with a local client's address.
        forged,
        /// Datagrams dropped because the other side takes none.
        overflowed,
    }
}

#[derive(Debug, Default)]
struct Queue {
    /// Each with an address: the receiver's or the sender's.
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    bytes: usize,
}

/// A queue of datagrams in one direction. A clone is the same queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Way(Arc<Mutex<Queue>>);

impl Way {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False if the other side has too much already.
    pub(super) fn push(&self, address: SocketAddr, datagram: &[u8]) -> bool {
        let mut queue = self.queue();
        let fits = queue.bytes + datagram.len() <= MAX_WAITING_BYTES;
        if fits {
            queue.bytes += datagram.len();
            queue.datagrams.push_back((address, datagram.to_vec()));
        }
        fits
    }

    pub(super) fn pop(&self) -> Option<(SocketAddr, Vec<u8>)> {
        let mut queue = self.queue();
        let (address, datagram) = queue.datagrams.pop_front()?;
        queue.bytes -= datagram.len();
        Some((address, datagram))
    }

    /// Whether the other side is gone and has left nothing.
    pub(super) fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.queue().datagrams.is_empty()
    }
}

/// A port in memory: a local client's, or one on the port of a [`Peer`](super::hosted).
#[derive(Debug)]
pub(super) struct LocalPort {
    pub(super) address: SocketAddr,
    pub(super) clock: Clock,
    /// Each datagram with its sender.
    pub(super) incoming: Way,
    /// Each datagram with its receiver.
    pub(super) outgoing: Way,
}

impl LocalPort {
    /// Passes what waits, up to a bound, to `handle`; true if more may wait.
    pub(super) fn receive(
        &self,
        bound: usize,
        mut handle: impl FnMut(Instant, SocketAddr, &mut [u8]),
    ) -> bool {
        let now = self.clock.now();
        let waiting = std::iter::from_fn(|| self.incoming.pop()).take(bound);
        waiting.map(|(from, mut datagram)| handle(now, from, &mut datagram)).count() == bound
    }

    /// Hands over a batch to the other side. Datagrams that it hasn't read when it ends are lost.
    pub(super) fn send(&self, batch: &Datagrams) {
        for (to, datagram) in batch.iter() {
            // As on a full socket: the connection resends.
            let _fits = self.outgoing.push(to, datagram);
        }
    }
}

#[derive(Debug)]
struct LocalClient {
    address: SocketAddr,
    /// The server's address, as the client knows it.
    server: SocketAddr,
    to_server: Way,
    to_client: Way,
}

/// A server's local clients.
#[derive(Debug, Default)]
pub(super) struct LocalClients {
    clients: Vec<LocalClient>,
    connected: u16,
    counters: LocalCounters,
}

impl LocalClients {
    /// Makes the port of one more client of the server at this address.
    pub(super) fn connect(&mut self, server: SocketAddr, clock: Clock) -> LocalPort {
        let [a, b, c, d] = NETWORK;
        let at = |port| SocketAddr::new(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 1).into(), port);
        let is_taken = |port| self.clients.iter().any(|client| client.address == at(port));
        let ports = (0..=u16::MAX).map(|step| self.connected.wrapping_add(step).wrapping_add(1).max(1));
        // A server has fewer than 65,535 clients that are open.
        self.connected = ports.into_iter().find(|port| !is_taken(*port)).unwrap_or(1);
        let address = at(self.connected);
        let (to_server, to_client) = (Way::default(), Way::default());
        let client =
            LocalClient { address, server, to_server: to_server.clone(), to_client: to_client.clone() };
        self.clients.retain(|client| client.address != address);
        self.clients.push(client);
        LocalPort { address, clock, incoming: to_client, outgoing: to_server }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// The counters, if there was ever a local client.
    pub(super) fn counters(&self) -> Option<LocalCounters> {
        (self.connected > 0).then_some(self.counters)
    }

    /// Whether a datagram from the network has a local client's address.
    pub(super) fn is_forged(&mut self, from: SocketAddr) -> bool {
        let forged = self.connected > 0 && is_local(from);
        self.counters.forged += u64::from(forged);
        forged
    }

    /// Passes what local clients sent, up to a bound, to `handle`; true if more may wait.
    pub(super) fn take(&mut self, bound: usize, mut handle: impl FnMut(SocketAddr, &mut [u8])) -> bool {
        let mut taken = 0;
        for client in &self.clients {
            while taken < bound
                && let Some((_, mut datagram)) = client.to_server.pop()
            {
                taken += 1;
                handle(client.address, &mut datagram);
            }
        }
        self.clients.retain(|client| !client.to_server.is_over());
        taken == bound
    }

    /// Hands over the datagrams of a batch that go to local clients, and drops those for clients that are gone: none may
    /// reach the network. The others stay, in order.
    pub(super) fn send(&mut self, batch: &mut Datagrams) {
        if self.connected == 0 {
            return;
        }
        batch.divert(is_local, |to, datagram, _| {
            if let Some(client) = self.clients.iter().find(|client| client.address == to) {
                self.counters.overflowed += u64::from(!client.to_client.push(client.server, datagram));
            }
        });
    }
}

/// Whether an address stands for a local client.
pub(super) fn is_local(address: SocketAddr) -> bool {
    let IpAddr::V6(ip) = address.ip() else { return false };
    ip.segments()[..4] == NETWORK
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(clients: &mut LocalClients, bound: usize) -> (Vec<Vec<u8>>, bool) {
        let mut all = Vec::new();
        let more = clients.take(bound, |_, datagram| all.push(datagram.to_vec()));
        (all, more)
    }

    #[test]
    fn both_directions_keep_their_order_and_a_client_that_is_gone_is_forgotten() {
        let server: SocketAddr = "127.0.0.1:5".parse().unwrap();
        let mut clients = LocalClients::default();
        assert_eq!(clients.counters(), None);
        let port = clients.connect(server, Clock::System(std::time::Instant::now()));
        let mut out = Datagrams::new();
        (0..3u8).for_each(|byte| out.push(server, &[byte]));
        port.send(&out);
        assert_eq!(taken(&mut clients, 2), (vec![vec![0], vec![1]], true));
        assert_eq!(taken(&mut clients, 2), (vec![vec![2]], false));
        out.push(port.address, b"answer");
        clients.send(&mut out);
        assert_eq!(out.len(), 3);
        let mut seen = Vec::new();
        assert!(!port.receive(2, |_, from, datagram| seen.push((from, datagram.to_vec()))));
        assert_eq!(seen, [(server, b"answer".to_vec())]);
        port.send(&out);
        let address = port.address;
        drop(port);
        // What it sent before still comes.
        assert_eq!(taken(&mut clients, 9).0.len(), 3);
        assert!(clients.is_empty());
        out.clear();
        out.push(address, b"too late");
        clients.send(&mut out);
        assert!(out.is_empty(), "it must not reach the network");
        assert!(clients.is_forged(address));
    }

    #[test]
    fn a_side_that_takes_nothing_costs_bounded_memory_and_nobody_passes_for_a_local_client() {
        let mut clients = LocalClients::default();
        let clock = Clock::System(std::time::Instant::now());
        let port = clients.connect("127.0.0.1:5".parse().unwrap(), clock);
        let mut out = Datagrams::new();
        (0..4_000).for_each(|_| out.push(port.address, &[0; 1_200]));
        clients.send(&mut out);
        assert!(out.is_empty());
        let overflowed = 4_000 - (MAX_WAITING_BYTES / 1_200) as u64;
        assert!(clients.is_forged(port.address) && !clients.is_forged("[::1]:1".parse().unwrap()));
        assert_eq!(clients.counters(), Some(LocalCounters { forged: 1, overflowed }));
    }
}
