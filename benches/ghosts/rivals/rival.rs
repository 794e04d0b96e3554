//! A game on any rival library: lines, what each client sees, and what is counted.

use bytes::Bytes;

use crate::clock::timed;
use crate::line::Way;
use crate::play::{Cost, Game, Setup};
use crate::scene::{SEED, Scene, Walkers};
use crate::sight::{Change, Sights};

/// Ticks whose positions are kept, for ages.
const PAST: usize = 12;

/// What a library hands to its transport.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// If the library has channels and leaves them to the transport.
    pub(crate) channel: usize,
    /// Whether the transport is to see to it that it arrives.
    pub(crate) reliable: bool,
    pub(crate) bytes: Bytes,
}

impl Packet {
    /// One that may be lost.
    pub(crate) fn datagram(bytes: impl Into<Bytes>) -> Self {
        Packet { channel: 0, reliable: false, bytes: bytes.into() }
    }
}

/// A library: its server with all of a scene's entities, and its clients.
pub(crate) trait Rival {
    /// A server in a scene, without clients.
    fn new(scene: &Scene, setup: Setup) -> Self;

    /// One more client.
    fn join(&mut self);

    /// The client that came last goes.
    fn leave(&mut self);

    /// Whether the server begins to send the client what it is to have.
    fn is_connected(&self, client: usize) -> bool;

    /// The server's part of a tick, in which packets of the clients arrived: what moved in the scene is written, and who sees what
    /// has changed.
    fn serve(&mut self, scene: &Scene, changes: &[Change], arrived: Vec<Vec<Packet>>);

    /// What the server sends, each with its client.
    fn take_sent(&mut self) -> Vec<(usize, Packet)>;

    /// A client's part of a tick.
    fn receive(&mut self, client: usize, arrived: Vec<Packet>);

    /// What a client sends.
    fn take_answers(&mut self, client: usize) -> Vec<Packet>;

    /// The health that a client shows of an entity, if it has that.
    fn health(&self, client: usize, row: usize) -> Option<u16>;

    /// Whether it shows that entity at this place.
    fn shows(&self, client: usize, row: usize, place: [f32; 3]) -> bool;
}

struct Line {
    down: Way,
    up: Way,
    bytes: usize,
}

/// A game on a rival library.
pub(crate) struct Played<R> {
    scene: Scene,
    setup: Setup,
    rival: R,
    lines: Vec<Line>,
    /// What clients see, and from where.
    sights: Option<(Sights, Walkers)>,
    tick: u32,
    /// Where all were in the last ticks; the newest last.
    past: Vec<Vec<[f32; 3]>>,
}

impl<R: Rival> Played<R> {
    /// Whether a client is to have an entity.
    fn sees(&self, client: usize, row: u32) -> bool {
        self.sights.as_ref().is_none_or(|(sights, _)| sights.of(client).binary_search(&row).is_ok())
    }
}

impl<R: Rival> Game for Played<R> {
    fn new(setup: Setup) -> Self {
        let scene = Scene::named(setup.scene);
        let rival = R::new(&scene, setup);
        let sights = setup.sight.map(|radius| {
            let walkers = Walkers::new(SEED, setup.clients, scene.plan.reach[0], scene.plan.hz);
            (Sights::new(radius as f32, setup.clients), walkers)
        });
        let mut game = Played { scene, setup, rival, lines: Vec::new(), sights, tick: 0, past: Vec::new() };
        (0..setup.clients).for_each(|_| game.join());
        // Handshakes take their time.
        while !(0..setup.clients).all(|client| game.is_connected(client)) {
            assert!(game.tick < 1000, "clients don't get in");
            game.tick(true);
        }
        game
    }

    fn tick(&mut self, moves: bool) -> Cost {
        let mut cost = Cost::default();
        self.tick += 1;
        if moves {
            self.scene.step();
            self.sights.iter_mut().for_each(|(_, walkers)| walkers.step());
        } else {
            self.scene.moved.clear();
        }
        let arrived = self.lines.iter_mut().map(|line| line.up.receive(self.tick)).collect();
        let connected: Vec<bool> = (0..self.lines.len()).map(|i| self.rival.is_connected(i)).collect();
        timed(&mut cost.server, || {
            let changes = self
                .sights
                .as_mut()
                .map(|(sights, walkers)| sights.update(&self.scene, &walkers.position, &connected));
            self.rival.serve(&self.scene, changes.unwrap_or_default(), arrived);
        });
        for (client, packet) in self.rival.take_sent() {
            let line = &mut self.lines[client];
            cost.bytes += packet.bytes.len();
            line.bytes += packet.bytes.len();
            line.down.send(self.tick, packet);
        }
        let moved = |client: usize| self.scene.moved.iter().filter(|row| self.sees(client, **row)).count();
        cost.updates = match &self.sights {
            Some(_) => (0..self.lines.len()).map(moved).sum(),
            None => self.scene.moved.len() * self.lines.len(),
        };
        for (client, line) in self.lines.iter_mut().enumerate() {
            let (mut time, arrived) = (0.0, line.down.receive(self.tick));
            timed(&mut time, || self.rival.receive(client, arrived));
            cost.client += if client == 0 { time } else { 0.0 };
            self.rival.take_answers(client).into_iter().for_each(|packet| line.up.send(self.tick, packet));
        }
        self.past.push(self.scene.position.clone());
        if self.past.len() > PAST {
            self.past.remove(0);
        }
        cost
    }

    fn join(&mut self) {
        let (path, seed) = (self.setup.path, 2 * self.lines.len() as u64);
        self.rival.join();
        self.lines.push(Line {
            down: Way::new(path.down, path, seed),
            up: Way::new(path.up, path, seed + 1),
            bytes: 0,
        });
        let client = self.lines.len() - 1;
        for packet in self.rival.take_answers(client) {
            self.lines[client].up.send(self.tick, packet);
        }
    }

    fn leave(&mut self) {
        self.rival.leave();
        self.lines.pop();
    }

    fn is_connected(&self, client: usize) -> bool {
        self.rival.is_connected(client)
    }

    fn has_all(&self, client: usize) -> bool {
        let rows = 0..self.scene.plan.entities;
        rows.into_iter().all(|row| !self.sees(client, row as u32) || self.rival.health(client, row).is_some())
    }

    fn bytes_of(&self, client: usize) -> usize {
        self.lines[client].bytes
    }

    fn ages(&self, ages: &mut Vec<f64>) {
        for row in &self.scene.moved {
            let i = *row as usize;
            if self.sees(0, *row) && self.rival.health(0, i).is_some() {
                let age = self.past.iter().rev().position(|past| self.rival.shows(0, i, past[i]));
                ages.push(age.unwrap_or(PAST) as f64);
            }
        }
    }

    fn wrong(&self) -> usize {
        let rows = (0..self.scene.plan.entities).filter(|row| self.sees(0, *row as u32));
        let is_right = |row: usize| {
            self.rival.health(0, row) == Some(self.scene.health[row])
                && self.rival.shows(0, row, self.scene.position[row])
        };
        rows.filter(|row| !is_right(*row)).count()
    }
}
