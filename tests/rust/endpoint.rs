//! Server and clients over a virtual network: what the application sees of connections, on both ends.

use std::net::SocketAddr;
use std::sync::Arc;

use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, DisconnectReason, Event, Goodbye, Host,
    Inbox, PeerHandle, SendError, ServerConfig,
};
use tickwire::netcode::{self, ClientState, ConnectToken, TokenParams};
use tickwire::netsim::{Conditions, Network};
use tickwire::rng::{Entropy, Rng};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};
use tickwire::transport::{ChannelConfig, ConnectionConfig, Message, Protocol, SendOptions};

use crate::pair::{DIALLED, RELIABLE, UNRELIABLE, blob, number, protocol, protocol_with};

const PROTOCOL_ID: u64 = 0x7469_636B;
const SERVER: &str = "10.0.0.1:40000";

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn unix(now: Instant) -> UnixSeconds {
    UnixSeconds(1_700_000_000 + now.as_nanos() / 1_000_000_000)
}

/// A server, its clients and the network between them.
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) rng: Rng,
    pub(crate) protocol: Arc<Protocol>,
    pub(crate) server: Host,
    pub(crate) server_events: Vec<Event>,
    pub(crate) clients: Vec<(SocketAddr, Host, Vec<Event>)>,
    pub(crate) out: Datagrams,
    /// Bytes sent by all, IP and UDP headers included.
    pub(crate) carried: usize,
}

impl World {
    pub(crate) fn new(max_clients: usize, conditions: Conditions) -> Self {
        Self::seeded(max_clients, conditions, 1, protocol())
    }

