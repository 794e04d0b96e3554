use super::*;
use crate::limits::MAX_DATAGRAM;
use crate::store::Datagrams;
use crate::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const LINUX: bool = cfg!(target_os = "linux");

/// What a test lets fail: the error of a run with these bytes.
pub(super) type Fault = fn(&Run, &[u8]) -> Option<io::Error>;

/// What the system gets of `runs`, as it would stop where one fails, and tell of it when that is the first.
pub(super) fn until_fault<'a>(fault: Option<Fault>, arena: &[u8], runs: &'a [Run]) -> io::Result<&'a [Run]> {
    let Some(fault) = fault else { return Ok(runs) };
    for (at, run) in runs.iter().enumerate() {
        match fault(run, &arena[run.bytes.clone()]) {
            Some(error) if at == 0 => return Err(error),
            Some(_) => return Ok(&runs[..at]),
            None => {}
        }
    }
    Ok(runs)
}

/// The plain way first. Where the system has but that one, all of them are.
fn ways() -> [UdpConfig; 4] {
    let all = UdpConfig::default();
    [
        UdpConfig { batched: false, ..all },
        UdpConfig { gso: false, gro: false, ..all },
        UdpConfig { gro: false, ..all },
        all,
    ]
}

fn bind(config: UdpConfig) -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

fn socket() -> UdpSocket {
    bind(UdpConfig::default())
}

fn batch_of<'a>(datagrams: impl IntoIterator<Item = (SocketAddr, &'a [u8])>) -> Datagrams {
    let mut batch = Datagrams::new();
    datagrams.into_iter().for_each(|(to, datagram)| batch.push(to, datagram));
    batch
}

/// Appends the waiting datagrams up to the bound of one call; true if more may wait.
fn receive_batch(socket: &mut UdpSocket, out: &mut Datagrams) -> bool {
    let bound = socket.receive_bound;
    socket.receive_each(bound, || (), |(), from, datagram| out.push(from, datagram)).unwrap()
}

/// The expected number of datagrams, waiting at most a second, and any others that come with them.
fn receive_all(socket: &mut UdpSocket, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut batch = Datagrams::new();
    while batch.len() < count && socket.wait(SECOND).unwrap() {
        receive_batch(socket, &mut batch);
    }
    batch.iter().map(|(from, datagram)| (from, datagram.to_vec())).collect()
}

fn receive_one(socket: &mut UdpSocket) -> Option<(SocketAddr, Vec<u8>)> {
    socket.receive().unwrap().map(|(from, datagram)| (from, datagram.to_vec()))
}

#[test]
fn what_is_sent_is_received_with_its_source() {
    for config in ways() {
        let (mut a, mut b) = (bind(config), bind(config));
        assert_eq!(receive_one(&mut b), None);
        assert!(a.send(b.local_address(), b"hello").unwrap());
        assert!(b.wait(SECOND).unwrap());
        assert_eq!(receive_one(&mut b), Some((a.local_address(), b"hello".to_vec())));
        assert_eq!(receive_one(&mut b), None, "waiting leaves the socket non-blocking");
    }
}

