//! The packets of both directions: what each sent packet carries until its outcome is known, which packets of the peer
//! arrived, and which of them still need an ack.
//!
//! Promises: numbers are skipped at random, so that acks of packets that never arrived are found out.

use super::pending_ack::PendingAck;
use super::record::{PacketContent, Record};
use crate::limits::ConfigError;
use crate::store::Lists;
use crate::store::sequence::ahead;
use crate::time::{Duration, Instant};
use crate::transport::ack_endpoint::{AckEndpoint, Incoming};
use crate::transport::ledger::acks::{Acked, RttSampling};
use crate::transport::ledger::skips::Skips;
use crate::transport::ledger::{AckRanges, Notifications};
use crate::transport::packet::AckEndpointConfig;

/// The time without any ack after which the peer may be gone.
const SILENCE: Duration = Duration::from_secs(1);

/// The sent and received packets of a connection.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) endpoint: AckEndpoint<Record>,
    /// The contents of sent packets.
    pub(super) carried: Lists<PacketContent>,
    pub(super) notifications: Notifications,
    pub(super) ranges: AckRanges,
    pub(super) pending_ack: PendingAck,
    /// The peer has a packet with our hello.
    pub(super) hello_acked: bool,
    /// The number of the next datagram in the layer below.
    pub(super) next_number: u64,
    skips: Option<Skips>,
    /// When the newest packet arrived, until our next packet reports the delay.
    pub(super) newest_at: Option<Instant>,
    /// When the peer last acked a packet.
    pub(super) acked_at: Instant,
    /// When the newest packet that the peer acked was sent.
    pub(super) acked_sent_at: Instant,
    /// When the first packet went out after the last ack.
    unanswered_since: Option<Instant>,
}

impl Ledger {
    /// The ledger of a new connection.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub(super) fn new(packets: &AckEndpointConfig, skip_seed: Option<u64>) -> Result<Self, ConfigError> {
        Ok(Ledger {
            endpoint: AckEndpoint::with_notes(packets.clone())?,
            carried: Lists::default(),
            notifications: Notifications::default(),
            ranges: AckRanges::default(),
            pending_ack: PendingAck::default(),
            hello_acked: false,
            next_number: 0,
            skips: skip_seed.map(Skips::new),
            newest_at: None,
            acked_at: Instant::ZERO,
            acked_sent_at: Instant::ZERO,
            unanswered_since: None,
        })
    }

    /// Whether a packet of the peer acks a number beyond the newest packet sent.
    pub(super) fn acks_unsent(&self, incoming: &Incoming<'_>, has_ranges: bool) -> bool {
        let header = incoming.header;
        let acks_any = header.ack_bits != 0 || has_ranges;
        acks_any && ahead(header.ack, self.endpoint.acks.newest_sent()) > 0
    }

    /// The layer below has used all numbers before this one.
    pub(super) fn skip_to(&mut self, number: u64) {
        self.next_number = self.next_number.max(number);
    }

    /// The number of the next packet of our own framing. It may leave one out.
    pub(super) fn take_number(&mut self) -> u64 {
        self.next_number += u64::from(self.skips.as_mut().is_some_and(Skips::is_due));
        if self.endpoint.acks.counters.sent == 0 {
            self.endpoint.acks.begin_at(self.next_number);
            self.notifications.begin_at(self.next_number);
        }
        self.next_number
    }

    /// Accepts a packet, which will be acked, with ack ranges too. The packets that it acks are appended to `acked`, newest
    /// first.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming<'_>,
        sampling: RttSampling,
        acked: &mut Vec<Acked>,
    ) {
        let sequence = incoming.header.sequence;
        self.endpoint.accept(now, incoming, sampling, acked);
        self.endpoint.acks.remember_received(self.ranges.len());
        self.ranges.record(sequence, self.endpoint.acks.received.window());
        if self.endpoint.acks.received.newest == Some(sequence) {
            self.newest_at = Some(now);
        }
    }

    /// The peer acked packets, the newest of which was sent at this time.
    pub(super) fn note_acked(&mut self, now: Instant, sent_at: Instant) {
        self.unanswered_since = None;
        self.acked_at = now;
        self.acked_sent_at = self.acked_sent_at.max(sent_at);
    }

    /// A packet went out, with the delay of the newest arrival.
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.newest_at = None;
        self.unanswered_since.get_or_insert(now);
    }

    /// Whether the peer has acked nothing for so long that it may be gone.
    pub(super) fn is_unanswered(&self, now: Instant) -> bool {
        self.unanswered_since.is_some_and(|since| now.since(since) > SILENCE)
    }

    /// Frees the contents of packets that have left the window.
    pub(super) fn forget(&mut self, records: impl IntoIterator<Item = Record>) {
        records.into_iter().for_each(|record| self.carried.clear(record.carried));
    }

    /// The memory that the next packet needs is fetched into the processor's cache.
    pub(super) fn prefetch(&self) {
        self.endpoint.acks.prefetch();
        self.carried.prefetch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::ConnectionConfig;

    fn ledger() -> Ledger {
        Ledger::new(&ConnectionConfig::default().packets, None).unwrap()
    }

    fn send(ledger: &mut Ledger, now: Instant) {
        ledger.endpoint.note_sent(now, 1, 0, Record::default());
        ledger.note_sent(now);
    }

    #[test]
    fn a_peer_is_silent_a_second_after_the_first_packet_that_it_did_not_ack() {
        let mut ledger = ledger();
        let at = Instant::from_millis;
        assert!(!ledger.is_unanswered(at(9_000)), "nothing was sent");
        send(&mut ledger, at(9_000));
        send(&mut ledger, at(9_900));
        assert!(!ledger.is_unanswered(at(10_000)) && ledger.is_unanswered(at(10_001)));
        ledger.note_acked(at(10_001), at(9_900));
        assert!(!ledger.is_unanswered(at(20_000)));
        ledger.note_acked(at(20_000), at(9_000));
        assert_eq!(ledger.acked_sent_at, at(9_900), "a late ack of an older packet changes nothing");
    }
}
