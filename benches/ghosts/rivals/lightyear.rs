//! The scenes on lightyear: each client is an app of its own, and datagrams are handed over in memory, from link to link.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy::time::TimeUpdateStrategy;
use bevy_replicon::server::visibility::client_visibility::ClientVisibility;
use bevy_replicon::shared::server_entity_map::ServerEntityMap;
use lightyear::link::recv_payload_from_bytes;
use lightyear::prelude::client::{ClientPlugins, RawClient};
use lightyear::prelude::server::{RawServer, ServerPlugins};
use lightyear::prelude::{
    AppComponentExt, Link, LinkOf, Linked, LocalAddr, NetworkTarget, PeerAddr, Replicate,
    ReplicationReceiver, ReplicationSender, VisibilityExt,
};
use mock_instant::global::MockClock;

use crate::entity::{self, Flags, Health, Place, PlaceSteps, Turn, TurnSteps};
use crate::play::{Kind, Setup};
use crate::rival::{Packet, Rival};
use crate::scene::Scene;
use crate::sight::Change;

struct Client {
    app: App,
    /// Its link there.
    link: Entity,
    /// Its link at the server.
    handle: Entity,
}

pub(crate) struct Lightyear {
    server: App,
    /// The server's entity.
    endpoint: Entity,
    setup: Setup,
    tick: Duration,
    entities: Vec<Entity>,
    clients: Vec<Client>,
    joined: u16,
}

fn app(tick: Duration, is_server: bool) -> App {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, StatesPlugin));
    if is_server {
        app.add_plugins(ServerPlugins { tick_duration: tick });
    } else {
        app.add_plugins(ClientPlugins { tick_duration: tick });
    }
    app.insert_resource(TimeUpdateStrategy::ManualDuration(tick));
    app.component::<Place>().replicate();
    app.component::<Turn>().replicate();
    app.component::<PlaceSteps>().replicate();
    app.component::<TurnSteps>().replicate();
    app.component::<Health>().replicate();
    app.component::<Flags>().replicate();
    app.finish();
    app.cleanup();
    app
}

/// Hands packets to a link.
fn deliver(app: &mut App, link: Entity, packets: Vec<Packet>) {
    if let Some(mut link) = app.world_mut().get_mut::<Link>(link) {
        packets.into_iter().for_each(|it| link.recv.push_raw(recv_payload_from_bytes(it.bytes)));
    }
}

/// Takes what a link sends.
fn sent(app: &mut App, link: Entity) -> Vec<Packet> {
    let link = app.world_mut().get_mut::<Link>(link);
    link.map(|mut link| link.send.drain().map(Packet::datagram).collect()).unwrap_or_default()
}

impl Lightyear {
    /// A client's entity.
    fn entity(&self, client: usize, row: usize) -> Option<Entity> {
        let map = self.clients[client].app.world().resource::<ServerEntityMap>();
        map.to_client().get(&self.entities[row]).copied()
    }
}

impl Rival for Lightyear {
    fn new(scene: &Scene, setup: Setup) -> Self {
        let tick = Duration::from_secs_f64(1.0 / f64::from(scene.plan.hz));
        let mut server = app(tick, true);
        let endpoint = server.world_mut().spawn(RawServer).id();
        server.world_mut().entity_mut(endpoint).insert(Linked);
        server.update();
        let all = Replicate::to_clients(NetworkTarget::All);
        let entities = entity::spawn(server.world_mut(), scene, setup.kind == Kind::Quantised, all);
        server.update();
        Lightyear { server, endpoint, setup, tick, entities, clients: Vec::new(), joined: 0 }
    }

    fn join(&mut self) {
        self.joined += 1;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.joined));
        let mut app = app(self.tick, false);
        let link = app.world_mut().spawn((RawClient, LocalAddr(address), ReplicationReceiver)).id();
        app.world_mut().entity_mut(link).insert(Linked);
        app.update();
        let (world, endpoint) = (self.server.world_mut(), self.endpoint);
        let of = (LinkOf { endpoint }, Link::default(), PeerAddr(address), ReplicationSender);
        let handle = world.spawn(of).id();
        world.entity_mut(handle).insert(Linked);
        world.flush();
        // At first it sees nothing.
        if self.setup.sight.is_some() {
            self.entities.iter().for_each(|entity| world.lose_visibility(*entity, handle));
        }
        self.clients.push(Client { app, link, handle });
    }

    fn leave(&mut self) {
        if let Some(client) = self.clients.pop() {
            self.server.world_mut().despawn(client.handle);
        }
    }

    fn is_connected(&self, client: usize) -> bool {
        self.server.world().get::<ClientVisibility>(self.clients[client].handle).is_some()
    }

    fn serve(&mut self, scene: &Scene, changes: &[Change], arrived: Vec<Vec<Packet>>) {
        // Pings are timed by this clock, at all ends.
        MockClock::advance(self.tick);
        for (client, all) in self.clients.iter().zip(arrived) {
            deliver(&mut self.server, client.handle, all);
        }
        let world = self.server.world_mut();
        entity::apply(world, &self.entities, scene, self.setup.kind == Kind::Quantised);
        for Change { client, row, visible } in changes {
            let (entity, client) = (self.entities[*row], self.clients[*client].handle);
            if *visible {
                world.gain_visibility(entity, client);
            } else {
                world.lose_visibility(entity, client);
            }
        }
        self.server.update();
    }

    fn take_sent(&mut self) -> Vec<(usize, Packet)> {
        let each = self.clients.iter().enumerate();
        each.flat_map(|(i, client)| sent(&mut self.server, client.handle).into_iter().map(move |it| (i, it)))
            .collect()
    }

    fn receive(&mut self, client: usize, arrived: Vec<Packet>) {
        let Client { app, link, .. } = &mut self.clients[client];
        deliver(app, *link, arrived);
        app.update();
    }

    fn take_answers(&mut self, client: usize) -> Vec<Packet> {
        let Client { app, link, .. } = &mut self.clients[client];
        sent(app, *link)
    }

    fn health(&self, client: usize, row: usize) -> Option<u16> {
        let world = self.clients[client].app.world();
        self.entity(client, row).and_then(|entity| world.get::<Health>(entity)).map(|health| health.0)
    }

    fn shows(&self, client: usize, row: usize, place: [f32; 3]) -> bool {
        let world = self.clients[client].app.world();
        self.entity(client, row).is_some_and(|entity| entity::is_at(world, entity, place))
    }
}
