//! A port's part in a rendezvous, the same for servers, clients and peers: registering a game, and dialling a code.

use core::hash::{Hash, Hasher};

use crate::python::prelude::*;

use crate::driver::meeting::own_addresses;
use crate::rendezvous::{
    GameInfo, LobbyCode, MAX_TITLE_BYTES, RendezvousClient, is_title, lobby_address, lobby_code,
};
use crate::rng::Entropy;

#[pyclass(frozen, eq, hash, module = "tickwire.peers")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    code: LobbyCode,
    rendezvous: SocketAddr,
}

impl Hash for Code {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.code, self.rendezvous).hash(state);
    }
}

#[pymethods]
impl Code {
    #[new]
    fn new(code: &Object<'_>, rendezvous: Address) -> PyResult<Self> {
        Ok(Code { code: parse(code, "code")?, rendezvous: sendable(rendezvous.0, "rendezvous")? })
    }

    properties! {
        code: String = self.code.to_string();
        rendezvous: Address = Address(self.rendezvous);
        __str__: String = self.code.to_string();
        __repr__: String = format!("Code('{}', rendezvous='{}')", self.code, self.rendezvous);
    }
}

/// Where a client dials: an address, or a code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination {
    /// For a code, the address that stands for it.
    pub(super) address: SocketAddr,
    pub(super) rendezvous: Option<SocketAddr>,
}

impl Destination {
    /// The address whose family the client's own must have.
    pub(super) fn near(&self) -> SocketAddr {
        self.rendezvous.unwrap_or(self.address)
    }
}

impl<'py> FromPyObject<'_, 'py> for Destination {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(code) = object.cast::<Code>() {
            let Code { code, rendezvous } = *code.get();
            return Ok(Destination { address: lobby_address(code), rendezvous: Some(rendezvous) });
        }
        let Address(address) = object.extract()?;
        Ok(Destination { address, rendezvous: None })
    }
}

/// The address that stands for a code, as a caller passes the code.
pub(super) fn code_address(code: &Object<'_>, name: &'static str) -> PyResult<SocketAddr> {
    parse(code, name).map(lobby_address)
}

fn parse(code: &Object<'_>, name: &'static str) -> PyResult<LobbyCode> {
    argument::<String>(name, code, "a code")?.parse().map_err(value_error)
}

fn sendable(address: SocketAddr, name: &str) -> PyResult<SocketAddr> {
    if address.port() == 0 || address.ip().is_unspecified() {
        return Err(value_error(format!(
            "{name} must be the address of a rendezvous server with its port, not {address}"
        )));
    }
    Ok(address)
}

#[record(checked, module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct Rendezvous {
    address: Option<Address>,
    title: String,
    #[truth]
    pub(in crate::python) relaying: bool,
}

impl Rendezvous {
    fn check(&self, _: Python<'_>) -> PyResult<()> {
        let title = &self.title;
        if !is_title(title) {
            refuse!(
                PyValueError,
                "title must be up to {MAX_TITLE_BYTES} bytes in UTF-8 without characters that control lines or direction, not {title:?}"
            );
        }
        match self.address {
            Some(server) => sendable(server.0, "address").map(drop),
            None if title.is_empty() => Ok(()),
            None => Err(value_error("title must be '' without the address of a rendezvous server")),
        }
    }

    /// The rendezvous server.
    pub(super) fn server(&self) -> Option<SocketAddr> {
        self.address.map(|address| address.0)
    }

    /// Registers a game on this port, with its players at present and its maximum; 0: no limit.
    pub(super) fn register(
        &self,
        driver: &mut Driver,
        entropy: &mut dyn Entropy,
        protocol_id: u64,
        (players, max_players): (u8, u8),
    ) {
        let Some(server) = self.server() else { return };
        let mut client = client(driver, entropy, server, protocol_id);
        let (title, listed) = (self.title.clone(), !self.title.is_empty());
        client.register(driver.now(), GameInfo { title, protocol_id, players, max_players, listed });
        driver.set_rendezvous(client);
    }
}

/// Has a client's port look up codes at a rendezvous server.
pub(super) fn look_up(driver: &mut Driver, entropy: &mut dyn Entropy, server: SocketAddr, protocol_id: u64) {
    let client = client(driver, entropy, server, protocol_id);
    driver.set_rendezvous(client);
}

fn client(
    driver: &Driver,
    entropy: &mut dyn Entropy,
    server: SocketAddr,
    protocol_id: u64,
) -> RendezvousClient {
    let inside = own_addresses(driver.local_address(), server);
    let mut client = RendezvousClient::new(server, inside, entropy);
    client.dial_codes(protocol_id);
    client
}

/// The code of the game on a port, once there is one.
pub(super) fn code(port: &Shared<State>) -> PyResult<Option<String>> {
    of_port(port, |client| client.code().map(|code| code.to_string()))
}

/// Why that game has no code, or may lose it.
pub(super) fn code_error(port: &Shared<State>) -> PyResult<Option<String>> {
    of_port(port, |client| client.fault().map(|fault| fault.to_string()))
}

fn of_port<T>(
    port: &Shared<State>,
    ask: impl FnOnce(&mut RendezvousClient) -> Option<T>,
) -> PyResult<Option<T>> {
    let mut state = port.lock()?;
    Ok(state.carrier.parts().and_then(|(_, driver)| ask(driver.rendezvous()?)))
}

/// Names an address in texts: the code that it stands for, or the address itself.
pub(super) fn described(address: SocketAddr) -> String {
    lobby_code(address).map_or_else(|| address.to_string(), |code| format!("code {code}"))
}
