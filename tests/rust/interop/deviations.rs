//! Where `renetcode` leaves the standard, and the consequences.

use crate::netcode::total_dropped;
use core::net::SocketAddr;

use super::link::*;
use tickwire::netcode::{ClientState, ConnectToken, DropReason};
use tickwire::store::Datagrams;

/// A sequence takes one to eight bytes, 0 too. Theirs takes none, and the standard's readers drop that.
#[test]
fn their_packets_of_sequence_zero_are_dropped_and_cost_only_time() {
    let mut link = Link::new(TheirServer::new(4));
    link.clients.push(OurClient::new(our_token(1, |_| ()), link.now));
    link.run(500);
    let client = &link.clients[0].client;
    assert_eq!(client.state(), ClientState::Connected);
    assert_eq!(client.counters().dropped(DropReason::SequenceLength), 2, "a challenge and a keep-alive");
    assert_eq!(total_dropped(client.counters()), 2);
}

#[test]
fn their_ipv6_servers_have_their_groups_swapped() {
    let server: SocketAddr = "[2001:db8::1]:40000".parse().unwrap();
    let token = standard_bytes(&their_token(1, &PRIVATE_KEY, &[server]));
    let read = ConnectToken::from_bytes(&token).unwrap();
    let swapped: SocketAddr = "[120:b80d::100]:40000".parse().unwrap();
    assert_eq!(read.addresses, [swapped]);
}

#[test]
fn their_longer_payloads_are_dropped() {
    let mut link = Link::new(OurServer::new(4));
    let token = read_by_them(&our_token(1, |_| ()), 1);
    link.clients.push(TheirClient::new(token, link.now));
    link.run(300);
    let send = |client: &mut TheirClient, length: usize, out: &mut Datagrams| {
        let payload = vec![1; length];
        let (to, bytes) = client.client.generate_payload_packet(&payload).unwrap();
        out.push(to, bytes);
    };
    for length in [1201, 1300, 1200] {
        link.at_client(0, |client, _, out| send(client, length, out));
    }
    link.run(50);
    assert_eq!(link.server.server.counters().dropped(DropReason::TooLong), 2);
    assert_eq!(link.server.received.len(), 1);
}
