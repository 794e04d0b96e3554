//! A NAT between hosts and the internet, which gives them its own address: as home routers and carriers do it, with
//! the names of RFC 3489 and the timers of RFC 4787.
//!
//! Promises: its memory is bounded, and mappings expire after their lifetime without use. Only outgoing datagrams
//! keep them alive.

use core::net::{IpAddr, SocketAddr};
use std::collections::HashMap;

use crate::time::{Duration, Instant};

/// The ports that a NAT assigns, in turn: all but the well-known ones.
const FIRST_PORT: u16 = 1024;

/// How many these are.
const PORTS: usize = (u16::MAX - FIRST_PORT) as usize + 1;

/// Peers that one mapping lets in; the one unused for longest makes room.
const MAX_PEERS: usize = 4096;

/// Which datagrams a NAT lets in, and when it assigns another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatKind {
    /// A port for each inside address; anybody who sends to it gets in.
    FullCone,
    /// A port for each inside address; hosts get in to which it has sent, from any of their ports.
    Restricted,
    /// A port for each inside address; addresses get in to which it has sent.
    PortRestricted,
    /// A port for each inside address and each address it sends to, which alone gets in.
    Symmetric,
}

impl NatKind {
    /// The kinds with their names for people.
    pub const NAMED: [(&'static str, NatKind); 4] = [
        ("full-cone", NatKind::FullCone),
        ("restricted", NatKind::Restricted),
        ("port-restricted", NatKind::PortRestricted),
        ("symmetric", NatKind::Symmetric),
    ];
}

/// Why a datagram from outside doesn't get in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NatRefusal {
    /// The port has no mapping, or no longer.
    Unmapped,
    /// The port belongs to a host that did not ask for it.
    Filtered,
}

/// A port of the NAT, and its owner.
#[derive(Clone, Debug)]
struct Mapping {
    inside: SocketAddr,
    /// The only address it is for, of a symmetric box.
    remote: Option<SocketAddr>,
    used: Instant,
    /// The peers that get in, and when something was last sent there.
    peers: HashMap<SocketAddr, Instant>,
}

/// A box that translates addresses.
#[derive(Clone, Debug)]
pub(super) struct Nat {
    kind: NatKind,
    lifetime: Duration,
    public: IpAddr,
    /// Those inside reach each other by the public address.
    pub(super) hairpin: bool,
    next_port: u16,
    mappings: HashMap<u16, Mapping>,
    ports: HashMap<(SocketAddr, Option<SocketAddr>), u16>,
    /// At this many mappings expired ones are removed.
    sweep_at: usize,
}

impl Nat {
    pub(super) fn new(public: IpAddr, kind: NatKind, lifetime: Duration) -> Self {
        Nat {
            kind,
            lifetime,
            public,
            hairpin: true,
            next_port: FIRST_PORT,
            mappings: HashMap::new(),
            ports: HashMap::new(),
            sweep_at: 64,
        }
    }

    /// The public sender address of a datagram; None if no port is free.
    pub(super) fn outgoing(
        &mut self,
        now: Instant,
        inside: SocketAddr,
        remote: SocketAddr,
    ) -> Option<SocketAddr> {
        let only = (self.kind == NatKind::Symmetric).then_some(remote);
        let port = match self.ports.get(&(inside, only)) {
            Some(port) if self.is_live(now, *port) => *port,
            _ => self.map(now, inside, only)?,
        };
        let (peer, lifetime) = (self.peer(remote), self.lifetime);
        let mapping = self.mappings.get_mut(&port)?;
        mapping.used = now;
        if let Some(peer) = peer {
            if mapping.peers.len() >= MAX_PEERS && !mapping.peers.contains_key(&peer) {
                mapping.forget_peers(now, lifetime);
            }
            mapping.peers.insert(peer, now);
        }
        Some(SocketAddr::new(self.public, port))
    }

