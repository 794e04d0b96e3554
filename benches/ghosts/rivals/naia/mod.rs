//! The scenes on naia: each client is a client of its own with a world of its own, and packets are handed over in memory.
//!
//! An entity is one component of four properties, of which naia sends those that changed. "Plain" are singles; "quantised"
//! properties of naia's integers of any number of bits.

mod wire;
mod world;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use naia_client::{Client, ClientConfig, JitterBufferType};
use naia_server::{ConnectEvent, RoomKey, Server, ServerConfig, UserKey};
use naia_shared::{
    BandwidthConfig, ConnectionConfig, Instant, OwnedLocalEntity, Property, Protocol, Replicate, TestClock,
    UnsignedInteger,
};

use self::wire::Wire;
use self::world::World;
use crate::entity::{place_steps, turn_steps};
use crate::play::{Kind, Setup};
use crate::rival::{Packet, Rival};
use crate::scene::Scene;
use crate::sight::Change;

#[derive(Replicate)]
struct Plain {
    place: Property<[f32; 3]>,
    turn: Property<[f32; 4]>,
    health: Property<u16>,
    flags: Property<u8>,
}

#[derive(Replicate)]
struct Steps {
    place: Property<[UnsignedInteger<21>; 3]>,
    largest: Property<UnsignedInteger<2>>,
    turn: Property<[UnsignedInteger<9>; 3]>,
    health: Property<UnsignedInteger<10>>,
    flags: Property<u8>,
}

fn place_bits(place: [f32; 3]) -> [UnsignedInteger<21>; 3] {
    place_steps(place).map(|steps| UnsignedInteger::new(u64::from(steps)))
}

fn turn_bits(turn: [f32; 4]) -> (UnsignedInteger<2>, [UnsignedInteger<9>; 3]) {
    let (largest, rest) = turn_steps(turn);
    (UnsignedInteger::new(u64::from(largest)), rest.map(|steps| UnsignedInteger::new(u64::from(steps))))
}

fn protocol(tick: Duration) -> Protocol {
    let mut protocol = Protocol::builder();
    protocol.tick_interval(tick).add_component::<Plain>().add_component::<Steps>();
    protocol.build()
}

/// All of a tick is to go out.
fn connection() -> ConnectionConfig {
    let bandwidth = BandwidthConfig { target_bytes_per_sec: 1_000_000_000 };
    ConnectionConfig { bandwidth, ..ConnectionConfig::default() }
}

struct Player {
    client: Client<u32>,
    world: World,
    wire: Wire,
    address: SocketAddr,
    /// The server's name for it, once it is connected.
    user: Option<UserKey>,
}

pub(crate) struct Naia {
    server: Server<u32>,
    world: World,
    wire: Wire,
    /// All entities are in it, and those clients that see all.
    room: RoomKey,
    setup: Setup,
    tick: Duration,
    entities: Vec<u32>,
    players: Vec<Player>,
    joined: u16,
}

impl Naia {
    /// What a client calls an entity.
    fn entity(&self, client: usize, row: usize) -> Option<u32> {
        let player = &self.players[client];
        let user = player.user?;
        let local = self.server.entity(&self.world, &self.entities[row]).local_entity(&user)?;
        // The server's is the client's remote one of the same number.
        let (OwnedLocalEntity::Host { id, .. } | OwnedLocalEntity::Remote { id, .. }) = local.into();
        let local = OwnedLocalEntity::new_remote_dynamic(id).into();
        player.client.local_entity(&player.world, &local).map(|entity| entity.id())
    }

    fn apply(&mut self, scene: &Scene) {
        for row in &scene.moved {
            let i = *row as usize;
            let entity = self.entities[i];
            if let Some(shown) = self.world.get_mut::<Plain>(entity) {
                *shown.place = scene.position[i];
                *shown.turn = scene.rotation[i];
                if *shown.health != scene.health[i] {
                    *shown.health = scene.health[i];
                }
                if *shown.flags != scene.flags[i] {
                    *shown.flags = scene.flags[i];
                }
            } else if let Some(shown) = self.world.get_mut::<Steps>(entity) {
                let (place, (largest, turn)) = (place_bits(scene.position[i]), turn_bits(scene.rotation[i]));
                let health = UnsignedInteger::new(u64::from(scene.health[i]));
                if *shown.place != place {
                    *shown.place = place;
                }
                if *shown.largest != largest {
                    *shown.largest = largest;
                }
                if *shown.turn != turn {
                    *shown.turn = turn;
                }
                if *shown.health != health {
                    *shown.health = health;
                }
                if *shown.flags != scene.flags[i] {
                    *shown.flags = scene.flags[i];
                }
            }
        }
    }
}

