//! The addresses at which a peer may be reached, in the order of trying.
//!
//! Promises: a bounded list; inside addresses are tried only if both peers are seen behind one NAT, so that no stranger
//! makes us send into our own network.
//!
//! A NAT that takes a port for each destination (symmetric) is recognised when two ports of the server see two
//! addresses of one peer. The difference predicts the next port if the NAT assigns ports in order. Only one side may
//! guess: when both NATs are symmetric, each guess shifts the other side's, and the relay is the way.

use core::net::SocketAddr;

use crate::rendezvous::messages::{Introduction, Sighting, is_private};

/// How many ports are guessed of a symmetric NAT.
pub(super) const GUESSED_PORTS: u16 = 12;

/// The largest step between two ports that still counts as an order.
const MAX_STEP: i32 = 8;

/// Addresses of one peer, including those learned from its datagrams.
pub(super) const MAX_CANDIDATES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) address: SocketAddr,
    /// In the peer's own network or in ours.
    pub(super) is_inside: bool,
    /// Learned from a probe, not from an introduction.
    pub(super) is_learned: bool,
    /// A reply came from there.
    pub(super) replied: bool,
}

/// The addresses that we are seen with.
#[derive(Clone, Debug, Default)]
pub(super) struct Ourselves {
    pub(super) outside: Option<SocketAddr>,
    pub(super) sighting: Sighting,
}

impl Ourselves {
    fn takes_ports(&self) -> bool {
        self.outside.is_some_and(|outside| takes_ports(outside, &self.sighting))
    }

    /// Whether no NAT translates our address.
    fn is_public(&self) -> bool {
        self.outside.is_some_and(|outside| self.sighting.inside.contains(&outside))
    }
}

/// Whether a NAT takes a port for each destination.
fn takes_ports(outside: SocketAddr, sighting: &Sighting) -> bool {
    sighting.second.is_some_and(|second| second != outside)
}

/// Whether both NATs are symmetric, so that only a relay works unless the peers share a network.
pub(super) fn needs_relay(us: &Ourselves, peer: &Introduction) -> bool {
    us.takes_ports() && takes_ports(peer.outside, &peer.sighting)
}

pub(super) fn candidates(us: &Ourselves, peer: &Introduction) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |address: SocketAddr, is_inside| {
        if !found.iter().any(|known| known.address == address) {
            found.push(Candidate { address, is_inside, is_learned: false, replied: false });
        }
    };
    let one_box = us.outside.is_some_and(|outside| outside.ip() == peer.outside.ip());
    let is_public = peer.sighting.inside.contains(&peer.outside);
    let relayed = needs_relay(us, peer);
    // First the addresses that need a port of our NAT which the other side may be guessing.
    if !relayed {
        add(peer.outside, is_public);
        if !us.takes_ports() {
            guesses(peer).for_each(|address| add(address, false));
        }
    }
    if one_box {
        peer.sighting.inside.iter().for_each(|inside| add(*inside, true));
    }
    found
}

/// The next ports of the peer's NAT, if it assigns them in order.
fn guesses(peer: &Introduction) -> impl Iterator<Item = SocketAddr> {
    let (outside, second) = (peer.outside, peer.sighting.second.unwrap_or(peer.outside));
    let step = i32::from(second.port()) - i32::from(outside.port());
    let is_order = step != 0 && step.abs() <= MAX_STEP;
    let guess = move |n| u16::try_from(i32::from(second.port()) + step.signum() * i32::from(n)).ok();
    let ports = (1..=GUESSED_PORTS).take_while(move |_| is_order).filter_map(guess);
    ports.filter(|port| *port != 0).map(move |port| SocketAddr::new(outside.ip(), port))
}

/// Whether a path needed no hole in a NAT: both sides come to the same answer.
pub(super) fn is_direct(us: &Ourselves, peer: &Introduction, address: SocketAddr) -> bool {
    let theirs = peer.sighting.inside.contains(&address) || peer.sighting.inside.contains(&peer.outside);
    theirs || us.is_public() || is_private(address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn seen(outside: &str, second: &str, inside: &[&str]) -> (Ourselves, Introduction) {
        let inside = inside.iter().map(|text| address(text)).collect();
        let sighting = Sighting { second: Some(address(second)), inside };
        let outside = address(outside);
        let peer = Introduction {
            session: 1,
            key: [0; 16],
            leads: true,
            outside,
            sighting: sighting.clone(),
            relay: None,
        };
        (Ourselves { outside: Some(outside), sighting }, peer)
    }

    fn tried(us: &Ourselves, peer: &Introduction) -> Vec<String> {
        candidates(us, peer).iter().map(|candidate| candidate.address.to_string()).collect()
    }

    #[test]
    fn inside_addresses_are_for_those_of_one_box() {
        let (us, _) = seen("1.1.1.1:9", "1.1.1.1:9", &["10.0.0.1:5"]);
        let (_, far) = seen("2.2.2.2:9", "2.2.2.2:9", &["10.0.0.2:5"]);
        let (_, near) = seen("1.1.1.1:8", "1.1.1.1:8", &["10.0.0.2:5"]);
        assert_eq!(tried(&us, &far), ["2.2.2.2:9"]);
        assert_eq!(tried(&us, &near), ["1.1.1.1:8", "10.0.0.2:5"]);
        assert!(is_direct(&us, &near, address("10.0.0.2:5")));
        assert!(!is_direct(&us, &near, address("1.1.1.1:8")) && !is_direct(&us, &far, far.outside));
    }

    #[test]
    fn one_side_guesses_the_ports_of_a_box_that_hands_them_out_in_order() {
        let (us, us_as_peer) = seen("1.1.1.1:9", "1.1.1.1:9", &[]);
        let (rising_us, rising) = seen("2.2.2.2:50", "2.2.2.2:51", &[]);
        let found = tried(&us, &rising);
        assert_eq!(found.len(), 1 + usize::from(GUESSED_PORTS));
        assert_eq!(found[..3], ["2.2.2.2:50", "2.2.2.2:52", "2.2.2.2:53"]);
        assert_eq!(tried(&rising_us, &us_as_peer), ["1.1.1.1:9"]);
        let (_, falling) = seen("2.2.2.2:3", "2.2.2.2:1", &[]);
        assert_eq!(tried(&us, &falling), ["2.2.2.2:3"], "there are no ports below");
        let (_, wild) = seen("2.2.2.2:50", "2.2.2.2:9000", &[]);
        assert_eq!(tried(&us, &wild), ["2.2.2.2:50"]);
        assert!(needs_relay(&rising_us, &wild) && !needs_relay(&us, &wild));
        assert!(tried(&rising_us, &wild).is_empty());
    }
}
