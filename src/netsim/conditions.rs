//! How a link misbehaves.

use core::fmt;

pub use super::bottleneck::{Bottleneck, DEFAULT_QUEUE, MAX_QUEUE, MAX_RATE};
pub use super::bursts::Bursts;
pub use super::outages::Outages;
pub use super::random_walk::RandomWalk;
use crate::exact::short;
use crate::time::Duration;

/// The maximum of a latency, delay or mean time, an hour: a longer one is a mistake in the settings.
pub const MAX_DELAY: Duration = Duration::from_secs(3600);

/// What the headers of IPv4 (20) and UDP (8) add to a datagram.
const DEFAULT_OVERHEAD: u64 = 20 + 8;

/// The maximum of bytes that headers add.
pub const MAX_OVERHEAD: u64 = 65_535;

/// The maximum of a datagram's size limit.
pub const MAX_DATAGRAM: u64 = 65_535;

/// What a link does to packets in one direction. The default is a perfect link.
///
/// A packet first waits at the bottleneck. Then outages, bursts and independent losses may drop it: **even a lost
/// packet has taken its time on the link.** Then it may be duplicated; the copy takes no room at the bottleneck. Last
/// it takes its time to arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Conditions {
    /// Rate and queue of the slowest part; None: any number of bytes pass at once.
    pub bottleneck: Option<Bottleneck>,
    /// Bytes that headers add to each packet at the bottleneck.
    pub overhead: u64,
    /// The largest datagram that passes, without headers; larger ones vanish and their sender isn't told, as on a path
    /// with a smaller MTU and filtered ICMP. None: all pass.
    pub max_datagram: Option<u64>,
    /// Times at which nothing passes.
    pub outages: Option<Outages>,
    pub bursts: Option<Bursts>,
    /// The probability that a packet is lost independently.
    pub loss: f64,
    /// The probability that a packet arrives twice, each copy with its own jitter.
    pub duplicate: f64,
    /// The time a packet takes once it has left the queue.
    pub latency: Duration,
    /// The maximum difference of a packet's time from the latency: drawn for each packet, uniform in latency ± jitter,
    /// so packets may overtake each other.
    pub jitter: Duration,
    /// Correlated jitter: a delay that is similar for neighbouring packets, in addition to the jitter. It reorders
    /// nothing.
    pub random_walk: Option<RandomWalk>,
    /// The probability that a packet is held back by `reorder_delay` more.
    pub reorder: f64,
    /// How long packets picked by `reorder` are held back.
    pub reorder_delay: Duration,
}

impl Default for Conditions {
    fn default() -> Self {
        Conditions {
            bottleneck: None,
            overhead: DEFAULT_OVERHEAD,
            max_datagram: None,
            outages: None,
            bursts: None,
            loss: 0.0,
            duplicate: 0.0,
            latency: Duration::ZERO,
            jitter: Duration::ZERO,
            random_walk: None,
            reorder: 0.0,
            reorder_delay: Duration::ZERO,
        }
    }
}

impl Conditions {
    /// A perfect link: no delay, no loss, no limit.
    pub fn perfect() -> Self {
        Self::default()
    }

    /// With a rate in bytes a second, and a queue of this many bytes.
    pub fn rate(self, rate: u64, queue: u64) -> Self {
        Conditions { bottleneck: Some(Bottleneck { rate, queue }), ..self }
    }

    /// With this many bytes added to each packet at the bottleneck.
    pub fn overhead(self, bytes: u64) -> Self {
        Conditions { overhead: bytes, ..self }
    }

    /// With larger datagrams vanishing.
    pub fn max_datagram(self, bytes: u64) -> Self {
        Conditions { max_datagram: Some(bytes), ..self }
    }

    /// With outages of this mean duration, for this fraction of the time.
    pub fn outages(self, duration: Duration, fraction: f64) -> Self {
        Conditions { outages: Some(Outages { duration, fraction }), ..self }
    }