    /// The host that a datagram to a port of the NAT is for.
    pub(super) fn incoming(
        &self,
        now: Instant,
        remote: SocketAddr,
        port: u16,
    ) -> Result<SocketAddr, NatRefusal> {
        let mapping = self.live(now, port).ok_or(NatRefusal::Unmapped)?;
        let allowed = self
            .peer(remote)
            .is_none_or(|peer| mapping.peers.get(&peer).is_some_and(|used| now.since(*used) < self.lifetime));
        if allowed { Ok(mapping.inside) } else { Err(NatRefusal::Filtered) }
    }

    /// The owner of a port; others may send to it.
    pub(super) fn owner(&self, now: Instant, port: u16) -> Option<SocketAddr> {
        self.live(now, port).map(|mapping| mapping.inside)
    }

    /// Forgets all mappings; the next ones are others.
    pub(super) fn restart(&mut self) {
        self.mappings.clear();
        self.ports.clear();
    }

    /// The peer's key; None if the kind doesn't distinguish peers.
    fn peer(&self, remote: SocketAddr) -> Option<SocketAddr> {
        match self.kind {
            NatKind::FullCone => None,
            NatKind::Restricted => Some(SocketAddr::new(remote.ip(), 0)),
            NatKind::PortRestricted | NatKind::Symmetric => Some(remote),
        }
    }

    fn live(&self, now: Instant, port: u16) -> Option<&Mapping> {
        self.mappings.get(&port).filter(|mapping| now.since(mapping.used) < self.lifetime)
    }

    fn is_live(&self, now: Instant, port: u16) -> bool {
        self.live(now, port).is_some()
    }

    fn map(&mut self, now: Instant, inside: SocketAddr, remote: Option<SocketAddr>) -> Option<u16> {
        if self.mappings.len() >= self.sweep_at {
            let lifetime = self.lifetime;
            self.mappings.retain(|_, mapping| now.since(mapping.used) < lifetime);
            self.ports.retain(|_, port| self.mappings.contains_key(port));
            self.sweep_at = (2 * self.mappings.len()).clamp(64, PORTS);
        }
        let ports = (self.next_port..=u16::MAX).chain(FIRST_PORT..self.next_port);
        let port = { ports }.find(|port| !self.is_live(now, *port))?;
        self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
        let mapping = Mapping { inside, remote, used: now, peers: HashMap::new() };
        if let Some(old) = self.mappings.insert(port, mapping)
            && self.ports.get(&(old.inside, old.remote)) == Some(&port)
        {
            self.ports.remove(&(old.inside, old.remote));
        }
        self.ports.insert((inside, remote), port);
        Some(port)
    }
}

impl Mapping {
    /// Removes expired peers, or the one closest to expiry.
    fn forget_peers(&mut self, now: Instant, lifetime: Duration) {
        self.peers.retain(|_, used| now.since(*used) < lifetime);
        let oldest = self.peers.iter().map(|(peer, used)| (*used, *peer)).min();
        if let Some((_, peer)) = oldest.filter(|_| self.peers.len() >= MAX_PEERS) {
            self.peers.remove(&peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(30);

    fn inside(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 2], port))
    }

