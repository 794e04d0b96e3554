//! Features that fill payload channels while packets are composed: they have more to send than fits.

use super::PeerHandle;
use crate::transport::Fill;
use crate::wire::BitWriter;

/// A feature that has data for the peers for which it called [`Connection::want`](crate::transport::Connection::want).
pub trait Feature {
    /// A packet for this peer has room for `bits` bits on this channel. Writes at most that many into `writer`, which
    /// is empty, and returns a record under which the packet's outcome is reported. Returns None if there is nothing
    /// to write, or if so little room is useless: then it isn't asked again until it calls `want` again.
    fn fill(&mut self, peer: PeerHandle, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32>;
}

/// A feature, for one peer.
pub(super) struct ForPeer<'a> {
    pub(super) peer: PeerHandle,
    pub(super) feature: &'a mut dyn Feature,
}

impl Fill for ForPeer<'_> {
    fn fill(&mut self, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32> {
        self.feature.fill(self.peer, channel, bits, writer)
    }
}
