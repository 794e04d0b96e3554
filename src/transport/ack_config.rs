//! The settings of acks, and the error that every setting of the transport is refused with.

use crate::store::SequenceBuffer;
use crate::time::Duration;
use core::fmt;

/// When a packet that is not acked counts as lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossBound {
    /// This long after it was sent.
    After(Duration),
    /// This many smoothed round trips after it was sent, but never sooner than `at_least`. Until a round trip
    /// was measured, [`LossBound::DEFAULT_TIME`].
    Rtt {
        /// Round trips to wait.
        multiple: f64,
        /// The least time to wait.
        at_least: Duration,
    },
}

impl LossBound {
    /// What counts as lost when nothing is set: not acked in one second.
    pub const DEFAULT_TIME: Duration = Duration::from_secs(1);
}

/// How packet loss and bandwidth are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimation {
    /// As reliable 1.0 does, value for value: from the older half of the windows, by default the packets 128 to 256 packets
    /// ago. What is sent counts
    /// without the packet header, what is received in fragments counts as one datagram.
    Standard,
    /// From the last seconds, every byte counted that goes over the wire.
    Recent,
}

/// Settings of [`Acks`](super::acks::Acks).
#[derive(Clone, Debug, PartialEq)]
pub struct AcksConfig {
    /// Sent packets remembered, at first: at `max_window`, more than rate x RTT, or packets count as lost before their ack can
    /// come.
    pub sent_window: usize,
    /// Received packets remembered, at first: how far behind the newest a packet may arrive.
    pub received_window: usize,
    /// What both windows may grow to: that of sent packets to four times those in flight, that of received ones to twice those
    /// whose acks the peer may not have.
    pub max_window: usize,
    /// When a packet counts as lost.
    pub loss_bound: LossBound,
    /// Also count a packet as lost once one that was sent later is acked, and later by more than the link has
    /// been seen to reorder (after RACK, RFC 8985).
    pub early_loss: bool,
    /// The fraction by which each sample moves the RTT, above 0 and at most 1.
    pub rtt_smoothing: f64,
    /// How packet loss and bandwidth are estimated.
    pub estimation: Estimation,
    /// Refuse packets older than the newest received one: such packets are not acked either.
    pub in_order_only: bool,
}

impl Default for AcksConfig {
    /// For our own framing: windows of 64 packets sent (20 bytes each) and 1,024 received (a bit each) that grow to 16,384, an
    /// RTT that follows by 10 % a sample, estimates of the last seconds.
    fn default() -> Self {
        AcksConfig {
            sent_window: 64,
            received_window: 1024,
            max_window: 16_384,
            loss_bound: LossBound::After(LossBound::DEFAULT_TIME),
            early_loss: false,
            rtt_smoothing: 0.1,
            estimation: Estimation::Recent,
            in_order_only: false,
        }
    }
}

impl AcksConfig {
    /// reliable's own defaults: windows of 256, an RTT that follows by 0.25 % a sample.
    pub fn standard() -> Self {
        AcksConfig {
            sent_window: 256,
            received_window: 256,
            max_window: 256,
            rtt_smoothing: 0.0025,
            estimation: Estimation::Standard,
            ..Self::default()
        }
    }

    /// Whether the settings are within their bounds.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_window("sent_window", self.sent_window)?;
        check_window("received_window", self.received_window)?;
        check_window("max_window", self.max_window)?;
        let smoothing = self.rtt_smoothing;
        ConfigError::unless(
            smoothing > 0.0 && smoothing <= 1.0,
            "rtt_smoothing",
            smoothing,
            "above 0, up to 1",
        )?;
        if let LossBound::Rtt { multiple, .. } = self.loss_bound {
            let valid = multiple.is_finite() && multiple > 0.0;
            ConfigError::unless(valid, "loss_bound.multiple", multiple, "above 0 and finite")?;
        }
        Ok(())
    }
}

pub(super) fn check_window(field: &'static str, capacity: usize) -> Result<(), ConfigError> {
    let valid = SequenceBuffer::<()>::valid_capacity(capacity);
    ConfigError::unless(valid, field, capacity, "a power of two up to 32768")
}

/// A setting out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The name of the setting.
    pub field: &'static str,
    /// The value it was given.
    pub value: String,
    /// What it must be.
    pub bound: &'static str,
}

impl ConfigError {
    /// An error about `field`, unless its value is `valid`.
    pub(super) fn unless(
        valid: bool,
        field: &'static str,
        value: impl fmt::Display,
        bound: &'static str,
    ) -> Result<(), ConfigError> {
        if valid { Ok(()) } else { Err(ConfigError { field, value: value.to_string(), bound }) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}, not {}", self.field, self.bound, self.value)
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_bounds_are_named() {
        let error = AcksConfig { sent_window: 1000, ..AcksConfig::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "sent_window must be a power of two up to 32768, not 1000");
        let error = AcksConfig { rtt_smoothing: 0.0, ..AcksConfig::default() }.check().unwrap_err();
        assert_eq!(error.field, "rtt_smoothing");
    }
}
