//! Ghosts through connections: the budget, the packets' fates and the acks are the transport's.

use std::sync::Arc;

use tickwire::endpoint::{Feature, PeerHandle};
use tickwire::replication::Publisher;
use tickwire::rng::Rng;
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{
    Body, BudgetConfig, ChannelConfig, ChannelKind, Connection, ConnectionConfig, Fill, MessageType,
    OpaqueBody, Protocol,
};
use tickwire::wire::BitWriter;

use super::client::{Client, GOOD};
use super::world::World;
use super::{SCENE, Scene, live};
use crate::fuzz_targets::ghosts::classes;
use crate::fuzz_targets::native::{handle, labelled};

struct Filled<'a>(&'a mut Publisher, PeerHandle);

impl Fill for Filled<'_> {
    fn fill(&mut self, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32> {
        self.0.fill(self.1, channel, bits, writer)
    }
}

/// A server's connection and its client's, with packets on their way to each.
struct Line {
    ends: [Connection; 2],
    under_way: [Vec<(Instant, Vec<u8>)>; 2],
    rng: Rng,
}

impl Line {
    fn transmit(&mut self, now: Instant, client: &Client, publisher: &mut Publisher, loss: f64) {
        let mut out = Packets::new();
        for end in 0..2 {
            if end == 0 {
                self.ends[0].transmit_filled(now, &mut out, &mut Filled(publisher, client.handle));
            } else {
                self.ends[1].transmit(now, &mut out);
            }
            for packet in out.iter() {
                if !self.rng.chance(loss) {
                    let delay = Duration::from_millis(20 + self.rng.below(30));
                    self.under_way[1 - end].push((now + delay, labelled(packet)));
                }
            }
            out.clear();
        }
    }

    fn receive(&mut self, now: Instant) {
        for end in 0..2 {
            let (arrived, later): (Vec<_>, Vec<_>) =
                core::mem::take(&mut self.under_way[end]).into_iter().partition(|(at, _)| *at <= now);
            self.under_way[end] = later;
            for (_, packet) in arrived {
                handle(&mut self.ends[end], now, &packet).unwrap();
            }
        }
    }
}

#[test]
fn real_connections_end_in_the_servers_world() {
    for (seed, bytes_a_second) in [(1, 40_000.0), (2, 4_000.0)] {
        let classes = classes();
        let opaque = MessageType { name: "Ghosts".into(), body: Body::Opaque { max_bytes: 1200 } };
        let channel = ChannelConfig::new(ChannelKind::Payload { receive_queue: 4096 });
        let protocol = Arc::new(Protocol::new(vec![opaque], vec![channel]).unwrap());
        let connection = || Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
        let (mut rng, mut world) = (Rng::seeded(seed), World::new(&classes));
        let mut clients: Vec<Client> = (0..2).map(|slot| Client::new(slot, &classes, GOOD, 0)).collect();
        let mut lines: Vec<Line> = (0..2)
            .map(|slot| Line {
                ends: [connection(), connection()],
                under_way: Default::default(),
                rng: Rng::seeded(seed * 10 + slot),
            })
            .collect();
        for (client, line) in clients.iter().zip(&mut lines) {
            world.publisher.add_peer(client.handle);
            let budget = BudgetConfig { adaptive: false, ..BudgetConfig::new(bytes_a_second, 1_200.0) };
            line.ends[0].set_budget(budget).unwrap();
        }
        let mut quiet_since = 0;
        for tick in 0..1500u64 {
            let (now, over) = (Instant::from_millis(tick * 16), tick >= 200);
            for (client, line) in clients.iter_mut().zip(&mut lines) {
                line.receive(now);
                while let Some(told) = line.ends[0].poll_notification() {
                    world.publisher.handle_notification(client.handle, told.tag, told.delivered);
                }
                while let Some(received) = line.ends[1].poll_received(0) {
                    let body = OpaqueBody::read(&received.body);
                    let reader = body.reader();
                    client.mirror.handle_payload(reader).unwrap_or_else(|violation| panic!("{violation}"));
                }
            }
            if !over {
                live(&mut world, &clients, &Scene { objects: 30, ..SCENE }, &mut rng);
            }
            world.begin_tick();
            let wants: Vec<(PeerHandle, usize)> = world.publisher.wants().collect();
            quiet_since = if wants.is_empty() { quiet_since } else { tick };
            for (peer, least) in wants {
                let end = &mut lines[peer.slot as usize].ends[0];
                world.publisher.choose(peer, end.budget_bits(now));
                end.want(0, least).unwrap();
            }
            for (client, line) in clients.iter_mut().zip(&mut lines) {
                line.transmit(now, client, &mut world.publisher, if over { 0.0 } else { 0.15 });
                client.take(&world);
            }
            if over && tick > quiet_since + 60 {
                break;
            }
        }
        assert!(quiet_since < 1400, "it got quiet at {quiet_since}");
        clients.iter().for_each(|client| client.check_all(&world));
    }
}
