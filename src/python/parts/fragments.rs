//! How an ack endpoint splits large packets.

use pyo3::prelude::*;

use crate::python::fields::bounded;
use crate::transport::fragment::MAX_FRAGMENTS;

/// The maximum of packet sizes and memory bounds, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 30;

/// How an :class:`AckEndpoint` splits large packets. None is the profile's.
///
/// Args:
///     above (int | None, default None): payloads longer than this many bytes are sent in fragments.
///     size (int | None, default None): the bytes of a fragment; both ends need the same.
///     count (int | None, default None): how many fragments a packet may have, up to 256; both ends need the same.
///     reassembly_bytes (int | None, default None): bytes that all partial packets together may take.
///
/// Raises:
///     ValueError: naming the argument, its value and its bound.
#[pyclass(frozen, get_all, module = "tickwire.articles")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragments {
    /// Bytes of the largest payload that isn't split, if they were given.
    pub(super) above: Option<usize>,
    /// Bytes of a fragment, if they were given.
    pub(super) size: Option<usize>,
    /// How many fragments a packet may have, if it was given.
    pub(super) count: Option<usize>,
    /// Bytes of all partial packets, if they were given.
    pub(super) reassembly_bytes: Option<usize>,
}

#[pymethods]
impl Fragments {
    #[new]
    #[pyo3(signature = (*, above = None, size = None, count = None, reassembly_bytes = None))]
    fn new(
        above: Option<&Bound<'_, PyAny>>,
        size: Option<&Bound<'_, PyAny>>,
        count: Option<&Bound<'_, PyAny>>,
        reassembly_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let within = |name, given: Option<&Bound<'_, PyAny>>, most| {
            given.map(|given| bounded::<usize>(name, given, 1, most)).transpose()
        };
        Ok(Fragments {
            above: within("above", above, MAX_BYTES)?,
            size: within("size", size, usize::from(u16::MAX))?,
            count: within("count", count, MAX_FRAGMENTS)?,
            reassembly_bytes: within("reassembly_bytes", reassembly_bytes, MAX_BYTES)?,
        })
    }
}
