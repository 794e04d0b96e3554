//! Packet loss and bandwidth as reliable 1.0 estimates them, value for value, beside an
//! [`AckEndpoint`](crate::transport::ack_endpoint::AckEndpoint).
//!
//! Promises: what another implementation of the standard reads from the same packets, if the windows of the endpoint keep
//! their size, as those of [`AckEndpointConfig::standard`] do. Refuses to be better: an endpoint's own estimates are.
//!
//! They are of the older half of the windows, by default of the packets 128 to 256 packets ago: nothing is known before,
//! and what was sent less than an RTT ago reads as lost where 128 packets take less than that. Packet headers don't count
//! in what is sent, nor the fragments of a packet but for one, nor duplicates. Bandwidth reads high by a packet in 128
//! (bytes of 128 packets over the time of 127), `received_kbps` by more where reordering widens or narrows that time.

use crate::store::SequenceBuffer;
use crate::time::Instant;
use crate::transport::PacketStats;
use crate::transport::ack_endpoint::{AckEndpointConfig, Incoming};
use crate::transport::acks::{Acked, Acks};
use crate::transport::estimate::smooth;
use crate::transport::header::Header;

/// The smoothing of packet loss and bandwidth, an update.
const SMOOTHING: f64 = 0.1;

/// Bytes and the time they took, summed over some packets.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: u32,
    bytes: u64,
    /// The oldest and the newest time.
    times: Option<(Instant, Instant)>,
}

impl Tally {
    fn add(&mut self, time: Instant, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        let (oldest, newest) = self.times.unwrap_or((time, time));
        self.times = Some((oldest.min(time), newest.max(time)));
    }

    /// Kilobits a second, or `None` while all packets have one time.
    fn kbps(&self) -> Option<f64> {
        let (oldest, newest) = self.times?;
        (newest > oldest).then(|| self.bytes as f64 * 8.0 / 1000.0 / (newest - oldest).as_secs_f64())
    }
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    at: Instant,
    bytes: u32,
    arrived: bool,
}

/// The estimates, and the packets that they are of.
#[derive(Clone, Debug)]
pub struct StandardEstimate {
    overhead: u32,
    sent: SequenceBuffer<SentPacket>,
    received: SequenceBuffer<(Instant, u32)>,
    packet_loss: f64,
    sent_kbps: f64,
    received_kbps: f64,
    acked_kbps: f64,
}

impl StandardEstimate {
    /// Beside an endpoint with these settings.
    pub fn new(config: &AckEndpointConfig) -> Self {
        StandardEstimate {
            overhead: config.overhead,
            sent: SequenceBuffer::new(config.acks.sent_window),
            received: SequenceBuffer::new(config.acks.received_window),
            packet_loss: 0.0,
            sent_kbps: 0.0,
            received_kbps: 0.0,
            acked_kbps: 0.0,
        }
    }

    /// The endpoint sent a packet with a payload of this many bytes.
    pub fn note_sent(&mut self, now: Instant, sequence: u64, payload_bytes: usize) {
        let bytes = self.on_the_wire(payload_bytes);
        // Numbers rise: none is older than the window.
        let _ = self.sent.insert(sequence, SentPacket { at: now, bytes, arrived: false });
    }

    /// The endpoint is about to accept this packet.
    pub fn note_received(&mut self, now: Instant, incoming: &Incoming<'_>) {
        let header = Header::from(incoming.header).size();
        let bytes = self.on_the_wire(header + incoming.payload().len());
        // A new packet is not older than the window.
        let _ = self.received.insert(incoming.header.sequence, (now, bytes));
    }

    /// Accepting it acked these packets.
    pub fn note_acked(&mut self, acked: &[Acked]) {
        for acked in acked {
            if let Some(sent) = self.sent.get_mut(acked.sequence) {
                sent.arrived = true;
            }
        }
    }

    fn on_the_wire(&self, bytes: usize) -> u32 {
        u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(self.overhead)
    }

    /// Takes the older half of each window, once a tick, after the endpoint's own update. The smoothing is by call, not by time.
    pub fn update(&mut self, acks: &Acks) {
        // The newest packet counts once a part of it has come.
        self.received.advance(acks.ack());
        let (mut sent, mut acked, mut received) = <(Tally, Tally, Tally)>::default();
        for packet in older_half(&self.sent) {
            sent.add(packet.at, packet.bytes);
            if packet.arrived {
                acked.add(packet.at, packet.bytes);
            }
        }
        older_half(&self.received).for_each(|(at, bytes)| received.add(*at, *bytes));
        if sent.packets == 0 {
            self.packet_loss = 0.0;
        } else {
            let dropped = f64::from(sent.packets - acked.packets);
            smooth(&mut self.packet_loss, dropped / f64::from(sent.packets) * 100.0, SMOOTHING);
        }
        let pairs =
            [(&mut self.sent_kbps, sent), (&mut self.acked_kbps, acked), (&mut self.received_kbps, received)];
        for (value, tally) in pairs {
            if let Some(kbps) = tally.kbps() {
                smooth(value, kbps, SMOOTHING);
            }
        }
    }

    /// The endpoint's statistics with these estimates in place of its own.
    pub fn in_place_of(&self, own: PacketStats) -> PacketStats {
        PacketStats {
            packet_loss: self.packet_loss,
            sent_kbps: self.sent_kbps,
            received_kbps: self.received_kbps,
            acked_kbps: self.acked_kbps,
            ..own
        }
    }
}

/// The packets in the older half of a window: those of the newer half may still be acked.
fn older_half<T>(window: &SequenceBuffer<T>) -> impl Iterator<Item = &T> {
    let span = window.capacity() as u64;
    let oldest = window.next().wrapping_sub(span);
    (0..span / 2).filter_map(move |n| window.get(oldest.wrapping_add(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
