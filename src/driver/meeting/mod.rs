//! A rendezvous server or a relay on a port, and a peer's part in a rendezvous on a port of its own.
//!
//! Promises: a turn reads a bounded number of datagrams and never fails for one of them; what happened at the socket is
//! counted beside what the service counts.

mod services;

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

pub use services::{Counted, Lookout, RelayService, RendezvousService};

use super::polled::Driver;
use super::threaded::{Poller, Shared};
use super::udp::UdpConfig;
use super::entropy::OsEntropy;
use crate::rendezvous::{RelayServer, RelayServerConfig, RendezvousServer, RendezvousServerConfig};
use services::MeetingService;

/// A service of this kind at work on a thread. Dropping it ends it.
pub struct Meeting<S: Counted> {
    address: SocketAddr,
    shared: Shared<MeetingService<S>>,
    /// What was counted when it was closed.
    last: Mutex<Option<Vec<(&'static str, u64)>>>,
}

impl<S: Counted> Meeting<S> {
    fn start(driver: Driver, service: S) -> io::Result<Self> {
        let address = driver.local_address();
        let poller = driver.socket().map(|socket| Poller::new(socket.handle()?)).transpose()?;
        let shared = Shared::new(MeetingService::new(driver, service), poller)?;
        Ok(Meeting { address, shared, last: Mutex::new(None) })
    }

    /// Where datagrams are sent to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything counted since the start; once closed, the last counts.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.unwrap_or_else(|| self.shared.lock().map_or_else(|_| Vec::new(), |service| service.counters()))
    }

    /// Whether it was closed, or fell over.
    pub fn is_closed(&self) -> bool {
        self.shared.lock().map_or(true, |service| service.is_closed())
    }

    /// Ends it. Once is enough.
    pub fn close(&self) {
        let counters = self.counters();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(counters);
        self.shared.close();
    }

    /// For a fork's child, where there is no thread.
    pub fn abandon(&mut self) {
        self.shared.abandon();
    }
}

/// A rendezvous server on a port, with its second one beside it, if it has one.
///
/// # Errors
/// When an address can't be bound or the system has no thread to spare; errno is kept.
pub fn rendezvous(
    address: SocketAddr,
    second_port: Option<u16>,
    config: RendezvousServerConfig,
) -> io::Result<(Meeting<RendezvousService>, Option<Meeting<Lookout>>)> {
    let driver = Driver::udp(address, UdpConfig::default())?;
    let at = driver.local_address();
    let lookout = second_port.map(|port| {
        let driver = Driver::udp(SocketAddr::new(at.ip(), port), UdpConfig::default())?;
        Meeting::start(driver, Lookout::default())
    });
    let lookout = lookout.transpose()?;
    let second_port = lookout.as_ref().map_or(0, |lookout| lookout.address().port());
    let config = RendezvousServerConfig { second_port, ..config };
    let server = RendezvousServer::new(config, &mut OsEntropy);
    Ok((Meeting::start(driver, RendezvousService(server))?, lookout))
}

/// A relay on a port.
///
/// # Errors
/// As [`rendezvous`].
pub fn relay(address: SocketAddr, config: RelayServerConfig) -> io::Result<Meeting<RelayService>> {
    let driver = Driver::udp(address, UdpConfig::default())?;
    Meeting::start(driver, RelayService(RelayServer::new(config, &mut OsEntropy)))
}
