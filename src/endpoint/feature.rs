//! Features above that fill payload channels while packets are composed: ghosts, calls, whatever has more to say than fits.

use super::handle::PeerHandle;
use crate::transport::Fill;
use crate::wire::BitWriter;

/// A feature that has something for peers of [`Host::want`](super::Host::want).
pub trait Feature {
    /// A packet for this peer has room for `bits` bits on this channel. Writes at most as many into `writer`, which is empty,
    /// and returns the record by which the packet's fate is told; None when there is nothing to write, or no use in so little
    /// room: it isn't asked again then before it wants to be.
    fn fill(&mut self, peer: PeerHandle, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32>;
}

/// A feature, asked about one peer.
pub(super) struct ForPeer<'a> {
    pub(super) peer: PeerHandle,
    pub(super) feature: &'a mut dyn Feature,
}

impl Fill for ForPeer<'_> {
    fn fill(&mut self, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32> {
        self.feature.fill(self.peer, channel, bits, writer)
    }
}
