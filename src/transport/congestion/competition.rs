//! Others on the same link: whether they fill the queue, and the share to cwnd then.
//!
//! Whoever yields to delay yields everything to those who don't (TCP Reno and Cubic). Copa (Arun and Balakrishnan, NSDI 2018)
//! calls a queue that never empties the mark of such company. Here it is put to the test: for one round trip we send so much
//! less that a queue of our own would drain (a probe_rtt). If it doesn't, it is not ours, and until two such tests find it empty
//! a window is held that grows and shrinks like Reno's.

use crate::time::{Duration, Instant};

/// Bytes that the window grows by in a round trip: a packet of TCP.
const GROWTH: f64 = 1_215.0;

/// What is left of the window when the queue overflowed: as Cubic's (RFC 9438).
const KEEP: f64 = 0.7;

const MIN_CWND: f64 = 4.0 * GROWTH;

/// Epochs with a long queue before it is tested.
const CROWDED_EPOCHS: u32 = 6;

/// The time between tests.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(2);

/// The time after which the round trip without queues is looked for if it wasn't seen.
const BASE_UNSEEN: Duration = Duration::from_secs(4);

/// Who else is on the link. Times are seconds.
#[derive(Debug, Default)]
pub(super) struct Competition {
    probe_rtt: Option<ProbeRtt>,
    last_probe_rtt: Instant,
    base_seen: Instant,
    /// Epochs in a row with a long queue.
    crowded: u32,
    /// Tests in a row that found nobody.
    alone: u32,
    /// Bytes a second that were ours before the queue grew long.
    capacity_before: f64,
    cwnd: Option<Cwnd>,
}

#[derive(Debug)]
struct ProbeRtt {
    until: Instant,
    judged_at: Instant,
    queue_before: f64,
    least_queue: f64,
}

#[derive(Debug)]
struct Cwnd {
    /// Bytes.
    window: f64,
    cut_at: Instant,
}

/// What the link is like when a test is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    /// The wait in the queue that we aim for.
    pub(super) target: f64,
    /// The round trip with its queue.
    pub(super) rtt: f64,
    /// Bytes of ours on their way.
    pub(super) in_flight: f64,
}

impl Competition {
    /// The round trip was as short as it ever is.
    pub(super) fn base_was_seen(&mut self, now: Instant) {
        self.base_seen = now;
    }

    /// Whether it is time to send less for a round trip, to see the queue without us.
    pub(super) fn probe_rtt_is_due(&self, now: Instant) -> bool {
        let doubtful = self.crowded >= CROWDED_EPOCHS || self.cwnd.is_some();
        now - self.base_seen > BASE_UNSEEN || (doubtful && now - self.last_probe_rtt > PROBE_RTT_INTERVAL)
    }

    /// Begins to send less for the time `base`, the round trip without queue.
    pub(super) fn begin_probe_rtt(&mut self, now: Instant, base: f64, queue: f64, ticks: f64) {
        let after = |seconds| now + Duration::from_secs_f64(seconds);
        self.probe_rtt = Some(ProbeRtt {
            until: after(base),
            judged_at: after(2.0 * base + queue + ticks),
            queue_before: queue,
            least_queue: f64::INFINITY,
        });
        (self.base_seen, self.last_probe_rtt) = (now, now);
    }

    /// Whether less is to be sent now.
    pub(super) fn in_probe_rtt(&self, now: Instant) -> bool {
        self.probe_rtt.as_ref().is_some_and(|probe_rtt| now < probe_rtt.until)
    }

    /// Whether the queue is as it is for a probe_rtt, or may be.
    pub(super) fn is_testing(&self) -> bool {
        self.probe_rtt.is_some()
    }

    /// Takes what a packet waited in the queue.
    pub(super) fn on_queue(&mut self, queue: f64) {
        if let Some(probe_rtt) = &mut self.probe_rtt {
            probe_rtt.least_queue = probe_rtt.least_queue.min(queue);
        }
    }