    pub(crate) fn seeded(
        max_clients: usize,
        conditions: Conditions,
        seed: u64,
        protocol: Arc<Protocol>,
    ) -> Self {
        let address: SocketAddr = SERVER.parse().unwrap();
        let mut rng = Rng::seeded(seed);
        let mut network = Network::new(conditions, seed).unwrap();
        network.add_host(address);
        let addresses = vec![address, DEVELOPMENT_ADDRESS];
        let config = ServerConfig {
            netcode: netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, max_clients, addresses),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits { memory_bytes: 10_000 },
        };
        let server = Host::server(config, protocol.clone(), &mut rng, unix(Instant::ZERO)).unwrap();
        World {
            network,
            rng,
            protocol,
            server,
            server_events: Vec::new(),
            clients: Vec::new(),
            out: Datagrams::new(),
            carried: 0,
        }
    }

    pub(crate) fn token(&mut self, client_id: u64) -> ConnectToken {
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &DEVELOPMENT_KEY,
            client_id,
            created: unix(self.network.now()),
            lifetime: Some(30),
            timeout: Some(10),
            public_addresses: &[SERVER.parse().unwrap()],
            internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
            user_data: &[0; 256],
            dated: true,
        };
        ConnectToken::generate(&params, &mut self.rng).unwrap()
    }

    pub(crate) fn add_client(&mut self) -> usize {
        self.add_client_with(self.protocol.clone())
    }

    pub(crate) fn add_client_with(&mut self, protocol: Arc<Protocol>) -> usize {
        let index = self.clients.len();
        let address = SocketAddr::from(([10, 0, 1, (index / 250) as u8], 1000 + index as u16));
        self.network.add_host(address);
        let config = ClientConfig {
            netcode: netcode::ClientConfig::new(PROTOCOL_ID),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let token = self.token(100 + index as u64);
        let client = Host::client(config, protocol, token, self.network.now()).unwrap().0;
        self.clients.push((address, client, Vec::new()));
        index
    }

    pub(crate) fn tick(&mut self) {
        self.network.advance(self.network.now() + Duration::from_micros(16_667));
        self.tick_server();
        for index in 0..self.clients.len() {
            self.tick_client(index);
        }
    }

    pub(crate) fn tick_server(&mut self) {
        let (now, address) = (self.network.now(), SERVER.parse().unwrap());
        while let Some((from, mut datagram)) = self.network.receive(address) {
            self.server.handle_datagram(now, unix(now), from, &mut datagram, &mut self.out);
        }
        self.server.transmit(now, &mut self.out);
        self.server_events.extend(std::iter::from_fn(|| self.server.poll_event()));
        self.carry(address);
    }

    pub(crate) fn tick_client(&mut self, index: usize) {
        let now = self.network.now();
        let (address, client, events) = &mut self.clients[index];
        let address = *address;
        while let Some((from, mut datagram)) = self.network.receive(address) {
            client.handle_datagram(now, unix(now), from, &mut datagram, &mut self.out);
        }
        client.transmit(now, &mut self.out);
        events.extend(std::iter::from_fn(|| client.poll_event()));
        self.carry(address);
    }

    pub(crate) fn carry(&mut self, from: SocketAddr) {
        self.out.iter().for_each(|(to, datagram)| self.network.send(from, to, datagram));
        self.carried += self.out.total_bytes() + self.out.len() * 28;
        self.out.clear();
    }

    pub(crate) fn ticks(&mut self, count: usize) {
        (0..count).for_each(|_| self.tick());
    }

    pub(crate) fn client(&mut self, index: usize) -> &mut Host {
        &mut self.clients[index].1
    }

    pub(crate) fn client_send(
        &mut self,
        index: usize,
        channel: usize,
        message: Message,
    ) -> Result<(), SendError> {
        let now = self.network.now();
        self.client(index).send(now, DIALLED, channel, message, SendOptions::default())
    }

    pub(crate) fn server_send(
        &mut self,
        to: PeerHandle,
        channel: usize,
        message: Message,
    ) -> Result<(), SendError> {
        self.server.send(self.network.now(), to, channel, message, SendOptions::default())
    }

    pub(crate) fn handle(&self, index: usize) -> PeerHandle {
        self.server.connected().nth(index).expect("connected")
    }

    pub(crate) fn server_reasons(&self) -> Vec<DisconnectReason> {
        let reason = |event: &Event| match event {
            Event::Disconnected { reason, .. } => Some(*reason),
            _ => None,
        };
        self.server_events.iter().filter_map(reason).collect()
    }

    pub(crate) fn client_reason(&self, index: usize) -> Option<DisconnectReason> {
        let (_, client, events) = &self.clients[index];
        let told = events.iter().find_map(|event| match event {
            Event::Disconnected { reason, .. } => Some(*reason),
            _ => None,
        });
        assert_eq!(
            told,
            client.dialled(DIALLED).unwrap().end.as_ref().map(|end| end.reason),
            "the event and the state agree"
        );
        told
    }

    pub(crate) fn server_messages(&mut self) -> usize {
        let mut inbox = Inbox::new();
        self.server.take_messages(&mut inbox);
        inbox.game.records.len()
    }
}

fn lan() -> Conditions {
    Conditions::perfect().latency(ms(5), ms(0))
}

#[test]
fn connects_in_two_round_trips_and_not_a_timer_more() {
    let mut world = World::new(4, Conditions::perfect().latency(ms(50), ms(0)));
    let client = world.add_client();
    while world.client(client).dialled(DIALLED).unwrap().netcode.state() != ClientState::Connected {
        world.tick();
    }
    // Request, challenge, response, keep-alive: four times 50 ms, each rounded up to a tick.
    assert!(world.network.now() <= Instant::from_millis(280), "{:?}", world.network.now());
}

