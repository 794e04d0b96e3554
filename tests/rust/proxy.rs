//! The proxy over real loopback sockets. Nothing sleeps: the proxy's own turns wait.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use tickwire::driver::proxy::{Both, Proxy, ProxyConfig, ProxyError, ProxyThread};
use tickwire::netsim::Conditions;

/// Far more than any of this takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(loopback()).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

fn receive(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut buffer = [0; 65_536];
    socket.recv_from(&mut buffer).ok().map(|(len, from)| (buffer[..len].to_vec(), from))
}

/// Lets the proxy work until `done` gives something.
fn turn_until<T>(proxy: &mut Proxy, mut done: impl FnMut(&Proxy) -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(result) = done(proxy) {
            return result;
        }
        assert!(start.elapsed() < PATIENCE, "nothing in {PATIENCE:?}: {:?}", proxy.counters());
        proxy.turn(Duration::from_millis(10));
    }
}

fn bind(config: ProxyConfig) -> Proxy {
    Proxy::bind(loopback(), config).unwrap()
}

fn config(server: &UdpSocket) -> ProxyConfig {
    ProxyConfig::new(server.local_addr().unwrap())
}

fn both(conditions: Conditions) -> Both<Conditions> {
    Both { up: conditions, down: conditions }
}

#[test]
fn each_of_many_clients_is_told_apart_and_gets_its_own_answers() {
    let server = socket();
    let mut proxy = bind(config(&server));
    let clients: Vec<_> = (0..200u8).map(|_| socket()).collect();
    let mut sources = Vec::new();
    for (n, client) in clients.iter().enumerate() {
        client.send_to(&[n as u8; 700], proxy.address()).unwrap();
        let (bytes, from) = turn_until(&mut proxy, |_| receive(&server));
        assert_eq!(bytes, [n as u8; 700]);
        sources.push(from);
    }
    // Answered in the other order, all at once.
    for (n, from) in sources.iter().enumerate().rev() {
        server.send_to(&[n as u8; 701], *from).unwrap();
    }
    for (n, client) in clients.iter().enumerate() {
        let (bytes, from) = turn_until(&mut proxy, |_| receive(client));
        assert_eq!((bytes.as_slice(), from), ([n as u8; 701].as_slice(), proxy.address()));
    }
    let counters = proxy.counters();
    assert_eq!((counters.paths.up.received, counters.paths.up.forwarded), (200, 200));
    assert_eq!(counters.paths.down.forwarded_bytes, 200 * 701);
    assert_eq!((counters.clients.present, counters.clients.admitted), (200, 200));
    assert_eq!(counters.under_way.bytes, 0);
}

#[test]
fn datagrams_of_any_length_pass_whole() {
    let server = socket();
    let mut proxy = bind(config(&server));
    let client = socket();
    for len in [0, 1, 1500, 60_000] {
        client.send_to(&vec![7; len], proxy.address()).unwrap();
        let (bytes, _) = turn_until(&mut proxy, |_| receive(&server));
        assert_eq!(bytes, vec![7; len]);
    }
}

#[test]
fn nothing_arrives_before_its_time_and_the_most_soon_after() {
    let server = socket();
    let late = Conditions::perfect().latency(Duration::from_millis(30), Duration::ZERO);
    let up = Both { up: late, down: Conditions::perfect() };
    let mut proxy = bind(ProxyConfig { conditions: up, ..config(&server) });
    let client = socket();
    let delays: Vec<_> = (0..10)
        .map(|_| {
            let sent = Instant::now();
            client.send_to(b"when", proxy.address()).unwrap();
            turn_until(&mut proxy, |_| receive(&server).map(|_| sent.elapsed()))
        })
        .collect();
    assert!(delays.iter().all(|delay| *delay >= Duration::from_millis(30)), "{delays:?}");
    // The rest may have met a busy machine.
    let soonest = *delays.iter().min().unwrap();
    assert!(soonest < Duration::from_millis(33), "{delays:?}");
}

#[test]
fn a_closed_port_and_a_server_that_comes_back_end_nothing() {
    let server = socket();
    let target = server.local_addr().unwrap();
    let mut proxy = bind(ProxyConfig::new(target));
    let client = socket();
    drop(server);
    let unreachable = |proxy: &Proxy| proxy.counters().paths.up.unreachable;
    // Systems may say so or not; loopback ones do.
    for n in 1..=5u64 {
        client.send_to(b"anyone?", proxy.address()).unwrap();
        turn_until(&mut proxy, |proxy| (proxy.counters().paths.up.received == n).then_some(()));
        proxy.turn(Duration::from_millis(10));
    }
    assert!(unreachable(&proxy) > 0 || !cfg!(target_os = "linux"), "{:?}", proxy.counters());
    let server = UdpSocket::bind(target).unwrap();
    server.set_nonblocking(true).unwrap();
    client.send_to(b"again", proxy.address()).unwrap();
    assert_eq!(turn_until(&mut proxy, |_| receive(&server)).0, b"again");
}

