//! A server with clients in a scene: its cost, and the bytes on the links. Without sockets and encryption.

use std::ops::Range;
use std::sync::Arc;

use crate::clock::timed;
use crate::line::Line;
use crate::play::{Cost, Game, Kind, Setup};
use crate::scene::{SEED, Scene, Walkers};
use crate::tables::{Cells, entity};
use tickwire::endpoint::{Feature, PeerHandle};
use tickwire::replication::{
    Changes, ClassRelevancy, Classes, GhostClass, GhostEvent, GridConfig, Interest, Mirror, Publisher,
    PublisherConfig, Relevancy, View,
};
use tickwire::wire::{BitReader, BitWriter};

/// Bits of a payload, at most: what netcode's 1,200 bytes leave after the headers of a packet and a message.
const PAYLOAD_BITS: usize = 1170 * 8;

/// Words of an entity.
const WORDS: usize = 9;

/// Of the payload channel.
pub(crate) const CHANNEL: usize = 0;

/// One client. Most only ack: a real server shares its processor's caches with no clients, nor they with each other.
struct Player {
    handle: PeerHandle,
    /// The place from which it looks, if it sees only a part of the scene.
    viewpoint: Option<[f64; 3]>,
    interest: Interest,
    seen: Option<Seen>,
    line: Line,
}

/// A client's view of the scene.
struct Seen {
    mirror: Mirror,
    cells: Cells,
    events: Vec<GhostEvent>,
}

pub(crate) struct Ghosts {
    pub(crate) scene: Scene,
    walkers: Option<Walkers>,
    setup: Setup,
    publisher: Publisher,
    relevancy: ClassRelevancy,
    cells: Cells,
    players: Vec<Player>,
    tick: u32,
    writer: BitWriter,
    changes: Changes,
    told: Vec<(PeerHandle, u32, bool)>,
    /// The tick's packets: whose, their records, where their bytes lie, and their bits.
    payloads: Vec<u8>,
    packets: Vec<(usize, u32, Range<usize>, usize)>,
}

impl Ghosts {
    /// One more of this many clients.
    pub(crate) fn join_as(&mut self, handle: PeerHandle, clients: usize) {
        let (number, rows) = (self.players.len(), self.scene.plan.entities);
        self.publisher.add_peer(handle);
        let seen = [0, clients].contains(&number).then(|| Seen {
            mirror: Mirror::new(self.publisher.classes().clone()),
            cells: Cells::new(rows),
            events: Vec::new(),
        });
        let (interest, line) = (Interest::default(), Line::new(self.setup.path, number as u64));
        self.players.push(Player { handle, viewpoint: None, interest, seen, line });
    }

    pub(crate) fn publisher(&mut self) -> &mut Publisher {
        &mut self.publisher
    }

    /// The scene goes on or rests.
    pub(crate) fn go_on(&mut self, moves: bool) {
        self.tick += 1;
        if moves {
            self.scene.step();
        } else {
            self.scene.moved.clear();
        }
        if let Some(walkers) = &mut self.walkers {
            if moves {
                walkers.step();
            }
            for (player, [x, z]) in self.players.iter_mut().zip(&walkers.position) {
                player.viewpoint = Some([f64::from(*x), 0.0, f64::from(*z)]);
            }
        }
    }

    /// Objects that changed in the tick, for each client that has them.
    pub(crate) fn updates(&self) -> usize {
        let changed = self.publisher.table(0).changed();
        if self.setup.sight.is_none() {
            return changed.len() * self.players.len();
        }
        let of = |player: &Player| changed.iter().filter(|row| player.interest.contains(**row)).count();
        self.players.iter().map(of).sum()
    }

    /// Writes what moved into the cells, reads them, and finds out what matters to whom.
    pub(crate) fn begin(&mut self) {
        self.cells.apply(&self.scene, false);
        let mut errors = Vec::new();
        self.publisher.begin_tick(&[self.cells.columns(self.setup.kind != Kind::Unwritten)], &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        self.relevancy.begin_tick(self.publisher.table(0));
        for Player { handle, viewpoint, interest, .. } in &mut self.players {
            let view = View { viewpoints: viewpoint.as_slice(), ..View::default() };
            let Changes { entered, left } = &mut self.changes;
            entered.clear();
            left.clear();
            self.relevancy.update(self.tick, self.publisher.table(0), view, interest, &mut self.changes);
            for row in &self.changes.entered {
                self.publisher.enter(*handle, 0, *row);
            }
            for row in &self.changes.left {
                self.publisher.leave(*handle, 0, *row);
            }
        }
    }

    /// Writes all packets of the tick.
    fn fill(&mut self) {
        self.payloads.clear();
        for Player { handle, .. } in &self.players {
            if self.publisher.due(*handle) == 0 {
                continue;
            }
            // All goes out.
            self.publisher.choose(*handle, usize::MAX >> 8);
            loop {
                self.writer.clear();
                let Some(record) = self.publisher.fill(*handle, CHANNEL, PAYLOAD_BITS, &mut self.writer)
                else {
                    break;
                };
                let (start, bits) = (self.payloads.len(), self.writer.bit_len());
                self.payloads.extend_from_slice(self.writer.as_bytes());
                self.packets.push((handle.slot as usize, record, start..self.payloads.len(), bits));
            }
        }
    }
}

impl Game for Ghosts {
    fn new(setup: Setup) -> Self {
        let scene = Scene::named(setup.scene);
        let rows = scene.plan.entities;
        let class = Arc::new(GhostClass::clone(&entity(rows)).with_coding(setup.kind == Kind::Coded));
        let near = |radius: f64| {
            let (cell, leave_radius) = (radius / 3.0, radius * 1.05);
            Relevancy::Grid(GridConfig {
                property: 0,
                cell,
                radius,
                leave_radius,
                linger: 2,
                far_weight: 0.25,
            })
        };
        let rule = setup.sight.map_or(Relevancy::Always, near);
        let relevancy = ClassRelevancy::new(&class, rule).expect("a rule");
        let classes = Arc::new(Classes::new([class]).expect("classes"));
        let mut publisher = Publisher::new(classes, PublisherConfig { channel: CHANNEL, seed: 0 });
        (0..rows).for_each(|_| _ = publisher.spawn(0, None).expect("a row"));
        let mut cells = Cells::new(rows);
        cells.apply(&scene, true);
        let walkers =
            setup.sight.map(|_| Walkers::new(SEED, setup.clients, scene.plan.reach[0], scene.plan.hz));
        let mut game = Ghosts {
            scene,
            walkers,
            setup,
            publisher,
            relevancy,
            cells,
            players: Vec::new(),
            tick: 0,
            writer: BitWriter::new(),
            changes: Changes::default(),
            told: Vec::new(),
            payloads: Vec::new(),
            packets: Vec::new(),
        };
        (0..setup.clients).for_each(|_| game.join());
        game
    }

