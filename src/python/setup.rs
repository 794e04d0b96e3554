//! How endpoints get a driver, a host, and random numbers: the system's, or fixed ones on a simulated network.

use crate::python::prelude::*;

use crate::driver::OsEntropy;
use crate::driver::udp::UdpConfig;
use crate::endpoint::ServerConfig;
use crate::rng::Entropy;
use crate::time::UnixSeconds;
use crate::{netcode, transport};

/// Opens a driver on a socket or on a simulated network, behind a simulated link if there are conditions.
pub(super) fn open_driver(py: Python<'_>, address: SocketAddr, settings: &Settings<'_>) -> PyResult<Driver> {
    let driver = match &settings.network {
        None => Driver::udp(address, UdpConfig::default()),
        Some(network) => Driver::simulated(network.clone(), address),
    };
    let mut driver = driver.map_err(|error| os_error(py, &error, address))?;
    let debugging = settings.debugging.get();
    let seed = debugging.seed.unwrap_or_else(|| random(&mut *entropy(settings.network.clone())));
    if let Some(conditions) = debugging.conditions {
        driver.set_link(conditions.core(), seed).map_err(value_error)?;
    }
    Ok(driver)
}

/// The host of an endpoint that others connect to.
pub(super) fn listen(
    netcode: netcode::ServerConfig,
    protocol: Arc<transport::Protocol>,
    settings: &mut Settings<'_>,
    entropy: &mut dyn Entropy,
    unix: UnixSeconds,
) -> PyResult<Host> {
    let (connection, chunks) = (settings.connection.clone(), settings.arrivals.limits);
    let config = ServerConfig { netcode, connection, chunks };
    let mut host = Host::server(config, protocol, entropy, unix).map_err(value_error)?;
    if let Some(directory) = settings.arrivals.directory.take() {
        host.set_chunk_store(Box::new(directory.per_client()));
    }
    if settings.kind.is_server {
        host.set_stalled_timeout(settings.tuning.get().stalled_timeout());
    }
    Ok(host)
}

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
