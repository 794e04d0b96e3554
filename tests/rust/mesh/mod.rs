//! Games of peers: membership and master, whatever dies and whatever order messages come in.

mod elections;
mod hostile;
pub(crate) mod world;

use tickwire::mesh::{Happening, LeaveReason, Message, Phase};
use tickwire::rng::Rng;
use tickwire::time::Duration;

use world::{Sent, World};

/// The actions of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Join,
    Start,
    Kick(u8),
}

/// Lets so much happen, in an order that a seed gives; gives whether anything was left to happen.
fn stir(world: &mut World, rng: &mut Rng, steps: usize) {
    for _ in 0..steps {
        let ready = world.ready();
        if ready.is_empty() || rng.chance(0.05) {
            world.tick();
            continue;
        }
        let (place, way) = ready[rng.below(ready.len() as u64) as usize];
        world.deliver(place, way);
    }
}

fn act(world: &mut World, deed: Deed) {
    match deed {
        Deed::Join => drop(world.join(0)),
        Deed::Start => drop(world.start(0)),
        Deed::Kick(player) => {
            let now = world.now;
            world.mesh(0).kick(now, player);
        }
    }
}

#[test]
fn newcomers_join_at_any_member_and_all_start_together() {
    let mut world = World::of(3);
    let fourth = world.join(2);
    world.settle();
    world.check_settled();
    assert_eq!(world.parts().len(), 1);
    assert_eq!(world.mesh(fourth).me(), Some(3));
    assert!(!world.start(1), "only the master starts");
    assert!(world.start(0) && !world.start(0));
    world.settle();
    world.check_settled();
    let late = world.join(1);
    world.settle();
    world.check_settled();
    for peer in 0..=late {
        let started =
            world.happened[peer].iter().filter(|it| **it == Happening::Starts { seed: 77, players: 15 });
        assert_eq!(started.count(), 1, "{peer}");
    }
}

#[test]
fn a_master_killed_at_any_moment_leaves_one_other() {
    for (seed, deed) in
        (0..8).flat_map(|seed| [Deed::Join, Deed::Start, Deed::Kick(2)].map(|deed| (seed, deed)))
    {
        for steps in 0..40 {
            for keep in [false, true] {
                let (mut world, mut rng) = (World::of(3), Rng::seeded(seed));
                act(&mut world, deed);
                stir(&mut world, &mut rng, steps);
                world.kill(0, keep);
                stir(&mut world, &mut rng, 60);
                world.settle();
                world.check_settled();
                let parts = world.parts();
                // With a kick that its victim had acked, two of three are gone at once.
                let is_kick = matches!(deed, Deed::Kick(_));
                let least = if is_kick { 1 } else { 2 };
                let members = parts.keys().next().map_or(0, Vec::len);
                if is_kick && parts.is_empty() {
                    continue;
                }
                let phases: Vec<_> =
                    world.peers.iter().map(|peer| peer.as_ref().map(|mesh| mesh.phase())).collect();
                let told = &world.happened;
                assert!(
                    parts.len() == 1 && members >= least,
                    "{seed} {deed:?} {steps} {keep}: {parts:?} {phases:?} {told:?}"
                );
            }
        }
    }
}

#[test]
fn with_four_one_more_may_be_gone() {
    for seed in 0..20 {
        for (other, count) in [(1, 5), (3, 5), (4, 5)] {
            let (mut world, mut rng) = (World::of(count), Rng::seeded(seed));
            stir(&mut world, &mut rng, 5);
            world.kill(other, false);
            stir(&mut world, &mut rng, seed as usize % 17);
            world.kill(0, false);
            stir(&mut world, &mut rng, 100);
            world.settle();
            world.check_settled();
            assert_eq!(world.parts().keys().map(Vec::len).collect::<Vec<_>>(), [3], "{seed} {other}");
        }
    }
}

#[test]
fn parts_that_do_not_see_each_other_never_both_go_on() {
    for seed in 0..500 {
        let mut rng = Rng::seeded(seed);
        let count = 3 + rng.below(3) as usize;
        let mut world = World::of(count);
        if rng.chance(0.3) {
            world.join(0);
        }
        if rng.chance(0.3) {
            world.start(0);
        }
        stir(&mut world, &mut rng, seed as usize % 23);
        for _ in 0..1 + rng.below(5) {
            let (a, b) = (rng.below(count as u64) as usize, rng.below(count as u64) as usize);
            if a != b {
                world.cut(a, b);
            }
            if rng.chance(0.2) && world.peers[a].is_some() {
                world.leave(a);
            }
            stir(&mut world, &mut rng, seed as usize % 37);
        }
        stir(&mut world, &mut rng, 100);
        world.settle();
        world.check_settled();
    }
}

