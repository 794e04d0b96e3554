//! The chunk transfer of the article: src/articles/slices/STATE_MACHINE.md.

use tickwire::articles::slices::{ChunkReceiver, ChunkReceiverConfig, ChunkSender, ChunkSenderConfig};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};

use super::{Accident, Machine, Wire, compare, documented, hash_of, side, walk};

const DEPTH: usize = 7;

/// Two chunks, of one slice and of two; or the other way round.
struct Transfer<const LARGE_FIRST: bool> {
    now: Instant,
    sender: ChunkSender,
    receiver: ChunkReceiver,
    slices: Wire,
    acks: Wire,
    sent: usize,
    cancelled: [bool; 2],
    /// A cancelled chunk is still in flight.
    gives_up: bool,
    read: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Send,
    Tick,
    Slice(Accident),
    Ack(Accident),
    Read,
    Cancel,
}

impl<const LARGE_FIRST: bool> Transfer<LARGE_FIRST> {
    const CHUNKS: [usize; 2] = if LARGE_FIRST { [1500, 10] } else { [10, 1500] };

    fn tick(&mut self) {
        self.now += Duration::from_millis(100);
        let mut out = Datagrams::<()>::new();
        self.sender.tick(self.now, &mut out);
        out.iter().for_each(|(_, packet)| self.slices.push(packet));
        out.clear();
        self.receiver.tick(self.now, &mut out);
        assert!(out.len() <= 1);
        out.iter().for_each(|(_, packet)| self.acks.push(packet));
    }

    fn read(&mut self) {
        if let Some(chunk) = self.receiver.read() {
            let number = Self::CHUNKS.iter().position(|bytes| chunk == vec![*bytes as u8; *bytes]);
            let number = number.expect("a chunk that was sent");
            assert!(self.read.last().is_none_or(|last| number > *last), "once, in order");
            self.read.push(number);
        }
    }
}

impl<const LARGE_FIRST: bool> Machine for Transfer<LARGE_FIRST> {
    type Action = Action;

    fn start() -> Self {
        let config = ChunkSenderConfig { max_slices: 2, bytes_per_second: 1e6, ..Default::default() };
        let sender = ChunkSender::new(config).unwrap();
        let config = ChunkReceiverConfig { max_slices: 2, ..Default::default() };
        let receiver = ChunkReceiver::new(config).unwrap();
        let (now, sent, read) = (Instant::ZERO, 0, Vec::new());
        let (slices, acks) = (Wire::default(), Wire::default());
        Transfer { now, sender, receiver, slices, acks, sent, cancelled: [false; 2], gives_up: false, read }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.sent < Self::CHUNKS.len() {
            actions.push(Action::Send);
        }
        if self.sender.in_flight().is_some_and(|number| !self.cancelled[number as usize]) {
            actions.push(Action::Cancel);
        }
        if self.receiver.is_ready() {
            actions.push(Action::Read);
        }
        if self.slices.packets.len() <= 2 && self.acks.packets.len() <= 1 {
            actions.push(Action::Tick);
        }
        actions.extend(self.slices.accidents().into_iter().map(Action::Slice));
        actions.extend(self.acks.accidents().into_iter().map(Action::Ack));
        actions
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Send => {
                let bytes = Self::CHUNKS[self.sent];
                assert_eq!(self.sender.send(vec![bytes as u8; bytes]), Ok(self.sent as u64));
                self.sent += 1;
            }
            Action::Tick => self.tick(),
            Action::Slice(accident) => {
                if let Some(packet) = self.slices.suffer(accident) {
                    let _dropped_by_name = self.receiver.handle_slice(self.now, &packet);
                }
            }
            Action::Ack(accident) => {
                if let Some(packet) = self.acks.suffer(accident) {
                    let _dropped_by_name = self.sender.handle_ack(self.now, &packet);
                }
            }
            Action::Read => self.read(),
            Action::Cancel => {
                let number = self.sender.in_flight().unwrap();
                if self.sender.cancel(number) {
                    self.cancelled[number as usize] = true;
                }
            }
        }
        // The one thing that the sender doesn't tell.
        self.gives_up =
            self.sender.in_flight().is_none() && format!("{:?}", self.sender).contains("in_flight: Some");
    }

    fn state(&self) -> String {
        let sender = match self.sender.in_flight() {
            Some(_) => "sending",
            None if self.gives_up => "giving up",
            None => "idle",
        };
        let receiver = match self.receiver.progress() {
            None => "empty",
            Some(_) if self.receiver.is_ready() => "complete",
            Some(_) => "assembling",
        };
        format!("{sender}/{receiver}")
    }

    fn everything(&self) -> Option<u64> {
        Some(hash_of(&[
            &self.now,
            &self.sender,
            &self.receiver,
            &self.slices,
            &self.acks,
            &self.sent,
            &self.read,
        ]))
    }

    fn conclude(mut self) {
        for _ in 0..40 {
            for slice in core::mem::take(&mut self.slices.packets) {
                let _dropped_by_name = self.receiver.handle_slice(self.now, &slice.bytes);
            }
            for ack in core::mem::take(&mut self.acks.packets) {
                let _dropped_by_name = self.sender.handle_ack(self.now, &ack.bytes);
            }
            self.read();
            self.tick();
        }
        assert!(self.sender.is_idle(), "a hang: {:?} {:?}", self.sender, self.receiver);
        for number in 0..self.sent {
            assert!(self.cancelled[number] || self.read.contains(&number), "chunk {number} is lost");
        }
    }
}

#[test]
fn a_chunk_transfer_goes_as_its_document_says() {
    let walks = [walk::<Transfer<true>>(DEPTH), walk::<Transfer<false>>(DEPTH)];
    let states = walks.each_ref().map(|walk| walk.states);
    println!("a chunk transfer: {states:?} states to a depth of {DEPTH}");
    let file = "src/articles/slices/STATE_MACHINE.md";
    compare(&side(&walks, 0), &documented(file, "## Sender", 0, 3));
    compare(&side(&walks, 1), &documented(file, "## Receiver", 0, 3));
    assert!(states.iter().all(|states| *states > 1_000), "{states:?}");
}
