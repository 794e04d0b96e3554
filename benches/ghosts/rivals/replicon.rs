//! The scenes on bevy_replicon: each client is an app of its own, and messages are handed over in memory.

use std::time::Duration;

use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy::time::TimeUpdateStrategy;
use bevy_replicon::prelude::*;
use bevy_replicon::server::visibility::client_visibility::ClientVisibility;
use bevy_replicon::server::visibility::filters_mask::FilterBit;
use bevy_replicon::server::visibility::registry::FilterRegistry;
use bevy_replicon::shared::replication::registry::ReplicationRegistry;
use bevy_replicon::shared::server_entity_map::ServerEntityMap;

use crate::entity::{self, Flags, Health, Place, PlaceSteps, Turn, TurnSteps};
use crate::play::{Kind, Setup};
use crate::rival::{Packet, Rival};
use crate::scene::Scene;
use crate::sight::Change;

/// What fits a datagram, as for ghosts.
const MAX_MESSAGE: usize = 1200;

struct Client {
    app: App,
    /// The server's entity for it.
    handle: Entity,
}

pub(crate) struct Replicon {
    server: App,
    setup: Setup,
    hz: u32,
    entities: Vec<Entity>,
    clients: Vec<Client>,
    /// By channel of the server, and of clients: whether it is reliable.
    reliable: [Vec<bool>; 2],
}

/// Of entities that a client doesn't see.
#[derive(Resource, Clone, Copy)]
struct Hidden(FilterBit);

impl FromWorld for Hidden {
    fn from_world(world: &mut World) -> Self {
        world.resource_scope(|world, mut filters: Mut<FilterRegistry>| {
            world.resource_scope(|world, mut registry: Mut<ReplicationRegistry>| {
                let whole = ScopeLifetime::WhileVisible;
                Hidden(filters.register_scope::<Entity>(world, &mut registry, whole))
            })
        })
    }
}

/// A client sees nothing at first.
fn hide_all(
    added: On<Add<ClientVisibility>>,
    hidden: Res<Hidden>,
    entities: Query<Entity, With<Replicated>>,
    mut clients: Query<&mut ClientVisibility>,
) {
    if let Ok(mut visibility) = clients.get_mut(added.entity) {
        entities.iter().for_each(|entity| visibility.set(entity, hidden.0, false));
    }
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

impl Replicon {
    /// A client's entity.
    fn entity(&self, client: usize, row: usize) -> Option<Entity> {
        let map = self.clients[client].app.world().resource::<ServerEntityMap>();
        map.to_client().get(&self.entities[row]).copied()
    }
}

impl Rival for Replicon {
    fn new(scene: &Scene, setup: Setup) -> Self {
        let hz = scene.plan.hz;
        let mut server = app(hz);
        if setup.sight.is_some() {
            server.init_resource::<Hidden>();
            server.add_observer(hide_all);
        }
        server.world_mut().resource_mut::<NextState<ServerState>>().set(ServerState::Running);
        server.update();
        let channels = server.world().resource::<RepliconChannels>();
        let of = |all: &[Channel]| all.iter().map(|it| !matches!(it, Channel::Unreliable)).collect();
        let reliable = [of(channels.server_channels()), of(channels.client_channels())];
        let entities = entity::spawn(server.world_mut(), scene, setup.kind == Kind::Quantised, Replicated);
        Replicon { server, setup, hz, entities, clients: Vec::new(), reliable }
    }

    fn join(&mut self) {
        let mut app = app(self.hz);
        app.world_mut().resource_mut::<NextState<ClientState>>().set(ClientState::Connected);
        app.update();
        let handle = self.server.world_mut().spawn(ConnectedClient { max_size: MAX_MESSAGE }).id();
        self.clients.push(Client { app, handle });
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
        let world = self.server.world_mut();
        let mut messages = world.resource_mut::<ServerMessages>();
        for (client, all) in self.clients.iter().zip(arrived) {
            all.into_iter().for_each(|it| messages.insert_received(client.handle, it.channel, it.bytes));
        }
        entity::apply(world, &self.entities, scene, self.setup.kind == Kind::Quantised);
        for Change { client, row, visible } in changes {
            let hidden = *world.resource::<Hidden>();
            if let Some(mut visibility) = world.get_mut::<ClientVisibility>(self.clients[*client].handle) {
                visibility.set(self.entities[*row], hidden.0, *visible);
            }
        }
        self.server.update();
    }

    fn take_sent(&mut self) -> Vec<(usize, Packet)> {
        let mut messages = self.server.world_mut().resource_mut::<ServerMessages>();
        let sent = messages.drain_sent().filter_map(|(handle, channel, bytes)| {
            let client = self.clients.iter().position(|client| client.handle == handle)?;
            Some((client, Packet { channel, reliable: self.reliable[0][channel], bytes }))
        });
        sent.collect()
    }

    fn receive(&mut self, client: usize, arrived: Vec<Packet>) {
        let app = &mut self.clients[client].app;
        let mut messages = app.world_mut().resource_mut::<ClientMessages>();
        arrived.into_iter().for_each(|it| messages.insert_received(it.channel, it.bytes));
        app.update();
    }

    fn take_answers(&mut self, client: usize) -> Vec<Packet> {
        let mut messages = self.clients[client].app.world_mut().resource_mut::<ClientMessages>();
        let packet = |(channel, bytes)| Packet { channel, reliable: self.reliable[1][channel], bytes };
        messages.drain_sent().map(packet).collect()
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
