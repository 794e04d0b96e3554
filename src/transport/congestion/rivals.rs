//! Others on the same link: whether they fill the queue, and the share to claim then.
//!
//! Whoever yields to delay yields everything to those who don't (TCP Reno and Cubic). Copa (Arun and Balakrishnan, NSDI 2018)
//! calls a queue that never empties the mark of such company. Here it is put to the test: for one round trip we send so much
//! less that a queue of our own would drain (a dip). If it doesn't, it is not ours, and until two such tests find it empty
//! a window is held that grows and shrinks like Reno's.

use crate::time::{Duration, Instant};

/// Bytes that the window grows by in a round trip: a packet of TCP.
const GROWTH: f64 = 1_215.0;

/// What is left of the window when the queue overflowed: as Cubic's (RFC 9438).
const KEEP: f64 = 0.7;

const LEAST_CLAIM: f64 = 4.0 * GROWTH;

/// Epochs with a long queue before it is tested.
const CROWDED_EPOCHS: u32 = 6;

/// The time between tests.
const BETWEEN_DIPS: Duration = Duration::from_secs(2);

/// The time after which the round trip without queues is looked for if it wasn't seen.
const BASE_UNSEEN: Duration = Duration::from_secs(4);

/// Who else is on the link. Times are seconds.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    dip: Option<Dip>,
    last_dip: Instant,
    base_seen: Instant,
    /// Epochs in a row with a long queue.
    crowded: u32,
    /// Tests in a row that found nobody.
    alone: u32,
    /// Bytes a second that were ours before the queue grew long.
    capacity_before: f64,
    claim: Option<Claim>,
}

#[derive(Debug)]
struct Dip {
    until: Instant,
    judged_at: Instant,
    queue_before: f64,
    least_queue: f64,
}

#[derive(Debug)]
struct Claim {
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

impl Rivals {
    /// The round trip was as short as it ever is.
    pub(super) fn base_was_seen(&mut self, now: Instant) {
        self.base_seen = now;
    }

    /// Whether it is time to send less for a round trip, to see the queue without us.
    pub(super) fn dip_is_due(&self, now: Instant) -> bool {
        let doubtful = self.crowded >= CROWDED_EPOCHS || self.claim.is_some();
        now - self.base_seen > BASE_UNSEEN || (doubtful && now - self.last_dip > BETWEEN_DIPS)
    }

    /// Begins to send less for the time `base`, the round trip without queue.
    pub(super) fn begin_dip(&mut self, now: Instant, base: f64, queue: f64, ticks: f64) {
        let after = |seconds| now + Duration::from_secs_f64(seconds);
        self.dip = Some(Dip {
            until: after(base),
            judged_at: after(2.0 * base + queue + ticks),
            queue_before: queue,
            least_queue: f64::INFINITY,
        });
        (self.base_seen, self.last_dip) = (now, now);
    }

    /// Whether less is to be sent now.
    pub(super) fn in_dip(&self, now: Instant) -> bool {
        self.dip.as_ref().is_some_and(|dip| now < dip.until)
    }

    /// Whether the queue is as it is for a dip, or may be.
    pub(super) fn is_testing(&self) -> bool {
        self.dip.is_some()
    }

    /// Takes what a packet waited in the queue.
    pub(super) fn on_queue(&mut self, queue: f64) {
        if let Some(dip) = &mut self.dip {
            dip.least_queue = dip.least_queue.min(queue);
        }
    }

    /// Judges a test when its time has come.
    pub(super) fn judge(&mut self, now: Instant, link: Circumstances) {
        let Some(dip) = self.dip.take_if(|dip| now >= dip.judged_at) else { return };
        let others = dip.least_queue > (2.0 * link.target).max(0.5 * dip.queue_before);
        self.alone = if others { 0 } else { self.alone + 1 };
        if others && self.claim.is_none() {
            // Half of what was ours, as long as that isn't out of reach.
            let ours = link.in_flight.max(LEAST_CLAIM);
            let window = (0.5 * self.capacity_before * link.rtt).clamp(ours, 4.0 * ours);
            self.claim = Some(Claim { window, cut_at: now });
        }
        if self.alone >= 2 {
            self.claim = None;
        }
    }