#[test]
fn messages_flow_both_ways_with_hundreds_of_clients() {
    let conditions = Conditions::perfect().latency(ms(50), ms(10)).loss(0.05).duplicate(0.02);
    let mut world = World::new(256, conditions);
    for _ in 0..256 {
        world.add_client();
    }
    world.ticks(120);
    assert_eq!(world.server.connected().count(), 256);
    let handles: Vec<_> = world.server.connected().collect();
    for n in 0..50 {
        for (i, &handle) in handles.iter().enumerate() {
            world.server_send(handle, RELIABLE, blob(n, 40)).unwrap();
            world.client_send(i, RELIABLE, number(n)).unwrap();
            world.client_send(i, UNRELIABLE, number(n)).unwrap();
        }
        world.tick();
    }
    world.ticks(120);
    let mut inbox = Inbox::new();
    world.server.take_messages(&mut inbox);
    let reliable = inbox.game.records.iter().filter(|record| record.head.channel == RELIABLE as u8).count();
    assert_eq!(reliable, 256 * 50);
    assert!(inbox.game.records.len() > 256 * 90, "most unreliable ones arrive too");
    for index in 0..256 {
        let mut inbox = Inbox::new();
        world.client(index).take_messages(&mut inbox);
        assert_eq!(inbox.game.records.len(), 50);
    }
}

#[test]
fn when_a_connection_ends_all_open_fates_are_told_as_lost_once() {
    for ended_by_server in [true, false] {
        let mut world = World::new(4, lan());
        world.add_client();
        world.ticks(60);
        let handle = world.handle(0);
        let mut told = [Vec::new(), Vec::new()];
        for tag in 0..20 {
            let (now, options) = (world.network.now(), SendOptions { key: 0, tag, notify: true });
            for channel in [RELIABLE, UNRELIABLE] {
                world.server.send(now, handle, channel, number(tag), options).unwrap();
                world.clients[0].1.send(now, DIALLED, channel, number(tag), options).unwrap();
            }
            if tag < 19 {
                world.tick();
            }
        }
        let now = world.network.now();
        if ended_by_server {
            world.server.disconnect_with(now, handle, Goodbye::default(), &mut world.out).unwrap();
        } else {
            let address = world.clients[0].0;
            world.clients[0].1.close(now, &mut world.out);
            world.carry(address);
        }
        world.ticks(60);
        let mut by_server = Vec::new();
        world.server.take_notifications(&mut by_server);
        told[0].extend(by_server.into_iter().map(|(client, told)| {
            assert_eq!(client, handle);
            told
        }));
        let mut by_client = Vec::new();
        world.client(0).take_notifications(&mut by_client);
        told[1].extend(by_client.into_iter().map(|(_, told)| told));
        for told in told {
            let mut names: Vec<_> = told.iter().map(|told| (told.tag, told.channel)).collect();
            names.sort_unstable();
            let expected = (0..20).flat_map(|tag| [(tag, RELIABLE as u8), (tag, UNRELIABLE as u8)]);
            assert!(names.into_iter().eq(expected), "each once: {told:?}");
            assert!(told.iter().any(|told| told.delivered), "{told:?}");
            assert!(told.iter().all(|told| !told.delivered || told.tag < 19), "{told:?}");
            assert!(told.iter().filter(|told| told.tag == 19).count() == 2, "{told:?}");
        }
    }
}

