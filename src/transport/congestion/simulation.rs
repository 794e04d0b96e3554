//! A link with a rate and a queue between two ends that send slices, to try the controllers on.

use std::collections::{HashMap, VecDeque};

use super::{Adaptive, RoundTrip, SentStamp};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::transport::ledger::acks::{Acked, Acks, AcksConfig, FullHeader, RttSampling};
use crate::transport::ledger::{AckRange, AckRanges, Reported};
use crate::transport::peer_clock::ReceiveTime;

/// What decides when a flow may send.
pub(super) trait Controller: core::fmt::Debug {
    fn on_sent(&mut self, now: Instant, bytes: u32) -> SentStamp;
    fn on_acked(&mut self, now: Instant, acked: &[(SentStamp, bool)], round_trip: Option<RoundTrip>);
    fn on_lost(&mut self, now: Instant, stamp: SentStamp);
    fn can_send(&mut self, now: Instant) -> bool;
    fn on_app_limited(&mut self, _now: Instant) {}
    fn begin_burst(&mut self, _bytes: u32) {}
}

impl Controller for Adaptive {
    fn on_sent(&mut self, now: Instant, bytes: u32) -> SentStamp {
        Adaptive::on_sent(self, now, bytes)
    }

    fn on_acked(&mut self, now: Instant, acked: &[(SentStamp, bool)], round_trip: Option<RoundTrip>) {
        Adaptive::on_acked(self, now, acked, round_trip);
    }

    fn on_lost(&mut self, _now: Instant, stamp: SentStamp) {
        Adaptive::on_lost(self, stamp);
    }

    fn can_send(&mut self, now: Instant) -> bool {
        Adaptive::can_send(self, now)
    }

    fn on_app_limited(&mut self, now: Instant) {
        Adaptive::on_app_limited(self, now);
    }

    fn begin_burst(&mut self, bytes: u32) {
        Adaptive::begin_burst(self, bytes);
    }
}

pub(super) const SLICE: usize = 1152;
const SLICE_WIRE: u32 = 1215;
const GAME_WIRE: u32 = 200 + 63;
const GAME_TICK: Duration = Duration::from_nanos(16_666_667);

#[derive(Clone, Copy, Debug)]
pub(super) enum Loss {
    None,
    Each(f64),
    Bursts { mean: f64, share: f64 },
    Outages { mean: f64, share: f64 },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LinkSetup {
    // Bytes a second.
    pub(super) rate: f64,
    // Seconds.
    pub(super) rtt: f64,
    pub(super) queue: f64,
    pub(super) loss: Loss,
}

impl LinkSetup {
    pub(super) fn new(mbits: f64, rtt_ms: f64, loss: Loss) -> Self {
        let rate = mbits * 1e6 / 8.0;
        let rtt = rtt_ms / 1e3;
        LinkSetup { rate, rtt, queue: rate * rtt, loss }
    }

    pub(super) fn ideal(&self, bytes: usize) -> f64 {
        bytes as f64 / self.rate + self.rtt
    }
}

#[derive(Clone, Debug)]
struct Datagram {
    flow: usize,
    bytes: u32,
    header: FullHeader,
    ranges: Vec<AckRange>,
    delay: Duration,
    received_at: Option<ReceiveTime>,
    wants_ack: bool,
    slice: Option<u32>,
    game: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Wire {
    pub(super) setup: LinkSetup,
    rng: Rng,
    free_at: f64,
    bad: bool,
    bad_until: f64,
    arrivals: VecDeque<(Instant, Datagram)>,
    pub(super) lost_bytes: u64,
    pub(super) dropped_bytes: u64,
    delay_sum: f64,
    delay_count: f64,
    last_arrival: Instant,
    /// Seconds, more in some runs of packets and less in others.
    pub(super) jitter: f64,
}

fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    -mean * (1.0 - rng.unit()).ln()
}

impl Wire {
    fn new(setup: LinkSetup, seed: u64) -> Self {
        Wire {
            setup,
            rng: Rng::seeded(seed),
            free_at: 0.0,
            bad: false,
            bad_until: 0.0,
            arrivals: VecDeque::new(),
            lost_bytes: 0,
            dropped_bytes: 0,
            delay_sum: 0.0,
            delay_count: 0.0,
            last_arrival: Instant::ZERO,
            jitter: 0.0,
        }
    }

