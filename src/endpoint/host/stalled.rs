//! Peers that let a reliable channel run full are dropped after a time, so that none of them makes the application
//! wait, lose messages or stop.

use super::Host;
use crate::endpoint::PeerHandle;
use crate::endpoint::full_channels;
use crate::endpoint::reason::DisconnectReason;
use crate::store::Datagrams;
use crate::time::{Duration, Instant};
use crate::transport::CloseReason;

impl Host {
    /// How long a reliable channel to a peer that dialled us may stay full without a delivery before the peer is
    /// dropped. A channel that is full again and again may take twelve times as long for the messages that were
    /// queued when it first was ([`MAX_STALLED_TIMES`](crate::endpoint::MAX_STALLED_TIMES)). None: forever. Servers
    /// that we dialled are never dropped for it.
    pub fn set_stalled_timeout(&mut self, timeout: Option<Duration>) {
        self.stalled_timeout = timeout;
    }

    /// A full channel refused a message.
    #[cold]
    pub(super) fn note_full(&mut self, now: Instant, handle: PeerHandle, channel: usize) {
        let is_judged = self.stalled_timeout.is_some() && self.links.dialled(handle).is_none();
        if !is_judged || !full_channels::counts(&self.protocol, channel) {
            return;
        }
        let Some(peer) = self.peers.find_mut(handle) else { return };
        peer.full.note_full(now, channel, &peer.connection);
        if !core::mem::replace(&mut peer.full.is_listed, true) {
            self.stalled.push(handle);
        }
    }

    /// Drops the peers whose channels have been full for too long.
    pub(super) fn end_stalled(&mut self, now: Instant, out: &mut Datagrams) {
        let Host { stalled, peers, protocol, stalled_timeout, .. } = self;
        let mut over = Vec::new();
        stalled.retain(|handle| {
            let Some(peer) = peers.find_mut(*handle).filter(|peer| peer.closing.is_none()) else {
                return false;
            };
            let is_full = match *stalled_timeout {
                Some(timeout) => {
                    let is_full = peer.full.look(now, timeout, &peer.connection, protocol);
                    if peer.full.deadline(timeout) <= now {
                        over.push(*handle);
                        return false;
                    }
                    is_full
                }
                None => peer.full.forget(),
            };
            peer.full.is_listed = is_full;
            is_full
        });
        for handle in over {
            self.connection_counters.stalled += 1;
            self.leave(now, handle, Some(CloseReason::Stalled), None, None, out);
            self.report(handle, DisconnectReason::Stalled, None, None);
        }
    }

    /// When the first of them will be dropped if nothing changes.
    pub(super) fn stalled_deadline(&self) -> Instant {
        let Some(timeout) = self.stalled_timeout.filter(|_| !self.stalled.is_empty()) else {
            return Instant::NEVER;
        };
        let peers = self.stalled.iter().filter_map(|handle| self.peers.live(*handle));
        peers.map(|peer| peer.full.deadline(timeout)).min().unwrap_or(Instant::NEVER)
    }
}
