//! TCP senders to share a link with: Cubic (RFC 9438) and BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), as far
//! as they matter beside another flow. Segments aren't sent again, since nothing but bytes is counted; a SACK says of each
//! segment whether it arrived.

use std::collections::VecDeque;

/// A segment on the wire, and what of it is data.
pub(crate) const SEGMENT: usize = 1_500;
/// An ack on the wire.
pub(crate) const ACK: usize = 64;

const MSS: f64 = SEGMENT as f64;
const INITIAL_WINDOW: f64 = 10.0 * MSS;
/// Segments acked after one that is not: it is lost then (RFC 6675).
const REORDERING: u64 = 3;

/// Which congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Cubic,
    Bbr,
}

/// What crosses the link.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    Segment(u64),
    /// The numbers of the segments that came in last, those of some acks before too.
    Ack(Vec<u64>),
}

#[derive(Debug)]
struct Sent {
    number: u64,
    at: f64,
    delivered: f64,
    delivered_at: f64,
}

/// One bulk flow that always has more to send. Times are seconds, amounts bytes.
#[derive(Debug)]
pub(crate) struct Tcp {
    cc: Cc,
    next: u64,
    in_flight: VecDeque<Sent>,
    srtt: f64,
    last_ack: f64,
    delivered: f64,
    delivered_at: f64,
    credit: f64,
    filled_at: f64,
    started: bool,
    /// The receiver's half.
    recent: VecDeque<u64>,
    unacked: u32,
    unacked_since: f64,
    pub(crate) arrived: u64,
    pub(crate) sent: u64,
}

impl Tcp {
    pub(crate) fn new(kind: Kind) -> Self {
        Tcp {
            cc: match kind {
                Kind::Cubic => Cc::Cubic(Cubic::default()),
                Kind::Bbr => Cc::Bbr(Bbr::default()),
            },
            next: 0,
            in_flight: VecDeque::new(),
            srtt: 0.0,
            last_ack: 0.0,
            delivered: 0.0,
            delivered_at: 0.0,
            credit: 0.0,
            filled_at: 0.0,
            started: false,
            recent: VecDeque::new(),
            unacked: 0,
            unacked_since: 0.0,
            arrived: 0,
            sent: 0,
        }
    }

    /// The segments that go out now.
    pub(crate) fn transmit(&mut self, now: f64) -> Vec<Packet> {
        if !core::mem::replace(&mut self.started, true) {
            (self.last_ack, self.delivered_at, self.filled_at) = (now, now, now);
        }
        let rto = (2.0 * self.srtt).max(0.2) + if self.srtt == 0.0 { 0.8 } else { 0.1 };
        if !self.in_flight.is_empty() && now - self.last_ack > rto {
            self.in_flight.clear();
            self.last_ack = now;
            self.cc.on_timeout();
        }
        let rate = self.cc.pacing_rate(self.srtt);
        self.credit = (self.credit + rate * (now - self.filled_at)).min((0.001 * rate).max(2.0 * MSS));
        self.filled_at = now;
        let mut out = Vec::new();
        while self.credit > 0.0 && self.in_flight.len() as f64 * MSS < self.cc.window() {
            if self.in_flight.is_empty() {
                (self.delivered_at, self.last_ack) = (now, now);
            }
            let (delivered, delivered_at) = (self.delivered, self.delivered_at);
            self.in_flight.push_back(Sent { number: self.next, at: now, delivered, delivered_at });
            out.push(Packet::Segment(self.next));
            self.next += 1;
            self.sent += SEGMENT as u64;
            self.credit -= MSS;
        }
        out
    }

    /// Takes a segment at the receiving end.
    pub(crate) fn handle_segment(&mut self, now: f64, number: u64) {
        self.arrived += SEGMENT as u64;
        self.recent.push_back(number);
        if self.recent.len() > 64 {
            self.recent.pop_front();
        }
        if self.unacked == 0 {
            self.unacked_since = now;
        }
        self.unacked += 1;
    }

    /// An ack of each second segment, or of one that waited for 40 ms.
    pub(crate) fn ack(&mut self, now: f64) -> Option<Packet> {
        let due = self.unacked >= 2 || (self.unacked == 1 && now - self.unacked_since >= 0.04);
        due.then(|| {
            self.unacked = 0;
            Packet::Ack(self.recent.iter().copied().collect())
        })
    }

