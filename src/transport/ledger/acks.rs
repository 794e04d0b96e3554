//! Which packets arrived: the windows of sent and received packets, acks in both directions, and the verdict "lost"
//! that the layers above build on.
//!
//! Promises: every packet sent is reported exactly once, as acked or as lost, lost ones in sequence order; an ack
//! after the verdict is only counted. No packet is ever acked that was not received, at any loss. Refuses: packets
//! received twice, packets older than the window and, if order must be kept, packets older than the newest.
//!
//! Numbers don't wrap here. A layer whose packets carry only 16 bits of them unwraps these.
//!
//! A peer's acks are believed for packets within the window of sent ones. Whether it acked a skipped number is
//! recorded for the layer above; other numbers are ignored. A header costs 32 look-ups and an ack range at most the
//! window's; a sequence that jumps costs one clearing of the window of received ones.

use std::collections::VecDeque;

use super::estimate::{RTT_HISTORY, Recent, Rtt, STANDARD_RTT_HISTORY, Stats, whole_nanoseconds};
use super::sent::{Fate, Sent, SentPackets};
use super::standard_estimate::StandardEstimate;
use crate::store::SequenceSet;
use crate::store::counters::counters;
use crate::store::sequence::ahead;
use crate::time::{Duration, Instant};
pub use crate::transport::error::ConfigError;
pub use crate::transport::packet::{AcksConfig, Estimation, LossBound};
use core::fmt;
use core::ops::Range;

/// After this many acks the measured jitter of round trips is trusted.
const SAMPLES_TO_TRUST: u32 = 50;

/// The timeout before a round trip was measured, as in RFC 6298. Acks of later packets reveal losses sooner.
const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The assumed round trip before one was measured.
const INITIAL_RTT: Duration = Duration::from_millis(300);

/// Timers are no better than this.
const TIMER_GRANULARITY: Duration = Duration::from_millis(2);

/// Probes go out no more often than this.
const MIN_PROBE_INTERVAL: Duration = Duration::from_millis(4);

/// While the window of sent packets may grow, it is this many times what is in flight, so that acks that come after
/// the verdict "lost" still find their packet.
const WINDOWS_IN_FLIGHT: usize = 4;

/// Lost packets kept for [`Acks::poll_lost`] if nobody polls: half of the numbers of reliable 1.0. There older ones
/// would be mistaken for newer packets, so they are only counted.
const MAX_UNREPORTED: usize = 32_768;

/// How far back numbers that no packet of the peer had are known.
const SKIPPED_WINDOW: usize = 1024;

/// Why a received packet is not new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotNew {
    /// It is older than the window of received packets.
    Stale,
    /// It was received before.
    Duplicate,
    /// It is older than the newest received packet, and order was asked for.
    OutOfOrder,
}

impl fmt::Display for NotNew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotNew::Stale => "The packet is older than the window of received packets.",
            NotNew::Duplicate => "The packet was received before.",
            NotNew::OutOfOrder => {
                "The packet is older than the newest received one, and order was asked for."
            }
        })
    }
}

impl std::error::Error for NotNew {}

/// Which newly acked packets count as round trip samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttSampling {
    /// No sample: these packets may have been acked earlier.
    None,
    /// Each one, from sending to now (reliable 1.0).
    EveryAck,
    /// Only the packet in the header's `ack` field, less the time for which the peer reports to have held the ack:
    /// for older packets that time is unknown. It is a sample even if another header, overtaking this one, acked the
    /// packet before: otherwise only the fastest way back would count.
    NewestAck {
        /// From the peer's receipt of the packet to its sending of the header.
        delay: Duration,
    },
}

/// The number of a packet and its acks for the other direction, without wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullHeader {
    /// The number of this packet.
    pub sequence: u64,
    /// The newest packet of the peer. Whether it was received is bit 0 of `ack_bits`.
    pub ack: u64,
    /// Bit n is set when packet `ack` - n was received.
    pub ack_bits: u32,
    /// How many numbers before this one no packet has.
    pub skipped: u8,
}

/// A packet of ours that the peer received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    pub sequence: u64,
    /// When it was sent.
    pub sent_at: Instant,
    /// The bytes it was recorded with.
    pub bytes: u32,
    /// The ack came after the packet was reported lost.
    pub late: bool,
}

counters! {
    /// How many packets had which outcome.
    pub struct AckCounters {
        /// Packets recorded as sent.
        sent,
        /// Packets recorded as received.
        received,
        /// Sent packets reported as acked.
        acked,
        /// Sent packets given up as lost.
        lost,
        /// Acks of packets already given up.
        late_acks,
    }
}

