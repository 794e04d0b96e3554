//! A virtual network that many drivers of one process share, with its virtual clock and its own seeded
//! randomness: the same seed and the same calls give the same bytes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::entropy::Replayed;
use crate::netsim::conditions::{Conditions, ConditionsError};
use crate::netsim::network::{Network, NetworkCounters};
use crate::rng::{Entropy, Rng};
use crate::time::{Duration, Instant, UnixSeconds};

/// The wall clock when virtual time begins: tokens made by the real clock are not expired here.
const EPOCH: UnixSeconds = UnixSeconds(1_000_000_000);

/// Where port 0 begins to pick.
const FIRST_EPHEMERAL_PORT: u16 = 49_152;

/// A network in virtual time. A clone is the same network.
#[derive(Clone, Debug)]
pub struct VirtualNetwork(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    network: Network,
    entropy: Rng,
    /// What a captured endpoint drew.
    recorded: Option<Vec<u8>>,
    epoch: UnixSeconds,
}

impl VirtualNetwork {
    /// A network without hosts, whose links all have these conditions.
    ///
    /// # Errors
    /// When the conditions can't be met.
    pub fn new(conditions: Conditions, seed: u64) -> Result<Self, ConditionsError> {
        let mut entropy = Rng::seeded(seed);
        let network = Network::new(conditions, entropy.next_u64())?;
        let state = State { network, entropy, recorded: None, epoch: EPOCH };
        Ok(VirtualNetwork(Arc::new(Mutex::new(state))))
    }

    /// A perfect network that begins at `epoch` and where a captured endpoint that drew `recorded` lives through the
    /// same once more.
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

    /// What a captured endpoint drew; None on a network that replays none.
    pub fn recorded(&self) -> Option<Replayed> {
        self.state().recorded.clone().map(Replayed::new)
    }

    /// The virtual wall clock at the start.
    pub fn epoch(&self) -> UnixSeconds {
        self.state().epoch
    }

    /// The virtual time.
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

    /// Changes the conditions of all links, of those from `from`, those to `to`, or of the one between them: see
    /// [`Network::set_conditions`].
    ///
    /// # Errors
    /// When they can't be met. The old ones stay then.
    pub fn set_conditions(
        &self,
        from: Option<SocketAddr>,
        to: Option<SocketAddr>,
        conditions: Conditions,
    ) -> Result<(), ConditionsError> {
        self.state().network.set_conditions(from, to, conditions)
    }

    /// As [`set_conditions`](Self::set_conditions) when `at` comes.
    ///
    /// # Errors
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

    /// What became of all datagrams.
    pub fn counters(&self) -> NetworkCounters {
        self.state().network.counters()
    }

    /// Puts a host at `address`, port 0 being any free one, and says where it is.
    pub(super) fn join(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let mut state = self.state();
        if address.port() != 0 {
            return if state.network.add_host(address) {
                Ok(address)
            } else {
                Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{address} is in use on this network")))
            };
        }
        let ip: IpAddr = address.ip();
        (FIRST_EPHEMERAL_PORT..=u16::MAX)
            .map(|port| SocketAddr::new(ip, port))
            .find(|address| state.network.add_host(*address))
            .ok_or_else(|| io::Error::new(io::ErrorKind::AddrInUse, format!("no free port at {ip}")))
    }

    pub(super) fn leave(&self, address: SocketAddr) {
        self.state().network.remove_host(address);
    }

    pub(super) fn send(&self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        self.state().network.send(from, to, datagram);
    }

    pub(super) fn receive(&self, at: SocketAddr) -> Option<(SocketAddr, Vec<u8>)> {
        self.state().network.receive(at)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each call leaves the network whole, also one that panicked elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The network's seeded randomness: secrets repeat with it, which is what a simulation wants.
impl Entropy for VirtualNetwork {
    fn fill(&mut self, out: &mut [u8]) {
        self.state().entropy.fill(out);
    }
}
