//! The newest messages of a channel that wait for the application, in order of arrival.

use std::collections::VecDeque;

use crate::transport::message::Received;

/// The places for messages that an empty queue keeps.
pub(super) const KEPT_PLACES: usize = 64;

#[derive(Debug)]
pub(super) struct ReceiveQueue {
    pub(super) capacity: usize,
    pub(super) messages: VecDeque<Received>,
    /// Bytes of memory of the messages.
    pub(super) memory: usize,
}

impl ReceiveQueue {
    pub(super) fn new(capacity: usize) -> Self {
        ReceiveQueue { capacity, messages: VecDeque::new(), memory: 0 }
    }

    /// Adds a message. If the queue is full, the oldest makes room and is given back.
    pub(super) fn push(&mut self, message: Received) -> Option<Received> {
        let pushed_out = if self.messages.len() >= self.capacity { self.pop() } else { None };
        self.memory += message.held_memory();
        self.messages.push_back(message);
        pushed_out
    }

    pub(super) fn pop(&mut self) -> Option<Received> {
        let Some(message) = self.messages.pop_front() else {
            debug_assert_eq!(self.memory, 0);
            self.messages.shrink_to(KEPT_PLACES);
            return None;
        };
        self.memory -= message.held_memory();
        Some(message)
    }
}
