//! Notifications about messages and packets, in the order of the packets that carried them (the delivery notification
//! manager of "Multiplayer Game Programming", chapter 7).
//!
//! Promises: each message has one notification, in packet order: an early one waits until all earlier packets are
//! acked or lost too, or the conversation is over.

use std::collections::VecDeque;

use super::acks::Acks;
use crate::store::{List, Lists};

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    pub channel: u8,
    /// The sender's tag for the message.
    pub tag: u32,
    /// Whether the peer received it; otherwise it is lost for good.
    pub delivered: bool,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketNotification {
    pub sequence: u64,
    /// Whether the peer received it; otherwise it counts as lost.
    pub delivered: bool,
}

/// Notifications of packets that are kept to be polled; older ones are dropped.
const MAX_PACKET_NOTIFICATIONS: usize = 1024;

/// Notifications that are ready, and those that wait for earlier packets.
#[derive(Debug, Default)]
pub(in crate::transport) struct Notifications {
    /// All packets before this one were reported.
    next: u64,
    /// Notifications that wait for earlier packets.
    waiting: Lists<Notification>,
    ready: VecDeque<Notification>,
    /// Of all packets, if they are wanted.
    ready_packets: Option<VecDeque<PacketNotification>>,
}

/// The outcome of a packet, by the first verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    /// No packet has this number, or there is nothing to report.
    #[default]
    Nothing,
    /// It is not known yet.
    Open,
    /// The peer received it.
    Delivered,
    /// It counts as lost; it may be acked later.
    Lost,
}

/// The part of a packet's record that notifications need.
#[derive(Debug, Default)]
pub(in crate::transport) struct PendingNotifications {
    verdict: Verdict,
    /// Notifications that wait for earlier packets.
    waiting: List,
}

impl PendingNotifications {
    /// For a packet that is about to be sent.
    pub(in crate::transport) fn open() -> Self {
        PendingNotifications { verdict: Verdict::Open, ..PendingNotifications::default() }
    }
}

/// A packet's record, with its pending notifications.
pub(in crate::transport) trait HasPending: Default {
    fn pending(&mut self) -> &mut PendingNotifications;
}

impl Notifications {
    /// With `packets`, notifications of packets are kept too.
    pub(in crate::transport) fn new(packets: bool) -> Self {
        Notifications { ready_packets: packets.then(VecDeque::new), ..Self::default() }
    }

    /// Starts packet numbers here, before anything is sent.
    pub(in crate::transport) fn begin_at(&mut self, first: u64) {
        self.next = first;
    }

    /// Whether notifications of packets are kept.
    pub(in crate::transport) fn keeps_packets(&self) -> bool {
        self.ready_packets.is_some()
    }

    /// A packet was acked or lost, which decided these notifications.
    pub(in crate::transport) fn resolve<T: HasPending>(
        &mut self,
        acks: &mut Acks<T>,
        sequence: u64,
        delivered: bool,
        notifications: &mut Vec<Notification>,
    ) {
        match acks.note_mut(sequence).map(HasPending::pending) {
            Some(pending) if pending.verdict == Verdict::Open => {
                pending.verdict = if delivered { Verdict::Delivered } else { Verdict::Lost };
                notifications
                    .drain(..)
                    .for_each(|notification| self.waiting.push(&mut pending.waiting, notification));
            }
            // The packet was reported before: later notifications about it come last.
            _ => self.ready.extend(notifications.drain(..)),
        }
        while self.next != acks.next_sequence() {
            let PendingNotifications { verdict, waiting } =
                match acks.note_mut(self.next).map(HasPending::pending) {
                    Some(PendingNotifications { verdict: Verdict::Open, .. }) => break,
                    Some(pending) => {
                        PendingNotifications { waiting: core::mem::take(&mut pending.waiting), ..*pending }
                    }
                    None => PendingNotifications::default(),
                };
            if !waiting.is_empty() {
                self.ready.extend(self.waiting.iter(&waiting));
                self.waiting.clear(waiting);
            }
            if verdict != Verdict::Nothing {
                self.push_packet(PacketNotification {
                    sequence: self.next,
                    delivered: verdict == Verdict::Delivered,
                });
            }
            self.next = self.next.wrapping_add(1);
        }
    }

