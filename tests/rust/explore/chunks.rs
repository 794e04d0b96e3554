//! Chunks between connections: src/transport/chunks/STATE_MACHINE.md.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tickwire::store::{BitSet, Packets};
use tickwire::time::{Duration, Instant};
use tickwire::transport::chunks::{
    Assembly, BytesSource, ChunkEvent, ChunkFailure, MemorySink, Offer, Rejection, Sink, Stored,
};
use tickwire::transport::{ChannelConfig, ChannelKind, Connection};

use super::{Accident, Machine, Wire, compare, documented, hash_of, side, small_windows, walk};
use crate::fuzz_targets::native::{handle, labelled};
use crate::pair::protocol_with;

/// The start of a walk: the bytes of its chunks, the last of which is observed.
const ONE: usize = 0;
const TWO_UNDER_WAY: usize = 1;
const FIVE_UNDER_WAY: usize = 2;
/// The receiver has the first slice from before, or believes so.
const PART: usize = 3;
const DAMAGED: usize = 4;
/// Both ends pause and go on: from the offer on, or from the acceptance on.
const PAUSED: usize = 5;
const PAUSED_UNDER_WAY: usize = 6;
/// The receiver takes something else for the chunk, until it has hashed it.
const SEEMED_WHOLE: usize = 7;

const CHUNKS: [&[usize]; 8] =
    [&[10], &[1500, 0], &[0, 0, 0, 0, 0], &[1500], &[1500], &[1500], &[0, 0], &[1500]];

/// Chunks go from the first end to the second.
struct Transfer<const BEGINNING: usize> {
    now: Instant,
    ends: [Connection; 2],
    /// `wires[end]` leads to that end.
    wires: [Wire; 2],
    /// The sender's event for each chunk: None means sent.
    told: Vec<Option<Option<ChunkFailure>>>,
    cancelled: Vec<bool>,
    /// What the receiver was.
    fates: Vec<Fate>,
    /// Which end has paused the last one.
    paused: [bool; 2],
    /// What only seemed to be there was accepted.
    seemed: bool,
    /// The chunks left when the connection is over.
    parts: Option<Vec<Assembly>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Unknown,
    Offered,
    Accepted,
    Received,
    NotReceived,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Tick(usize),
    Suffer(usize, Accident),
    Cancel(usize),
    Accept(usize),
    Reject(usize),
    /// This end changes its mind about the last one.
    Pause(usize),
    Disconnect,
}

fn content(chunk: usize, bytes: usize) -> Vec<u8> {
    vec![chunk as u8 + 1; bytes]
}

fn ends() -> [Connection; 2] {
    let protocol = protocol_with(vec![ChannelConfig::new(ChannelKind::Chunks)]);
    [0, 1].map(|_| Connection::new(&small_windows(), protocol.clone()).unwrap())
}

impl<const BEGINNING: usize> Transfer<BEGINNING> {
    const SIZES: &[usize] = CHUNKS[BEGINNING];

    fn send(&mut self, chunk: usize) -> u64 {
        let content = content(chunk, Self::SIZES[chunk]);
        let hash = Sha256::digest(&content).into();
        let source = Box::new(BytesSource(Arc::new(content)));
        self.ends[0].send_chunk(self.now, source, hash, "", false).unwrap()
    }

    fn tick(&mut self, end: usize) {
        // Keep-alives come every other time.
        self.now += Duration::from_millis(50);
        let mut out = Packets::new();
        self.ends[end].transmit(self.now, &mut out);
        out.iter().for_each(|packet| self.wires[1 - end].push(&labelled(packet)));
        self.look();
    }

    fn deliver(&mut self, end: usize, packet: &[u8]) {
        handle(&mut self.ends[end], self.now, packet).expect("honest packets");
        self.look();
    }

    fn deliver_all(&mut self) {
        for end in 0..2 {
            for packet in core::mem::take(&mut self.wires[end].packets) {
                self.deliver(end, &packet.bytes);
            }
        }
    }

