//! The acks that the peer is waiting for: what arrived since our last packet, and how large a packet of acks may be.

use core::time::Duration;

use crate::limits::MAX_DATAGRAM;
use crate::time::Instant;

/// How long an ack may wait between ticks for a packet to carry it: longer than a tick of 60 Hz and its jitter, so
/// that a game's own packets do. The delay is reported to the peer, so no round trip looks longer for it.
const ACK_DELAY: Duration = Duration::from_millis(25);

/// The longest wait of an ack between ticks that its sender needs soon: one visit of the driver. By acks of slices it
/// measures the rate and the queue of the path; with one in 25 ms it overfills queues (RFC 9000 recommends one for two
/// packets). A reliable message is sent again when its ack takes longer than usual: a copy that waits for an ack held
/// until the peer's tick arrives just after the next tick in which the peer could have read it.
const SHORT_ACK_DELAY: Duration = Duration::from_millis(1);

/// Ack at once after this many packets: as many as the ack bits of one header cover.
const MAX_PENDING: u32 = 32;

/// Anti-amplification: a packet that only acks is never larger than the bytes received since the last ack, of which
/// at most two datagrams count.
const MAX_CREDIT: usize = 2 * MAX_DATAGRAM;

/// Packets received since our last packet that ask for an ack.
#[derive(Debug, Default)]
pub(super) struct PendingAck {
    packets: u32,
    /// One of them has more than what `patient` is about.
    hasty: bool,
    /// The channel whose messages' acks may wait for the next packet, and how long.
    patient: Option<(u8, Duration)>,
    /// One of them has parts of a chunk, or messages or credit of a reliable channel: its ack goes with this tick, or soon
    /// after it came.
    pub(super) urgent: bool,
    /// The driver is awake between ticks, and will send what is due then.
    pub(super) awake: bool,
    /// When the first of them came.
    since: Instant,
    /// An ack alone would have been larger than what it acks.
    blocked_by_credit: bool,
    /// Bytes of datagrams received that no ack was sent for.
    credit: usize,
}

impl PendingAck {
    /// A datagram of this many bytes came.
    pub(super) fn grant(&mut self, bytes: usize) {
        self.credit = (self.credit + bytes).min(MAX_CREDIT);
        self.blocked_by_credit = false;
    }

    /// Acks of what comes on this channel alone may wait so long: the feature that fills it has acks of its own, and
    /// will say something by then.
    pub(super) fn set_patience(&mut self, channel: u8, patience: Duration) {
        self.patient = (patience > Duration::ZERO).then_some((channel, patience));
    }

    /// How long acks of one channel's messages may wait; zero: none do.
    pub(super) fn patience(&self) -> Duration {
        self.patient.map_or(Duration::ZERO, |(_, patience)| patience)
    }

    /// Whether acks of this channel's messages may wait.
    pub(super) fn is_patient(&self, channel: u8) -> bool {
        self.patient.is_some_and(|(patient, _)| patient == channel)
    }

    /// A packet came that wants to be acked; soon if `hasty`.
    pub(super) fn count(&mut self, now: Instant, hasty: bool) {
        if self.packets == 0 {
            self.since = now;
        }
        self.hasty |= hasty;
        self.packets = self.packets.saturating_add(1);
    }

    /// A packet that acks everything went out.
    pub(super) fn clear(&mut self) {
        (self.packets, self.blocked_by_credit) = (0, false);
        (self.hasty, self.urgent) = (false, false);
    }

    /// Until when packets may wait for their ack although there is a tick: for a feature's next packet, or where the
    /// driver is awake between ticks and none is urgent, for the application's next messages. There a tick may be only a
    /// datagram's arrival, and each packet would be answered by an ack.
    fn waits_until(&self) -> Instant {
        if self.packets >= MAX_PENDING {
            return Instant::ZERO;
        }
        let patience = self.patient.filter(|_| !self.hasty).map_or(Duration::ZERO, |(_, patience)| patience);
        let awake = if self.awake && !self.urgent { ACK_DELAY } else { Duration::ZERO };
        let most = patience.max(awake);
        if most.is_zero() { Instant::ZERO } else { self.since + most }
    }

    /// Whether packets wait for an ack that this tick should send.
    pub(super) fn is_pending(&self, now: Instant) -> bool {
        self.packets > 0 && self.waits_until() <= now
    }

    /// When a tick has an ack to send, if no other packet carries it; ZERO or a time that may have passed.
    pub(super) fn next_tick(&self) -> Instant {
        if self.packets == 0 || self.blocked_by_credit { Instant::NEVER } else { self.waits_until() }
    }

    /// When an ack is due that no other packet carried.
    pub(super) fn due_at(&self) -> Instant {
        match self.packets {
            0 => Instant::NEVER,
            _ if self.blocked_by_credit => Instant::NEVER,
            MAX_PENDING.. => Instant::ZERO,
            _ if self.urgent => self.since + SHORT_ACK_DELAY,
            _ => self.waits_until().max(self.since + ACK_DELAY),
        }
    }

    /// Spends the credit for an ack of this many bytes; false if there is not enough.
    pub(super) fn try_spend(&mut self, bytes: usize) -> bool {
        self.blocked_by_credit = self.credit < bytes;
        if !self.blocked_by_credit {
            self.credit -= bytes;
        }
        !self.blocked_by_credit
    }

    /// Whether there is credit for this many bytes.
    pub(super) fn covers(&self, bytes: usize) -> bool {
        self.credit >= bytes
    }

    /// Like [`PendingAck::try_spend`], for a packet that goes out in any case.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.credit = self.credit.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn pending(awake: bool) -> PendingAck {
        let mut pending = PendingAck { awake, ..PendingAck::default() };
        pending.count(ms(100), true);
        pending
    }

    #[test]
    fn a_tick_acks_at_once_unless_somebody_is_awake_until_the_ack_is_due() {
        assert!(pending(false).is_pending(ms(100)));
        assert_eq!(pending(false).next_tick(), Instant::ZERO);
        let waits = pending(true);
        assert!(!waits.is_pending(ms(124)) && waits.is_pending(ms(125)));
        assert_eq!((waits.next_tick(), waits.due_at()), (ms(125), ms(125)));
    }

    #[test]
    fn many_packets_and_what_is_urgent_do_not_wait_for_who_is_awake() {
        let mut many = pending(true);
        (1..MAX_PENDING).for_each(|_| many.count(ms(101), true));
        assert!(many.is_pending(ms(101)));
        assert_eq!(many.due_at(), Instant::ZERO);
        let mut urgent = pending(true);
        urgent.urgent = true;
        assert!(urgent.is_pending(ms(100)));
        assert_eq!(urgent.due_at(), ms(101), "no tick may come for long");
        urgent.clear();
        urgent.count(ms(200), true);
        assert!(!urgent.is_pending(ms(200)), "the next is not urgent");
    }
}
