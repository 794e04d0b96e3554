//! Where an endpoint's datagrams come and go: a UDP socket and the clocks of this machine, or a place on a
//! simulated network and its virtual clock.
//!
//! A port on a socket may have bad conditions of its own: they act on what it sends (so that two ports with
//! conditions make a link that is bad both ways), when the endpoint is ticked.

use std::io;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::driver::simulated::SimulatedNetwork;
use crate::driver::udp::{UdpConfig, UdpSocket};
use crate::netsim::{Conditions, Link};
use crate::rng::Entropy;
use crate::store::Datagrams;
use crate::time::{Instant, UnixSeconds};

/// The first port that a simulated network gives to those who ask for port 0, as real systems do.
const FIRST_EPHEMERAL_PORT: u16 = 49_152;

/// Randomness of the operating system, for keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    /// # Panics
    /// When the system has no randomness to give, which no supported system does once it has booted.
    fn fill(&mut self, out: &mut [u8]) {
        getrandom::fill(out).expect("the operating system gives random bytes");
    }
}

/// An endpoint's connection to a network.
#[derive(Debug)]
pub enum Port {
    /// A socket.
    Udp(Box<UdpPort>),
    /// A place on a simulated network.
    Simulated(SimulatedPort),
}

/// A socket, the clock that began with it, and what it does to what it sends.
#[derive(Debug)]
pub struct UdpPort {
    socket: UdpSocket,
    started: std::time::Instant,
    outgoing: Option<Link<(SocketAddr, Vec<u8>)>>,
}

/// An address on a simulated network.
#[derive(Debug)]
pub struct SimulatedPort {
    network: SimulatedNetwork,
    address: SocketAddr,
}

impl Port {
    /// A socket bound to `address`; with conditions, what it sends is delayed, lost and so on by `seed`.
    ///
    /// # Errors
    /// As the system says it, errno kept. Conditions that can't be met are an invalid input.
    pub fn udp(address: SocketAddr, conditions: Option<(Conditions, u64)>) -> io::Result<Self> {
        let outgoing = conditions.map(|(conditions, seed)| Link::new(conditions, seed)).transpose();
        let outgoing = outgoing.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let socket = UdpSocket::bind(address, UdpConfig::default())?;
        Ok(Port::Udp(Box::new(UdpPort { socket, started: std::time::Instant::now(), outgoing })))
    }

    /// A host on a simulated network.
    ///
    /// # Errors
    /// As a system would say it: the address is in use.
    pub fn simulated(network: SimulatedNetwork, address: SocketAddr) -> io::Result<Self> {
        let mut address = address;
        let taken = network.network(|network| {
            if address.port() == 0 {
                let mut ports = FIRST_EPHEMERAL_PORT..=u16::MAX;
                return !ports.any(|port| {
                    address.set_port(port);
                    network.add_host(address)
                });
            }
            !network.add_host(address)
        });
        if taken {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        Ok(Port::Simulated(SimulatedPort { network, address }))
    }

    /// The time of this port's clock.
    pub fn now(&self) -> Instant {
        match self {
            Port::Udp(port) => port.now(),
            Port::Simulated(port) => port.network.now(),
        }
    }

    /// The wall clock.
    pub fn unix(&self) -> UnixSeconds {
        match self {
            Port::Udp(_) => wall_clock(),
            Port::Simulated(port) => port.network.unix(),
        }
    }

    /// Where the port is: what port 0 became.
    pub fn local_address(&self) -> SocketAddr {
        match self {
            Port::Udp(port) => port.socket.local_address(),
            Port::Simulated(port) => port.address,
        }
    }

    /// The socket, if it is one.
    pub fn socket(&self) -> Option<&UdpSocket> {
        match self {
            Port::Udp(port) => Some(&port.socket),
            Port::Simulated(_) => None,
        }
    }

    /// Appends what has arrived to `out`, as much as one tick should read.
    ///
    /// # Errors
    /// Only what won't pass by itself.
    pub fn receive(&mut self, out: &mut Datagrams) -> io::Result<()> {
        match self {
            Port::Udp(port) => port.socket.receive_batch(out).map(drop),
            Port::Simulated(port) => {
                port.network.network(|network| {
                    while let Some((from, datagram)) = network.receive(port.address) {
                        out.push(from, &datagram);
                    }
                });
                Ok(())
            }
        }
    }

    /// Sends a batch; with conditions, also what is due of earlier ones.
    pub fn send(&mut self, batch: &Datagrams) {
        match self {
            Port::Udp(port) => port.send(batch),
            Port::Simulated(port) => {
                port.network.network(|network| {
                    batch.iter().for_each(|(to, datagram)| network.send(port.address, to, datagram));
                });
            }
        }
    }

    /// Sends a last batch at once, whatever the conditions: nobody will be here to send it later.
    pub fn send_last(&mut self, batch: &Datagrams) {
        if let Port::Udp(port) = self {
            port.send_delayed(Instant::NEVER);
            port.outgoing = None;
        }
        self.send(batch);
    }
}

impl Drop for SimulatedPort {
    fn drop(&mut self) {
        self.network.network(|network| network.remove_host(self.address));
    }
}

impl UdpPort {
    fn now(&self) -> Instant {
        // 584 years of nanoseconds.
        Instant::from_nanos(self.started.elapsed().as_nanos() as u64)
    }

    fn send(&mut self, batch: &Datagrams) {
        let now = self.now();
        match &mut self.outgoing {
            None => self.socket.send_batch(batch),
            Some(link) => {
                batch.iter().for_each(|(to, datagram)| link.send(now, (to, datagram.to_vec())));
                self.send_delayed(now);
            }
        }
    }

    fn send_delayed(&mut self, now: Instant) {
        let Some(link) = &mut self.outgoing else { return };
        while let Some((to, datagram)) = link.poll(now) {
            // What the socket can't send is in its counters.
            let _ = self.socket.send(to, &datagram);
        }
    }
}

/// The wall clock of this machine.
pub fn wall_clock() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}
