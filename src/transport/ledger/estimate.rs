//! Estimates of a connection from its packets: RTT, jitter, packet loss, bandwidth.
//!
//! Promises: RTT by the arithmetic of reliable 1.0, value for value; plain numbers with documented units and errors
//! ([`Stats`]). Nothing here reads a clock or knows a packet: samples go in, numbers come out.

use crate::exact::decay;
use crate::store::InlineSlice;
use crate::time::{Duration, Instant};

/// Round trips that a connection remembers for the minimum, maximum and mean.
pub const RTT_HISTORY: usize = 128;

/// How fast packet loss and bandwidth forget: amounts this old count 1 / e of new ones.
const MEMORY_SECONDS: f64 = 3.0;

/// The remaining weight of a packet from a minute ago.
const NOTHING: f64 = 1e-9;

/// Values closer than this are taken unchanged, so that a smoothed value can reach its target.
const CLOSE: f64 = 1e-5;

/// Marks an empty entry of the history: no round trip is negative.
const NO_SAMPLE: f32 = -1.0;

/// Moves `value` the fraction `smoothing` of the way to `sample`.
pub(crate) fn smooth(value: &mut f64, sample: f64, smoothing: f64) {
    *value = if (sample - *value).abs() < CLOSE { sample } else { *value + (sample - *value) * smoothing };
}

/// The nearest duration to this many nanoseconds, which are 0 or more. [`Duration::from_secs_f64`] takes the number
/// apart bit by bit, for sizes that no round trip has.
pub(super) fn whole_nanoseconds(nanoseconds: f64) -> Duration {
    Duration::from_nanos((nanoseconds + 0.5) as u64)
}

/// The round trip time of a connection.
#[derive(Clone, Debug)]
pub struct Rtt {
    smoothing: f64,
    /// Milliseconds; 0 before the first sample.
    smoothed: f64,
    /// Milliseconds: the mean deviation of consecutive samples, as RFC 3550 smooths it.
    jitter: f64,
    last_sample: Option<f64>,
    /// Both as durations: timers ask for them several times a packet.
    smoothed_time: Duration,
    jitter_time: Duration,
    /// Milliseconds, by the sequence of the packet acked.
    history: InlineSlice<f32, RTT_HISTORY>,
}

impl Rtt {
    /// No samples yet; each will move the smoothed RTT by the fraction `smoothing` of the difference. This many are remembered.
    pub fn new(smoothing: f64, history: usize) -> Self {
        Rtt {
            smoothing,
            smoothed: 0.0,
            jitter: 0.0,
            last_sample: None,
            smoothed_time: Duration::ZERO,
            jitter_time: Duration::ZERO,
            history: InlineSlice::new(NO_SAMPLE, history),
        }
    }

    /// Takes the round trip of the ack of packet `sequence`.
    pub fn sample(&mut self, sequence: u64, round_trip: Duration) {
        let sample = round_trip.as_secs_f64() * 1000.0;
        if self.smoothed == 0.0 {
            self.smoothed = sample;
        } else {
            smooth(&mut self.smoothed, sample, self.smoothing);
        }
        if let Some(last) = self.last_sample.replace(sample) {
            self.jitter += ((sample - last).abs() - self.jitter) / 16.0;
        }
        self.smoothed_time = whole_nanoseconds(self.smoothed * 1e6);
        self.jitter_time = whole_nanoseconds(self.jitter * 1e6);
        let at = sequence as usize % self.history.len();
        self.history[at] = sample as f32;
    }

    /// The smoothed RTT, or `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.last_sample.map(|_| self.smoothed_time)
    }

    /// The smoothed difference of consecutive round trips.
    pub fn jitter(&self) -> Duration {
        self.jitter_time
    }

    /// The longest of the last round trips; zero before the first.
    pub fn longest(&self) -> Duration {
        let longest = self.history.iter().copied().fold(0.0, f32::max);
        Duration::from_secs_f64(f64::from(longest) / 1000.0)
    }

    /// Writes the RTT part of `stats`. Goes through the whole history, which is why it is done when asked and
    /// not with each sample.
    pub(super) fn summarize(&self, stats: &mut Stats) {
        stats.rtt = self.smoothed;
        stats.jitter = self.jitter;
        let samples = || self.history.iter().filter(|s| **s >= 0.0).map(|s| f64::from(*s));
        let none = (0.0, 0.0, f64::INFINITY, 0.0f64);
        let (count, sum, min, max) =
            samples().fold(none, |(count, sum, min, max), s| (count + 1.0, sum + s, s.min(min), s.max(max)));
        if count == 0.0 {
            return;
        }
        stats.rtt_min = min;
        stats.rtt_max = max;
        stats.rtt_avg = sum / count;
        stats.jitter_avg_vs_min = stats.rtt_avg - stats.rtt_min;
        stats.jitter_max_vs_min = stats.rtt_max - stats.rtt_min;
        let apart = samples().map(|s| s - stats.rtt_avg);
        stats.jitter_stddev = (apart.map(|apart| apart * apart).sum::<f64>() / count).sqrt();
    }
}