    pub(super) fn reset_delay(&mut self) {
        (self.delay_sum, self.delay_count) = (0.0, 0.0);
    }

    pub(super) fn mean_delay(&self) -> f64 {
        self.delay_sum / self.delay_count.max(1.0)
    }

    fn loses(&mut self, at: f64) -> bool {
        match self.setup.loss {
            Loss::None => false,
            Loss::Each(p) => self.rng.chance(p),
            Loss::Bursts { mean, share } => {
                let turn = if self.bad { 1.0 / mean } else { share / (1.0 - share) / mean };
                if self.rng.chance(turn) {
                    self.bad = !self.bad;
                }
                self.bad
            }
            Loss::Outages { mean, share } => {
                while at >= self.bad_until {
                    self.bad = !self.bad;
                    let mean = if self.bad { mean } else { mean * (1.0 - share) / share };
                    self.bad_until += exponential(&mut self.rng, mean);
                }
                self.bad
            }
        }
    }

    fn send(&mut self, now: Instant, datagram: Datagram) {
        let now = now.as_secs_f64();
        let backlog = (self.free_at - now).max(0.0);
        let bytes = f64::from(datagram.bytes);
        if backlog * self.setup.rate + bytes > self.setup.queue.max(bytes) {
            self.lost_bytes += u64::from(datagram.bytes);
            self.dropped_bytes += u64::from(datagram.bytes);
            return;
        }
        self.delay_sum += backlog;
        self.delay_count += 1.0;
        self.free_at = self.free_at.max(now) + bytes / self.setup.rate;
        if self.loses(self.free_at) {
            self.lost_bytes += u64::from(datagram.bytes);
            return;
        }
        let at = Instant::from_nanos(
            ((self.free_at + self.setup.rtt / 2.0 + self.jitter * self.rng.unit()) * 1e9) as u64,
        );
        self.last_arrival = self.last_arrival.max(at);
        self.arrivals.push_back((self.last_arrival, datagram));
    }
}

#[derive(Debug)]
struct SentInfo {
    reported: Reported,
    slice: Option<u32>,
    stamp: SentStamp,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Slice {
    Unsent,
    InFlight,
    Lost,
    Acked,
}

#[derive(Debug)]
pub(super) struct End {
    flow: usize,
    acks: Acks,
    ranges: AckRanges,
    sent: HashMap<u64, SentInfo>,
    pub(super) controller: Box<dyn Controller>,
    newest_at: Option<Instant>,
    ack_owed: bool,
    slices: Vec<Slice>,
    next_unsent: usize,
    oldest_open: usize,
    lost_slices: VecDeque<u32>,
    /// Resent slices, and when: they are sent once more if nothing else is left to send.
    doubtful: VecDeque<(u32, Instant)>,
    resent: usize,
    repeated: usize,
    last_bulk: Instant,
    received: Vec<bool>,
    missing: usize,
    game_due: VecDeque<Instant>,
    pub(super) game_latency: Vec<f64>,
    pub(super) bulk_sent: u64,
    pub(super) delivered_slices: usize,
    pub(super) started: Instant,
    pub(super) finished: Option<Instant>,
}

impl End {
    fn new(flow: usize, controller: Box<dyn Controller>) -> Self {
        let config = AcksConfig {
            sent_window: 8192,
            received_window: 8192,
            early_loss: true,
            ..AcksConfig::default()
        };
        End {
            flow,
            acks: Acks::new(&config).unwrap(),
            ranges: AckRanges::default(),
            sent: HashMap::new(),
            controller,
            newest_at: None,
            ack_owed: false,
            slices: Vec::new(),
            next_unsent: 0,
            oldest_open: 0,
            lost_slices: VecDeque::new(),
            doubtful: VecDeque::new(),
            resent: 0,
            repeated: 0,
            last_bulk: Instant::ZERO,
            received: Vec::new(),
            missing: 0,
            game_due: VecDeque::new(),
            game_latency: Vec::new(),
            bulk_sent: 0,
            delivered_slices: 0,
            started: Instant::ZERO,
            finished: None,
        }
    }