#[test]
fn every_length_arrives_whole_and_in_order() {
    for (config, ip) in ways().into_iter().flat_map(|config| [(config, "127.0.0.1:0"), (config, "[::1]:0")]) {
        let bind = || UdpSocket::bind(ip.parse().unwrap(), config);
        // Where the machine has no IPv6 there is nothing to see.
        let (Ok(mut a), Ok(mut b)) = (bind(), bind()) else { continue };
        let lengths: Vec<usize> = (0..=MAX_DATAGRAM).collect();
        for lengths in lengths.chunks(50) {
            // Each twice: datagrams of one length are what may travel together.
            let sent: Vec<_> =
                lengths.iter().flat_map(|len| [0, 1].map(|n| vec![(len + n) as u8; *len])).collect();
            let to = b.local_address();
            a.send_batch(&batch_of(sent.iter().map(|datagram| (to, &datagram[..]))));
            let received = receive_all(&mut b, sent.len());
            assert!(received.iter().all(|(from, _)| *from == a.local_address()));
            assert!(received.into_iter().map(|(_, datagram)| datagram).eq(sent), "{config:?}, {ip}");
        }
        let (sent, received) = (a.counters(), b.counters());
        assert_eq!((sent.sent, received.received), (2602, 2602));
        assert_eq!(sent.sent_gso > 2000, LINUX && config.gso && config.batched);
        assert_eq!(received.received_gro > 2000, LINUX && config.gro && config.batched);
        assert_eq!(sent.send_calls < 2602, LINUX && config.batched);
        assert_eq!((sent.gso_refused, sent.send_errors, received.too_long), (0, 0, 0));
    }
}

#[test]
fn a_long_row_to_one_peer_arrives_in_order() {
    for config in ways() {
        let (mut a, mut b) = (bind(config), bind(config));
        let mut sent: Vec<_> = (0..150).map(|n| vec![n as u8; 1200]).collect();
        sent.push(vec![255; 7]);
        let to = b.local_address();
        a.send_batch(&batch_of(sent.iter().map(|datagram| (to, &datagram[..]))));
        assert!(receive_all(&mut b, sent.len()).into_iter().map(|(_, datagram)| datagram).eq(sent));
    }
}

#[test]
fn each_of_many_peers_gets_its_own() {
    for config in ways() {
        let mut a = bind(config);
        let mut peers: Vec<_> = (0..70).map(|_| bind(config)).collect();
        let addresses: Vec<_> = peers.iter().map(UdpSocket::local_address).collect();
        let rounds = (0..3u8)
            .flat_map(|round| addresses.iter().enumerate().map(move |(n, to)| (to, [round, n as u8])));
        let sent: Vec<_> = rounds.collect();
        a.send_batch(&batch_of(sent.iter().map(|(to, datagram)| (**to, &datagram[..]))));
        for (n, peer) in peers.iter_mut().enumerate() {
            let received = receive_all(peer, 3).into_iter().map(|(_, datagram)| datagram);
            assert!(received.eq((0..3).map(|round| [round, n as u8])));
        }
        // And back, all to one.
        for peer in &mut peers {
            peer.send_batch(&batch_of([(a.local_address(), &b"one"[..]), (a.local_address(), b"two")]));
        }
        let received = receive_all(&mut a, 140);
        let from =
            |address| received.iter().filter(move |(from, _)| *from == address).map(|(_, bytes)| &bytes[..]);
        addresses.into_iter().for_each(|address| assert!(from(address).eq([b"one", b"two"])));
    }
}

#[test]
fn a_datagram_above_the_limit_is_counted_and_not_cut() {
    for config in ways() {
        let (mut a, mut b) = (bind(config), bind(config));
        let lengths = [MAX_DATAGRAM + 1, MAX_DATAGRAM + 1, MAX_DATAGRAM, 5000, 65_507, MAX_DATAGRAM];
        let (to, zeros) = (b.local_address(), [0; 65_507]);
        a.send_batch(&batch_of(lengths.map(|len| (to, &zeros[..len]))));
        assert_eq!(
            receive_all(&mut b, 2).iter().map(|(_, datagram)| datagram.len()).sum::<usize>(),
            2 * MAX_DATAGRAM
        );
        let counters = b.counters();
        assert_eq!((counters.received, counters.too_long), (2, 4));
    }
}

