//! A virtual network shared by the endpoints of one process, with a virtual clock: time passes only in
//! [`SimulatedNetwork::advance`]. The same seed and the same calls give the same bytes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::netsim::{Conditions, ConditionsError, Network};
use crate::rng::{Entropy, Rng};
use crate::time::{Instant, UnixSeconds};

/// The wall clock when virtual time begins: 2023-11-14, a time as good as any, and always the same.
const EPOCH: u64 = 1_700_000_000;

/// A handle to a shared virtual network. Clones are the same network.
#[derive(Clone, Debug)]
pub struct SimulatedNetwork {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    network: Network,
    entropy: Rng,
}

impl SimulatedNetwork {
    /// A network without hosts, at virtual time zero.
    ///
    /// # Errors
    /// When the conditions can't be met.
    pub fn new(conditions: Conditions, seed: u64) -> Result<Self, ConditionsError> {
        let network = Network::new(conditions, seed)?;
        // Keys must not follow the luck of the links.
        let entropy = Rng::seeded(!seed);
        Ok(SimulatedNetwork { shared: Arc::new(Mutex::new(Shared { network, entropy })) })
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.network(|network| network.now())
    }

    /// The virtual wall clock.
    pub fn unix(&self) -> UnixSeconds {
        UnixSeconds(EPOCH + self.now().as_nanos() / 1_000_000_000)
    }

    /// Lets time pass, and datagrams arrive.
    pub fn advance(&self, time: Duration) {
        self.network(|network| network.advance(network.now() + time));
    }

    /// Works on the network.
    pub fn network<R>(&self, work: impl FnOnce(&mut Network) -> R) -> R {
        work(&mut self.lock().network)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic elsewhere leaves a network that is no worse than a bad one.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entropy for SimulatedNetwork {
    fn fill(&mut self, out: &mut [u8]) {
        self.lock().entropy.fill(out);
    }
}