    pub(super) fn begin(&mut self, now: Instant, bytes: usize, burst: bool) {
        self.started = now;
        self.slices = vec![Slice::Unsent; bytes.div_ceil(SLICE)];
        (self.next_unsent, self.oldest_open) = (0, 0);
        self.lost_slices.clear();
        if burst {
            self.controller.begin_burst((bytes.div_ceil(SLICE) * SLICE_WIRE as usize) as u32);
        }
    }

    fn expect(&mut self, bytes: usize) {
        self.missing = bytes.div_ceil(SLICE);
        self.received = vec![false; self.missing];
        self.finished = None;
    }

    fn handle(&mut self, now: Instant, datagram: &Datagram) {
        if self.acks.is_new(datagram.header.sequence).is_err() {
            return;
        }
        let mut acked: Vec<Acked> = Vec::new();
        self.acks.record_received(datagram.header.sequence);
        let sampling = RttSampling::NewestAck { delay: datagram.delay };
        self.acks.process(now, &datagram.header, sampling, &mut acked);
        for range in &datagram.ranges {
            self.acks.ack_range(range.newest, range.oldest, &mut acked);
        }
        self.ranges.record(datagram.header.sequence, 8192);
        if self.acks.received.newest == Some(datagram.header.sequence) {
            self.newest_at = Some(now);
        }
        self.ack_owed |= datagram.wants_ack;
        let mut stamps: Vec<(u64, SentStamp, bool)> = Vec::new();
        let mut rtt = None;
        for acked in acked {
            if acked.sequence == datagram.header.ack {
                let time = (now - acked.sent_at).saturating_sub(datagram.delay);
                rtt = Some(RoundTrip { time, received_at: datagram.received_at });
            }
            let Some(info) = self.sent.remove(&acked.sequence) else { continue };
            self.ranges.confirm(info.reported);
            stamps.push((acked.sequence, info.stamp, acked.late));
            if let Some(slice) = info.slice {
                self.slices[slice as usize] = Slice::Acked;
            }
        }
        if !stamps.is_empty() {
            stamps.sort_by_key(|(_, stamp, _)| stamp.sent_at);
            let stamps: Vec<_> = stamps.into_iter().map(|(_, stamp, late)| (stamp, late)).collect();
            self.controller.on_acked(now, &stamps, rtt);
        }
        if let Some(created) = datagram.game {
            self.game_latency.push((now - created).as_secs_f64());
        }
        if let Some(slice) = datagram.slice {
            let seen = &mut self.received[slice as usize];
            if !core::mem::replace(seen, true) {
                self.delivered_slices += 1;
                self.missing -= 1;
                if self.missing == 0 {
                    self.finished = Some(now);
                }
            }
        }
    }

