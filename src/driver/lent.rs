//! Memory that a call of an endpoint needs and seldom afterwards. The endpoints of a thread take it in turns: of a thousand
//! in one process, each would find its own far from the processor's cache. The thread keeps it, 4 MiB at most, when its
//! last endpoint closes.
//!
//! Promises: no endpoint finds datagrams that the one before left: a socket keeps its slots while some wait in them.

use std::cell::Cell;

use super::udp::UdpMemory;
use crate::endpoint::CallMemory;
use crate::store::Datagrams;

/// What an endpoint needs for the time of one call.
#[derive(Debug, Default)]
pub(super) struct Lent {
    pub(super) host: CallMemory,
    pub(super) out: Datagrams,
    pub(super) udp: UdpMemory,
}

thread_local! {
    /// The thread's; none while an endpoint has it.
    static LENT: Cell<Option<Box<Lent>>> = const { Cell::new(None) };
}

impl Lent {
    /// The thread's memory, or, where another endpoint's call has it, some more.
    pub(super) fn take() -> Box<Self> {
        LENT.take().unwrap_or_default()
    }

    /// Gives the memory back to the thread.
    pub(super) fn give_back(mut self: Box<Self>) {
        self.out.clear();
        LENT.set(Some(self));
    }
}