#[test]
fn every_way_a_connection_ends_has_its_reason_on_both_ends() {
    let conditions = Conditions::perfect().latency(ms(50), ms(10)).loss(0.05).duplicate(0.02);
    let connected = || {
        let mut world = World::new(4, conditions);
        world.add_client();
        world.ticks(60);
        assert!(world.client(0).is_connected(DIALLED));
        world
    };

    let mut world = connected();
    let (now, handle) = (world.network.now(), world.handle(0));
    world.server.disconnect_with(now, handle, Goodbye::default(), &mut world.out).unwrap();
    assert_eq!(world.server_send(handle, RELIABLE, number(1)), Err(SendError::NotConnected));
    world.ticks(60);
    assert_eq!(world.client_reason(0), Some(DisconnectReason::Kicked));
    assert_eq!(world.server_reasons(), [DisconnectReason::Kicked]);

    // Also before the client has said anything.
    let mut world = World::new(4, conditions);
    world.add_client();
    while world.server.connected().next().is_none() {
        world.tick();
    }
    let (now, handle) = (world.network.now(), world.handle(0));
    world.server.disconnect_with(now, handle, Goodbye::default(), &mut world.out).unwrap();
    assert_eq!(world.server.connected().count(), 0, "the slot is free at once");
    world.ticks(60);
    assert_eq!(world.client_reason(0), Some(DisconnectReason::Kicked));
    assert_eq!(world.server_reasons(), [DisconnectReason::Kicked]);

    let mut world = connected();
    let now = world.network.now();
    world.clients[0].1.close(now, &mut world.out);
    let address = world.clients[0].0;
    world.carry(address);
    world.ticks(60);
    assert_eq!(world.client_reason(0), Some(DisconnectReason::Closed));
    assert_eq!(world.server_reasons(), [DisconnectReason::PeerDisconnected]);

    let mut world = connected();
    let now = world.network.now();
    world.server.close(now, &mut world.out);
    world.carry(SERVER.parse().unwrap());
    (0..60).for_each(|_| {
        world.network.advance(world.network.now() + ms(16));
        world.tick_client(0);
    });
    assert_eq!(world.client_reason(0), Some(DisconnectReason::ServerClosed));

    let mut world = connected();
    (0..11 * 60).for_each(|_| {
        world.network.advance(world.network.now() + ms(17));
        world.tick_client(0);
    });
    assert_eq!(world.client_reason(0), Some(DisconnectReason::TimedOut));

    let mut world = connected();
    (0..11 * 60).for_each(|_| {
        world.network.advance(world.network.now() + ms(17));
        world.tick_server();
    });
    assert_eq!(world.server_reasons(), [DisconnectReason::TimedOut]);
}

#[test]
fn a_full_server_says_so() {
    let mut world = World::new(2, lan());
    for _ in 0..3 {
        world.add_client();
    }
    world.ticks(30);
    let connected = (0..3).filter(|&i| world.client(i).is_connected(DIALLED)).count();
    assert_eq!(connected, 2);
    let refused = (0..3).find(|&i| world.client_reason(i).is_some()).unwrap();
    assert_eq!(world.client_reason(refused), Some(DisconnectReason::ServerFull));
}

#[test]
fn nobody_there_is_a_request_timeout() {
    let mut world = World::new(2, lan());
    world.network.remove_host(SERVER.parse().unwrap());
    let client = world.add_client();
    world.ticks(11 * 60);
    assert_eq!(world.client_reason(client), Some(DisconnectReason::RequestTimedOut));
}

#[test]
fn protocols_that_differ_end_with_mismatch_on_both_ends() {
    let mut other = ChannelConfig::reliable_ordered();
    other.max_message_bytes = 1000;
    for seed in 0..20 {
        let conditions = Conditions::perfect().latency(ms(50), ms(20)).loss(0.2).duplicate(0.1);
        let mut world = World::new(4, conditions);
        world.network = Network::new(conditions, seed).unwrap();
        world.network.add_host(SERVER.parse().unwrap());
        world.add_client_with(protocol_with(vec![other.clone(), ChannelConfig::unreliable()]));
        world.ticks(120);
        assert_eq!(world.client_reason(0), Some(DisconnectReason::ProtocolMismatch), "seed {seed}");
        assert_eq!(world.server_reasons(), [DisconnectReason::ProtocolMismatch], "seed {seed}");
        assert_eq!(world.server_messages(), 0);
    }
}