#[test]
fn clients_are_bounded_and_idle_ones_make_room() {
    let server = socket();
    let bounded = ProxyConfig { max_clients: 3, idle_timeout: Duration::from_millis(600), ..config(&server) };
    let mut proxy = bind(bounded);
    let clients: Vec<_> = (0..5).map(|_| socket()).collect();
    clients.iter().for_each(|client| assert!(client.send_to(b"me", proxy.address()).is_ok()));
    let counters = turn_until(&mut proxy, |proxy| {
        let counters = proxy.counters();
        (counters.paths.up.forwarded + counters.clients.refused == 5).then_some(counters)
    });
    assert_eq!((counters.clients.present, counters.clients.refused), (3, 2));
    turn_until(&mut proxy, |proxy| (proxy.counters().clients.forgotten == 3).then_some(()));
    clients[4].send_to(b"now?", proxy.address()).unwrap();
    turn_until(&mut proxy, |proxy| (proxy.counters().clients.present == 1).then_some(()));
    assert_eq!(proxy.counters().clients.admitted, 4);
}

#[test]
fn memory_is_bounded() {
    let server = socket();
    let slow = both(Conditions::perfect().latency(Duration::from_secs(3600), Duration::ZERO));
    let mut proxy = bind(ProxyConfig { conditions: slow, max_bytes: 10_000, ..config(&server) });
    let client = socket();
    for _ in 0..30 {
        client.send_to(&[0; 1000], proxy.address()).unwrap();
    }
    let counters = turn_until(&mut proxy, |proxy| {
        let counters = proxy.counters();
        (counters.paths.up.received == 30).then_some(counters)
    });
    assert_eq!(counters.paths.up.memory_full + counters.under_way.datagrams, 30);
    assert!((5_000..=10_000).contains(&counters.under_way.bytes), "{counters:?}");
}

#[test]
fn loss_is_as_asked_and_of_the_seed() {
    const COUNT: u64 = 2000;
    let server = socket();
    let lossy = Both { up: Conditions::perfect().loss(0.2), down: Conditions::perfect() };
    let lost = |seed| {
        let mut proxy = bind(ProxyConfig { conditions: lossy, seed, ..config(&server) });
        let client = socket();
        for n in 1..=COUNT {
            client.send_to(b"?", proxy.address()).unwrap();
            // A hundred at a time, for the kernel's buffers.
            if n % 100 == 0 {
                turn_until(&mut proxy, |proxy| (proxy.counters().paths.up.received == n).then_some(()));
            }
        }
        while receive(&server).is_some() {}
        let counters = proxy.counters();
        assert_eq!(counters.paths.up.forwarded, COUNT - counters.links.up.lost);
        counters.links.up.lost
    };
    let first = lost(1);
    // 400, within 3 sigma of 18.
    assert!((346..=454).contains(&first), "{first}");
    assert_eq!(first, lost(1));
    assert_ne!(first, lost(2));
}

#[test]
fn a_proxy_that_cannot_be_is_refused_with_the_reason() {
    let taken = socket();
    let address = taken.local_addr().unwrap();
    let error = Proxy::bind(address, ProxyConfig::new(address)).unwrap_err();
    assert!(matches!(&error, ProxyError::Io(error) if error.raw_os_error().is_some()), "{error}");
    drop(taken);
    let error = Proxy::bind(address, ProxyConfig::new(address)).unwrap_err();
    assert_eq!(error.to_string(), format!("to must be another address than the proxy's own, not {address}"));
    let conditions = both(Conditions::perfect().loss(2.0));
    let error = Proxy::bind(loopback(), ProxyConfig { conditions, ..ProxyConfig::new(address) }).unwrap_err();
    assert!(matches!(error, ProxyError::Conditions(_)), "{error}");
}

#[test]
fn a_thread_carries_answers_questions_and_ends() {
    let server = UdpSocket::bind(loopback()).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let proxy = ProxyThread::start(bind(config(&server))).unwrap();
    let address = proxy.address();
    let client = socket();
    client.send_to(b"hello", address).unwrap();
    assert_eq!(server.recv_from(&mut [0; 100]).unwrap().0, 5);
    assert_eq!(proxy.counters().paths.up.forwarded, 1);

    proxy.set_conditions(both(Conditions::perfect().loss(1.0))).unwrap();
    assert!(proxy.set_conditions(both(Conditions::perfect().loss(2.0))).is_err());
    client.send_to(b"lost", address).unwrap();
    let start = Instant::now();
    while proxy.counters().links.up.lost == 0 {
        assert!(start.elapsed() < PATIENCE);
    }
    let last = proxy.stop();
    assert_eq!((last.paths.up.received, last.paths.up.forwarded), (2, 1));
    assert!(UdpSocket::bind(address).is_ok(), "the port is free again");
}