/// How far packets overtake each other on this link (after RACK, RFC 8985: a packet is lost when one sent
/// sufficiently later has arrived).
#[derive(Clone, Debug, Default)]
struct Reordering {
    /// When the newest packet that was acked had been sent.
    newest_acked: Instant,
    /// Packets acked in time so far.
    acked: u32,
    /// By how much later packets were ahead of one that was wrongly taken for lost.
    seen: Duration,
}

impl Reordering {
    fn learn(&mut self, sent_at: Instant, late: bool) {
        if late {
            self.seen = self.seen.max(self.newest_acked - sent_at);
        } else {
            // Old samples are forgotten over some hundred packets.
            self.seen -= self.seen / 256;
            self.acked = self.acked.saturating_add(1);
        }
        self.newest_acked = self.newest_acked.max(sent_at);
    }

    /// Packets sent before this are lost: those sent later have arrived.
    fn overtaken(&self, rtt: &Rtt) -> Instant {
        let round_trip = rtt.smoothed().unwrap_or(Duration::ZERO);
        // Jitter means little before it was measured some times.
        let least = if self.acked < SAMPLES_TO_TRUST { round_trip / 4 } else { Duration::ZERO };
        let allowed = (rtt.jitter() * 3).max(self.seen).max(least).min(round_trip);
        Instant::ZERO + (self.newest_acked - Instant::ZERO).saturating_sub(allowed)
    }
}

/// The packets of one conversation, both directions; of each packet sent `T` is noted.
#[derive(Clone, Debug)]
pub struct Acks<T = ()> {
    sent: SentPackets<T>,
    /// Everything sent before this one is acked or lost.
    oldest_in_flight: u64,
    /// A number was acked that no packet had.
    acked_skipped: bool,
    /// Lost by being overwritten, not yet polled.
    overwritten: VecDeque<u64>,
    received: SequenceSet,
    /// Bit n is set if the packet n before the newest of the window was received: the ack bits of each header.
    received_bits: u32,
    newest_received: Option<u64>,
    /// Numbers that no packet of the peer had.
    skipped: SequenceSet,
    /// The acks of the newest header: the next ones repeat most of them.
    heard: (u64, u32),
    loss_bound: LossBound,
    reordering: Option<Reordering>,
    /// How long the peer holds acks: the longest that was seen recently.
    peer_delay: Duration,
    in_order_only: bool,
    initial_window: usize,
    max_window: usize,
    /// Since the window was last asked to shrink.
    most_in_flight: usize,
    rtt: Rtt,
    recent: Recent,
    /// Replaces `recent` if the standard's own estimates are wanted.
    standard: Option<Box<StandardEstimate>>,
    counters: AckCounters,
}

impl Acks {
    /// A conversation in which nothing was sent or received.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn new(config: &AcksConfig) -> Result<Self, ConfigError> {
        Acks::with_notes(config)
    }
}

impl<T: Default> Acks<T> {
    /// Like [`Acks::new`], with a note for each packet sent.
    pub(in crate::transport) fn with_notes(config: &AcksConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let rtt_history = match config.estimation {
            Estimation::Standard => STANDARD_RTT_HISTORY,
            Estimation::Recent => RTT_HISTORY,
        };
        Ok(Acks {
            sent: SentPackets::new(config.sent_window, 0),
            oldest_in_flight: 0,
            acked_skipped: false,
            overwritten: VecDeque::new(),
            received: SequenceSet::new(config.received_window),
            received_bits: 0,
            newest_received: None,
            skipped: SequenceSet::new(SKIPPED_WINDOW),
            heard: (0, 0),
            loss_bound: config.loss_bound,
            reordering: config.early_loss.then(Reordering::default),
            peer_delay: Duration::ZERO,
            in_order_only: config.in_order_only,
            // The standard's estimates are of windows of fixed sizes.
            max_window: match config.estimation {
                Estimation::Standard => config.sent_window,
                Estimation::Recent => config.max_window.max(config.sent_window).max(config.received_window),
            },
            initial_window: config.sent_window,
            most_in_flight: 0,
            rtt: Rtt::new(config.rtt_smoothing, rtt_history),
            recent: Recent::default(),
            standard: (config.estimation == Estimation::Standard)
                .then(|| Box::new(StandardEstimate::new(config.received_window))),
            counters: AckCounters::default(),
        })
    }

    /// Starts packet numbers here instead of at 0, before anything is sent. A peer that knows only 16 bits of them accepts
    /// any number below 16,384 as a first one, however large its window.
    pub(in crate::transport) fn begin_at(&mut self, first: u64) {
        self.sent = SentPackets::new(self.sent.capacity(), first);
        self.oldest_in_flight = first;
    }

