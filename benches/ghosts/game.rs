//! A server with clients in a scene: what it costs, and what goes over the lines. Without sockets and encryption.

use std::sync::Arc;

use crate::clock::timed;
use crate::line::{Line, Path};
use crate::scene::Scene;
use crate::tables::{Cells, entity};
use tickwire::endpoint::{Feature, PeerHandle};
use tickwire::replication::{
    Changes, ClassRelevancy, Classes, GhostEvent, GridConfig, Interest, Mirror, Publisher, PublisherConfig,
    Relevancy, View,
};
use tickwire::wire::{BitReader, BitWriter};

/// Bits of a payload, at most: what netcode's 1,200 bytes leave after the headers of a packet and a message.
const PAYLOAD_BITS: usize = 1170 * 8;

/// Of the payload channel.
const CHANNEL: usize = 0;

/// Who looks at the world: one client.
struct Player {
    handle: PeerHandle,
    owned: Vec<u32>,
    interest: Interest,
    mirror: Mirror,
    line: Line,
    cells: Cells,
    events: Vec<GhostEvent>,
}

/// What a tick took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// CPU seconds of the server.
    pub server: f64,
    /// Of all clients.
    pub clients: f64,
    pub bytes: usize,
    pub packets: usize,
    /// Objects that changed, for each client that has them.
    pub updates: usize,
}

/// How a game is played.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub scene: &'static str,
    pub clients: usize,
    pub path: Path,
    /// Each client sees so far, from an entity that it owns.
    pub sight: Option<f64>,
    /// Whether the application may have written anything anywhere.
    pub scan: bool,
}

pub struct Game {
    pub scene: Scene,
    setup: Setup,
    publisher: Publisher,
    relevancy: ClassRelevancy,
    cells: Cells,
    players: Vec<Player>,
    tick: u32,
    writer: BitWriter,
    changes: Changes,
    told: Vec<(u32, bool)>,
}

impl Game {
    pub fn new(setup: Setup) -> Self {
        let scene = Scene::named(setup.scene);
        let rows = scene.plan.entities;
        let class = entity(rows);
        let near = |radius: f64| {
            let (cell, leave_radius) = (radius / 3.0, radius * 1.05);
            Relevancy::Grid(GridConfig { property: 0, cell, radius, leave_radius, linger: 2 })
        };
        let rule = setup.sight.map_or(Relevancy::Always, near);
        let relevancy = ClassRelevancy::new(&class, rule).expect("a rule");
        let classes = Arc::new(Classes::new([class]).expect("classes"));
        let mut publisher = Publisher::new(classes, PublisherConfig { channel: CHANNEL });
        (0..rows).for_each(|_| _ = publisher.spawn(0, None).expect("a row"));
        let mut cells = Cells::new(rows);
        cells.apply(&scene, true);
        let mut game = Game {
            scene,
            setup,
            publisher,
            relevancy,
            cells,
            players: Vec::new(),
            tick: 0,
            writer: BitWriter::new(),
            changes: Changes::default(),
            told: Vec::new(),
        };
        (0..setup.clients).for_each(|_| game.join());
        game
    }

    /// One more client.
    pub fn join(&mut self) {
        let slot = self.players.len() as u32;
        let (handle, rows) = (PeerHandle { slot, generation: 1 }, self.scene.plan.entities);
        self.publisher.add_peer(handle);
        let owned = if self.setup.sight.is_some() {
            let row = slot * (rows / self.setup.clients) as u32;
            self.publisher.set_owner(0, row, Some(handle));
            vec![row]
        } else {
            Vec::new()
        };
        self.players.push(Player {
            handle,
            owned,
            interest: Interest::default(),
            mirror: Mirror::new(self.publisher.classes().clone()),
            line: Line::new(self.setup.path, slot.into()),
            cells: Cells::new(rows),
            events: Vec::new(),
        });
    }

