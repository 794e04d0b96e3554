//! Competing flows on the same link: whether they fill the queue, and our window if they do.
//!
//! A flow that yields to delay yields everything to flows that don't (TCP Reno and Cubic). Copa (Arun and
//! Balakrishnan, NSDI 2018) takes a queue that never empties as the sign of such company. Here it is tested: for one
//! round trip we send so much less that a queue of our own would drain (ProbeRtt). If it doesn't drain, it is not
//! ours, and until two such tests find it empty a window is held that grows and shrinks like Cubic's.

use super::constants::{BASE_BUCKET, BLUR, CUBIC, CUBIC_KEEP, ENOUGH, PACKET};
use crate::exact::cube_root;
use crate::time::{Duration, Instant};

/// A newcomer doubles its window up to this part of the link.
const SLOW_START: f64 = 0.25;

/// The share of the window that must be in flight for it to grow.
const USED: f64 = 0.7;

/// A queue counts as long above this many times its target: others keep it full so that we keep yielding.
const CROWDED: f64 = 1.3;

/// Epochs with a long queue before it is tested.
const CROWDED_EPOCHS: u32 = 10;

/// Competing flows on the link. Times are seconds.
#[derive(Debug, Default)]
pub(super) struct Competition {
    /// Boxed, as [`Cwnd`] is: most connections send no bulk.
    probe_rtt: Option<Box<ProbeRtt>>,
    last_probe_rtt: Instant,
    pub(super) base_seen: Instant,
    /// Epochs in a row with a long queue.
    crowded: u32,
    /// Tests in a row that found no others.
    alone: u32,
    /// Bytes a second that were ours before the queue grew long.
    pub(super) capacity_before: f64,
    /// Epochs in a row without a loss: a queue that is always full loses some.
    lossless: u32,
    /// The rate that startup found, in bytes a second.
    startup_rate: f64,
    cwnd: Option<Box<Cwnd>>,
}

#[derive(Debug)]
struct ProbeRtt {
    until: Instant,
    judged_at: Instant,
    queue_before: f64,
    least_queue: f64,
}

/// A window as TCP Cubic's (RFC 9438).
#[derive(Debug)]
struct Cwnd {
    // Bytes.
    window: f64,
    /// It grows quickly up to here, and slowly from here on.
    plateau: f64,
    cut_at: Instant,
    /// Where slow start ends.
    threshold: f64,
}

impl Cwnd {
    fn grow(&mut self, now: Instant, acked: f64, rtt: f64) {
        if self.window < self.threshold {
            self.window += acked;
            return;
        }
        let (window, plateau) = (self.window / PACKET, self.plateau / PACKET);
        let after = cube_root((plateau - window.min(CUBIC_KEEP * plateau)).max(0.0) / CUBIC);
        let since = (now - self.cut_at).as_secs_f64() + rtt - after;
        let target = (plateau + CUBIC * since * since * since).clamp(window, 1.5 * window);
        self.window += (target - window).max(1.0) * acked / window;
    }

    /// Less, and less far, if the window was smaller already than the time before.
    fn cut(&mut self, now: Instant) {
        let falling = self.window < self.plateau;
        self.plateau = self.window * if falling { 0.5 * (1.0 + CUBIC_KEEP) } else { 1.0 };
        self.window = (self.window * CUBIC_KEEP).max(ENOUGH);
        self.cut_at = now;
        self.threshold = 0.0;
    }
}