#[test]
fn a_peer_that_is_hidden_leaves_no_fates_behind() {
    let mut other = ChannelConfig::reliable_ordered();
    other.max_message_bytes = 1000;
    let mut world = World::new(4, lan());
    world.add_client_with(protocol_with(vec![other, ChannelConfig::unreliable()]));
    let (server, client) = (SERVER.parse().unwrap(), world.clients[0].0);
    let options = SendOptions { notify: true, ..SendOptions::default() };
    let mut sent = 0;
    for _ in 0..60 {
        world.network.advance(world.network.now() + ms(17));
        let now = world.network.now();
        // Nobody takes any events.
        for (address, i) in [(server, None), (client, Some(0))] {
            let host = if let Some(i) = i { &mut world.clients[i].1 } else { &mut world.server };
            while let Some((from, mut datagram)) = world.network.receive(address) {
                host.handle_datagram(now, unix(now), from, &mut datagram, &mut world.out);
            }
            let there: Vec<_> = host.connected().collect();
            for peer in there {
                sent += u32::from(host.send(now, peer, UNRELIABLE, number(1), options).is_ok());
            }
            host.transmit(now, &mut world.out);
            world.carry(address);
        }
    }
    assert!(sent > 0);
    assert_eq!(world.server.connection_counters().mismatched, 1);
    let mut fates = Vec::new();
    world.server.take_notifications(&mut fates);
    world.clients[0].1.take_notifications(&mut fates);
    assert_eq!(fates, []);
    assert!(!world.server.has_news());
}

#[test]
fn messages_of_a_client_that_left_still_come() {
    let mut world = World::new(4, lan());
    world.add_client();
    world.ticks(30);
    world.client_send(0, RELIABLE, number(7)).unwrap();
    world.ticks(3);
    let now = world.network.now();
    world.clients[0].1.close(now, &mut world.out);
    let address = world.clients[0].0;
    world.carry(address);
    world.ticks(10);
    assert_eq!(world.server_reasons(), [DisconnectReason::PeerDisconnected]);
    assert_eq!(world.server_messages(), 1);
}

#[test]
fn a_stale_handle_never_reaches_the_next_player_in_its_slot() {
    let mut world = World::new(1, lan());
    world.add_client();
    world.ticks(30);
    let first = world.handle(0);
    let now = world.network.now();
    world.server.disconnect_with(now, first, Goodbye::default(), &mut world.out).unwrap();
    world.ticks(30);
    world.add_client();
    world.ticks(60);
    let second = world.handle(0);
    assert_eq!((second.slot, second.generation), (first.slot, first.generation + 1));
    assert_eq!(world.server_send(first, RELIABLE, number(1)), Err(SendError::NotConnected));
    assert_eq!(
        world.server.disconnect_with(now, first, Goodbye::default(), &mut world.out),
        Err(SendError::NotConnected)
    );
    assert!(world.server.connection(first).is_none());
    assert!(world.server.connection(second).is_some() && world.server.is_connected(second));
}

#[test]
fn datagrams_of_strangers_change_nothing_and_are_never_answered() {
    let mut world = World::new(4, lan());
    world.add_client();
    world.ticks(30);
    let (handle, now) = (world.handle(0), world.network.now());
    let client = world.clients[0].0;
    let stranger: SocketAddr = "10.9.9.9:9".parse().unwrap();
    let mut rng = Rng::seeded(5);
    let before: u64 = world.server.listener().unwrap().counters().iter().map(|(_, count)| count).sum();
    for n in 0..20_000 {
        let mut datagram = vec![0; rng.below(1400) as usize];
        rng.fill(&mut datagram);
        if n % 4 == 0 && !datagram.is_empty() {
            datagram[0] = 0;
        }
        // From nowhere, and in the name of a connected client.
        let from = if n % 2 == 0 { stranger } else { client };
        world.server.handle_datagram(now, unix(now), from, &mut datagram.clone(), &mut world.out);
        world.clients[0].1.handle_datagram(now, unix(now), from, &mut datagram, &mut world.out);
    }
    assert!(world.out.is_empty(), "no answer");
    let after: u64 = world.server.listener().unwrap().counters().iter().map(|(_, count)| count).sum();
    assert_eq!(after - before, 20_000, "each counted under a name");
    assert!(world.server.is_connected(handle));
    world.client_send(0, RELIABLE, number(1)).unwrap();
    world.ticks(10);
    assert_eq!(world.server_messages(), 1);
}

