//! Peers that send what they may not: nothing comes of it, and memory doesn't grow.

use std::net::SocketAddr;

use tickwire::mesh::{
    Action, LeaveReason, LinkEnd, Member, Mesh, MeshConfig, MeshFault, Message, Phase, Roster, Stamp, Start,
};
use tickwire::rng::Rng;
use tickwire::time::{Duration, Instant};

use super::world::{World, address};

/// A mesh takes at most this many bytes to show, whoever says what: a measure of its memory.
const MAX_SHOWN: usize = 60_000;

fn roster(rng: &mut Rng) -> Roster {
    let mut members: Vec<Member> = Vec::new();
    for player in 0..16 {
        if rng.chance(0.4) {
            let addresses = vec![address(player)];
            let joined = rng.below(5) as u32;
            members.push(Member { player: player as u8, joined, name: "liar".into(), addresses });
        }
    }
    let start = rng.chance(0.5).then_some(Start { seed: 666, countdown: 1, players: 3, late: true });
    Roster { members, places: 16, start, left: vec![(0, 0, LeaveReason::Kicked)] }
}

fn stamp(rng: &mut Rng) -> Stamp {
    Stamp { epoch: rng.below(4) as u32, revision: rng.below(9) as u32 }
}

/// Anything that a peer may say.
fn anything(rng: &mut Rng) -> Message {
    let (player, joined) = (rng.below(16) as u8, rng.below(6) as u32);
    let reason = LeaveReason::ALL[rng.below(11) as usize];
    let epoch = if rng.chance(0.2) { u32::MAX } else { rng.below(6) as u32 };
    let addresses: Vec<SocketAddr> = (0..rng.below(5) as usize).map(address).collect();
    match rng.below(19) {
        0 => Message::Hello { name: "liar".into(), addresses },
        1 => Message::NotMaster { addresses },
        2 => Message::Refused { reason },
        3 => Message::Welcome { player, joined, master: rng.below(16) as u8, master_joined: 0, epoch },
        4 => Message::Intro { player, joined, pass: vec![1; 20] },
        5 => Message::Expect { player, joined, ticket: [rng.below(256) as u8; 16] },
        6 => Message::Reached { players: rng.next_u64() as u16 },
        7 => Message::Unreached { player },
        8 => Message::Propose { stamp: stamp(rng), stable: roster(rng), pending: roster(rng) },
        9 => Message::Ack { stamp: stamp(rng) },
        10 => Message::Commit { stamp: stamp(rng), left: Some(rng.next_u64() as i64) },
        11 => Message::Count { left: i64::MIN },
        12 => Message::Lost { player, joined, broke_rules: rng.chance(0.5) },
        13 => Message::Claim { epoch, last: stamp(rng) },
        14 => Message::Grant { epoch },
        15 => Message::Deny { epoch },
        16 => Message::SealedWith { key: [7; 32] },
        17 => Message::Out { reason },
        _ => Message::Seat { pass: vec![3; 20] },
    }
}

fn drain(mesh: &mut Mesh) -> Vec<Action> {
    core::iter::from_fn(|| mesh.poll_action()).collect()
}

/// The connection between two, as each of them numbers it.
fn link(world: &World, of: usize, to: usize) -> u64 {
    let place =
        world.connections.iter().rposition(|it| (it.from, it.to) == (of, to) || (it.from, it.to) == (to, of));
    let place = place.unwrap();
    2 * place as u64 + u64::from(world.connections[place].from == of)
}

#[test]
fn a_member_that_says_anything_changes_nothing_while_there_is_a_master() {
    let world = World::of(4);
    for seed in 0..400 {
        let (mut world, mut rng) = (world.clone(), Rng::seeded(seed));
        let liar = link(&world, 1, 2);
        let now = world.now;
        let mesh = world.mesh(1);
        let before = mesh.roster().clone();
        let mut is_out = false;
        for _ in 0..200 {
            let message = anything(&mut rng);
            match mesh.handle_message(now, liar, message.clone(), Duration::ZERO) {
                Ok(()) => {}
                Err(
                    MeshFault::NotTheMaster
                    | MeshFault::OutOfPlace
                    | MeshFault::Impossible
                    | MeshFault::Flood,
                ) => {
                    is_out = true;
                    break;
                }
                Err(other) => panic!("{other} of {message:?}"),
            }
            assert!(format!("{mesh:?}").len() < MAX_SHOWN);
        }
        assert_eq!((mesh.roster(), mesh.master(), mesh.phase()), (&before, Some(0), Phase::Member));
        assert!(is_out, "seed {seed}: it said so much, and nothing was wrong with it");
        let sent = drain(mesh);
        assert!(sent.iter().all(|action| matches!(action, Action::Send { .. })), "{sent:?}");
        // Its end is the master's to judge, and the game goes on.
        mesh.handle_end(now, liar, LinkEnd::Violation);
        assert_eq!(mesh.phase(), Phase::Member);
    }
}

