//! The ghosts of one client, whose packets arrive late, twice, in any order or never, while acks are late or lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tickwire::endpoint::{Feature, PeerHandle};
use tickwire::replication::{
    Classes, Column, Condition, GhostClass, GhostEvent, GhostEventKind, Mirror, Publisher, PublisherConfig,
};
use tickwire::rng::Rng;
use tickwire::wire::{BitReader, BitWriter, Kind, Properties, Schema};

use super::{Guard, Machine, hash_of, walk};

const CLIENT: PeerHandle = PeerHandle { slot: 0, generation: 0 };

/// Of objects, and so of ids.
const CAPACITY: usize = 4;

/// The maximum of packets in flight, or whose fate the server doesn't know.
const PACKETS: usize = 3;

/// What the client's first tick is above the server's.
const FIRST_TICK: u32 = 1 << 16;

/// An object, as the cells of its properties, and whether the client owns it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Object {
    cells: [u8; 3],
    owned: bool,
}

#[derive(Debug)]
struct Packet {
    record: u32,
    bytes: Vec<u8>,
    bits: usize,
    arrived: u8,
    told: bool,
}

/// Everything is plain, or the last property is its owner's alone; and records are coded or not.
struct Ghosts<const PLAIN: bool, const CODED: bool> {
    publisher: Publisher,
    mirror: Mirror,
    columns: [[u8; CAPACITY]; 3],
    /// By row.
    objects: BTreeMap<u32, Object>,
    /// By tick and number, which is an object's first property.
    past: Vec<BTreeMap<u8, Object>>,
    count: u8,
    packets: Vec<Packet>,
    // Of the client: what the game sees, by id its number and the tick of what is shown, and the numbers of those that have ended.
    cells: [[u8; CAPACITY]; 3],
    shown: BTreeMap<u32, (u8, u32)>,
    ended: BTreeSet<u8>,
    /// What each side came by: all that it is follows from it.
    server_log: Vec<(u32, Step)>,
    client_log: Vec<(u32, Step)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    // Ticks of the server, each with what happens in it.
    Rest,
    Change,
    /// The oldest object ends, or where there is none, one begins.
    Toggle,
    /// The oldest object ends, and another begins.
    Swap,
    /// The oldest object is the client's, or no longer.
    Own,
    // Of a packet.
    Deliver(usize),
    Lose(usize),
    /// The server is told of the first packet that it wasn't told of.
    Tell(bool),
    /// The client's game looks.
    Take,
}

impl<const PLAIN: bool, const CODED: bool> Ghosts<PLAIN, CODED> {
    fn tick(&mut self, what: Step) {
        let oldest = self.objects.iter().min_by_key(|(_, object)| object.cells[0]).map(|(row, _)| *row);
        match (what, oldest) {
            (Step::Change, Some(row)) => {
                let object = self.objects.get_mut(&row).unwrap();
                self.count += 1;
                // At times one property alone.
                let which = usize::from(self.count % 3);
                if which != 1 {
                    object.cells[1] = object.cells[1].wrapping_add(self.count);
                }
                if which != 2 {
                    object.cells[2] = object.cells[2].wrapping_sub(3);
                }
            }
            (Step::Toggle, Some(row)) => self.end(row),
            (Step::Toggle, None) => self.begin(),
            (Step::Swap, Some(row)) => {
                self.end(row);
                self.begin();
            }
            (Step::Own, Some(row)) => {
                let owned = &mut self.objects.get_mut(&row).unwrap().owned;
                *owned = !*owned;
                assert!(self.publisher.set_owner(0, row, owned.then_some(CLIENT)));
            }
            _ => {}
        }
        for (row, object) in &self.objects {
            self.publisher.enter(CLIENT, 0, *row);
            for (column, cell) in self.columns.iter_mut().zip(object.cells) {
                column[*row as usize] = cell;
            }
        }
        let columns = self.columns.each_ref().map(|cells| Column { cells, scan: true });
        let mut errors = Vec::new();
        self.publisher.begin_tick(&[columns], &mut errors);
        assert_eq!(errors, []);
        self.past.push(self.objects.values().map(|object| (object.cells[0], *object)).collect());
        let mut writer = BitWriter::new();
        while let Some(record) = self.publisher.fill(CLIENT, 0, 9000, &mut writer) {
            let bits = writer.bit_len();
            let bytes = writer.as_bytes().to_vec();
            self.packets.push(Packet { record, bytes, bits, arrived: 0, told: false });
            writer.clear();
        }
    }