impl Rival for Naia {
    fn new(scene: &Scene, setup: Setup) -> Self {
        // Its clock counts milliseconds.
        let tick = Duration::from_millis(1000 / u64::from(scene.plan.hz));
        TestClock::init(1000);
        let config =
            ServerConfig { require_auth: false, connection: connection(), ..ServerConfig::default() };
        let (mut server, mut world, wire) =
            (Server::new(config, protocol(tick)), World::default(), Wire::default());
        server.listen(wire.socket());
        let room = server.create_room().key();
        let entities = (0..scene.plan.entities).map(|i| {
            let mut entity = server.spawn_entity(&mut world);
            if setup.kind == Kind::Quantised {
                let (largest, turn) = turn_bits(scene.rotation[i]);
                let health = UnsignedInteger::new(u64::from(scene.health[i]));
                let place = place_bits(scene.position[i]);
                entity.insert_component(Steps::new_complete(place, largest, turn, health, scene.flags[i]));
            } else {
                let (place, turn) = (scene.position[i], scene.rotation[i]);
                entity.insert_component(Plain::new_complete(place, turn, scene.health[i], scene.flags[i]));
            }
            entity.enter_room(&room).id()
        });
        let entities = entities.collect();
        Naia { server, world, wire, room, setup, tick, entities, players: Vec::new(), joined: 0 }
    }

    fn join(&mut self) {
        self.joined += 1;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.joined));
        // It gives what has arrived to the application at once: what others do.
        let config = ClientConfig {
            connection: connection(),
            jitter_buffer: JitterBufferType::Bypass,
            ..ClientConfig::default()
        };
        let (mut client, wire) = (Client::new(config, protocol(self.tick)), Wire::default());
        client.connect(wire.client_socket(&self.wire, address));
        self.players.push(Player { client, world: World::default(), wire, address, user: None });
    }

    fn leave(&mut self) {
        if let Some(user) = self.players.pop().and_then(|player| player.user) {
            self.server.user_mut(&user).disconnect();
        }
    }

    fn is_connected(&self, client: usize) -> bool {
        self.players[client].user.is_some()
    }

    fn serve(&mut self, scene: &Scene, changes: &[Change], arrived: Vec<Vec<Packet>>) {
        // All others' time goes on with the server's.
        TestClock::advance(self.tick.as_millis() as u64);
        for (player, all) in self.players.iter().zip(arrived) {
            all.into_iter().for_each(|it| self.wire.deliver(player.address, it.bytes));
        }
        let now = Instant::now();
        self.server.receive_all_packets();
        self.server.process_all_packets(&mut self.world, &now);
        let mut events = self.server.take_world_events();
        for user in events.read::<ConnectEvent>() {
            let address = self.server.user_address(&user);
            if let Some(player) = self.players.iter_mut().find(|player| Some(player.address) == address) {
                player.user = Some(user);
                if self.setup.sight.is_none() {
                    self.server.room_mut(&self.room).add_user(&user);
                }
            }
        }
        self.server.take_tick_events(&now);
        self.apply(scene);
        for Change { client, row, visible } in changes {
            if let Some(user) = self.players[*client].user {
                let mut scope = self.server.user_scope_mut(&user);
                if *visible {
                    scope.include(&self.entities[*row]);
                } else {
                    scope.exclude(&self.entities[*row]);
                }
            }
        }
        self.server.send_all_packets(&self.world);
    }

    fn take_sent(&mut self) -> Vec<(usize, Packet)> {
        let client = |to: SocketAddr| self.players.iter().position(|player| player.address == to);
        let sent = self.wire.take_sent().into_iter();
        sent.filter_map(|(to, bytes)| Some((client(to)?, Packet::datagram(bytes)))).collect()
    }

    fn receive(&mut self, client: usize, arrived: Vec<Packet>) {
        let Player { client, world, wire, address, .. } = &mut self.players[client];
        arrived.into_iter().for_each(|it| wire.deliver(*address, it.bytes));
        let now = Instant::now();
        client.receive_all_packets();
        client.process_all_packets(&mut *world, &now);
        client.take_world_events();
        client.take_tick_events(&now);
        client.send_all_packets(&*world);
    }

    fn take_answers(&mut self, client: usize) -> Vec<Packet> {
        let sent = self.players[client].wire.take_sent().into_iter();
        sent.map(|(_, bytes)| Packet::datagram(bytes)).collect()
    }

    fn health(&self, client: usize, row: usize) -> Option<u16> {
        let (world, entity) = (&self.players[client].world, self.entity(client, row)?);
        let plain = world.get::<Plain>(entity).map(|shown| *shown.health);
        plain.or_else(|| world.get::<Steps>(entity).map(|shown| shown.health.get() as u16))
    }

    fn shows(&self, client: usize, row: usize, place: [f32; 3]) -> bool {
        let (world, entity) = (&self.players[client].world, self.entity(client, row));
        let plain = |entity| world.get::<Plain>(entity).map(|shown| *shown.place == place);
        let steps = |entity| world.get::<Steps>(entity).map(|shown| *shown.place == place_bits(place));
        entity.and_then(|entity| plain(entity).or_else(|| steps(entity))).unwrap_or(false)
    }
}
