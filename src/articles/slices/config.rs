//! The settings of both ends.

use super::packet::Format;
use super::{DEFAULT_MAX_SLICES, MAX_SLICES, SLICE_BYTES};
use crate::limits::ConfigError;
use crate::time::Duration;

/// IPv4 and UDP headers.
const IPV4_UDP_OVERHEAD: usize = 20 + 8;

/// The most that layers below may be said to add to a packet: no datagram has more.
const MAX_OVERHEAD: usize = 65_535;

/// The shortest delay between two packets about the same thing. Less is a packet for every call.
pub(super) const MIN_DELAY_SECONDS: Duration = Duration::from_millis(1);

/// The longest delay: a longer one is a mistake in the settings.
pub(super) const MAX_DELAY_SECONDS: Duration = Duration::from_secs(60);

/// Settings of a [`ChunkSender`](super::ChunkSender).
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkSenderConfig {
    /// The most slices of a chunk, the same at both ends: up to [`MAX_SLICES`].
    pub max_slices: usize,
    /// Bytes per second, headers included.
    pub bytes_per_second: f64,
    /// The most that unused bytes add up to, and so the most that is sent at once after a pause. `None`: a tenth of a
    /// second's worth and one packet, so that ten ticks a second are enough to use the whole rate.
    pub accumulator_bytes: Option<usize>,
    /// Bytes that the layers below add to each packet (IP, UDP, ...), counted as sent.
    pub overhead: usize,
    /// The least time between two sends of the same slice, while no RTT is given.
    pub resend_delay: Duration,
    /// Chunks that wait behind the one in flight.
    pub max_queued: usize,
    /// The largest chunk that may be sent in an initial burst.
    pub initial_burst_bytes: usize,
    /// How long nothing is sent after an initial burst.
    pub initial_burst_wait: Duration,
}

impl ChunkSenderConfig {
    /// 256 kbit/s: a rate for while a game is being played.
    const CONSERVATIVE: f64 = 32_000.0;

    /// What the accumulator holds at most, at a rate of `bytes_per_second`.
    pub(super) fn accumulator(&self, bytes_per_second: f64) -> f64 {
        match self.accumulator_bytes {
            Some(bytes) => bytes as f64,
            None => bytes_per_second / 10.0 + self.longest_packet() as f64,
        }
    }

    fn longest_packet(&self) -> usize {
        Format::new(self.max_slices).longest_slice_packet() + self.overhead
    }

    /// Whether the settings are within their bounds.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::within("max_slices", self.max_slices, 1, MAX_SLICES)?;
        ConfigError::positive("bytes_per_second", self.bytes_per_second)?;
        ConfigError::within("overhead", self.overhead, 0, MAX_OVERHEAD)?;
        if let Some(bytes) = self.accumulator_bytes {
            // With less, no slice would ever be sent.
            ConfigError::within("accumulator_bytes", bytes, self.longest_packet(), usize::MAX)?;
        }
        ConfigError::within("resend_delay", self.resend_delay, MIN_DELAY_SECONDS, MAX_DELAY_SECONDS)?;
        ConfigError::within("max_queued", self.max_queued, 1, usize::from(u16::MAX))?;
        ConfigError::within("initial_burst_bytes", self.initial_burst_bytes, 0, MAX_SLICES * SLICE_BYTES)?;
        ConfigError::within("initial_burst_wait", self.initial_burst_wait, Duration::ZERO, MAX_DELAY_SECONDS)
    }
}

impl Default for ChunkSenderConfig {
    /// The article's numbers, with its conservative rate; initial bursts of up to 256 KiB.
    fn default() -> Self {
        ChunkSenderConfig {
            max_slices: DEFAULT_MAX_SLICES,
            bytes_per_second: Self::CONSERVATIVE,
            accumulator_bytes: None,
            overhead: IPV4_UDP_OVERHEAD,
            resend_delay: Duration::from_millis(100),
            max_queued: 64,
            initial_burst_bytes: DEFAULT_MAX_SLICES * SLICE_BYTES,
            initial_burst_wait: Duration::from_millis(100),
        }
    }
}

/// Settings of a [`ChunkReceiver`](super::ChunkReceiver).
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkReceiverConfig {
    /// The most slices of a chunk, the same at both ends: up to [`MAX_SLICES`]. It bounds the memory.
    pub max_slices: usize,
    /// The least time between two acks.
    pub ack_interval: Duration,
    /// Bytes that the layers below add to each packet (IP, UDP, ...), counted in slices and in acks.
    pub overhead: usize,
}

impl ChunkReceiverConfig {
    /// Whether the settings are within their bounds.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::within("max_slices", self.max_slices, 1, MAX_SLICES)?;
        ConfigError::within("ack_interval", self.ack_interval, MIN_DELAY_SECONDS, MAX_DELAY_SECONDS)?;
        ConfigError::within("overhead", self.overhead, 0, MAX_OVERHEAD)
    }
}

impl Default for ChunkReceiverConfig {
    /// The article's numbers: an ack each 50 ms at most.
    fn default() -> Self {
        ChunkReceiverConfig {
            max_slices: DEFAULT_MAX_SLICES,
            ack_interval: Duration::from_millis(50),
            overhead: IPV4_UDP_OVERHEAD,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_bounds_are_named() {
        let sender = ChunkSenderConfig::default;
        let error = ChunkSenderConfig { max_slices: 8193, ..sender() }.check().unwrap_err();
        assert_eq!(error.to_string(), "max_slices must be 1 to 8192, not 8193");
        let error = ChunkSenderConfig { bytes_per_second: f64::NAN, ..sender() }.check().unwrap_err();
        assert_eq!(error.to_string(), "bytes_per_second must be above 0 and finite, not NaN");
        let error = ChunkSenderConfig { resend_delay: Duration::ZERO, ..sender() }.check().unwrap_err();
        assert_eq!(error.to_string(), "resend_delay must be 1ms to 60s, not 0ns");
        let receiver = ChunkReceiverConfig::default;
        let error = ChunkReceiverConfig { ack_interval: Duration::MAX, ..receiver() }.check().unwrap_err();
        assert_eq!(error.field, "ack_interval");
        assert_eq!((sender().check(), receiver().check()), (Ok(()), Ok(())));
    }

    #[test]
    fn an_accumulator_too_small_for_a_packet_is_refused() {
        let config = |bytes| ChunkSenderConfig { accumulator_bytes: Some(bytes), ..Default::default() };
        // Kind, chunk id, slice id, slice count and byte count take 43 bits.
        let packet = 6 + SLICE_BYTES + IPV4_UDP_OVERHEAD;
        assert_eq!(config(packet - 1).check().unwrap_err().field, "accumulator_bytes");
        assert_eq!(config(packet).check(), Ok(()));
    }
}
