//! A message of a reliable channel: src/transport/stream/STATE_MACHINE.md.

use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{ChannelConfig, ChannelKind, Connection, Resend, SendOptions};

use super::{Accident, Machine, Wire, compare, documented, hash_of, side, small_windows, walk};
use crate::fuzz_targets::native::{handle, labelled};
use crate::pair::{blob, check, number, protocol_with};

/// Messages are sent one way; the first one's state is observed.
const MESSAGES: usize = 2;

/// `CUT`: the first message goes in three fragments.
struct Delivery<const ORDERED: bool, const CUT: bool = false> {
    now: Instant,
    ends: [Connection; 2],
    wires: [Wire; 2],
    sent: u32,
    taken: Vec<u32>,
    delivered: Vec<u32>,
    launched: bool,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Send,
    Tick(usize),
    Suffer(usize, Accident),
    Take,
}

impl<const ORDERED: bool, const CUT: bool> Delivery<ORDERED, CUT> {
    /// `wires[end]` leads to that end.
    fn tick(&mut self, end: usize) {
        // As long as the resend time, and longer than what acks wait.
        self.now += Duration::from_millis(100);
        let mut out = Packets::new();
        self.ends[end].transmit(self.now, &mut out);
        out.iter().for_each(|packet| self.wires[1 - end].push(&labelled(packet)));
        self.launched |= end == 0 && self.sent > 0;
        self.told();
    }

    fn deliver(&mut self, end: usize, packet: &[u8]) {
        handle(&mut self.ends[end], self.now, packet).expect("honest packets");
        self.told();
    }

    fn told(&mut self) {
        while let Some(told) = self.ends[0].poll_notification() {
            assert!(told.delivered && !self.delivered.contains(&told.tag), "told once");
            assert!(self.ends[1].channel_stats(0).received > self.delivered.len() as u64, "and truly");
            self.delivered.push(told.tag);
        }
    }

    fn take(&mut self) {
        while let Some(message) = self.ends[1].poll_received(0) {
            let number = check(&protocol_with(channels(ORDERED)), &message);
            assert!(number < self.sent && !self.taken.contains(&number), "once");
            assert!(!ORDERED || number as usize == self.taken.len(), "in order");
            self.taken.push(number);
        }
    }
}

fn channels(ordered: bool) -> Vec<ChannelConfig> {
    let resend = Resend::After(Duration::from_millis(100));
    let kind = ChannelKind::Reliable { ordered, receive_window: 4, receive_bytes: 1 << 18, resend };
    vec![ChannelConfig::new(kind)]
}

impl<const ORDERED: bool, const CUT: bool> Machine for Delivery<ORDERED, CUT> {
    type Action = Action;

    fn start() -> Self {
        let end = || Connection::new(&small_windows(), protocol_with(channels(ORDERED))).unwrap();
        Delivery {
            now: Instant::ZERO,
            ends: [end(), end()],
            wires: Default::default(),
            sent: 0,
            taken: Vec::new(),
            delivered: Vec::new(),
            launched: false,
        }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        if (self.sent as usize) < MESSAGES {
            actions.push(Action::Send);
        }
        for end in 0..2 {
            if self.wires[1 - end].packets.len() < 2 {
                actions.push(Action::Tick(end));
            }
            let accidents = self.wires[end].accidents();
            actions.extend(accidents.into_iter().map(|accident| Action::Suffer(end, accident)));
        }
        if self.ends[1].has_news() {
            actions.push(Action::Take);
        }
        actions
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Send => {
                let options = SendOptions { tag: self.sent, notify: true, key: 0 };
                let message = if CUT && self.sent == 0 { blob(0, 2_500) } else { number(self.sent) };
                self.ends[0].send(self.now, 0, message, options).unwrap();
                self.sent += 1;
            }
            Action::Tick(end) => self.tick(end),
            Action::Suffer(end, accident) => {
                if let Some(packet) = self.wires[end].suffer(accident) {
                    self.deliver(end, &packet);
                }
            }
            Action::Take => self.take(),
        }
    }

    /// Of the first message, at both ends. Whether it is at the receiver shows when the second is not sent yet, or by
    /// what the receiver would give.
    fn state(&self) -> String {
        let sender = match () {
            () if self.sent == 0 => "unknown",
            () if self.delivered.contains(&0) => "delivered",
            () if self.launched => "in flight",
            () => "queued",
        };
        let receiver = match () {
            () if self.taken.contains(&0) => "taken",
            () if ORDERED && self.ends[1].has_news() => "here",
            () if !ORDERED && self.ends[1].channel_stats(0).received == 2 => "here",
            () if !ORDERED && self.sent == 1 && self.ends[1].has_news() => "here",
            () => "missing",
        };
        format!("{sender}/{receiver}")
    }

    fn everything(&self) -> Option<u64> {
        Some(hash_of(&[&self.now, &self.ends, &self.wires, &self.sent, &self.taken, &self.delivered]))
    }

    fn conclude(mut self) {
        for _ in 0..20 {
            for end in 0..2 {
                for packet in core::mem::take(&mut self.wires[end].packets) {
                    self.deliver(end, &packet.bytes);
                }
                self.tick(end);
            }
            self.take();
        }
        assert_eq!(self.taken.len(), self.sent as usize, "all arrive");
        assert_eq!(self.delivered.len(), self.sent as usize, "all are told of");
        assert_eq!(self.ends[0].channel_stats(0).queued, 0);
    }
}

const FILE: &str = "src/transport/stream/STATE_MACHINE.md";

#[test]
fn a_reliable_ordered_message_goes_as_its_document_says() {
    let walks = [walk::<Delivery<true>>(6)];
    println!("reliable-ordered messages: {} states to a depth of 6", walks[0].states);
    compare(&side(&walks, 0), &documented(FILE, "## Sender, one message", 0, 3));
    compare(&side(&walks, 1), &documented(FILE, "## Receiver, one message", 0, 3));
    assert!(walks[0].states > 1_000, "{}", walks[0].states);
}

#[test]
fn reliable_unordered_messages_arrive_once_after_any_accidents() {
    let walk = walk::<Delivery<false>>(5);
    println!("reliable-unordered messages: {} states to a depth of 5", walk.states);
    assert!(walk.states > 1_000, "{}", walk.states);
}

/// Each fragment in a packet of its own, so that each is lost, doubled and overtaken by itself; the small message may come
/// before it is whole.
#[test]
fn messages_in_fragments_arrive_once_after_any_accidents() {
    let walks = [walk::<Delivery<true, true>>(5), walk::<Delivery<false, true>>(5)];
    println!("messages in fragments: {} and {} states to a depth of 5", walks[0].states, walks[1].states);
    assert!(walks.iter().all(|walk| walk.states > 1_000));
}
