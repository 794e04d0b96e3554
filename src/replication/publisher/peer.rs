//! The state kept about a client: what it has of each class, and what packets in flight carry.

use std::collections::{BTreeSet, VecDeque};

use super::super::class::Classes;
use super::super::packet::{EarlierVisit, Visit};
use super::averages::Averages;
use super::choose::ChosenGhost;
use super::named::{Names, PeerModels, TickSamples};
use super::scope::{CarriedGhost, CarriedOp, Scope};
use super::urgency::Sight;
use crate::endpoint::PeerHandle;

/// A client gets the low 16 bits of a tick and takes the nearest match to its newest one. So it is sent a tick from
/// time to time even if nothing changes, long before half of 16 bits, as packets may be lost.
const REMIND_AFTER: u32 = 1 << 13;

/// How long to wait for that packet's ack before it is repeated.
const REMIND_INTERVAL: u32 = 1 << 8;

/// How long to wait for the ack of a packet with the visit before it is repeated, if nothing else is due.
const VISIT_INTERVAL: u32 = 1 << 3;

/// A client loses packets for this many ticks after a loss is known.
const LOSSY_TICKS: u32 = 1 << 10;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    record: u32,
    tick: u32,
    /// How many of the carried records are its own.
    count: u32,
    /// What its coded part names, if it has one.
    coded: Option<Names>,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) handle: PeerHandle,
    /// The client's id and its visit; None for peers that nothing is remembered of.
    pub(super) visit: Option<(u64, Visit)>,
    /// Whether the client has acked a packet with the visit.
    knows_visit: bool,
    // By class.
    pub(super) scopes: Box<[Scope]>,
    pub(super) averages: Box<[Averages]>,
    pub(super) sights: Box<[Option<Sight>]>,
    /// The rows that it owns.
    pub(super) owned: Box<[BTreeSet<u32>]>,
    /// The tick in which it last lost one that it has, or 0.
    pub(super) disowned_at: u32,
    /// Whether the ghosts of this tick were chosen.
    pub(super) has_chosen: bool,
    /// The chosen ghosts, the most urgent first, and how many of them are or were ready.
    pub(super) chosen: Vec<ChosenGhost>,
    pub(super) next_chosen: usize,
    /// Whether chosen ghosts had no room in the last tick that sent any.
    pub(super) was_cut: bool,
    /// Bits of all its payloads.
    pub(super) bits: u64,
    next_record: u32,
    /// The newest tick that the client is known to have, and the last packet's; 0 before the first.
    acked: u32,
    sent: u32,
    /// The tick in which the last loss was known, or 0.
    lost_at: u32,
    in_flight: VecDeque<SentPacket>,
    carried: VecDeque<CarriedGhost>,
    /// The records of the packet being written.
    pub(super) writing: Vec<CarriedGhost>,
    /// What the coded parts of packets follow from.
    pub(super) models: PeerModels,
}

/// The ghosts of a client that left.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) client: u64,
    pub(super) last: EarlierVisit,
    /// By class, as in [`Peer`].
    pub(super) scopes: Box<[Scope]>,
}

impl Peer {
    pub(super) fn new(handle: PeerHandle, classes: &Classes) -> Self {
        Peer {
            handle,
            visit: None,
            knows_visit: false,
            scopes: classes.iter().map(|_| Scope::default()).collect(),
            averages: classes
                .iter()
                .map(|class| Averages::new(class.properties.schema().max_bits()))
                .collect(),
            sights: classes.iter().map(|_| None).collect(),
            owned: classes.iter().map(|_| BTreeSet::new()).collect(),
            disowned_at: 0,
            has_chosen: false,
            chosen: Vec::new(),
            next_chosen: 0,
            was_cut: false,
            bits: 0,
            next_record: 0,
            acked: 0,
            sent: 0,
            lost_at: 0,
            in_flight: VecDeque::new(),
            carried: VecDeque::new(),
            writing: Vec::new(),
            models: PeerModels::default(),
        }
    }

    /// It owns a row no more from this tick on.
    pub(super) fn disown(&mut self, class: usize, row: u32, tick: u32) {
        self.owned[class].remove(&row);
        if self.scopes[class].was_sent(row) {
            self.disowned_at = tick;
        }
    }

