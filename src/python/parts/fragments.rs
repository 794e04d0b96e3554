//! How an ack endpoint splits large packets.

use crate::python::prelude::*;

use crate::python::fields::bounded;
use crate::transport::fragment::MAX_FRAGMENTS;

/// The maximum of packet sizes and memory bounds, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 30;

#[pyclass(frozen, get_all, module = "tickwire.articles")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragments {
    pub(super) above: Option<usize>,
    pub(super) size: Option<usize>,
    pub(super) count: Option<usize>,
    pub(super) reassembly_bytes: Option<usize>,
}

#[pymethods]
impl Fragments {
    #[new]
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
