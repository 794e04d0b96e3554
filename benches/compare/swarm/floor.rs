//! The floor: loops that receive and send the datagrams of a contender, one system call for each, and do nothing
//! else with them. What a server takes beyond this is its own.

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use socket2::SockRef;

use crate::udp::connected;
use crate::{ANSWER_BYTES, Options, RATE, REQUEST_BYTES, cpu_seconds, tell};

/// A socket that players send to.
fn listening() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    SockRef::from(&socket).set_recv_buffer_size(4 << 20).expect("the system takes a wish");
    socket.set_nonblocking(true).expect("sockets can be non-blocking");
    tell(&json!({ "port": socket.local_addr().expect("it is bound").port() }));
    socket
}

/// Ends a program that waits for something that doesn't come.
fn limit(started: Instant) {
    assert!(started.elapsed() < Duration::from_secs(30), "nothing has come for 30 s");
}

/// Ticks of a server: receives all, sends an answer to each client.
pub(crate) fn ticks(options: &Options) {
    let (clients, socket) = (options.of::<usize>("clients"), listening());
    let mut peers = Vec::new();
    let mut known: HashSet<SocketAddr> = HashSet::new();
    let mut buffer = [0; 2048];
    let started = Instant::now();
    while peers.len() < clients {
        limit(started);
        while let Ok((_, from)) = socket.recv_from(&mut buffer) {
            if known.insert(from) {
                peers.push(from);
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    let period = Duration::from_secs(1) / RATE;
    let warm = (options.seconds("warm").as_secs_f64() * f64::from(RATE)) as usize;
    let measured = (options.seconds("seconds").as_secs_f64() * f64::from(RATE)) as usize;
    let (mut took, mut received, mut sent, mut cpu) = (Vec::new(), 0_u64, 0_u64, 0.0);
    let (mut due, mut since) = (Instant::now(), Instant::now());
    for tick in 0..warm + measured {
        if tick == warm {
            tell(&json!({ "measuring": true }));
            (received, sent, cpu, since) = (0, 0, cpu_seconds(), Instant::now());
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        while socket.recv_from(&mut buffer).is_ok() {
            received += 1;
        }
        for peer in &peers {
            sent += u64::from(socket.send_to(&[7; ANSWER_BYTES], peer).is_ok());
        }
        if tick >= warm {
            took.push(due.elapsed().as_secs_f64());
        }
        due = (due + period).max(Instant::now() - period);
    }
    tell(&json!({ "result": {
        "took": took, "received": received, "sent": sent, "cpu": cpu_seconds() - cpu,
        "seconds": since.elapsed().as_secs_f64(),
    }}));
}

/// The receiving end of a flood: tells the sender how many came. After its result it goes on until it is ended, for the
/// sender to come to its own.
pub(crate) fn flood_receive(options: &Options) {
    let socket = listening();
    let mut buffer = [0; 2048];
    let (mut total, mut at_mark, mut cpu) = (0_u64, 0, 0.0);
    let started = Instant::now();
    let mut first: Option<Instant> = None;
    let mut mark: Option<Instant> = None;
    let mut told = false;
    loop {
        let (mut came, mut sender) = (0, None);
        while let Ok((_, from)) = socket.recv_from(&mut buffer) {
            (came, sender) = (came + 1, Some(from));
            if came == 256 {
                break;
            }
        }
        let Some(sender) = sender else {
            limit(started);
            wait(&socket, Duration::from_millis(50));
            continue;
        };
        total += came;
        let mut credit = [0; REQUEST_BYTES];
        credit[..8].copy_from_slice(&total.to_le_bytes());
        // A credit lost is made up for by the next.
        let _ = socket.send_to(&credit, sender);
        let first = *first.get_or_insert_with(Instant::now);
        match mark {
            None if first.elapsed() >= options.seconds("warm") => {
                (mark, at_mark, cpu) = (Some(Instant::now()), total, cpu_seconds());
            }
            Some(mark) if !told && mark.elapsed() >= options.seconds("seconds") => {
                tell(&json!({ "result": {
                    "messages": total - at_mark,
                    "seconds": mark.elapsed().as_secs_f64(),
                    "cpu": cpu_seconds() - cpu,
                }}));
                told = true;
            }
            _ => {}
        }
    }
}

/// The sending half of a flood: as much as the window allows.
pub(crate) fn flood_send(options: &Options) {
    let socket = connected(SocketAddr::from(([127, 0, 0, 1], options.of("port"))));
    let (window, batch): (u64, u64) = (options.of("window"), options.of("batch"));
    let (mut sent, mut credited, mut lost) = (0_u64, 0_u64, 0_u64);
    let mut buffer = [0; 2048];
    let started = Instant::now();
    let mut mark: Option<(Instant, f64, u64)> = None;
    let mut told = false;
    loop {
        if sent + batch <= credited + lost + window {
            for _ in 0..batch {
                sent += u64::from(socket.send(&[7; REQUEST_BYTES]).is_ok());
            }
        } else {
            wait(&socket, Duration::from_millis(20));
        }
        let before = credited;
        while let Ok(len) = socket.recv(&mut buffer) {
            if let Some(total) = buffer[..len].first_chunk() {
                credited = credited.max(u64::from_le_bytes(*total));
            }
        }
        if credited == before && sent + batch > credited + lost + window {
            lost = sent - credited;
        }
        match mark {
            None if started.elapsed() >= options.seconds("warm") => {
                mark = Some((Instant::now(), cpu_seconds(), credited));
            }
            Some((at, cpu, credited_then)) if !told && at.elapsed() >= options.seconds("seconds") => {
                tell(&json!({ "result": {
                    "credited": credited - credited_then,
                    "cpu": cpu_seconds() - cpu,
                    "lost": lost as f64 / sent as f64,
                }}));
                told = true;
            }
            _ => {}
        }
    }
}

/// Sends each datagram back until it is ended.
pub(crate) fn echo() {
    let socket = listening();
    let mut buffer = [0; 2048];
    loop {
        wait(&socket, Duration::from_secs(1));
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..len], from);
        }
    }
}

/// Sixty pings a second; the result is their times in milliseconds.
pub(crate) fn ping(options: &Options) {
    let socket = connected(SocketAddr::from(([127, 0, 0, 1], options.of("port"))));
    let mut times = Vec::new();
    let mut buffer = [0; 2048];
    let count = (options.seconds("seconds").as_secs_f64() * f64::from(RATE)) as usize;
    for _ in 0..count {
        let sent = Instant::now();
        let _ = socket.send(&[7; REQUEST_BYTES]);
        wait(&socket, Duration::from_millis(200));
        if socket.recv(&mut buffer).is_ok() {
            times.push(sent.elapsed().as_secs_f64() * 1e3);
        }
        thread::sleep((Duration::from_secs(1) / RATE).saturating_sub(sent.elapsed()));
    }
    tell(&json!({ "result": { "times": times, "sent": count } }));
}

/// Blocks until a datagram waits, or the time is over.
fn wait(socket: &UdpSocket, timeout: Duration) {
    socket.set_nonblocking(false).expect("sockets can block");
    socket.set_read_timeout(Some(timeout)).expect("a timeout above zero");
    let _ = socket.peek(&mut [0]);
    socket.set_nonblocking(true).expect("sockets can be non-blocking");
}
