//! A virtual network that many drivers of one process share, with its own virtual clock and seeded randomness: the
//! same seed and the same calls give the same bytes.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::entropy::{OsEntropy, Replayed};
use super::used_tokens::{ClaimedToken, UsedTokens};
use crate::netcode::TokenUse;
use crate::netsim::conditions::{Conditions, ConditionsError};
use crate::netsim::nat::NatKind;
use crate::netsim::network::{Network, NetworkCounters};
use crate::netsim::topology::NatError;
use crate::rng::{Entropy, Rng};
use crate::time::{Duration, Instant, UnixSeconds};

/// The wall clock at the start of virtual time: tokens made by the real clock are not expired here.
const EPOCH: UnixSeconds = UnixSeconds(1_000_000_000);

/// Where port 0 begins to pick.
const FIRST_EPHEMERAL_PORT: u16 = 49_152;

/// A network in virtual time. A clone is the same network.
#[derive(Clone, Debug)]
pub struct VirtualNetwork(Arc<Mutex<SimulatedState>>);

#[derive(Debug)]
struct SimulatedState {
    network: Network,
    entropy: Rng,
    /// The addresses of hosts; unplugged hosts have none.
    places: BTreeMap<HostId, SocketAddr>,
    next_host: u64,
    /// The random bytes that a captured endpoint drew.
    recorded: Option<Vec<u8>>,
    epoch: UnixSeconds,
    used_tokens: UsedTokens,
}

/// A host, wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostId(u64);

impl VirtualNetwork {
    /// A network without hosts, whose links all have these conditions.
    ///
    /// # Errors
    /// When the conditions can't be met.
    pub fn new(conditions: Conditions, seed: u64) -> Result<Self, ConditionsError> {
        let mut entropy = Rng::seeded(seed);
        let network = Network::new(conditions, entropy.next_u64())?;
        let state = SimulatedState {
            network,
            entropy,
            places: BTreeMap::new(),
            next_host: 0,
            recorded: None,
            epoch: EPOCH,
            used_tokens: UsedTokens::default(),
        };
        Ok(VirtualNetwork(Arc::new(Mutex::new(state))))
    }

    /// A perfect network that begins at `epoch` and on which a captured endpoint that drew `recorded` runs again.
    pub fn replaying(recorded: Vec<u8>, epoch: UnixSeconds) -> Self {
        let network = Self::new(Conditions::perfect(), 0).expect("nothing is asked of it");
        let mut state = network.state();
        state.recorded = Some(recorded);
        state.epoch = epoch;
        drop(state);
        network
    }

    /// Lets a datagram arrive now, whether or not its sender is a host.
    pub fn deliver(&self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let mut state = self.state();
        let now = state.network.now();
        state.network.send(from, to, datagram);
        state.network.advance(now);
    }

    /// The random bytes of a captured endpoint; None on other networks.
    pub fn recorded(&self) -> Option<Replayed> {
        self.state().recorded.clone().map(Replayed::new)
    }

    /// [`UsedTokens::claim`] for clients on this network.
    pub fn claim_token(&self, token: &ClaimedToken, using: TokenUse) -> bool {
        let mut state = self.state();
        let now = state.network.now();
        state.used_tokens.claim(now, token, using)
    }

    /// The virtual wall clock at the start.
    pub fn epoch(&self) -> UnixSeconds {
        self.state().epoch
    }

    pub fn now(&self) -> Instant {
        self.state().network.now()
    }

    /// The virtual wall clock.
    pub fn unix(&self) -> UnixSeconds {
        UnixSeconds(self.epoch().0 + (self.now() - Instant::ZERO).as_secs())
    }

    /// Lets this much time pass.
    pub fn advance(&self, time: Duration) {
        let mut state = self.state();
        let to = state.network.now() + time;
        state.network.advance(to);
    }

    /// Changes the conditions of all links, of those from `from`, those to `to`, or the one between them: see
    /// [`Network::set_conditions`].
    ///
    /// # Errors
    ///
    /// When they can't be met. The old ones stay then.
    pub fn set_conditions(
        &self,
        from: Option<SocketAddr>,
        to: Option<SocketAddr>,
        conditions: Conditions,
    ) -> Result<(), ConditionsError> {
        self.state().network.set_conditions(from, to, conditions)
    }

    /// Like [`set_conditions`](Self::set_conditions), at the time `at`.
    ///
    /// # Errors
    ///
    /// When the conditions can't be met. Nothing is scheduled then.
    pub fn schedule(
        &self,
        at: Instant,
        from: Option<SocketAddr>,
        to: Option<SocketAddr>,
        conditions: Conditions,
    ) -> Result<(), ConditionsError> {
        self.state().network.schedule(at, from, to, conditions)
    }

