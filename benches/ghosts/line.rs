//! A client's line: packets to it and acks from it, each some ticks late, some of them lost.
//!
//! A client acks what it got with the next packet that it sends in a tick; an ack that is lost is in the one after it. The
//! server hears of packets in their order, of each once: of those between two that arrived, that they are lost.

use std::collections::VecDeque;

use tickwire::rng::Rng;

use crate::path::Path;

/// A packet: its record, and its bytes with how many bits they are. A keep-alive has no record.
pub(crate) type Packet = (Option<u32>, Vec<u8>, usize);

pub(crate) struct Line {
    path: Path,
    rng: Rng,
    packets: VecDeque<(u32, Packet)>,
    /// Records that arrived and aren't acked, and acks on their way.
    arrived: Vec<Option<u32>>,
    acks: VecDeque<(u32, Vec<Option<u32>>)>,
    /// Records that the server hasn't heard of.
    sent: VecDeque<Option<u32>>,
    /// The tick of the last packet.
    busy: u32,
}

impl Line {
    pub(crate) fn new(path: Path, seed: u64) -> Self {
        let rng = Rng::seeded(seed);
        Line {
            path,
            rng,
            packets: VecDeque::new(),
            arrived: Vec::new(),
            acks: VecDeque::new(),
            sent: VecDeque::new(),
            busy: 0,
        }
    }

    /// The server sends a packet.
    pub(crate) fn send(&mut self, tick: u32, packet: Packet) {
        self.busy = tick;
        self.sent.push_back(packet.0);
        if !self.rng.chance(self.path.loss) {
            self.packets.push_back((tick + self.path.down, packet));
        }
    }

    /// Ends the server's tick: it sends something in each.
    pub(crate) fn keep_alive(&mut self, tick: u32) {
        if self.busy != tick {
            self.send(tick, (None, Vec::new(), 0));
        }
    }

    /// The client takes a packet that has arrived by now.
    pub(crate) fn receive(&mut self, tick: u32) -> Option<Packet> {
        let (_, packet) = arrived(&mut self.packets, tick)?;
        self.arrived.push(packet.0);
        Some(packet)
    }

    /// The client sends a packet with its acks.
    pub(crate) fn ack(&mut self, tick: u32) {
        if !self.arrived.is_empty() && !self.rng.chance(self.path.loss) {
            self.acks.push_back((tick + self.path.up, std::mem::take(&mut self.arrived)));
        }
    }

    /// Tells the server what it knows by now: calls `told` with records, and whether each arrived.
    pub(crate) fn notifications(&mut self, tick: u32, mut told: impl FnMut(u32, bool)) {
        while let Some((_, acked)) = arrived(&mut self.acks, tick) {
            for record in acked {
                while let Some(sent) = self.sent.pop_front() {
                    if let Some(sent) = sent {
                        told(sent, Some(sent) == record);
                    }
                    if sent == record {
                        break;
                    }
                }
            }
        }
    }
}

/// The first packet in flight, if it has arrived by now.
fn arrived<T>(queue: &mut VecDeque<(u32, T)>, tick: u32) -> Option<(u32, T)> {
    if queue.front()?.0 <= tick { queue.pop_front() } else { None }
}