    fn push_packet(&mut self, fate: PacketNotification) {
        let Some(ready) = &mut self.ready_packets else { return };
        if ready.len() == MAX_PACKET_NOTIFICATIONS {
            ready.pop_front();
        }
        ready.push_back(fate);
    }

    /// Adds the notification of a message that was never in a packet.
    pub(in crate::transport) fn push(&mut self, notification: Option<Notification>) {
        if let Some(notification) = notification {
            self.ready.push_back(notification);
        }
    }

    /// No more packets will be acked or lost: releases all waiting notifications.
    pub(in crate::transport) fn abandon_all<T: HasPending>(&mut self, acks: &mut Acks<T>) {
        while self.next != acks.next_sequence() {
            let pending = acks.note_mut(self.next).map(HasPending::pending);
            let waiting = pending.map(|pending| core::mem::take(&mut pending.waiting)).unwrap_or_default();
            self.ready.extend(self.waiting.iter(&waiting));
            self.waiting.clear(waiting);
            self.next = self.next.wrapping_add(1);
        }
    }

    pub(in crate::transport) fn poll(&mut self) -> Option<Notification> {
        self.ready.pop_front()
    }

    /// Whether there is a next notification.
    pub(in crate::transport) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether there is a next notification of a packet.
    pub(in crate::transport) fn has_packet(&self) -> bool {
        self.ready_packets.as_ref().is_some_and(|ready| !ready.is_empty())
    }

    /// The next notification of a packet.
    pub(in crate::transport) fn poll_packet(&mut self) -> Option<PacketNotification> {
        self.ready_packets.as_mut()?.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;
    use crate::transport::packet::AcksConfig;

    impl HasPending for PendingNotifications {
        fn pending(&mut self) -> &mut PendingNotifications {
            self
        }
    }

    #[test]
    fn what_is_known_early_waits_for_earlier_packets() {
        let mut acks = Acks::<PendingNotifications>::new(&AcksConfig::default()).unwrap();
        acks.begin_at(16_000);
        let mut notifications = Notifications::new(true);
        notifications.begin_at(16_000);
        // 16,002 is left out, and nothing waits for it.
        for _ in 0..2 {
            acks.track_sent(Instant::ZERO, 1, PendingNotifications::open());
        }
        acks.skip_number();
        for _ in 0..3 {
            acks.track_sent(Instant::ZERO, 1, PendingNotifications::open());
        }
        let mut resolve = |sequence: u64, delivered: bool, notifications: &mut Notifications| {
            let mut of = vec![Notification { channel: 0, tag: sequence as u32, delivered }];
            notifications.resolve(&mut acks, sequence, delivered, &mut of);
            std::iter::from_fn(|| notifications.poll()).map(|it| it.tag).collect::<Vec<_>>()
        };
        assert!(resolve(16_004, true, &mut notifications).is_empty());
        assert!(resolve(16_001, false, &mut notifications).is_empty());
        assert_eq!(resolve(16_000, true, &mut notifications), [16_000, 16_001]);
        assert_eq!(resolve(16_001, true, &mut notifications), [16_001], "late: behind the rest");
        assert_eq!(resolve(16_003, true, &mut notifications), [16_003, 16_004]);
        let packets = std::iter::from_fn(|| notifications.poll_packet());
        let packets: Vec<_> = packets.map(|fate| (fate.sequence - 16_000, fate.delivered)).collect();
        assert_eq!(packets, [(0, true), (1, false), (3, true), (4, true)]);
        assert_eq!(resolve(16_005, true, &mut notifications), [16_005]);
    }

    #[test]
    fn at_the_end_what_waited_is_told() {
        let mut acks = Acks::<PendingNotifications>::new(&AcksConfig::default()).unwrap();
        let mut notifications = Notifications::new(false);
        for _ in 0..2 {
            acks.track_sent(Instant::ZERO, 1, PendingNotifications::open());
        }
        let mut of = vec![Notification { channel: 0, tag: 5, delivered: true }];
        notifications.resolve(&mut acks, 1, true, &mut of);
        assert_eq!(notifications.poll(), None);
        notifications.abandon_all(&mut acks);
        assert_eq!(notifications.poll().map(|it| it.tag), Some(5));
    }
}
