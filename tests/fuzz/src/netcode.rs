//! The readers of secure connections: packets in clear and opened, connect tokens, private parts, addresses.

use tickwire::limits::MAX_PAYLOAD;
use tickwire::netcode::ConnectToken;
use tickwire::netcode::packet::{Body, Header, Kind, Request, seal};
use tickwire::netcode::private_token::PrivateToken;

use super::input::Input;

const PROTOCOL: u64 = 7;
const KEY: [u8; 32] = [3; 32];

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.below(5) {
        0 => request(input.rest()),
        1 => header(input.rest()),
        2 => opened(&mut input),
        3 => token(input.rest()),
        _ => private_part(input.rest()),
    }
}

fn request(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    let before = bytes.clone();
    if let Ok(request) = Request::read(&mut bytes) {
        assert_eq!(before.len(), 1078);
        assert_eq!(request.protocol_id.to_le_bytes(), before[14..22]);
        assert_eq!(request.sealed[..], before[54..]);
    }
}

/// Nobody's bytes open under a key that nobody has.
fn header(bytes: &[u8]) {
    let mut datagram = bytes.to_vec();
    if let Ok(header) = Header::read(bytes) {
        assert!(header.open(&mut datagram, PROTOCOL, &KEY).is_err());
    }
}

/// What the holder of a key seals is read, whatever it says.
fn opened(input: &mut Input<'_>) {
    let kinds =
        [Kind::Denied, Kind::Challenge, Kind::Response, Kind::KeepAlive, Kind::Payload, Kind::Disconnect];
    let kind = kinds[input.below(6) as usize];
    let sequence = input.u64() >> (input.u8() % 64);
    let bytes = match kind {
        Kind::Denied | Kind::Disconnect => 0,
        Kind::Challenge | Kind::Response => 308,
        Kind::KeepAlive => 8,
        _ => 1 + usize::from(input.u16()) % MAX_PAYLOAD,
    };
    let mut body = input.bytes(bytes).to_vec();
    body.resize(bytes, 0);
    let mut datagram = Vec::new();
    seal(&mut datagram, PROTOCOL, &KEY, sequence, kind, &body);
    let header = Header::read(&datagram).unwrap();
    assert_eq!((header.kind, header.sequence), (kind, sequence));
    match header.open(&mut datagram, PROTOCOL, &KEY).unwrap() {
        Body::Payload(payload) => assert_eq!(payload, body),
        Body::Challenge { sequence, token } => {
            assert_eq!((sequence.to_le_bytes(), &token[..]), (body[..8].try_into().unwrap(), &body[8..]));
        }
        _ => {}
    }
}

fn token(bytes: &[u8]) {
    if let Ok(token) = ConnectToken::from_bytes(bytes) {
        assert!((1..=32).contains(&token.addresses.len()));
        let again = ConnectToken::from_bytes(&token.to_bytes()).unwrap();
        assert_eq!(again.to_bytes(), token.to_bytes());
    }
}

fn private_part(bytes: &[u8]) {
    let mut whole = [0; 1024];
    let count = bytes.len().min(1024);
    whole[..count].copy_from_slice(&bytes[..count]);
    assert!(PrivateToken::from_bytes(bytes).is_err() || bytes.len() >= 343);
    if let Ok(token) = PrivateToken::from_bytes(&whole) {
        let again = PrivateToken::from_bytes(&token.to_bytes()).unwrap();
        assert_eq!(again.to_bytes(), token.to_bytes());
        let _any_number_of_seconds = token.timeout();
    }
}