#[test]
fn one_call_reads_a_bounded_number() {
    for config in ways() {
        let mut a = socket();
        let mut b = bind(UdpConfig { receive_bound: 3, ..config });
        let sent: Vec<_> = (0..5).map(|n| (b.local_address(), [n])).collect();
        a.send_batch(&batch_of(sent.iter().map(|(to, datagram)| (*to, &datagram[..]))));
        assert_eq!(a.counters().sent, 5);
        let mut batch = Datagrams::new();
        assert!(b.wait(SECOND).unwrap());
        assert!(receive_batch(&mut b, &mut batch));
        assert_eq!(batch.len(), 3);
        assert!(b.wait(Duration::ZERO).unwrap(), "what was read with others waits as well");
        assert_eq!(receive_one(&mut b), Some((a.local_address(), vec![3])));
        batch.clear();
        assert!(!receive_batch(&mut b, &mut batch));
        assert!(batch.iter().eq([(a.local_address(), &[4][..])]));
        assert!(!b.wait(Duration::ZERO).unwrap());
    }
}

#[test]
fn datagrams_dropped_count_against_the_bound_of_a_call() {
    for config in ways() {
        let (mut a, mut b) = (socket(), bind(UdpConfig { max_datagram: 8, ..config }));
        let long = [(b.local_address(), &[0; 9][..]); 10];
        a.send_batch(&batch_of(long.into_iter().chain([(b.local_address(), &[0; 8][..])])));
        assert!(b.wait(SECOND).unwrap());
        let refuse = |(), _, _: &mut [u8]| panic!("longer than what is taken");
        assert!(b.receive_each(10, || (), refuse).unwrap(), "more may wait");
        assert_eq!(b.counters().too_long, 10);
        assert_eq!(receive_all(&mut b, 1), [(a.local_address(), vec![0; 8])]);
    }
}

/// A datagram that comes while the one before it is handled, or between a look at the clock and the system call, isn't taken
/// for older than it is: round trips would seem shorter than the path allows.
#[test]
fn no_datagram_has_a_time_before_it_was_sent() {
    for config in ways() {
        let (mut a, mut b) = (bind(config), bind(UdpConfig { receive_bound: 50, ..config }));
        let to = b.local_address();
        let sent = Cell::new(0u8);
        let send = |a: &mut UdpSocket| {
            sent.set(sent.get() + 1);
            assert!(a.send(to, &[sent.get()]).unwrap());
        };
        send(&mut a);
        assert!(b.wait(SECOND).unwrap());
        let (mut late, mut last) = (bind(config), 0);
        // The clock is the number of datagrams sent; one more is as soon as somebody has looked at it, or handles one.
        let mut handled = 0;
        for _ in 0..5 {
            let clock = || {
                let now = sent.get();
                send(&mut late);
                now
            };
            let handle = |now, _: SocketAddr, datagram: &mut [u8]| {
                send(&mut a);
                assert!(datagram[0] <= now && last <= now, "{} at {now}, after {last}", datagram[0]);
                (last, handled) = (now, handled + 1);
            };
            b.receive_each(20, clock, handle).unwrap();
        }
        assert!(handled > 5);
    }
}

#[test]
fn one_datagram_is_received_past_no_more_dropped_ones_than_the_bound() {
    for config in ways() {
        let (mut a, mut b) = (socket(), bind(UdpConfig { max_datagram: 8, receive_bound: 3, ..config }));
        let lengths = [9, 9, 8, 9, 9, 9, 9, 8];
        a.send_batch(&batch_of(lengths.map(|len| (b.local_address(), &[0; 9][..len]))));
        assert!(b.wait(SECOND).unwrap());
        let received = [(); 3].map(|()| receive_one(&mut b).map(|(_, datagram)| datagram.len()));
        assert_eq!(received, [Some(8), None, Some(8)]);
        assert_eq!(b.counters().too_long, 6);
    }
    let (mut a, mut b) = (socket(), bind(UdpConfig { receive_bound: 1, ..UdpConfig::default() }));
    a.send(b.local_address(), b"one").unwrap();
    assert!(b.wait(SECOND).unwrap());
    assert_eq!(receive_one(&mut b), Some((a.local_address(), b"one".to_vec())));
}

