//! What secure connections cost: a packet sealed, a packet opened, a token decrypted, and the same through a
//! server with a thousand clients; and what a flood costs that server.

use core::net::SocketAddr;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tickwire::netcode::packet::{self, Header, Kind};
use tickwire::netcode::private_token::PrivateToken;
use tickwire::netcode::replay::ReplayWindow;
use tickwire::netcode::{
    Client, ClientConfig, ClientHandle, ConnectToken, SEND_INTERVAL, Server, ServerConfig, ServerEvent,
    TokenParams,
};
use tickwire::rng::{Entropy, Rng};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant, UnixSeconds};

const PROTOCOL: u64 = 7;
const KEY: [u8; 32] = [9; 32];
const NOW: Instant = Instant::from_millis(1);
const UNIX: UnixSeconds = UnixSeconds(1000);

fn packets(c: &mut Criterion) {
    let mut group = c.benchmark_group("netcode");
    for bytes in [200, 1200] {
        let payload = vec![5; bytes];
        let mut out = Vec::with_capacity(2048);
        packet::seal(&mut out, PROTOCOL, &KEY, 100_000, Kind::Payload, &payload);
        let sealed = out.clone();

        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(format!("seal_{bytes}"), |b| {
            b.iter(|| {
                out.clear();
                packet::seal(&mut out, PROTOCOL, &KEY, black_box(100_000), Kind::Payload, &payload);
                black_box(&out);
            });
        });
        let mut buffer = sealed.clone();
        group.bench_function(format!("open_{bytes}"), |b| {
            b.iter(|| {
                // The copy stands for the receive call that fills the buffer.
                buffer.copy_from_slice(&sealed);
                let header = Header::read(&buffer).unwrap();
                black_box(header.open(&mut buffer, PROTOCOL, &KEY).unwrap());
            });
        });
    }
    group.finish();
}

fn tokens(c: &mut Criterion) {
    let private = PrivateToken {
        client_id: 1,
        timeout_seconds: 5,
        addresses: vec![SocketAddr::from(([10, 0, 0, 1], 40_000))],
        client_to_server: KEY,
        server_to_client: KEY,
        user_data: [0; 256],
        created: Some(UNIX),
    };
    let sealed = private.seal(&KEY, PROTOCOL, UNIX, &[1; 24]);
    c.bench_function("netcode/token_decrypt", |b| {
        b.iter_batched_ref(
            || sealed,
            |bytes| PrivateToken::open(bytes, &KEY, PROTOCOL, UNIX, &[1; 24]).unwrap().client_id,
            BatchSize::SmallInput,
        );
    });
}

/// A server with this many connected clients, one of them at hand.
fn connected(clients: u16) -> (Server, Client, ClientHandle, SocketAddr) {
    let server_address = SocketAddr::from(([10, 0, 0, 1], 40_000));
    let config = ServerConfig::new(PROTOCOL, KEY, clients.into(), vec![server_address]);
    let mut server = Server::new(config, &mut Rng::seeded(1), UNIX).unwrap();
    let mut last = None;
    for id in 0..clients {
        let from = SocketAddr::from(([10, 0, 1, 1], 1000 + id));
        let params = TokenParams {
            protocol_id: PROTOCOL,
            private_key: &KEY,
            client_id: id.into(),
            created: UNIX,
            lifetime: Some(30),
            timeout: None,
            public_addresses: &[server_address],
            internal_addresses: None,
            user_data: &[0; 256],
            dated: true,
        };
        let token = ConnectToken::generate(&params, &mut Rng::seeded(id.into())).unwrap();
        let mut client = Client::new(ClientConfig::new(PROTOCOL), token, NOW).unwrap();
        let mut up = Datagrams::new();
        client.update(NOW, &mut up);
        while !up.is_empty() {
            let mut down = Datagrams::new();
            for (_, bytes) in up.iter() {
                server.handle_datagram(NOW, UNIX, from, &mut bytes.to_vec(), &mut down);
            }
            up.clear();
            for (_, bytes) in down.iter() {
                client.handle_datagram(NOW, server_address, &mut bytes.to_vec(), &mut up);
            }
        }
        let Some(ServerEvent::Connected { client: handle, .. }) = server.poll_event() else {
            unreachable!("the client has connected")
        };
        last = Some((client, handle, from));
    }
    let (client, handle, from) = last.unwrap();
    (server, client, handle, from)
}

