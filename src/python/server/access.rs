//! Who may connect to a server.

use crate::python::prelude::*;

use crate::netcode;
use crate::python::address::AddressList;

/// The maximum lifetime of tokens in seconds: a year.
const MAX_TOKEN_LIFETIME: u64 = 365 * 24 * 3600;

/// The maximum difference of clocks in seconds, an hour: fix clocks that are further apart.
const MAX_CLOCK_SKEW: u64 = 3600;

#[record(module = "tickwire.tokens")]
#[derive(Debug)]
pub(crate) struct Access {
    #[callable(1)]
    pub(super) admission: Option<Py<PyAny>>,
    pub(super) public_addresses: Option<AddressList>,
    #[within(1, MAX_TOKEN_LIFETIME)]
    max_token_lifetime: Option<u64>,
    #[within(0, MAX_CLOCK_SKEW)]
    clock_skew: u64,
    #[truth]
    replace_duplicates: bool,
}

impl Access {
    /// Sets what concerns tokens.
    pub(super) fn apply(&self, netcode: &mut netcode::ServerConfig) {
        netcode.max_token_lifetime = self.max_token_lifetime.map(Duration::from_secs);
        netcode.clock_skew = Duration::from_secs(self.clock_skew);
        netcode.replace_duplicates = self.replace_duplicates;
    }
}