    fn begin(&mut self) {
        let Ok(row) = self.publisher.spawn(0, None) else { return };
        self.count += 1;
        // Numbers rise by one a state, and are an object's from its beginning.
        self.objects.insert(row, Object { cells: [self.count, 100, 7], owned: false });
    }

    fn end(&mut self, row: u32) {
        assert!(self.publisher.despawn(0, row));
        self.objects.remove(&row);
    }

    fn deliver(&mut self, at: usize) {
        let packet = &mut self.packets[at];
        packet.arrived += 1;
        self.mirror
            .handle_payload(BitReader::with_range(&packet.bytes, 0, packet.bits))
            .expect("an honest packet");
    }

    fn tell(&mut self, delivered: bool) {
        let packet = self.packets.iter_mut().find(|packet| !packet.told).unwrap();
        packet.told = true;
        self.publisher.handle_notification(CLIENT, packet.record, delivered);
    }

    /// The game looks: it must see the server's state of the same tick.
    fn take(&mut self) {
        let mut events = Vec::new();
        let mut columns = self.cells.each_mut().map(|column| &mut column[..]);
        self.mirror.take(&mut [&mut columns[..]], &mut events);
        for GhostEvent { id, kind, .. } in events {
            match kind {
                GhostEventKind::Spawned => {
                    let number = self.cells[0][id as usize];
                    assert!(!self.ended.contains(&number), "{number} comes back");
                    assert!(self.shown.insert(id, (number, 0)).is_none(), "two spawns");
                }
                GhostEventKind::Despawned => {
                    let (number, _) = self.shown.remove(&id).expect("a spawn before a despawn");
                    assert!(self.ended.insert(number), "two ends");
                }
                GhostEventKind::Changed { .. } | GhostEventKind::Owned { .. } => {
                    assert!(self.shown.contains_key(&id), "a change of what isn't there");
                }
            }
        }
        for id in 0..CAPACITY as u32 {
            let alive = self.mirror.is_alive(0, id);
            assert_eq!(alive, self.shown.contains_key(&id), "what was told of is there");
            let Some((number, before)) = self.shown.get_mut(&id) else { continue };
            let tick = self.mirror.tick_of(0, id) - FIRST_TICK;
            assert!(tick >= *before, "it goes back");
            *before = tick;
            let cells = self.cells.map(|column| column[id as usize]);
            assert_eq!(cells[0], *number, "another object's number");
            let object = self.past[tick as usize].get(number).expect("it was alive then");
            assert_eq!(self.mirror.owns(0, id), object.owned);
            assert_eq!(cells[1], object.cells[1], "of tick {tick}");
            if PLAIN || object.owned {
                assert_eq!(cells[2], object.cells[2], "of tick {tick}");
            }
        }
    }
}

impl<const PLAIN: bool, const CODED: bool> Machine for Ghosts<PLAIN, CODED> {
    type Action = Step;

    /// A client that has a ghost.
    fn start() -> Self {
        let kind = Kind::Bits { bits: 8 };
        let schema = Schema::new(["number", "x", "y"].map(|name| (name, kind.clone()))).unwrap();
        let last = if PLAIN { Condition::Always } else { Condition::OwnerOnly };
        let conditions = [Condition::Always, Condition::Always, last];
        let class = GhostClass::new("Dot", Properties::new(schema).unwrap(), conditions, CAPACITY as u32);
        let classes = Arc::new(Classes::new([Arc::new(class.unwrap().with_coding(CODED))]).unwrap());
        let mut publisher = Publisher::new(classes.clone(), PublisherConfig { channel: 0, seed: 0 });
        publisher.add_peer(CLIENT);
        let mut ghosts = Ghosts {
            publisher,
            mirror: Mirror::new(classes),
            columns: Default::default(),
            objects: BTreeMap::new(),
            past: vec![BTreeMap::new()],
            count: 0,
            packets: Vec::new(),
            cells: Default::default(),
            shown: BTreeMap::new(),
            ended: BTreeSet::new(),
            server_log: Vec::new(),
            client_log: Vec::new(),
        };
        ghosts.tick(Step::Toggle);
        ghosts.deliver(0);
        ghosts.tell(true);
        ghosts.packets.clear();
        ghosts.take();
        ghosts
    }

    fn actions(&self) -> Vec<Step> {
        let mut actions = Vec::new();
        if self.packets.len() < PACKETS {
            actions.extend([Step::Rest, Step::Change, Step::Toggle, Step::Swap]);
            actions.extend((!PLAIN).then_some(Step::Own));
        }
        for (at, packet) in self.packets.iter().enumerate() {
            actions.extend((packet.arrived < 2).then_some(Step::Deliver(at)));
            // Before, it is the same as not to deliver it.
            actions.extend(packet.told.then_some(Step::Lose(at)));
        }
        if let Some(packet) = self.packets.iter().find(|packet| !packet.told) {
            // An ack may be lost, too.
            actions.push(Step::Tell(false));
            actions.extend((packet.arrived > 0).then_some(Step::Tell(true)));
        }
        actions.extend(self.mirror.has_news().then_some(Step::Take));
        actions
    }

