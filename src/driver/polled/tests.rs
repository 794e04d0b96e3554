use super::*;
use crate::time::Duration;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn drain(driver: &mut Driver) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    driver.receive(|_, _, _, datagram, _| seen.push(datagram.to_vec())).unwrap();
    seen
}

#[test]
fn virtual_hosts_exchange_datagrams_in_virtual_time() {
    let conditions = Conditions::perfect().latency(Duration::from_millis(20), Duration::ZERO);
    let network = VirtualNetwork::new(conditions, 1).unwrap();
    let mut a = Driver::simulated(network.clone(), address("10.0.0.1:7")).unwrap();
    let mut b = Driver::simulated(network.clone(), address("10.0.0.1:0")).unwrap();
    let to = b.local_address();
    a.transmit(|_, out| out.push(to, b"hello"));
    network.advance(Duration::from_millis(19));
    assert!(drain(&mut b).is_empty());
    network.advance(Duration::from_millis(1));
    assert_eq!(drain(&mut b), [b"hello"]);
    assert_eq!(b.now(), Instant::from_millis(20));
}

#[test]
fn a_virtual_address_is_taken_until_its_driver_is_gone() {
    let network = VirtualNetwork::new(Conditions::perfect(), 1).unwrap();
    let first = Driver::simulated(network.clone(), address("10.0.0.1:7")).unwrap();
    let second = Driver::simulated(network.clone(), address("10.0.0.1:7"));
    assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    drop(first);
    assert!(Driver::simulated(network, address("10.0.0.1:7")).is_ok());
}

#[test]
fn a_link_in_front_delays_what_is_sent_and_lets_it_go_at_the_end() {
    let network = VirtualNetwork::new(Conditions::perfect(), 1).unwrap();
    let mut a = Driver::simulated(network.clone(), address("10.0.0.1:7")).unwrap();
    let mut b = Driver::simulated(network.clone(), address("10.0.0.1:8")).unwrap();
    a.set_link(Conditions::perfect().latency(Duration::from_millis(50), Duration::ZERO), 1).unwrap();
    let to = b.local_address();
    a.transmit(|_, out| out.push(to, b"one"));
    network.advance(Duration::from_millis(50));
    a.transmit(|_, out| out.push(to, b"two"));
    network.advance(Duration::ZERO);
    assert_eq!(drain(&mut b), [b"one"]);
    a.finish();
    network.advance(Duration::ZERO);
    assert_eq!(drain(&mut b), [b"two"]);
    assert_eq!(a.counters().link.delivered, 2);
}

#[test]
fn datagrams_of_one_call_share_a_time_where_they_are_captured() {
    for captured in [false, true] {
        let mut a = Driver::udp(address("127.0.0.1:0"), UdpConfig::default()).unwrap();
        let mut b = Driver::udp(address("127.0.0.1:0"), UdpConfig::default()).unwrap();
        let path = std::env::temp_dir().join(format!("tickwire-one-time-{}.pcapng", std::process::id()));
        if captured {
            b.set_capture(Capture::create(&path, 1 << 20).unwrap());
            std::fs::remove_file(&path).unwrap();
        }
        let (to, mut times) = (b.local_address(), Vec::new());
        // More come while the first are handled.
        a.transmit(|_, out| out.push(to, b"first"));
        while times.is_empty() {
            let handle = |now, _, _, _: &mut [u8], _: &mut Datagrams| {
                if times.len() < 20 {
                    a.transmit(|_, out| out.push(to, b"more"));
                }
                times.push(now);
            };
            b.receive(handle).unwrap();
        }
        assert!(times.is_sorted() && times[0] <= b.now());
        let share = times.first() == times.last();
        assert!(share == captured || times.len() == 1, "{times:?}");
    }
}

#[test]
fn a_socket_of_all_addresses_carries_both_families_and_names_each_as_its_own() {
    let mut both = Driver::udp(address("[::]:0"), UdpConfig::default()).unwrap();
    let port = both.local_address().port();
    for ip in ["127.0.0.1", "[::1]"] {
        let mut peer = Driver::udp(address(&format!("{ip}:0")), UdpConfig::default()).unwrap();
        let (to, from) = (address(&format!("{ip}:{port}")), peer.local_address());
        peer.transmit(|_, out| out.push(to, b"ping"));
        let (mut seen, mut answers) = (Vec::new(), Vec::new());
        for _ in 0..100_000 {
            let answer = |_, _, from, _: &mut [u8], out: &mut Datagrams| {
                seen.push(from);
                out.push(from, b"pong");
            };
            both.receive(answer).unwrap();
            peer.receive(|_, _, from, datagram, _| answers.push((from, datagram.to_vec()))).unwrap();
            if !answers.is_empty() {
                break;
            }
        }
        assert_eq!((seen, answers), (vec![from], vec![(to, b"pong".to_vec())]));
    }
}

#[test]
fn a_socket_answers_what_it_receives() {
    let mut a = Driver::udp(address("127.0.0.1:0"), UdpConfig::default()).unwrap();
    let mut b = Driver::udp(address("127.0.0.1:0"), UdpConfig::default()).unwrap();
    let to = b.local_address();
    a.transmit(|_, out| out.push(to, b"ping"));
    let mut answers = Vec::new();
    for _ in 0..100_000 {
        b.receive(|_, _, from, _, out| out.push(from, b"pong")).unwrap();
        answers.append(&mut drain(&mut a));
        if !answers.is_empty() {
            break;
        }
    }
    assert_eq!(answers, [b"pong"]);
}
