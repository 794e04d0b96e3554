//! Decrypts captured packets, given the server's private key or a client's connect token.
//!
//! Promises: learns the keys of a connection from its request, with the servers' private key or with the client's
//! connect token; never alters its input. Skips packets without keys, and packets that don't open. It checks no
//! replays, expiries or states, because a capture is history. Bounded by [`MAX_SESSIONS`]; the oldest make room.

use std::collections::{HashMap, VecDeque};

use core::fmt;
use core::net::SocketAddr;

use super::crypto::{self, Key, TOKEN_NONCE_BYTES};
use super::packet::{Header, REQUEST_PREFIX, Request, associated_data};
use super::private_token::PrivateToken;
use super::token::ConnectToken;

/// Connections whose keys are remembered.
pub const MAX_SESSIONS: usize = 65_536;

/// Keys of one connection.
#[derive(Clone, Copy)]
struct Session {
    protocol_id: u64,
    client_to_server: Key,
    server_to_client: Key,
}

type Pair = (SocketAddr, SocketAddr);

#[derive(Default)]
pub struct Opener {
    private_keys: Vec<Key>,
    tokens: HashMap<[u8; TOKEN_NONCE_BYTES], Session>,
    /// The last connection between two addresses, and the one before it: its goodbyes may arrive after the next
    /// request.
    sessions: HashMap<Pair, [Option<Session>; 2]>,
    order: VecDeque<Pair>,
}

impl Opener {
    /// One that has no keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key that servers share with their backend: opens all their connections.
    pub fn add_private_key(&mut self, key: Key) {
        self.private_keys.push(key);
    }

    /// Adds a client's token: opens its connection.
    pub fn add_token(&mut self, token: &ConnectToken) {
        let session = Session {
            protocol_id: token.protocol_id,
            client_to_server: token.client_to_server,
            server_to_client: token.server_to_client,
        };
        self.tokens.insert(token.nonce, session);
    }

    /// Takes the next datagram of a capture. A sealed packet that opens is returned with its body decrypted and
    /// without its tag: prefix, sequence, body.
    pub fn open(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        if datagram.first() == Some(&REQUEST_PREFIX) {
            self.learn((from, to), datagram);
            return None;
        }
        let header = Header::read(datagram).ok()?;
        let sent_up = self.sessions.get(&(from, to)).into_iter().flatten().flatten();
        let sent_up = sent_up.map(|session| (session.protocol_id, session.client_to_server));
        let sent_down = self.sessions.get(&(to, from)).into_iter().flatten().flatten();
        let sent_down = sent_down.map(|session| (session.protocol_id, session.server_to_client));
        let body_at = header.body_at;
        sent_up.chain(sent_down).find_map(|(protocol_id, key)| {
            let mut opened = datagram.to_vec();
            let associated = associated_data(protocol_id, datagram[0]);
            let length = crypto::open(&key, header.sequence, &associated, &mut opened[body_at..])?.len();
            opened.truncate(body_at + length);
            Some(opened)
        })
    }

    fn learn(&mut self, pair: Pair, datagram: &[u8]) {
        let mut copy = datagram.to_vec();
        let Ok(request) = Request::read(&mut copy) else { return };
        let by_token = self.tokens.get(&request.nonce).copied();
        let by_key = || {
            self.private_keys.iter().find_map(|key| {
                let mut sealed = *request.sealed;
                let nonce = &request.nonce;
                let private =
                    PrivateToken::open(&mut sealed, key, request.protocol_id, request.expires, nonce).ok()?;
                Some(Session {
                    protocol_id: request.protocol_id,
                    client_to_server: private.client_to_server,
                    server_to_client: private.server_to_client,
                })
            })
        };
        let Some(session) = by_token.or_else(by_key) else { return };
        if !self.sessions.contains_key(&pair) {
            if self.order.len() == MAX_SESSIONS
                && let Some(oldest) = self.order.pop_front()
            {
                self.sessions.remove(&oldest);
            }
            self.order.push_back(pair);
        }
        let known = self.sessions.entry(pair).or_default();
        // Requests are repeated.
        if known[0].is_none_or(|newest| newest.client_to_server != session.client_to_server) {
            *known = [Some(session), known[0]];
        }
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netcode::USER_DATA_BYTES;
    use crate::netcode::packet::{Kind, seal};
    use crate::netcode::token::TokenParams;
    use crate::rng::Rng;
    use crate::time::UnixSeconds;

    const KEY: Key = [9; 32];

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn token(seed: u64) -> ConnectToken {
        let params = TokenParams {
            protocol_id: 5,
            private_key: &KEY,
            client_id: 77,
            created: UnixSeconds(1000),
            lifetime: Some(30),
            timeout: Some(10),
            public_addresses: &[address(1)],
            internal_addresses: None,
            user_data: &[3; USER_DATA_BYTES],
            dated: true,
        };
        ConnectToken::generate(&params, &mut Rng::seeded(seed)).unwrap()
    }

    fn request(token: &ConnectToken) -> Vec<u8> {
        let mut out = Vec::new();
        Request::write(token, &mut out);
        out
    }

    fn sealed(key: &Key, sequence: u64, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        seal(&mut out, 5, key, sequence, Kind::Payload, body);
        out
    }

    #[test]
    fn the_private_key_or_the_token_opens_both_directions() {
        let token = token(1);
        let (mut by_key, mut by_token, mut by_nothing) = (Opener::new(), Opener::new(), Opener::new());
        by_key.add_private_key([0; 32]);
        by_key.add_private_key(KEY);
        by_token.add_token(&token);
        let up = sealed(&token.client_to_server, 300, b"up");
        let down = sealed(&token.server_to_client, 7, b"down");
        for opener in [&mut by_key, &mut by_token] {
            assert_eq!(opener.open(address(2), address(1), &up), None, "before the request");
            assert_eq!(opener.open(address(2), address(1), &request(&token)), None);
            let opened = opener.open(address(2), address(1), &up).unwrap();
            assert_eq!(opened, [&[0x25, 0x2C, 1][..], b"up"].concat());
            assert_eq!(opener.open(address(1), address(2), &down).unwrap(), b"\x15\x07down");
            assert_eq!(opener.open(address(2), address(1), &down), None, "in the other direction");
            assert_eq!(opener.open(address(3), address(1), &up), None, "of somebody else");
        }
        by_nothing.open(address(2), address(1), &request(&token));
        assert_eq!(by_nothing.open(address(2), address(1), &up), None);
    }

    #[test]
    fn a_later_connection_between_the_same_addresses_opens_too_and_the_last_goodbyes_of_the_one_before() {
        let (first, second) = (token(1), token(2));
        let mut opener = Opener::new();
        opener.add_private_key(KEY);
        for token in [&first, &second, &second] {
            opener.open(address(2), address(1), &request(token));
        }
        for token in [&first, &second] {
            assert!(opener.open(address(2), address(1), &sealed(&token.client_to_server, 1, b"x")).is_some());
        }
    }

    #[test]
    fn any_bytes_are_opened_or_not() {
        let mut rng = Rng::seeded(3);
        let token = token(1);
        let mut opener = Opener::new();
        opener.add_private_key(KEY);
        opener.open(address(2), address(1), &request(&token));
        for _ in 0..20_000 {
            let mut bytes =
                if rng.chance(0.1) { request(&token) } else { sealed(&token.client_to_server, 1, b"hello") };
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
            bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
            assert_eq!(opener.open(address(2), address(1), &bytes), None);
        }
        assert_eq!(opener.open(address(2), address(1), &[]), None);
    }
}