    /// With losses in bursts.
    pub fn bursts(self, bursts: Bursts) -> Self {
        Conditions { bursts: Some(bursts), ..self }
    }

    /// With this probability of independent loss.
    pub fn loss(self, probability: f64) -> Self {
        Conditions { loss: probability, ..self }
    }

    /// With this probability of a second copy.
    pub fn duplicate(self, probability: f64) -> Self {
        Conditions { duplicate: probability, ..self }
    }

    /// With this latency, and a time uniform in latency ± jitter for each packet.
    pub fn latency(self, latency: Duration, jitter: Duration) -> Self {
        Conditions { latency, jitter, ..self }
    }

    /// With a delay that walks at random within ± `range` and stays similar for about `memory`.
    pub fn random_walk(self, range: Duration, memory: Duration) -> Self {
        Conditions { random_walk: Some(RandomWalk { range, memory }), ..self }
    }

    /// With this probability that a packet is delayed by `delay` more.
    pub fn reorder(self, probability: f64, delay: Duration) -> Self {
        Conditions { reorder: probability, reorder_delay: delay, ..self }
    }

    /// Whether the conditions are valid.
    ///
    /// # Errors
    /// The first setting out of its bounds.
    pub fn check(&self) -> Result<(), ConditionsError> {
        time("latency", self.latency, Duration::ZERO)?;
        time("reorder_delay", self.reorder_delay, Duration::ZERO)?;
        let random_walk = self.random_walk.map_or(Duration::ZERO, |random_walk| random_walk.range);
        if self.jitter.saturating_add(random_walk) > self.latency {
            let (jitter, latency) = (self.jitter, self.latency);
            return Err(ConditionsError::Jitter { jitter, random_walk, latency });
        }
        probability("loss", self.loss)?;
        probability("duplicate", self.duplicate)?;
        probability("reorder", self.reorder)?;
        within("overhead", self.overhead, 0, MAX_OVERHEAD)?;
        self.max_datagram.map_or(Ok(()), |bytes| within("max_datagram", bytes, 1, MAX_DATAGRAM))?;
        self.bottleneck.map_or(Ok(()), |bottleneck| bottleneck.check())?;
        self.outages.map_or(Ok(()), |outages| outages.check())?;
        self.bursts.map_or(Ok(()), |bursts| bursts.check())?;
        self.random_walk.map_or(Ok(()), |random_walk| random_walk.check())
    }
}

pub(super) fn time(field: &'static str, value: Duration, least: Duration) -> Result<(), ConditionsError> {
    if (least..=MAX_DELAY).contains(&value) {
        Ok(())
    } else {
        Err(ConditionsError::Time { field, value, least })
    }
}

pub(super) fn probability(field: &'static str, value: f64) -> Result<(), ConditionsError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(ConditionsError::Probability { field, value }) }
}

pub(super) fn within(field: &'static str, value: u64, least: u64, most: u64) -> Result<(), ConditionsError> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(ConditionsError::Bytes { field, value, least, most })
    }
}

/// Conditions that are out of their bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConditionsError {
    /// A time is too short, or longer than [`MAX_DELAY`].
    Time {
        /// The name of the setting.
        field: &'static str,
        /// The value that was set.
        value: Duration,
        /// The minimum that it allows.
        least: Duration,
    },
    /// A packet could arrive before it is sent.
    Jitter {
        jitter: Duration,
        /// The range of the randomly walking delay.
        random_walk: Duration,
        /// The maximum of both together.
        latency: Duration,
    },
    /// A probability is not between 0 and 1.
    Probability {
        /// The name of the setting.
        field: &'static str,
        /// The value that was set.
        value: f64,
    },
    /// A number of bytes, or of bytes a second, is out of its bounds.
    Bytes {
        /// The name of the setting.
        field: &'static str,
        /// The value that was set.
        value: u64,
        /// The minimum that it allows.
        least: u64,
        /// The maximum that it allows.
        most: u64,
    },
    /// The mean length of bursts is not a number of packets.
    BurstLength {
        /// The value that was set.
        value: f64,
    },
    /// Bursts of that length can't lose this much.
    BurstLoss {
        /// What the loss was set to.
        value: f64,
        /// The mean length of the bursts.
        length: f64,
        /// The most that the loss may be with it.
        bound: f64,
    },
}

