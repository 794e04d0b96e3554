//! What becomes of messages whose sender wants to know, told in the order of the packets that carried them
//! (the delivery notification manager of "Multiplayer Game Programming", chapter 7).
//!
//! Promises: of each message one notification, in packet order: one that is known early waits until all
//! earlier packets' fates are known too.

use std::collections::VecDeque;

use crate::store::sequence::distance;

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

/// The packets in flight that carry a message whose fate is wanted, in order.
#[derive(Debug, Default)]
pub(super) struct Fates {
    packets: VecDeque<(u16, Option<Vec<Notification>>)>,
    told: VecDeque<Notification>,
}

impl Fates {
    /// Notes a packet that carries such messages.
    pub(super) fn await_packet(&mut self, sequence: u16) {
        self.packets.push_back((sequence, None));
    }

    /// The fate of a packet is known, and with it that of these messages.
    pub(super) fn resolve(&mut self, sequence: u16, notifications: &mut Vec<Notification>) {
        let at = self.packets.partition_point(|(other, _)| distance(*other, sequence) < 0);
        match self.packets.get_mut(at) {
            Some((found, fate @ None)) if *found == sequence => *fate = Some(core::mem::take(notifications)),
            // A fate that was known before: what it changes is told behind the rest.
            _ => self.told.extend(notifications.drain(..)),
        }
        while let Some((_, Some(_))) = self.packets.front() {
            if let Some((_, Some(known))) = self.packets.pop_front() {
                self.told.extend(known);
            }
        }
    }

    /// The next notification.
    pub(super) fn poll(&mut self) -> Option<Notification> {
        self.told.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_early_waits_for_earlier_packets() {
        let mut fates = Fates::default();
        let of = |tag| vec![Notification { channel: 0, tag, delivered: true }];
        (65_534..=65_535).chain(0..2).for_each(|sequence| fates.await_packet(sequence));
        fates.resolve(0, &mut of(3));
        fates.resolve(65_535, &mut of(2));
        assert_eq!(fates.poll(), None);
        fates.resolve(65_534, &mut of(1));
        let told: Vec<_> = std::iter::from_fn(|| fates.poll()).map(|told| told.tag).collect();
        assert_eq!(told, [1, 2, 3]);
    }
}