    /// Takes an ack at the sending end.
    pub(crate) fn handle_ack(&mut self, now: f64, numbers: &[u64]) {
        self.last_ack = now;
        let Some(newest) = numbers.last().copied() else { return };
        let mut acked = 0.0;
        let mut sample: Option<Sent> = None;
        for number in numbers {
            if let Ok(index) = self.in_flight.binary_search_by_key(number, |sent| sent.number) {
                acked += MSS;
                self.delivered += MSS;
                sample = self.in_flight.remove(index);
            }
        }
        let Some(sample) = sample else { return };
        self.delivered_at = now;
        let rtt = now - sample.at;
        self.srtt = if self.srtt == 0.0 { rtt } else { self.srtt + (rtt - self.srtt) / 8.0 };
        let mut lost = 0.0;
        let mut lost_sent_at = 0.0;
        while self.in_flight.front().is_some_and(|sent| sent.number + REORDERING <= newest) {
            lost_sent_at = self.in_flight.pop_front().unwrap().at;
            lost += MSS;
        }
        let rate = (self.delivered - sample.delivered) / (now - sample.delivered_at).max(1e-3);
        let ack = Acked {
            now,
            acked,
            lost,
            lost_sent_at,
            rtt,
            srtt: self.srtt,
            rate,
            delivered: self.delivered,
            prior_delivered: sample.delivered,
            in_flight: self.in_flight.len() as f64 * MSS,
        };
        self.cc.on_ack(&ack);
    }
}

/// What an ack tells the congestion control.
struct Acked {
    now: f64,
    acked: f64,
    lost: f64,
    lost_sent_at: f64,
    rtt: f64,
    srtt: f64,
    rate: f64,
    delivered: f64,
    /// Delivered when the acked segment was sent.
    prior_delivered: f64,
    in_flight: f64,
}

#[derive(Debug)]
enum Cc {
    Cubic(Cubic),
    Bbr(Bbr),
}

impl Cc {
    fn on_ack(&mut self, ack: &Acked) {
        match self {
            Cc::Cubic(cubic) => cubic.on_ack(ack),
            Cc::Bbr(bbr) => bbr.on_ack(ack),
        }
    }

    fn on_timeout(&mut self) {
        match self {
            Cc::Cubic(cubic) => cubic.on_timeout(),
            Cc::Bbr(bbr) => bbr.saved_window = 4.0 * MSS,
        }
    }

    fn window(&self) -> f64 {
        match self {
            Cc::Cubic(cubic) => cubic.window,
            Cc::Bbr(bbr) => bbr.window(),
        }
    }

    /// Bytes a second.
    fn pacing_rate(&self, srtt: f64) -> f64 {
        match self {
            // Linux with fq: twice the rate in slow start, 1.2 times after it.
            Cc::Cubic(cubic) if srtt > 0.0 => {
                cubic.window / srtt * if cubic.window < cubic.threshold { 2.0 } else { 1.2 }
            }
            Cc::Cubic(_) => f64::INFINITY,
            Cc::Bbr(bbr) => bbr.pacing_rate(srtt),
        }
    }
}

#[derive(Debug)]
struct Cubic {
    window: f64,
    threshold: f64,
    max_window: f64,
    /// When the window was reduced, and what was sent later counts for the next time.
    epoch: f64,
    reno_window: f64,
    min_rtt: f64,
    /// HyStart: the least RTT of this round, and when it ends.
    round_rtt: f64,
    round_end: f64,
}

const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;

impl Default for Cubic {
    fn default() -> Self {
        Cubic {
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            max_window: 0.0,
            epoch: -1.0,
            reno_window: 0.0,
            min_rtt: f64::INFINITY,
            round_rtt: f64::INFINITY,
            round_end: 0.0,
        }
    }
}

impl Cubic {
    fn on_ack(&mut self, ack: &Acked) {
        self.min_rtt = self.min_rtt.min(ack.rtt);
        if ack.lost > 0.0 && ack.lost_sent_at > self.epoch {
            // Fast convergence.
            let fast = self.window < self.max_window;
            self.max_window = if fast { self.window * (1.0 + CUBIC_BETA) / 2.0 } else { self.window };
            self.window = (self.window * CUBIC_BETA).max(2.0 * MSS);
            self.threshold = self.window;
            self.reno_window = self.window;
            self.epoch = ack.now;
            return;
        }
        if self.window < self.threshold {
            self.slow_start(ack);
            return;
        }
        if self.epoch < 0.0 {
            (self.epoch, self.max_window, self.reno_window) = (ack.now, self.window, self.window);
        }
        let t = ack.now - self.epoch + ack.srtt;
        let (window, max) = (self.window / MSS, self.max_window / MSS);
        let k = ((max - max.min(window.min(max * CUBIC_BETA))) / CUBIC_C).cbrt();
        let target = (CUBIC_C * (t - k).powi(3) + max).clamp(window, 1.5 * window);
        self.window += (target - window) / window * ack.acked;
        self.reno_window +=
            3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA) * ack.acked * MSS / self.reno_window;
        self.window = self.window.max(self.reno_window);
    }

    fn slow_start(&mut self, ack: &Acked) {
        self.window += ack.acked;
        self.round_rtt = self.round_rtt.min(ack.rtt);
        if ack.now >= self.round_end {
            if self.round_rtt > self.min_rtt + (self.min_rtt / 8.0).clamp(0.004, 0.016) {
                self.threshold = self.window;
            }
            (self.round_end, self.round_rtt) = (ack.now + ack.srtt, f64::INFINITY);
        }
    }

    fn on_timeout(&mut self) {
        self.threshold = (self.window * CUBIC_BETA).max(2.0 * MSS);
        self.max_window = self.window;
        self.reno_window = MSS;
        self.window = MSS;
        self.epoch = -1.0;
    }
}

