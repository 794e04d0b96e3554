//! Notifications about messages, in the order of the packets that carried them (the delivery notification manager of
//! "Multiplayer Game Programming", chapter 7).
//!
//! Promises: each message has one notification, in packet order: an early one waits until all earlier packets are
//! acked or lost too, or the conversation is over.

use std::collections::VecDeque;

use crate::store::{List, Lists};

/// The places for packets that are kept while none waits: those of a large transfer are given back.
const KEPT_PACKETS: usize = 64;

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
    /// The packets from `next` on.
    packets: VecDeque<PendingPacket>,
    /// Notifications that wait for earlier packets.
    waiting: Lists<Notification>,
    ready: VecDeque<Notification>,
}

/// A packet whose notifications wait for earlier packets.
#[derive(Debug)]
struct PendingPacket {
    /// Whether neither an ack nor a loss decided it yet, and something of it is awaited.
    is_open: bool,
    waiting: List,
}

impl Notifications {
    /// Starts packet numbers here, before anything is sent.
    pub(in crate::transport) fn begin_at(&mut self, first: u64) {
        self.next = first;
    }

    /// The next packet was sent, or its number was skipped. With `is_open`, its outcome is awaited.
    pub(in crate::transport) fn track_sent(&mut self, is_open: bool) {
        if is_open || !self.packets.is_empty() {
            self.packets.push_back(PendingPacket { is_open, waiting: List::default() });
        } else {
            self.next += 1;
        }
    }

    /// A packet was acked or lost, which decided these notifications.
    pub(in crate::transport) fn resolve(&mut self, sequence: u64, notifications: &mut Vec<Notification>) {
        let index = sequence.checked_sub(self.next).and_then(|index| usize::try_from(index).ok());
        match index.and_then(|index| self.packets.get_mut(index)).filter(|packet| packet.is_open) {
            Some(packet) => {
                packet.is_open = false;
                let decided = notifications.drain(..);
                decided.for_each(|notification| self.waiting.push(&mut packet.waiting, notification));
                self.release();
            }
            // The packet was reported before: later notifications about it come last.
            None => self.ready.extend(notifications.drain(..)),
        }
    }

    /// Hands over what waits, up to the first packet that is open.
    fn release(&mut self) {
        while self.packets.front().is_some_and(|packet| !packet.is_open)
            && let Some(PendingPacket { waiting, .. }) = self.packets.pop_front()
        {
            self.ready.extend(self.waiting.iter(&waiting));
            self.waiting.clear(waiting);
            self.next += 1;
        }
        if self.packets.is_empty() {
            self.packets.shrink_to(KEPT_PACKETS);
        }
    }

    /// Adds the notification of a message that was never in a packet.
    pub(in crate::transport) fn push(&mut self, notification: Notification) {
        self.ready.push_back(notification);
    }

    /// No more packets will be acked or lost: releases all waiting notifications.
    pub(in crate::transport) fn abandon_all(&mut self) {
        self.packets.iter_mut().for_each(|packet| packet.is_open = false);
        self.release();
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

    #[test]
    fn what_is_known_early_waits_for_earlier_packets() {
        let mut notifications = Notifications::default();
        notifications.begin_at(16_000);
        // 16,002 is left out, and nothing waits for it.
        [true, true, false, true, true, true]
            .into_iter()
            .for_each(|is_open| notifications.track_sent(is_open));
        let mut resolve = |sequence: u64, delivered: bool| {
            let mut of = vec![Notification { channel: 0, tag: sequence as u32, delivered }];
            notifications.resolve(sequence, &mut of);
            std::iter::from_fn(|| notifications.poll()).map(|it| it.tag).collect::<Vec<_>>()
        };
        assert!(resolve(16_004, true).is_empty());
        assert!(resolve(16_001, false).is_empty());
        assert_eq!(resolve(16_000, true), [16_000, 16_001]);
        assert_eq!(resolve(16_001, true), [16_001], "late: behind the rest");
        assert_eq!(resolve(16_003, true), [16_003, 16_004]);
        assert_eq!(resolve(16_005, true), [16_005]);
    }

    #[test]
    fn at_the_end_what_waited_is_told() {
        let mut notifications = Notifications::default();
        [true, true].into_iter().for_each(|is_open| notifications.track_sent(is_open));
        let mut of = vec![Notification { channel: 0, tag: 5, delivered: true }];
        notifications.resolve(1, &mut of);
        assert_eq!(notifications.poll(), None);
        notifications.abandon_all();
        assert_eq!(notifications.poll().map(|it| it.tag), Some(5));
    }
}
