//! Ghosts against a simple model of the world: whatever a link does, what a client shows is what the server had.

mod client;
mod connections;
mod hostile;
mod world;

use tickwire::endpoint::PeerHandle;
use tickwire::rng::Rng;

use self::client::{Client, GOOD, Line};
use self::world::World;
use crate::fuzz_targets::ghosts::coded_classes;

/// One run's dials.
#[derive(Clone, Copy)]
struct Scene {
    line: Line,
    clients: u32,
    ticks: u64,
    /// Objects to begin with, and how many of what there is changes in a tick.
    objects: u32,
    changing: f64,
    /// Bits a tick at least and at most, and of a packet.
    budget: (u64, u64),
    packet: (u64, u64),
    /// The classes that are coded, a bit each.
    coded: u8,
}

/// No class, all, and one of two.
const CODED: [u8; 3] = [0b00, 0b11, 0b10];

const SCENE: Scene = Scene {
    line: GOOD,
    clients: 3,
    ticks: 200,
    objects: 60,
    changing: 0.3,
    budget: (100_000, 200_000),
    packet: (600, 9_000),
    coded: 0,
};

/// Objects come and go, change, and change hands.
fn live(world: &mut World, clients: &[Client], scene: &Scene, rng: &mut Rng) {
    let handles: Vec<PeerHandle> = clients.iter().map(|client| client.handle).collect();
    let owner = |rng: &mut Rng| handles.get(rng.below(handles.len() as u64 + 1) as usize).copied();
    for class in 0..2 {
        let rows: Vec<u32> = world.rows[class].keys().copied().collect();
        let target = u64::from(scene.objects);
        while world.rows[class].len() < target as usize || rng.chance(0.2) {
            let owner = owner(rng);
            if world.spawn(class, owner, None, rng).is_none() {
                break;
            }
        }
        for row in rows {
            if rng.chance(0.004) {
                world.despawn(class, row);
                continue;
            }
            if rng.chance(0.01) {
                let owner = owner(rng);
                assert!(world.publisher.set_owner(class, row, owner));
            }
            if rng.chance(scene.changing) {
                for property in 1..world.columns[class].len() {
                    if rng.chance(0.5) {
                        world.write(class, row, property, rng);
                    }
                }
            }
        }
        let rows: Vec<u32> = world.rows[class].keys().copied().collect();
        for handle in &handles {
            for row in &rows {
                if rng.chance(0.05) {
                    world.publisher.enter(*handle, class, *row);
                } else if rng.chance(0.005) {
                    world.publisher.leave(*handle, class, *row);
                }
            }
        }
    }
}

fn run(seed: u64, scene: Scene) -> Vec<Client> {
    let classes = coded_classes(scene.coded);
    let (mut rng, mut world) = (Rng::seeded(seed), World::new(&classes));
    let mut clients: Vec<Client> = (0..scene.clients)
        .map(|slot| Client::new(slot, &classes, scene.line, seed * 100 + u64::from(slot)))
        .collect();
    for client in &clients {
        world.publisher.add_peer(client.handle);
    }
    let between = |rng: &mut Rng, (least, most): (u64, u64)| (least + rng.below(most - least + 1)) as usize;
    let mut now = 0;
    while now < scene.ticks + 1000 {
        now += 1;
        let over = now > scene.ticks;
        for client in &mut clients {
            client.notify(now, &mut world.publisher);
        }
        if !over {
            live(&mut world, &clients, &scene, &mut rng);
        }
        world.begin_tick();
        for client in &mut clients {
            if over {
                client.line = Line { loss: 0.0, false_losses: 0.0, ..client.line };
            }
            let (budget, packet) = (between(&mut rng, scene.budget), between(&mut rng, scene.packet));
            client.send(now, &mut world.publisher, budget, packet);
            client.receive(now);
            if rng.chance(0.8) {
                client.take(&world);
            }
        }
        if over && clients.iter().all(Client::is_quiet) && world.publisher.wants().next().is_none() {
            break;
        }
    }
    assert!(now < scene.ticks + 1000, "seed {seed}: it never gets quiet");
    for client in &mut clients {
        client.take(&world);
        client.check_all(&world);
    }
    // An idle world costs nothing.
    let bits: u64 = clients.iter().map(|client| client.bits).sum();
    for _ in 0..3 {
        world.begin_tick();
        assert!(world.publisher.wants().next().is_none());
    }
    assert_eq!(world.publisher.costs().total(), bits, "what it cost is what was sent");
    clients
}

#[test]
fn a_good_line_shows_every_state_in_time() {
    for coded in CODED {
        for seed in 0..4 {
            run(seed, Scene { coded, ..SCENE });
        }
    }
}

#[test]
fn losses_reordering_and_duplicates_end_in_the_servers_world() {
    let line = Line { loss: 0.2, duplicates: 0.1, delay: (1, 9), false_losses: 0.1 };
    for coded in CODED {
        for seed in 10..22 {
            run(seed, Scene { line, coded, ..SCENE });
        }
    }
    // Where much is in flight for long.
    let line = Line { loss: 0.3, duplicates: 0.1, delay: (5, 60), false_losses: 0.2 };
    for coded in CODED {
        for seed in 30..36 {
            run(seed, Scene { line, changing: 1.0, objects: 20, coded, ..SCENE });
        }
    }
}