    /// The newest tick that the client is known to have.
    pub(super) fn acked(&self) -> u32 {
        self.acked
    }

    /// A tick is over.
    pub(super) fn end_tick(&mut self, tick: u32, samples: Option<&mut TickSamples>) {
        if let Some(samples) = samples {
            self.models.end_tick(tick, samples);
        }
        self.has_chosen = false;
        if self.sent == tick {
            self.was_cut = self.has_left();
        }
    }

    /// Whether something is due in this tick.
    pub(super) fn is_due(&self, tick: u32) -> bool {
        self.is_to_be_reminded(tick) || self.scopes.iter().any(|scope| scope.due_count() > 0)
    }

    /// Whether the client must be sent the tick, even without anything else.
    pub(super) fn is_to_be_reminded(&self, tick: u32) -> bool {
        let reminds = tick - self.acked > REMIND_AFTER && tick - self.sent > REMIND_INTERVAL;
        let tells = self.visit_to_tell().is_some() && tick - self.sent > VISIT_INTERVAL;
        if self.sent == 0 { self.visit_to_tell().is_some() } else { reminds || tells }
    }

    /// The client's id, and the visit that its next one continues if this one ends at a tick.
    pub(super) fn leaves_off(&self, tick: u32) -> Option<(u64, EarlierVisit)> {
        let (client, visit) = self.visit?;
        // A client that was sent nothing has what it had before.
        let before = visit.continues.filter(|_| self.sent == 0);
        Some((client, before.unwrap_or(EarlierVisit { number: visit.number, until: tick })))
    }

    /// The visit, which goes with each packet until one is acked.
    pub(super) fn visit_to_tell(&self) -> Option<Visit> {
        self.visit.filter(|_| !self.knows_visit).map(|(_, visit)| visit)
    }

    /// Moves the written records to those in flight, under a record number that it returns.
    pub(super) fn track_sent(&mut self, tick: u32) -> u32 {
        let record = self.next_record;
        self.sent = tick;
        self.next_record = record.wrapping_add(1);
        // A packet has at most as many records as bits.
        let (count, coded) = (self.writing.len() as u32, self.models.track_sent(tick));
        self.in_flight.push_back(SentPacket { record, tick, count, coded });
        if self.lost_at > 0 && tick - self.lost_at < LOSSY_TICKS {
            for carried in self.writing.iter().filter(|carried| carried.op == CarriedOp::Destroy) {
                self.scopes[usize::from(carried.class)].repeat_destroy(carried.id.into());
            }
        }
        self.carried.extend(&self.writing);
        self.writing.clear();
        record
    }

    /// Handles a packet's fate. These come in packet order; packets skipped over are lost, and repeated ones are
    /// ignored.
    pub(super) fn handle_notification(&mut self, record: u32, delivered: bool, tick: u32) {
        // Record numbers are consecutive.
        let known = |first: &SentPacket| (record.wrapping_sub(first.record) as usize) < self.in_flight.len();
        if !self.in_flight.front().is_some_and(known) {
            return;
        }
        while let Some(sent) = self.in_flight.pop_front() {
            let (is_it, count) = (sent.record == record, sent.count as usize);
            let is_read = sent.coded.is_none_or(|names| self.models.is_read(names, sent.tick, tick));
            let delivered = is_it && delivered && is_read;
            if sent.coded.is_some() {
                self.models.handle_notification(sent.tick, delivered);
            }
            if delivered {
                self.acked = self.acked.max(sent.tick);
                // Every packet up to now had the visit.
                self.knows_visit = true;
            } else {
                self.lost_at = tick;
            }
            let (first, second) = self.carried.as_slices();
            let first = &first[..count.min(first.len())];
            for carried in [first, &second[..count - first.len()]] {
                for carried in carried.chunk_by(|a, b| a.class == b.class) {
                    let scope = &mut self.scopes[usize::from(carried[0].class)];
                    scope.handle_fates(carried, delivered, sent.tick, tick);
                }
            }
            self.carried.drain(..count);
            if is_it {
                return;
            }
        }
    }
}
