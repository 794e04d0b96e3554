//! Rendezvous servers and relays on real ports, and a peer's half of a rendezvous on its game's port.
//!
//! Promises: a turn reads a bounded number of datagrams and survives a bad one; the socket's counters are reported
//! beside the service's.

mod places;
mod services;

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

pub use places::Meetings;
pub use services::{Counted, Lookout};

use super::polled::Driver;
use super::simulated::{VirtualNetwork, entropy};
use super::threaded::{Poller, Service, Shared};
use super::udp::UdpConfig;
use crate::rendezvous::{RelayServer, RelayServerConfig, RendezvousServer, RendezvousServerConfig};
use services::MeetingService;

/// A rendezvous service or relay on a thread. Dropping it ends the thread.
pub struct Meeting<S: Counted> {
    address: SocketAddr,
    shared: Shared<MeetingService<S>>,
    /// The counters when it was closed.
    last: Mutex<Option<Vec<(&'static str, u64)>>>,
}

impl<S: Counted> Meeting<S> {
    fn start(driver: Driver, service: S) -> io::Result<Self> {
        let address = driver.local_address();
        let poller = driver.socket().map(|socket| socket.handle().and_then(Poller::new)).transpose()?;
        let shared = Shared::new(MeetingService::new(driver, service), poller)?;
        Ok(Meeting { address, shared, last: Mutex::new(None) })
    }

    /// The address that datagrams are sent to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything counted since the start; once closed, the last counts.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.unwrap_or_else(|| self.shared.lock().map_or_else(|_| Vec::new(), |service| service.counters()))
    }

    /// Whether it was closed, or its thread panicked.
    pub fn is_closed(&self) -> bool {
        self.shared.lock().map_or(true, |service| service.is_closed())
    }

    /// Answers the waiting datagrams, if there is no thread.
    pub fn pump(&self) {
        if !self.shared.is_threaded()
            && let Ok(mut service) = self.shared.lock()
        {
            let _again = service.turn();
        }
    }

    /// Ends it; later calls do nothing.
    pub fn close(&self) {
        let counters = self.counters();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(counters);
        self.shared.close();
    }
}

fn open(address: SocketAddr, network: Option<&VirtualNetwork>) -> io::Result<Driver> {
    match network {
        Some(network) => Driver::simulated(network.clone(), address),
        None => Driver::udp(address, UdpConfig::default()),
    }
}

/// The addresses of a local port, as others in its network see them.
pub fn own_addresses(local: SocketAddr, server: SocketAddr) -> Vec<SocketAddr> {
    if !local.ip().is_unspecified() {
        return vec![local];
    }
    // Sends nothing: the system picks the address it would send from.
    let socket = std::net::UdpSocket::bind(SocketAddr::new(local.ip(), 0));
    let own = socket.and_then(|socket| socket.connect(server).and_then(|()| socket.local_addr()));
    own.map(|own| SocketAddr::new(own.ip(), local.port())).into_iter().collect()
}

/// A rendezvous server on a port, with its second port if it has one.
///
/// # Errors
/// When an address can't be bound or the system has no thread to spare; errno is kept.
pub fn rendezvous(
    address: SocketAddr,
    second_port: Option<u16>,
    config: RendezvousServerConfig,
    network: Option<VirtualNetwork>,
) -> io::Result<(Meeting<RendezvousServer>, Option<Meeting<Lookout>>)> {
    let driver = open(address, network.as_ref())?;
    let at = driver.local_address();
    let lookout = second_port.map(|port| {
        let driver = open(SocketAddr::new(at.ip(), port), network.as_ref())?;
        Meeting::start(driver, Lookout::default())
    });
    let lookout = lookout.transpose()?;
    let second_port = lookout.as_ref().map_or(0, |lookout| lookout.address().port());
    let config = RendezvousServerConfig { second_port, ..config };
    let server = RendezvousServer::new(config, &mut *entropy(network));
    Ok((Meeting::start(driver, server)?, lookout))
}

/// A relay on a port.
///
/// # Errors
/// Those of [`rendezvous`].
pub fn relay(
    address: SocketAddr,
    config: RelayServerConfig,
    network: Option<VirtualNetwork>,
) -> io::Result<Meeting<RelayServer>> {
    let driver = open(address, network.as_ref())?;
    Meeting::start(driver, RelayServer::new(config, &mut *entropy(network)))
}
