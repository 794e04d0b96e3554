//! What a datagram costs to send and to receive over the loopback interface, by how the system is called: in CPU
//! time of this thread, user and system. The loopback interface carries a datagram to its receiver within the call
//! that sends it, so that sending costs more here than on a network card, and receiving less.

use std::net::SocketAddr;

use tickwire::driver::Driver;
use tickwire::driver::udp::{UdpConfig, UdpSocket};
use tickwire::store::Datagrams;

/// Datagrams sent, then received, in one round: they fit the receive buffer.
const ROUND: usize = 192;
const ROUNDS: usize = 1500;

/// The CPU time of this thread in nanoseconds.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn cpu_time() -> f64 {
    // SAFETY: the system writes two integers into `time`, for which zeros are valid too.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        time
    };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Elsewhere the time on the wall has to do.
#[cfg(not(target_os = "linux"))]
fn cpu_time() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64() * 1e9
}

/// The ways to call the system, the plain one first.
fn ways() -> [(&'static str, UdpConfig); 4] {
    let all = UdpConfig::default();
    [
        ("plain", UdpConfig { batched: false, ..all }),
        ("batched", UdpConfig { gso: false, gro: false, ..all }),
        ("+ GSO", UdpConfig { gro: false, ..all }),
        ("+ GSO, GRO", all),
    ]
}

fn bind(config: UdpConfig) -> UdpSocket {
    UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), config).expect("the loopback interface")
}

/// Nanoseconds to send and to receive one datagram, `in_a_row` from each of `from` sockets to each of `to`.
fn cost(config: UdpConfig, bytes: usize, from: usize, to: usize, in_a_row: usize) -> (f64, f64) {
    let rounds = ROUNDS * ROUND / (from * to * in_a_row).max(ROUND);
    let mut senders: Vec<_> = (0..from).map(|_| bind(config)).collect();
    let mut receivers: Vec<_> = (0..to).map(|_| bind(config)).collect();
    let mut batch = Datagrams::new();
    for receiver in &receivers {
        (0..in_a_row).for_each(|_| batch.push(receiver.local_address(), &vec![7; bytes]));
    }
    let (mut sending, mut receiving, mut received) = (0.0, 0.0, 0);
    for _ in 0..rounds {
        let start = cpu_time();
        senders.iter_mut().for_each(|sender| sender.send_batch(&batch));
        let sent = cpu_time();
        for receiver in &mut receivers {
            receiver
                .receive_each(
                    from * in_a_row,
                    || (),
                    |(), _, datagram| received += usize::from(datagram.len() == bytes),
                )
                .expect("receiving works");
        }
        sending += sent - start;
        receiving += cpu_time() - sent;
    }
    let all = rounds * in_a_row * from * to;
    assert_eq!(received, all, "nothing was lost");
    (sending / all as f64, receiving / all as f64)
}

/// Megabytes in a CPU second of the sender, and of the receiver: drivers that move `ROUND` full datagrams a tick.
fn throughput(config: UdpConfig) -> (f64, f64) {
    let driver =
        || Driver::udp(SocketAddr::from(([127, 0, 0, 1], 0)), config).expect("the loopback interface");
    let (mut sender, mut receiver) = (driver(), driver());
    let (to, datagram) = (receiver.local_address(), [7; 1200]);
    let (mut sending, mut receiving, mut bytes) = (0.0, 0.0, 0);
    for _ in 0..ROUNDS {
        let start = cpu_time();
        sender.transmit(|_, out| (0..ROUND).for_each(|_| out.push(to, &datagram)));
        let sent = cpu_time();
        receiver.receive(|_, _, _, datagram, _| bytes += datagram.len()).expect("receiving works");
        sending += sent - start;
        receiving += cpu_time() - sent;
    }
    assert_eq!(bytes, ROUNDS * ROUND * datagram.len(), "nothing was lost");
    // Bytes in a nanosecond are gigabytes in a second.
    (bytes as f64 / sending * 1000.0, bytes as f64 / receiving * 1000.0)
}

fn main() {
    println!("ns a datagram (times as fast as plain)");
    for (what, from, to, in_a_row) in [
        ("one peer", 1, 1, ROUND),
        ("to 64 peers", 1, 64, 1),
        ("from 64 peers", 64, 1, 1),
        ("from 900", 900, 1, 1),
    ] {
        for bytes in [64, 1200] {
            let mut plain = None;
            for (way, config) in ways() {
                let (send, receive) = cost(config, bytes, from, to, in_a_row);
                let (plain_send, plain_receive) = *plain.get_or_insert((send, receive));
                println!(
                    "{what:>13}, {bytes:>4} bytes, {way:<10}: send {send:>5.0} ({:.1}), receive {receive:>4.0} ({:.1})",
                    plain_send / send,
                    plain_receive / receive,
                );
            }
        }
    }
    println!("MB in a CPU second, 1,200-byte datagrams from one driver to another");
    for (way, config) in ways() {
        let (send, receive) = throughput(config);
        println!("{way:<10}: sender {send:>6.0}, receiver {receive:>6.0}");
    }
}
