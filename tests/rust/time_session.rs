//! Inputs and the server's time through sessions: what each side may say, and what ends its connection.

use std::sync::Arc;

use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, DisconnectReason, Event, Host,
    PeerHandle, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::rng::Rng;
use tickwire::session::protocol::{ServerTime, time as time_part};
use tickwire::session::{Ghosts, Session, Tick};
use tickwire::store::Datagrams;
use tickwire::time::{Instant, UnixSeconds};
use tickwire::timeline::InputState;
use tickwire::transport::{ConnectionConfig, Protocol, Violation};
use tickwire::wire::{BitSink, BitWriter, Encoded, Kind, Schema};

use crate::endpoint::ms;
use crate::pair::protocol as game;

const PROTOCOL_ID: u64 = 7;
const UNIX: UnixSeconds = UnixSeconds(1_000_000);

fn server_time() -> ServerTime {
    let schema = Schema::new([("x", Kind::Bits { bits: 8 })]).unwrap();
    ServerTime { rate: 60, input: Some(("Move".into(), Arc::new(schema))) }
}

fn protocol() -> Arc<Protocol> {
    Arc::new((*game()).clone().extended(time_part(&server_time())).unwrap())
}

fn input(x: u64) -> Encoded {
    let mut writer = BitWriter::new();
    writer.bits(x, 8);
    writer.encoded()
}

/// A server and a client; datagrams take no time.
struct Line {
    now: Instant,
    server: Session,
    client: Session,
    peer: PeerHandle,
    ended: Vec<(DisconnectReason, Option<Violation>)>,
}

impl Line {
    fn new() -> Self {
        let (mut rng, protocol) = (Rng::seeded(1), protocol());
        let config = ServerConfig {
            netcode: netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, 8, vec![DEVELOPMENT_ADDRESS]),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let server = Host::server(config, protocol.clone(), &mut rng, UNIX).unwrap();
        let config = ClientConfig {
            netcode: netcode::ClientConfig::new(PROTOCOL_ID),
            connection: ConnectionConfig::default(),
            chunks: ChunkLimits::CLIENT,
        };
        let params = TokenParams {
            protocol_id: PROTOCOL_ID,
            private_key: &DEVELOPMENT_KEY,
            client_id: 1,
            created: UNIX,
            lifetime: Some(30),
            timeout: Some(5),
            public_addresses: &["10.0.0.1:1".parse().unwrap()],
            internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
            user_data: &[0; 256],
            dated: true,
        };
        let token = ConnectToken::generate(&params, &mut rng).unwrap();
        let (client, peer) = Host::client(config, protocol, token, Instant::ZERO).unwrap();
        let session = |host| Session::with_roles(host, Ghosts::None, Some(&server_time()));
        let (server, client) = (session(server), session(client));
        Line { now: Instant::ZERO, server, client, peer, ended: Vec::new() }
    }

    fn tick(&mut self) {
        self.now += ms(16);
        let mut out = Datagrams::new();
        self.client.transmit(self.now, &mut out);
        let mut datagrams: Vec<Vec<u8>> = out.iter().map(|(_, datagram)| datagram.to_vec()).collect();
        out.clear();
        for datagram in &mut datagrams {
            self.server.handle_datagram(self.now, UNIX, "10.0.0.2:2".parse().unwrap(), datagram, &mut out);
        }
        let mut tick = Tick::default();
        self.server.take(self.now, &mut tick);
        let now = self.now;
        self.server.take_inputs(|| now);
        self.note(tick);
        self.server.transmit(self.now, &mut out);
        let mut datagrams: Vec<Vec<u8>> = out.iter().map(|(_, datagram)| datagram.to_vec()).collect();
        out.clear();
        for datagram in &mut datagrams {
            self.client.handle_datagram(self.now, UNIX, "10.0.0.1:1".parse().unwrap(), datagram, &mut out);
        }
        let mut tick = Tick::default();
        self.client.take(self.now, &mut tick);
        self.note(tick);
    }

