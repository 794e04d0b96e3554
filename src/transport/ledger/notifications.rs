//! Notifications about messages, in the order of the packets that carried them (the delivery notification manager of
//! "Multiplayer Game Programming", chapter 7).
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

/// Notifications that are ready, and those that wait for earlier packets.
#[derive(Debug, Default)]
pub(in crate::transport) struct Notifications {
    /// All packets before this one were reported.
    next: u64,
    /// Notifications that wait for earlier packets.
    waiting: Lists<Notification>,
    ready: VecDeque<Notification>,
}

/// The part of a packet's record that notifications need.
#[derive(Debug, Default)]
pub(in crate::transport) struct PendingNotifications {
    /// Whether neither an ack nor a loss decided it yet, and something of it is awaited.
    is_open: bool,
    /// Notifications that wait for earlier packets.
    waiting: List,
}

impl PendingNotifications {
    /// For a packet that is about to be sent.
    pub(in crate::transport) fn open() -> Self {
        PendingNotifications { is_open: true, ..PendingNotifications::default() }
    }
}

/// A packet's record, with its pending notifications.
pub(in crate::transport) trait HasPending: Default {
    fn pending(&mut self) -> &mut PendingNotifications;
}

impl Notifications {
    /// Starts packet numbers here, before anything is sent.
    pub(in crate::transport) fn begin_at(&mut self, first: u64) {
        self.next = first;
    }

    /// A packet was acked or lost, which decided these notifications.
    pub(in crate::transport) fn resolve<T: HasPending>(
        &mut self,
        acks: &mut Acks<T>,
        sequence: u64,
        notifications: &mut Vec<Notification>,
    ) {
        match acks.note_mut(sequence).map(HasPending::pending) {
            Some(pending) if pending.is_open => {
                pending.is_open = false;
                notifications
                    .drain(..)
                    .for_each(|notification| self.waiting.push(&mut pending.waiting, notification));
            }
            // The packet was reported before: later notifications about it come last.
            _ => self.ready.extend(notifications.drain(..)),
        }
        self.release(acks, |pending| !pending.is_open);
    }

    /// Hands over what waits, up to the first packet that may not be passed.
    fn release<T: HasPending>(
        &mut self,
        acks: &mut Acks<T>,
        may_pass: impl Fn(&PendingNotifications) -> bool,
    ) {
        while self.next != acks.next_sequence() {
            if let Some(pending) = acks.note_mut(self.next).map(HasPending::pending) {
                if !may_pass(pending) {
                    return;
                }
                let waiting = core::mem::take(&mut pending.waiting);
                self.ready.extend(self.waiting.iter(&waiting));
                self.waiting.clear(waiting);
            }
            self.next = self.next.wrapping_add(1);
        }
    }

    /// Adds the notification of a message that was never in a packet.
    pub(in crate::transport) fn push(&mut self, notification: Notification) {
        self.ready.push_back(notification);
    }

    /// No more packets will be acked or lost: releases all waiting notifications.
    pub(in crate::transport) fn abandon_all<T: HasPending>(&mut self, acks: &mut Acks<T>) {
        self.release(acks, |_| true);
    }

    pub(in crate::transport) fn poll(&mut self) -> Option<Notification> {
        self.ready.pop_front()
    }

    /// Whether there is a next notification.
    pub(in crate::transport) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
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
        let mut notifications = Notifications::default();
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
            notifications.resolve(&mut acks, sequence, &mut of);
            std::iter::from_fn(|| notifications.poll()).map(|it| it.tag).collect::<Vec<_>>()
        };
        assert!(resolve(16_004, true, &mut notifications).is_empty());
        assert!(resolve(16_001, false, &mut notifications).is_empty());
        assert_eq!(resolve(16_000, true, &mut notifications), [16_000, 16_001]);
        assert_eq!(resolve(16_001, true, &mut notifications), [16_001], "late: behind the rest");
        assert_eq!(resolve(16_003, true, &mut notifications), [16_003, 16_004]);
        assert_eq!(resolve(16_005, true, &mut notifications), [16_005]);
    }

    #[test]
    fn at_the_end_what_waited_is_told() {
        let mut acks = Acks::<PendingNotifications>::new(&AcksConfig::default()).unwrap();
        let mut notifications = Notifications::default();
        for _ in 0..2 {
            acks.track_sent(Instant::ZERO, 1, PendingNotifications::open());
        }
        let mut of = vec![Notification { channel: 0, tag: 5, delivered: true }];
        notifications.resolve(&mut acks, 1, &mut of);
        assert_eq!(notifications.poll(), None);
        notifications.abandon_all(&mut acks);
        assert_eq!(notifications.poll().map(|it| it.tag), Some(5));
    }
}
