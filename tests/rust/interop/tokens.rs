//! Tokens: theirs read by us and ours read by them.

use core::net::SocketAddr;

use super::link::*;
use tickwire::netcode::ConnectToken;
use tickwire::netcode::private_token::PrivateToken;
use tickwire::time::UnixSeconds;

fn thirty_two_servers() -> Vec<SocketAddr> {
    (0..32).map(|i| SocketAddr::from(([10, 0, 2, i], 1000 + u16::from(i)))).collect()
}

#[test]
fn we_read_every_field_of_their_token() {
    let servers = thirty_two_servers();
    let theirs = their_token(9, &PRIVATE_KEY, &servers);
    let bytes = standard_bytes(&theirs);
    let ours = ConnectToken::from_bytes(&bytes).unwrap();
    assert_eq!(ours.protocol_id, PROTOCOL);
    assert_eq!((ours.created, ours.expires), (UnixSeconds(START), UnixSeconds(START + 30)));
    assert_eq!(ours.addresses, servers);
    assert_eq!(ours.to_bytes(), bytes);

    let mut sealed = theirs.private_data;
    let private =
        PrivateToken::open(&mut sealed, &PRIVATE_KEY, PROTOCOL, ours.expires, &theirs.xnonce).unwrap();
    assert_eq!((private.client_id, private.timeout_seconds), (9, 5));
    assert_eq!((private.addresses, private.user_data), (servers, [9; 256]));
    assert_eq!(private.client_to_server, theirs.client_to_server_key);
    assert_eq!(private.server_to_client, theirs.server_to_client_key);
}

/// That they read the private part shows where their server takes our clients, with their user data.
#[test]
fn they_read_every_public_field_of_our_token() {
    let servers = thirty_two_servers();
    let ours = our_token_to(9, &servers);
    let theirs = read_by_them(&ours, 9);
    assert_eq!((theirs.protocol_id, theirs.timeout_seconds), (PROTOCOL, 5));
    assert_eq!((theirs.create_timestamp, theirs.expire_timestamp), (START, START + 30));
    assert_eq!(theirs.server_addresses.into_iter().flatten().collect::<Vec<_>>(), servers);
    let end = ours.to_bytes().iter().rposition(|byte| *byte != 0).unwrap() - 8;
    assert_eq!(standard_bytes(&theirs)[..end], ours.to_bytes()[..end], "all but our id in the padding");
}