/// An amount over the last seconds, in which older parts count less and less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amount {
    sum: f64,
    /// Since the last update.
    added: f64,
}

impl Amount {
    pub(super) fn add(&mut self, amount: f64) {
        self.added += amount;
    }

    /// Keeps this fraction of the old amount.
    fn age(&mut self, keep: f64) {
        self.sum = self.sum * keep + core::mem::take(&mut self.added);
    }

    /// The percent of `whole` that this is; 0 when that is nothing.
    fn percent_of(&self, whole: &Amount) -> f64 {
        if whole.sum > NOTHING { (self.sum / whole.sum * 100.0).clamp(0.0, 100.0) } else { 0.0 }
    }
}

/// Packet loss and bandwidth of the last seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    updated_at: Option<Instant>,
    /// The time that the amounts are of.
    seconds: f64,
    pub(super) sent_bytes: Amount,
    pub(super) received_bytes: Amount,
    pub(super) acked_bytes: Amount,
    /// Packets of ours whose outcome is known.
    pub(super) judged: Amount,
    /// Those that were lost.
    pub(super) lost: Amount,
    /// Packets of the peer, by their numbers.
    pub(super) peer_sent: Amount,
    pub(super) received: Amount,
}

impl Recent {
    /// Adds everything since the last update.
    pub(super) fn update(&mut self, now: Instant) {
        let seconds = (now - self.updated_at.replace(now).unwrap_or(now)).as_secs_f64();
        let keep = decay(seconds / MEMORY_SECONDS);
        self.seconds = self.seconds * keep + seconds;
        let Recent { sent_bytes, received_bytes, acked_bytes, judged, lost, peer_sent, received, .. } = self;
        for amount in [sent_bytes, received_bytes, acked_bytes, judged, lost, peer_sent, received] {
            amount.age(keep);
        }
    }

    pub(super) fn summarize(&self, stats: &mut Stats) {
        // The first packets of a connection are no rate yet.
        let kbps = |bytes: &Amount| bytes.sum * 8.0 / 1000.0 / self.seconds.max(1.0);
        stats.sent_kbps = kbps(&self.sent_bytes);
        stats.received_kbps = kbps(&self.received_bytes);
        stats.acked_kbps = kbps(&self.acked_bytes);
        stats.packet_loss = self.lost.percent_of(&self.judged);
        let missing = Amount { sum: self.peer_sent.sum - self.received.sum, added: 0.0 };
        stats.packet_loss_received = missing.percent_of(&self.peer_sent);
    }
}