#[derive(Debug, PartialEq)]
enum BbrState {
    Startup,
    Drain,
    ProbeBw { phase: usize, since: f64 },
    ProbeRtt { until: f64 },
}

#[derive(Debug)]
struct Bbr {
    state: BbrState,
    /// The greatest rates of the last ten rounds, by round.
    rates: VecDeque<(u64, f64)>,
    round: u64,
    round_end: f64,
    min_rtt: f64,
    min_rtt_at: f64,
    full_rate: f64,
    rounds_without_growth: u32,
    saved_window: f64,
    in_flight: f64,
}

const BBR_STARTUP_GAIN: f64 = 2.885;
const BBR_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

impl Default for Bbr {
    fn default() -> Self {
        Bbr {
            state: BbrState::Startup,
            rates: VecDeque::new(),
            round: 0,
            round_end: 0.0,
            min_rtt: f64::INFINITY,
            min_rtt_at: 0.0,
            full_rate: 0.0,
            rounds_without_growth: 0,
            saved_window: INITIAL_WINDOW,
            in_flight: 0.0,
        }
    }
}

impl Bbr {
    fn rate(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    fn bdp(&self) -> f64 {
        self.rate() * if self.min_rtt.is_finite() { self.min_rtt } else { 0.0 }
    }

    fn window(&self) -> f64 {
        match self.state {
            BbrState::ProbeRtt { .. } => 4.0 * MSS,
            _ => self.saved_window.max(4.0 * MSS),
        }
    }

    fn pacing_rate(&self, srtt: f64) -> f64 {
        let gain = match self.state {
            BbrState::Startup => BBR_STARTUP_GAIN,
            BbrState::Drain => 1.0 / BBR_STARTUP_GAIN,
            BbrState::ProbeBw { phase, .. } => BBR_CYCLE[phase],
            BbrState::ProbeRtt { .. } => 1.0,
        };
        let rate = if self.rate() > 0.0 { self.rate() } else { INITIAL_WINDOW / srtt.max(0.001) };
        gain * rate
    }

    fn on_ack(&mut self, ack: &Acked) {
        self.in_flight = ack.in_flight;
        let new_round = ack.prior_delivered >= self.round_end;
        if new_round {
            self.round_end = ack.delivered;
            self.round += 1;
        }
        let round = self.round;
        self.rates.retain(|(at, rate)| at + 10 > round && *rate > ack.rate);
        self.rates.push_back((round, ack.rate));
        let expired = ack.now - self.min_rtt_at > 10.0;
        if ack.rtt <= self.min_rtt || expired {
            (self.min_rtt, self.min_rtt_at) = (ack.rtt, ack.now);
        }
        self.advance(ack, new_round, expired);
        let gain =
            if matches!(self.state, BbrState::Startup | BbrState::Drain) { BBR_STARTUP_GAIN } else { 2.0 };
        let target = gain * self.bdp() + 3.0 * MSS;
        if self.full() {
            self.saved_window = (self.saved_window + ack.acked).min(target);
        } else if self.saved_window < target || ack.delivered < INITIAL_WINDOW {
            self.saved_window += ack.acked;
        }
    }

    fn full(&self) -> bool {
        self.rounds_without_growth >= 3
    }

    fn advance(&mut self, ack: &Acked, new_round: bool, expired: bool) {
        if new_round && !self.full() {
            if self.rate() >= 1.25 * self.full_rate {
                (self.full_rate, self.rounds_without_growth) = (self.rate(), 0);
            } else {
                self.rounds_without_growth += 1;
            }
        }
        match self.state {
            BbrState::Startup if self.full() => self.state = BbrState::Drain,
            BbrState::Drain if ack.in_flight <= self.bdp() => {
                self.state = BbrState::ProbeBw { phase: 2 + (self.round % 6) as usize, since: ack.now };
            }
            BbrState::ProbeBw { phase, since } => {
                let long = ack.now - since > self.min_rtt;
                let next = match BBR_CYCLE[phase] {
                    gain if gain > 1.0 => long && (ack.lost > 0.0 || ack.in_flight >= gain * self.bdp()),
                    gain if gain < 1.0 => long || ack.in_flight <= self.bdp(),
                    _ => long,
                };
                if next {
                    self.state = BbrState::ProbeBw { phase: (phase + 1) % 8, since: ack.now };
                }
            }
            BbrState::ProbeRtt { until } if ack.now > until => {
                self.min_rtt_at = ack.now;
                self.state = if self.full() {
                    BbrState::ProbeBw { phase: 2, since: ack.now }
                } else {
                    BbrState::Startup
                };
            }
            _ => {}
        }
        if expired && !matches!(self.state, BbrState::ProbeRtt { .. }) {
            self.state = BbrState::ProbeRtt { until: ack.now + 0.2_f64.max(ack.rtt) };
        }
    }
}
