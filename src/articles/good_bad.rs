//! The simple binary congestion avoidance of the article "Reliability, Ordering and Congestion Avoidance over UDP".
//!
//! Two modes, each with a number of packets a second, and one measure, the RTT. Above the threshold, conditions are bad.
//! - In good mode, bad conditions lead to bad mode at once.
//! - In bad mode, conditions that were good for the recovery time without a break lead back to good mode.
//! - Good mode that lasted less than 10 s doubles the recovery time, up to 60 s: no rapid toggling.
//! - Each whole 10 s of good mode halves it, down to 1 s: no lasting punishment for a short disturbance.
//!
//! The article names neither the mode nor the recovery time to begin with. Here it is good mode, counted from the first
//! update, and 4 s.
//!
//! Promises: the same updates give the same modes. Refuses: to guess between updates; nothing changes but in one.

use crate::limits::ConfigError;
use crate::time::{Duration, Instant};

/// The limits and times of [`GoodBad`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoodBadConfig {
    /// Conditions are bad while the RTT is above this.
    pub bad_rtt: Duration,
    /// Packets per second in good mode.
    pub good_packets_per_second: f64,
    /// Packets per second in bad mode.
    pub bad_packets_per_second: f64,
    /// The recovery time to begin with.
    pub recovery_time: Duration,
    /// The shortest recovery time.
    pub min_recovery_time: Duration,
    /// The longest recovery time.
    pub max_recovery_time: Duration,
    /// Good mode that lasts less than this doubles the recovery time.
    pub double_below: Duration,
    /// Each time good mode has lasted this long again, the recovery time is halved.
    pub halve_every: Duration,
}

impl Default for GoodBadConfig {
    fn default() -> Self {
        GoodBadConfig {
            bad_rtt: Duration::from_millis(250),
            good_packets_per_second: 30.0,
            bad_packets_per_second: 10.0,
            recovery_time: Duration::from_secs(4),
            min_recovery_time: Duration::from_secs(1),
            max_recovery_time: Duration::from_secs(60),
            double_below: Duration::from_secs(10),
            halve_every: Duration::from_secs(10),
        }
    }
}

impl GoodBadConfig {
    /// Whether the settings are within their bounds.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::positive("good_packets_per_second", self.good_packets_per_second)?;
        ConfigError::positive("bad_packets_per_second", self.bad_packets_per_second)?;
        let default = Self::default();
        let [min, time, max] = [self.min_recovery_time, self.recovery_time, self.max_recovery_time]
            .map(|time| time.as_secs_f64());
        let [default_time, default_max] =
            [default.recovery_time, default.max_recovery_time].map(|time| time.as_secs_f64());
        let (min, time, max) =
            (("min_recovery_time", min), ("recovery_time", time), ("max_recovery_time", max));
        ConfigError::ordered(min, time, default_time)?;
        ConfigError::ordered(time, max, default_max)?;
        ConfigError::positive("halve_every", self.halve_every.as_secs_f64())
    }
}

/// Whether conditions allow the high rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Good,
    Bad,
}

/// The state that determines the mode.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Good mode since then, and the time until which its halvings are done. `None` before the first update.
    Good { since: Option<Instant>, halved_until: Instant },
    /// Bad mode, and since when conditions have been good.
    Bad { good_since: Option<Instant> },
}

/// The mode of one connection.
#[derive(Clone, Debug)]
pub struct GoodBad {
    config: GoodBadConfig,
    state: State,
    recovery_time: Duration,
}

