//! Who may connect to a server.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::netcode;
use crate::python::address::{Address, AddressList};
use crate::python::arguments::{int, optional_int, truth};
use crate::python::fields::within;
use crate::python::hooks;
use crate::time::Duration;

/// The maximum lifetime of tokens in seconds: a year.
const MAX_TOKEN_LIFETIME: u64 = 365 * 24 * 3600;

/// The maximum difference of clocks in seconds, an hour: fix clocks that are further apart.
const MAX_CLOCK_SKEW: u64 = 3600;

/// Who may connect to a server.
///
/// Args:
///     admission (AdmissionHook | None, default None): called in each :meth:`Server.receive` with newcomers,
///         before the game sees them, with the list of their :class:`ClientHandle`. Returns the ones to refuse,
///         as handles or client ids (other ids are ignored), or None; a mapping gives each the text for its
///         event's ``detail``, or None. Refused clients are disconnected with :attr:`DisconnectReason.KICKED`,
///         and the game sees nothing of them: no event, message, chunk or file. Clients that connect while the
///         hook runs wait for the next :meth:`Server.receive`. If it raises, all these newcomers are refused, and
///         :meth:`Server.receive` raises the exception.
///     public_addresses (Sequence[AddressLike] | None, default None): the server's addresses in connect tokens,
///         if they differ from its ``address``.
///     max_token_lifetime (int | None, default None): the longest ``expires_in``, in seconds, that the login
///         backend uses: tokens with more are refused. Other libraries' tokens don't carry their time of
///         creation; with this setting, those that may be older than the server are refused too. (Tokens of
///         :meth:`ConnectToken.generate` carry it, and are always refused if they are older than the server.)
///     clock_skew (int, default 0): seconds by which the clocks of backend and server may differ: tokens are
///         accepted this long after they expire, and if made up to this long before the server's start.
///     replace_duplicates (bool, default True): a client whose ``client_id`` is already connected replaces the
///         old connection, which ends with :attr:`DisconnectReason.REPLACED` on both sides before the new
///         :class:`Connected`. False: the new client must wait until the old one has left or timed out.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, get_all, module = "tickwire.tokens")]
#[derive(Debug)]
pub(crate) struct Access {
    /// The hook that decides about newcomers.
    pub(super) admission: Option<Py<PyAny>>,
    /// The server's addresses in connect tokens, if they were given.
    pub(super) public_addresses: Option<Vec<Address>>,
    /// The longest lifetime of accepted tokens, in seconds; None: any.
    max_token_lifetime: Option<u64>,
    /// Seconds by which the clocks of backend and server may differ.
    clock_skew: u64,
    /// Whether a newer connection of a client replaces the older one.
    replace_duplicates: bool,
}

#[pymethods]
impl Access {
    #[new]
    #[pyo3(signature = (*, admission = None, public_addresses = None, max_token_lifetime = None,
                        clock_skew = 0, replace_duplicates = true))]
    fn new(
        py: Python<'_>,
        admission: Option<Py<PyAny>>,
        public_addresses: Option<AddressList>,
        #[pyo3(from_py_with = optional_int::max_token_lifetime)] max_token_lifetime: Option<i128>,
        #[pyo3(from_py_with = int::clock_skew)] clock_skew: i128,
        #[pyo3(from_py_with = truth::replace_duplicates)] replace_duplicates: bool,
    ) -> PyResult<Self> {
        hooks::check(py, "admission", admission.as_ref())?;
        let lifetime = |seconds| within("max_token_lifetime", seconds, 1, MAX_TOKEN_LIFETIME);
        Ok(Access {
            admission,
            public_addresses: public_addresses.map(|given| given.0.into_iter().map(Address).collect()),
            max_token_lifetime: max_token_lifetime.map(lifetime).transpose()?,
            clock_skew: within("clock_skew", clock_skew, 0, MAX_CLOCK_SKEW)?,
            replace_duplicates,
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.admission)
    }
}

impl Access {
    /// Sets what concerns tokens.
    pub(super) fn apply(&self, netcode: &mut netcode::ServerConfig) {
        netcode.max_token_lifetime = self.max_token_lifetime.map(Duration::from_secs);
        netcode.clock_skew = Duration::from_secs(self.clock_skew);
        netcode.replace_duplicates = self.replace_duplicates;
    }
}
