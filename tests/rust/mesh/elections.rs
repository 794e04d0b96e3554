//! A silent master is replaced soon after the last player notices, in whatever order they notice it.

use tickwire::mesh::{Message, Stamp};
use tickwire::time::Duration;

use super::world::{Sent, World};

const STEP: Duration = Duration::from_millis(10);

/// Milliseconds from the last player that notices until all have a new master. Each message takes `latency` steps, and the
/// links to the silent player 0 end after these.
fn until_one_master(mut world: World, latency: u64, noticed: &[u64]) -> u64 {
    let mut sent = Sent::new();
    let last = *noticed.iter().max().unwrap();
    for step in 0..last + 1_000 {
        for (place, _) in noticed.iter().enumerate().filter(|(_, at)| **at == step) {
            world.lose(place + 1, 0);
        }
        world.deliver_late(&mut sent, step, latency);
        world.pass(STEP);
        let masters = world.peers[1..].iter().map(|mesh| mesh.as_ref().and_then(|mesh| mesh.master()));
        let masters: Vec<_> = masters.collect();
        if masters[0].is_some_and(|master| master != 0) && masters.iter().all(|it| *it == masters[0]) {
            world.settle();
            world.check_settled();
            assert_eq!(world.parts().keys().map(Vec::len).collect::<Vec<_>>(), [noticed.len()]);
            return (step + 1 - last) * 10;
        }
    }
    panic!("no master after {noticed:?}: {:#?}", world.peers);
}

/// The worst of all orders in which three players notice it.
fn worst(world: &World, latency: u64) -> (u64, [u64; 3]) {
    let moments = (0..8).map(|at| at * 8);
    let all = moments.clone().flat_map(|a| moments.clone().map(move |b| (a, b)));
    let all = all.flat_map(|(a, b)| moments.clone().map(move |c| [a, b, c]));
    all.map(|noticed| (until_one_master(world.clone(), latency, &noticed), noticed)).max().unwrap()
}

#[test]
fn a_new_master_is_there_soon_after_the_last_has_noticed() {
    let mut world = World::of(4);
    world.silence(0);
    for latency in [1, 5, 12] {
        let (worst, noticed) = worst(&world, latency);
        assert!(worst <= 250 + 70 * latency, "{worst} ms with {latency}: {noticed:?}");
    }
}

#[test]
fn a_player_that_knows_less_holds_up_nobody() {
    for informed in [[1, 2], [1, 3], [2, 3]] {
        let mut world = World::of(4);
        world.start(0);
        for (place, way) in world.ready() {
            let connection = &world.connections[place];
            let to = if way == 0 { connection.to } else { connection.from };
            if informed.contains(&to) {
                world.deliver(place, way);
            }
        }
        world.silence(0);
        let (worst, noticed) = worst(&world, 5);
        assert!(worst <= 750, "{worst} ms, {informed:?} know: {noticed:?}");
    }
}

#[test]
fn a_token_for_the_new_masters_server_may_come_before_the_master_is_accepted() {
    let mut world = World::of(5);
    world.silence(0);
    world.lose(3, 0);
    // Player 3 votes in an epoch that the others don't come to.
    let last = Stamp { epoch: 1, revision: 1_000 };
    world.tell(2, 3, Message::Claim { epoch: 9, last });
    for (place, way) in world.ready() {
        world.deliver(place, way);
    }
    world.lose(1, 0);
    world.lose(2, 0);
    world.lose(4, 0);
    // Its refusal is late.
    for _ in 0..20 {
        let from = |world: &World, (place, way): (usize, usize)| {
            let connection = &world.connections[place];
            if way == 0 { connection.from } else { connection.to }
        };
        while let Some((place, way)) = world.ready().into_iter().find(|it| from(&world, *it) != 3) {
            world.deliver(place, way);
        }
        if !world.mesh(1).is_master() {
            world.tick();
        }
    }
    assert!(world.mesh(1).is_master());
    let third = world.mesh(1).roster().member(3).unwrap().joined;
    for pass in [vec![6], vec![7]] {
        assert!(world.mesh(1).offer_seat((3, third), pass));
    }
    world.update(1);
    world.settle();
    assert_eq!(world.mesh(3).master(), Some(1));
    let taken: Vec<_> = world.seats.iter().filter(|(by, ..)| *by == 3).collect();
    assert_eq!(taken, [&(3, 1, vec![7])], "the newest");
}
