//! What a connection is like, estimated from its packets: RTT, jitter, packet loss, bandwidth.
//!
//! Promises: the arithmetic of reliable 1.0, value for value; plain numbers with documented units. Nothing here
//! reads a clock or knows a packet: samples go in, numbers come out.

use crate::time::{Duration, Instant};

/// Round trips remembered for the minimum, maximum, mean and jitter (reliable's `rtt_history`).
pub const RTT_HISTORY: usize = 512;

/// Packets a packet loss or bandwidth estimate looks back on. Of these, the older half is measured: the newer
/// half may still be acked.
pub const SPAN: u16 = 256;

/// The smoothing of packet loss and bandwidth, an update.
const WINDOW_SMOOTHING: f64 = 0.1;

/// Values closer than this are taken over as they are, so that a smoothed value can arrive.
const CLOSE: f64 = 1e-5;

/// Marks an empty entry of the history: no round trip is negative.
const NO_SAMPLE: f32 = -1.0;

/// Moves `value` the fraction `smoothing` of the way to `sample`.
fn smooth(value: &mut f64, sample: f64, smoothing: f64) {
    *value = if (sample - *value).abs() < CLOSE { sample } else { *value + (sample - *value) * smoothing };
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
    /// Milliseconds, by the sequence of the packet acked.
    history: Box<[f32]>,
}

impl Rtt {
    /// No samples yet; each will move the smoothed RTT by the fraction `smoothing` of the difference.
    pub fn new(smoothing: f64) -> Self {
        Rtt {
            smoothing,
            smoothed: 0.0,
            jitter: 0.0,
            last_sample: None,
            history: vec![NO_SAMPLE; RTT_HISTORY].into(),
        }
    }

    /// Takes the round trip that the ack of packet `sequence` made.
    pub fn sample(&mut self, sequence: u16, round_trip: Duration) {
        let sample = round_trip.as_secs_f64() * 1000.0;
        if self.smoothed == 0.0 {
            self.smoothed = sample;
        } else {
            smooth(&mut self.smoothed, sample, self.smoothing);
        }
        if let Some(last) = self.last_sample.replace(sample) {
            self.jitter += ((sample - last).abs() - self.jitter) / 16.0;
        }
        self.history[usize::from(sequence) % RTT_HISTORY] = sample as f32;
    }

    /// The smoothed RTT, or `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.last_sample.map(|_| Duration::from_secs_f64(self.smoothed / 1000.0))
    }

    /// Writes the RTT part of `stats`. Goes through the whole history, which is why it is done when asked and
    /// not with each sample.
    fn summarize(&self, stats: &mut Stats) {
        stats.rtt = self.smoothed;
        stats.jitter = self.jitter;
        let samples = || self.history.iter().filter(|s| **s >= 0.0).map(|s| f64::from(*s));
        let count = samples().count() as f64;
        if count == 0.0 {
            return;
        }
        stats.rtt_min = samples().fold(f64::INFINITY, f64::min);
        stats.rtt_max = samples().fold(0.0, f64::max);
        stats.rtt_avg = samples().sum::<f64>() / count;
        stats.jitter_avg_vs_min = stats.rtt_avg - stats.rtt_min;
        stats.jitter_max_vs_min = stats.rtt_max - stats.rtt_min;
        stats.jitter_stddev = (samples().map(|s| (s - stats.rtt_avg).powi(2)).sum::<f64>() / count).sqrt();
    }
}

/// Bytes and the time they took, summed over some packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    packets: u32,
    bytes: u64,
    /// The oldest and the newest time.
    times: Option<(Instant, Instant)>,
}

impl Tally {
    /// Counts one packet.
    pub(crate) fn add(&mut self, time: Instant, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        let (oldest, newest) = self.times.unwrap_or((time, time));
        self.times = Some((oldest.min(time), newest.max(time)));
    }

    /// Kilobits a second, or `None` while all packets bear one time.
    fn kbps(&self) -> Option<f64> {
        let (oldest, newest) = self.times?;
        (newest > oldest).then(|| self.bytes as f64 * 8.0 / 1000.0 / (newest - oldest).as_secs_f64())
    }
}

