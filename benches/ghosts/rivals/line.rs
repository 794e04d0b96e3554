//! A client's line: messages either way, each some ticks late, some of them lost.
//!
//! What a library sends reliably it hands to a transport that isn't part of it: such a message, when it is lost, arrives a round
//! trip later, and those behind it wait.

use std::collections::VecDeque;

use crate::path::Path;
use crate::rival::Packet;

/// One way of a line, for what a library sends.
#[derive(Debug)]
pub(crate) struct Way {
    /// The ticks that a message takes.
    delay: u32,
    /// The ticks after which a lost reliable message is sent again.
    round_trip: u32,
    loss: f64,
    state: u64,
    queue: VecDeque<(u32, Packet)>,
    /// Reliable ones, in order.
    ordered: VecDeque<(u32, Packet)>,
}

impl Way {
    pub(crate) fn new(delay: u32, path: Path, seed: u64) -> Self {
        let state = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Way {
            delay,
            round_trip: path.down + path.up,
            loss: path.loss,
            state,
            queue: VecDeque::new(),
            ordered: VecDeque::new(),
        }
    }

    fn is_lost(&mut self) -> bool {
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let drawn = self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11;
        (drawn as f64) < self.loss * (1u64 << 53) as f64
    }

    pub(crate) fn send(&mut self, tick: u32, message: Packet) {
        let (lost, at) = (self.is_lost(), tick + self.delay);
        match (message.reliable, lost) {
            (true, _) => {
                let at = if lost { at + self.round_trip } else { at };
                let last = self.ordered.back().map_or(0, |(at, _)| *at);
                self.ordered.push_back((at.max(last), message));
            }
            (false, true) => {}
            (false, false) => self.queue.push_back((at, message)),
        }
    }

    /// What has arrived by now, reliable messages first.
    pub(crate) fn receive(&mut self, tick: u32) -> Vec<Packet> {
        let mut arrived = Vec::new();
        for queue in [&mut self.ordered, &mut self.queue] {
            while queue.front().is_some_and(|(at, _)| *at <= tick) {
                arrived.extend(queue.pop_front().map(|(_, message)| message));
            }
        }
        arrived
    }
}