#[test]
fn a_member_that_says_anything_to_the_master_is_out_at_most_itself() {
    let world = World::of(4);
    for seed in 0..400 {
        let (mut world, mut rng) = (world.clone(), Rng::seeded(seed));
        let liar = link(&world, 0, 2);
        for _ in 0..200 {
            let now = world.now;
            let message = anything(&mut rng);
            // What it says of others needs a second witness: theirs; but one may lie of two that one doesn't reach another.
            if matches!(message, Message::Lost { .. }) {
                continue;
            }
            if world.mesh(0).handle_message(now, liar, message, Duration::ZERO).is_err() {
                world.mesh(0).handle_end(now, liar, LinkEnd::Violation);
                break;
            }
            assert!(format!("{:?}", world.mesh(0)).len() < MAX_SHOWN);
        }
        let mesh = world.mesh(0);
        assert!([0, 1, 3].iter().all(|player| mesh.roster().member(*player).is_some()));
        // It may have all vote for the master once more, and no more.
        assert_eq!((mesh.master(), mesh.phase(), mesh.is_master()), (Some(0), Phase::Member, true));
    }
}

#[test]
fn strangers_change_nothing_and_are_sent_away() {
    let world = World::of(3);
    for seed in 0..300 {
        for peer in [0, 1] {
            let (mut world, mut rng) = (world.clone(), Rng::seeded(seed));
            let now = world.now;
            let mesh = world.mesh(peer);
            let before = mesh.roster().clone();
            let ticket = rng.chance(0.5).then_some([9; 16]);
            mesh.handle_accepted(now, 1_000, address(9), ticket);
            for _ in 0..200 {
                if mesh.handle_message(now, 1_000, anything(&mut rng), Duration::ZERO).is_err() {
                    mesh.handle_end(now, 1_000, LinkEnd::Violation);
                    break;
                }
            }
            assert_eq!(mesh.roster(), &before);
            assert!(format!("{mesh:?}").len() < MAX_SHOWN);
            mesh.update(now + Duration::from_secs(16));
            assert_eq!((mesh.roster(), mesh.phase()), (&before, Phase::Member));
        }
    }
}

#[test]
fn a_newcomer_is_led_astray_by_nobody_but_whom_it_asked() {
    for seed in 0..300 {
        let mut rng = Rng::seeded(seed);
        let mut world = World::new();
        let peer = world.join(0);
        let now = world.now;
        let mesh = world.mesh(peer);
        for _ in 0..100 {
            if mesh.handle_message(now, 1, anything(&mut rng), Duration::ZERO).is_err() {
                mesh.handle_end(now, 1, LinkEnd::Violation);
                break;
            }
            assert!(format!("{mesh:?}").len() < MAX_SHOWN);
        }
    }
}

#[test]
fn a_second_master_is_found_out() {
    let mut world = World::of(3);
    let liar = link(&world, 1, 2);
    let (now, mut rng) = (world.now, Rng::seeded(1));
    let forged = |epoch| Message::Propose {
        stamp: Stamp { epoch, revision: 1 },
        stable: Roster { places: 4, ..Roster::default() },
        pending: roster(&mut Rng::seeded(2)),
    };
    let mesh = world.mesh(1);
    let older = mesh.handle_message(now, liar, forged(1), Duration::ZERO);
    assert_eq!(older, Err(MeshFault::NotTheMaster));
    // It may be that the master is gone, and this peer is only to notice.
    assert_eq!(mesh.handle_message(now, liar, forged(2), Duration::ZERO), Ok(()));
    mesh.update(now + Duration::from_secs(6));
    assert!(!drain(mesh).iter().any(|action| matches!(action, Action::Refuse { .. })));
    mesh.update(now + Duration::from_secs(8));
    let refused = Action::Refuse { link: liar, fault: MeshFault::NotTheMaster };
    assert!(drain(mesh).contains(&refused));
    assert_eq!(mesh.roster().members.len(), 3);
    let _ = anything(&mut rng);
}