#[test]
fn a_client_that_breaks_the_protocol_is_ended_alone() {
    let mut world = World::new(4, lan());
    world.add_client();
    // A netcode client with a good token and no idea of our framing.
    let address: SocketAddr = "10.0.2.1:5".parse().unwrap();
    world.network.add_host(address);
    let token = world.token(9);
    let config = netcode::ClientConfig::new(PROTOCOL_ID);
    let mut rogue = netcode::Client::new(config, token, world.network.now()).unwrap();
    for _ in 0..60 {
        world.tick();
        let now = world.network.now();
        while let Some((from, mut datagram)) = world.network.receive(address) {
            rogue.handle_datagram(now, from, &mut datagram, &mut world.out);
        }
        rogue.update(now, &mut world.out);
        if rogue.state() == ClientState::Connected {
            // A header, then a packet whose first bit says that there is no hello.
            rogue.send_payload(now, &[0x1E, 0, 0, 0, 0, 0, 0], &mut world.out).unwrap();
        }
        world.carry(address);
    }
    assert_eq!(world.server_reasons(), [DisconnectReason::ProtocolViolation]);
    let violated = world.server_events.iter().find_map(|event| match event {
        Event::Disconnected { violation, .. } => violation.clone(),
        _ => None,
    });
    assert_eq!(violated.unwrap().to_string(), "the first packet has no hello");
    assert_eq!(rogue.state(), ClientState::Disconnected, "it was told");
    assert!(world.client(0).is_connected(DIALLED));
    world.client_send(0, RELIABLE, number(1)).unwrap();
    world.ticks(10);
    assert_eq!(world.server_messages(), 1);
}

#[test]
fn bandwidth_counts_what_goes_over_the_wire_sealed() {
    let mut world = World::new(4, lan());
    world.add_client();
    world.ticks(60);
    let before = world.carried;
    for n in 0..1800 {
        world.client_send(0, UNRELIABLE, blob(n, 50)).unwrap();
        world.tick();
        world.server_messages();
    }
    let kbps = (world.carried - before) as f64 * 8.0 / 1000.0 / 30.0;
    let stats = world.client(0).connection(DIALLED).unwrap().stats();
    let both = stats.sent_kbps + stats.received_kbps;
    assert!((both - kbps).abs() < kbps * 0.02, "{stats:?}, not {kbps}");
}

#[test]
fn four_thousand_slots_are_all_usable() {
    let mut world = World::new(4_096, lan());
    for _ in 0..4_096 {
        world.add_client();
    }
    world.ticks(12);
    assert_eq!(world.server.connected().count(), 4_096);
    for index in 0..4_096 {
        world.client_send(index, RELIABLE, number(index as u32)).unwrap();
    }
    world.ticks(3);
    assert_eq!(world.server_messages(), 4_096);
    let (now, last) = (world.network.now(), world.handle(4_095));
    assert_eq!(last.slot, 4_095);
    world.server.disconnect_with(now, last, Goodbye::default(), &mut world.out).unwrap();
    world.carry(SERVER.parse().unwrap());
    world.ticks(3);
    assert_eq!(world.server.connected().count(), 4_095);
    let kicked = (0..4_096).filter(|&i| world.client_reason(i) == Some(DisconnectReason::Kicked)).count();
    assert_eq!(kicked, 1);
}

