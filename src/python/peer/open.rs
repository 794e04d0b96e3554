//! Makes a peer: a host that listens and dials on one port, and its mesh.

use crate::python::prelude::*;

use crate::driver::bind::any_port;
use crate::python::capture::Secrets;
use crate::python::rendezvous::Rendezvous;
use crate::python::setup::{listen, open_driver};
use crate::rendezvous::MemberRelay;
use crate::session::Opening;
use crate::session::protocol::{between_players, has_peers};
use crate::transport;

/// The settings of a peer beyond those of all endpoints: its name, its places, and an address of a member.
pub(super) fn opening<'a>(
    protocol: &Protocol,
    (name, places, contact): (&'a str, u8, Option<SocketAddr>),
    key: Option<&Object<'_>>,
    rendezvous: &Rendezvous,
) -> PyResult<Opening<'a>> {
    Ok(Opening {
        protocol_id: protocol.id,
        upper_protocol: protocol.upper_protocol(),
        key: key.map(extract_key).transpose()?,
        name,
        places,
        contact,
        timeout: None,
        relaying: rendezvous.relaying,
        is_hosted: protocol.is_hosted(),
    })
}

/// Opens a peer's port. `rendezvous` is where it finds others, besides the opening's contact.
pub(super) fn open(
    py: Python<'_>,
    protocol: Py<Protocol>,
    opening: &Opening<'_>,
    rendezvous: &Rendezvous,
    mut settings: Settings<'_>,
) -> PyResult<Endpoint> {
    let near = rendezvous.server().or(opening.contact);
    if !has_peers(&protocol.get().core) {
        return Err(value_error("protocol must be made with peers=True for a game of peers"));
    }
    opening.check().map_err(value_error)?;
    let network = settings.network.clone();
    let unbound = any_port(near.is_some_and(|near| near.is_ipv6()), network.is_some());
    let address = settings.tuning.get().bind.map_or(unbound, |bind| bind.0);
    if network.is_none() && opening.is_open(address, near.unwrap_or(address)) {
        let sentence = format!(
            "the peer at {address} has no key: it is in development mode and anyone can join. Give all peers of a game one key"
        );
        warn::<PyUserWarning>(py, sentence)?;
    }
    let capture = settings.debugging.get().capture(py)?;
    let mut driver = open_driver(py, address, &settings)?;
    let address = driver.local_address();
    opening.check_contact(address).map_err(value_error)?;
    let mut source = entropy(network);
    let mut own_key = [0; 32];
    source.fill(&mut own_key);
    let mut recorded = crate::driver::Recorded::new(&mut *source);
    let listener = opening.listener(address, own_key);
    let host = listen(listener, core_of(protocol.get())?, &mut settings, &mut recorded, driver.unix())?;
    if let Some(capture) = capture {
        let secrets = Secrets::Server { key: &opening.join_key(), entropy: recorded.drawn() };
        capture.get().attach(py, &mut driver, &secrets)?;
    }
    let max_players = if opening.contact.is_none() { opening.places } else { 0 };
    rendezvous.register(&mut driver, &mut *source, protocol.get().id, (1, max_players));
    if opening.relaying {
        driver.set_member_relay(MemberRelay::default());
    }
    let now = driver.now();
    let part = opening.part(address, own_key, source, now, driver.unix());
    let endpoint = Endpoint::new(py, host, driver, protocol, settings)?;
    endpoint.state.lock()?.carrier.session.set_peers(now, part);
    Ok(endpoint)
}

/// The protocol on the links between players.
fn core_of(protocol: &Protocol) -> PyResult<Arc<transport::Protocol>> {
    if !protocol.is_hosted() {
        return Ok(protocol.core.clone());
    }
    between_players(&protocol.core).map(Arc::new).map_err(value_error)
}