impl GoodBad {
    /// In good mode.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn new(config: GoodBadConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let state = State::Good { since: None, halved_until: Instant::ZERO };
        Ok(GoodBad { config, state, recovery_time: config.recovery_time })
    }

    /// Takes the current RTT, and returns the mode that follows. Call it regularly, each tick or each RTT sample:
    /// conditions count as they were at the last update until the next.
    pub fn update(&mut self, now: Instant, rtt: Duration) -> Mode {
        let bad = rtt > self.config.bad_rtt;
        self.state = match self.state {
            State::Good { since, halved_until } => {
                let (since, halved_until) = since.map_or((now, now), |since| (since, halved_until));
                let halved_until = self.halve(now, halved_until);
                if bad {
                    self.leave_good(now - since)
                } else {
                    State::Good { since: Some(since), halved_until }
                }
            }
            State::Bad { .. } if bad => State::Bad { good_since: None },
            State::Bad { good_since } => {
                let good_since = good_since.unwrap_or(now);
                if now - good_since >= self.recovery_time {
                    State::Good { since: Some(now), halved_until: now }
                } else {
                    State::Bad { good_since: Some(good_since) }
                }
            }
        };
        self.mode()
    }

    fn leave_good(&mut self, lasted: Duration) -> State {
        if lasted < self.config.double_below {
            self.recovery_time = self.recovery_time.saturating_mul(2).min(self.config.max_recovery_time);
        }
        State::Bad { good_since: None }
    }

    /// Halves the recovery time for each whole period of good mode since `halved_until`. Returns the end of the last.
    fn halve(&mut self, now: Instant, halved_until: Instant) -> Instant {
        let mut periods = (now - halved_until).as_nanos() / self.config.halve_every.as_nanos();
        let rest = (now - halved_until).as_nanos() % self.config.halve_every.as_nanos();
        while periods > 0 && self.recovery_time > self.config.min_recovery_time {
            self.recovery_time = (self.recovery_time / 2).max(self.config.min_recovery_time);
            periods -= 1;
        }
        let rest = u64::try_from(rest).unwrap_or(u64::MAX);
        Instant::from_nanos(now.as_nanos().saturating_sub(rest)).max(halved_until)
    }

    pub fn mode(&self) -> Mode {
        match self.state {
            State::Good { .. } => Mode::Good,
            State::Bad { .. } => Mode::Bad,
        }
    }

    /// The packets per second of the mode.
    pub fn packets_per_second(&self) -> f64 {
        match self.mode() {
            Mode::Good => self.config.good_packets_per_second,
            Mode::Bad => self.config.bad_packets_per_second,
        }
    }

    /// How long conditions must be good in bad mode, now or next time, before good mode returns.
    pub fn recovery_time(&self) -> Duration {
        self.recovery_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: u64 = 100;
    const BAD: u64 = 300;

    fn new() -> GoodBad {
        GoodBad::new(GoodBadConfig::default()).unwrap()
    }

    /// Updates each 100 ms from `from` up to, not including, `to`, in milliseconds.
    fn play(good_bad: &mut GoodBad, from: u64, to: u64, rtt: u64) {
        for now in (from..to).step_by(100) {
            good_bad.update(Instant::from_millis(now), Duration::from_millis(rtt));
        }
    }

    fn update(good_bad: &mut GoodBad, now: u64, rtt: u64) -> Mode {
        good_bad.update(Instant::from_millis(now), Duration::from_millis(rtt))
    }

    #[test]
    fn begins_good_and_turns_bad_at_once_above_the_threshold() {
        let mut good_bad = new();
        assert_eq!((good_bad.mode(), good_bad.packets_per_second()), (Mode::Good, 30.0));
        assert_eq!(update(&mut good_bad, 0, 250), Mode::Good, "not above 250 ms");
        assert_eq!(update(&mut good_bad, 20, 251), Mode::Bad);
        assert_eq!(good_bad.packets_per_second(), 10.0);
    }

    #[test]
    fn returns_to_good_after_good_conditions_for_the_recovery_time_without_a_break() {
        let mut good_bad = new();
        play(&mut good_bad, 0, 10_000, GOOD);
        assert_eq!(update(&mut good_bad, 10_000, BAD), Mode::Bad);
        let recovery = 2000;
        assert_eq!(good_bad.recovery_time(), Duration::from_millis(recovery), "halved once, not doubled");
        play(&mut good_bad, 10_100, 12_000, GOOD);
        assert_eq!(update(&mut good_bad, 12_000, BAD), Mode::Bad, "a break: the wait begins again");
        play(&mut good_bad, 12_100, 12_100 + recovery, GOOD);
        assert_eq!(good_bad.mode(), Mode::Bad);
        assert_eq!(update(&mut good_bad, 12_100 + recovery, GOOD), Mode::Good);
    }

    #[test]
    fn a_short_good_mode_doubles_the_recovery_time_up_to_a_minute() {
        let mut good_bad = new();
        let mut now = 0;
        for expected in [8, 16, 32, 60, 60] {
            play(&mut good_bad, now, now + 9900, GOOD);
            assert_eq!(update(&mut good_bad, now + 9900, BAD), Mode::Bad, "good for 9.9 s");
            assert_eq!(good_bad.recovery_time(), Duration::from_secs(expected));
            let back = now + 10_000 + expected * 1000;
            play(&mut good_bad, now + 10_000, back, GOOD);
            assert_eq!(good_bad.mode(), Mode::Bad);
            now = back;
            assert_eq!(update(&mut good_bad, now, GOOD), Mode::Good);
        }
    }

    #[test]
    fn every_ten_seconds_of_good_mode_halve_the_recovery_time_down_to_one() {
        let config = GoodBadConfig { recovery_time: Duration::from_secs(10), ..GoodBadConfig::default() };
        let mut good_bad = GoodBad::new(config).unwrap();
        for (period, expected) in [10_000, 5000, 2500, 1250, 1000, 1000].into_iter().enumerate() {
            let from = period as u64 * 10_000;
            play(&mut good_bad, from, from + 10_000, GOOD);
            assert_eq!(good_bad.recovery_time(), Duration::from_millis(expected));
        }
    }

    #[test]
    fn a_good_mode_of_ten_seconds_is_not_short() {
        let mut good_bad = new();
        play(&mut good_bad, 0, 10_000, GOOD);
        update(&mut good_bad, 10_000, BAD);
        assert_eq!(good_bad.recovery_time(), Duration::from_secs(2));
        // Back at 12.1 s; what remained of the first good mode counts for nothing in the second.
        play(&mut good_bad, 10_100, 22_000, GOOD);
        assert_eq!(good_bad.recovery_time(), Duration::from_secs(2));
        play(&mut good_bad, 22_000, 22_200, GOOD);
        assert_eq!(good_bad.recovery_time(), Duration::from_secs(1));
    }

    #[test]
    fn rare_updates_count_every_period_between_them() {
        let mut good_bad = new();
        update(&mut good_bad, 0, GOOD);
        update(&mut good_bad, 19_999, GOOD);
        assert_eq!(good_bad.recovery_time(), Duration::from_secs(2));
        update(&mut good_bad, 20_000, GOOD);
        assert_eq!(good_bad.recovery_time(), Duration::from_secs(1));
        assert_eq!(good_bad.update(Instant::NEVER, Duration::ZERO), Mode::Good);
        assert_eq!(update(&mut good_bad, 0, BAD), Mode::Bad, "time that goes back does no harm");
    }

    #[test]
    fn every_number_can_be_set() {
        let config = GoodBadConfig {
            bad_rtt: Duration::from_millis(80),
            good_packets_per_second: 60.0,
            bad_packets_per_second: 20.0,
            recovery_time: Duration::from_millis(500),
            min_recovery_time: Duration::from_millis(200),
            max_recovery_time: Duration::from_millis(600),
            double_below: Duration::from_secs(1),
            halve_every: Duration::from_secs(2),
        };
        let mut good_bad = GoodBad::new(config).unwrap();
        assert_eq!(good_bad.packets_per_second(), 60.0);
        play(&mut good_bad, 0, 1000, 80);
        assert_eq!(update(&mut good_bad, 1000, 81), Mode::Bad);
        assert_eq!((good_bad.packets_per_second(), good_bad.recovery_time().as_millis()), (20.0, 500));
        play(&mut good_bad, 1100, 1700, 80);
        assert_eq!(good_bad.mode(), Mode::Good);
        update(&mut good_bad, 1700, 81);
        assert_eq!(good_bad.recovery_time().as_millis(), 600);
        play(&mut good_bad, 1800, 10_000, 80);
        assert_eq!(good_bad.recovery_time().as_millis(), 200);
    }

    #[test]
    fn settings_out_of_bounds_are_named() {
        let complaint = |config: GoodBadConfig| GoodBad::new(config).unwrap_err().to_string();
        let usual = GoodBadConfig::default;
        let seconds = Duration::from_secs;
        assert_eq!(
            complaint(GoodBadConfig { recovery_time: seconds(61), ..usual() }),
            "recovery_time must be at most max_recovery_time (60), not 61"
        );
        assert_eq!(
            complaint(GoodBadConfig { min_recovery_time: seconds(61), ..usual() }),
            "min_recovery_time must be at most recovery_time (4), not 61"
        );
        assert_eq!(
            complaint(GoodBadConfig { bad_packets_per_second: 0.0, ..usual() }),
            "bad_packets_per_second must be above 0 and finite, not 0"
        );
        assert_eq!(
            complaint(GoodBadConfig { halve_every: seconds(0), ..usual() }),
            "halve_every must be above 0 and finite, not 0"
        );
    }
}
