//! Makes a peer: a host that listens and dials on one port, and its mesh.

use crate::python::prelude::*;

use crate::driver::bind::any_port;
use crate::endpoint::{DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY};
use crate::mesh::{MAX_NAME_BYTES, MAX_PLAYERS, Mesh, MeshConfig};
use crate::netcode;
use crate::python::capture::Secrets;
use crate::python::rendezvous::Rendezvous;
use crate::python::setup::{listen, open_driver};
use crate::rendezvous::MemberRelay;
use crate::session::hosting::Hosting;
use crate::session::{PeerConfig, PeerPart};
use crate::transport;

/// Connections kept free for newcomers, beside those of players.
const GUESTS: usize = 8;

/// The longest silence that may end a link, in seconds.
const MAX_TIMEOUT: u32 = 60;

/// The seconds of silence that end a link, by default.
const TIMEOUT: u32 = 5;

/// A peer's settings beyond those of all endpoints.
pub(super) struct Opening<'a, 'py> {
    pub(super) key: Option<&'a Bound<'py, PyAny>>,
    pub(super) name: &'a str,
    pub(super) places: u8,
    pub(super) late: bool,
    /// An address of a member; None: this is the game's first peer.
    pub(super) contact: Option<SocketAddr>,
    pub(super) rendezvous: &'a Rendezvous,
}

pub(super) fn open(
    py: Python<'_>,
    protocol: Py<Protocol>,
    opening: Opening<'_, '_>,
    mut settings: Settings<'_>,
) -> PyResult<Endpoint> {
    let Opening { key, name, places, late, contact, rendezvous } = opening;
    let relaying = rendezvous.relaying;
    let near = rendezvous.server().or(contact);
    check_protocol(protocol.get())?;
    if name.len() > MAX_NAME_BYTES || name.contains('\0') {
        let bytes = name.len();
        return Err(value_error(format!(
            "name must be 0 to {MAX_NAME_BYTES} bytes in UTF-8 without NUL, not {bytes}"
        )));
    }
    let timeout = settings.tuning.get().timeout.unwrap_or(TIMEOUT);
    if timeout > MAX_TIMEOUT {
        return Err(value_error(format!("timeout must be 1 to {MAX_TIMEOUT} between peers, not {timeout}")));
    }
    let has_key = key.is_some();
    let join_key = key.map_or(Ok(DEVELOPMENT_KEY), extract_key)?;
    let network = settings.network.clone();
    let unbound = any_port(near.is_some_and(|near| near.is_ipv6()), network.is_some());
    let address = settings.tuning.get().bind.map_or(unbound, |bind| bind.0);
    let asked = near.unwrap_or(address).ip();
    if !has_key && network.is_none() && !asked.is_loopback() && !address.ip().is_loopback() {
        let sentence = format!(
            "the peer at {address} has no key: it is in development mode and anyone can join. Give all peers of a game one key"
        );
        warn::<PyUserWarning>(py, sentence)?;
    }
    let capture = settings.debugging.get().capture(py)?;
    let mut driver = open_driver(py, address, &settings)?;
    let address = driver.local_address();
    let mut source = entropy(network);
    let mut own_key = [0; 32];
    source.fill(&mut own_key);
    let slots = MAX_PLAYERS + GUESTS;
    let names = vec![address, DEVELOPMENT_ADDRESS];
    let mut listener = netcode::ServerConfig::new(protocol.get().id, join_key, slots, names);
    listener.second_key = Some(own_key);
    // If two connections have one id, the first stays: nobody takes a player's place by its number.
    listener.replace_duplicates = false;
    // Players' clocks may be wrong.
    listener.clock_skew = Duration::from_secs(3600);
    listener.explains = !has_key;
    listener.spoken = protocol.get().spoken();
    let mut recorded = crate::driver::Recorded::new(&mut *source);
    let host = listen(listener, core_of(protocol.get())?, &mut settings, &mut recorded, driver.unix())?;
    if let Some(capture) = capture {
        let secrets = Secrets::Server { key: &join_key, entropy: recorded.drawn() };
        capture.get().attach(py, &mut driver, &secrets)?;
    }
    let mut dialling = netcode::ClientConfig::new(protocol.get().id);
    dialling.development = !has_key;
    let config = PeerConfig {
        key: join_key,
        netcode: dialling,
        timeout,
        spoken: protocol.get().spoken().map(|spoken| spoken.hash),
        relaying,
    };
    let max_players = if contact.is_none() { places } else { 0 };
    rendezvous.register(&mut driver, &mut *source, protocol.get().id, (1, max_players));
    if relaying {
        driver.set_member_relay(MemberRelay::default());
    }
    let own = Some(address).filter(|address| !address.ip().is_unspecified());
    let of_mesh = MeshConfig {
        name: name.into(),
        key: own_key,
        addresses: own.into_iter().collect(),
        places,
        late,
        timeout: Duration::from_secs(timeout.into()),
    };
    let mesh = match contact {
        None => Mesh::host(of_mesh),
        Some(contact) => Mesh::join(of_mesh, vec![contact]),
    };
    let now = driver.now();
    let mut part = PeerPart::new(mesh, config, source, now, driver.unix());
    if protocol.get().is_hosted() {
        part.set_core(now, Some(Box::new(Hosting::new(Duration::from_secs(timeout.into())))));
    }
    let endpoint = Endpoint::new(py, host, driver, protocol, settings)?;
    endpoint.state.lock()?.carrier.session.set_peers(now, part);
    Ok(endpoint)
}

fn check_protocol(protocol: &Protocol) -> PyResult<()> {
    if protocol.core.peer_channel().is_none() {
        return Err(value_error("protocol must be made with peers=True for a game of peers"));
    }
    Ok(())
}

/// The protocol on the links between players.
fn core_of(protocol: &Protocol) -> PyResult<Arc<transport::Protocol>> {
    if !protocol.is_hosted() {
        return Ok(protocol.core.clone());
    }
    protocol.core.between_players().map(Arc::new).map_err(value_error)
}