#[test]
fn whoever_leaves_is_no_vote_lost() {
    let mut world = World::of(4);
    for (peer, left) in [(0, 3), (2, 2), (1, 1)] {
        world.leave(peer);
        world.settle();
        world.check_settled();
        assert_eq!(world.parts().keys().map(Vec::len).collect::<Vec<_>>(), [left]);
    }
    let left =
        world.happened[3].iter().filter(|it| matches!(it, Happening::Left { reason: LeaveReason::Left, .. }));
    assert_eq!(left.count(), 3);
}

#[test]
fn a_newcomer_of_the_lowest_number_counts_only_once_it_knows_that_it_does() {
    let mut world = World::of(2);
    world.leave(0);
    world.settle();
    let newcomer = world.join(1);
    while world.mesh(1).roster().members.len() < 2 {
        let (place, way) = world.ready()[0];
        world.deliver(place, way);
    }
    assert_eq!(world.mesh(newcomer).number(), Some(0));
    assert!(!world.mesh(newcomer).roster().members.is_empty(), "it was proposed to it");
    world.settle();
    world.check_settled();
    assert_eq!(world.parts().keys().map(Vec::len).collect::<Vec<_>>(), [2]);
}

/// Everything arrives but what is said to a silent peer, or asked of it.
fn deliver_around(world: &mut World, silent: usize) {
    let is_heard = |world: &World, place: usize| {
        let connection = &world.connections[place];
        connection.from != silent && connection.to != silent
    };
    while let Some((place, way)) = world.ready().into_iter().find(|(place, _)| is_heard(world, *place)) {
        world.deliver(place, way);
    }
}

#[test]
fn a_newcomer_that_was_sent_to_a_dead_master_is_answered_by_the_next_one() {
    // It asks before the members have noticed that the master is gone, a member that becomes the master or another one.
    for asked in [1, 2] {
        let mut world = World::of(4);
        world.silence(0);
        let newcomer = world.join(asked);
        deliver_around(&mut world, 0);
        (1..4).for_each(|member| world.lose(member, 0));
        for _ in 0..20 {
            deliver_around(&mut world, 0);
            world.pass(Duration::from_millis(10));
        }
        assert!(world.mesh(newcomer).is_member(), "asked {asked}");
    }
}

#[test]
fn peers_that_ask_each_other_or_themselves_run_out_of_hops() {
    for around in [1, 2, 3] {
        let mut world = World::new();
        let peers = world.join_around(around);
        world.settle();
        for peer in peers {
            assert_eq!(world.mesh(peer).phase(), Phase::Ended(LeaveReason::NoAnswer), "{peer} of {around}");
        }
    }
}

#[test]
fn a_newcomer_that_asks_another_newcomer_joins_too() {
    let mut world = World::new();
    let first = world.join(0);
    let second = world.join(first);
    world.settle();
    assert_eq!([first, second].map(|peer| world.mesh(peer).phase()), [Phase::Member; 2]);
}

#[test]
fn a_newcomer_whose_master_dies_before_it_is_proposed_asks_the_members() {
    let mut world = World::of(3);
    let newcomer = world.join(1);
    while world.mesh(newcomer).known().filter(|(_, address)| address.is_some()).count() < 2 {
        let (place, way) = world.ready()[0];
        world.deliver(place, way);
    }
    assert_eq!(world.mesh(newcomer).phase(), Phase::Joining);
    world.silence(0);
    (1..4).for_each(|peer| world.lose(peer, 0));
    for _ in 0..20 {
        deliver_around(&mut world, 0);
        world.pass(Duration::from_millis(10));
    }
    assert!(world.mesh(newcomer).is_member(), "{:?}", world.mesh(newcomer).phase());
}

/// A newcomer asks a member of a game, whose host falls silent after so many steps; the members notice it after 200 steps and
/// these more, in the order of their numbers, the newcomer last, and so does who dials it later. Each message takes 4 steps.
fn newcomer_of_a_silent_host(members: usize, asked: usize, silent_at: u64, noticed: &[u64]) -> Phase {
    let (mut world, mut sent) = (World::of(members), Sent::new());
    let newcomer = world.join(asked);
    for step in 0..1_500 {
        if step == silent_at {
            world.silence(0);
        }
        for (place, _) in noticed
            .iter()
            .enumerate()
            .filter(|(_, late)| step > silent_at && (step - silent_at) % 200 == **late)
        {
            world.lose(place + 1, 0);
        }
        world.deliver_late(&mut sent, step, 4);
        world.pass(Duration::from_millis(10));
    }
    world.check_settled();
    world.mesh(newcomer).phase()
}

#[test]
fn a_newcomer_gets_in_whenever_the_host_falls_silent() {
    for (members, asked) in [(2, 1), (3, 1), (3, 2)] {
        for silent_at in (0..60).step_by(2) {
            for late in [[0, 0, 0], [0, 2, 5], [5, 2, 0], [0, 6, 3], [3, 3, 6], [3, 0, 9]] {
                let noticed = &late[3 - members..];
                let phase = newcomer_of_a_silent_host(members, asked, silent_at, noticed);
                assert_eq!(phase, Phase::Member, "{members} {asked} {silent_at} {noticed:?}");
            }
        }
    }
}

