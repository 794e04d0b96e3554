//! Which chunks an endpoint accepts, where it stores them, and how fast it sends its own.

use std::path::PathBuf;

use crate::python::prelude::*;

use crate::driver::files::DirectoryStore;
use crate::endpoint::ChunkLimits;
use crate::python::congestion::Congestion;
use crate::python::errors::file_error;
use crate::transport::CongestionConfig;
use crate::transport::chunks::MAX_CHUNK_BYTES;

/// The default limit of a file, 1 GiB: larger than games send, smaller than any disk.
const FILE_LIMIT: u64 = 1 << 30;

/// How many files of the largest size a directory takes by default.
const FILES: u64 = 8;

/// The chunks that an endpoint accepts, and how fast it sends its own.
///
/// Args:
///     memory (int | None, default None): bytes of chunks from each peer to hold in memory, running ones and ones
///         not yet taken from ``inbox.chunks``; 0: none are accepted. Larger chunks are refused. None: 0 on a
///         server, 64 MiB on a client and between peers.
///     directory (str | PathLike[str] | None, default None): receives chunks into files here, named by their hash
///         in hex, instead of into memory. It is made if missing. Unfinished files stay: when the same peer
///         offers the same content again, even to another process, only the rest is sent.
///     file_limit (int | None, default None): bytes of the largest such file, at most ``directory_limit``; None:
///         1 GiB. Larger chunks are refused.
///     directory_limit (int | None, default None): bytes of all such files together, unfinished ones by the 4 KiB
///         blocks that arrived; None: eight times ``file_limit``. Chunks that don't fit are refused.
///     congestion (Congestion | None, default None): how fast chunks may be sent; None:
///         :meth:`Congestion.adaptive`.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, get_all, name = "Transfers", module = "tickwire.transfer")]
#[derive(Debug)]
pub(crate) struct TransferSettings {
    /// Bytes of chunks to hold in memory, if they were given.
    memory: Option<u64>,
    /// The directory for received files; None: chunks are received into memory.
    directory: Option<PathBuf>,
    /// Bytes of the largest file, if they were given.
    file_limit: Option<u64>,
    /// Bytes of all files together, if they were given.
    directory_limit: Option<u64>,
    /// How fast chunks may be sent, if it was given.
    congestion: Option<Py<Congestion>>,
}

#[pymethods]
impl TransferSettings {
    #[new]
    #[pyo3(signature = (*, memory = None, directory = None, file_limit = None, directory_limit = None,
                        congestion = None))]
    fn new(
        #[within(0, u64::MAX)] memory: Option<u64>,
        directory: Option<&Bound<'_, PyAny>>,
        #[within(0, MAX_CHUNK_BYTES)] file_limit: Option<u64>,
        #[within(0, u64::MAX)] directory_limit: Option<u64>,
        congestion: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let directory: Option<PathBuf> =
            directory.map(|given| argument("directory", given, "a path or None")).transpose()?;
        let congestion =
            congestion.map(|given| argument("congestion", given, "a Congestion or None")).transpose()?;
        let limits = [("file_limit", file_limit), ("directory_limit", directory_limit)];
        if let (None, Some((name, limit))) =
            (&directory, limits.into_iter().find_map(|(name, limit)| Some((name, limit?))))
        {
            let sentence = format!("{name} ({limit}) bounds the files of a directory: give one too");
            return Err(PyValueError::new_err(sentence));
        }
        if let (Some(file), Some(all)) = (file_limit, directory_limit)
            && file > all
        {
            let sentence = format!("file_limit must be 0 to directory_limit ({all}), not {file}");
            return Err(PyValueError::new_err(sentence));
        }
        Ok(TransferSettings { memory, directory, file_limit, directory_limit, congestion })
    }
}

impl TransferSettings {
    pub(in crate::python) fn congestion(&self) -> CongestionConfig {
        self.congestion.as_ref().map(|given| given.get().0).unwrap_or_default()
    }

    /// Makes the directory; chunks may take `memory` bytes by default.
    pub(in crate::python) fn open(&self, py: Python<'_>, memory: u64) -> PyResult<Arrivals> {
        let limits = ChunkLimits { memory_bytes: self.memory.unwrap_or(memory) };
        let Some(directory) = &self.directory else { return Ok(Arrivals { limits, directory: None }) };
        let limit = self.file_limit.unwrap_or(FILE_LIMIT);
        let total = self.directory_limit.unwrap_or(FILES * limit);
        let store = DirectoryStore::new(directory.clone(), limit, total)
            .map_err(|error| file_error(py, &error, directory))?;
        Ok(Arrivals { limits, directory: Some(store) })
    }
}

/// Which chunks an endpoint accepts, and where it stores them.
#[derive(Debug)]
pub(in crate::python) struct Arrivals {
    pub(in crate::python) limits: ChunkLimits,
    /// Memory if none.
    pub(in crate::python) directory: Option<DirectoryStore>,
}
