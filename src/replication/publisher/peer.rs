//! What is known of a client: what it has of each class, and what packets in flight carry.

use std::collections::VecDeque;

use super::super::class::Classes;
use super::averages::Averages;
use super::scope::{Carried, Scope};
use crate::endpoint::PeerHandle;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    record: u32,
    tick: u32,
    /// How many of the carried records are its.
    count: u32,
}

/// A client.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) handle: PeerHandle,
    /// By class.
    pub(super) scopes: Box<[Scope]>,
    pub(super) averages: Box<[Averages]>,
    /// What was chosen for this tick.
    pub(super) chosen: bool,
    /// Bits of all payloads.
    pub(super) bits: u64,
    next_record: u32,
    in_flight: VecDeque<SentPacket>,
    carried: VecDeque<Carried>,
    /// Of the packet that is written.
    pub(super) writing: Vec<Carried>,
}

impl Peer {
    pub(super) fn new(handle: PeerHandle, classes: &Classes) -> Self {
        Peer {
            handle,
            scopes: classes.iter().map(|_| Scope::default()).collect(),
            averages: classes
                .iter()
                .map(|class| Averages::new(class.properties.schema().max_bits()))
                .collect(),
            chosen: false,
            bits: 0,
            next_record: 0,
            in_flight: VecDeque::new(),
            carried: VecDeque::new(),
            writing: Vec::new(),
        }
    }

    /// Whether something is due.
    pub(super) fn is_due(&self) -> bool {
        self.scopes.iter().any(|scope| scope.due_count() > 0)
    }

    /// Keeps what was written, under a record that it gives.
    pub(super) fn track_sent(&mut self, tick: u32) -> u32 {
        let record = self.next_record;
        self.next_record = record.wrapping_add(1);
        // A packet has at most as many records as bits.
        self.in_flight.push_back(SentPacket { record, tick, count: self.writing.len() as u32 });
        self.carried.extend(&self.writing);
        self.writing.clear();
        record
    }

    /// What became of a packet. Packets are told of in their order; those before are lost, and one that was told of is unknown.
    pub(super) fn handle_notification(&mut self, record: u32, delivered: bool, tick: u32) {
        if !self.in_flight.iter().any(|sent| sent.record == record) {
            return;
        }
        while let Some(sent) = self.in_flight.pop_front() {
            let (is_it, count) = (sent.record == record, sent.count as usize);
            // Where the ring is in two pieces, the second one isn't loaded first.
            let (carried, _) = self.carried.as_slices();
            for carried in carried[..count.min(carried.len())].chunk_by(|a, b| a.class == b.class) {
                self.scopes[usize::from(carried[0].class)].load(carried.iter().map(|it| it.id.into()));
            }
            for carried in self.carried.drain(..count) {
                let scope = &mut self.scopes[usize::from(carried.class)];
                if is_it && delivered {
                    scope.handle_delivered(carried, sent.tick, tick);
                } else {
                    scope.handle_lost(carried, sent.tick);
                }
            }
            if is_it {
                return;
            }
        }
    }
}