    /// Counts of all datagrams.
    pub fn counters(&self) -> NetworkCounters {
        self.state().network.counters()
    }

    /// SHA-256 over every datagram sent until now, with its time and addresses: see [`Network::transcript`].
    pub fn transcript(&self) -> [u8; 32] {
        self.state().network.transcript()
    }

    /// Puts a box that translates addresses before hosts: see [`Network::add_nat`].
    ///
    /// # Errors
    /// When one of the addresses is in use, or there can be no such lifetime.
    pub fn add_nat(
        &self,
        public: IpAddr,
        inside: &[IpAddr],
        kind: NatKind,
        lifetime: Duration,
    ) -> Result<(), NatError> {
        self.state().network.add_nat(public, inside, kind, lifetime)
    }

    /// Makes a NAT forget its mappings. False if there is none.
    pub fn restart_nat(&self, public: IpAddr) -> bool {
        self.state().network.restart_nat(public)
    }

    /// Parts the network: see [`Network::partition`].
    pub fn partition(&self, parts: &[Vec<SocketAddr>]) {
        self.state().network.partition(parts);
    }

    /// Moves a host to another address (port 0 for any free one), and returns it.
    ///
    /// # Errors
    ///
    /// When there is no host at `from`, or `to` is taken.
    pub fn move_host(&self, from: SocketAddr, to: SocketAddr) -> io::Result<SocketAddr> {
        let state = &mut *self.state();
        let Some(place) = state.places.values_mut().find(|place| **place == from) else {
            let error = format!("there is no host at {from} on this network");
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, error));
        };
        *place = pick(to, |to| state.network.move_host(from, to))?;
        Ok(*place)
    }

    /// Takes the host at `address` off the network: it sends and receives nothing any more, and the address is free.
    /// False if there is none.
    pub fn unplug(&self, address: SocketAddr) -> bool {
        let state = &mut *self.state();
        let hosts = state.places.len();
        state.places.retain(|_, place| *place != address);
        state.network.remove_host(address);
        state.places.len() < hosts
    }

    /// Puts a host at `address`, port 0 being any free one.
    pub(super) fn join(&self, address: SocketAddr) -> io::Result<(HostId, SocketAddr)> {
        let state = &mut *self.state();
        let address = pick(address, |address| state.network.add_host(address))?;
        let host = HostId(state.next_host);
        state.next_host += 1;
        state.places.insert(host, address);
        Ok((host, address))
    }

    pub(super) fn leave(&self, host: HostId) {
        let mut state = self.state();
        if let Some(address) = state.places.remove(&host) {
            state.network.remove_host(address);
        }
    }

    pub(super) fn send(&self, host: HostId, to: SocketAddr, datagram: &[u8]) {
        let mut state = self.state();
        if let Some(from) = state.places.get(&host).copied() {
            state.network.send(from, to, datagram);
        }
    }

    pub(super) fn receive(&self, host: HostId) -> Option<(SocketAddr, Vec<u8>)> {
        let mut state = self.state();
        let at = state.places.get(&host).copied()?;
        state.network.receive(at)
    }

    fn state(&self) -> MutexGuard<'_, SimulatedState> {
        // Each call leaves the network consistent, even one that panicked elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address that is taken, port 0 being any free one.
fn pick(address: SocketAddr, mut take: impl FnMut(SocketAddr) -> bool) -> io::Result<SocketAddr> {
    let ports =
        if address.port() == 0 { FIRST_EPHEMERAL_PORT..=u16::MAX } else { address.port()..=address.port() };
    let wanted = { ports }.map(|port| SocketAddr::new(address.ip(), port));
    { wanted }.find(|address| take(*address)).ok_or_else(|| {
        let error = if address.port() == 0 {
            format!("no free port at {} on this network", address.ip())
        } else {
            format!("{address} is in use on this network")
        };
        io::Error::new(io::ErrorKind::AddrInUse, error)
    })
}

/// A simulated network's randomness, or the operating system's.
#[must_use]
pub fn entropy(network: Option<VirtualNetwork>) -> Box<dyn Entropy + Send> {
    match network {
        Some(network) => Box::new(network),
        None => Box::new(OsEntropy),
    }
}

/// The network's seeded randomness: secrets repeat with it, as a simulation needs.
impl Entropy for VirtualNetwork {
    fn fill(&mut self, out: &mut [u8]) {
        self.state().entropy.fill(out);
    }
}