    /// Takes events, each of which may come once, and only if it is true.
    fn look(&mut self) {
        while let Some(event) = self.ends[1].chunks_mut().poll_event() {
            match event {
                ChunkEvent::Offered(offer) => {
                    let again = self.seemed.then_some(Fate::Accepted);
                    let from: Vec<_> = again.into_iter().chain([Fate::Unknown]).collect();
                    self.goes(&offer, &from, Fate::Offered);
                }
                ChunkEvent::Received { offer, stored } => {
                    let chunk = usize::from(offer.id);
                    assert_eq!(stored, Stored::Bytes(content(chunk, Self::SIZES[chunk])));
                    let over = |fate: &Fate| matches!(fate, Fate::Received | Fate::NotReceived);
                    let before = self.fates[..chunk].iter().enumerate();
                    let passed = before.filter(|(_, fate)| !over(fate)).all(|(at, _)| self.cancelled[at]);
                    assert!(passed, "in order: {:?}", self.fates);
                    self.goes(&offer, &[Fate::Accepted], Fate::Received);
                }
                ChunkEvent::NotReceived { offer, .. } => {
                    self.goes(&offer, &[Fate::Offered, Fate::Accepted], Fate::NotReceived);
                }
                ours => panic!("{ours:?}"),
            }
        }
        while let Some(event) = self.ends[0].chunks_mut().poll_event() {
            let (number, failure) = match event {
                ChunkEvent::Sent { number } => (number, None),
                ChunkEvent::NotSent { number, failure } => (number, Some(failure)),
                theirs => panic!("{theirs:?}"),
            };
            if failure.is_none() {
                assert!(["verified", "received"].contains(&self.receiver(number as usize)), "and truly");
            }
            assert_eq!(self.told[number as usize].replace(failure), None, "told once");
        }
    }

    fn goes(&mut self, offer: &Offer, from: &[Fate], to: Fate) {
        let fate = &mut self.fates[usize::from(offer.id)];
        assert!(from.contains(fate), "{fate:?} to {to:?}");
        *fate = to;
    }

    /// The offers that the receiving application may answer.
    fn offer(&self, chunk: usize) -> Option<Offer> {
        let mut incoming = self.ends[1].chunks().incoming(self.now);
        incoming.find(|(offer, _)| usize::from(offer.id) == chunk).map(|(offer, _)| offer.clone())
    }

    fn accept(&mut self, chunk: usize) {
        let offer = self.offer(chunk).unwrap();
        let part = self.parts.as_mut().and_then(|parts| {
            let at = parts.iter().position(|part| part.is_of(&offer))?;
            Some(parts.remove(at))
        });
        let seems = BEGINNING == SEEMED_WHOLE && !core::mem::replace(&mut self.seemed, true);
        let assembly = part.unwrap_or_else(|| {
            if seems {
                let other = Box::new(MemorySink::new(offer.size).unwrap());
                return Assembly::whole(&offer, other, false);
            }
            let mut sink = MemorySink::new(offer.size).unwrap();
            let mut there = BitSet::new(offer.size.div_ceil(offer.slice_bytes.into()).max(1) as usize);
            if [PART, DAMAGED].contains(&BEGINNING) {
                let mut slice = content(chunk, offer.slice_bytes.into());
                slice[0] ^= u8::from(BEGINNING == DAMAGED);
                sink.write_at(0, &slice).unwrap();
                there.insert(0);
            }
            Assembly::resumed(&offer, Box::new(sink), there)
        });
        assert!(self.ends[1].chunks_mut().accept(offer.id, assembly));
        self.goes(&offer, &[Fate::Offered], Fate::Accepted);
    }

    /// What one end holds of a chunk, which it doesn't tell.
    fn holds(&self, end: usize, head: &str) -> Option<String> {
        let all = format!("{:?}", self.ends[end]);
        let from = &all[all.find(head)? + head.len()..];
        let to = ["Outgoing {", "Incoming {", "], next_"].iter().filter_map(|next| from.find(next)).min();
        Some(from[..to.unwrap()].to_owned())
    }

