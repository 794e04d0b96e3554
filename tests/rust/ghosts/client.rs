//! A client over a link that loses, reorders and duplicates, and the invariants of what it shows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tickwire::endpoint::{Feature, PeerHandle};
use tickwire::replication::{Classes, GhostEvent, GhostEventKind, Mirror, Publisher};
use tickwire::rng::Rng;
use tickwire::wire::{BitReader, BitSink, BitWriter};

use super::world::{FIRST_TICK, UID, World, size_of_cell, text_of};
use crate::fuzz_targets::ghosts::{columns_of, take};

/// How bad a link is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) loss: f64,
    pub(super) duplicates: f64,
    /// Ticks there, and back, at least and at most.
    pub(super) delay: (u64, u64),
    /// Acks that don't arrive: the packet counts as lost though it wasn't.
    pub(super) false_losses: f64,
}

pub(super) const GOOD: Line = Line { loss: 0.0, duplicates: 0.0, delay: (1, 2), false_losses: 0.0 };

struct Sent {
    record: u32,
    /// When its fate is known, and the fate.
    told_at: u64,
    delivered: bool,
}

pub(super) struct Client {
    pub(super) handle: PeerHandle,
    pub(super) mirror: Mirror,
    pub(super) columns: Vec<Vec<Vec<u8>>>,
    pub(super) events: Vec<GhostEvent>,
    pub(super) line: Line,
    rng: Rng,
    /// Payloads on their way, each with its first bit and bits.
    under_way: Vec<(u64, usize, usize, Vec<u8>)>,
    fates: VecDeque<Sent>,
    alive: BTreeSet<(u16, u32)>,
    /// The tick that was shown last.
    shown: BTreeMap<(usize, u32), u32>,
    pub(super) uids: BTreeMap<(u16, u32), u32>,
    /// Bytes of all payloads, for comparing runs.
    pub(super) transcript: Vec<u8>,
    pub(super) bits: u64,
}

impl Client {
    pub(super) fn new(slot: u32, classes: &Arc<Classes>, line: Line, seed: u64) -> Self {
        Client {
            handle: PeerHandle { slot, generation: 0 },
            mirror: Mirror::new(classes.clone()),
            columns: columns_of(classes),
            events: Vec::new(),
            line,
            rng: Rng::seeded(seed),
            under_way: Vec::new(),
            fates: VecDeque::new(),
            alive: BTreeSet::new(),
            shown: BTreeMap::new(),
            uids: BTreeMap::new(),
            transcript: Vec::new(),
            bits: 0,
        }
    }

    /// Tells the server what became of packets, in their order.
    pub(super) fn notify(&mut self, now: u64, publisher: &mut Publisher) {
        while self.fates.front().is_some_and(|sent| sent.told_at <= now) {
            let sent = self.fates.pop_front().unwrap();
            publisher.handle_notification(self.handle, sent.record, sent.delivered);
        }
    }

    /// Sends packets of this many bits until there is nothing to say or the budget is spent.
    pub(super) fn send(&mut self, now: u64, publisher: &mut Publisher, budget: usize, packet: usize) {
        let Some((_, least)) = publisher.wants().find(|(peer, _)| *peer == self.handle) else { return };
        publisher.choose(self.handle, budget);
        let (mut left, mut writer) = (budget, BitWriter::new());
        let packet = packet.max(least);
        loop {
            writer.clear();
            let Some(record) = publisher.fill(self.handle, 0, packet, &mut writer) else { break };
            let encoded = writer.encoded();
            assert!(encoded.bits() <= packet, "{} of {packet}", encoded.bits());
            let length = writer.bit_len();
            self.bits += length as u64;
            self.transcript.extend_from_slice(&(length as u32).to_le_bytes());
            self.transcript.extend_from_slice(writer.as_bytes());
            // It may lie at any bit of a datagram.
            let (start, mut datagram) = (self.rng.below(16) as usize, BitWriter::new());
            if start > 0 {
                datagram.bits(self.rng.next_u64() & ((1 << start) - 1), start as u32);
            }
            datagram.append(&encoded);
            let bits = datagram.bit_len() - start;
            self.launch(now, record, start, bits, datagram.into_bytes());
            left = left.saturating_sub(length);
            if left == 0 {
                break;
            }
        }
    }

    fn launch(&mut self, now: u64, record: u32, start: usize, bits: usize, bytes: Vec<u8>) {
        let Line { loss, duplicates, delay: (least, most), false_losses } = self.line;
        let mut delay = || now + least + self.rng.below(most - least + 1);
        let (there, back, twice) = (delay(), delay() - now, delay());
        let lost = self.rng.chance(loss);
        let delivered = !lost && !self.rng.chance(false_losses);
        let told_at = if delivered { there + back } else { now + 2 * most + 3 };
        self.fates.push_back(Sent { record, told_at, delivered });
        if lost {
            return;
        }
        if self.rng.chance(duplicates) {
            self.under_way.push((twice.max(there), start, bits, bytes.clone()));
        }
        self.under_way.push((there, start, bits, bytes));
    }