#[test]
fn short_budgets_show_less_often_and_never_what_was_not() {
    let line = Line { loss: 0.1, duplicates: 0.05, delay: (1, 4), false_losses: 0.05 };
    for coded in CODED {
        for seed in 50..58 {
            run(seed, Scene { line, budget: (300, 6_000), changing: 0.8, coded, ..SCENE });
        }
    }
}

/// What a client gets when others have other things, and there are things that are relevant to nobody.
fn transcript(others: u64, coded: u8) -> Vec<u8> {
    let classes = coded_classes(coded);
    let (mut rng, mut elsewhere, mut world) = (Rng::seeded(7), Rng::seeded(others), World::new(&classes));
    let line = Line { loss: 0.1, duplicates: 0.0, delay: (1, 4), false_losses: 0.05 };
    let mut clients = [Client::new(0, &classes, line, 1), Client::new(1, &classes, line, others)];
    clients.iter().for_each(|client| world.publisher.add_peer(client.handle));
    let [ours, other] = [clients[0].handle, clients[1].handle];
    // By uid: rows are others each time.
    let (mut relevant, mut next) = ([Vec::new(), Vec::new()], 1);
    for now in 0..150 {
        clients.iter_mut().for_each(|client| client.notify(now, &mut world.publisher));
        for (class, relevant) in relevant.iter_mut().enumerate() {
            for _ in 0..elsewhere.below(3) {
                if let Some(row) =
                    world.spawn(class, Some(other), Some(1_000_000 + now as u32), &mut elsewhere)
                {
                    world.publisher.enter(other, class, row);
                }
            }
            let rows: Vec<u32> = world.rows[class].keys().copied().collect();
            for row in rows {
                if world.rows[class][&row] >= 1_000_000 && elsewhere.chance(0.05) {
                    world.despawn(class, row);
                } else if world.rows[class][&row] >= 1_000_000 {
                    world.write(class, row, 1, &mut elsewhere);
                }
            }
            if rng.chance(0.7) && relevant.len() < 60 {
                let owner = rng.chance(0.5).then_some(ours);
                let row = world.spawn(class, owner, Some(next), &mut rng).unwrap();
                next += 1;
                world.publisher.enter(ours, class, row);
                relevant.push(row);
            }
            let of = world.class(class);
            for at in (0..relevant.len()).rev() {
                let row = relevant[at];
                match rng.below(40) {
                    0 => {
                        world.despawn(class, row);
                        relevant.swap_remove(at);
                    }
                    1 => assert!(
                        world.publisher.leave(ours, class, row) || !world.publisher.has(ours, class, row)
                    ),
                    2 => drop(world.publisher.enter(ours, class, row)),
                    3..10 => {
                        let property = 1 + rng.below(of.properties.each().len() as u64 - 1) as usize;
                        world.write(class, row, property, &mut rng);
                    }
                    _ => {}
                }
            }
        }
        world.begin_tick();
        let budget = 500 + rng.below(3_000) as usize;
        clients[0].send(now, &mut world.publisher, budget, 2_000);
        clients[1].send(now, &mut world.publisher, 1 + elsewhere.below(9_000) as usize, 2_000);
        clients.iter_mut().for_each(|client| client.receive(now));
    }
    clients[0].transcript.clone()
}

#[test]
fn what_is_not_relevant_to_a_client_changes_no_byte_of_what_it_gets() {
    for coded in CODED {
        let first = transcript(1, coded);
        assert!(first.len() > 10_000);
        assert!(transcript(2, coded) == first && transcript(3, coded) == first);
    }
}

/// A property that a client doesn't get, or gets only with creates, is due for nobody else.
#[test]
fn changes_of_what_a_client_may_not_see_cost_it_nothing() {
    let classes = coded_classes(0b01);
    let (mut rng, mut world) = (Rng::seeded(3), World::new(&classes));
    let mut clients = [Client::new(0, &classes, GOOD, 1), Client::new(1, &classes, GOOD, 2)];
    clients.iter().for_each(|client| world.publisher.add_peer(client.handle));
    let row = world.spawn(1, Some(clients[0].handle), None, &mut rng).unwrap();
    clients.iter().for_each(|client| assert!(world.publisher.enter(client.handle, 1, row)));
    for now in 0..100 {
        clients.iter_mut().for_each(|client| client.notify(now, &mut world.publisher));
        let due = |world: &World| clients.each_ref().map(|client| world.publisher.due(client.handle));
        world.begin_tick();
        if now > 20 {
            // ammo, which its owner gets; pose, which others get; name and model, which creates have.
            let property = [4, 5, 3, 6][now as usize % 4];
            let expected = [[1, 0], [0, 1], [0, 0], [0, 0]][now as usize % 4];
            world.write(1, row, property, &mut rng);
            let before = due(&world);
            world.begin_tick();
            let after = due(&world);
            assert_eq!([after[0] - before[0], after[1] - before[1]], expected, "property {property}");
        }
        for client in &mut clients {
            client.send(now, &mut world.publisher, 10_000, 9_000);
            client.receive(now + 2);
            client.take(&world);
        }
    }
}