    /// Takes the least wait of an epoch.
    pub(super) fn end_epoch(&mut self, queue: f64, target: f64, capacity: f64) {
        if queue > 2.0 * target {
            self.crowded += 1;
        } else {
            self.crowded = 0;
            if self.claim.is_none() {
                self.capacity_before = capacity;
            }
        }
    }

    /// The bytes to keep on their way beside others.
    pub(super) fn claim(&self) -> Option<f64> {
        self.claim.as_ref().map(|claim| claim.window)
    }

    pub(super) fn on_delivered(&mut self, bytes: f64) {
        if let Some(claim) = &mut self.claim {
            claim.window += GROWTH * bytes / claim.window;
        }
    }

    /// The queue overflowed: claim less, once a round trip.
    pub(super) fn on_overflow(&mut self, now: Instant, rtt: f64) {
        if let Some(claim) = self.claim.as_mut().filter(|claim| (now - claim.cut_at).as_secs_f64() > rtt) {
            claim.cut_at = now;
            claim.window = (claim.window * KEEP).max(LEAST_CLAIM);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Circumstances = Circumstances { target: 0.01, rtt: 0.1, in_flight: 20_000.0 };

    fn test(rivals: &mut Rivals, at: u64, queue: f64) {
        let at = Instant::from_millis(at);
        rivals.begin_dip(at, 0.05, 0.04, 0.0);
        assert!(rivals.in_dip(at) && !rivals.in_dip(at + Duration::from_millis(50)));
        rivals.on_queue(queue);
        rivals.judge(at + Duration::from_millis(141), LINK);
    }

    #[test]
    fn a_queue_that_drains_is_our_own_and_one_that_stays_is_not() {
        let mut rivals = Rivals { capacity_before: 1e6, ..Rivals::default() };
        test(&mut rivals, 0, 0.005);
        assert_eq!(rivals.claim(), None);
        test(&mut rivals, 3_000, 0.035);
        assert_eq!(rivals.claim(), Some(50_000.0), "half of 1 MB/s x 0.1 s");
        test(&mut rivals, 6_000, 0.002);
        assert!(rivals.claim().is_some(), "they may just have backed off");
        test(&mut rivals, 9_000, 0.002);
        assert_eq!(rivals.claim(), None);
    }

    #[test]
    fn a_claim_grows_by_a_packet_a_round_trip_and_shrinks_once_when_the_queue_overflows() {
        let mut rivals = Rivals { capacity_before: 1e6, ..Rivals::default() };
        test(&mut rivals, 0, 0.035);
        (0..50).for_each(|_| rivals.on_delivered(1_000.0));
        let grown = rivals.claim().unwrap();
        assert!((grown - 50_000.0 - GROWTH).abs() < 20.0, "{grown}");
        (0..3).for_each(|_| rivals.on_overflow(Instant::from_millis(500), 0.1));
        assert_eq!(rivals.claim(), Some(grown * KEEP));
    }

    #[test]
    fn tests_come_when_the_queue_stays_long() {
        let mut rivals = Rivals::default();
        let now = Instant::from_millis(3_000);
        rivals.base_was_seen(now);
        (0..5).for_each(|_| rivals.end_epoch(0.03, 0.01, 1e6));
        assert!(!rivals.dip_is_due(now));
        rivals.end_epoch(0.03, 0.01, 1e6);
        assert!(rivals.dip_is_due(now));
        rivals.end_epoch(0.01, 0.01, 1e6);
        assert!(!rivals.dip_is_due(now));
        assert!(rivals.dip_is_due(now + Duration::from_millis(4_001)), "the base was not seen for long");
    }
}
