//! An account that forges the source of its packets, to have the server send to somebody else.

use tickwire::netcode::packet::{self, Body, CHALLENGE_BODY_BYTES, Header, Kind, Request};
use tickwire::netcode::{ConnectToken, DropReason};

use super::arena::{Arena, Figures, token_of};
use super::strangers::{during, somewhere};
use crate::fuzz_targets::world::PROTOCOL_ID;

fn request(token: &ConnectToken) -> Vec<u8> {
    let mut out = Vec::new();
    Request::write(token, &mut out);
    out
}

/// The keys of a token with one IPv4 address: to the server, to the client.
fn keys(token: &ConnectToken) -> [[u8; 32]; 2] {
    const KEYS_AT: usize = 1089 + 4 + 7;
    let bytes = token.to_bytes();
    [0, 32].map(|at| bytes[KEYS_AT + at..][..32].try_into().unwrap())
}

fn opened(mut challenge: Vec<u8>, key: &[u8; 32]) -> [u8; CHALLENGE_BODY_BYTES] {
    match Header::read(&challenge).unwrap().open(&mut challenge, PROTOCOL_ID, key) {
        Ok(Body::Challenge { sequence, token }) => packet::challenge_body(sequence, token),
        other => panic!("{other:?}"),
    }
}

/// Two tokens of one account. One requests in the victim's name, the other from where the attacker listens; the challenge
/// of the second is answered in the victim's name, sealed for the first, again and again. All that the figures count as
/// sent went out to the victim.
pub(super) fn forged_source_with_two_tokens() -> Figures {
    let mut arena = Arena::new();
    let (victim, attacker) = (somewhere(99), somewhere(1));
    let [forged, own] = [99, 99 | 1 << 40].map(|seed| token_of(99, seed, arena.now));
    let [to_server, _] = keys(&forged);
    let mut sequence = 0;
    let before = arena.figures.bytes_out;
    let challenge = arena.attack(attacker, &request(&own)).remove(0);
    let seen = opened(challenge, &keys(&own)[1]);
    arena.figures.bytes_out = before;
    during(&mut arena, 600, |arena, tick| {
        if tick % 60 == 0 {
            assert!(arena.attack(victim, &request(&forged)).len() <= 1, "its challenge, at most");
        }
        let mut send = |kind, body: &[u8]| {
            let mut out = Vec::new();
            packet::seal(&mut out, PROTOCOL_ID, &to_server, sequence, kind, body);
            sequence += 1;
            assert!(arena.attack(victim, &out).is_empty());
        };
        if tick % 60 < 2 {
            send(Kind::Response, &seen);
            send(Kind::KeepAlive, &packet::keep_alive_body(0, 0));
        }
    });
    assert_eq!(arena.dropped(DropReason::ChallengeForOtherRequest), 20);
    assert_eq!(arena.server.connected().count(), 2, "the honest player and the newcomer");
    arena.finish()
}