    fn sender(&self, chunk: usize) -> &'static str {
        let Some(held) = self.holds(0, &format!("Outgoing {{ number: {chunk}, ")) else { return "over" };
        match () {
            () if held.contains("withdrawn: true") => "withdrawn",
            () if held.contains("opened: false") => "queued",
            () if held.contains("paused: true") || held.contains("paused_by_peer: true") => "paused",
            () if held.contains("accepted: true") => "accepted",
            () => "offered",
        }
    }

    fn receiver(&self, chunk: usize) -> &'static str {
        let is_held = || self.holds(1, &format!("Incoming {{ offer: Offer {{ id: {chunk}, ")).is_some();
        match self.fates[chunk] {
            Fate::Received => "received",
            Fate::NotReceived => "refused",
            Fate::Unknown if is_held() => "refused",
            Fate::Unknown => "unknown",
            Fate::Offered => "offered",
            Fate::Accepted if self.offer(chunk).is_some() => {
                if self.paused[1] && chunk + 1 == self.fates.len() { "paused" } else { "storing" }
            }
            Fate::Accepted => "verified",
        }
    }

    fn pause(&mut self, end: usize) {
        let (last, paused) = (self.fates.len() - 1, !self.paused[end]);
        let is_open = match end {
            0 => self.ends[0].chunks_mut().pause(last as u64, paused),
            _ => self.ends[1].chunks_mut().pause_incoming(last as u16, paused),
        };
        self.paused[end] = paused && is_open;
    }

    /// The network is patient, and the applications accept offers and go on.
    fn go_on(&mut self) {
        (0..2)
            .filter(|end| self.paused[*end])
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|end| self.pause(end));
        for _ in 0..60 {
            self.deliver_all();
            for chunk in 0..self.fates.len() {
                if self.fates[chunk] == Fate::Offered {
                    self.accept(chunk);
                }
            }
            for end in 0..2 {
                self.tick(end);
            }
            let over = |chunk| self.sender(chunk) == "over";
            if self.told.iter().all(Option::is_some) && (0..self.told.len()).all(over) {
                return;
            }
        }
        panic!("a hang: {:?} {:?}", self.told, self.fates);
    }
}

impl<const BEGINNING: usize> Machine for Transfer<BEGINNING> {
    type Action = Action;

    fn start() -> Self {
        let chunks = Self::SIZES.len();
        let mut transfer = Transfer {
            now: Instant::ZERO,
            ends: ends(),
            wires: Default::default(),
            told: vec![None; chunks],
            cancelled: vec![false; chunks],
            fates: vec![Fate::Unknown; chunks],
            paused: [false; 2],
            seemed: false,
            parts: None,
        };
        // Greetings are not what this is about.
        for end in [0, 1, 0] {
            transfer.tick(end);
            transfer.deliver_all();
        }
        for chunk in 0..chunks {
            assert_eq!(transfer.send(chunk), chunk as u64);
        }
        if ![ONE, PAUSED, SEEMED_WHOLE].contains(&BEGINNING) {
            transfer.tick(0);
            let offers = transfer.wires[1].packets.remove(0);
            transfer.deliver(1, &offers.bytes);
            (0..chunks.min(4)).for_each(|chunk| transfer.accept(chunk));
        }
        if BEGINNING == FIVE_UNDER_WAY {
            transfer.deliver_all();
            transfer.tick(1);
        }
        transfer
    }