    fn next_slice(&mut self, now: Instant) -> Option<u32> {
        while let Some(&slice) = self.lost_slices.front() {
            if self.slices[slice as usize] == Slice::Lost {
                return Some(slice);
            }
            self.lost_slices.pop_front();
        }
        if self.next_unsent < self.slices.len() {
            return Some(self.next_unsent as u32);
        }
        while self.oldest_open < self.slices.len() && self.slices[self.oldest_open] == Slice::Acked {
            self.oldest_open += 1;
        }
        while let Some(&(slice, at)) = self.doubtful.front() {
            let open = self.slices[slice as usize] == Slice::InFlight;
            let budget = self.resent / 5 + self.slices.len() / 50;
            if open && self.repeated < budget {
                return (now - at >= Duration::from_millis(4)).then_some(slice);
            }
            self.doubtful.pop_front();
        }
        // The tail: no later ack will come, so the last open slice is sent again.
        if self.oldest_open < self.slices.len() && now - self.last_bulk >= self.acks.resend_timeout() {
            return self.slices.iter().rposition(|slice| *slice != Slice::Acked).map(|slice| slice as u32);
        }
        None
    }

    fn packet(&mut self, now: Instant, bytes: u32, slice: Option<u32>, game: Option<Instant>) -> Datagram {
        let header = self.acks.header();
        let mut ranges = Vec::new();
        let reported = self.ranges.select(header.ack, &mut ranges);
        self.ranges.commit(reported);
        let bytes = bytes + ranges.len() as u32 * 4;
        let newest_at = self.newest_at.take();
        let delay = newest_at.map_or(Duration::ZERO, |at| now - at);
        let received_at = newest_at.map(ReceiveTime::at);
        let sequence = self.acks.record_sent(now, bytes);
        let stamp = self.controller.on_sent(now, bytes);
        self.sent.insert(sequence, SentInfo { reported, slice, stamp });
        self.ack_owed = false;
        let wants_ack = slice.is_some() || game.is_some();
        Datagram { flow: self.flow, bytes, header, ranges, delay, received_at, wants_ack, slice, game }
    }

    fn send(&mut self, now: Instant, wire: &mut Wire) {
        let mut lost = Vec::new();
        self.acks.poll_lost(now, &mut lost);
        for sequence in lost {
            let Some(info) = self.sent.get(&sequence) else { continue };
            self.controller.on_lost(now, info.stamp);
            if let Some(slice) = info.slice.filter(|slice| self.slices[*slice as usize] == Slice::InFlight) {
                self.slices[slice as usize] = Slice::Lost;
                self.lost_slices.push_back(slice);
            }
        }
        while let Some(created) = self.game_due.pop_front() {
            let datagram = self.packet(now, GAME_WIRE, None, Some(created));
            wire.send(now, datagram);
        }
        if !self.slices.is_empty() {
            loop {
                let Some(slice) = self.next_slice(now) else {
                    self.controller.on_app_limited(now);
                    break;
                };
                if !self.controller.can_send(now) {
                    break;
                }
                if slice as usize == self.next_unsent {
                    self.next_unsent += 1;
                } else if self.lost_slices.front() == Some(&slice) {
                    self.lost_slices.pop_front();
                    self.doubtful.push_back((slice, now));
                    self.resent += 1;
                } else if self.doubtful.front().is_some_and(|(front, _)| *front == slice) {
                    self.doubtful.pop_front();
                    self.repeated += 1;
                }
                self.slices[slice as usize] = Slice::InFlight;
                self.last_bulk = now;
                let datagram = self.packet(now, SLICE_WIRE, Some(slice), None);
                self.bulk_sent += u64::from(datagram.bytes);
                wire.send(now, datagram);
            }
        }
        if self.ack_owed {
            let datagram = self.packet(now, 28 + 19 + 16, None, None);
            wire.send(now, datagram);
        }
    }
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) wires: [Wire; 2],
    /// Each sender with its receiver.
    pub(super) flows: Vec<[End; 2]>,
    pub(super) step: [Duration; 2],
    next: [Instant; 2],
    pub(super) game: bool,
    next_game: Instant,
}

impl World {
    pub(super) fn new(setup: LinkSetup, step: Duration, seed: u64) -> Self {
        let mut rng = Rng::seeded(seed ^ 0x5eed);
        let phase = step.mul_f64(rng.unit());
        World {
            now: Instant::ZERO,
            wires: [Wire::new(setup, seed * 2 + 1), Wire::new(setup, seed * 2 + 2)],
            flows: Vec::new(),
            step: [step; 2],
            next: [Instant::ZERO, Instant::ZERO + phase],
            game: false,
            next_game: Instant::ZERO,
        }
    }

