//! How an ack endpoint splits large packets.

use crate::python::prelude::*;

use crate::transport::fragment::MAX_FRAGMENTS;

/// The maximum of packet sizes and memory bounds, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 30;

#[record(module = "tickwire.articles")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragments {
    #[within(1, MAX_BYTES)]
    pub(super) above: Option<usize>,
    #[within(1, usize::from(u16::MAX))]
    pub(super) size: Option<usize>,
    #[within(1, MAX_FRAGMENTS)]
    pub(super) count: Option<usize>,
    #[within(1, MAX_BYTES)]
    pub(super) reassembly_bytes: Option<usize>,
}