    fn actions(&self) -> Vec<Action> {
        if self.parts.is_some() {
            return Vec::new();
        }
        let mut actions = vec![Action::Disconnect];
        for chunk in 0..self.told.len() {
            if self.told[chunk].is_none() {
                actions.push(Action::Cancel(chunk));
            }
            if self.fates[chunk] == Fate::Offered {
                actions.push(Action::Accept(chunk));
            }
            if self.offer(chunk).is_some() {
                actions.push(Action::Reject(chunk));
            }
        }
        let last = self.told.len() - 1;
        if [PAUSED, PAUSED_UNDER_WAY].contains(&BEGINNING) {
            actions.extend(self.told[last].is_none().then_some(Action::Pause(0)));
            actions.extend(self.offer(last).is_some().then_some(Action::Pause(1)));
        }
        for end in 0..2 {
            if self.wires[1 - end].packets.len() < 2 {
                actions.push(Action::Tick(end));
            }
            let accidents = self.wires[end].accidents();
            actions.extend(accidents.into_iter().map(|accident| Action::Suffer(end, accident)));
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
            Action::Cancel(chunk) => {
                assert!(self.ends[0].chunks_mut().cancel(chunk as u64));
                self.cancelled[chunk] = true;
            }
            Action::Accept(chunk) => self.accept(chunk),
            Action::Reject(chunk) => {
                assert!(self.ends[1].chunks_mut().reject(chunk as u16, Rejection::Cancelled));
            }
            Action::Pause(end) => self.pause(end),
            Action::Disconnect => {
                for chunk in 0..self.fates.len() {
                    if self.receiver(chunk) == "refused" {
                        self.fates[chunk] = Fate::NotReceived;
                    }
                }
                assert!(self.ends[0].chunks_mut().finish().is_empty());
                self.parts = Some(self.ends[1].chunks_mut().finish());
            }
        }
        self.look();
    }

    fn state(&self) -> String {
        let chunk = self.told.len() - 1;
        format!("{}/{}", self.sender(chunk), self.receiver(chunk))
    }

    fn everything(&self) -> Option<u64> {
        Some(hash_of(&[&self.now, &self.ends, &self.wires, &self.told, &self.fates, &self.paused]))
    }

    fn conclude(mut self) {
        if self.parts.is_some() {
            // Both ends have heard of all that was begun, and the rest goes in another connection.
            assert!(self.told.iter().all(Option::is_some));
            assert!(!self.fates.iter().any(|fate| [Fate::Offered, Fate::Accepted].contains(fate)));
            return;
        }
        self.go_on();
        for (chunk, told) in self.told.iter().enumerate() {
            let told = told.as_ref().expect("an event");
            let receiver = self.receiver(chunk);
            match told {
                None => assert_eq!(receiver, "received"),
                Some(ChunkFailure::Cancelled) => assert!(self.cancelled[chunk]),
                Some(ChunkFailure::Rejected(Rejection::Damaged)) => assert_eq!(BEGINNING, DAMAGED),
                Some(failure) => {
                    assert_eq!(*failure, ChunkFailure::Rejected(Rejection::Cancelled));
                    assert_eq!(receiver, "refused");
                }
            }
            let known = ["received", "refused"].contains(&receiver);
            assert!(known || (receiver == "unknown" && self.cancelled[chunk]), "{receiver}");
        }
    }
}

#[test]
fn a_chunk_goes_as_its_document_says() {
    let walks = [
        walk::<Transfer<ONE>>(5),
        walk::<Transfer<TWO_UNDER_WAY>>(4),
        walk::<Transfer<FIVE_UNDER_WAY>>(3),
        walk::<Transfer<PART>>(4),
        walk::<Transfer<DAMAGED>>(4),
        walk::<Transfer<PAUSED>>(4),
        walk::<Transfer<PAUSED_UNDER_WAY>>(4),
        walk::<Transfer<SEEMED_WHOLE>>(4),
    ];
    let states = walks.each_ref().map(|walk| walk.states);
    println!("a chunk of a connection: {states:?} states to depths of 5, 4, 3, and 4");
    let file = "src/transport/chunks/STATE_MACHINE.md";
    compare(&side(&walks, 0), &documented(file, "## Sender", 0, 3));
    compare(&side(&walks, 1), &documented(file, "## Receiver", 0, 3));
    assert!(states.iter().all(|states| *states > 500), "{states:?}");
}