    /// A tick of all, in which the scene goes on or rests.
    pub fn tick(&mut self, moves: bool) -> Cost {
        let mut cost = Cost::default();
        self.tick += 1;
        if moves {
            self.scene.step();
        } else {
            self.scene.moved.clear();
        }
        timed(&mut cost.server, || self.cells.apply(&self.scene, false));
        for i in 0..self.players.len() {
            self.players[i].line.notifications(self.tick, &mut self.told);
            let handle = self.players[i].handle;
            timed(&mut cost.server, || {
                for (record, delivered) in &self.told {
                    self.publisher.handle_notification(handle, *record, *delivered);
                }
            });
        }
        timed(&mut cost.server, || self.begin());
        for i in 0..self.players.len() {
            self.send(i, &mut cost);
        }
        let changed = self.publisher.table(0).changed();
        for player in &self.players {
            let has = |row: &&u32| player.interest.contains(**row);
            cost.updates +=
                if self.setup.sight.is_some() { changed.iter().filter(has).count() } else { changed.len() };
        }
        for player in &mut self.players {
            player.receive(self.tick, &mut cost);
        }
        cost
    }

    /// Reads the cells, and finds out what matters to whom.
    fn begin(&mut self) {
        let mut errors = Vec::new();
        self.publisher.begin_tick(&[self.cells.columns(self.setup.scan)], &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        self.relevancy.begin_tick(self.publisher.table(0));
        for Player { handle, owned, interest, .. } in &mut self.players {
            let view = View { owned, ..View::default() };
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

    fn send(&mut self, player: usize, cost: &mut Cost) {
        let Player { handle, line, .. } = &mut self.players[player];
        if self.publisher.due(*handle) == 0 {
            return;
        }
        timed(&mut cost.server, || self.publisher.choose(*handle, usize::MAX >> 8));
        loop {
            let record = timed(&mut cost.server, || {
                self.writer.clear();
                self.publisher.fill(*handle, CHANNEL, PAYLOAD_BITS, &mut self.writer)
            });
            let Some(record) = record else { return };
            let bits = self.writer.bit_len();
            let bytes = self.writer.as_bytes().to_vec();
            cost.bytes += bytes.len();
            cost.packets += 1;
            line.send(self.tick, (record, bytes, bits));
        }
    }

    /// Ticks between now and the state that the first client shows of each object it has, where it shows an old one.
    pub fn ages(&self, ages: &mut Vec<f64>) {
        let (player, table) = (&self.players[0], self.publisher.table(0));
        for row in table.alive() {
            let Some(id) = self.publisher.ghost_id(player.handle, 0, row) else { continue };
            let shown = player.mirror.tick_of(0, id);
            // Its low bits are the server's.
            let tick = shown & 0xFFFF;
            if shown > 0 {
                let old = table.changed_since(row, tick) != 0;
                ages.push(if old { f64::from(self.tick - tick) } else { 0.0 });
            }
        }
    }

    /// Whether a client has as many ghosts as it is to have.
    pub fn has_all(&self, player: usize) -> bool {
        let Player { handle, mirror, interest, .. } = &self.players[player];
        let mut wanted = self.publisher.table(0).alive().filter(|row| interest.contains(*row)).peekable();
        let has = |row| self.publisher.ghost_id(*handle, 0, row).is_some_and(|id| mirror.is_alive(0, id));
        wanted.peek().is_some() && wanted.all(has)
    }

    /// Bytes for one client so far.
    pub fn bytes_of(&self, player: usize) -> u64 {
        self.publisher.peer_bits(self.players[player].handle) / 8
    }

    /// Every client's cells are what the server's words stand for, once nothing is on its way.
    pub fn check(&self) {
        let table = self.publisher.table(0);
        for player in &self.players {
            let mut shown = 0;
            for row in table.alive().filter(|row| player.interest.contains(*row)) {
                let id = self.publisher.ghost_id(player.handle, 0, row).expect("a ghost");
                player.cells.check(id as usize, table.newest(row), table.class());
                shown += 1;
            }
            assert!(shown > 0, "a client sees nothing");
        }
    }
}

impl Player {
    fn receive(&mut self, tick: u32, cost: &mut Cost) {
        let Player { mirror, line, cells, events, .. } = self;
        while let Some((_, bytes, bits)) = line.receive(tick) {
            let reader = BitReader::with_range(&bytes, 0, bits);
            timed(&mut cost.clients, || mirror.handle_payload(reader).expect("a packet"));
        }
        events.clear();
        timed(&mut cost.clients, || {
            let mut columns = cells.columns_mut();
            let columns: &mut [&mut [u8]] = &mut columns;
            mirror.take(&mut [columns], events);
        });
        line.ack(tick);
    }
}
