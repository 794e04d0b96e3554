//! How players find each other, and reach each other behind NATs.

use core::net::SocketAddr;

use pyo3::prelude::*;

use crate::python::address::{Address, AddressLike};
use crate::python::arguments::truth;
use crate::python::errors::value_error;
use crate::rendezvous::{MAX_TITLE_BYTES, is_title};

/// How players find each other, and reach each other behind NATs.
///
/// Args:
///     address (AddressLike | None, default None): a rendezvous server (:class:`RendezvousServer`): the game gets
///         a :attr:`Peer.code`, by which players behind NATs join; None: players join by address only.
///     title (str, default ''): the game's name in the rendezvous server's list, up to 48 bytes; '': not listed.
///     relaying (bool, default True): whether this player carries for two others who don't reach each other, at
///         up to 128 KiB a second, and may be reached by way of another one itself. False of the host: newcomers
///         who don't reach all players are refused.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, get_all, module = "tickwire.peers")]
#[derive(Debug)]
pub(crate) struct Rendezvous {
    /// The rendezvous server, if one was given.
    address: Option<Address>,
    /// The game's name in the server's list.
    title: String,
    /// Whether this player carries for others.
    pub(super) relaying: bool,
}

#[pymethods]
impl Rendezvous {
    #[new]
    #[pyo3(signature = (address = None, *, title = "", relaying = true))]
    fn new(
        address: Option<AddressLike>,
        title: &str,
        #[pyo3(from_py_with = truth::relaying)] relaying: bool,
    ) -> PyResult<Self> {
        if !is_title(title) {
            let complaint =
                format!("title must be up to {MAX_TITLE_BYTES} bytes in UTF-8 without control characters");
            return Err(value_error(format!("{complaint}, not {title:?}")));
        }
        let address = address.map(|address| Address(address.0));
        match address {
            Some(Address(server)) if server.port() == 0 || server.ip().is_unspecified() => Err(value_error(
                format!("address must be a rendezvous server's, with its port, not {server}"),
            )),
            None if !title.is_empty() => {
                Err(value_error("title must be '' without the address of a server that lists the game"))
            }
            _ => Ok(Rendezvous { address, title: title.into(), relaying }),
        }
    }
}

impl Rendezvous {
    /// The rendezvous server, and the title under which it lists the game.
    pub(super) fn server(&self) -> Option<(SocketAddr, String)> {
        self.address.map(|address| (address.0, self.title.clone()))
    }
}
