//! How an ack endpoint splits large packets.

use crate::python::prelude::*;

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
        #[within(1, MAX_BYTES)] above: Option<usize>,
        #[within(1, usize::from(u16::MAX))] size: Option<usize>,
        #[within(1, MAX_FRAGMENTS)] count: Option<usize>,
        #[within(1, MAX_BYTES)] reassembly_bytes: Option<usize>,
    ) -> Self {
        Fragments { above, size, count, reassembly_bytes }
    }
}
