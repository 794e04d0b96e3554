//! Random numbers of endpoints: the system's, or fixed ones on a simulated network.

use crate::python::prelude::*;

use crate::driver::OsEntropy;
use crate::rng::Entropy;

/// A random number.
pub(super) fn random(entropy: &mut dyn Entropy) -> u64 {
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// The seed by which a client skips sequence numbers: see
/// [`ConnectionConfig::skip_seed`](crate::transport::ConnectionConfig). None if a capture is replayed,
/// whose peers may ack anything, and on a simulated network, where nobody attacks and other draws must stay
/// as they are.
pub(super) fn skip_seed(network: Option<&VirtualNetwork>) -> Option<u64> {
    match network {
        None => Some(random(&mut OsEntropy)),
        Some(network) => network.recorded().is_none().then_some(1),
    }
}

/// What decides the order of ghosts' network ids. On a simulated network nobody is to be kept from knowing it.
pub(super) fn network_id_key(is_simulated: bool) -> u64 {
    if is_simulated { 1 } else { random(&mut OsEntropy) }
}

/// Another number for each server that ever was; in a simulated network, for each of a time.
pub(super) fn visit_seed(is_simulated: bool, now: Instant) -> u64 {
    if is_simulated { now.as_secs_f64().to_bits() } else { random(&mut OsEntropy) }
}
