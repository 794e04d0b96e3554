//! The memory of messages that the application has not taken, of one peer and of all peers of an endpoint.
//!
//! Windows and queues count messages and their bits, but a list of mostly omitted fields takes hundreds of times its
//! bits. Beyond a peer's limit its packets are dropped until the application has taken some messages: unacked, so that
//! reliable messages come again.
//!
//! Promises: a peer always has its share; no peer has more than its limit; what peers have above their shares adds up to
//! at most the pool. A check comes before each packet, so a peer without any messages may exceed these by one packet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::transport::protocol::{ChannelKind, Protocol};

/// The memory that each peer has for itself.
const SHARE: usize = 256 << 10;

/// The limit of one peer, apart from the windows of its reliable channels.
const LIMIT: usize = 2 << 20;

/// The limit of what all peers of an endpoint hold above their shares.
const POOL: usize = 64 << 20;

/// The memory that the peers of one endpoint hold above their shares.
#[derive(Debug, Default)]
pub struct Pool(AtomicUsize);

/// The memory that one peer holds.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    messages: usize,
    packets: usize,
    limit: usize,
    pool: Arc<Pool>,
}

impl HeldMemory {
    pub(crate) fn new(protocol: &Protocol, pool: Arc<Pool>) -> Self {
        let windows = protocol.channels().iter().map(|channel| match channel.kind {
            ChannelKind::Reliable { receive_bytes, .. } => receive_bytes,
            _ => 0,
        });
        let limit = windows.fold(LIMIT, usize::saturating_add);
        HeldMemory { messages: 0, packets: 0, limit, pool }
    }

    /// Whether this much more may be held.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let after = self.total() + bytes;
        let within = after <= self.limit || self.messages == 0;
        let drawn = || self.pool.0.load(Ordering::Relaxed) - above_share(self.total());
        after <= SHARE || within && drawn() + above_share(after) <= POOL
    }

    /// The limit of packets of which fragments are missing: one of the largest where the pool is used up.
    pub(crate) fn packets_limit(&self) -> usize {
        if self.pool.0.load(Ordering::Relaxed) < POOL { LIMIT } else { SHARE }
    }

    /// The memory of a channel's messages changed.
    pub(super) fn change_messages(&mut self, before: usize, after: usize) {
        self.set(self.messages - before + after, self.packets);
    }

    pub(crate) fn has_packets(&self) -> bool {
        self.packets > 0
    }

    /// Sets the memory of packets of which fragments are missing.
    pub(crate) fn set_packets(&mut self, packets: usize) {
        self.set(self.messages, packets);
    }

    fn total(&self) -> usize {
        self.messages + self.packets
    }

    fn set(&mut self, messages: usize, packets: usize) {
        let before = above_share(self.total());
        (self.messages, self.packets) = (messages, packets);
        let after = above_share(self.total());
        // Most peers never exceed their share.
        if after > before {
            self.pool.0.fetch_add(after - before, Ordering::Relaxed);
        } else if after < before {
            self.pool.0.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.set(0, 0);
    }
}

fn above_share(bytes: usize) -> usize {
    bytes.saturating_sub(SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::protocol::{Body, ChannelConfig, MessageType};
    use crate::wire::{Kind, Schema};

    #[test]
    fn a_peer_has_its_share_even_where_others_have_taken_the_pool() {
        let body = Body::Declared(Schema::new([] as [(&str, Kind); 0]).unwrap());
        let types = vec![MessageType { name: "Ready".into(), body }];
        let protocol = Protocol::new(types, vec![ChannelConfig::reliable_ordered()]).unwrap();
        let pool = Arc::new(Pool::default());
        let hold = |bytes: usize| {
            let mut held = HeldMemory::new(&protocol, pool.clone());
            held.change_messages(0, bytes);
            held
        };
        let limit = LIMIT + (1 << 20);
        let one = hold(limit);
        assert!(!one.has_room(1), "its limit");
        let honest = hold(SHARE / 2);
        assert!(honest.has_room(limit - SHARE / 2), "one peer can't take the pool");
        let mut others: Vec<HeldMemory> = (1..POOL / (limit - SHARE)).map(|_| hold(limit)).collect();
        assert!(!honest.has_room(limit - SHARE / 2) && honest.has_room(SHARE / 2));
        others.pop();
        assert!(honest.has_room(limit - SHARE / 2), "a connection that ends gives back its part");
        drop((one, others, honest));
        assert_eq!(pool.0.load(Ordering::Relaxed), 0);
    }
}
