//! Packet loss and bandwidth as reliable 1.0 estimates them, value for value.
//!
//! Promises: what another implementation of the standard reads from the same packets. Refuses to be better:
//! for that there is [`Recent`](super::estimate).

use super::estimate::{Stats, smooth};
use super::sent::SentPackets;
use crate::store::SequenceBuffer;
use crate::time::Instant;

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

/// The estimates, and what only they need to know of received packets.
#[derive(Clone, Debug)]
pub(super) struct StandardEstimate {
    received: SequenceBuffer<(Instant, u32)>,
    packet_loss: f64,
    sent_kbps: f64,
    received_kbps: f64,
    acked_kbps: f64,
}

impl StandardEstimate {
    pub(super) fn new(received_window: usize) -> Self {
        StandardEstimate {
            received: SequenceBuffer::new(received_window),
            packet_loss: 0.0,
            sent_kbps: 0.0,
            received_kbps: 0.0,
            acked_kbps: 0.0,
        }
    }

    /// Notes a packet that is new.
    pub(super) fn record_received(&mut self, now: Instant, sequence: u64, bytes: u32) {
        // A new packet is not older than the window.
        let _ = self.received.insert(sequence, (now, bytes));
    }

    // As `SequenceBuffer::advance`.
    pub(super) fn advance_received(&mut self, sequence: u64) {
        self.received.advance(sequence);
    }

    /// Takes the older half of each window. The smoothing is by call, not by time.
    pub(super) fn update<T>(&mut self, window: &SentPackets<T>) {
        let (mut sent, mut acked, mut received) = <(Tally, Tally, Tally)>::default();
        for packet in older_half(window.capacity(), window.next()).filter_map(|sequence| window.get(sequence))
        {
            sent.add(packet.at, packet.bytes);
            if packet.arrived() {
                acked.add(packet.at, packet.bytes);
            }
        }
        let window = &self.received;
        for (at, bytes) in
            older_half(window.capacity(), window.next()).filter_map(|sequence| window.get(sequence))
        {
            received.add(*at, *bytes);
        }
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

    /// Writes packet loss and bandwidth into `stats`.
    pub(super) fn summarize(&self, stats: &mut Stats) {
        stats.packet_loss = self.packet_loss;
        stats.sent_kbps = self.sent_kbps;
        stats.received_kbps = self.received_kbps;
        stats.acked_kbps = self.acked_kbps;
    }
}

/// The numbers of the older half of a window: the newer half may still be acked.
fn older_half(capacity: usize, next: u64) -> impl Iterator<Item = u64> {
    let span = capacity as u64;
    let oldest = next.wrapping_sub(span);
    (0..span / 2).map(move |i| oldest.wrapping_add(i))
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
