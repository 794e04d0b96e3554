//! Clients that leave and come back, to the same server or to one that continues its world.

use std::collections::BTreeMap;

use super::*;
use crate::replication::{GhostEventKind, SavedIdentity, SavedWorld};
use crate::rng::Rng;

const CLIENT: u64 = 7;
const CAPACITY: u32 = 40;

/// A world whose ghosts have numbers that no other ghost ever has, and a client that comes back to it.
struct Game {
    rng: Rng,
    publisher: Publisher,
    cells: Vec<u32>,
    spawned: u32,
    servers: u64,
    handle: PeerHandle,
    mirror: Mirror,
    column: Vec<u8>,
    /// The number of each ghost that the client has, by id.
    known: BTreeMap<u32, u32>,
    /// Ghosts that stayed when the client came back.
    kept: usize,
}

fn server(seed: u64, coded: bool) -> Publisher {
    let schema = Schema::new([("number", Kind::Bits { bits: 32 }), ("says", Kind::Text { max_bytes: 9 })]);
    let properties = Properties::new(schema.unwrap()).unwrap();
    let class = GhostClass::new("Dot", properties, [Condition::Always; 2], CAPACITY).unwrap();
    let classes = Arc::new(Classes::new([Arc::new(class.with_coding(coded))]).unwrap());
    Publisher::new(classes, PublisherConfig { channel: 3, seed })
}

impl Game {
    fn new(seed: u64) -> Self {
        let publisher = server(0, seed % 2 == 1);
        let mut game = Game {
            rng: Rng::seeded(seed),
            mirror: Mirror::new(publisher.classes().clone()),
            publisher,
            cells: vec![0; CAPACITY as usize],
            spawned: 0,
            servers: 0,
            handle: ONE,
            column: vec![0; 4 * CAPACITY as usize],
            known: BTreeMap::new(),
            kept: 0,
        };
        game.publisher.welcome(ONE, CLIENT);
        game
    }

    fn change(&mut self) {
        for _ in 0..self.rng.below(4) {
            let row = self.rng.below(CAPACITY.into()) as u32;
            if self.rng.chance(0.6) {
                if let Ok(row) = self.publisher.spawn(0, None) {
                    self.spawned += 1;
                    self.cells[row as usize] = self.spawned;
                }
            } else {
                self.publisher.despawn(0, row);
            }
        }
    }

    fn columns(&self) -> Vec<u8> {
        self.cells.iter().flat_map(|cell| cell.to_le_bytes()).collect()
    }

    fn tick(&mut self) {
        let bytes = self.columns();
        let columns = [Column { cells: &bytes, scan: true }, Column::default()];
        self.publisher.begin_tick(&[columns], &mut Vec::new());
        let rows: Vec<u32> = self.publisher.table(0).alive().collect();
        rows.into_iter().for_each(|row| _ = self.publisher.enter(self.handle, 0, row));
    }

    fn send(&mut self, loss: f64) {
        for (record, bits, bytes) in packets(&mut self.publisher, self.handle, 700) {
            let arrives = !self.rng.chance(loss);
            if arrives {
                self.mirror.handle_payload(BitReader::with_range(&bytes, 0, bits)).unwrap();
            }
            // Acks may be lost too: then the connection ends before the server knows.
            self.publisher.handle_notification(self.handle, record, arrives);
        }
        self.look();
    }

    /// The client's game: a ghost has its number until its end is reported.
    fn look(&mut self) {
        let mut events = Vec::new();
        self.mirror.take(&mut [[&mut self.column[..], &mut []]], &mut events);
        for event in events {
            match event.kind {
                GhostEventKind::Spawned => assert!(self.known.insert(event.id, 0).is_none()),
                GhostEventKind::Despawned => assert!(self.known.remove(&event.id).is_some()),
                _ => {}
            }
        }
        for (id, number) in &mut self.known {
            let cell = &self.column[*id as usize * 4..][..4];
            let seen = u32::from_le_bytes(cell.try_into().unwrap());
            assert!(*number == 0 || *number == seen, "ghost {id} was {number} and is {seen}");
            *number = seen;
        }
    }

    fn come_back(&mut self) {
        self.handle.generation += 1;
        self.publisher.welcome(self.handle, CLIENT);
        self.mirror.await_visit();
        self.tick();
        self.send(0.0);
        self.kept += self.known.len();
    }

    fn save(&self) -> Vec<u8> {
        let bytes = self.columns();
        let columns = [Column { cells: &bytes, scan: false }, Column::default()];
        self.publisher.save(&[columns], SavedIdentity { key: 9, drawn: self.spawned })
    }