    /// Has the memory fetched that the next packet, either way, and the acks of the last ones need.
    pub(in crate::transport) fn prefetch(&self) {
        self.sent.prefetch(self.oldest_in_flight);
    }

    /// Whether a packet of this number was sent, and not longer ago than the window reaches.
    pub fn was_sent(&self, sequence: u64) -> bool {
        self.sent.get(sequence).is_some()
    }

    /// Whether a number was acked that [`Acks::skip_number`] left out.
    pub(in crate::transport) fn acked_skipped(&self) -> bool {
        self.acked_skipped
    }

    /// The number of the next packet sent.
    pub fn next_sequence(&self) -> u64 {
        self.sent.next()
    }

    /// The header of the next packet sent, with the freshest acks.
    pub fn header(&self) -> FullHeader {
        FullHeader {
            sequence: self.next_sequence(),
            ack: self.ack(),
            ack_bits: self.received_bits,
            skipped: 0,
        }
    }

    /// The newest known packet of the peer, which headers ack.
    pub fn ack(&self) -> u64 {
        self.received.next().wrapping_sub(1)
    }

    /// Records that the next packet was sent; `wire_bytes` counts as bandwidth. Returns the note of the packet that
    /// is forgotten for it.
    pub(in crate::transport) fn track_sent(&mut self, now: Instant, wire_bytes: u32, note: T) -> Option<T> {
        self.recent.sent_bytes.add(f64::from(wire_bytes));
        self.counters.sent += 1;
        self.push_sent(Some(Sent { at: now, bytes: wire_bytes, fate: Fate::InFlight, note }))
    }

    /// The note of a sent packet, while the window reaches it.
    pub(in crate::transport) fn note_mut(&mut self, sequence: u64) -> Option<&mut T> {
        self.sent.get_mut(sequence).map(|sent| &mut sent.note)
    }

    /// Skips a number: no packet has it, so only a peer that acks packets it has not received acks it.
    pub(in crate::transport) fn skip_number(&mut self) -> Option<T> {
        let passed = self.push_sent(None);
        self.pass_skipped();
        passed
    }

    /// Gives back memory if far fewer packets were in flight since the last call than the window has room for, with
    /// the notes of forgotten packets: called once in a while.
    pub(in crate::transport) fn shrink(&mut self) -> Option<impl Iterator<Item = T> + use<T>> {
        let (window, most) = (self.sent.capacity(), core::mem::take(&mut self.most_in_flight));
        let shrinks = window > self.initial_window && most * WINDOWS_IN_FLIGHT * 4 <= window;
        let smaller = (window / 4).max(self.initial_window);
        shrinks.then(|| self.sent.shrink(smaller).map(|sent| sent.note))
    }

    /// Whether the next packet takes the place of one that is still open: see [`Acks::give_up_oldest`].
    pub(in crate::transport) fn is_full(&self) -> bool {
        self.sent.next().wrapping_sub(self.oldest_in_flight) == self.max_window as u64
    }

    /// Counts the oldest open packet as lost, for callers that must act on it before it is forgotten.
    pub(in crate::transport) fn give_up_oldest(&mut self) -> Option<u64> {
        let oldest = self.oldest_in_flight;
        let lost = self.sent.get_mut(oldest).filter(|sent| sent.fate == Fate::InFlight).map(|sent| {
            sent.fate = Fate::Lost;
            self.recent.lost.add(1.0);
            self.counters.lost += 1;
            oldest
        });
        self.pass(oldest);
        lost
    }

    fn push_sent(&mut self, sent: Option<Sent<T>>) -> Option<T> {
        let sequence = self.sent.next();
        let window = self.sent.capacity();
        let in_flight = sequence.wrapping_sub(self.oldest_in_flight) as usize;
        self.most_in_flight = self.most_in_flight.max(in_flight + 1);
        if window < self.max_window && in_flight * WINDOWS_IN_FLIGHT >= window {
            self.sent.grow(window * 2);
        } else if in_flight == window {
            self.give_up_overwritten();
        }
        self.sent.push(sent).map(|passed| passed.note)
    }

    /// Resolves the oldest packet, whose place in the window the next packet takes.
    fn give_up_overwritten(&mut self) {
        if let Some(oldest) = self.give_up_oldest() {
            if self.overwritten.len() == MAX_UNREPORTED {
                self.overwritten.pop_front();
            }
            self.overwritten.push_back(oldest);
        }
    }

    /// The oldest packet in flight was acked or lost.
    fn pass(&mut self, oldest: u64) {
        self.recent.judged.add(1.0);
        self.oldest_in_flight = oldest.wrapping_add(1);
        self.pass_skipped();
    }

