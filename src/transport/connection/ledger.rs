//! The packets of both directions: what each sent packet carries until its outcome is known, which packets of the peer
//! arrived, and which of them still need an ack.
//!
//! Promises: numbers are skipped at random, so that acks of packets that never arrived are found out; a packet is sent
//! only while the peer can still tell its number from older ones.

use super::config::ConnectionConfig;
use super::pending_ack::PendingAck;
use super::record::{Carried, Record};
use crate::store::Lists;
use crate::store::sequence::distance;
use crate::time::{Duration, Instant};
use crate::transport::ack_endpoint::{AckEndpoint, Incoming};
use crate::transport::error::ConfigError;
use crate::transport::ledger::acks::{Acked, RttSampling};
use crate::transport::ledger::numbers::{self, Skips};
use crate::transport::ledger::{AckRanges, Laps, Notifications};
use crate::transport::packet::AckEndpointConfig;
use crate::transport::packet::header::Header;

/// The time without any ack after which the peer may be gone.
const SILENCE: Duration = Duration::from_secs(1);

/// The sent and received packets of a connection.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) endpoint: AckEndpoint<Record>,
    /// The contents of sent packets.
    pub(super) carried: Lists<Carried>,
    pub(super) notifications: Notifications,
    pub(super) ranges: AckRanges,
    pub(super) pending_ack: PendingAck,
    /// The peer has a packet with our hello.
    pub(super) hello_acked: bool,
    /// The number of the peer's newest packet, without wrapping.
    newest_arrival: u64,
    /// How many packets were sent when packets of the peer arrived.
    sent_laps: Laps,
    skips: Option<Skips>,
    /// When the newest packet arrived, until our next packet reports the delay.
    newest_at: Option<Instant>,
    /// When the peer last acked a packet.
    acked_at: Instant,
    last_packet_at: Option<Instant>,
    /// When the first packet went out after the last ack.
    unanswered_since: Option<Instant>,
}

/// How the acks in a packet relate to the packets sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckAge {
    Current,
    /// The window has passed the acked packets, and their numbers may belong to newer packets.
    Outdated,
    /// The packet acks a number that was never sent.
    Ahead,
}

