//! Unreliable-unordered: each message at most once (the packet layer drops duplicate packets), in any order,
//! never sent again. What a tick's packets can't carry is dropped, as is what the application doesn't take
//! before newer messages need its place; both are counted.

use std::collections::VecDeque;

use super::{ChannelStats, SendError};
use crate::transport::framing::Cost;
use crate::transport::message::{Message, Received};

#[derive(Debug)]
pub(crate) struct Unreliable {
    capacity: usize,
    receive_queue: usize,
    waiting: VecDeque<Message>,
    received: VecDeque<Received>,
    stats: ChannelStats,
}

impl Unreliable {
    pub(crate) fn new(capacity: usize, receive_queue: usize) -> Self {
        Unreliable {
            capacity,
            receive_queue,
            waiting: VecDeque::new(),
            received: VecDeque::new(),
            stats: ChannelStats::default(),
        }
    }

    pub(crate) fn send(&mut self, message: Message) -> Result<(), SendError> {
        if self.waiting.len() >= self.capacity {
            return Err(SendError::Full { capacity: self.capacity });
        }
        self.waiting.push_back(message);
        Ok(())
    }

    /// Takes the messages of one packet into `selected`, in the order they were sent, and returns the bits that
    /// they take at most. The first that doesn't fit ends the packet. A message that no shared packet can
    /// hold goes out when it is first in line and `bits_left` is that of a packet of its own.
    pub(crate) fn select(&mut self, cost: &Cost<'_>, bits_left: usize, selected: &mut Vec<Message>) -> usize {
        let mut used = cost.entry;
        while let Some(message) = self.waiting.front() {
            let bits = cost.message(message);
            if used + bits > bits_left {
                break;
            }
            used += bits;
            self.stats.sent += 1;
            selected.extend(self.waiting.pop_front());
        }
        if selected.is_empty() { 0 } else { used }
    }

    /// The bits that the first message in line needs, with its entry.
    pub(crate) fn next_bits(&self, cost: &Cost<'_>) -> Option<usize> {
        self.waiting.front().map(|message| cost.entry + cost.message(message))
    }

    pub(crate) fn end_of_tick(&mut self) {
        self.stats.dropped += self.waiting.len() as u64;
        self.waiting.clear();
    }

    pub(crate) fn handle(&mut self, message: Received) {
        if self.received.len() >= self.receive_queue {
            self.received.pop_front();
            self.stats.dropped += 1;
        }
        self.received.push_back(message);
        self.stats.received += 1;
    }

    pub(crate) fn poll_received(&mut self) -> Option<Received> {
        self.received.pop_front()
    }

    pub(crate) fn stats(&self) -> ChannelStats {
        ChannelStats { queued: self.waiting.len(), ..self.stats }
    }
}