    /// Passes numbers that no packet had.
    fn pass_skipped(&mut self) {
        while self.sent.is_skipped(self.oldest_in_flight) {
            self.oldest_in_flight = self.oldest_in_flight.wrapping_add(1);
        }
    }

    /// Checks whether a packet of the peer is new.
    ///
    /// # Errors
    ///
    /// Why it isn't.
    pub fn is_new(&self, sequence: u64) -> Result<(), NotNew> {
        if self.received.stale(sequence) {
            return Err(NotNew::Stale);
        }
        if self.received.contains(sequence) {
            return Err(NotNew::Duplicate);
        }
        match self.newest_received {
            Some(newest) if self.in_order_only && ahead(newest, sequence) > 0 => Err(NotNew::OutOfOrder),
            _ => Ok(()),
        }
    }

    /// Records that a packet of the peer was received, so that it will be acked. One that is not new is ignored.
    /// `packet_bytes` counts in the standard's bandwidth; ours counts in [`Acks::record_arrival`].
    pub fn record_received(&mut self, now: Instant, sequence: u64, packet_bytes: u32) {
        if self.is_new(sequence).is_err() {
            return;
        }
        self.advance_bits(sequence);
        let inserted = self.received.insert(sequence);
        debug_assert!(inserted, "a stale packet is not new");
        let age = self.ack().wrapping_sub(sequence);
        self.received_bits |= 1u32.unbounded_shl(age.min(32) as u32);
        let newest = self.newest_received.unwrap_or(sequence.wrapping_sub(1));
        if ahead(sequence, newest) > 0 {
            self.newest_received = Some(sequence);
            self.recent.peer_sent.add(sequence.wrapping_sub(newest) as f64);
        }
        self.recent.received.add(1.0);
        if let Some(standard) = &mut self.standard {
            standard.record_received(now, sequence, packet_bytes);
        }
        self.counters.received += 1;
    }

    /// No packet of the peer has these numbers: they aren't missing.
    pub(in crate::transport) fn record_skipped(&mut self, numbers: Range<u64>) {
        self.recent.peer_sent.add(-(numbers.end.wrapping_sub(numbers.start) as f64));
        numbers.for_each(|number| {
            self.skipped.insert(number);
        });
    }

    /// Counts the bytes of a datagram of the peer, whatever becomes of it.
    pub fn record_arrival(&mut self, wire_bytes: u32) {
        self.recent.received_bytes.add(f64::from(wire_bytes));
    }

    /// Remembers more received packets, up to the largest window, if half the window is not enough for this many.
    pub fn remember_received(&mut self, packets: usize) {
        let window = self.received.capacity();
        if packets > window / 2 && window < self.max_window {
            self.received.grow(window * 2);
        }
    }

    /// The packets received that are remembered.
    pub fn received_window(&self) -> usize {
        self.received.capacity()
    }

    /// The packets sent that are remembered.
    pub fn sent_window(&self) -> usize {
        self.sent.capacity()
    }

    /// Moves the window of received packets up to `sequence` without receiving it: only a part of it is here.
    pub fn advance_received(&mut self, sequence: u64) {
        self.advance_bits(sequence);
        self.received.advance(sequence);
        if let Some(standard) = &mut self.standard {
            standard.advance_received(sequence);
        }
    }

    /// Moves the ack bits as the window of received packets will move.
    fn advance_bits(&mut self, sequence: u64) {
        let ahead = ahead(sequence, self.ack()).clamp(0, 32);
        self.received_bits = self.received_bits.unbounded_shl(ahead as u32);
    }

    /// Appends the packets that `header` newly acks to `out`, newest first, as reliable 1.0 does: the order of its samples.
    pub fn process(
        &mut self,
        now: Instant,
        header: &FullHeader,
        sampling: RttSampling,
        out: &mut Vec<Acked>,
    ) {
        let (heard_ack, heard_bits) = self.heard;
        let ahead = ahead(header.ack, heard_ack);
        let mut news = header.ack_bits;
        if ahead >= 0 {
            news &= !heard_bits.unbounded_shl(ahead.min(32) as u32);
        }
        let mut unknown = 0;
        while news != 0 {
            let n = news.trailing_zeros();
            news &= news - 1;
            let sequence = header.ack.wrapping_sub(n.into());
            let Some(acked) = self.ack_one(sequence) else {
                unknown |= u32::from(!self.was_sent(sequence)) << n;
                continue;
            };
            // A late ack is sampled too: an RTT above the loss bound could not be learned otherwise.
            if sampling == RttSampling::EveryAck {
                self.rtt.sample(sequence, now - acked.sent_at);
            }
            out.push(acked);
        }
        if ahead >= 0 {
            // An ack that came before its packet was sent must count when it is repeated.
            self.heard = (header.ack, header.ack_bits & !unknown);
        }
        if let RttSampling::NewestAck { delay } = sampling {
            self.peer_delay = delay.max(self.peer_delay - self.peer_delay.saturating_sub(delay) / 16);
            if let Some(sent) = self.sent.get(header.ack).filter(|_| header.ack_bits & 1 == 1) {
                self.rtt.sample(header.ack, (now - sent.at).saturating_sub(delay));
            }
        }
    }

