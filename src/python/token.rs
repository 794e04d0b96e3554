//! Connect tokens and keys.

use crate::python::prelude::*;

use super::address::AddressList;
use crate::driver::{OsEntropy, unix_now};
use crate::netcode::{self, Key, TokenError, TokenParams, USER_DATA_BYTES};
use crate::rng::Entropy;
use crate::time::UnixSeconds;

/// The end of the year 9999, in seconds since 1970: later times are mistakes (milliseconds).
const LATEST: u64 = 253_402_300_799;

#[pyfunction]
pub(crate) fn generate_key() -> [u8; 32] {
    let mut key = [0; 32];
    OsEntropy.fill(&mut key);
    key
}

#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct ConnectToken(netcode::ConnectToken);

#[pymethods]
impl ConnectToken {
    #[staticmethod]
    fn generate(
        protocol: &Object<'_>,
        key: &Object<'_>,
        #[within(0, u64::MAX)] client_id: u64,
        servers: AddressList,
        internal_servers: Option<AddressList>,
        #[within(0, u32::MAX)] expires_in: Option<u32>,
        #[within(1, i32::MAX.unsigned_abs())] timeout: Option<u32>,
        user_data: Option<&Object<'_>>,
        #[within(0, LATEST)] now: Option<u64>,
    ) -> PyResult<Self> {
        let protocol_id = match protocol.cast::<Protocol>() {
            Ok(protocol) => protocol.get().id,
            Err(_) => bounded("protocol", protocol, 0, u64::MAX)?,
        };
        let public = servers.sockets();
        if let Some(nowhere) = public.iter().find(|address| address.port() == 0) {
            refuse!(PyValueError, "servers must have ports to connect to, and {nowhere} has none");
        }
        let internal = internal_servers.map(|servers| servers.sockets());
        if let Some(internal) = internal.as_ref().filter(|internal| internal.len() != public.len()) {
            let (public, internal) = (public.len(), internal.len());
            return Err(value_error(TokenError::AddressLists { public, internal }));
        }
        let params = TokenParams {
            protocol_id,
            private_key: &extract_key(key)?,
            client_id,
            created: now.map_or_else(unix_now, UnixSeconds),
            lifetime: expires_in,
            timeout,
            public_addresses: &public,
            internal_addresses: internal.as_deref(),
            user_data: &extract_user_data(user_data)?,
            dated: true,
        };
        let token = netcode::ConnectToken::generate(&params, &mut OsEntropy).map_err(value_error)?;
        Ok(ConnectToken(token))
    }

    methods! {
        #[staticmethod]
        from_bytes(data: &[u8]) -> PyResult<Self> =
            netcode::ConnectToken::from_bytes(data).map(ConnectToken).map_err(value_error);
        to_bytes() -> Vec<u8> = self.0.to_bytes().to_vec();
    }

    properties! {
        protocol_id: u64 = self.0.protocol_id;
        servers: Vec<Address> = self.0.addresses.iter().copied().map(Address).collect();
        created: u64 = self.0.created.0;
        expires: u64 = self.0.expires.0;
        timeout: Option<u64> = self.0.timeout().map(|timeout| timeout.as_secs());
    }

    fn __repr__(&self) -> String {
        let servers: Vec<String> = self.0.addresses.iter().map(ToString::to_string).collect();
        format!("<ConnectToken for protocol {:#x} at {}>", self.0.protocol_id, servers.join(", "))
    }
}

impl ConnectToken {
    /// A copy of the token, for a client to use up.
    pub(super) fn again(&self) -> PyResult<netcode::ConnectToken> {
        netcode::ConnectToken::from_bytes(&self.0.to_bytes()).map_err(value_error)
    }
}

/// The bytes of an argument.
fn bytes<'a>(name: &str, given: &'a Object<'_>) -> PyResult<&'a [u8]> {
    let Ok(bytes) = given.cast::<PyBytes>() else {
        let hint = if given.is_instance_of::<PyString>() { ": encode() makes bytes of text" } else { "" };
        let kind = given.get_type().name()?;
        refuse!(PyTypeError, "{name} must be bytes, not {kind}{hint}");
    };
    Ok(bytes.as_bytes())
}

pub(super) fn extract_key(key: &Object<'_>) -> PyResult<Key> {
    let bytes = match bytes("key", key) {
        Err(_) if key.is_instance_of::<PyString>() => {
            return Err(PyTypeError::new_err(
                "key must be 32 bytes, such as from tickwire.generate_key(), not str: bytes.fromhex() \
                 reads hex digits",
            ));
        }
        bytes => bytes?,
    };
    Key::try_from(bytes)
        .map_err(|_| PyValueError::new_err(format!("key must be 32 bytes, not {}", bytes.len())))
}

/// User data padded with zeros to a token's size.
pub(super) fn extract_user_data(data: Option<&Object<'_>>) -> PyResult<[u8; USER_DATA_BYTES]> {
    let data = data.map_or(Ok(&[][..]), |data| bytes("user_data", data))?;
    let mut filled = [0; USER_DATA_BYTES];
    match filled.get_mut(..data.len()) {
        Some(start) => start.copy_from_slice(data),
        None => {
            let length = data.len();
            refuse!(PyValueError, "user_data must be at most {USER_DATA_BYTES} bytes, not {length}");
        }
    }
    Ok(filled)
}
