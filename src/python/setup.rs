//! How endpoints get a driver and a host.

use crate::python::prelude::*;

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