#[test]
fn a_seat_of_a_player_that_was_not_elected_is_never_taken() {
    let mut world = World::of(4);
    let seat = || Message::Seat { pass: vec![3; 20] };
    let (now, liar) = (world.now, link(&world, 2, 3));
    assert_eq!(world.mesh(2).handle_message(now, liar, seat(), Duration::ZERO), Err(MeshFault::NotTheMaster));
    // Without a master it might be of the next one. Another player is elected.
    for peer in 1..4 {
        world.lose(peer, 0);
    }
    assert_eq!(world.mesh(2).handle_message(now, liar, seat(), Duration::ZERO), Ok(()));
    world.peers[0] = None;
    world.settle();
    assert_eq!(world.mesh(2).master(), Some(1));
    let now = world.now;
    assert_eq!(world.mesh(2).handle_message(now, liar, seat(), Duration::ZERO), Err(MeshFault::NotTheMaster));
    assert!(world.seats.is_empty(), "{:?}", world.seats);
}

#[test]
fn a_flood_of_hellos_takes_the_places_that_there_are_and_no_more() {
    let mut world = World::of(2);
    let now = world.now;
    let mesh = world.mesh(0);
    let mut welcome = 0;
    for link in 0..500 {
        mesh.handle_accepted(now, 1_000 + link, address(9), None);
        let hello = Message::Hello { name: "x".into(), addresses: Vec::new() };
        mesh.handle_message(now, 1_000 + link, hello, Duration::ZERO).unwrap();
        welcome += drain(mesh)
            .iter()
            .filter(|action| matches!(action, Action::Send { message: Message::Welcome { .. }, .. }))
            .count();
    }
    assert!(welcome <= 6, "of 8 places, 2 are taken: {welcome}");
    // All of them are gone in time; the endpoint's slots bound how many there are at once.
    for second in 1..20 {
        mesh.update(now + Duration::from_secs(second));
    }
    let ended = drain(mesh).iter().filter(|action| matches!(action, Action::End { .. })).count();
    assert!(ended >= 490, "{ended}");
}

#[test]
fn a_ticket_that_is_not_the_newcomers_makes_nobody_a_player() {
    let mut world = World::of(3);
    let (now, master) = (world.now, link(&world, 1, 0));
    let mesh = world.mesh(1);
    drain(mesh);
    let (stamp, before) = mesh.agreed().map(|(stamp, roster)| (stamp, roster.clone())).unwrap();
    let (player, joined) = (3, 99);
    let expect = Message::Expect { player, joined, ticket: [6; 16] };
    mesh.handle_message(now, master, expect, Duration::ZERO).unwrap();
    let (liar, newcomer) = (1_001, 1_003);
    mesh.handle_accepted(now, liar, address(8), Some([7; 16]));
    mesh.handle_accepted(now, newcomer, address(9), Some([6; 16]));
    let member = Member { player, joined, name: "new".into(), addresses: vec![address(9)] };
    let mut pending = before.clone();
    pending.members.push(member);
    let stamp = Stamp { revision: stamp.revision + 1, ..stamp };
    let propose = Message::Propose { stamp, stable: before, pending };
    for message in [propose, Message::Commit { stamp, left: None }] {
        mesh.handle_message(now, master, message, Duration::ZERO).unwrap();
    }
    let admitted: Vec<_> =
        drain(mesh).into_iter().filter(|action| matches!(action, Action::Admit { .. })).collect();
    assert_eq!(admitted, [Action::Admit { link: newcomer, who: (player, joined) }]);
}

#[test]
fn a_member_does_not_use_up_the_numbers_of_masters() {
    for gone in [false, true] {
        let mut world = World::of(4);
        let (liar, master) = (link(&world, 1, 2), link(&world, 1, 0));
        let now = world.now;
        let mesh = world.mesh(1);
        if gone {
            mesh.handle_end(now, master, LinkEnd::Lost);
        }
        let last = Stamp { epoch: u32::MAX, revision: 1 };
        let (stable, pending) = (mesh.roster().clone(), mesh.roster().clone());
        for message in [
            Message::Claim { epoch: u32::MAX, last },
            Message::Propose { stamp: last, stable: stable.clone(), pending: pending.clone() },
        ] {
            assert_eq!(
                mesh.handle_message(now, liar, message, Duration::ZERO),
                Err(MeshFault::Impossible),
                "{gone}"
            );
        }
        assert!(mesh.epoch() < 9);
    }
}

