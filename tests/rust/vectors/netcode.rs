//! Vectors of netcode: every packet, token, trace and address the reference made is written and read here.

use serde_json::Value;
use tickwire::netcode::challenge::{BINDING_BYTES, ChallengeToken};
use tickwire::netcode::packet::{self, Body, Header, Kind, Request};
use tickwire::netcode::private_token::PrivateToken;
use tickwire::netcode::replay::ReplayWindow;
use tickwire::netcode::{ConnectToken, TokenParams};
use tickwire::rng::Entropy;
use tickwire::time::UnixSeconds;

fn vectors() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/netcode.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all["netcode"].as_array().unwrap().clone()
}

/// The vectors of one kind; how many there must be keeps a test from passing on none.
fn of_kind(kind: &str, count: usize) -> Vec<Value> {
    let found: Vec<Value> = vectors().into_iter().filter(|v| v["kind"] == kind).collect();
    assert_eq!(found.len(), count);
    found
}

fn named(name: &str) -> Value {
    vectors().into_iter().find(|v| v["name"] == name).unwrap()
}

fn bytes(v: &Value) -> Vec<u8> {
    hex::decode(v.as_str().unwrap()).unwrap()
}

fn array<const N: usize>(v: &Value) -> [u8; N] {
    bytes(v).try_into().unwrap()
}

fn id(v: &Value) -> u64 {
    u64::from_str_radix(v.as_str().unwrap(), 16).unwrap()
}

/// Hands out the recorded randoms in the order a token draws them.
struct Recorded(std::collections::VecDeque<u8>);

impl Entropy for Recorded {
    fn fill(&mut self, out: &mut [u8]) {
        out.fill_with(|| self.0.pop_front().expect("more randoms than recorded"));
    }
}

