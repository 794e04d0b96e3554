//! The settings of packets: their size, their fragments and their acks.

use super::fragment::{
    FRAGMENT_HEADER_SIZE, Fragment, FragmentError, MAX_FRAGMENTS, ReassemblyConfig, check_window,
};
use super::header::{Header, HeaderError};
use super::numbered;
use crate::exact::short;
use crate::limits::ConfigError;
use crate::limits::{DEFAULT_MTU, MAX_PAYLOAD, MIN_MTU, PAYLOAD_OVERHEAD};
use crate::time::Duration;
use crate::transport::ledger::acks::FullHeader;
use crate::transport::ledger::estimate::RTT_HISTORY;

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
    /// By default, a packet counts as lost if it isn't acked within this time.
    pub const DEFAULT_TIME: Duration = Duration::from_secs(1);
}

// Settings of `Acks`.
#[derive(Clone, Debug, PartialEq)]
pub struct AcksConfig {
    /// Sent packets remembered, at first: at `max_window`, more than rate x RTT, or packets count as lost before their ack can
    /// come.
    pub sent_window: usize,
    /// The initial window of received packets: how far behind the newest a packet may arrive.
    pub received_window: usize,
    /// The limit of both windows: that of sent packets may grow to four times those in flight, that of received ones
    /// to twice those whose acks the peer may lack. None: both keep their size.
    pub max_window: Option<usize>,
    /// When a packet counts as lost.
    pub loss_bound: LossBound,
    /// Also count a packet as lost once one that was sent later is acked, and later by more than the link has
    /// been seen to reorder (after RACK, RFC 8985).
    pub early_loss: bool,
    /// The fraction by which each sample moves the RTT, above 0 and at most 1.
    pub rtt_smoothing: f64,
    /// Round trips remembered for the minimum, maximum and mean.
    pub rtt_history: usize,
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
            max_window: Some(16_384),
            loss_bound: LossBound::After(LossBound::DEFAULT_TIME),
            early_loss: false,
            rtt_smoothing: 0.1,
            rtt_history: RTT_HISTORY,
            in_order_only: false,
        }
    }
}

impl AcksConfig {
    /// reliable's own defaults: windows of 256 that keep their size, an RTT that follows by 0.25 % a sample.
    pub fn standard() -> Self {
        AcksConfig {
            sent_window: 256,
            received_window: 256,
            max_window: None,
            rtt_smoothing: 0.0025,
            rtt_history: 512,
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
        check_window("max_window", self.max_window.unwrap_or(self.sent_window))?;
        let smoothing = self.rtt_smoothing;
        ConfigError::unless(
            smoothing > 0.0 && smoothing <= 1.0,
            "rtt_smoothing",
            short(smoothing),
            "above 0, up to 1",
        )?;
        if let LossBound::Rtt { multiple, .. } = self.loss_bound {
            ConfigError::positive("loss_bound.multiple", multiple)?;
        }
        Ok(())
    }
}

/// Settings of an [`AckEndpoint`](crate::transport::ack_endpoint::AckEndpoint).
#[derive(Clone, Debug, PartialEq)]
pub struct AckEndpointConfig {
    pub max_packet_size: usize,
    /// Payloads longer than this are sent in fragments.
    pub fragment_above: usize,
    /// The reassembly of fragments. Both ends need the same fragment size and count.
    pub reassembly: ReassemblyConfig,
    pub acks: AcksConfig,
    /// Bytes that the layers below add to each datagram (IP, UDP, ...), counted in bandwidth.
    pub overhead: u32,
    pub header: HeaderKind,
}

/// The header of packets, and where their numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// reliable 1.0's header, with the low 16 bits of the endpoint's own number.
    Standard,
    /// The header of our own framing. The layer below numbers the packets.
    Numbered,
}

impl HeaderKind {
    /// Appends the header of a whole packet.
    pub(in crate::transport) fn write(self, header: &FullHeader, out: &mut Vec<u8>) {
        match self {
            HeaderKind::Standard => Header::from(*header).write(out),
            HeaderKind::Numbered => numbered::write(header, None, out),
        }
    }

    /// Appends a fragment with its headers.
    pub(in crate::transport) fn write_fragment(self, fragment: &Fragment<'_>, out: &mut Vec<u8>) {
        match self {
            HeaderKind::Standard => fragment.write(out),
            HeaderKind::Numbered => numbered::write_fragment(fragment, out),
        }
    }

