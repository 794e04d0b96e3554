//! Acks and losses: the windows of sent and received packets, acks in both directions, and the verdict "lost"
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

use super::estimate::{Recent, Rtt, Stats, whole_nanoseconds};
pub use super::received::NotNew;
use super::received::ReceivedPackets;
use super::reordering::Reordering;
use super::sent::{Fate, SentPacket, SentPackets};
use crate::limits::ConfigError;
use crate::store::counters::counters;
use crate::store::sequence::ahead;
use crate::time::{Duration, Instant};
pub use crate::transport::packet::{AcksConfig, LossBound};
use core::ops::Range;

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
    /// How many packets had which outcome. [`Acks`] counts up to `late_acks`, its owner the others.
    pub struct PacketCounters {
        /// Packets recorded as sent.
        sent,
        /// Packets recorded as received.
        received,
        /// Sent packets that were acked in time.
        acked,
        /// Sent packets given up as lost.
        lost,
        /// Acks of packets already given up.
        late_acks,
        /// Payloads too long to send.
        too_large_to_send,
        /// Datagrams and payloads dropped for their length.
        too_large_to_receive,
        /// Datagrams dropped because they are no packets.
        invalid,
        /// Packets dropped, and fragments of packets dropped, because they are older than the window.
        stale,
        /// Packets dropped because they were received before.
        duplicates,
        /// Packets dropped because a newer one was received, where order was asked for.
        out_of_order,
        /// Packets the application refused.
        refused,
        /// Packets dropped because messages that were not taken hold all the memory they may.
        without_memory,
        fragments_sent,
        /// Fragments that found their place.
        fragments_received,
        /// Fragments dropped because they contradict themselves or each other.
        fragments_invalid,
        /// Fragments dropped because they were received before.
        fragment_duplicates,
        /// Fragments dropped because partial packets took all the memory they may.
        fragments_without_memory,
    }
}

/// The packets of one conversation, both directions; of each packet sent `T` is noted.
#[derive(Clone, Debug)]
pub struct Acks<T = ()> {
    sent: SentPackets<T>,
    /// Everything sent before this one is acked or lost.
    oldest_in_flight: u64,
    /// A number was acked that no packet had.
    pub(in crate::transport) acked_skipped: bool,
    /// Lost by being overwritten, not yet polled.
    overwritten: VecDeque<u64>,
    /// The packets of the peer.
    pub(crate) received: ReceivedPackets,
    /// The acks of the newest header: the next ones repeat most of them.
    heard: (u64, u32),
    loss_bound: LossBound,
    reordering: Option<Reordering>,
    /// How long the peer holds acks: the longest that was seen recently.
    peer_delay: Duration,
    initial_window: usize,
    max_window: usize,
    /// Since the window was last asked to shrink.
    most_in_flight: usize,
    rtt: Rtt,
    recent: Recent,
    /// How many packets had which outcome.
    pub counters: PacketCounters,
}

impl<T: Default> Acks<T> {
    /// A conversation in which nothing was sent or received.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn new(config: &AcksConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Acks {
            sent: SentPackets::new(config.sent_window, 0),
            oldest_in_flight: 0,
            acked_skipped: false,
            overwritten: VecDeque::new(),
            received: ReceivedPackets::new(config.received_window, config.in_order_only),
            heard: (0, 0),
            loss_bound: config.loss_bound,
            reordering: config.early_loss.then(Reordering::default),
            peer_delay: Duration::ZERO,
            max_window: config.max_window.unwrap_or(0).max(config.sent_window),
            initial_window: config.sent_window,
            most_in_flight: 0,
            rtt: Rtt::new(config.rtt_smoothing, config.rtt_history),
            recent: Recent::default(),
            counters: PacketCounters::default(),
        })
    }

    /// Starts packet numbers here instead of at 0, before anything is sent: at a number that strangers can't guess. A
    /// peer that knows only 16 bits of them accepts any number below 16,384 as a first one, however large its window.
    pub fn begin_at(&mut self, first: u64) {
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

    /// The number of the next packet sent.
    pub fn next_sequence(&self) -> u64 {
        self.sent.next()
    }

    /// The newest packet sent.
    pub(in crate::transport) fn newest_sent(&self) -> u64 {
        self.next_sequence().wrapping_sub(1)
    }

    /// The header of the next packet sent, with the freshest acks.
    pub fn header(&self) -> FullHeader {
        FullHeader {
            sequence: self.next_sequence(),
            ack: self.ack(),
            ack_bits: self.received.bits(),
            skipped: 0,
        }
    }

    /// The newest known packet of the peer, which headers ack.
    pub fn ack(&self) -> u64 {
        self.received.ack()
    }

    /// Records that the next packet was sent; `wire_bytes` counts as bandwidth. Returns the note of the packet that
    /// is forgotten for it.
    pub(in crate::transport) fn track_sent(&mut self, now: Instant, wire_bytes: u32, note: T) -> Option<T> {
        self.recent.sent_bytes.add(f64::from(wire_bytes));
        self.counters.sent += 1;
        self.push_sent(Some(SentPacket { at: now, bytes: wire_bytes, fate: Fate::InFlight, note }))
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

    fn push_sent(&mut self, sent: Option<SentPacket<T>>) -> Option<T> {
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
        self.received.is_new(sequence)
    }

    /// Records that a packet of the peer was received, so that it will be acked. One that is not new is ignored.
    pub fn record_received(&mut self, sequence: u64) {
        if self.is_new(sequence).is_err() {
            return;
        }
        self.recent.peer_sent.add(self.received.insert(sequence) as f64);
        self.recent.received.add(1.0);
        self.counters.received += 1;
    }

    /// No packet of the peer has these numbers: they aren't missing.
    pub(in crate::transport) fn record_skipped(&mut self, numbers: Range<u64>) {
        self.recent.peer_sent.add(-(numbers.end.wrapping_sub(numbers.start) as f64));
        self.received.skip(numbers);
    }

    /// Counts the bytes of a datagram of the peer, whatever becomes of it.
    pub fn record_arrival(&mut self, wire_bytes: u32) {
        self.recent.received_bytes.add(f64::from(wire_bytes));
    }

    /// Remembers more received packets, up to the largest window, if half the window is not enough for this many.
    pub fn remember_received(&mut self, packets: usize) {
        let window = self.received.window();
        if packets > window / 2 && window < self.max_window {
            self.received.grow(window * 2);
        }
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
                sent.fate = Fate::Acked;
                self.recent.lost.add(-1.0);
                self.counters.late_acks += 1;
                true
            }
            Fate::Acked => return None,
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

    /// Appends the packets that count as lost by now to `out`, in sequence order. Each is reported once, and later acks
    /// of it are only counted. Without this call only packets that leave the window are given up.
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

    /// Brings packet loss and bandwidth up to date: once a tick, after [`Acks::poll_lost`].
    pub fn update(&mut self, now: Instant) {
        self.recent.update(now);
    }

    /// The longest of the last round trips; zero before the first.
    pub(in crate::transport) fn longest_rtt(&self) -> Duration {
        self.rtt.longest()
    }

    /// RTT, jitter, packet loss and bandwidth.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.rtt.summarize(&mut stats);
        self.recent.summarize(&mut stats);
        stats
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
mod tests;