/// All estimates of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Estimates {
    pub(crate) rtt: Rtt,
    packet_loss: f64,
    sent_kbps: f64,
    received_kbps: f64,
    acked_kbps: f64,
}

impl Estimates {
    pub(crate) fn new(rtt_smoothing: f64) -> Self {
        Estimates {
            rtt: Rtt::new(rtt_smoothing),
            packet_loss: 0.0,
            sent_kbps: 0.0,
            received_kbps: 0.0,
            acked_kbps: 0.0,
        }
    }

    /// Takes what the older half of the last [`SPAN`] packets says: of those sent, of the acked among them,
    /// of those received.
    pub(crate) fn update(&mut self, sent: &Tally, acked: &Tally, received: &Tally) {
        if sent.packets == 0 {
            self.packet_loss = 0.0;
        } else {
            let dropped = f64::from(sent.packets - acked.packets);
            smooth(&mut self.packet_loss, dropped / f64::from(sent.packets) * 100.0, WINDOW_SMOOTHING);
        }
        let pairs =
            [(&mut self.sent_kbps, sent), (&mut self.acked_kbps, acked), (&mut self.received_kbps, received)];
        for (value, tally) in pairs {
            if let Some(kbps) = tally.kbps() {
                smooth(value, kbps, WINDOW_SMOOTHING);
            }
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats {
            packet_loss: self.packet_loss,
            sent_kbps: self.sent_kbps,
            received_kbps: self.received_kbps,
            acked_kbps: self.acked_kbps,
            ..Stats::default()
        };
        self.rtt.summarize(&mut stats);
        stats
    }
}

/// A snapshot of a connection's estimates. Times are milliseconds; everything is 0 until it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Smoothed RTT, in milliseconds.
    pub rtt: f64,
    /// The least of the last 512 round trips, in milliseconds.
    pub rtt_min: f64,
    /// The greatest of the last 512 round trips, in milliseconds.
    pub rtt_max: f64,
    /// The mean of the last 512 round trips, in milliseconds.
    pub rtt_avg: f64,
    /// Smoothed difference of consecutive round trips, in milliseconds, as RFC 3550 smooths its jitter.
    pub jitter: f64,
    /// Mean minus minimum of the last 512 round trips, in milliseconds.
    pub jitter_avg_vs_min: f64,
    /// Maximum minus minimum of the last 512 round trips, in milliseconds.
    pub jitter_max_vs_min: f64,
    /// Standard deviation of the last 512 round trips, in milliseconds.
    pub jitter_stddev: f64,
    /// Percent (0 to 100) of sent packets not acked, 128 to 256 packets ago, smoothed.
    pub packet_loss: f64,
    /// Kilobits a second sent, headers of IP and UDP counted, 128 to 256 packets ago, smoothed.
    pub sent_kbps: f64,
    /// Kilobits a second received, headers of IP and UDP counted, 128 to 256 packets ago, smoothed.
    pub received_kbps: f64,
    /// Kilobits a second of what was sent and acked, 128 to 256 packets ago, smoothed.
    pub acked_kbps: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt_after(smoothing: f64, millis: &[u64]) -> Rtt {
        let mut rtt = Rtt::new(smoothing);
        for (sequence, ms) in millis.iter().enumerate() {
            rtt.sample(sequence as u16, Duration::from_millis(*ms));
        }
        rtt
    }

    #[test]
    fn the_first_sample_is_taken_whole_and_later_ones_by_the_smoothing() {
        assert_eq!(Rtt::new(0.1).smoothed(), None);
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
    fn bandwidth_needs_two_times() {
        let mut tally = Tally::default();
        assert_eq!(tally.kbps(), None);
        tally.add(Instant::from_millis(1000), 500);
        tally.add(Instant::from_millis(1000), 500);
        assert_eq!(tally.kbps(), None);
        tally.add(Instant::from_millis(2000), 250);
        assert_eq!(tally.kbps(), Some(10.0));
    }
}
