//! Where a driver's datagrams go out and come in.
//!
//! Promises: addresses are in their usual form on both sides, whatever the socket takes and reports.

use std::io;
use std::net::{IpAddr, SocketAddr};

use super::clock::Clock;
use super::local::LocalPort;
use super::simulated::{HostId, VirtualNetwork};
use super::udp::{UdpConfig, UdpSocket};
use crate::store::Datagrams;
use crate::time::Instant;

/// A real socket, a place on a virtual network, or a port in memory.
#[derive(Debug)]
pub(super) enum Port {
    Udp { socket: Box<UdpSocket>, both_families: bool, started: std::time::Instant },
    Simulated { network: VirtualNetwork, host: HostId, address: SocketAddr },
    Local(LocalPort),
}

impl Port {
    /// A socket bound to `address`. One bound to all IPv6 addresses receives IPv4 too, with plain IPv4 addresses.
    ///
    /// # Errors
    ///
    /// The system's, with errno.
    pub(super) fn udp(address: SocketAddr, config: UdpConfig) -> io::Result<Self> {
        let both_families = address.is_ipv6() && address.ip().is_unspecified();
        let socket = Box::new(UdpSocket::bind(address, UdpConfig { both_families, ..config })?);
        Ok(Port::Udp { socket, both_families, started: std::time::Instant::now() })
    }

    /// A place at `address` of a virtual network.
    ///
    /// # Errors
    /// When the address is in use.
    pub(super) fn simulated(network: VirtualNetwork, address: SocketAddr) -> io::Result<Self> {
        let (host, address) = network.join(address)?;
        Ok(Port::Simulated { network, host, address })
    }

    /// The address bound to.
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Port::Udp { socket, .. } => socket.local_address(),
            Port::Simulated { address, .. } => *address,
            Port::Local(port) => port.address,
        }
    }

    pub(super) fn socket(&self) -> Option<&UdpSocket> {
        if let Port::Udp { socket, .. } = self { Some(socket) } else { None }
    }

    pub(super) fn socket_mut(&mut self) -> Option<&mut UdpSocket> {
        if let Port::Udp { socket, .. } = self { Some(socket) } else { None }
    }

    pub(super) fn now(&self) -> Instant {
        match self {
            Port::Udp { started, .. } => Instant::ZERO + started.elapsed(),
            Port::Simulated { network, .. } => network.now(),
            Port::Local(port) => port.clock.now(),
        }
    }

    pub(super) fn clock(&self) -> Clock {
        match self {
            Port::Udp { started, .. } => Clock::System(*started),
            Port::Simulated { network, .. } => Clock::Virtual(network.clone()),
            Port::Local(port) => port.clock.clone(),
        }
    }

    /// With `one_time`, all datagrams have the time of the first.
    pub(super) fn receive(
        &mut self,
        bound: usize,
        one_time: bool,
        mut handle: impl FnMut(Instant, SocketAddr, &mut [u8]),
    ) -> io::Result<bool> {
        match self {
            Port::Udp { socket, started, .. } => {
                let mut first = None;
                let clock = || {
                    let now = Instant::ZERO + started.elapsed();
                    if one_time { *first.get_or_insert(now) } else { now }
                };
                // Unchanged for a socket of one family only.
                socket
                    .receive_each(bound, clock, |now, from, datagram| handle(now, canonical(from), datagram))
            }
            Port::Simulated { network, host, .. } => {
                let now = network.now();
                let waiting = std::iter::from_fn(|| network.receive(*host)).take(bound);
                let read = waiting.map(|(from, mut datagram)| handle(now, from, &mut datagram)).count();
                Ok(read == bound)
            }
            Port::Local(port) => Ok(port.receive(bound, handle)),
        }
    }

    /// Whatever becomes of a datagram is counted, and no worse than a loss on the way.
    pub(super) fn send(&mut self, batch: &mut Datagrams) {
        match self {
            Port::Udp { socket, both_families, .. } => {
                if *both_families {
                    batch.redirect(mapped);
                }
                socket.send_batch(batch);
            }
            Port::Simulated { network, host, .. } => {
                batch.iter().for_each(|(to, datagram)| network.send(*host, to, datagram));
            }
            Port::Local(port) => port.send(batch),
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if let Port::Simulated { network, host, .. } = self {
            network.leave(*host);
        }
    }
}

/// An address in its usual form: a dual-stack socket reports IPv4 addresses as IPv6 ones.
pub(super) fn canonical(from: SocketAddr) -> SocketAddr {
    match from.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), from.port()),
        // Unchanged, with its scope.
        IpAddr::V6(_) => from,
    }
}

/// An address in the form that a dual-stack socket takes.
fn mapped(to: SocketAddr) -> SocketAddr {
    match to {
        SocketAddr::V4(to) => SocketAddr::new(to.ip().to_ipv6_mapped().into(), to.port()),
        SocketAddr::V6(_) => to,
    }
}
