//! The differences between Tickwire's own packets and yojimbo's: when packets are composed, and how they are written and read.

use core::fmt::Debug;

use super::conversation::Conversation;
use super::{ConnectionConfig, End, native, yojimbo};
use crate::limits::ConfigError;
use crate::limits::MAX_PAYLOAD;
use crate::time::{Duration, Instant};
use crate::transport::ack_endpoint::Incoming;
use crate::transport::direct_tables::DirectTables;
use crate::transport::framing::CloseReason;
use crate::transport::outlet::Outlet;
use crate::transport::packet::{HeaderKind, numbered};
use crate::transport::protocol::{MAX_CONTROL_BYTES, Protocol};
use crate::transport::stream::Fill;

/// Connections needn't be visited more often between ticks, unless something arrives.
pub(super) const GRAIN: Duration = Duration::from_millis(1);

/// The framing of one connection, with the state that only this framing has.
pub(super) trait Framing: Debug + Send + Sync {
    /// Appends the packets of a tick.
    fn transmit(
        &mut self,
        parts: &mut Conversation,
        now: Instant,
        out: &mut dyn Outlet,
        fill: Option<&mut (dyn Fill + '_)>,
    );

    /// Appends the packets that can't wait for the next tick.
    fn transmit_between(&mut self, parts: &mut Conversation, now: Instant, out: &mut dyn Outlet);

    /// When [`Framing::transmit`] has something to do, unless something arrives or is sent earlier; ZERO for at once.
    fn next_tick(&self, parts: &mut Conversation) -> Instant;

    /// When [`Framing::transmit_between`] has something to do, unless something arrives or is sent earlier.
    fn next_between(&self, parts: &mut Conversation, now: Instant) -> Instant;

    /// Takes a packet of the peer; returns false if it was dropped. Messages that needn't wait are read into the lent
    /// tables.
    ///
    /// # Errors
    /// The conversation is over, and why.
    fn handle(
        &mut self,
        parts: &mut Conversation,
        now: Instant,
        incoming: Incoming<'_>,
        tables: Option<&mut dyn DirectTables>,
    ) -> Result<bool, End>;

    /// The last packet of a conversation, or None if netcode's own disconnect is enough.
    fn farewell(
        &mut self,
        _parts: &mut Conversation,
        _now: Instant,
        _reason: CloseReason,
        _detail: Option<&str>,
    ) -> Option<Vec<u8>> {
        None
    }
}

/// The framing of a protocol's connections, which changes the settings to those that it asks for.
///
/// # Errors
/// When a packet has no room for the largest message of a channel.
pub(super) fn open(
    config: &mut ConnectionConfig,
    protocol: &Protocol,
) -> Result<Box<dyn Framing>, ConfigError> {
    if let Some(yojimbo) = protocol.yojimbo() {
        // The protocol ensures that every message fits.
        (config.packets, config.skip_seed) = (yojimbo.packets(&config.packets), None);
        return Ok(Box::<yojimbo::Yojimbo>::default());
    }
    let largest = protocol.channels().iter().map(|channel| channel.max_message_bytes).max().unwrap_or(0);
    let bytes = config.packets.max_packet_size;
    ConfigError::unless(
        bytes >= largest + MAX_CONTROL_BYTES,
        "max_packet_size",
        bytes,
        "at least 1024 above max_message_bytes of each channel",
    )?;
    // Each datagram fits a payload of the layer below, which numbers it.
    let packets = &mut config.packets;
    packets.header = HeaderKind::Numbered;
    packets.fragment_above = packets.fragment_above.min(MAX_PAYLOAD - numbered::MAX_SIZE);
    // Fragments are refused before this many numbers anyway.
    packets.reassembly.window = packets.acks.received_window;
    Ok(Box::<native::Native>::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::packet::AckEndpointConfig;
    use crate::transport::protocol::{Body, ChannelConfig, MessageType};

    #[test]
    fn settings_of_other_framings_cannot_break_our_own() {
        let message = MessageType { name: "A".into(), body: Body::Opaque { max_bytes: 10 } };
        let protocol = Protocol::new(vec![message], vec![ChannelConfig::unreliable()]).unwrap();
        let mut config =
            ConnectionConfig { packets: AckEndpointConfig::large(), ..ConnectionConfig::default() };
        open(&mut config, &protocol).unwrap();
        let packets = config.packets;
        assert_eq!(packets.header, HeaderKind::Numbered);
        assert!(packets.fragment_above + numbered::MAX_SIZE <= MAX_PAYLOAD);
        assert_eq!(packets.reassembly.window, packets.acks.received_window);
    }
}