impl Ledger {
    /// The ledger of a new connection.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub(super) fn new(
        packets: &AckEndpointConfig,
        config: &ConnectionConfig,
        skip_seed: Option<u64>,
    ) -> Result<Self, ConfigError> {
        Ok(Ledger {
            endpoint: AckEndpoint::with_notes(packets.clone())?,
            carried: Lists::default(),
            notifications: Notifications::new(config.packet_notifications),
            ranges: AckRanges::default(),
            pending_ack: PendingAck::default(),
            hello_acked: false,
            newest_arrival: 0,
            sent_laps: Laps::new(packets.acks.max_window),
            skips: skip_seed.map(Skips::new),
            newest_at: None,
            acked_at: Instant::ZERO,
            last_packet_at: None,
            unanswered_since: None,
        })
    }

    /// The number of a packet of the peer, without wrapping.
    pub(super) fn arrival(&self, sequence: u16) -> u64 {
        let ahead = distance(sequence, self.newest_arrival as u16);
        // No packet is late before the first one.
        self.newest_arrival.saturating_add_signed(ahead.into())
    }

    /// Judges the acks of a packet of the peer. Only the newest packet can ack a number that was never sent: the acks of
    /// an older one may be more than half of all numbers old.
    pub(super) fn age_of_acks(&mut self, header: &Header, arrival: u64) -> AckAge {
        self.sent_laps.advance(self.endpoint.acks().counters().sent, self.newest_arrival);
        let newest = self.endpoint.next_sequence().wrapping_sub(1);
        if self.sent_laps.is_old(arrival) {
            AckAge::Outdated
        } else if arrival >= self.newest_arrival && distance(header.ack, newest) > 0 {
            AckAge::Ahead
        } else {
            AckAge::Current
        }
    }

    /// Accepts a packet, which will be acked, with ack ranges too. The packets that it acks are appended to `acked`, newest
    /// first.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming<'_>,
        sampling: RttSampling,
        is_after_skip: bool,
        acked: &mut Vec<Acked>,
    ) {
        let sequence = incoming.sequence();
        self.endpoint.accept(now, incoming, sampling, acked);
        if is_after_skip {
            self.endpoint.record_skipped(sequence.wrapping_sub(1));
        }
        self.endpoint.remember_received(self.ranges.len());
        self.ranges.record(sequence, self.endpoint.acks().received_window());
        if self.endpoint.acks().newest_received() == Some(sequence) {
            self.newest_at = Some(now);
        }
    }

    /// The contents of this packet were taken.
    pub(super) fn note_arrival(&mut self, arrival: u64) {
        self.newest_arrival = self.newest_arrival.max(arrival);
    }

    /// When the newest packet arrived, if no packet of ours has reported it.
    pub(super) fn newest_at(&self) -> Option<Instant> {
        self.newest_at
    }

    /// The peer acked packets.
    pub(super) fn note_acked(&mut self, now: Instant) {
        self.unanswered_since = None;
        self.acked_at = now;
    }

    /// When the peer last acked a packet.
    pub(super) fn acked_at(&self) -> Instant {
        self.acked_at
    }

    /// A packet went out, with the delay of the newest arrival.
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.newest_at = None;
        self.last_packet_at = Some(now);
        self.unanswered_since.get_or_insert(now);
    }

    /// Whether the peer has acked nothing for so long that it may be gone.
    pub(super) fn is_unanswered(&self, now: Instant) -> bool {
        self.unanswered_since.is_some_and(|since| now.since(since) > SILENCE)
    }

    /// Whether to skip a number before the next packet; `is_whole` if that packet is one datagram, which can say so.
    pub(super) fn is_skip_due(&mut self, is_whole: bool) -> bool {
        self.skips.as_mut().is_some_and(|skips| skips.is_due(is_whole))
    }

    /// When the next packet may have a number: at once unless nothing was acked for very long.
    pub(super) fn next_number_at(&self) -> Instant {
        numbers::next_at(self.endpoint.acks().numbers_left(), self.last_packet_at)
    }

    /// Frees the contents of packets that have left the window.
    pub(super) fn forget(&mut self, records: impl IntoIterator<Item = Record>) {
        records.into_iter().for_each(|record| self.carried.clear(record.carried));
    }

    /// The memory that the next packet needs is fetched into the processor's cache.
    pub(super) fn prefetch(&self) {
        self.endpoint.acks().prefetch();
        self.carried.prefetch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        let config = ConnectionConfig::default();
        Ledger::new(&config.packets, &config, None).unwrap()
    }

    fn send(ledger: &mut Ledger, now: Instant) {
        ledger.endpoint.send_noted(now, &[1], &mut Some(Record::default())).unwrap();
        ledger.note_sent(now);
    }

    fn header(sequence: u16, ack: u16) -> Header {
        Header { sequence, ack, ack_bits: 0 }
    }

    #[test]
    fn numbers_of_arrivals_do_not_wrap() {
        let mut ledger = ledger();
        assert_eq!(ledger.arrival(65_535), 0, "no packet is late before the first one");
        for arrival in [30_000, 60_000, 70_000] {
            ledger.note_arrival(arrival);
        }
        assert_eq!(ledger.arrival(70_000_u32 as u16), 70_000);
        assert_eq!(ledger.arrival(69_990_u32 as u16), 69_990);
        assert_eq!(ledger.arrival(80_000_u32 as u16), 80_000);
        ledger.note_arrival(5);
        assert_eq!(ledger.arrival(70_001_u32 as u16), 70_001, "a late packet changes nothing");
    }

    #[test]
    fn only_the_newest_packet_can_ack_a_number_that_was_never_sent() {
        let mut ledger = ledger();
        (0..3).for_each(|_| send(&mut ledger, Instant::ZERO));
        ledger.note_arrival(10);
        assert_eq!(ledger.age_of_acks(&header(11, 2), 11), AckAge::Current);
        assert_eq!(ledger.age_of_acks(&header(11, 3), 11), AckAge::Ahead);
        assert_eq!(ledger.age_of_acks(&header(9, 3), 9), AckAge::Current);
    }

    #[test]
    fn the_acks_of_packets_that_came_very_late_are_outdated() {
        let mut ledger = ledger();
        let window = ledger.endpoint.acks().counters().sent
            + 2 * ConnectionConfig::default().packets.acks.max_window as u64;
        ledger.note_arrival(100);
        for _ in 0..=window {
            if let Some(lost) = ledger.endpoint.acks_mut().give_up_oldest() {
                assert!(ledger.endpoint.acks_mut().note_mut(lost).is_some());
            }
            send(&mut ledger, Instant::ZERO);
        }
        let newest = ledger.endpoint.next_sequence().wrapping_sub(1);
        assert_eq!(ledger.age_of_acks(&header(99, newest), 99), AckAge::Outdated);
        assert_eq!(ledger.age_of_acks(&header(101, newest), 101), AckAge::Current);
    }

    #[test]
    fn a_peer_is_silent_a_second_after_the_first_packet_that_it_did_not_ack() {
        let mut ledger = ledger();
        let at = Instant::from_millis;
        assert!(!ledger.is_unanswered(at(9_000)), "nothing was sent");
        send(&mut ledger, at(9_000));
        send(&mut ledger, at(9_900));
        assert!(!ledger.is_unanswered(at(10_000)) && ledger.is_unanswered(at(10_001)));
        ledger.note_acked(at(10_001));
        assert!(!ledger.is_unanswered(at(20_000)));
    }
}