#[test]
fn a_closed_port_stalls_nothing() {
    for config in ways() {
        let (mut a, mut b) = (bind(config), bind(config));
        let closed = socket().local_address();
        for n in 0..10 {
            a.send_batch(&batch_of([
                (closed, &b"anyone?"[..]),
                (closed, b"anyone?"),
                (b.local_address(), &[n]),
            ]));
            // Where the system tells the next call of the closed port, that one is lost.
            while a.counters().unreachable > 0 && !a.send(b.local_address(), &[n]).unwrap() {}
            assert_eq!(receive_one(&mut a), None);
            assert_eq!(receive_all(&mut b, 1)[0], (a.local_address(), vec![n]));
        }
    }
}

#[test]
fn a_destination_that_cannot_be_costs_the_others_nothing() {
    for config in ways() {
        let (mut a, mut b) = (bind(config), bind(config));
        let to = b.local_address();
        // Windows says nothing of the port 0 until it is too late, so there it is an address of the other family.
        let nowhere: SocketAddr = if cfg!(windows) { "[::1]:9" } else { "127.0.0.1:0" }.parse().unwrap();
        let bad = [(nowhere, &b"lost"[..]); 3];
        for _ in 0..2 {
            let good = |n: u8| [(to, [n; 4]), (to, [n + 1; 4])];
            let (first, last) = (good(0), good(2));
            let all = first.iter().map(|(to, datagram)| (*to, &datagram[..])).chain(bad);
            a.send_batch(&batch_of(all.chain(last.iter().map(|(to, datagram)| (*to, &datagram[..])))));
            let received = receive_all(&mut b, 4).into_iter().map(|(_, datagram)| datagram);
            assert!(received.eq((0..4).map(|n| [n; 4])));
        }
        let counters = a.counters();
        assert_eq!((counters.sent, counters.send_errors), (8, 6));
        // It was the destination's fault: others still leave as one.
        assert_eq!(counters.sent_gso, if LINUX && config.gso && config.batched { 8 } else { 0 });
        assert!(a.send(nowhere, b"lost").is_err());
    }
}

#[test]
fn what_finds_full_buffers_or_no_way_is_counted_and_the_rest_goes() {
    let fault: Fault = |_, bytes| match bytes[0] {
        b'f' => Some(ErrorKind::WouldBlock.into()),
        b'r' => Some(ErrorKind::ConnectionRefused.into()),
        b'i' => Some(ErrorKind::Interrupted.into()),
        _ => None,
    };
    for config in ways() {
        let (mut a, mut b) = (bind(config), bind(config));
        a.fault = Some(fault);
        let to = b.local_address();
        // Each longer than the one before, so that only the first two leave as one.
        let sent: [&[u8]; 8] =
            [b"full", b"full", b"ok 1.", b"refuse", b"ok 2...", b"ok 3....", b"interrupt", b"full......"];
        a.send_batch(&batch_of(sent.map(|datagram| (to, datagram))));
        let received = receive_all(&mut b, 3).into_iter().map(|(_, datagram)| datagram);
        assert!(received.eq([&b"ok 1."[..], b"ok 2...", b"ok 3...."]));
        let UdpCounters { sent, send_buffer_full, unreachable, interrupted, send_errors, .. } = a.counters();
        assert_eq!([sent, send_buffer_full, unreachable, interrupted, send_errors], [3, 3, 1, 1, 0]);
        assert!(!a.send(to, b"full").unwrap());
    }
}

