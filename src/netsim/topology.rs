//! Which hosts reach each other: NATs and partitions.

use core::net::{IpAddr, SocketAddr};
use std::collections::HashMap;

use super::nat::{Nat, NatKind, NatRefusal};
use crate::time::{Duration, Instant};

/// The longest lifetime of a mapping: an hour.
const MAX_LIFETIME: Duration = Duration::from_secs(3600);

/// Why a NAT can't be placed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NatError {
    /// There is a host, a box, or something inside one.
    AddressInUse(IpAddr),
    /// A mapping that would be over at once, or after more than an hour.
    Lifetime(Duration),
}

impl core::fmt::Display for NatError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            NatError::AddressInUse(ip) => write!(f, "{ip} is in use on this network"),
            NatError::Lifetime(lifetime) => {
                write!(f, "lifetime must be above 0 and at most 3600 seconds, not {}", lifetime.as_secs_f64())
            }
        }
    }
}

impl core::error::Error for NatError {}

/// The route of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Seen to come from `from`. It takes the link to `host`, the receiver as known now.
    Link { from: SocketAddr, host: SocketAddr },
    /// A partition is in between.
    Cut,
    /// The sender's box has no port left.
    Exhausted,
}

/// The destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Host(SocketAddr),
    Refused(NatRefusal),
    /// An address without meaning here: it is inside another network.
    Nowhere,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    /// By their public address.
    nats: HashMap<IpAddr, Nat>,
    /// From those inside to the public address of their box.
    behind: HashMap<IpAddr, IpAddr>,
    /// While there is a partition: in which part a host is.
    parts: HashMap<SocketAddr, usize>,
}

impl Topology {
    /// Puts a box between the hosts with the addresses `inside` and all others.
    pub(super) fn add_nat(
        &mut self,
        public: IpAddr,
        inside: &[IpAddr],
        kind: NatKind,
        lifetime: Duration,
    ) -> Result<(), NatError> {
        if lifetime.is_zero() || lifetime > MAX_LIFETIME {
            return Err(NatError::Lifetime(lifetime));
        }
        let taken = |ip: &IpAddr| self.is_box(*ip) || self.behind.contains_key(ip);
        if let Some(ip) = inside.iter().chain([&public]).find(|ip| taken(ip)) {
            return Err(NatError::AddressInUse(*ip));
        }
        if inside.contains(&public) {
            return Err(NatError::AddressInUse(public));
        }
        self.nats.insert(public, Nat::new(public, kind, lifetime));
        self.behind.extend(inside.iter().map(|ip| (*ip, public)));
        Ok(())
    }

    pub(super) fn is_box(&self, ip: IpAddr) -> bool {
        self.nats.contains_key(&ip)
    }

    /// False when there is no such box.
    pub(super) fn restart_nat(&mut self, public: IpAddr) -> bool {
        self.nats.get_mut(&public).map(Nat::restart).is_some()
    }

    /// Hosts of different parts don't reach each other; those in none reach all. The last partition holds.
    pub(super) fn partition(&mut self, parts: &[Vec<SocketAddr>]) {
        let numbered = parts.iter().enumerate();
        self.parts = numbered.flat_map(|(part, hosts)| hosts.iter().map(move |host| (*host, part))).collect();
    }

    /// A host keeps its part when it moves.
    pub(super) fn move_host(&mut self, from: SocketAddr, to: SocketAddr) {
        if let Some(part) = self.parts.remove(&from) {
            self.parts.insert(to, part);
        }
    }

    pub(super) fn route(&mut self, now: Instant, from: SocketAddr, to: SocketAddr) -> Route {
        let public = self.behind.get(&from.ip()).copied();
        let host = self.nats.get(&to.ip()).and_then(|nat| nat.owner(now, to.port())).unwrap_or(to);
        if let (Some(one), Some(other)) = (self.parts.get(&from), self.parts.get(&host))
            && one != other
        {
            return Route::Cut;
        }
        // Within the NAT's own network, addresses are used unchanged.
        let leaves = public.filter(|public| self.behind.get(&to.ip()) != Some(public));
        let Some(nat) = leaves.and_then(|public| self.nats.get_mut(&public)) else {
            return Route::Link { from, host };
        };
        nat.outgoing(now, from, to).map_or(Route::Exhausted, |seen| Route::Link { from: seen, host })
    }

    /// Whether those behind a box reach each other by its public address. False when there is no such box.
    pub(super) fn set_hairpin(&mut self, public: IpAddr, on: bool) -> bool {
        self.nats.get_mut(&public).map(|nat| nat.hairpin = on).is_some()
    }

    pub(super) fn arrive(&self, now: Instant, from: SocketAddr, to: SocketAddr) -> Arrival {
        if let Some(nat) = self.nats.get(&to.ip()) {
            if from.ip() == to.ip() && !nat.hairpin {
                return Arrival::Refused(NatRefusal::Filtered);
            }
            return nat.incoming(now, from, to.port()).map_or_else(Arrival::Refused, Arrival::Host);
        }
        match self.behind.get(&to.ip()) {
            Some(public) if self.behind.get(&from.ip()) != Some(public) => Arrival::Nowhere,
            _ => Arrival::Host(to),
        }
    }
}
