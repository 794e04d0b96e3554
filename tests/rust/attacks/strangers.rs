//! Attackers without a connection: they see everything, invent addresses, and at best have tokens.

use core::net::SocketAddr;

use tickwire::netcode::packet::{REQUEST_BYTES, Request};
use tickwire::netcode::{self, ClientState, DropReason};
use tickwire::rng::{Entropy, Rng};
use tickwire::store::Datagrams;

use super::arena::{Arena, Figures, SLOTS, honest_address, server_address, token};
use crate::fuzz_targets::world::PROTOCOL_ID;

/// Ticks that an attack lasts, and those after which a newcomer dials.
const TICKS: u32 = 600;
const NEWCOMER_AT: u32 = 60;

fn anywhere(rng: &mut Rng) -> SocketAddr {
    SocketAddr::from(((rng.next_u64() as u32 | 1 << 31).to_be_bytes(), rng.next_u64() as u16 | 1))
}

pub(super) fn somewhere(n: u64) -> SocketAddr {
    SocketAddr::from(([10, 66, (n >> 8) as u8, n as u8], 6666))
}

/// A request with this id's token, of this moment.
fn request(arena: &Arena, client_id: u64) -> Vec<u8> {
    let mut out = Vec::new();
    Request::write(&token(client_id, arena.now), &mut out);
    out
}

/// Runs ticks, each with an attack before it, while a newcomer dials.
pub(super) fn during(arena: &mut Arena, ticks: u32, mut attack: impl FnMut(&mut Arena, u32)) {
    for tick in 0..ticks {
        if tick == NEWCOMER_AT {
            arena.dial();
        }
        attack(arena, tick);
        arena.tick();
    }
}

/// The cost of a newcomer, and of a player.
pub(super) fn nothing() -> Figures {
    let mut arena = Arena::new();
    during(&mut arena, TICKS, |_, _| ());
    arena.finish()
}

/// Requests that look good and are sealed by nobody, from everywhere.
pub(super) fn spoofed_connect_flood() -> Figures {
    let (mut arena, mut rng) = (Arena::new(), Rng::seeded(3));
    let mut forged = request(&arena, 99);
    during(&mut arena, TICKS, |arena, _| {
        for _ in 0..100 {
            rng.fill(&mut forged[REQUEST_BYTES - 1024..]);
            arena.attack(anywhere(&mut rng), &forged);
        }
    });
    assert_eq!(arena.dropped(DropReason::TokenNotAuthentic), u64::from(TICKS) * 100, "each was looked at");
    arena.finish()
}

/// The same from one address: it is soon not listened to, and a neighbour of another address is.
pub(super) fn connect_flood_of_one_source() -> Figures {
    let (mut arena, mut rng) = (Arena::new(), Rng::seeded(4));
    let mut forged = request(&arena, 99);
    during(&mut arena, TICKS, |arena, _| {
        for _ in 0..100 {
            rng.fill(&mut forged[REQUEST_BYTES - 1024..]);
            arena.attack(somewhere(1), &forged);
        }
    });
    assert!(arena.dropped(DropReason::SourceLimit) > u64::from(TICKS) * 95);
    arena.finish()
}

/// A request that somebody saw on the wire, from everywhere and from its own address, again and again.
pub(super) fn valid_request_repeated() -> Figures {
    let (mut arena, mut rng) = (Arena::new(), Rng::seeded(5));
    let seen = request(&arena, 99);
    arena.attack(somewhere(99), &seen);
    during(&mut arena, TICKS, |arena, _| {
        for _ in 0..50 {
            assert_eq!(arena.attack(anywhere(&mut rng), &seen), [[0u8; 0]; 0]);
            arena.attack(somewhere(99), &seen);
        }
    });
    assert_eq!(arena.server.listener().unwrap().half_open_count(), 1, "one place, however often it comes");
    arena.finish()
}

/// All that the honest player ever sent, in its name and in another.
pub(super) fn replayed_capture() -> Figures {
    let mut arena = Arena::new();
    during(&mut arena, 300, |_, _| ());
    let capture = arena.captured[0].clone();
    assert!(capture.len() > 300);
    for datagram in &capture {
        assert!(arena.attack(honest_address(), datagram).is_empty());
        assert!(arena.attack(somewhere(1), datagram).is_empty());
    }
    assert!(arena.drops() as usize >= 2 * capture.len(), "each counted under a name");
    arena.finish()
}

/// The server's own packets back to it, the challenge among them, and the honest player's back to it.
pub(super) fn reflected_packets() -> Figures {
    let mut arena = Arena::new();
    during(&mut arena, 300, |_, _| ());
    let [up, down] = arena.captured.clone();
    assert!(down.iter().any(|datagram| datagram[0] & 0x0F == 2), "a challenge was seen");
    for datagram in &down {
        assert!(arena.attack(honest_address(), datagram).is_empty());
        assert!(arena.attack(somewhere(1), datagram).is_empty());
        arena.attack_honest(datagram);
    }
    up.iter().for_each(|datagram| arena.attack_honest(datagram));
    arena.finish()
}