    fn act(&mut self, action: Step) {
        let record = |at: usize| self.packets[at].record;
        match action {
            Step::Deliver(at) => self.client_log.push((record(at), Step::Deliver(0))),
            Step::Take => self.client_log.push((0, action)),
            Step::Lose(_) => {}
            _ => self.server_log.push((0, action)),
        }
        match action {
            Step::Deliver(at) => self.deliver(at),
            Step::Lose(at) => _ = self.packets.remove(at),
            Step::Tell(delivered) => self.tell(delivered),
            Step::Take => self.take(),
            what => self.tick(what),
        }
        // Nothing can become of it any more.
        self.packets.retain(|packet| !packet.told || packet.arrived < 2);
    }

    /// The living ghosts, the client's knowledge of them, and the packets in flight.
    fn state(&self) -> String {
        format!("{} of {}, {} under way", self.shown.len(), self.objects.len(), self.packets.len())
    }

    fn everything(&self) -> Option<u64> {
        let packets: Vec<_> = self.packets.iter().map(|it| (it.record, it.arrived, it.told)).collect();
        Some(hash_of(&[&self.server_log, &self.client_log, &packets]))
    }

    /// The server knows all fates, and packets in flight arrive too late to matter.
    fn conclude(mut self) {
        while let Some(packet) = self.packets.iter().find(|packet| !packet.told) {
            let arrived = packet.arrived > 0;
            self.tell(arrived);
        }
        let late = core::mem::take(&mut self.packets);
        let mut sent = Vec::new();
        for _ in 0..6 {
            self.tick(Step::Rest);
            sent.push(self.packets.len());
            while !self.packets.is_empty() {
                self.deliver(0);
                self.tell(true);
                self.packets.remove(0);
            }
            self.take();
        }
        assert_eq!((sent[4..].iter().sum::<usize>(), self.publisher.due(CLIENT)), (0, 0), "quiet: {sent:?}");
        let there = || self.shown.values().map(|(number, _)| *number).collect::<BTreeSet<_>>();
        let expected = self.objects.values().map(|object| object.cells[0]).collect();
        assert_eq!(there(), expected);
        self.packets = late;
        for at in 0..self.packets.len() {
            self.deliver(at);
        }
        self.take();
        for (row, object) in &self.objects {
            let id = self.publisher.ghost_id(CLIENT, 0, *row).expect("a ghost") as usize;
            let cells = self.cells.map(|column| column[id]);
            let compared = if PLAIN || object.owned { 3 } else { 2 };
            assert_eq!(cells[..compared], object.cells[..compared]);
        }
        assert_eq!(self.shown.len(), self.objects.len());
    }
}

/// Longer ways than all can be walked: of each length one, drawn by lot.
fn wander<M: Machine>(seed: u64, steps: usize) {
    let (mut rng, mut machine, mut path) = (Rng::seeded(seed), M::start(), Vec::new());
    for _ in 0..steps {
        let actions = machine.actions();
        let action = actions[rng.below(actions.len() as u64) as usize];
        path.push(action);
        let guard = Guard(&path);
        machine.act(action);
        core::mem::forget(guard);
    }
    let guard = Guard(&path);
    machine.conclude();
    core::mem::forget(guard);
}

#[test]
fn ghosts_are_what_the_server_had_after_any_accidents() {
    let walks = [
        walk::<Ghosts<true, false>>(6),
        walk::<Ghosts<false, false>>(5),
        walk::<Ghosts<true, true>>(6),
        walk::<Ghosts<false, true>>(5),
    ];
    let states = walks.each_ref().map(|walk| walk.states);
    println!("ghosts: {states:?} states to depths of 6 and 5, plain and coded");
    assert!(states.iter().all(|states| *states > 5_000), "{states:?}");
}

#[test]
fn ghosts_are_what_the_server_had_after_many_accidents() {
    for seed in 0..400 {
        wander::<Ghosts<true, false>>(seed, 20 + seed as usize / 4);
        wander::<Ghosts<false, false>>(seed, 20 + seed as usize / 4);
        wander::<Ghosts<true, true>>(seed, 20 + seed as usize / 4);
        wander::<Ghosts<false, true>>(seed, 20 + seed as usize / 4);
    }
}
