//! Which chunks an endpoint accepts, and where it stores them.

use std::path::PathBuf;

use crate::python::prelude::*;

use crate::driver::files::DirectoryStore;
use crate::endpoint::ChunkLimits;
use crate::python::errors::file_error;
use crate::python::fields::within;
use crate::transport::chunks::MAX_CHUNK_BYTES;

/// The default limit of a file, 1 GiB: larger than games send, smaller than any disk.
const FILE_LIMIT: u64 = 1 << 30;

/// How many files of the largest size a directory takes by default.
const FILES: u64 = 8;

/// Which chunks an endpoint accepts, and where it stores them.
#[derive(Debug)]
pub(in crate::python) struct Arrivals {
    pub(in crate::python) limits: ChunkLimits,
    /// Memory if none.
    pub(in crate::python) directory: Option<DirectoryStore>,
}

impl Arrivals {
    /// Reads an endpoint's arguments.
    pub(in crate::python) fn new(
        py: Python<'_>,
        memory: i128,
        directory: Option<PathBuf>,
        file_limit: Option<i128>,
        directory_limit: Option<i128>,
    ) -> PyResult<Self> {
        let limits = ChunkLimits { memory_bytes: within("chunk_memory", memory, 0, u64::MAX)? };
        let Some(directory) = directory else {
            let given = [("chunk_file_limit", file_limit), ("chunk_directory_limit", directory_limit)];
            return match given.into_iter().find_map(|(name, limit)| Some((name, limit?))) {
                None => Ok(Arrivals { limits, directory: None }),
                Some((name, limit)) => Err(PyValueError::new_err(format!(
                    "{name} ({limit}) bounds the files of a chunk_directory: give one too"
                ))),
            };
        };
        let limit =
            file_limit.map(|limit| within("chunk_file_limit", limit, 0, MAX_CHUNK_BYTES)).transpose()?;
        let limit = limit.unwrap_or(FILE_LIMIT);
        let total =
            directory_limit.map(|total| within("chunk_directory_limit", total, 0, u64::MAX)).transpose()?;
        let store = DirectoryStore::new(directory.clone(), limit, total.unwrap_or(FILES * limit))
            .map_err(|error| file_error(py, &error, &directory))?;
        Ok(Arrivals { limits, directory: Some(store) })
    }
}