    /// Takes the ack of one packet, without a round trip sample: for acks that reach further back than a header's.
    /// `None` if it was never sent, is forgotten or was acked before.
    fn ack_one(&mut self, sequence: u64) -> Option<Acked> {
        self.acked_skipped |= self.sent.is_skipped(sequence);
        let sent = self.sent.get_mut(sequence)?;
        let bytes = sent.bytes;
        let late = match sent.fate {
            Fate::InFlight => {
                sent.fate = Fate::Acked;
                self.counters.acked += 1;
                false
            }
            Fate::Lost => {
                sent.fate = Fate::AckedLate;
                self.recent.lost.add(-1.0);
                self.counters.late_acks += 1;
                true
            }
            Fate::Acked | Fate::AckedLate => return None,
        };
        let sent_at = sent.at;
        self.recent.acked_bytes.add(f64::from(bytes));
        if let Some(reordering) = &mut self.reordering {
            reordering.learn(sent_at, late);
        }
        Some(Acked { sequence, sent_at, bytes, late })
    }

    /// Acks the packets from `newest` down to `oldest`, as far back as the window reaches.
    pub fn ack_range(&mut self, newest: u64, oldest: u64, out: &mut Vec<Acked>) {
        // Only where the range meets the window: a peer may name many numbers in a few bits.
        let behind = ahead(self.sent.next(), newest);
        let unsent = 1_i64.saturating_sub(behind).max(0);
        let reach = (self.sent.capacity() as i64 + 1).saturating_sub(behind);
        let run = ahead(newest, oldest) + 1;
        for n in unsent..run.min(reach) {
            out.extend(self.ack_one(newest.wrapping_sub(n as u64)));
        }
    }

    /// Appends the packets that count as lost by now to `out`, in sequence order. Each is reported once.
    pub fn poll_lost(&mut self, now: Instant, out: &mut Vec<u64>) {
        out.extend(self.overwritten.drain(..));
        if self.oldest_in_flight == self.sent.next() {
            return;
        }
        let bound = self.time_to_loss();
        let overtaken = self.reordering.as_ref().map(|reordering| reordering.overtaken(&self.rtt));
        while self.oldest_in_flight != self.sent.next() {
            let oldest = self.oldest_in_flight;
            if let Some(sent) = self.sent.get_mut(oldest).filter(|sent| sent.fate == Fate::InFlight) {
                if now.since(sent.at) < bound && overtaken.is_none_or(|overtaken| sent.at >= overtaken) {
                    return;
                }
                sent.fate = Fate::Lost;
                self.recent.lost.add(1.0);
                self.counters.lost += 1;
                out.push(oldest);
            }
            self.pass(oldest);
        }
    }

    /// When the oldest packet in flight counts as lost unless something is acked earlier, as of the last
    /// [`Acks::poll_lost`].
    pub fn next_loss(&self) -> Instant {
        let oldest = self.sent.get(self.oldest_in_flight);
        oldest.map_or(Instant::NEVER, |sent| sent.at + self.time_to_loss())
    }

    /// How long after sending a packet counts as lost, as of now.
    pub fn time_to_loss(&self) -> Duration {
        match self.loss_bound {
            LossBound::After(time) => time,
            LossBound::Rtt { multiple, at_least } => self.rtt.smoothed().map_or(
                LossBound::DEFAULT_TIME.max(at_least),
                // Bounded by a day, so that the product can't overflow.
                |rtt| whole_nanoseconds((rtt.as_nanos() as f64 * multiple).min(86_400e9)).max(at_least),
            ),
        }
    }

    /// How long to wait for the ack of a packet before suspecting its loss: RTT, four times its jitter (after
    /// RFC 6298), and the time that the peer holds acks (after RFC 9002).
    pub fn resend_timeout(&self) -> Duration {
        let jitter = (self.rtt.jitter() * 4).max(TIMER_GRANULARITY);
        self.rtt.smoothed().map_or(INITIAL_TIMEOUT, |rtt| rtt + jitter + self.peer_delay)
    }

    /// How long after the last packet to send another one that only asks for acks: acks of later packets show which
    /// of the last ones are lost.
    pub fn probe_interval(&self) -> Duration {
        let round_trip = self.rtt.smoothed().unwrap_or(INITIAL_RTT);
        (round_trip / 8).max(MIN_PROBE_INTERVAL)
    }