/// A snapshot of a connection's estimates. Times are milliseconds; everything is 0 until it was measured.
///
/// How far each may be from the truth; `tests/rust/statistics.rs` holds them to it. ("Noise" is what any finite
/// sample has, and averages out.)
///
/// * `rtt`: what is measured ends when a packet is handled, so up to a tick of each end is in it. Where the peer
///   tells how long it held its ack, that is taken off, to 64 µs. Only packets that no later packet overtook are
///   samples then: where the jitter on the way there is above the time between two packets, `rtt` reads low, by
///   at most that jitter. Under reliable 1.0 nothing is taken off, so that up to the time between two packets
///   of the peer (more, if those are lost) is in it, and the first ack to come back counts: `rtt` may read low
///   by the jitter of the way back.
///   Noise: 10 % a sample has that of 19 samples; the standard's 0.25 % that of 800, after as many to settle.
/// * `jitter` follows the same samples; its noise is that of 31.
/// * `packet_loss`: the share of packets judged in the last 3 seconds or so, a packet being judged when it is
///   acked or counts as lost. It reads late by the bound of loss, and high only where acks don't come for packets
///   that did: when that bound is too short (until the late ack comes), or, under reliable 1.0, where the peer
///   sends, or gets through, less than one packet for 32 of ours.
///   Noise: sqrt(p (1 - p) / n) of n = 6 seconds of packets.
/// * `packet_loss_received`: the share of the peer's packets of the last 3 seconds or so whose numbers are
///   missing. Its noise is the same; and a packet that was overtaken is missing until it comes, so that while
///   packets come up to t seconds late it reads up to t / 3 high.
/// * `sent_kbps`, `received_kbps`, `acked_kbps`: all datagrams of the last 3 seconds or so, with this layer's
///   headers and the overhead set for those below. Off by at most one packet in 3 seconds, and too low
///   in the first second.
///
/// The `StandardEstimate` of `articles` computes reliable 1.0's values instead.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Smoothed RTT, in milliseconds.
    pub rtt: f64,
    /// The least of the last 128 round trips (512 under reliable 1.0), in milliseconds.
    pub rtt_min: f64,
    /// The greatest of the last 128 round trips (512 under reliable 1.0), in milliseconds.
    pub rtt_max: f64,
    /// The mean of the last 128 round trips (512 under reliable 1.0), in milliseconds.
    pub rtt_avg: f64,
    /// Smoothed difference of consecutive round trips, in milliseconds, as RFC 3550 smooths its jitter.
    pub jitter: f64,
    /// Mean minus minimum of the last 128 round trips (512 under reliable 1.0), in milliseconds.
    pub jitter_avg_vs_min: f64,
    /// Maximum minus minimum of the last 128 round trips (512 under reliable 1.0), in milliseconds.
    pub jitter_max_vs_min: f64,
    /// Standard deviation of the last 128 round trips (512 under reliable 1.0), in milliseconds.
    pub jitter_stddev: f64,
    /// Percent (0 to 100) of the packets we sent that were lost.
    pub packet_loss: f64,
    /// Percent (0 to 100) of the packets the peer sent that were lost: those whose numbers are missing.
    pub packet_loss_received: f64,
    /// Kilobits a second sent, headers included.
    pub sent_kbps: f64,
    /// Kilobits a second received, headers included.
    pub received_kbps: f64,
    /// Kilobits a second of sent and acked packets.
    pub acked_kbps: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt_after(smoothing: f64, millis: &[u64]) -> Rtt {
        let mut rtt = Rtt::new(smoothing, 512);
        for (sequence, ms) in millis.iter().enumerate() {
            rtt.sample(sequence as u64, Duration::from_millis(*ms));
        }
        rtt
    }

    #[test]
    fn the_first_sample_is_taken_whole_and_later_ones_by_the_smoothing() {
        assert_eq!(Rtt::new(0.1, RTT_HISTORY).smoothed(), None);
        assert_eq!(rtt_after(0.1, &[100]).smoothed(), Some(Duration::from_millis(100)));
        assert!((rtt_after(0.1, &[100, 200]).smoothed - 110.0).abs() < 1e-9);
    }

    #[test]
    fn jitter_is_measured_three_ways_and_smoothed() {
        let mut stats = Stats::default();
        rtt_after(0.1, &[100, 120, 140]).summarize(&mut stats);
        assert_eq!((stats.rtt_min, stats.rtt_max, stats.rtt_avg), (100.0, 140.0, 120.0));
        assert_eq!((stats.jitter_avg_vs_min, stats.jitter_max_vs_min), (20.0, 40.0));
        assert!((stats.jitter_stddev - (800.0f64 / 3.0).sqrt()).abs() < 1e-9);
        assert!((stats.jitter - (1.25 + (20.0 - 1.25) / 16.0)).abs() < 1e-9);
    }

    #[test]
    fn the_history_forgets_what_is_512_packets_old() {
        let mut rtt = rtt_after(0.1, &[999]);
        for sequence in 1..=512 {
            rtt.sample(sequence, Duration::from_millis(10));
        }
        let mut stats = Stats::default();
        rtt.summarize(&mut stats);
        assert_eq!(stats.rtt_max, 10.0);
    }

    #[test]
    fn amounts_of_the_last_seconds_make_rates_and_shares() {
        let mut recent = Recent::default();
        let mut stats = Stats::default();
        for tick in 0..=1000 {
            recent.sent_bytes.add(125.0);
            recent.judged.add(1.0);
            recent.lost.add(if tick % 4 == 0 { 1.0 } else { 0.0 });
            recent.update(Instant::from_millis(tick * 10));
            if tick == 50 {
                recent.summarize(&mut stats);
                assert!((stats.sent_kbps - 50.0).abs() < 5.0, "half of the first second: {stats:?}");
            }
        }
        recent.summarize(&mut stats);
        assert!((stats.sent_kbps - 100.0).abs() < 0.5, "{stats:?}");
        assert!((stats.packet_loss - 25.0).abs() < 0.5, "{stats:?}");
        (1001..=1300).for_each(|tick| recent.update(Instant::from_millis(tick * 10)));
        recent.summarize(&mut stats);
        assert!((stats.sent_kbps - 100.0 * (-1.0f64).exp()).abs() < 5.0, "3 seconds of silence: {stats:?}");
        assert!((stats.packet_loss - 25.0).abs() < 0.5, "of nothing new, nothing new is known: {stats:?}");
    }

    #[test]
    fn a_loss_taken_back_never_reads_below_zero() {
        let mut recent = Recent::default();
        recent.judged.add(10.0);
        recent.lost.add(1.0);
        recent.update(Instant::from_millis(0));
        recent.lost.add(-1.0);
        recent.update(Instant::from_millis(1000));
        let mut stats = Stats::default();
        recent.summarize(&mut stats);
        assert_eq!(stats.packet_loss, 0.0);
    }
}