    /// Reads the header of a datagram that came under this number; returns the payload, too. `received` and `sent` are the
    /// newest packets of the peer and of this side.
    ///
    /// # Errors
    /// When the datagram isn't a packet.
    pub(in crate::transport) fn read(
        self,
        number: u64,
        datagram: &[u8],
        (received, sent): (u64, u64),
    ) -> Result<(FullHeader, &[u8]), HeaderError> {
        match self {
            HeaderKind::Standard => {
                let (header, bytes) = Header::read(datagram)?;
                Ok((header.unwrap(received, sent), &datagram[bytes..]))
            }
            HeaderKind::Numbered => numbered::read(number, datagram, sent),
        }
    }

    /// Reads a fragment, with the parameters of [`HeaderKind::read`].
    ///
    /// # Errors
    /// When the datagram isn't a fragment.
    pub(in crate::transport) fn read_fragment<'d>(
        self,
        number: u64,
        datagram: &'d [u8],
        config: &ReassemblyConfig,
        (received, sent): (u64, u64),
    ) -> Result<Fragment<'d>, FragmentError> {
        let ReassemblyConfig { fragment_size, max_fragments, .. } = *config;
        match self {
            HeaderKind::Standard => Fragment::read(datagram, fragment_size, max_fragments, (received, sent)),
            HeaderKind::Numbered => {
                numbered::read_fragment(number, datagram, sent, fragment_size, max_fragments)
            }
        }
    }
}

/// IPv4 and UDP headers.
const IPV4_UDP_OVERHEAD: u32 = 20 + 8;

impl AckEndpointConfig {
    /// reliable's own defaults: packets up to 16 KiB in fragments of 1 KiB.
    pub fn standard() -> Self {
        AckEndpointConfig {
            max_packet_size: 16 * 1024,
            fragment_above: 1024,
            reassembly: ReassemblyConfig {
                window: 64,
                fragment_size: 1024,
                max_fragments: 16,
                max_bytes: 64 * 16 * 1024,
            },
            acks: AcksConfig::standard(),
            overhead: IPV4_UDP_OVERHEAD,
            header: HeaderKind::Standard,
        }
    }

    /// Packets up to 256 KiB. Each datagram fits a netcode payload.
    pub fn large() -> Self {
        AckEndpointConfig {
            max_packet_size: MAX_FRAGMENTS * 1024,
            fragment_above: MAX_PAYLOAD - Header::MAX_SIZE,
            reassembly: ReassemblyConfig {
                window: 64,
                fragment_size: 1024,
                max_fragments: MAX_FRAGMENTS,
                max_bytes: 8 * MAX_FRAGMENTS * 1024,
            },
            acks: AcksConfig::default(),
            overhead: IPV4_UDP_OVERHEAD,
            header: HeaderKind::Standard,
        }
    }

    /// With each datagram in an IP packet of at most `mtu` bytes.
    ///
    /// # Errors
    /// Below [`MIN_MTU`] or above [`DEFAULT_MTU`].
    pub fn with_mtu(self, mtu: usize) -> Result<Self, ConfigError> {
        ConfigError::within("mtu", mtu, MIN_MTU, DEFAULT_MTU)?;
        let payload = MAX_PAYLOAD.min(mtu - PAYLOAD_OVERHEAD);
        Ok(AckEndpointConfig {
            fragment_above: self.fragment_above.min(payload - numbered::MAX_SIZE),
            ..self
        })
    }

    pub(in crate::transport) fn check(&self) -> Result<(), ConfigError> {
        let bytes = self.max_packet_size;
        let reachable =
            self.fragment_above.max(self.reassembly.fragment_size * self.reassembly.max_fragments);
        let bound =
            format!("1 to {reachable} (fragment_above or fragment_size x max_fragments, whichever is more)");
        ConfigError::unless((1..=reachable).contains(&bytes), "max_packet_size", bytes, bound)
    }

    /// The longest datagram a peer with the same settings sends.
    pub(in crate::transport) fn max_datagram(&self) -> usize {
        self.max_packet_size + FRAGMENT_HEADER_SIZE + Header::MAX_SIZE
    }
}

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