    fn remote(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([198, 51, 100, host], port))
    }

    fn nat(kind: NatKind) -> Nat {
        Nat::new(IpAddr::from([203, 0, 113, 1]), kind, LIFETIME)
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(1000 * seconds)
    }

    #[test]
    fn each_kind_lets_in_whom_it_should() {
        // Sent to 1:1; who gets in of 1:1, another port of that host, and another host.
        let cases = [
            (NatKind::FullCone, [true, true, true]),
            (NatKind::Restricted, [true, true, false]),
            (NatKind::PortRestricted, [true, false, false]),
            (NatKind::Symmetric, [true, false, false]),
        ];
        for (kind, expected) in cases {
            let mut nat = nat(kind);
            let seen = nat.outgoing(at(0), inside(5), remote(1, 1)).unwrap();
            let peers = [remote(1, 1), remote(1, 2), remote(2, 1)];
            let lets_in = peers.map(|peer| nat.incoming(at(1), peer, seen.port()) == Ok(inside(5)));
            assert_eq!(lets_in, expected, "{kind:?}");
            assert_eq!(nat.incoming(at(1), remote(1, 1), seen.port() + 1), Err(NatRefusal::Unmapped));
        }
    }

    #[test]
    fn only_a_symmetric_box_takes_a_port_for_each_peer() {
        for (_, kind) in NatKind::NAMED {
            let mut nat = nat(kind);
            let first = nat.outgoing(at(0), inside(5), remote(1, 1)).unwrap();
            let second = nat.outgoing(at(0), inside(5), remote(2, 1)).unwrap();
            assert_eq!(first == second, kind != NatKind::Symmetric, "{kind:?}");
            assert_eq!(nat.outgoing(at(1), inside(5), remote(1, 1)), Some(first));
            assert_ne!(nat.outgoing(at(1), inside(6), remote(1, 1)), Some(first));
        }
    }

    #[test]
    fn a_mapping_lives_while_something_goes_out() {
        let mut nat = nat(NatKind::PortRestricted);
        let first = nat.outgoing(at(0), inside(5), remote(1, 1)).unwrap();
        assert_eq!(nat.outgoing(at(29), inside(5), remote(2, 1)), Some(first));
        assert_eq!(
            nat.incoming(at(30), remote(1, 1), first.port()),
            Err(NatRefusal::Filtered),
            "only that peer"
        );
        assert_eq!(nat.incoming(at(58), remote(2, 1), first.port()), Ok(inside(5)));
        assert_eq!(nat.owner(at(58), first.port()), Some(inside(5)));
        assert_eq!(nat.incoming(at(59), remote(2, 1), first.port()), Err(NatRefusal::Unmapped));
        assert_ne!(nat.outgoing(at(59), inside(5), remote(2, 1)), Some(first), "the next is another");
    }

    #[test]
    fn a_restart_forgets_all() {
        let mut nat = nat(NatKind::FullCone);
        let first = nat.outgoing(at(0), inside(5), remote(1, 1)).unwrap();
        nat.restart();
        assert_eq!(nat.incoming(at(1), remote(1, 1), first.port()), Err(NatRefusal::Unmapped));
        assert_ne!(nat.outgoing(at(1), inside(5), remote(1, 1)), Some(first));
    }

    #[test]
    fn a_box_has_as_many_ports_as_there_are_and_takes_old_ones_again() {
        let mut nat = nat(NatKind::Symmetric);
        let ports = PORTS as u32;
        let peer = |n: u32| remote((n >> 16) as u8, n as u16);
        assert!((0..ports).all(|n| nat.outgoing(at(0), inside(5), peer(n)).is_some()));
        assert_eq!(nat.outgoing(at(29), inside(5), peer(ports)), None);
        assert!(nat.outgoing(at(30), inside(5), peer(ports)).is_some());
        assert_eq!((nat.mappings.len(), nat.ports.len()), (1, 1), "the others are forgotten");
    }

    #[test]
    fn peers_are_bounded() {
        let mut nat = nat(NatKind::PortRestricted);
        let peer = |n: usize| remote((n >> 16) as u8, n as u16);
        for n in 0..MAX_PEERS + 5 {
            nat.outgoing(Instant::from_millis(n as u64), inside(5), peer(n)).unwrap();
        }
        let mapping = nat.mappings.values().next().unwrap();
        assert_eq!(mapping.peers.len(), MAX_PEERS);
        let now = Instant::from_millis(MAX_PEERS as u64 + 5);
        assert_eq!(nat.incoming(now, peer(4), FIRST_PORT), Err(NatRefusal::Filtered));
        assert_eq!(nat.incoming(now, peer(5), FIRST_PORT), Ok(inside(5)));
    }
}
