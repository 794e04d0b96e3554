//! Captures for Python: a file of an endpoint's datagrams, and the keys that decrypt them.
//!
//! Promises: no key is written unless a key file is asked for, which only its owner may read.

use crate::python::prelude::*;

use super::token::ConnectToken;
pub(super) use crate::driver::capture::Secrets;
use crate::driver::capture::{self, Captured, KeyFile, Way};
use crate::netcode::opener::Opener;

/// The default maximum of a file: 1 GiB.
pub(super) const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// The minimum of a file's bound: its header and some packets.
const MIN_BYTES_BOUND: u64 = 4096;

/// The maximum of a file's bound: a terabyte.
const MAX_BYTES_BOUND: u64 = 1 << 40;

#[pyclass(frozen, module = "tickwire.capture")]
#[derive(Debug)]
pub(crate) struct Capture {
    core: capture::Capture,
    keys: Option<KeyFile>,
}

#[pymethods]
impl Capture {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        #[within(MIN_BYTES_BOUND, MAX_BYTES_BOUND)] max_bytes: u64,
        keys: Option<PathBuf>,
    ) -> PyResult<Self> {
        if keys.as_ref() == Some(&path) {
            return Err(PyValueError::new_err("keys must be another file than path"));
        }
        let core =
            capture::Capture::create(&path, max_bytes).map_err(|error| file_error(py, &error, &path))?;
        let keys =
            keys.map(|path| KeyFile::create(path.clone()).map_err(|error| file_error(py, &error, &path)));
        Ok(Capture { core, keys: keys.transpose()? })
    }

    properties! {
        path: PathBuf = self.core.path();
        packets: u64 = self.core.counters().packets;
        size: u64 = self.core.counters().bytes;
        dropped: u64 = self.core.counters().dropped;
    }

    fn write(
        &self,
        #[within(0, u64::MAX)] nanoseconds: u64,
        sender: Address,
        receiver: Address,
        datagram: &[u8],
        #[truth] outgoing: bool,
        #[truth] opened: bool,
    ) -> PyResult<()> {
        if datagram.len() > MAX_DATAGRAM {
            let length = datagram.len();
            refuse!(PyValueError, "datagram must be at most {MAX_DATAGRAM} bytes, not {length}");
        }
        self.core.record(&Captured {
            nanos: nanoseconds,
            way: if outgoing { Way::Out } else { Way::In },
            from: sender.0,
            to: receiver.0,
            datagram,
            opened,
        });
        Ok(())
    }

    fn flush(&self) {
        self.core.flush();
    }

    methods! {
        close(py: Python<'_>) -> PyResult<()> =
            self.core.close().map_err(|error| file_error(py, &error, &self.core.path()));
    }

    closes!();

    fn __repr__(&self) -> String {
        let counters = self.core.counters();
        format!("<Capture {:?}: {} packets, {} bytes>", self.core.path(), counters.packets, counters.bytes)
    }
}

/// The longest datagram over IPv4, without headers.
const MAX_DATAGRAM: usize = 65_535 - 20 - 8;

impl Capture {
    /// Captures a driver's datagrams. `secrets` are the keys of its connections, as the fields of a line of JSON.
    pub(super) fn attach(&self, py: Python<'_>, driver: &mut Driver, secrets: &Secrets<'_>) -> PyResult<()> {
        if let Some(keys) = &self.keys {
            let started = driver.origin().saturating_add(driver.now().as_nanos());
            let noted = keys.note(driver.local_address(), started, secrets);
            noted.map_err(|error| file_error(py, &error, keys.path()))?;
        }
        driver.set_capture(self.core.clone());
        Ok(())
    }
}

/// A capture, or the path of a new one.
#[derive(FromPyObject)]
pub(crate) enum CaptureLike<'py> {
    Capture(Bound<'py, Capture>),
    Path(PathBuf),
}

/// The capture that an endpoint was given, or the process's by the environment.
pub(super) fn chosen<'py>(
    py: Python<'py>,
    given: Option<CaptureLike<'py>>,
) -> PyResult<Option<Bound<'py, Capture>>> {
    match given {
        Some(CaptureLike::Capture(capture)) => Ok(Some(capture)),
        Some(CaptureLike::Path(path)) => {
            Ok(Some(Bound::new(py, Capture::new(py, path, DEFAULT_MAX_BYTES, None)?)?))
        }
        None if std::env::var_os("TICKWIRE_CAPTURE").is_some() => {
            let made = py.import("tickwire.capture._process")?.call_method0("process_capture")?;
            Ok(Some(made.cast_into()?))
        }
        None => Ok(None),
    }
}

#[pyclass(frozen, module = "tickwire._core")]
pub(crate) struct PacketOpener(Mutex<Opener>);

#[pymethods]
impl PacketOpener {
    #[new]
    fn new(keys: Vec<Object<'_>>, tokens: Vec<PyRef<'_, ConnectToken>>) -> PyResult<Self> {
        let mut opener = Opener::new();
        for key in &keys {
            opener.add_private_key(extract_key(key)?);
        }
        for token in tokens {
            opener.add_token(&token.again()?);
        }
        Ok(PacketOpener(Mutex::new(opener)))
    }

    methods! {
        open(sender: Address, receiver: Address, datagram: &[u8]) -> Option<Vec<u8>> =
            lock(&self.0).open(sender.0, receiver.0, datagram);
    }
}
