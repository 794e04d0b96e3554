//! Addresses: `core::net::SocketAddr` with Python's manners. Never resolves names.

use core::net::IpAddr;

use crate::python::prelude::*;

#[pyclass(frozen, eq, ord, hash, module = "tickwire")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address(pub(crate) SocketAddr);

#[pymethods]
impl Address {
    #[new]
    fn new(address: Address) -> Self {
        address
    }

    properties! {
        host: String = self.0.ip().to_string();
        port: u16 = self.0.port();
        is_ipv6: bool = self.0.is_ipv6();
        is_loopback: bool = self.0.ip().is_loopback();
        __str__: String = self.0.to_string();
        __repr__: String = format!("Address('{}')", self.0);
    }

    methods! {
        with_port(port: &Object<'_>) -> PyResult<Self> =
            Ok(Address(SocketAddr::new(self.0.ip(), extract_port(port)?)));
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Object<'py>, (String,)) {
        (slf.get_type().into_any(), (slf.get().__str__(),))
    }
}

/// An address as a caller may pass it: an [`Address`], its text, or `(host, port)`.
impl<'py> FromPyObject<'_, 'py> for Address {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(address) = object.cast::<Address>() {
            return Ok(*address.get());
        }
        if let Ok(text) = object.cast::<PyString>() {
            return match text.to_str().ok().and_then(|text| text.parse().ok()) {
                Some(address) => Ok(Address(address)),
                None => Err(PyValueError::new_err(format!(
                    "{} is not an address with a port, like '127.0.0.1:40000' or '[::1]:40000'; tickwire.resolve() looks \
                     up names, and a join code needs a rendezvous server",
                    text.repr()?
                ))),
            };
        }
        if let Ok(pair) = object.cast::<PyTuple>()
            && let Ok((host, port)) = pair.extract::<(String, Object<'py>)>()
        {
            let Ok(host) = host.parse::<IpAddr>() else {
                return Err(PyValueError::new_err(format!(
                    "'{host}' is not an IP address; tickwire.resolve() looks up names"
                )));
            };
            return Ok(Address(SocketAddr::new(host, extract_port(&port)?)));
        }
        Err(PyTypeError::new_err(format!(
            "an address must be an Address, text like '127.0.0.1:40000', or a (host, port) pair, not {}",
            object.get_type().name()?
        )))
    }
}

/// Addresses in a list.
#[derive(Clone, Debug, IntoPyObject)]
#[pyo3(transparent)]
pub(crate) struct AddressList(pub(crate) Vec<Address>);

impl AddressList {
    pub(crate) fn sockets(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|address| address.0).collect()
    }
}

impl<'py> FromPyObject<'_, 'py> for AddressList {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // A str is a sequence too, of letters.
        if object.is_instance_of::<PyString>() || object.is_instance_of::<Address>() {
            refuse!(
                PyTypeError,
                "addresses must be in a list, such as [{}], not a single address",
                object.repr()?
            );
        }
        if object.try_iter().is_err() {
            refuse!(PyTypeError, "addresses must be in a list, not {}", object.get_type().name()?);
        }
        object.extract().map(AddressList)
    }
}

fn extract_port(port: &Object<'_>) -> PyResult<u16> {
    bounded("port", port, 0, u16::MAX)
}
