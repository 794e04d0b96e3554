//! Three players whose master dies, or who lose each other: src/mesh/election.rs. Each has a clock of its own, which goes on
//! only to its next deadline: any two may be as far apart as links to the same dead player can end.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tickwire::mesh::Mesh;
use tickwire::time::{Duration, Instant};

use super::{Machine, hash_of, walk};
use crate::mesh::world::World;

/// How often a player's deadline may pass, and how far its clock goes: within the timeout a link to a dead player ends.
const DEADLINES: u8 = 3;
const TIMEOUT: Duration = Duration::from_secs(5);

/// `LOSSES`: how many pairs may lose each other.
struct Elections<const PLAYERS: usize, const LOSSES: usize> {
    world: World,
    begun: Instant,
    clocks: Vec<Instant>,
    passed: Vec<u8>,
    killed: bool,
    /// Of all masters of more than two, whoever was it in an epoch.
    masters: BTreeMap<u32, usize>,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Deliver(usize, usize),
    Deadline(usize),
    Lose(usize, usize),
    Kill,
}

impl<const PLAYERS: usize, const LOSSES: usize> Elections<PLAYERS, LOSSES> {
    fn receiver(&self, place: usize, way: usize) -> usize {
        let connection = &self.world.connections[place];
        if way == 0 { connection.to } else { connection.from }
    }

    fn meshes(&self) -> impl Iterator<Item = (usize, &Mesh)> {
        self.world.peers.iter().enumerate().filter_map(|(peer, mesh)| Some((peer, mesh.as_ref()?)))
    }

    fn check(&mut self) {
        let masters = self.meshes().filter(|(_, mesh)| mesh.is_master() && mesh.roster().members.len() > 2);
        let masters: Vec<_> = masters.map(|(peer, mesh)| (mesh.epoch(), peer)).collect();
        for (epoch, peer) in masters {
            let known = *self.masters.entry(epoch).or_insert(peer);
            assert_eq!(known, peer, "two masters of epoch {epoch}");
        }
    }
}

impl<const PLAYERS: usize, const LOSSES: usize> Machine for Elections<PLAYERS, LOSSES> {
    type Action = Action;

    fn start() -> Self {
        thread_local!(static WORLDS: RefCell<BTreeMap<usize, World>> = const { RefCell::new(BTreeMap::new()) });
        let world = WORLDS
            .with_borrow_mut(|worlds| worlds.entry(PLAYERS).or_insert_with(|| World::of(PLAYERS)).clone());
        let (begun, clocks, passed) = (world.now, vec![world.now; PLAYERS], vec![0; PLAYERS]);
        Elections { world, begun, clocks, passed, killed: false, masters: BTreeMap::new() }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions: Vec<_> =
            self.world.ready().into_iter().map(|(place, way)| Action::Deliver(place, way)).collect();
        for (peer, mesh) in self.meshes() {
            if self.passed[peer] < DEADLINES && mesh.next_deadline() <= self.begun + TIMEOUT {
                actions.push(Action::Deadline(peer));
            }
        }
        if !self.killed {
            actions.push(Action::Kill);
        }
        if self.world.cut.len() < LOSSES {
            let pairs = (0..PLAYERS).flat_map(|a| (a + 1..PLAYERS).map(move |b| (a, b)));
            let pairs = pairs.filter(|pair| !(self.world.cut.contains(pair) || self.killed && pair.0 == 0));
            actions.extend(pairs.map(|(a, b)| Action::Lose(a, b)));
        }
        actions
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Deliver(place, way) => {
                self.world.now = self.clocks[self.receiver(place, way)];
                self.world.deliver(place, way);
            }
            Action::Deadline(peer) => {
                self.passed[peer] += 1;
                let next = self.world.mesh(peer).next_deadline();
                self.clocks[peer] = self.clocks[peer].max(next);
                self.world.now = self.clocks[peer];
                self.world.update(peer);
            }
            Action::Lose(a, b) => self.world.cut(a, b),
            Action::Kill => {
                self.killed = true;
                // What it said last may still come.
                self.world.kill(0, true);
            }
        }
        self.check();
    }

    fn state(&self) -> String {
        let masters = self.meshes().map(|(_, mesh)| mesh.master());
        format!("{:?}", masters.collect::<Vec<_>>())
    }

    fn everything(&self) -> Option<u64> {
        let World { peers, connections, cut, .. } = &self.world;
        Some(hash_of(&[peers, connections, cut, &self.clocks, &self.passed, &self.killed, &self.masters]))
    }

    fn conclude(mut self) {
        self.world.now = *self.clocks.iter().max().unwrap();
        self.world.settle();
        self.check();
        self.world.check_settled();
        let accidents = self.world.cut.len() + usize::from(self.killed);
        let parts = self.world.parts();
        if accidents <= 1 {
            let least = PLAYERS - accidents;
            assert!(parts.len() == 1 && parts.keys().all(|members| members.len() >= least), "{parts:?}");
        }
    }
}

#[test]
fn three_players_have_one_master_an_epoch_and_find_one() {
    let killed = walk::<Elections<3, 0>>(11);
    let parted = walk::<Elections<3, 1>>(7);
    assert!(killed.states > 300 && parted.states > 1_000, "{} {}", killed.states, parted.states);
}

#[test]
fn four_players_have_one_master_an_epoch_and_find_one() {
    let walked = walk::<Elections<4, 0>>(8);
    assert!(walked.states > 1_000, "{}", walked.states);
}