impl fmt::Display for ConditionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionsError::Time { field, value, least } => {
                write!(f, "{field} must be {least:?} to {MAX_DELAY:?}, not {value:?}")
            }
            ConditionsError::Jitter { jitter, random_walk: Duration::ZERO, latency } => {
                write!(f, "jitter must be at most the latency, {latency:?}, not {jitter:?}")
            }
            ConditionsError::Jitter { jitter, random_walk, latency } => write!(
                f,
                "jitter and random_walk together must be at most the latency, {latency:?}, not {jitter:?} and {random_walk:?}"
            ),
            ConditionsError::Probability { field, value } => {
                write!(f, "{field} must be a probability, 0 to 1, not {}", short(*value))
            }
            ConditionsError::Bytes { field: "rate", value, least, most } => {
                write!(f, "rate must be {least} to {most} bytes per second, not {value}")
            }
            ConditionsError::Bytes { field, value, least, most } => {
                write!(f, "{field} must be {least} to {most} bytes, not {value}")
            }
            ConditionsError::BurstLength { value } => {
                write!(f, "length must be 1 to 1e9 packets, the mean of bursts, not {}", short(*value))
            }
            ConditionsError::BurstLoss { value, length, bound } => {
                write!(f, "loss must be 0 to {bound} by bursts of {length} packets, not {}", short(*value))
            }
        }
    }
}

impl std::error::Error for ConditionsError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn conditions_that_cannot_be_met_are_named() {
        let message = |conditions: Conditions| conditions.check().unwrap_err().to_string();
        let perfect = Conditions::perfect();
        assert_eq!(perfect.check(), Ok(()));
        assert_eq!(message(perfect.loss(1.5)), "loss must be a probability, 0 to 1, not 1.5");
        assert_eq!(message(perfect.duplicate(f64::NAN)), "duplicate must be a probability, 0 to 1, not NaN");
        assert_eq!(
            message(perfect.latency(ms(5), ms(6))),
            "jitter must be at most the latency, 5ms, not 6ms"
        );
        assert_eq!(
            message(perfect.latency(ms(5), ms(3)).random_walk(ms(4), ms(100))),
            "jitter and random_walk together must be at most the latency, 5ms, not 3ms and 4ms"
        );
        assert_eq!(
            message(perfect.latency(ms(5), ms(0)).random_walk(ms(4), ms(0))),
            "time must be 1µs to 3600s, not 0ns"
        );
        assert_eq!(
            message(perfect.reorder(0.1, ms(3_600_001))),
            "reorder_delay must be 0ns to 3600s, not 3600.001s"
        );
        assert_eq!(message(perfect.rate(0, 1)), "rate must be 1 to 12500000000 bytes per second, not 0");
        assert_eq!(message(perfect.rate(1, 0)), "queue must be 1 to 1073741824 bytes, not 0");
        assert_eq!(message(perfect.overhead(65_536)), "overhead must be 0 to 65535 bytes, not 65536");
        assert_eq!(message(perfect.max_datagram(0)), "max_datagram must be 1 to 65535 bytes, not 0");
        assert_eq!(message(perfect.outages(ms(0), 0.1)), "duration of outages must be 1µs to 3600s, not 0ns");
        assert_eq!(
            message(perfect.outages(ms(1), 1.1)),
            "fraction of outages must be a probability, 0 to 1, not 1.1"
        );
        let bursts = Bursts { to_bad: -0.1, ..Bursts::mean(0.1, 2.0).unwrap() };
        assert_eq!(message(perfect.bursts(bursts)), "to_bad must be a probability, 0 to 1, not -0.1");
    }
}
