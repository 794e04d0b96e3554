//! What becomes of messages whose sender wants to know, told in the order of the packets that carried them
//! (the delivery notification manager of "Multiplayer Game Programming", chapter 7).
//!
//! Promises: of each message one notification, in packet order: one that is known early waits until all
//! earlier packets' fates are known too, or the conversation is over.

use std::collections::VecDeque;

use crate::store::sequence::distance;
use crate::store::{List, Lists};

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The channel's index.
    pub channel: u8,
    /// What the sender gave the message to be known by.
    pub tag: u32,
    /// Whether the peer has it; otherwise it is lost for good.
    pub delivered: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFate {
    /// Its number.
    pub sequence: u16,
    /// Whether the peer has it; otherwise it counts as lost.
    pub delivered: bool,
}

/// Fates of packets kept for whoever asks; older ones are forgotten.
const MOST_PACKET_FATES: usize = 1024;

/// The packets in flight whose fate is wanted, or that of a message in them, in order.
#[derive(Debug, Default)]
pub(super) struct Fates {
    packets: VecDeque<(u16, Option<Resolved>)>,
    /// What waits for the fates of earlier packets.
    waiting: Lists<Notification>,
    told: VecDeque<Notification>,
    /// Of all packets, when asked for.
    told_packets: Option<VecDeque<PacketFate>>,
}

#[derive(Debug, Default)]
struct Resolved {
    delivered: bool,
    notifications: List,
}

impl Fates {
    /// With `packets`, the fates of packets are kept too.
    pub(super) fn new(packets: bool) -> Self {
        Fates { told_packets: packets.then(VecDeque::new), ..Self::default() }
    }

    /// Notes a packet sent; `carries` says whether there may be something to tell of what is in it.
    pub(super) fn await_packet(&mut self, sequence: u16, carries: bool) {
        if carries || self.told_packets.is_some() {
            self.packets.push_back((sequence, None));
        }
    }

    /// The fate of a packet is known, and with it that of these messages.
    pub(super) fn resolve(&mut self, sequence: u16, delivered: bool, notifications: &mut Vec<Notification>) {
        let at = self.packets.partition_point(|(other, _)| distance(*other, sequence) < 0);
        match self.packets.get_mut(at) {
            Some((found, fate @ None)) if *found == sequence => {
                let resolved = fate.insert(Resolved { delivered, ..Resolved::default() });
                notifications.drain(..).for_each(|told| self.waiting.push(&mut resolved.notifications, told));
            }
            // A fate that was known before: what it changes is told behind the rest.
            _ => self.told.extend(notifications.drain(..)),
        }
        while let Some((_, Some(_))) = self.packets.front() {
            if let Some((sequence, Some(Resolved { delivered, notifications }))) = self.packets.pop_front() {
                self.told.extend(self.waiting.iter(&notifications));
                self.waiting.clear(notifications);
                self.tell_packet(PacketFate { sequence, delivered });
            }
        }
    }

    fn tell_packet(&mut self, fate: PacketFate) {
        let Some(told) = &mut self.told_packets else { return };
        if told.len() == MOST_PACKET_FATES {
            told.pop_front();
        }
        told.push_back(fate);
    }

    /// Tells of a message that never was in a packet.
    pub(super) fn tell(&mut self, notification: Option<Notification>) {
        self.told.extend(notification);
    }

    /// No more fates of packets will be known: tells what waited for them.
    pub(super) fn conclude(&mut self) {
        for resolved in self.packets.drain(..).filter_map(|(_, fate)| fate) {
            self.told.extend(self.waiting.iter(&resolved.notifications));
            self.waiting.clear(resolved.notifications);
        }
    }

    /// The next notification.
    pub(super) fn poll(&mut self) -> Option<Notification> {
        self.told.pop_front()
    }

    /// Whether there is a next notification.
    pub(super) fn has_told(&self) -> bool {
        !self.told.is_empty()
    }

    /// The fate of the next packet.
    pub(super) fn poll_packet(&mut self) -> Option<PacketFate> {
        self.told_packets.as_mut()?.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_early_waits_for_earlier_packets() {
        let mut fates = Fates::new(true);
        let of = |tag| vec![Notification { channel: 0, tag, delivered: true }];
        (65_534..=65_535).chain(0..2).for_each(|sequence| fates.await_packet(sequence, true));
        fates.resolve(0, true, &mut of(3));
        fates.resolve(65_535, false, &mut of(2));
        assert_eq!(fates.poll(), None);
        fates.resolve(65_534, true, &mut of(1));
        let told: Vec<_> = std::iter::from_fn(|| fates.poll()).map(|told| told.tag).collect();
        assert_eq!(told, [1, 2, 3]);
        let packets: Vec<_> = std::iter::from_fn(|| fates.poll_packet()).collect();
        let packets: Vec<_> = packets.iter().map(|fate| (fate.sequence, fate.delivered)).collect();
        assert_eq!(packets, [(65_534, true), (65_535, false), (0, true)]);
    }
}
