//! How fast bulk may go out: one controller for each connection, which gets each packet's outcome.
//!
//! Promises: constant work and memory per packet; the same calls give the same answers; whatever the peer acks, the
//! rate stays between the configured minimum and maximum. Refuses to decide what is sent, or that a packet is lost;
//! the connection does both. Small messages needn't ask: they are charged, and bulk yields.
//!
//! A peer that acks falsely changes the rate at which it is sent to, only up to the configured maximum.

mod adaptive;
mod binary;
mod ceiling;
mod competition;
mod constants;
mod delay;
mod delivery;
mod fixed;
mod flight;
#[cfg(test)]
mod link_tests;
mod loss;
mod share_test;
#[cfg(test)]
mod simulation;
mod startup;

use core::fmt;

use self::adaptive::Adaptive;
use self::binary::Binary;
use self::fixed::Fixed;
use super::error::ConfigError;
use super::good_bad::GoodBadConfig;
use super::pacing::RateConfig;
use super::peer_clock::ReceiveTime;
use crate::time::{Duration, Instant};

/// A controller's record of a packet: kept by the connection until its outcome is known, and given back then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SentStamp {
    sent_at: Instant,
    bytes: u32,
    /// Asked for with [`Controller::can_send`].
    bulk: bool,
    /// Sent before anything was known of the link.
    sent_in_startup: bool,
    /// The sender had less to send than it might have sent.
    app_limited: bool,
}

/// What an ack shows about the newest packet's way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RoundTrip {
    /// From sending the packet to its ack, less the time that the peer held that.
    pub(crate) time: Duration,
    /// When the packet arrived, by the peer's clock, if the framing carries it.
    pub(crate) received_at: Option<ReceiveTime>,
}

/// Decides how many bytes may go out, and when.
pub(crate) trait Controller: fmt::Debug + Send {
    /// A packet of `bytes`, all headers included, goes out; bulk or not.
    fn on_sent(&mut self, now: Instant, bytes: u32) -> SentStamp;

    /// Packets acked by one datagram of the peer, oldest first; those with `true` were reported lost before. `round_trip` is
    /// that of the newest, if the datagram is the first to ack it.
    fn on_acked(&mut self, now: Instant, acked: &[(SentStamp, bool)], round_trip: Option<RoundTrip>);

    /// A packet counts as lost.
    fn on_lost(&mut self, now: Instant, stamp: SentStamp);

    /// There is nothing more to send now, though it might be sent.
    fn on_app_limited(&mut self, now: Instant);

    /// Whether any packet may go out now: asked before each.
    fn can_send_packet(&mut self, _now: Instant) -> bool {
        true
    }

    /// Whether a packet of bulk may go out now: asked before each.
    fn can_send(&mut self, now: Instant) -> bool;

    /// When bulk may go out next unless something is acked earlier: for drivers that can wake then. Called after
    /// [`Controller::can_send`] returned false.
    fn next_send(&self) -> Instant;

    /// The application wants `bytes` of the next chunks at once, at the risk that a slow link drops some.
    fn begin_burst(&mut self, now: Instant, bytes: u32);

    /// Bytes a second, all headers included, at which bulk goes out.
    fn rate(&self) -> f64;

    /// Takes other settings of its own kind, which were checked, and keeps its knowledge of the link; false if they
    /// are of another kind.
    fn reconfigure(&mut self, _config: &CongestionConfig) -> bool {
        false
    }
}

/// How fast bulk may go out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionConfig {
    /// At a fixed rate: where the link is known, or other means keep it free.
    Fixed(RateConfig),
    /// As fast as the link carries it without a queue of more than some milliseconds.
    Adaptive(AdaptiveConfig),
    /// This many packets a second while the round trip is short, fewer while it isn't; messages' packets too.
    GoodBad(GoodBadConfig),
}

/// Settings of the adaptive controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveConfig {
    /// Never slower than this, in bytes a second, IP and UDP headers included.
    pub min_bytes_per_second: f64,
    /// Never faster than this.
    pub max_bytes_per_second: f64,
    /// Bytes that may go out in the first round trip, before anything is known of the link; in proportion fewer on paths of less
    /// than 50 ms.
    pub initial_bytes: u32,
    /// The most that goes out at one time.
    pub max_burst_bytes: u32,
}

impl Default for AdaptiveConfig {
    /// 4 KB/s to 125 MB/s (1 Gbit/s), 32 KiB at the start, and bursts of 256 KiB: a tick of 60 Hz at 120 Mbit/s.
    ///
    /// 32 KiB are 27 packets, and not the ten of RFC 6928: of a burst they go out at once, and otherwise over 25 ms, which is
    /// 10 Mbit/s.
    fn default() -> Self {
        AdaptiveConfig {
            min_bytes_per_second: 4_000.0,
            max_bytes_per_second: 125_000_000.0,
            initial_bytes: 32 * 1024,
            max_burst_bytes: 256 * 1024,
        }
    }
}

impl CongestionConfig {
    /// Whether messages ask the controller too, and not bulk alone.
    pub(crate) fn paces_messages(&self) -> bool {
        matches!(self, CongestionConfig::GoodBad(_))
    }