    fn note(&mut self, tick: Tick) {
        for event in tick.events {
            if let Event::Disconnected { reason, violation, .. } = event {
                self.ended.push((reason, violation));
            }
        }
    }

    /// A side writes this as if it were what that channel carries.
    fn forge(&mut self, by_client: bool, bytes: &[u8]) {
        let mut writer = BitWriter::new();
        bytes.iter().for_each(|byte| writer.bits(u64::from(*byte), 8));
        let (channel, now) = (protocol().channels_of("time").unwrap().start, self.now);
        let (session, peer) = if by_client {
            (&mut self.client, self.peer)
        } else {
            let peer = self.server.host().connected().next().unwrap();
            (&mut self.server, peer)
        };
        session.change().send_payload(now, peer, channel, writer.encoded(), 0).unwrap();
    }
}

#[test]
fn inputs_run_in_the_ticks_that_they_are_for() {
    let mut line = Line::new();
    let (mut sent, mut taken, mut kept) = (Vec::new(), Vec::new(), None);
    for turn in 0..400 {
        let now = line.now;
        let ticks = line.client.timing().player().unwrap().stamp(now, &input(turn % 251));
        sent.extend(ticks.map(|tick| (tick, (turn % 251) as u8)));
        line.tick();
        let timing = line.server.timing().inputs().unwrap();
        if let Some((tick, before)) = kept.take() {
            assert_ne!(timing.tick(), tick);
            assert_eq!(timing.body(&before), None, "its tick is over");
        }
        for each in timing.taken().iter().filter(|taken| taken.state == InputState::Here) {
            taken.push((timing.tick(), timing.body(each).unwrap()[0]));
            kept = Some((timing.tick(), *each));
        }
    }
    assert!(taken.len() > 300 && taken.iter().all(|one| sent.contains(one)));
    assert!(line.ended.is_empty());
}

#[test]
fn what_a_side_may_not_write_ends_its_connection() {
    let ends_with = |by_client: bool, bytes: &[u8]| {
        let mut line = Line::new();
        (0..60).for_each(|_| line.tick());
        line.forge(by_client, bytes);
        (0..60).for_each(|_| line.tick());
        line.ended
            .iter()
            .any(|(_, violation)| matches!(violation, Some(Violation::Payload { feature: "time", .. })))
    };
    for by_client in [true, false] {
        assert!(ends_with(by_client, &[0xFF; 40]), "garbage");
        assert!(ends_with(by_client, &[]), "nothing");
        assert!(ends_with(by_client, &[0; 200]), "too much");
    }
}

#[test]
fn inputs_for_other_times_and_floods_are_counted_and_bounded() {
    let mut line = Line::new();
    (0..60).for_each(|_| line.tick());
    for tick in [0u16, 30_000, 65_535] {
        for sequence in 0..100u64 {
            let mut writer = BitWriter::new();
            writer.bits(sequence, 8);
            writer.bool(false);
            writer.bits(1, 5);
            writer.bits(u64::from(tick), 16);
            writer.bits(7, 8);
            let (channel, now, peer) = (protocol().channels_of("time").unwrap().start, line.now, line.peer);
            let _ = line.client.change().send_payload(now, peer, channel, writer.encoded(), 0);
        }
        line.tick();
    }
    (0..10).for_each(|_| line.tick());
    assert!(line.ended.is_empty());
    let peer = line.server.host().connected().next().unwrap();
    let counters = line.server.timing().inputs().unwrap().player(peer).unwrap().inputs().counters();
    // Of a flood in one packet, what has a place is read: 16 payloads.
    assert!((16..=200).contains(&counters.far_ahead), "{counters:?}");
    assert!(counters.late + counters.far_behind >= 1, "{counters:?}");
    assert_eq!(counters.here, 0);
}
