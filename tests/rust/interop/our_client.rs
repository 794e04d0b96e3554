//! Our clients on their server.

use super::link::*;
use crate::netcode::total_dropped;
use tickwire::netcode::{ClientDisconnect, ClientEvent, ClientState, ConnectToken, DropReason};
use tickwire::time::UnixSeconds;

type Net = Link<OurClient, TheirServer>;

fn net(max_clients: usize) -> Net {
    Link::new(TheirServer::new(max_clients))
}

fn add(net: &mut Net, token: ConnectToken) {
    net.clients.push(OurClient::new(token, net.now));
}

fn connected() -> Net {
    let mut net = net(4);
    add(&mut net, our_token(1, |_| ()));
    net.run(500);
    assert_eq!(net.clients[0].client.state(), ClientState::Connected);
    net
}

#[test]
fn our_client_connects() {
    let net = connected();
    let connected = ClientEvent::Connected { client_index: 0, max_clients: 4 };
    assert_eq!(net.clients[0].events, [connected]);
    let user_data = Box::new([1; 256]);
    assert_eq!(net.server.events, [TheirEvent::Connected { client_id: 1, user_data }]);
}

#[test]
fn our_clients_connect_with_tokens_of_theirs() {
    let mut net = net(4);
    for id in 1..=4 {
        let token = standard_bytes(&their_token(id, &PRIVATE_KEY, &[SERVER]));
        add(&mut net, ConnectToken::from_bytes(&token).unwrap());
    }
    net.run(500);
    assert!(net.clients.iter().all(|c| c.client.state() == ClientState::Connected));
    assert_eq!(net.server.server.connected_clients(), 4);
}

#[test]
fn payloads_go_both_ways_with_their_server() {
    let mut net = connected();
    for batch in payloads().chunks(10) {
        for payload in batch {
            net.at_client(0, |c, now, out| c.client.send_payload(now, payload, out).unwrap());
            net.at_server(|s, _, out| {
                let (to, bytes) = s.server.generate_payload_packet(1, payload).unwrap();
                out.push(to, bytes);
            });
        }
        net.run(10);
    }
    net.run(100);
    assert_eq!(net.clients[0].received, payloads());
    assert_eq!(net.server.received, payloads().into_iter().map(|p| (1, p)).collect::<Vec<_>>());
}

#[test]
fn keep_alives_hold_our_client_beyond_the_timeout() {
    let mut net = connected();
    let dropped = total_dropped(net.clients[0].client.counters());
    net.run(12 * TIMEOUT_MS);
    assert_eq!(net.clients[0].client.state(), ClientState::Connected);
    assert!(net.server.server.is_client_connected(1));
    assert_eq!(total_dropped(net.clients[0].client.counters()), dropped, "nothing it sends is strange to us");
}

#[test]
fn our_client_leaves() {
    let mut net = connected();
    net.at_client(0, |c, _, out| c.client.disconnect(None, out).unwrap());
    net.run(50);
    assert_eq!(net.server.events.last(), Some(&TheirEvent::Disconnected { client_id: 1 }));
    assert_eq!(net.server.server.connected_clients(), 0);
}

#[test]
fn their_server_kicks_our_client() {
    let mut net = connected();
    net.at_server(|s, _, out| s.disconnect(1, out));
    net.run(50);
    assert_eq!(net.clients[0].client.state(), ClientState::Disconnected);
    let reason = ClientDisconnect::ByPeer;
    assert_eq!(net.clients[0].events.last(), Some(&ClientEvent::Disconnected { reason }));
}

#[test]
fn our_client_times_out_on_both_sides() {
    let mut net = connected();
    net.loss = 1.0;
    net.run(TIMEOUT_MS - 400);
    assert_eq!(net.clients[0].client.state(), ClientState::Connected);
    assert!(net.server.server.is_client_connected(1));
    net.run(600);
    assert_eq!(net.clients[0].client.state(), ClientState::TimedOut);
    assert_eq!(net.server.events.last(), Some(&TheirEvent::Disconnected { client_id: 1 }));
}

#[test]
fn their_full_server_denies_our_client() {
    let mut net = net(1);
    add(&mut net, our_token(1, |_| ()));
    net.run(500);
    add(&mut net, our_token(2, |_| ()));
    net.run(500);
    assert_eq!(net.clients[1].client.state(), ClientState::Denied);
    assert_eq!(net.clients[0].client.state(), ClientState::Connected);
}

#[test]
fn their_server_drops_our_requests_with_expired_and_forged_tokens() {
    let mut net = net(4);
    add(&mut net, our_token(1, |p| p.created = UnixSeconds(START - 30)));
    add(&mut net, our_token(2, |p| p.private_key = &[7; 32]));
    net.run(TIMEOUT_MS + 100);
    for client in &net.clients {
        assert_eq!(client.client.state(), ClientState::RequestTimedOut);
    }
    assert!(net.server.events.is_empty());
}

#[test]
fn our_client_goes_on_to_their_server() {
    let mut net = net(4);
    add(&mut net, our_token_to(1, &[SILENT, SERVER]));
    net.run(TIMEOUT_MS + 1000);
    assert_eq!(net.clients[0].client.state(), ClientState::Connected);
    assert_eq!(net.clients[0].client.server_address(), SERVER);
    assert_eq!(net.clients[0].events.len(), 1);
}

#[test]
fn our_clients_connect_through_loss() {
    let mut net = net(16);
    net.loss = 0.4;
    (1..=16).for_each(|id| add(&mut net, our_token(id, |_| ())));
    net.run(6000);
    assert!(net.clients.iter().all(|c| c.client.state() == ClientState::Connected));
    assert_eq!(net.server.server.connected_clients(), 16);
    let reasons = [DropReason::NotAuthentic, DropReason::WrongAddress, DropReason::ClientIndex];
    for client in &net.clients {
        assert!(reasons.iter().all(|&reason| client.client.counters().dropped(reason) == 0));
    }
}
