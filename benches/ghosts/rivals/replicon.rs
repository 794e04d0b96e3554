//! The scenes on bevy_replicon: each client is an app of its own, and messages are handed over in memory.
//!
//! "Plain" are components as a game has them, singles; "quantised" those of which the application makes as few bytes as bytes
//! allow, as it writes them: a position in 8, a rotation in 4.

use std::time::Duration;

use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy::time::TimeUpdateStrategy;
use bevy_replicon::bytes::Bytes;
use bevy_replicon::prelude::*;
use bevy_replicon::shared::server_entity_map::ServerEntityMap;
use serde::{Deserialize, Serialize};

use crate::clock::timed;
use crate::line::Way;
use crate::scene::Scene;
use crate::{Cost, Setup};

/// What fits a datagram, as for ghosts.
const MAX_MESSAGE: usize = 1200;

#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
struct Place([f32; 3]);
#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
struct Turn([f32; 4]);
#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
struct PlaceSteps([u8; 8]);
#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
struct TurnSteps([u8; 4]);
#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
struct Health(u16);
#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
struct Flags(u8);

/// 21 bits an axis, of 1/512 m.
fn place_steps(place: [f32; 3]) -> PlaceSteps {
    let steps = place.map(|at| ((f64::from(at) + 2000.0) * 512.0).round() as u64);
    PlaceSteps((steps[0] | steps[1] << 21 | steps[2] << 42).to_le_bytes())
}

/// The smallest three, in 9 bits each.
fn turn_steps(turn: [f32; 4]) -> TurnSteps {
    let largest = (0..4).fold(0, |best, at| if turn[at].abs() > turn[best].abs() { at } else { best });
    let sign = if turn[largest] < 0.0 { -1.0 } else { 1.0 };
    let rest = (0..4).filter(|at| *at != largest).enumerate();
    let level = |at: usize| ((sign * turn[at] * std::f32::consts::SQRT_2 * 255.0).round() + 255.0) as u32;
    let steps = rest.fold(largest as u32, |all, (i, at)| all | level(at) << (2 + 9 * i));
    TurnSteps(steps.to_le_bytes())
}

fn app(hz: u32) -> App {
    let mut app = App::new();
    app.add_plugins((
        MinimalPlugins,
        StatesPlugin,
        RepliconPlugins.build().set(ServerPlugin::new(PostUpdate)),
    ));
    app.insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_secs_f64(1.0 / f64::from(hz))));
    app.replicate::<Place>().replicate::<Turn>().replicate::<PlaceSteps>().replicate::<TurnSteps>();
    app.replicate::<Health>().replicate::<Flags>();
    app.finish();
    app.cleanup();
    app
}

struct Player {
    app: App,
    /// The server's entity for it.
    handle: Entity,
    down: Way<(usize, Bytes)>,
    up: Way<(usize, Bytes)>,
    bytes: usize,
}

pub(crate) struct Game {
    pub(crate) scene: Scene,
    setup: Setup,
    server: App,
    entities: Vec<Entity>,
    players: Vec<Player>,
    tick: u32,
    /// By channel of the server, and of clients: whether it is reliable.
    reliable: [Vec<bool>; 2],
    /// Where all were in the last ticks, for ages; the newest last.
    past: Vec<Vec<[f32; 3]>>,
}

impl Game {
    pub(crate) fn new(setup: Setup) -> Self {
        let scene = Scene::named(setup.scene);
        let mut server = app(scene.plan.hz);
        server.world_mut().resource_mut::<NextState<ServerState>>().set(ServerState::Running);
        server.update();
        let channels = server.world().resource::<RepliconChannels>();
        let of = |all: &[Channel]| all.iter().map(|it| !matches!(it, Channel::Unreliable)).collect();
        let reliable = [of(channels.server_channels()), of(channels.client_channels())];
        let entities = (0..scene.plan.entities).map(|i| {
            let mut entity =
                server.world_mut().spawn((Replicated, Health(scene.health[i]), Flags(scene.flags[i])));
            if setup.quantised {
                entity.insert((place_steps(scene.position[i]), turn_steps(scene.rotation[i])));
            } else {
                entity.insert((Place(scene.position[i]), Turn(scene.rotation[i])));
            }
            entity.id()
        });
        let entities = entities.collect();
        let players = Vec::new();
        let mut game = Game { scene, setup, server, entities, players, tick: 0, reliable, past: Vec::new() };
        (0..setup.clients).for_each(|_| game.join());
        game
    }

    pub(crate) fn join(&mut self) {
        let mut app = app(self.scene.plan.hz);
        app.world_mut().resource_mut::<NextState<ClientState>>().set(ClientState::Connected);
        app.update();
        let handle = self.server.world_mut().spawn(ConnectedClient { max_size: MAX_MESSAGE }).id();
        let (path, seed) = (self.setup.path, 2 * self.players.len() as u64);
        let mut up = Way::new(path, seed + 1);
        for (channel, message) in app.world_mut().resource_mut::<ClientMessages>().drain_sent() {
            up.send(self.tick, true, (channel, message));
        }
        self.players.push(Player { app, handle, down: Way::new(path, seed), up, bytes: 0 });
    }