#[test]
fn nothing_is_due_once_a_peer_is_out_or_where_there_is_no_start() {
    let mut world = World::of(2);
    assert!(world.start(0));
    world.settle();
    world.mesh(0).end(LeaveReason::Closed);
    assert_eq!(world.mesh(0).next_deadline(), Instant::NEVER, "its driver would never sleep again");
    // The master says when the game begins, and not that it does.
    let mut world = World::of(2);
    let (now, master) = (world.now, link(&world, 1, 0));
    let mesh = world.mesh(1);
    let stable = mesh.roster().clone();
    let stamp = Stamp { epoch: 1, revision: 1_000 };
    let proposed = Message::Propose { stamp, stable: stable.clone(), pending: stable };
    assert_eq!(mesh.handle_message(now, master, proposed, Duration::ZERO), Ok(()));
    let agreed = Message::Commit { stamp, left: Some(-9) };
    assert_eq!(mesh.handle_message(now, master, agreed, Duration::ZERO), Ok(()));
    mesh.update(now);
    assert_eq!((mesh.agreed().map(|it| it.0), mesh.start_at()), (Some(stamp), None));
    assert!(mesh.next_deadline() > now);
}

#[test]
fn nobody_uses_up_the_epochs() {
    let world = World::of(3);
    let far = Stamp { epoch: u32::MAX, revision: 1 };
    let claim = Message::Claim { epoch: u32::MAX, last: far };
    let behind = Message::Claim { epoch: u32::MAX, last: Stamp::default() };
    let roster = world.clone().mesh(1).roster().clone();
    let proposal = Message::Propose { stamp: far, stable: roster.clone(), pending: roster };
    for message in [claim, behind, proposal] {
        let mut world = world.clone();
        let (now, master, liar) = (world.now, link(&world, 1, 0), link(&world, 1, 2));
        let mesh = world.mesh(1);
        mesh.handle_end(now, master, LinkEnd::Lost);
        let said = mesh.handle_message(now, liar, message, Duration::ZERO);
        assert_eq!(said, Err(MeshFault::Impossible), "nobody could be elected after it");
    }
}

/// A player that knows one contact.
fn newcomer() -> Mesh {
    let config = MeshConfig {
        name: "newcomer".into(),
        key: [1; 32],
        addresses: vec![],
        places: 0,
        timeout: Duration::from_secs(5),
    };
    Mesh::join(config, vec![address(0)])
}

#[test]
fn a_contact_that_says_nothing_is_given_up() {
    let now = Instant::from_millis(1_000);
    let mut mesh = newcomer();
    mesh.note_dialling(now, 1, None);
    mesh.handle_dialled(now, 1, address(0));
    assert_eq!(mesh.next_deadline(), now + Duration::from_secs(6));
    mesh.update(mesh.next_deadline());
    assert_eq!(mesh.phase(), Phase::Ended(LeaveReason::NoAnswer));
}

#[test]
fn a_newcomer_that_is_sent_to_a_dead_address_hears_in_time_but_waits_for_an_election() {
    for is_electing in [false, true] {
        let begin = Instant::from_millis(1_000);
        let mut mesh = newcomer();
        mesh.note_dialling(begin, 1, None);
        mesh.handle_dialled(begin, 1, address(0));
        let dead = Message::NotMaster { addresses: vec![address(1)] };
        mesh.handle_message(begin, 1, dead.clone(), Duration::ZERO).unwrap();
        mesh.note_dialling(begin, 2, None);
        let late = begin + Duration::from_secs(5);
        mesh.handle_end(late, 2, LinkEnd::Lost);
        let again = if is_electing { Message::NotMaster { addresses: vec![] } } else { dead };
        mesh.handle_message(late, 1, again, Duration::ZERO).unwrap();
        mesh.note_dialling(late, 3, None);
        if is_electing {
            // The question begins again with the peer that is dialled after the election.
            assert_eq!(mesh.next_deadline(), late + Duration::from_secs(6));
        } else {
            mesh.update(begin + Duration::from_secs(6));
            assert_eq!(mesh.phase(), Phase::Ended(LeaveReason::NoAnswer));
        }
    }
}