fn token(v: &Value) -> ConnectToken {
    let addresses: Vec<_> = v["server_addresses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a.as_str().unwrap().parse().unwrap())
        .collect();
    let created = v["create_timestamp"].as_u64().unwrap();
    let params = TokenParams {
        protocol_id: id(&v["protocol_id"]),
        private_key: &array(&v["private_key"]),
        client_id: id(&v["client_id"]),
        created: UnixSeconds(created),
        lifetime: Some(u32::try_from(v["expire_timestamp"].as_u64().unwrap() - created).unwrap()),
        timeout: u32::try_from(v["timeout_seconds"].as_i64().unwrap()).ok(),
        public_addresses: &addresses,
        internal_addresses: None,
        user_data: &array(&v["user_data"]),
        dated: false,
    };
    let randoms = ["nonce", "client_to_server_key", "server_to_client_key"];
    let mut entropy = Recorded(randoms.iter().flat_map(|&name| bytes(&v[name])).collect());
    ConnectToken::generate(&params, &mut entropy).unwrap()
}

#[test]
fn connect_tokens_are_written_and_read() {
    for v in of_kind("connect_token", 2) {
        let expected = bytes(&v["connect_token_2048"]);
        let written = token(&v).to_bytes();
        let end = expected.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        assert_eq!(written[..end], expected[..end], "{}", v["name"]);
        let ours = [&id(&v["client_id"]).to_le_bytes()[..], &[1]].concat();
        assert_eq!(written[end..].strip_prefix(&ours[..]), Some(&expected[end + 9..]), "in the padding");
        let read = ConnectToken::from_bytes(&expected).unwrap();
        assert_eq!(read.to_bytes(), expected);
        assert_eq!(read.protocol_id, id(&v["protocol_id"]));
        assert_eq!(read.expires.0, v["expire_timestamp"].as_u64().unwrap());
        let addresses: Vec<_> = read.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(Value::from(addresses), v["server_addresses"]);
    }
}

#[test]
fn private_tokens_are_sealed_and_opened() {
    for v in of_kind("connect_token", 2) {
        let (key, nonce) = (array(&v["private_key"]), array(&v["nonce"]));
        let (protocol_id, expires) =
            (id(&v["protocol_id"]), UnixSeconds(v["expire_timestamp"].as_u64().unwrap()));
        let mut sealed = array(&v["private_encrypted_1024"]);
        let private = PrivateToken::open(&mut sealed, &key, protocol_id, expires, &nonce).unwrap();
        assert_eq!(private.client_id, id(&v["client_id"]));
        assert_eq!(i64::from(private.timeout_seconds), v["timeout_seconds"].as_i64().unwrap());
        assert_eq!(private.user_data, array::<256>(&v["user_data"]));
        assert_eq!(private.client_to_server, array::<32>(&v["client_to_server_key"]));
        assert_eq!(private.server_to_client, array::<32>(&v["server_to_client_key"]));
        assert_eq!(private.to_bytes(), array(&v["private_plaintext_1024"]));
        assert_eq!(
            private.seal(&key, protocol_id, expires, &nonce),
            array(&v["private_encrypted_1024"]),
            "{}",
            v["name"]
        );
    }
}

#[test]
fn the_challenge_token_is_sealed_and_opened() {
    for v in of_kind("challenge_token", 1) {
        let (key, sequence) = (array(&v["challenge_key"]), v["challenge_sequence"].as_u64().unwrap());
        let token = ChallengeToken {
            client_id: id(&v["client_id"]),
            user_data: array(&v["user_data"]),
            binding: [0; BINDING_BYTES],
        };
        assert_eq!(token.to_bytes(), array(&v["plaintext_300"]));
        let sealed = array(&v["encrypted_300"]);
        assert_eq!(token.seal(&key, sequence), sealed);
        assert_eq!(ChallengeToken::open(&mut sealed.clone(), &key, sequence), Some(token));
    }
}

#[test]
fn the_connection_request_is_written_and_read() {
    let v = named("connection_request");
    let token_vector = named("connect_token_ipv4_ipv6");
    let mut out = Vec::new();
    Request::write(&token(&token_vector), &mut out);
    assert_eq!(out, bytes(&v["packet"]));
    let request = Request::read(&mut out).unwrap();
    assert_eq!(request.protocol_id, id(&token_vector["protocol_id"]));
    assert_eq!(request.expires.0, token_vector["expire_timestamp"].as_u64().unwrap());
    assert_eq!(request.nonce, array::<24>(&token_vector["nonce"]));
    assert_eq!(*request.sealed, array::<1024>(&token_vector["private_encrypted_1024"]));
}

#[test]
fn encrypted_packets_are_sealed_and_opened() {
    let challenge: [u8; 300] = array(&named("challenge_token")["encrypted_300"]);
    let mut tested = 0;
    for v in of_kind("packet", 39).into_iter().filter(|v| v["packet_type"] != 0) {
        let name = v["name"].as_str().unwrap();
        let (protocol_id, sequence, key) =
            (id(&v["protocol_id"]), id(&v["sequence"]), array::<32>(&v["key"]));
        let challenge_sequence = || v["challenge_sequence"].as_u64().unwrap();
        let number = |field: &str| u32::try_from(v[field].as_u64().unwrap()).unwrap();
        let mut token = challenge;
        let payload = v["payload"].as_str().map(|hex| hex::decode(hex).unwrap()).unwrap_or_default();
        let (kind, plain, body) = match v["packet_type"].as_u64().unwrap() {
            1 => (Kind::Denied, vec![], Body::Denied),
            type_bits @ (2 | 3) => (
                if type_bits == 2 { Kind::Challenge } else { Kind::Response },
                packet::challenge_body(challenge_sequence(), &challenge).to_vec(),
                Body::Challenge { sequence: challenge_sequence(), token: &mut token },
            ),
            4 => {
                let (client_index, max_clients) = (number("client_index"), number("max_clients"));
                let plain = packet::keep_alive_body(client_index, max_clients).to_vec();
                (Kind::KeepAlive, plain, Body::KeepAlive { client_index, max_clients })
            }
            5 => (Kind::Payload, payload.clone(), Body::Payload(&payload)),
            6 => (Kind::Disconnect, vec![], Body::Disconnect),
            other => panic!("{name}: no packet type {other}"),
        };
        let expected = bytes(&v["packet"]);
        assert_eq!(expected.len() as u64, v["bytes"].as_u64().unwrap());

        let mut out = Vec::new();
        packet::seal(&mut out, protocol_id, &key, sequence, kind, &plain);
        assert_eq!(out, expected, "{name}");

        let header = Header::read(&out).unwrap();
        assert_eq!((header.kind, header.sequence), (kind, sequence), "{name}");
        assert_eq!(header.open(&mut out, protocol_id, &key), Ok(body), "{name}");
        tested += 1;
    }
    assert_eq!(tested, 38);
}

/// The trace's last step accepts 2^64 - 1 a second time: the reference marks an empty slot with that number.
/// Ours says "empty" with a bit of its own and refuses it, as the standard's intent is.
#[test]
fn the_replay_trace_is_followed_but_for_its_known_flaw() {
    for v in of_kind("replay", 1) {
        let mut window = ReplayWindow::new(usize::try_from(v["window"].as_u64().unwrap()).unwrap());
        let steps = v["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 21);
        for (i, step) in steps.iter().enumerate() {
            let sequence = id(&step["sequence"]);
            let flaw = i == 20;
            assert!(!flaw || sequence == u64::MAX);
            let fresh = window.is_fresh(sequence);
            assert_eq!(fresh, step["accepted"].as_bool().unwrap() && !flaw, "step {i}");
            if fresh {
                window.advance(sequence);
            }
        }
    }
}