#[test]
fn a_newcomer_that_alone_knows_of_its_proposal_gets_in() {
    for (members, noticed) in [(2, [1, 2, 0]), (3, [1, 2, 3]), (3, [3, 1, 2]), (3, [2, 3, 1])] {
        let mut world = World::of(members);
        let newcomer = world.join(1);
        while world.mesh(newcomer).roster().members.is_empty() {
            let is_other = |world: &World, (place, way): (usize, usize)| {
                let connection = &world.connections[place];
                let to = if way == 0 { connection.to } else { connection.from };
                to == newcomer || !format!("{:?}", connection.way[way].front()).contains("Propose")
            };
            let (place, way) = world.ready().into_iter().find(|it| is_other(&world, *it)).unwrap();
            world.deliver(place, way);
        }
        world.silence(0);
        noticed.into_iter().filter(|peer| *peer != 0).for_each(|peer| world.lose(peer, 0));
        for _ in 0..3_000 {
            deliver_around(&mut world, 0);
            world.pass(Duration::from_millis(10));
        }
        world.check_settled();
        assert_eq!(world.mesh(newcomer).phase(), Phase::Member, "{members} {noticed:?}");
    }
}

#[test]
fn only_the_master_learns_with_which_key_a_newcomer_is_let_in_elsewhere() {
    let mut world = World::of(3);
    let newcomer = world.join(2);
    while let Some((place, way)) = world.ready().first().copied() {
        let connection = &world.connections[place];
        let said = format!("{:?}", connection.way[way].front());
        let is_to_member = connection.from == newcomer && connection.to != 0 && way == 0;
        assert!(!(is_to_member && (said.contains("SealedWith") || said.contains("key"))), "{said}");
        world.deliver(place, way);
    }
    world.settle();
    world.check_settled();
    assert_eq!(world.parts().keys().map(Vec::len).collect::<Vec<_>>(), [4]);
}

#[test]
fn a_part_too_small_says_so() {
    let mut world = World::of(5);
    for (a, b) in [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)] {
        world.cut(a, b);
    }
    world.settle();
    world.check_settled();
    assert_eq!(world.parts().values().cloned().collect::<Vec<_>>(), [vec![2, 3, 4]]);
    for peer in [0, 1] {
        assert_eq!(world.mesh(peer).phase(), Phase::Ended(LeaveReason::Minority));
    }
}

#[test]
fn of_two_who_do_not_reach_each_other_the_later_one_goes() {
    let mut world = World::of(4);
    world.cut(1, 3);
    world.settle();
    world.check_settled();
    assert_eq!(world.mesh(3).phase(), Phase::Ended(LeaveReason::Unreachable));
    assert_eq!(world.parts().values().cloned().collect::<Vec<_>>(), [vec![0, 1, 2]]);
    // Nor does a newcomer get in that doesn't reach all.
    world.cut(2, 4);
    let fifth = world.join(0);
    world.settle();
    assert_eq!(world.mesh(fifth).phase(), Phase::Ended(LeaveReason::Unreachable));
    assert_eq!(world.parts().len(), 1);
}

/// A game of four in which players accuse each other: how each of them ended, if it did.
fn after_accusations(accusations: &[(usize, usize)]) -> Vec<Option<LeaveReason>> {
    let mut world = World::of(4);
    for (accuser, of) in accusations {
        world.accuse(*accuser, *of);
    }
    world.settle();
    world.check_settled();
    let phases = (0..4).map(|peer| world.mesh(peer).phase());
    phases.map(|phase| if let Phase::Ended(reason) = phase { Some(reason) } else { None }).collect()
}

#[test]
fn a_player_that_breaks_the_rules_goes_and_its_victim_stays() {
    let (violation, unreachable) = (Some(LeaveReason::Violation), Some(LeaveReason::Unreachable));
    assert_eq!(after_accusations(&[(3, 1)]), [None, violation, None, None]);
    assert_eq!(after_accusations(&[(1, 3)]), [None, None, None, violation]);
    assert_eq!(after_accusations(&[(1, 3), (2, 3)]), [None, None, None, violation]);
    // Each may lie, so the accusations of a player have one earlier player removed.
    assert_eq!(after_accusations(&[(3, 1), (3, 2)]), [None, violation, None, unreachable]);
}

#[test]
fn of_two_who_accuse_each_other_the_later_one_goes() {
    let mut world = World::of(4);
    for (accuser, of) in [(3, 1u8), (1, 3)] {
        world.tell(accuser, 0, Message::Lost { player: of, joined: of.into(), broke_rules: true });
    }
    world.settle();
    world.check_settled();
    assert_eq!(world.mesh(3).phase(), Phase::Ended(LeaveReason::Unreachable));
    assert!(world.mesh(1).is_member());
}
