//! The byte window of a reliable channel, which fills behind a message that is missing: src/transport/stream/STATE_MACHINE.md.

use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{ChannelConfig, ChannelKind, Connection, Resend, SendOptions};

use super::{Accident, Machine, Wire, hash_of, small_windows, walk};
use crate::fuzz_targets::native::{handle, labelled};
use crate::pair::{blob, check, protocol_with};

/// Of the channel; every message counts 64 bytes and some besides its own.
const RECEIVE_BYTES: usize = 1500;
/// Sent one a packet before the walk begins: a small one, one whose loss makes a gap, and a large one.
const BEFORE: [usize; 3] = [4, 4, 520];
/// Sent from then on: too large until credit says that the large one was taken, and then several windows more.
const AFTER: [usize; 6] = [600, 520, 4, 4, 600, 600];

struct ByteWindow<const ORDERED: bool> {
    now: Instant,
    ends: [Connection; 2],
    /// `wires[end]` leads to that end.
    wires: [Wire; 2],
    taken: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Tick(usize),
    Suffer(usize, Accident),
    Take,
}

impl<const ORDERED: bool> ByteWindow<ORDERED> {
    fn send(&mut self, number: usize, bytes: usize) {
        self.ends[0].send(self.now, 0, blob(number as u32, bytes), SendOptions::default()).unwrap();
    }

    fn tick(&mut self, end: usize) {
        self.now += Duration::from_millis(100);
        let mut out = Packets::new();
        self.ends[end].transmit(self.now, &mut out);
        out.iter().for_each(|packet| self.wires[1 - end].push(&labelled(packet)));
    }

    fn deliver(&mut self, end: usize, packet: &[u8]) {
        handle(&mut self.ends[end], self.now, packet).expect("honest packets");
    }

    fn take(&mut self) {
        while let Some(message) = self.ends[1].poll_received(0) {
            let number = check(&protocol(ORDERED), &message);
            assert!(!self.taken.contains(&number), "once");
            assert!(!ORDERED || number as usize == self.taken.len(), "in order");
            self.taken.push(number);
        }
    }
}

fn protocol(ordered: bool) -> std::sync::Arc<tickwire::transport::Protocol> {
    // Long enough that each message in flight at the start has a packet of its own.
    let resend = Resend::After(Duration::from_millis(500));
    let kind = ChannelKind::Reliable { ordered, receive_window: 64, receive_bytes: RECEIVE_BYTES, resend };
    protocol_with(vec![ChannelConfig { max_message_bytes: 680, ..ChannelConfig::new(kind) }])
}

impl<const ORDERED: bool> Machine for ByteWindow<ORDERED> {
    type Action = Action;

    fn start() -> Self {
        let end = || Connection::new(&small_windows(), protocol(ORDERED)).unwrap();
        let (ends, wires) = ([end(), end()], Default::default());
        let mut machine = ByteWindow { now: Instant::ZERO, ends, wires, taken: Vec::new() };
        for (number, bytes) in BEFORE.into_iter().enumerate() {
            machine.send(number, bytes);
            machine.tick(0);
        }
        machine.send(BEFORE.len(), AFTER[0]);
        machine
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
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
            Action::Tick(end) => self.tick(end),
            Action::Suffer(end, accident) => {
                if let Some(packet) = self.wires[end].suffer(accident) {
                    self.deliver(end, &packet);
                }
            }
            Action::Take => self.take(),
        }
    }

    /// What has been taken, which says where gaps are.
    fn state(&self) -> String {
        format!("{:?}", self.taken)
    }

    fn everything(&self) -> Option<u64> {
        Some(hash_of(&[&self.now, &self.ends, &self.wires, &self.taken]))
    }

    fn conclude(mut self) {
        for (number, bytes) in (BEFORE.len()..).zip(AFTER).skip(1) {
            self.send(number, bytes);
        }
        for _ in 0..40 {
            for end in 0..2 {
                for packet in core::mem::take(&mut self.wires[end].packets) {
                    self.deliver(end, &packet.bytes);
                }
                self.tick(end);
            }
            self.take();
        }
        assert_eq!(self.taken.len(), BEFORE.len() + AFTER.len(), "all arrive");
        assert_eq!(self.ends[0].channel_stats(0).queued, 0);
    }
}

#[test]
fn a_byte_window_opens_again_after_any_accidents() {
    let walks = [walk::<ByteWindow<false>>(5), walk::<ByteWindow<true>>(5)];
    let states = walks.each_ref().map(|walk| walk.states);
    println!("a byte window: {states:?} states to a depth of 5");
    assert!(states.iter().all(|states| *states > 1_000), "{states:?}");
    let gap = walks[0].steps.iter().any(|(_, to)| to == "[0, 2]");
    assert!(gap, "what is taken leaves a gap");
}
