//! Their clients on our server.

use super::link::*;
use crate::netcode::{client_of, clients, is_connected, send_payload, total_dropped};
use renetcode::DisconnectReason;
use tickwire::netcode::{DropReason, ServerDisconnect, ServerEvent};
use tickwire::time::UnixSeconds;

type Net = Link<TheirClient, OurServer>;

fn net(max_clients: usize) -> Net {
    Link::new(OurServer::new(max_clients))
}

fn add(net: &mut Net, client_id: u64) {
    let token = read_by_them(&our_token(client_id, |_| ()), client_id);
    net.clients.push(TheirClient::new(token, net.now));
}

fn connected() -> Net {
    let mut net = net(4);
    add(&mut net, 1);
    net.run(300);
    assert!(net.clients[0].client.is_connected());
    net
}

fn dropped(net: &Net, reason: DropReason) -> u64 {
    net.server.server.counters().dropped(reason)
}

#[test]
fn their_client_connects() {
    let net = connected();
    let client = client_of(&net.server.server, &net.server.events, 1).unwrap();
    let user_data = Box::new([1; 256]);
    let address = client_address(0);
    assert_eq!(net.server.events, [ServerEvent::Connected { client, client_id: 1, address, user_data }]);
}

#[test]
fn their_clients_connect_with_tokens_of_theirs() {
    let mut net = net(4);
    for id in 1..=4 {
        let token = their_token(id, &PRIVATE_KEY, &[SERVER]);
        net.clients.push(TheirClient::new(token, net.now));
    }
    net.run(300);
    assert!(net.clients.iter().all(|c| c.client.is_connected()));
    assert_eq!(clients(&net.server.server, &net.server.events).len(), 4);
}

#[test]
fn payloads_go_both_ways_with_their_client() {
    let mut net = connected();
    let client = client_of(&net.server.server, &net.server.events, 1).unwrap();
    for batch in payloads().chunks(10) {
        for payload in batch {
            net.at_client(0, |c, _, out| {
                let (to, bytes) = c.client.generate_payload_packet(payload).unwrap();
                out.push(to, bytes);
            });
            net.at_server(|s, now, out| send_payload(&mut s.server, now, client, payload, out).unwrap());
        }
        net.run(10);
    }
    net.run(100);
    assert_eq!(net.clients[0].received, payloads());
    assert_eq!(net.server.received, payloads().into_iter().map(|p| (client, p)).collect::<Vec<_>>());
}

#[test]
fn keep_alives_hold_their_client_beyond_the_timeout() {
    let mut net = connected();
    let dropped = total_dropped(net.server.server.counters());
    net.run(12 * TIMEOUT_MS);
    assert!(net.clients[0].client.is_connected());
    assert_eq!(clients(&net.server.server, &net.server.events).len(), 1);
    assert_eq!(total_dropped(net.server.server.counters()), dropped, "nothing it sends is strange to us");
}

#[test]
fn their_client_leaves() {
    let mut net = connected();
    let client = client_of(&net.server.server, &net.server.events, 1).unwrap();
    net.at_client(0, |c, _, out| {
        let (to, bytes) = c.client.disconnect().unwrap();
        out.push(to, bytes);
    });
    net.run(50);
    let reason = ServerDisconnect::ByPeer;
    assert_eq!(net.server.events.last(), Some(&ServerEvent::Disconnected { client, reason }));
}

#[test]
fn our_server_kicks_their_client() {
    let mut net = connected();
    let client = client_of(&net.server.server, &net.server.events, 1).unwrap();
    net.at_server(|s, now, out| s.server.disconnect(now, client, None, out).unwrap());
    net.run(50);
    assert_eq!(net.clients[0].client.disconnect_reason(), Some(DisconnectReason::DisconnectedByServer));
}

#[test]
fn their_client_times_out_on_both_sides() {
    let mut net = connected();
    let client = client_of(&net.server.server, &net.server.events, 1).unwrap();
    net.loss = 1.0;
    net.run(TIMEOUT_MS - 400);
    assert!(net.clients[0].client.is_connected() && is_connected(&net.server.server, client));
    net.run(600);
    assert_eq!(net.clients[0].client.disconnect_reason(), Some(DisconnectReason::ConnectionTimedOut));
    let reason = ServerDisconnect::TimedOut;
    assert_eq!(net.server.events.last(), Some(&ServerEvent::Disconnected { client, reason }));
}

#[test]
fn our_full_server_denies_their_client() {
    let mut net = net(1);
    add(&mut net, 1);
    net.run(300);
    add(&mut net, 2);
    net.run(300);
    assert_eq!(net.clients[1].client.disconnect_reason(), Some(DisconnectReason::ConnectionDenied));
    assert!(net.clients[0].client.is_connected());
}

#[test]
fn our_server_drops_their_requests_with_expired_and_forged_tokens() {
    let mut net = net(4);
    let expired = our_token(1, |p| (p.created, p.lifetime) = (UnixSeconds(START - 3600), Some(30)));
    net.clients.push(TheirClient::new(read_by_them(&expired, 1), net.now));
    let forged = their_token(2, &[7; 32], &[SERVER]);
    net.clients.push(TheirClient::new(forged, net.now));
    net.run(1000);
    assert!(net.clients.iter().all(|c| c.client.is_connecting()));
    assert_eq!(dropped(&net, DropReason::TokenExpired), 4);
    assert_eq!(dropped(&net, DropReason::TokenNotAuthentic), 4);
    assert_eq!(net.server.server.half_open_count(), 0);
    net.run(TIMEOUT_MS);
    for client in &net.clients {
        assert_eq!(client.client.disconnect_reason(), Some(DisconnectReason::ConnectionRequestTimedOut));
    }
}

#[test]
fn their_client_goes_on_to_our_server() {
    let mut net = net(4);
    let token = our_token_to(1, &[SILENT, SERVER]);
    net.clients.push(TheirClient::new(read_by_them(&token, 1), net.now));
    net.run(TIMEOUT_MS + 500);
    assert!(net.clients[0].client.is_connected());
    assert_eq!(net.clients[0].client.server_addr(), SERVER);
}

#[test]
fn their_clients_connect_through_loss() {
    let mut net = net(16);
    net.loss = 0.4;
    (1..=16).for_each(|id| add(&mut net, id));
    net.run(6000);
    assert!(net.clients.iter().all(|c| c.client.is_connected()));
    assert_eq!(clients(&net.server.server, &net.server.events).len(), 16);
}