    /// Judges a test when its time has come.
    pub(super) fn judge(&mut self, now: Instant, link: Circumstances) {
        let Some(probe_rtt) = self.probe_rtt.take_if(|probe_rtt| now >= probe_rtt.judged_at) else { return };
        let others = probe_rtt.least_queue > (2.0 * link.target).max(0.5 * probe_rtt.queue_before);
        self.alone = if others { 0 } else { self.alone + 1 };
        if others && self.cwnd.is_none() {
            // Half of what was ours, as long as that isn't out of reach.
            let ours = link.in_flight.max(MIN_CWND);
            let window = (0.5 * self.capacity_before * link.rtt).clamp(ours, 4.0 * ours);
            self.cwnd = Some(Cwnd { window, cut_at: now });
        }
        if self.alone >= 2 {
            self.cwnd = None;
        }
    }

    /// Takes the least wait of an epoch.
    pub(super) fn end_epoch(&mut self, queue: f64, target: f64, capacity: f64) {
        if queue > 2.0 * target {
            self.crowded += 1;
        } else {
            self.crowded = 0;
            if self.cwnd.is_none() {
                self.capacity_before = capacity;
            }
        }
    }

    /// The bytes to keep on their way beside others.
    pub(super) fn cwnd(&self) -> Option<f64> {
        self.cwnd.as_ref().map(|cwnd| cwnd.window)
    }

    pub(super) fn on_delivered(&mut self, bytes: f64) {
        if let Some(cwnd) = &mut self.cwnd {
            cwnd.window += GROWTH * bytes / cwnd.window;
        }
    }

    /// The queue overflowed: cwnd less, once a round trip.
    pub(super) fn on_overflow(&mut self, now: Instant, rtt: f64) {
        if let Some(cwnd) = self.cwnd.as_mut().filter(|cwnd| (now - cwnd.cut_at).as_secs_f64() > rtt) {
            cwnd.cut_at = now;
            cwnd.window = (cwnd.window * KEEP).max(MIN_CWND);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Circumstances = Circumstances { target: 0.01, rtt: 0.1, in_flight: 20_000.0 };

    fn test(competition: &mut Competition, at: u64, queue: f64) {
        let at = Instant::from_millis(at);
        competition.begin_probe_rtt(at, 0.05, 0.04, 0.0);
        assert!(competition.in_probe_rtt(at) && !competition.in_probe_rtt(at + Duration::from_millis(50)));
        competition.on_queue(queue);
        competition.judge(at + Duration::from_millis(141), LINK);
    }

    #[test]
    fn a_queue_that_drains_is_our_own_and_one_that_stays_is_not() {
        let mut competition = Competition { capacity_before: 1e6, ..Competition::default() };
        test(&mut competition, 0, 0.005);
        assert_eq!(competition.cwnd(), None);
        test(&mut competition, 3_000, 0.035);
        assert_eq!(competition.cwnd(), Some(50_000.0), "half of 1 MB/s x 0.1 s");
        test(&mut competition, 6_000, 0.002);
        assert!(competition.cwnd().is_some(), "they may just have backed off");
        test(&mut competition, 9_000, 0.002);
        assert_eq!(competition.cwnd(), None);
    }

    #[test]
    fn a_claim_grows_by_a_packet_a_round_trip_and_shrinks_once_when_the_queue_overflows() {
        let mut competition = Competition { capacity_before: 1e6, ..Competition::default() };
        test(&mut competition, 0, 0.035);
        (0..50).for_each(|_| competition.on_delivered(1_000.0));
        let grown = competition.cwnd().unwrap();
        assert!((grown - 50_000.0 - GROWTH).abs() < 20.0, "{grown}");
        (0..3).for_each(|_| competition.on_overflow(Instant::from_millis(500), 0.1));
        assert_eq!(competition.cwnd(), Some(grown * KEEP));
    }

    #[test]
    fn tests_come_when_the_queue_stays_long() {
        let mut competition = Competition::default();
        let now = Instant::from_millis(3_000);
        competition.base_was_seen(now);
        (0..5).for_each(|_| competition.end_epoch(0.03, 0.01, 1e6));
        assert!(!competition.probe_rtt_is_due(now));
        competition.end_epoch(0.03, 0.01, 1e6);
        assert!(competition.probe_rtt_is_due(now));
        competition.end_epoch(0.01, 0.01, 1e6);
        assert!(!competition.probe_rtt_is_due(now));
        assert!(competition.probe_rtt_is_due(now + Duration::from_millis(4_001)), "the base was not seen for long");
    }
}
