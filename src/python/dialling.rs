//! A client before it dials: a port of the family of its servers, and a token that no other client used.

use crate::python::prelude::*;

use super::reconnect::Tokens;
use super::rendezvous;
use super::setup::open_driver;
use crate::driver::bind::dialling_port;
use crate::driver::{ClaimedToken, claim_token};
use crate::endpoint::ReconnectConfig;
use crate::netcode::{self, TokenUse};

/// A client's first dial, and how it dials again.
pub(super) struct FirstDial {
    /// None: tokens come later.
    pub(super) token: Option<netcode::ConnectToken>,
    pub(super) reconnect: Option<(Tokens, ReconnectConfig)>,
    pub(super) is_development: bool,
}

/// Claims a token for this client, before it dials with it.
pub(super) fn claim(network: Option<&VirtualNetwork>, token: &ClaimedToken, using: TokenUse) -> PyResult<()> {
    let is_ours = match network {
        Some(network) => network.claim_token(token, using),
        None => claim_token(token, using),
    };
    if is_ours {
        return Ok(());
    }
    Err(PyValueError::new_err(
        "token must be new, and another client of this process used it: \
         a token makes one connection, so get a new token for each",
    ))
}

/// Opens the port from which a client dials; with a rendezvous, it looks there for the host first.
pub(super) fn open_port(
    py: Python<'_>,
    first: &FirstDial,
    rendezvous: Option<SocketAddr>,
    settings: &Settings<'_>,
    protocol_id: u64,
) -> PyResult<Driver> {
    // A code's own address says nothing about its host's.
    let servers = || first.token.iter().flat_map(|token| &token.addresses).copied().collect();
    let near: Vec<SocketAddr> = rendezvous.map_or_else(servers, |server| vec![server]);
    let given = settings.tuning.get().bind.map(|address| address.0);
    let (bind, other) = dialling_port(given, &near, settings.network.is_some()).map_err(value_error)?;
    let mut driver = match (open_driver(py, bind, settings), other) {
        (Err(_), Some(bind)) => open_driver(py, bind, settings)?,
        (opened, _) => opened?,
    };
    if let Some(server) = rendezvous {
        rendezvous::look_up(&mut driver, &mut *entropy(settings.network.clone()), server, protocol_id);
    }
    Ok(driver)
}