#[test]
fn endpoints_that_are_called_only_when_they_say_so_stay_connected() {
    let mut world = World::new(20, Conditions::perfect().latency(ms(20), ms(5)).loss(0.05));
    for _ in 0..20 {
        world.add_client();
    }
    let address: SocketAddr = SERVER.parse().unwrap();
    let (mut calls, end) = (0, Instant::from_millis(30_000));
    let mut sent = 0;
    while world.network.now() < end {
        let now = world.network.now();
        while let Some((from, mut datagram)) = world.network.receive(address) {
            world.server.handle_datagram(now, unix(now), from, &mut datagram, &mut world.out);
        }
        if world.server.next_deadline() <= now {
            world.server.transmit_between(now, &mut world.out);
            calls += 1;
        }
        world.carry(address);
        for index in 0..20 {
            let (address, client, _) = &mut world.clients[index];
            let address = *address;
            while let Some((from, mut datagram)) = world.network.receive(address) {
                client.handle_datagram(now, unix(now), from, &mut datagram, &mut world.out);
            }
            if client.next_deadline() <= now {
                client.transmit_between(now, &mut world.out);
            }
            if client.is_connected(DIALLED) && sent < index + 1 {
                client.send(now, DIALLED, RELIABLE, number(index as u32), SendOptions::default()).unwrap();
                assert_eq!(client.next_deadline(), Instant::ZERO, "something may be due now");
                sent += 1;
            }
            world.carry(address);
        }
        let clients = world.clients.iter().map(|(_, client, _)| client.next_deadline());
        let due = clients.fold(world.server.next_deadline(), Instant::min);
        let due = world.network.next_delivery().map_or(due, |at| at.min(due));
        world.network.advance(due.max(now + Duration::from_micros(1)).min(end));
    }
    assert_eq!(world.server.connected().count(), 20);
    let mut inbox = Inbox::new();
    assert!(world.server.has_news());
    // Messages come when the events were taken.
    world.server.take_messages(&mut inbox);
    assert!(inbox.game.records.is_empty());
    assert_eq!(core::iter::from_fn(|| world.server.poll_event()).count(), 20);
    world.server.take_messages(&mut inbox);
    assert_eq!(inbox.game.records.len(), 20, "sent though nobody ever flushed");
    // Two calls for each client and keep-alive, and those of the beginning.
    assert!(calls < 2 * 20 * 300 + 2_000, "{calls} calls");
}

#[test]
fn a_server_that_received_something_looks_again_between_ticks() {
    let mut world = World::new(1, lan());
    let client = world.add_client();
    world.ticks(30);
    let (now, address) = (world.network.now(), SERVER.parse().unwrap());
    world.server.transmit_between(now, &mut world.out);
    world.carry(address);
    assert!(world.server.next_deadline() > now, "all was said");
    world.client_send(client, RELIABLE, number(1)).unwrap();
    world.tick_client(client);
    let now = now + ms(6);
    world.network.advance(now);
    while let Some((from, mut datagram)) = world.network.receive(address) {
        world.server.handle_datagram(now, unix(now), from, &mut datagram, &mut world.out);
    }
    assert_eq!(world.server.next_deadline(), Instant::ZERO, "an ack is owed");
}

#[test]
fn newcomers_wait_for_an_application_that_is_told_of_nobody() {
    let mut world = World::new(1, Conditions::perfect());
    let mut unheard = 0;
    for client in 0..5 {
        world.add_client();
        for _ in 0..30 {
            world.network.advance(world.network.now() + ms(20));
            let (now, address) = (world.network.now(), SERVER.parse().unwrap());
            while let Some((from, mut datagram)) = world.network.receive(address) {
                world.server.handle_datagram(now, unix(now), from, &mut datagram, &mut world.out);
            }
            world.server.transmit_between(now, &mut world.out);
            world.carry(address);
            world.tick_client(client);
        }
        unheard += usize::from(!world.client(client).is_connected(DIALLED));
        let (now, address) = (world.network.now(), world.clients[client].0);
        let mut out = Datagrams::new();
        world.client(client).close(now, &mut out);
        out.iter().for_each(|(to, datagram)| world.network.send(address, to, datagram));
    }
    assert_eq!(unheard, 4);
    assert_eq!(std::iter::from_fn(|| world.server.poll_event()).count(), 2, "one came and went");
    let counters = world.server.listener().unwrap().counters();
    assert!(counters.dropped(netcode::DropReason::NotWelcoming) > 10);
    world.add_client();
    world.ticks(30);
    assert!(world.client(5).is_connected(DIALLED), "now there is room to tell");
}
