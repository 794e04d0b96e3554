//! Which chunks an endpoint takes, and where they go.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::driver::files::DirectoryStore;
use crate::endpoint::ChunkLimits;
use crate::python::errors::file_error;
use crate::python::fields::within;
use crate::transport::chunks::MAX_CHUNK_BYTES;

/// The largest file that is taken if nothing is said: 1 GiB, which a game hardly has and a disk does.
const FILE_LIMIT: u64 = 1 << 30;

/// Which chunks an endpoint takes, and where they go.
#[derive(Debug)]
pub(in crate::python) struct Arrivals {
    pub(in crate::python) limits: ChunkLimits,
    /// None: memory.
    pub(in crate::python) directory: Option<DirectoryStore>,
}

impl Arrivals {
    /// As the arguments of an endpoint say.
    pub(in crate::python) fn new(
        py: Python<'_>,
        memory: i128,
        directory: Option<PathBuf>,
        file_limit: Option<i128>,
    ) -> PyResult<Self> {
        let limits = ChunkLimits { memory_bytes: within("chunk_memory", memory, 0, u64::MAX)? };
        let Some(directory) = directory else {
            return match file_limit {
                None => Ok(Arrivals { limits, directory: None }),
                Some(limit) => Err(PyValueError::new_err(format!(
                    "chunk_file_limit ({limit}) is for files: it wants a chunk_directory"
                ))),
            };
        };
        let limit =
            file_limit.map(|limit| within("chunk_file_limit", limit, 0, MAX_CHUNK_BYTES)).transpose()?;
        let store = DirectoryStore::new(directory.clone(), limit.unwrap_or(FILE_LIMIT))
            .map_err(|error| file_error(py, &error, &directory))?;
        Ok(Arrivals { limits, directory: Some(store) })
    }
}