    /// A tick of all.
    pub(crate) fn tick(&mut self) -> Cost {
        let mut cost = Cost::default();
        self.tick += 1;
        self.scene.step();
        let arrived: Vec<(Entity, Vec<(usize, Bytes)>)> =
            self.players.iter_mut().map(|player| (player.handle, player.up.receive(self.tick))).collect();
        let mut sent = Vec::new();
        timed(&mut cost.server, || {
            let mut messages = self.server.world_mut().resource_mut::<ServerMessages>();
            for (handle, all) in arrived {
                all.into_iter().for_each(|(channel, it)| messages.insert_received(handle, channel, it));
            }
            apply(self.server.world_mut(), &self.entities, &self.scene, self.setup.quantised);
            self.server.update();
            sent.extend(self.server.world_mut().resource_mut::<ServerMessages>().drain_sent());
        });
        for (handle, channel, message) in sent {
            cost.bytes += message.len();
            let player = self.players.iter_mut().find(|player| player.handle == handle).expect("a client");
            player.bytes += message.len();
            player.down.send(self.tick, self.reliable[0][channel], (channel, message));
        }
        cost.updates = self.scene.moved.len() * self.players.len();
        for (i, player) in self.players.iter_mut().enumerate() {
            let (mut time, arrived) = (0.0, player.down.receive(self.tick));
            timed(&mut time, || {
                let mut messages = player.app.world_mut().resource_mut::<ClientMessages>();
                arrived.into_iter().for_each(|(channel, it)| messages.insert_received(channel, it));
                player.app.update();
            });
            cost.client += if i == 0 { time } else { 0.0 };
            for (channel, message) in player.app.world_mut().resource_mut::<ClientMessages>().drain_sent() {
                player.up.send(self.tick, self.reliable[1][channel], (channel, message));
            }
        }
        self.past.push(self.scene.position.clone());
        if self.past.len() > 12 {
            self.past.remove(0);
        }
        cost
    }

    /// How many ticks ago the server last had where the first client shows what moved in this tick.
    pub(crate) fn ages(&mut self, ages: &mut Vec<f64>) {
        if self.setup.quantised {
            return;
        }
        let world = self.players[0].app.world();
        let map = world.resource::<ServerEntityMap>();
        for row in &self.scene.moved {
            let i = *row as usize;
            let shown = map.to_client().get(&self.entities[i]).and_then(|entity| world.get::<Place>(*entity));
            let Some(Place(shown)) = shown else { continue };
            let age = self.past.iter().rev().position(|past| past[i] == *shown);
            ages.push(age.unwrap_or(self.past.len()) as f64);
        }
    }

    /// Whether a client has all entities.
    pub(crate) fn has_all(&self, player: usize) -> bool {
        let map = self.players[player].app.world().resource::<ServerEntityMap>();
        self.entities.iter().all(|entity| map.to_client().contains_key(entity))
    }

    /// Bytes for one client so far.
    pub(crate) fn bytes_of(&self, player: usize) -> usize {
        self.players[player].bytes
    }

    /// Panics unless the first client shows the server's world, once nothing is in flight.
    pub(crate) fn check(&mut self) {
        let world = self.players[0].app.world();
        let map = world.resource::<ServerEntityMap>();
        for (i, entity) in self.entities.iter().enumerate() {
            let shown = map.to_client()[entity];
            assert_eq!(world.get(shown), Some(&Health(self.scene.health[i])), "{i}");
            if self.setup.quantised {
                assert_eq!(world.get(shown), Some(&place_steps(self.scene.position[i])), "{i}");
            } else {
                assert_eq!(world.get(shown), Some(&Place(self.scene.position[i])), "{i}");
            }
        }
    }
}

/// The application's writes of a tick.
fn apply(world: &mut World, entities: &[Entity], scene: &Scene, quantised: bool) {
    for row in &scene.moved {
        let i = *row as usize;
        let mut entity = world.entity_mut(entities[i]);
        if quantised {
            if let Some(mut place) = entity.get_mut::<PlaceSteps>() {
                place.set_if_neq(place_steps(scene.position[i]));
            }
            if let Some(mut turn) = entity.get_mut::<TurnSteps>() {
                turn.set_if_neq(turn_steps(scene.rotation[i]));
            }
        } else {
            if let Some(mut place) = entity.get_mut::<Place>() {
                *place = Place(scene.position[i]);
            }
            if let Some(mut turn) = entity.get_mut::<Turn>() {
                *turn = Turn(scene.rotation[i]);
            }
        }
        if let Some(mut health) = entity.get_mut::<Health>() {
            health.set_if_neq(Health(scene.health[i]));
        }
        if let Some(mut flags) = entity.get_mut::<Flags>() {
            flags.set_if_neq(Flags(scene.flags[i]));
        }
    }
}