/// The state of the link when a test is judged.
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
    /// Whether it is time to send less for a round trip, to see the queue without us.
    pub(super) fn probe_rtt_is_due(&self, now: Instant) -> bool {
        let since = now - self.last_probe_rtt;
        if self.cwnd.is_some() {
            return since > BASE_BUCKET;
        }
        // Before the least round trip is forgotten.
        now - self.base_seen > BASE_BUCKET * 4 / 5
            || (self.crowded >= CROWDED_EPOCHS && since > BASE_BUCKET / 5)
    }

    /// Begins to send less for the time `base`, the round trip without queue; `shows` after it and the queue the rest of that
    /// is over.
    pub(super) fn begin_probe_rtt(&mut self, now: Instant, base: f64, queue: f64, shows: f64) {
        let after = |seconds| now + Duration::from_secs_f64(seconds);
        self.probe_rtt = Some(Box::new(ProbeRtt {
            until: after(base),
            judged_at: after(base + queue + shows),
            queue_before: queue,
            least_queue: f64::INFINITY,
        }));
        (self.base_seen, self.last_probe_rtt) = (now, now);
    }

    /// Whether less is to be sent now.
    pub(super) fn in_probe_rtt(&self, now: Instant) -> bool {
        self.probe_rtt.as_ref().is_some_and(|probe_rtt| now < probe_rtt.until)
    }

    /// Whether the queue is, or may be, in a ProbeRtt.
    pub(super) fn is_testing(&self) -> bool {
        self.probe_rtt.is_some()
    }

    /// Takes a packet's wait in the queue.
    pub(super) fn on_queue(&mut self, queue: f64) {
        if let Some(probe_rtt) = &mut self.probe_rtt {
            probe_rtt.least_queue = probe_rtt.least_queue.min(queue);
        }
    }

    /// Judges a test when it is over.
    ///
    /// A queue that is as long as before although less was sent is none: returns by how much the path is longer.
    pub(super) fn judge(&mut self, now: Instant, link: Circumstances) -> Option<f64> {
        let probe_rtt = self.probe_rtt.take_if(|probe_rtt| now >= probe_rtt.judged_at)?;
        let (before, least) = (probe_rtt.queue_before, probe_rtt.least_queue);
        let long = before > CROWDED * link.target && least.is_finite();
        if long && self.lossless >= CROWDED_EPOCHS && least > before - BLUR.max(0.1 * before) {
            (self.crowded, self.cwnd) = (0, None);
            return Some(least);
        }
        let others = long && least > 0.5 * before;
        self.alone = if others { 0 } else { self.alone + 1 };
        if others && self.cwnd.is_none() {
            // Half of our former rate, within reach.
            let ours = link.in_flight.max(ENOUGH);
            let all = self.capacity_before.max(self.startup_rate) * link.rtt;
            let window = (0.5 * all).clamp(ours, 2.0 * ours);
            let plateau = (0.5 * all).max(window);
            self.cwnd = Some(Box::new(Cwnd { window, plateau, cut_at: now, threshold: SLOW_START * all }));
        }
        if self.alone >= 2 {
            self.cwnd = None;
        }
        None
    }

    /// Takes the minimum wait of an epoch.
    pub(super) fn end_epoch(&mut self, queue: f64, target: f64, capacity: f64, lossy: bool) {
        self.lossless = if lossy { 0 } else { self.lossless.saturating_add(1) };
        if queue > CROWDED * target {
            self.crowded += 1;
        } else {
            self.crowded = 0;
            if self.cwnd.is_none() {
                self.capacity_before = capacity.max(0.98 * self.capacity_before);
            }
        }
    }

    /// Startup ended with this rate. Its own queue shows nothing about others.
    pub(super) fn begin(&mut self, now: Instant, rate: f64) {
        (self.startup_rate, self.base_seen) = (rate, now);
    }

    /// The bytes to keep on their way beside others.
    pub(super) fn cwnd(&self) -> Option<f64> {
        self.cwnd.as_ref().map(|cwnd| cwnd.window)
    }

    pub(super) fn on_delivered(&mut self, now: Instant, bytes: f64, link: Circumstances) {
        if let Some(cwnd) = self.cwnd.as_mut().filter(|cwnd| link.in_flight + bytes > USED * cwnd.window) {
            cwnd.grow(now, bytes, link.rtt);
        }
    }

    /// The queue overflowed: a smaller window, once a round trip.
    pub(super) fn on_overflow(&mut self, now: Instant, rtt: f64) {
        if let Some(cwnd) = self.cwnd.as_mut().filter(|cwnd| (now - cwnd.cut_at).as_secs_f64() > rtt) {
            cwnd.cut(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Circumstances = Circumstances { target: 0.01, rtt: 0.1, in_flight: 40_000.0 };

    fn test(competition: &mut Competition, at: u64, queue: f64) {
        let at = Instant::from_millis(at);
        competition.begin_probe_rtt(at, 0.05, 0.04, 0.05);
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
    fn a_cwnd_grows_slowly_near_its_plateau_and_shrinks_once_when_the_queue_overflows() {
        let mut competition = Competition { capacity_before: 1e6, ..Competition::default() };
        test(&mut competition, 0, 0.035);
        let link = Circumstances { in_flight: 50_000.0, ..LINK };
        (0..50).for_each(|_| competition.on_delivered(Instant::from_millis(150), 1_000.0, link));
        let grown = competition.cwnd().unwrap();
        assert!(grown > 50_000.0 + 0.5 * PACKET && grown < 60_000.0, "{grown}");
        (0..3).for_each(|_| competition.on_overflow(Instant::from_millis(500), 0.1));
        assert_eq!(competition.cwnd(), Some(grown * CUBIC_KEEP));
    }

    #[test]
    fn a_queue_that_less_does_not_shorten_is_a_longer_path_unless_it_overflows() {
        for (lossy, longer) in [(false, Some(0.0395)), (true, None)] {
            let mut competition = Competition { capacity_before: 1e6, ..Competition::default() };
            (0..CROWDED_EPOCHS).for_each(|_| competition.end_epoch(0.04, 0.01, 1e6, lossy));
            competition.begin_probe_rtt(Instant::ZERO, 0.05, 0.04, 0.05);
            competition.on_queue(0.0395);
            assert_eq!(competition.judge(Instant::from_millis(141), LINK), longer);
        }
    }

    #[test]
    fn tests_come_when_the_queue_stays_long() {
        let mut competition = Competition::default();
        let now = Instant::from_millis(3_000);
        competition.base_seen = now;
        (1..CROWDED_EPOCHS).for_each(|_| competition.end_epoch(0.03, 0.01, 1e6, false));
        assert!(!competition.probe_rtt_is_due(now));
        competition.end_epoch(0.03, 0.01, 1e6, false);
        assert!(competition.probe_rtt_is_due(now));
        competition.end_epoch(0.01, 0.01, 1e6, false);
        assert!(!competition.probe_rtt_is_due(now));
        assert!(
            competition.probe_rtt_is_due(now + Duration::from_millis(4_001)),
            "the base was not seen for long"
        );
    }
}