    /// A controller of this kind that knows nothing yet.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub(crate) fn controller(&self) -> Result<Box<dyn Controller>, ConfigError> {
        self.check()?;
        Ok(match *self {
            CongestionConfig::Fixed(budget) => Box::new(Fixed::new(budget)),
            CongestionConfig::Adaptive(config) => Box::new(Adaptive::new(config)),
            CongestionConfig::GoodBad(config) => Box::new(Binary::new(config)?),
        })
    }

    /// Whether the settings are within their bounds.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            CongestionConfig::Fixed(budget) => budget.check(),
            CongestionConfig::Adaptive(adaptive) => adaptive.check(),
            CongestionConfig::GoodBad(good_bad) => good_bad.check(),
        }
    }
}

impl Default for CongestionConfig {
    fn default() -> Self {
        CongestionConfig::Adaptive(AdaptiveConfig::default())
    }
}

impl AdaptiveConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let AdaptiveConfig { min_bytes_per_second: min, max_bytes_per_second: max, .. } = *self;
        ConfigError::unless(min.is_finite() && min > 0.0, "min_bytes_per_second", min, "above 0 and finite")?;
        let bound = "at least min_bytes_per_second and finite";
        ConfigError::unless(max.is_finite() && max >= min, "max_bytes_per_second", max, bound)?;
        ConfigError::unless(self.initial_bytes > 0, "initial_bytes", self.initial_bytes, "above 0")?;
        ConfigError::unless(self.max_burst_bytes > 0, "max_burst_bytes", self.max_burst_bytes, "above 0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
        let check = |adaptive| CongestionConfig::Adaptive(adaptive).check().map_err(|error| error.field);
        let good = AdaptiveConfig::default();
        assert_eq!(check(good), Ok(()));
        assert_eq!(
            check(AdaptiveConfig { min_bytes_per_second: f64::NAN, ..good }),
            Err("min_bytes_per_second")
        );
        assert_eq!(
            check(AdaptiveConfig { max_bytes_per_second: 3_000.0, ..good }),
            Err("max_bytes_per_second")
        );
        assert_eq!(check(AdaptiveConfig { initial_bytes: 0, ..good }), Err("initial_bytes"));
        assert_eq!(check(AdaptiveConfig { max_burst_bytes: 0, ..good }), Err("max_burst_bytes"));
        assert!(
            CongestionConfig::Fixed(RateConfig { bytes_per_second: 1.0, burst_bytes: 1.0 }).check().is_ok()
        );
    }

    /// A peer with arbitrary acks at arbitrary times: this many packets in tenths of a millisecond.
    #[test]
    fn what_goes_out_grows_by_no_more_than_five_times_in_a_round_trip_whatever_is_acked() {
        // Units of the peer's clock that pass in 100 ms: 1,563 are true.
        let clocks = [None, Some(0), Some(1), Some(40), Some(800), Some(1_563), Some(100_000), Some(262_143)];
        for (spacing, clock) in
            [0, 1, 5, 20, 125, 875].into_iter().flat_map(|it| clocks.map(|clock| (it, clock)))
        {
            let mut controller = CongestionConfig::default().controller().unwrap();
            let mut before: f64 = 40_000.0;
            let mut sent = Vec::new();
            for round in 0..8u64 {
                let mut bytes = 0.0;
                let acks: Vec<_> = core::mem::take(&mut sent);
                for step in 0..500 {
                    let now = Instant::from_nanos((10 + round * 500 + step) * 100_000);
                    let acked: Vec<_> = acks
                        .iter()
                        .enumerate()
                        .filter(|(n, _)| (*n as u64 * spacing / 100).min(499) == step)
                        .map(|(_, stamp)| (*stamp, false))
                        .collect();
                    if !acked.is_empty() {
                        let turn = round * 500 + step;
                        let received_at = clock.map(|units| ReceiveTime::from_bits(turn * units / 1_000));
                        let round_trip = RoundTrip { time: Duration::from_millis(50), received_at };
                        controller.on_acked(now, &acked, Some(round_trip));
                    }
                    while controller.can_send(now) {
                        sent.push(controller.on_sent(now, 1_200));
                        bytes += 1_200.0;
                    }
                }
                assert!(
                    bytes <= 5.0 * before,
                    "{bytes} after {before} in round trip {round}, {spacing}, clock {clock:?}"
                );
                before = before.max(bytes);
            }
        }
    }

    #[test]
    fn the_rate_stays_within_its_bounds_whatever_is_acked() {
        let config = AdaptiveConfig { max_bytes_per_second: 50_000.0, ..AdaptiveConfig::default() };
        let mut controller = CongestionConfig::Adaptive(config).controller().unwrap();
        let mut now = Instant::ZERO;
        for turn in 0..3_000u64 {
            now = Instant::from_millis(turn);
            let mut sent = Vec::new();
            while controller.can_send(now) {
                sent.push((controller.on_sent(now, 1_200), turn % 7 == 0));
            }
            let rtt = if turn % 5 == 0 { Duration::MAX } else { Duration::ZERO };
            let received_at = (turn % 3 > 0).then(|| ReceiveTime::from_bits(turn * turn * turn * 977));
            controller.on_acked(now, &sent, Some(RoundTrip { time: rtt, received_at }));
            controller.on_acked(now, &sent, None);
            sent.iter().for_each(|(stamp, _)| controller.on_lost(now, *stamp));
            assert!((4_000.0..=50_000.0).contains(&controller.rate()), "{controller:?}");
        }
        assert!(controller.next_send() > now || controller.can_send(controller.next_send()));
    }
}