    /// Another server continues a saved world.
    fn resume(&mut self, saved: &[u8]) {
        self.servers += 1;
        let coded = self.publisher.classes().iter().any(|class| class.coded);
        self.publisher = server(self.servers, coded);
        let saved = SavedWorld::read(saved, self.publisher.classes(), 4).unwrap();
        self.publisher.load(&saved);
        assert_eq!((self.publisher.tick(), saved.identity.key), (saved.tick, 9));
        let class = &saved.classes[0];
        for (row, cell) in class.rows.iter().zip(class.cells[0].as_chunks().0) {
            self.cells[*row as usize] = u32::from_le_bytes(*cell);
        }
    }

    fn finish(&mut self) {
        for _ in 0..20 {
            self.tick();
            self.send(0.0);
        }
        let rows: Vec<u32> = self.publisher.table(0).alive().collect();
        let id_of = |row: &u32| self.publisher.ghost_id(self.handle, 0, *row).unwrap();
        let real: BTreeMap<u32, u32> =
            rows.iter().map(|row| (id_of(row), self.cells[*row as usize])).collect();
        assert_eq!(self.known, real);
    }
}

#[test]
fn a_client_has_the_servers_ghosts_after_any_returns_and_none_becomes_another() {
    let mut kept = 0;
    for seed in 0..300 {
        let mut game = Game::new(seed);
        let mut saves = Vec::new();
        for _ in 0..120 {
            game.change();
            game.tick();
            game.send(0.3);
            match game.rng.below(20) {
                0 => saves.push(game.save()),
                1 => {
                    game.publisher.remove_peer(game.handle);
                    for _ in 0..game.rng.below(4) {
                        game.change();
                        game.tick();
                    }
                    game.come_back();
                }
                2 if !saves.is_empty() => {
                    let which = game.rng.below(saves.len() as u64) as usize;
                    let saved = saves[which].clone();
                    game.resume(&saved);
                    assert_eq!(game.save()[..8], saved[..8]);
                    game.come_back();
                }
                _ => {}
            }
        }
        game.finish();
        kept += game.kept;
    }
    assert!(kept > 5000, "{kept}");
}

#[test]
fn a_world_is_the_same_after_it_was_saved() {
    for seed in 0..40 {
        let mut game = Game::new(seed);
        for _ in 0..30 {
            game.change();
            game.tick();
            game.send(0.3);
        }
        game.publisher.remove_peer(game.handle);
        let saved = game.save();
        game.resume(&saved);
        assert_eq!(game.save(), saved, "seed {seed}");
        for at in 0..saved.len() {
            let mut changed = saved.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(SavedWorld::read(&changed, game.publisher.classes(), 4).is_err(), "byte {at}");
            assert!(SavedWorld::read(&saved[..at], game.publisher.classes(), 4).is_err());
        }
    }
}

#[test]
fn objects_wait_for_their_owner_unless_they_are_given_away() {
    let mut publisher = server(0, false);
    publisher.welcome(ONE, CLIENT);
    let rows = [0; 4].map(|_| publisher.spawn(0, Some(ONE)).unwrap());
    publisher.remove_peer(ONE);
    assert_eq!(rows.map(|row| publisher.waits_for(0, row)), [Some(CLIENT); 4]);
    publisher.set_owner(0, rows[1], None);
    publisher.despawn(0, rows[2]);
    publisher.spawn(0, None).unwrap();
    let back = PeerHandle { slot: 3, generation: 1 };
    publisher.welcome(back, CLIENT + 1);
    assert_eq!(publisher.owned(back, 0).count(), 0);
    publisher.remove_peer(back);
    publisher.welcome(back, CLIENT);
    assert_eq!(publisher.owned(back, 0).collect::<Vec<_>>(), [rows[0], rows[3]]);
    assert_eq!(rows.map(|row| publisher.waits_for(0, row)), [None; 4]);
}

#[test]
fn another_world_and_another_players_visit_end_all_ghosts() {
    let mut game = Game::new(0);
    (0..5).for_each(|_| game.change());
    game.tick();
    game.send(0.0);
    assert!(!game.known.is_empty());
    // Another program of the same player was here meanwhile.
    game.publisher.remove_peer(game.handle);
    game.handle.generation += 1;
    game.publisher.welcome(game.handle, CLIENT);
    game.tick();
    let _ = packets(&mut game.publisher, game.handle, 700);
    game.publisher.remove_peer(game.handle);
    let before = game.known.len();
    game.come_back();
    assert_eq!((game.known.len(), game.mirror.epoch()), (before, 1));
    // A new world has nothing to show, and says so all the same.
    game.publisher = server(5, false);
    game.handle.generation += 1;
    game.publisher.welcome(game.handle, CLIENT);
    game.mirror.await_visit();
    game.tick();
    assert_eq!(game.publisher.wants().count(), 1);
    game.send(0.0);
    assert_eq!((game.known.len(), game.publisher.wants().count()), (0, 0));
}