/// A system or a network card that takes no datagrams to cut: all of them go one by one, now and later.
#[cfg(target_os = "linux")]
#[test]
fn datagrams_that_are_refused_as_one_go_one_by_one() {
    let injected: Fault = |run, _| (run.count > 1).then(|| io::Error::from_raw_os_error(libc::EIO));
    for fault in [None, Some(injected)] {
        let (mut a, mut b) = (socket(), socket());
        a.fault = fault;
        if fault.is_none() {
            // Without checksums, Linux itself refuses.
            linux::set(&a.socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
        }
        let (to, zeros) = (b.local_address(), [0; 1200]);
        for _ in 0..2 {
            let lengths = [50, 10, 10, 10, 7, 100, 100, 100, 3, 3];
            a.send_batch(&batch_of(lengths.map(|len| (to, &zeros[..len]))));
            let received = receive_all(&mut b, 10).into_iter().map(|(_, datagram)| datagram.len());
            assert!(received.eq(lengths));
        }
        let UdpCounters { sent, sent_gso, gso_refused, send_errors, .. } = a.counters();
        assert_eq!([sent, sent_gso, gso_refused, send_errors], [20, 0, 2, 0]);
    }
}

/// One peer with a small MTU: its datagrams are fragmented one by one, and those of others still leave as one.
#[cfg(target_os = "linux")]
#[test]
fn a_path_too_narrow_for_its_datagrams_does_not_end_sending_as_one() {
    let bind = || UdpSocket::bind("[::1]:0".parse().unwrap(), UdpConfig::default());
    let (Ok(mut a), Ok(mut b)) = (bind(), bind()) else { return };
    linux::set(&a.socket, libc::IPPROTO_IPV6, libc::IPV6_MTU, 1280).unwrap();
    let (to, zeros) = (b.local_address(), [0; 1300]);
    let lengths = [1300, 1300, 1300, 10, 600, 600, 600];
    a.send_batch(&batch_of(lengths.map(|len| (to, &zeros[..len]))));
    assert!(receive_all(&mut b, 7).into_iter().map(|(_, datagram)| datagram.len()).eq(lengths));
    let UdpCounters { sent, sent_gso, gso_refused, .. } = a.counters();
    assert_eq!([sent, sent_gso, gso_refused], [7, 3, 1]);
}

/// Linux would forbid fragments, and lose the first datagrams to a path whose MTU is small, or all.
#[cfg(target_os = "linux")]
#[test]
fn datagrams_may_be_fragmented_on_their_way() {
    for (ip, level, option) in [
        ("127.0.0.1:0", libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
        ("[::1]:0", libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
    ] {
        for config in ways() {
            let Ok(a) = UdpSocket::bind(ip.parse().unwrap(), config) else { continue };
            assert_eq!(linux::get(&a.socket, level, option).unwrap(), libc::IP_PMTUDISC_OMIT);
        }
    }
}

/// As before Linux 6.14: a segment above the path MTU of 127.0.0.2 is refused with the same error as where no card can.
#[cfg(target_os = "linux")]
#[test]
fn one_narrow_path_costs_the_others_nothing_and_is_tried_again() {
    let bind = |ip| UdpSocket::bind(SocketAddr::from((ip, 0)), UdpConfig::default()).unwrap();
    let (mut a, mut narrow, mut wide) = (bind([0; 4]), bind([127, 0, 0, 2]), bind([127, 0, 0, 1]));
    let old_kernel: Fault = |run, _| {
        let is_above = run.to.ip() == std::net::Ipv4Addr::new(127, 0, 0, 2) && run.segment > 1000;
        (is_above && run.count > 1).then(|| io::Error::from_raw_os_error(libc::EINVAL))
    };
    a.fault = Some(old_kernel);
    let zeros = [0; 1200];
    let mut round = |a: &mut UdpSocket| {
        let to = [narrow.local_address(); 3].into_iter().chain([wide.local_address(); 3]);
        let before = a.counters();
        a.send_batch(&batch_of(to.map(|to| (to, &zeros[..]))));
        assert_eq!((receive_all(&mut narrow, 3).len(), receive_all(&mut wide, 3).len()), (3, 3));
        let after = a.counters();
        let joined = after.sent_gso - before.sent_gso;
        (joined, after.gso_refused - before.gso_refused, after.send_calls - before.send_calls)
    };
    // In vain, three alone, and the others' run.
    assert_eq!(round(&mut a), (3, 1, 5));
    for _ in 0..20 {
        assert_eq!(round(&mut a), (3, 0, 1), "nothing is tried in vain, and the others leave as one");
    }
    a.skipped = gso::REFUSED_FOR + SECOND;
    assert_eq!(round(&mut a), (3, 1, 5), "tried again");
    a.skipped += gso::REFUSED_FOR + SECOND;
    a.fault = None;
    assert_eq!(round(&mut a), (6, 0, 1), "the path is wide again");
}

/// Where each destination refuses, none is tried any more, until after some time one is.
#[cfg(target_os = "linux")]
#[test]
fn a_system_that_cannot_is_asked_seldom() {
    let mut a = UdpSocket::bind("0.0.0.0:0".parse().unwrap(), UdpConfig::default()).unwrap();
    a.fault = Some(|run, _| (run.count > 1).then(|| io::Error::from_raw_os_error(libc::EINVAL)));
    let peers: Vec<_> = (0..40).map(|_| socket()).collect();
    let round = |a: &mut UdpSocket| {
        let before = a.counters();
        let to = peers.iter().flat_map(|peer| [peer.local_address(); 2]);
        a.send_batch(&batch_of(to.map(|to| (to, &b"two"[..]))));
        assert_eq!(a.counters().sent - before.sent, 80);
        a.counters().gso_refused - before.gso_refused
    };
    assert!(round(&mut a) <= 8 + 1, "some, and then none");
    assert_eq!(round(&mut a), 0);
    a.skipped = gso::REFUSED_FOR + SECOND;
    assert_eq!([(); 2].map(|()| round(&mut a)), [1, 0]);
    a.skipped += gso::REFUSED_FOR + SECOND;
    a.fault = None;
    round(&mut a);
    assert_eq!(a.counters().sent_gso, 80);
}

#[cfg(target_os = "linux")]
#[test]
fn what_the_kernel_drops_is_counted() {
    for config in ways() {
        let (mut a, mut b) = (bind(config), bind(UdpConfig { receive_buffer: 8 << 10, ..config }));
        let (to, datagram) = (b.local_address(), [0; 1000]);
        assert_eq!(b.counters().kernel_drops, 0);
        let mut received = 0;
        for round in 1..=2 {
            a.send_batch(&batch_of([(to, &datagram[..]); 100]));
            received += receive_all(&mut b, 1).len() as u64;
            let dropped = b.counters().kernel_drops;
            assert!(received > 0 && dropped > 0);
            // Those that would have arrived as one count as one.
            assert_eq!(dropped + received < round * 100, config.gro && config.gso && config.batched);
            assert!(dropped + received <= round * 100);
        }
        assert_eq!((a.counters().sent, b.counters().received), (200, received));
    }
}

#[test]
fn waiting_ends_with_its_timeout() {
    assert!(!socket().wait(Duration::from_millis(5)).unwrap());
    assert!(!socket().wait(Duration::ZERO).unwrap());
}

#[test]
fn buffers_are_read_back_and_bind_errors_keep_their_errno() {
    let a = socket();
    assert!(a.send_buffer() > 0 && a.receive_buffer() > 0);
    assert_ne!(a.local_address().port(), 0);
    let error = UdpSocket::bind(a.local_address(), UdpConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.raw_os_error().is_some());
}

#[test]
fn an_ipv6_socket_leaves_ipv4_alone() {
    // Where the machine has no IPv6 there is nothing to see.
    let Ok(v6) = UdpSocket::bind("[::]:0".parse().unwrap(), UdpConfig::default()) else { return };
    let v4 = SocketAddr::from(([0, 0, 0, 0], v6.local_address().port()));
    assert!(UdpSocket::bind(v4, UdpConfig::default()).is_ok());
}