/// A token seen by a thief, who dials with it from elsewhere: while its owner is about to connect, and after.
pub(super) fn stolen_token() -> Figures {
    let mut arena = Arena::new();
    let stolen = request(&arena, 99);
    let answers = arena.attack(somewhere(99), &stolen);
    assert_eq!(answers.len(), 1, "the owner is challenged");
    during(&mut arena, TICKS, |arena, tick| {
        assert!(arena.attack(somewhere(u64::from(tick % 2)), &stolen).is_empty());
    });
    let refused = arena.dropped(DropReason::TokenElsewhere);
    assert!(refused >= 60, "{refused}");
    assert_eq!(arena.server.connected().count(), 2, "the honest player and the newcomer");
    arena.finish()
}

/// Requests of many tokens, none of which ever answers its challenge.
pub(super) fn half_open_flood() -> Figures {
    let mut arena = Arena::new();
    let requests: Vec<_> = (0..900).map(|n| request(&arena, 1000 + n)).collect();
    during(&mut arena, TICKS, |arena, tick| {
        for (n, request) in requests.iter().enumerate().filter(|(n, _)| *n as u32 % 60 == tick % 60) {
            arena.attack(somewhere(n as u64), request);
        }
    });
    assert_eq!(arena.server.listener().unwrap().half_open_count(), 900);
    arena.finish()
}

/// Handshakes that are kept half open by a request every four seconds, for as long as their tokens live.
pub(super) fn slow_loris() -> Figures {
    let mut arena = Arena::new();
    let requests: Vec<_> = (0..500).map(|n| request(&arena, 1000 + n)).collect();
    let mut answered = [0; 2];
    during(&mut arena, 40 * 60, |arena, tick| {
        for (n, request) in requests.iter().enumerate().filter(|_| tick % 240 == 0) {
            answered[usize::from(tick > 30 * 60)] += arena.attack(somewhere(n as u64), request).len();
        }
    });
    assert_eq!(answered, [8 * 500, 0], "no more, once the tokens have expired");
    assert_eq!(arena.dropped(DropReason::TokenJustExpired), 2 * 500);
    arena.finish()
}

/// Accounts that take every slot; more of them knock. A newcomer waits for a slot, which is all that is left.
pub(super) fn slot_exhaustion() -> Figures {
    let mut arena = Arena::new();
    let mut taken: Vec<_> = (0..SLOTS as u64 - 1)
        .map(|n| {
            let config = netcode::ClientConfig::new(PROTOCOL_ID);
            let token = token(1000 + n, arena.now);
            (somewhere(n), netcode::Client::new(config, token, arena.now).unwrap())
        })
        .collect();
    let knocking: Vec<_> = (0..200).map(|n| request(&arena, 2000 + n)).collect();
    let mut heard: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
    for tick in 0..TICKS {
        let (now, mut out) = (arena.now, Datagrams::new());
        for (address, client) in &mut taken {
            client.update(now, &mut out);
            for (_, mut datagram) in heard.extract_if(.., |(to, _)| to == address) {
                client.handle_datagram(now, server_address(), &mut datagram, &mut out);
            }
            for (_, datagram) in out.iter() {
                heard.extend(arena.attack(*address, datagram).into_iter().map(|answer| (*address, answer)));
            }
            out.clear();
        }
        if tick > 30 {
            for (n, request) in knocking.iter().enumerate().skip((tick % 20) as usize).step_by(20) {
                let denied = arena.attack(somewhere(500 + n as u64), request);
                assert!(denied.iter().all(|denied| denied.len() <= 25));
            }
        }
        if tick == NEWCOMER_AT {
            arena.dial();
        }
        heard.extend(arena.tick());
    }
    assert_eq!(arena.server.connected().count(), SLOTS);
    assert!(taken.iter().all(|(_, client)| client.state() == ClientState::Connected));
    arena.finish()
}

/// Random bytes of every length.
pub(super) fn noise() -> Figures {
    let (mut arena, mut rng) = (Arena::new(), Rng::seeded(6));
    let mut bytes = vec![0; 1400];
    during(&mut arena, TICKS, |arena, _| {
        for n in 0..100 {
            rng.fill(&mut bytes);
            let length = rng.below(1400) as usize;
            let from = if n % 2 == 0 { honest_address() } else { anywhere(&mut rng) };
            assert!(arena.attack(from, &bytes[..length]).is_empty());
        }
    });
    arena.finish()
}
