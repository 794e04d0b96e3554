//! Congestion control of bulk: one controller for each connection, which gets each packet's outcome. `MODEL.md` explains it.
//!
//! Promises: constant work and memory per packet; the same calls give the same answers; whatever the peer acks, the
//! rate stays between the configured minimum and maximum. Refuses to decide what is sent, or that a packet is lost;
//! the connection does both. Messages don't ask: they are charged, and bulk yields.
//!
//! A peer that acks falsely changes the rate at which it is sent to, only up to the configured maximum.

mod adaptive;
mod ceiling;
mod competition;
mod constants;
mod delay;
mod delivery;
mod flight;
#[cfg(test)]
mod link_tests;
mod loss;
mod share_test;
#[cfg(test)]
mod simulation;
mod startup;

pub(crate) use self::adaptive::Adaptive;
use super::peer_clock::ReceiveTime;
use crate::limits::ConfigError;
use crate::time::{Duration, Instant};

/// A controller's record of a packet: kept by the connection until its outcome is known, and given back then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SentStamp {
    sent_at: Instant,
    bytes: u32,
    /// Asked for with [`Adaptive::can_send`].
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

/// How fast bulk may go out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CongestionConfig {
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

impl Default for CongestionConfig {
    /// 4 KB/s to 125 MB/s (1 Gbit/s), 32 KiB at the start, and bursts of 256 KiB: a tick of 60 Hz at 120 Mbit/s.
    ///
    /// 32 KiB are 27 packets, and not the ten of RFC 6928: of a burst they go out at once, and otherwise over 25 ms, which is
    /// 10 Mbit/s.
    fn default() -> Self {
        CongestionConfig {
            min_bytes_per_second: 4_000.0,
            max_bytes_per_second: 125_000_000.0,
            initial_bytes: 32 * 1024,
            max_burst_bytes: 256 * 1024,
        }
    }
}

impl CongestionConfig {
    /// Whether the settings are within their bounds.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        let CongestionConfig { min_bytes_per_second: min, max_bytes_per_second: max, .. } = *self;
        ConfigError::positive("min_bytes_per_second", min)?;
        ConfigError::positive("max_bytes_per_second", max)?;
        let default_max = Self::default().max_bytes_per_second;
        ConfigError::ordered(("min_bytes_per_second", min), ("max_bytes_per_second", max), default_max)?;
        ConfigError::unless(self.initial_bytes > 0, "initial_bytes", self.initial_bytes, "above 0")?;
        ConfigError::unless(self.max_burst_bytes > 0, "max_burst_bytes", self.max_burst_bytes, "above 0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
        let check = |config: CongestionConfig| config.check().map_err(|error| error.field);
        let good = CongestionConfig::default();
        assert_eq!(check(good), Ok(()));
        assert_eq!(
            check(CongestionConfig { min_bytes_per_second: f64::NAN, ..good }),
            Err("min_bytes_per_second")
        );
        assert_eq!(
            check(CongestionConfig { max_bytes_per_second: 3_000.0, ..good }),
            Err("max_bytes_per_second")
        );
        assert_eq!(
            CongestionConfig { min_bytes_per_second: 2e8, ..good }.check().unwrap_err().to_string(),
            "min_bytes_per_second must be at most max_bytes_per_second (125000000), not 200000000"
        );
        assert_eq!(check(CongestionConfig { initial_bytes: 0, ..good }), Err("initial_bytes"));
        assert_eq!(check(CongestionConfig { max_burst_bytes: 0, ..good }), Err("max_burst_bytes"));
    }

    /// A peer with arbitrary acks at arbitrary times: this many packets in tenths of a millisecond.
    #[test]
    fn what_goes_out_grows_by_no_more_than_five_times_in_a_round_trip_whatever_is_acked() {
        // Units of the peer's clock that pass in 100 ms: 1,563 are true.
        let clocks = [None, Some(0), Some(1), Some(40), Some(800), Some(1_563), Some(100_000), Some(262_143)];
        for (spacing, clock) in
            [0, 1, 5, 20, 125, 875].into_iter().flat_map(|it| clocks.map(|clock| (it, clock)))
        {
            let mut controller = Adaptive::new(CongestionConfig::default());
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
        let config = CongestionConfig { max_bytes_per_second: 50_000.0, ..CongestionConfig::default() };
        let mut controller = Adaptive::new(config);
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
            sent.iter().for_each(|(stamp, _)| controller.on_lost(*stamp));
            assert!((4_000.0..=50_000.0).contains(&controller.rate()), "{controller:?}");
        }
        assert!(controller.next_send() > now || controller.can_send(controller.next_send()));
    }
}