    fn tick(&mut self, moves: bool) -> Cost {
        let mut cost = Cost::default();
        self.go_on(moves);
        self.told.clear();
        for Player { handle, line, .. } in &mut self.players {
            line.notifications(self.tick, |record, delivered| self.told.push((*handle, record, delivered)));
        }
        // At once, for the clock costs as much as a small packet.
        timed(&mut cost.server, || {
            for (handle, record, delivered) in &self.told {
                self.publisher.handle_notification(*handle, *record, *delivered);
            }
            self.begin();
            self.fill();
        });
        for (slot, record, range, bits) in self.packets.drain(..) {
            let bytes = self.payloads[range].to_vec();
            cost.bytes += bytes.len();
            self.players[slot].line.send(self.tick, (Some(record), bytes, bits));
        }
        self.players.iter_mut().for_each(|player| player.line.keep_alive(self.tick));
        cost.updates = self.updates();
        for (i, player) in self.players.iter_mut().enumerate() {
            let time = player.receive(self.tick);
            cost.client += if i == 0 { time } else { 0.0 };
        }
        cost
    }

    fn join(&mut self) {
        let (slot, generation) = (self.players.len() as u32, self.tick + 1);
        self.join_as(PeerHandle { slot, generation }, self.setup.clients);
    }

    fn leave(&mut self) {
        let player = self.players.pop().expect("a client");
        self.publisher.remove_peer(player.handle);
    }

    fn has_all(&self, player: usize) -> bool {
        let Player { handle, seen, interest, .. } = &self.players[player];
        let Some(Seen { mirror, .. }) = seen else { return true };
        let mut wanted = self.publisher.table(0).alive().filter(|row| interest.contains(*row)).peekable();
        let has = |row| self.publisher.ghost_id(*handle, 0, row).is_some_and(|id| mirror.is_alive(0, id));
        wanted.peek().is_some() && wanted.all(has)
    }

    fn bytes_of(&self, player: usize) -> usize {
        self.publisher.peer_bits(self.players[player].handle) as usize / 8
    }

    fn ages(&self, ages: &mut Vec<f64>) {
        let (player, table) = (&self.players[0], self.publisher.table(0));
        let seen = player.seen.as_ref().expect("it sees");
        let (mut shown, mut then) = ([0; WORDS], [0; WORDS]);
        for row in table.alive() {
            let Some(id) = self.publisher.ghost_id(player.handle, 0, row) else { continue };
            // Its low bits are the server's.
            let tick = seen.mirror.tick_of(0, id) & 0xFFFF;
            if tick == 0 || !table.words_at(row, tick, &mut shown) {
                continue;
            }
            let same = |at: &u32| table.words_at(row, *at, &mut then) && then == shown;
            let last = (tick..=self.tick).rev().find(same).unwrap_or(tick);
            ages.push(f64::from(self.tick - last));
        }
    }

    fn wrong(&self) -> usize {
        let (table, player) = (self.publisher.table(0), &self.players[0]);
        let mut shown = 0;
        for row in table.alive().filter(|row| player.interest.contains(*row)) {
            let id = self.publisher.ghost_id(player.handle, 0, row).expect("a ghost");
            let cells = &player.seen.as_ref().expect("it sees").cells;
            cells.check(id as usize, table.newest(row), table.class());
            shown += 1;
        }
        assert!(shown > 0, "the client sees nothing");
        0 // Each was checked.
    }
}

impl Player {
    /// Takes what has arrived, and acks it. Gives the CPU time that a client has for it.
    fn receive(&mut self, tick: u32) -> f64 {
        let mut time = 0.0;
        let packets: Vec<_> = std::iter::from_fn(|| self.line.receive(tick)).collect();
        if let Some(Seen { mirror, cells, events }) = &mut self.seen {
            events.clear();
            timed(&mut time, || {
                for (_, bytes, bits) in packets.iter().filter(|(record, ..)| record.is_some()) {
                    mirror.handle_payload(BitReader::with_range(bytes, 0, *bits)).expect("a packet");
                }
                let mut columns = cells.columns_mut();
                let columns: &mut [&mut [u8]] = &mut columns;
                mirror.take(&mut [columns], events);
            });
        }
        self.line.ack(tick);
        time
    }
}