    pub(super) fn add(&mut self, sender: Box<dyn Controller>, receiver: Box<dyn Controller>) -> usize {
        let flow = self.flows.len();
        self.flows.push([End::new(flow, sender), End::new(flow, receiver)]);
        flow
    }

    pub(super) fn begin(&mut self, flow: usize, bytes: usize, burst: bool) {
        let now = self.now;
        let [sender, receiver] = &mut self.flows[flow];
        sender.begin(now, bytes, burst);
        receiver.expect(bytes);
        receiver.started = now;
    }

    /// A turn of the end that is due next.
    pub(super) fn turn(&mut self) {
        let end = usize::from(self.next[1] < self.next[0]);
        let now = self.next[end];
        self.now = now;
        self.next[end] += self.step[end];
        while self.game && now >= self.next_game {
            for flow in &mut self.flows {
                flow[0].game_due.push_back(self.next_game);
                flow[1].game_due.push_back(self.next_game);
            }
            self.next_game += GAME_TICK;
        }
        let incoming = &mut self.wires[1 - end].arrivals;
        while incoming.front().is_some_and(|(at, _)| *at <= now) {
            let (_, datagram) = incoming.pop_front().unwrap();
            self.flows[datagram.flow][end].handle(now, &datagram);
        }
        for flow in &mut self.flows {
            flow[end].send(now, &mut self.wires[end]);
        }
    }

    pub(super) fn run_until(&mut self, end: Instant) {
        while self.now < end {
            self.turn();
        }
    }

    /// Seconds until the flow's block is complete.
    pub(super) fn run_to_finish(&mut self, flow: usize, give_up: f64) -> f64 {
        let started = self.flows[flow][1].started;
        while self.flows[flow][1].finished.is_none() {
            self.turn();
            if (self.now - started).as_secs_f64() > give_up {
                return f64::INFINITY;
            }
        }
        (self.flows[flow][1].finished.unwrap() - started).as_secs_f64()
    }
}

/// TCP Reno as a competing flow.
#[derive(Debug)]
pub(super) struct Reno {
    window: f64,
    threshold: f64,
    in_flight: f64,
    recovering_until: Instant,
}

impl Reno {
    pub(super) fn new() -> Self {
        Reno {
            window: 10.0 * 1215.0,
            threshold: f64::INFINITY,
            in_flight: 0.0,
            recovering_until: Instant::ZERO,
        }
    }
}

impl Controller for Reno {
    fn on_sent(&mut self, now: Instant, bytes: u32) -> SentStamp {
        self.in_flight += f64::from(bytes);
        SentStamp { sent_at: now, bytes, bulk: true, sent_in_startup: false, app_limited: false }
    }

    fn on_acked(&mut self, _now: Instant, acked: &[(SentStamp, bool)], _round_trip: Option<RoundTrip>) {
        for (stamp, late) in acked {
            if *late {
                continue;
            }
            let bytes = f64::from(stamp.bytes);
            self.in_flight -= bytes;
            self.window += if self.window < self.threshold { bytes } else { 1215.0 * bytes / self.window };
        }
    }

    fn on_lost(&mut self, now: Instant, stamp: SentStamp) {
        self.in_flight -= f64::from(stamp.bytes);
        if stamp.sent_at >= self.recovering_until {
            self.window = (self.window / 2.0).max(2.0 * 1215.0);
            self.threshold = self.window;
            self.recovering_until = now;
        }
    }

    fn can_send(&mut self, _now: Instant) -> bool {
        self.in_flight < self.window
    }
}
