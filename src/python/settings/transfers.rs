//! Which chunks an endpoint accepts, where it stores them, and how fast it sends its own.

use crate::python::prelude::*;

use crate::driver::files::DirectoryStore;
use crate::endpoint::ChunkLimits;
use crate::python::congestion::Congestion;
use crate::transport::CongestionConfig;
use crate::transport::chunks::MAX_CHUNK_BYTES;

/// The default limit of a file, 1 GiB: larger than games send, smaller than any disk.
const FILE_LIMIT: u64 = 1 << 30;

/// How many files of the largest size a directory takes by default.
const FILES: u64 = 8;

#[record(checked, module = "tickwire.transfer")]
#[derive(Debug)]
pub(crate) struct Transfers {
    #[within(0, u64::MAX)]
    memory: Option<u64>,
    directory: Option<PathBuf>,
    #[within(0, MAX_CHUNK_BYTES)]
    file_limit: Option<u64>,
    #[within(0, u64::MAX)]
    directory_limit: Option<u64>,
    congestion: Option<Py<Congestion>>,
}

impl Transfers {
    fn check(&self, _: Python<'_>) -> PyResult<()> {
        let limits = [("file_limit", self.file_limit), ("directory_limit", self.directory_limit)];
        if let (None, Some((name, limit))) =
            (&self.directory, limits.into_iter().find_map(|(name, limit)| Some((name, limit?))))
        {
            refuse!(PyValueError, "{name} ({limit}) needs a directory: give directory too");
        }
        match (self.file_limit, self.directory_limit) {
            (Some(file), Some(all)) if file > all => {
                refuse!(PyValueError, "file_limit must be 0 to directory_limit ({all}), not {file}")
            }
            _ => Ok(()),
        }
    }

    pub(in crate::python) fn congestion(&self) -> CongestionConfig {
        self.congestion.as_ref().map(|given| given.get().0).unwrap_or_default()
    }

    /// Makes the directory; by default, chunks have these limits.
    pub(in crate::python) fn open(&self, py: Python<'_>, limits: ChunkLimits) -> PyResult<Arrivals> {
        let limits = ChunkLimits { memory_bytes: self.memory.unwrap_or(limits.memory_bytes) };
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