    pub(super) fn receive(&mut self, now: u64) {
        let (mut arrived, later): (Vec<_>, Vec<_>) =
            core::mem::take(&mut self.under_way).into_iter().partition(|(at, ..)| *at <= now);
        self.under_way = later;
        // In any order.
        for i in (1..arrived.len()).rev() {
            if self.line.loss > 0.0 {
                arrived.swap(i, self.rng.below(i as u64 + 1) as usize);
            }
        }
        for (_, start, bits, bytes) in arrived {
            let reader = BitReader::with_range(&bytes, start, bits);
            self.mirror.handle_payload(reader).unwrap_or_else(|violation| panic!("{violation}"));
        }
    }

    /// The packet for it: bits, and the bytes that hold them.
    pub(super) fn payloads(&self) -> Vec<(usize, Vec<u8>)> {
        let (mut found, mut rest) = (Vec::new(), &self.transcript[..]);
        while let Some((bits, after)) = rest.split_first_chunk() {
            let bits = u32::from_le_bytes(*bits) as usize;
            let (bytes, after) = after.split_at(bits.div_ceil(8));
            found.push((bits, bytes.to_vec()));
            rest = after;
        }
        found
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.under_way.is_empty() && self.fates.is_empty()
    }

    /// Takes what arrived, and checks it against the whole history.
    pub(super) fn take(&mut self, world: &World) {
        self.events.clear();
        take(&mut self.mirror, &mut self.columns, &mut self.events);
        for GhostEvent { class, id, kind } in &self.events {
            match kind {
                GhostEventKind::Spawned => {
                    assert!(self.alive.insert((*class, *id)), "spawned twice");
                    let uid = self.uid(usize::from(*class), *id);
                    self.uids.insert((*class, *id), uid);
                }
                GhostEventKind::Despawned => {
                    assert!(self.alive.remove(&(*class, *id)), "despawned what wasn't there");
                    self.uids.remove(&(*class, *id));
                    self.shown.remove(&(usize::from(*class), *id));
                }
                GhostEventKind::Changed { mask } => {
                    assert!(self.alive.contains(&(*class, *id)) && *mask != 0);
                }
                GhostEventKind::Owned { .. } => assert!(self.alive.contains(&(*class, *id))),
            }
        }
        let alive: Vec<(u16, u32)> = self.alive.iter().copied().collect();
        for (class, id) in alive {
            let class = usize::from(class);
            assert!(self.mirror.is_alive(class, id));
            self.check(world, class, id);
        }
    }

    fn uid(&self, class: usize, id: u32) -> u32 {
        let size = size_of_cell(self.mirror.classes().get(class).unwrap(), UID);
        let mut uid = [0; 4];
        uid[..size].copy_from_slice(&self.columns[class][UID][id as usize * size..][..size]);
        u32::from_le_bytes(uid)
    }

    /// Every property is as the server had it at the ghost's tick, and that tick never goes back.
    fn check(&mut self, world: &World, class: usize, id: u32) {
        let uid = self.uid(class, id);
        let tick = self.mirror.tick_of(class, id) - FIRST_TICK;
        let shown = self.shown.entry((class, id)).or_default();
        assert!(tick >= *shown, "a ghost goes back from {shown} to {tick}");
        *shown = tick;
        let object = world.objects[class].get(&uid).expect("it was once");
        let of = world.class(class);
        let (owner, initial) = (self.mirror.owns(class, id), of.initial());
        for i in 0..of.properties.each().len() {
            if of.created(of.group(owner, false)) >> i & 1 == 0 {
                continue;
            }
            let value = self.value(class, id, i);
            if initial >> i & 1 == 1 {
                assert!(object.had(i, tick, &value), "class {class} property {i}");
            } else {
                let expected = object.at(i, tick).expect("it was there");
                assert_eq!(&value, expected, "class {class} uid {uid} property {i} at {tick}");
            }
        }
    }

    pub(super) fn value(&self, class: usize, id: u32, property: usize) -> Vec<u8> {
        let of = self.mirror.classes().get(class).unwrap();
        if of.properties.each()[property].has_words() {
            let size = size_of_cell(of, property);
            return self.columns[class][property][id as usize * size..][..size].to_vec();
        }
        text_of(of, property, self.mirror.value(class, id, property).expect("it came with the create"))
    }

    /// It has exactly its relevant ghosts, in the newest state.
    pub(super) fn check_all(&self, world: &World) {
        for class in 0..world.rows.len() {
            let of = world.class(class);
            let mut had = 0;
            for (row, uid) in &world.rows[class] {
                let Some(id) = world.publisher.ghost_id(self.handle, class, *row) else { continue };
                had += 1;
                assert_eq!(self.uids.get(&(class as u16, id)), Some(uid), "class {class} row {row}");
                let owner = world.publisher.owner(class, *row) == Some(self.handle);
                assert_eq!(self.mirror.owns(class, id), owner);
                for i in 0..of.properties.each().len() {
                    if of.updated(of.group(owner, false)) >> i & 1 == 1 {
                        let newest = world.objects[class][uid].at(i, u32::MAX).unwrap();
                        assert_eq!(&self.value(class, id, i), newest, "class {class} property {i}");
                    }
                }
            }
            let shown = self.alive.iter().filter(|(each, _)| usize::from(*each) == class).count();
            assert_eq!(shown, had, "class {class}");
        }
    }
}