fn endpoints(c: &mut Criterion) {
    let (mut server, mut client, handle, from) = connected(1000);
    let payload = [5u8; 200];
    let (mut out, mut answers) = (Datagrams::new(), Datagrams::new());
    let mut group = c.benchmark_group("netcode");
    group.bench_function("client_to_server_200", |b| {
        b.iter(|| {
            out.clear();
            client.send_payload(NOW, &payload, &mut out).unwrap();
            let mut datagram = [0; 256];
            let (_, bytes) = out.iter().next().unwrap();
            datagram[..bytes.len()].copy_from_slice(bytes);
            black_box(server.handle_datagram(NOW, UNIX, from, &mut datagram[..bytes.len()], &mut answers));
        });
    });
    group.bench_function("server_send_200", |b| {
        b.iter(|| {
            out.clear();
            let number = server.next_number(handle).unwrap();
            let write = |out: &mut Vec<u8>| out.extend_from_slice(&payload);
            server.send_numbered(NOW, handle, number, write, &mut out).unwrap();
        });
    });
    let mut now = NOW;
    group.bench_function("update_1000_clients", |b| {
        b.iter(|| {
            out.clear();
            now += SEND_INTERVAL;
            server.update(now, &mut out);
            assert_eq!(out.len(), 1000);
        });
    });
    group.finish();
}

/// What a datagram of a flood costs, by how far it gets. Every one is from another source.
fn floods(c: &mut Criterion) {
    let (mut server, _, _, connected) = connected(1000);
    let mut rng = Rng::seeded(2);
    let mut forged = Vec::new();
    forged.push(0);
    forged.extend_from_slice(b"NETCODE 1.02\0");
    forged.extend_from_slice(&PROTOCOL.to_le_bytes());
    forged.extend_from_slice(&(UNIX.0 + 30).to_le_bytes());
    forged.resize(1078, 0);
    let garbage = vec![0x25; 1200];
    let mut group = c.benchmark_group("netcode/flood");
    let mut flood = |name: &str, datagram: &[u8], from: Option<SocketAddr>, step: Duration| {
        let (mut now, mut out) = (NOW, Datagrams::new());
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                || {
                    let mut bytes = datagram.to_vec();
                    let tag_at = bytes.len() - 16;
                    rng.fill(&mut bytes[tag_at..]);
                    let port = rng.next_u64() as u16;
                    let source = SocketAddr::from(((rng.next_u64() as u32).to_be_bytes(), port));
                    (bytes, from.unwrap_or(source))
                },
                |(bytes, from)| {
                    now += step;
                    server.handle_datagram(now, UNIX, *from, bytes, &mut out);
                },
                BatchSize::SmallInput,
            );
        });
        assert!(out.is_empty());
    };
    // Slow enough that no source meets its limit, then so fast that all have.
    flood("forged_request", &forged, None, Duration::from_millis(1));
    flood("forged_request_of_a_limited_source", &forged, Some(([9, 9, 9, 9], 9).into()), Duration::ZERO);
    flood("packet_of_nobody", &garbage, None, Duration::ZERO);
    flood("forged_packet_of_a_connected_client", &garbage, Some(connected), Duration::ZERO);
    group.finish();
}

/// A peer may jump ahead by nearly a window with each packet.
fn replay(c: &mut Criterion) {
    let mut window = ReplayWindow::new(32_768);
    let mut sequence = 0;
    c.bench_function("netcode/replay_jump_32767", |b| {
        b.iter(|| {
            sequence += 32_767;
            assert!(window.is_fresh(sequence));
            window.advance(sequence);
        });
    });
}

criterion_group!(benches, packets, tokens, endpoints, floods, replay);
criterion_main!(benches);
