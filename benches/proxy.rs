//! What the proxy sustains and what delay it adds, over loopback sockets: `cargo bench --bench proxy`.
//!
//! One thread plays all clients and the server. It sends 1,200-byte packets at a steady rate each way, each with the
//! time it was sent, and measures how late it arrives beyond the set latency. The line `direct` is the same without
//! a proxy: what the generator and the kernel take themselves.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use tickwire::driver::proxy::{Both, Proxy, ProxyConfig, ProxyThread};
use tickwire::netsim::Conditions;

const PACKET: usize = 1200;
const LENGTH: Duration = Duration::from_secs(3);
/// How long the generator sleeps after it has sent what is due.
const STEP: Duration = Duration::from_micros(100);

/// One side of one client's conversation.
struct End {
    socket: UdpSocket,
    to: SocketAddr,
}

#[derive(Default)]
struct Tally {
    sent: u64,
    /// Nanoseconds from sending to receiving.
    delays: Vec<u64>,
}

fn socket() -> UdpSocket {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    socket.set_recv_buffer_size(4 << 20).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.into()
}

fn address(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().unwrap()
}

/// Pairs of ends that talk directly.
fn direct(clients: usize) -> Vec<End> {
    let pair = |_| {
        let (client, server) = (socket(), socket());
        let (to_client, to_server) = (address(&client), address(&server));
        [End { socket: client, to: to_server }, End { socket: server, to: to_client }]
    };
    (0..clients).flat_map(pair).collect()
}

/// Ends that talk through the proxy: those of the clients, and at the server one for each client.
fn proxied(clients: usize, proxy: SocketAddr, server: &UdpSocket) -> Vec<End> {
    let mut ends = Vec::new();
    for _ in 0..clients {
        let client = socket();
        client.send_to(&[0; 1], proxy).unwrap();
        let started = Instant::now();
        let to = loop {
            match server.recv_from(&mut [0; PACKET]) {
                Ok((_, from)) => break from,
                Err(_) => assert!(started.elapsed() < Duration::from_secs(10), "the proxy forwards"),
            }
        };
        ends.push(End { socket: client, to: proxy });
        ends.push(End { socket: server.try_clone().unwrap(), to });
    }
    ends
}

/// Sends `rate` packets a second through each direction of all pairs together, and counts what comes.
fn generate(ends: &[End], rate: u64, latency: Duration) -> Tally {
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut packet = [0; PACKET];
    let mut next = 0;
    while start.elapsed() < LENGTH + latency + Duration::from_millis(200) {
        let due = if start.elapsed() < LENGTH {
            start.elapsed().as_nanos() as u64 * rate * 2 / 1_000_000_000
        } else {
            0
        };
        for _ in tally.sent..due {
            let End { socket, to } = &ends[next];
            next = (next + 1) % ends.len();
            packet[..8].copy_from_slice(&(start.elapsed().as_nanos() as u64).to_le_bytes());
            socket.send_to(&packet, to).unwrap();
            tally.sent += 1;
        }
        ends.iter().for_each(|end| drain(&end.socket, start, &mut tally));
        std::thread::sleep(STEP);
    }
    tally
}

fn drain(socket: &UdpSocket, start: Instant, tally: &mut Tally) {
    let mut buffer = [0; PACKET];
    loop {
        match socket.recv(&mut buffer) {
            Ok(PACKET) => {
                let sent = u64::from_le_bytes(buffer[..8].try_into().unwrap());
                tally.delays.push(start.elapsed().as_nanos() as u64 - sent);
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Processor time of the proxy's thread, where the system tells.
fn proxy_cpu() -> Option<Duration> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let task = tasks.flatten().map(|task| task.path()).find(|task| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "tickwire-proxy")
    })?;
    let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn report(name: &str, mut tally: Tally, latency: Duration, cpu: Option<Duration>) {
    tally.delays.sort_unstable();
    let count = tally.delays.len();
    let at = |share: f64| {
        let index = ((count as f64 * share) as usize).min(count.saturating_sub(1));
        (tally.delays.get(index).copied().unwrap_or(0) as f64 - latency.as_nanos() as f64) / 1e6
    };
    let per_second = count as f64 / LENGTH.as_secs_f64();
    let megabits = per_second * (PACKET * 8) as f64 / 1e6;
    let cpu = cpu.map_or_else(
        || "-".into(),
        |cpu| format!("{:.0} %", 100.0 * cpu.as_secs_f64() / LENGTH.as_secs_f64()),
    );
    println!(
        "{name:<42} {per_second:>8.0}/s {megabits:>6.0} Mbit/s {:>7} lost   {:>6.3} ms {:>6.3} ms {:>6.3} ms   {cpu:>6}",
        tally.sent - count as u64,
        at(0.5),
        at(0.99),
        at(1.0),
    );
}

fn measure(name: &str, clients: usize, rate: u64, conditions: Conditions) {
    let server = socket();
    let to = address(&server);
    let proxy = Proxy::bind(SocketAddr::from(([127, 0, 0, 1], 0)), ProxyConfig::new(to)).unwrap();
    let proxy = ProxyThread::start(proxy).unwrap();
    let ends = proxied(clients, proxy.address(), &server);
    proxy.set_conditions(Both { up: conditions, down: conditions }).unwrap();
    let before = proxy_cpu();
    let latency = conditions.latency;
    let tally = generate(&ends, rate, latency);
    let cpu = before.and_then(|before| Some(proxy_cpu()?.saturating_sub(before)));
    report(name, tally, latency, cpu);
}

fn late(millis: u64) -> Conditions {
    Conditions::perfect().latency(Duration::from_millis(millis), Duration::ZERO)
}

fn main() {
    println!("{:<42} {:>10} {:>28}   added: p50       p99       max    proxy's CPU", "", "both ways", "");
    for rate in [60, 2_000, 21_000] {
        let name = format!("direct, {rate}/s each way");
        report(&name, generate(&direct(1), rate, Duration::ZERO), Duration::ZERO, None);
        for millis in [0, 50] {
            measure(&format!("1 client, {rate}/s each way, {millis} ms"), 1, rate, late(millis));
        }
    }
    // Wide enough that nothing waits for long: what the queue costs.
    let queued = late(50).rate(50_000_000, 1 << 20);
    measure("1 client, 21000/s each way, 50 ms, a rate", 1, 21_000, queued);
    measure("100 clients, 21000/s each way, 50 ms", 100, 21_000, late(50));
    for rate in [40_000, 60_000] {
        measure(&format!("1 client, {rate}/s each way, 0 ms"), 1, rate, late(0));
    }
}