    /// The newest packet received.
    pub fn newest_received(&self) -> Option<u64> {
        self.newest_received
    }

    /// Whether a packet of the peer, older than the newest one, hasn't arrived; true for those older than the window.
    pub(in crate::transport) fn is_missing(&self, sequence: u64) -> bool {
        !self.received.contains(sequence) && !self.skipped.contains(sequence)
    }

    /// The smoothed RTT, or `None` before the first sample.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// Brings packet loss and bandwidth up to date: once a tick, after [`Acks::poll_lost`].
    pub fn update(&mut self, now: Instant) {
        self.recent.update(now);
        if let Some(standard) = &mut self.standard {
            standard.update(&self.sent);
        }
    }

    /// RTT, jitter, packet loss and bandwidth.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.rtt.summarize(&mut stats);
        self.recent.summarize(&mut stats);
        if let Some(standard) = &self.standard {
            standard.summarize(&mut stats);
        }
        stats
    }

    /// How many packets counted as lost.
    pub(in crate::transport) fn packets_lost(&self) -> u64 {
        self.counters.lost
    }

    /// How many packets had which outcome.
    pub fn counters(&self) -> AckCounters {
        self.counters
    }
}

#[cfg(test)]
impl Acks {
    /// Records that a packet was sent, and returns its number. `wire_bytes` counts as bandwidth.
    pub(crate) fn record_sent(&mut self, now: Instant, wire_bytes: u32) -> u64 {
        let sequence = self.next_sequence();
        let _passed = self.track_sent(now, wire_bytes, ());
        sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn acks(sent_window: usize, received_window: usize) -> Acks {
        Acks::new(&AcksConfig {
            sent_window,
            received_window,
            max_window: sent_window,
            ..AcksConfig::default()
        })
        .unwrap()
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn send(acks: &mut Acks, packets: u32, now: Instant) {
        for _ in 0..packets {
            acks.record_sent(now, 1);
        }
    }

    fn lost(acks: &mut Acks, now: Instant) -> Vec<u64> {
        let mut out = Vec::new();
        acks.poll_lost(now, &mut out);
        out
    }

    fn process(acks: &mut Acks, now: Instant, ack: u64, ack_bits: u32) -> Vec<u64> {
        let mut out = Vec::new();
        acks.process(
            now,
            &FullHeader { sequence: 0, ack, ack_bits, skipped: 0 },
            RttSampling::EveryAck,
            &mut out,
        );
        out.iter().filter(|acked| !acked.late).map(|acked| acked.sequence).collect()
    }

    #[test]
    fn each_packet_is_acked_once_newest_first() {
        let mut acks = acks(256, 256);
        send(&mut acks, 40, ms(0));
        assert_eq!(process(&mut acks, ms(1), 5, 0b101), [5, 3]);
        assert_eq!(process(&mut acks, ms(1), 6, 0b1111), [6, 4]);
        assert_eq!(
            process(&mut acks, ms(1), 60, u32::MAX),
            (29..40).rev().collect::<Vec<_>>(),
            "never sent: 40..=60"
        );
        assert_eq!(acks.ack_one(3), None);
        assert_eq!(acks.ack_one(0), Some(Acked { sequence: 0, sent_at: ms(0), bytes: 1, late: false }));
        assert_eq!(acks.counters().acked, 16);
    }

    /// Forged, or from a faulty peer: later true acks must count.
    #[test]
    fn an_ack_of_what_was_not_sent_yet_does_not_keep_the_true_one_from_counting() {
        let mut acks = acks(256, 256);
        send(&mut acks, 5, ms(0));
        assert!(process(&mut acks, ms(1), 7, 0b111).is_empty());
        send(&mut acks, 3, ms(2));
        assert_eq!(process(&mut acks, ms(3), 7, 0b111), [7, 6, 5]);
    }

    /// Otherwise loss and bandwidth would be of other packets than in another implementation.
    #[test]
    fn windows_of_the_standard_keep_their_size() {
        for size in [64, 128, 256] {
            let config = AcksConfig { sent_window: size, ..AcksConfig::standard() };
            let mut acks = Acks::<()>::new(&config).unwrap();
            send(&mut acks, 1000, ms(0));
            assert_eq!(acks.sent_window(), size);
        }
    }

    /// reliable 1.0 takes the first sample unchanged and 0.25 % of each further one, the newest packet first.
    #[test]
    fn the_newest_packet_of_a_header_is_sampled_first() {
        let mut acks = Acks::new(&AcksConfig::standard()).unwrap();
        acks.record_sent(ms(0), 1);
        acks.record_sent(ms(50), 1);
        process(&mut acks, ms(100), 1, 0b11);
        assert!((acks.stats().rtt - 50.125).abs() < 1e-9, "{}", acks.stats().rtt);
    }

    #[test]
    fn numbers_that_no_packet_had_are_not_missing_however_many_ranges_there_are() {
        let mut acks = acks(64, 64);
        for (number, skipped) in [(0, 0), (1, 0), (5, 3), (6, 0), (9, 2), (11, 0)] {
            acks.record_skipped(number - skipped..number);
            acks.record_received(ms(number), number, 10);
        }
        let missing: Vec<_> = (0..11).filter(|number| acks.is_missing(*number)).collect();
        assert_eq!(missing, [10]);
    }

    #[test]
    fn a_number_left_out_is_neither_lost_nor_late_and_whoever_acks_it_is_found_out() {
        let mut acks = acks(64, 64);
        for number in 0..300u64 {
            if number % 3 == 0 {
                acks.skip_number();
            } else {
                assert_eq!(acks.record_sent(ms(0), 1), number);
            }
            if number % 3 == 2 {
                process(&mut acks, ms(1), number, 0b11);
            }
        }
        assert!(lost(&mut acks, ms(5000)).is_empty());
        acks.update(ms(5000));
        assert_eq!((acks.counters().sent, acks.counters().lost, acks.stats().packet_loss), (200, 0, 0.0));
        assert!(!acks.acked_skipped() && !acks.was_sent(297));
        assert!(process(&mut acks, ms(1), 299, 0b111).is_empty());
        assert!(acks.acked_skipped());
    }

    #[test]
    fn a_range_acks_the_window_from_end_to_end_and_no_more() {
        let mut acks = acks(64, 64);
        send(&mut acks, 100, ms(0));
        let mut out = Vec::new();
        acks.ack_range(30_000, 0, &mut out);
        let acked: Vec<_> = out.drain(..).map(|acked| acked.sequence).collect();
        assert_eq!(acked, (100 - 64..100).rev().collect::<Vec<_>>());
        send(&mut acks, 20, ms(1));
        acks.ack_range(56, 40, &mut out);
        assert!(out.is_empty(), "acked before");
        acks.ack_range(101, 100, &mut out);
        assert_eq!(out.len(), 2);
        acks.ack_range(20_000, 19_000, &mut out);
        assert_eq!(out.len(), 2, "never sent");
    }

    #[test]
    fn a_packet_not_acked_in_time_is_lost_once_and_a_late_ack_is_marked() {
        let mut acks = acks(256, 256);
        for sequence in 0..4 {
            assert_eq!(acks.record_sent(ms(sequence * 100), 100), sequence);
        }
        assert_eq!(process(&mut acks, ms(400), 1, 1), [1]);
        assert!(lost(&mut acks, ms(999)).is_empty());
        assert_eq!(lost(&mut acks, ms(1200)), [0, 2]);
        assert!(lost(&mut acks, ms(1200)).is_empty());
        assert_eq!(process(&mut acks, ms(1250), 3, 0xF), [3], "0 and 2 come too late");
        assert_eq!(acks.ack_one(0), None);
        let counters = acks.counters();
        assert_eq!((counters.acked, counters.lost, counters.late_acks), (2, 2, 2));
    }

    #[test]
    fn a_packet_pushed_out_of_the_window_is_lost_not_forgotten() {
        let mut acks = acks(16, 16);
        send(&mut acks, 16, ms(0));
        process(&mut acks, ms(1), 1, 1);
        send(&mut acks, 4, ms(2));
        assert_eq!(lost(&mut acks, ms(3)), [0, 2, 3]);
        assert_eq!(acks.ack_one(2), None);
        assert_eq!(lost(&mut acks, ms(1000)), (4..16).collect::<Vec<_>>());
    }

    #[test]
    fn lost_packets_nobody_polls_take_bounded_memory() {
        let mut acks = acks(16, 16);
        send(&mut acks, 200_000, ms(0));
        assert_eq!(acks.overwritten.len(), MAX_UNREPORTED);
        assert_eq!(acks.counters().lost, 200_000 - 16);
    }

    #[test]
    fn a_multiple_of_the_rtt_bounds_the_wait() {
        let loss_bound = LossBound::Rtt { multiple: 2.0, at_least: Duration::from_millis(50) };
        let mut acks = Acks::new(&AcksConfig { loss_bound, ..AcksConfig::default() }).unwrap();
        assert_eq!(acks.time_to_loss(), LossBound::DEFAULT_TIME);
        acks.record_sent(ms(0), 1);
        process(&mut acks, ms(100), 0, 1);
        assert_eq!(acks.time_to_loss(), Duration::from_millis(200));
        let sequence = acks.record_sent(ms(100), 1);
        assert!(lost(&mut acks, ms(299)).is_empty());
        assert_eq!(lost(&mut acks, ms(300)), [sequence]);
    }

    #[test]
    fn a_late_ack_still_teaches_the_rtt() {
        let loss_bound = LossBound::Rtt { multiple: 1.5, at_least: Duration::ZERO };
        let mut acks = Acks::new(&AcksConfig { loss_bound, ..AcksConfig::default() }).unwrap();
        acks.record_sent(ms(0), 1);
        assert_eq!(lost(&mut acks, ms(1000)), [0]);
        process(&mut acks, ms(2000), 0, 1);
        assert_eq!(acks.time_to_loss(), Duration::from_secs(3));
    }

    #[test]
    fn the_ack_delay_comes_off_the_newest_packets_round_trip_and_no_other_is_sampled() {
        let mut acks = acks(256, 256);
        (0..3).for_each(|i| send(&mut acks, 1, ms(i * 10)));
        let sampling = RttSampling::NewestAck { delay: Duration::from_millis(15) };
        let mut out = Vec::new();
        acks.process(
            ms(100),
            &FullHeader { sequence: 0, ack: 2, ack_bits: 0b110, skipped: 0 },
            sampling,
            &mut out,
        );
        assert_eq!((out.len(), acks.rtt()), (2, None));
        acks.process(
            ms(100),
            &FullHeader { sequence: 1, ack: 2, ack_bits: 0b111, skipped: 0 },
            sampling,
            &mut out,
        );
        assert_eq!(acks.rtt(), Some(Duration::from_millis(65)));
    }

    #[test]
    fn tells_new_packets_from_duplicates_and_stale_ones() {
        let mut acks = acks(256, 64);
        acks.record_received(ms(5), 1000, 1);
        acks.record_received(ms(6), 990, 1);
        assert_eq!(acks.is_new(1000), Err(NotNew::Duplicate));
        assert_eq!(acks.is_new(1000 - 64), Err(NotNew::Stale));
        assert_eq!(acks.is_new(1000 - 63), Ok(()));
        assert_eq!((acks.newest_received(), acks.received.contains(990)), (Some(1000), true));
        acks.advance_received(1003);
        assert_eq!(
            acks.header(),
            FullHeader { sequence: 0, ack: 1003, ack_bits: 1 << 3 | 1 << 13, skipped: 0 }
        );
        assert_eq!(acks.newest_received(), Some(1000), "1003 is here in part only");
    }

    #[test]
    fn in_order_refuses_what_a_newer_packet_overtook() {
        let mut acks = Acks::new(&AcksConfig { in_order_only: true, ..AcksConfig::default() }).unwrap();
        acks.record_received(ms(0), 9, 1);
        acks.record_received(ms(0), 11, 1);
        assert_eq!(acks.is_new(10), Err(NotNew::OutOfOrder));
        acks.record_received(ms(0), 10, 1);
        assert!(!acks.received.contains(10), "so it is never acked");
        assert_eq!(acks.is_new(12), Ok(()));
    }

    /// 99 % loss both ways: each ack is of a packet that arrived, and each packet sent is resolved exactly once.
    #[test]
    fn no_false_ack_at_99_percent_loss() {
        const SENT: u64 = 5 * 65_536;
        let mut rng = Rng::seeded(99);
        let (mut a, mut b) = (acks(1024, 1024), acks(256, 256));
        let mut arrived = vec![false; SENT as usize];
        let mut resolved = vec![0u8; SENT as usize];
        let (mut acked, mut lost) = (Vec::new(), Vec::new());
        for i in 0..SENT {
            let now = ms(i);
            let sequence = a.record_sent(now, 1);
            assert_eq!(sequence, i);
            if rng.chance(0.01) {
                b.record_received(now, sequence, 1);
                arrived[i as usize] = true;
            }
            if rng.chance(0.01) {
                a.process(now, &b.header(), RttSampling::EveryAck, &mut acked);
            }
            a.poll_lost(now, &mut lost);
            for acked in acked.drain(..) {
                assert!(arrived[acked.sequence as usize], "false ack of {} at {i}", acked.sequence);
                assert_eq!(acked.sent_at, ms(acked.sequence));
                resolved[acked.sequence as usize] += 1;
            }
            lost.drain(..).for_each(|sequence| resolved[sequence as usize] += 1);
        }
        assert!(resolved[..SENT as usize - 1024].iter().all(|&times| times == 1));
        let counters = a.counters();
        assert!(counters.acked > 500, "{counters:?}");
    }
}
