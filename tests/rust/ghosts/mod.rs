//! Ghosts against a simple model of the world: whatever a link does, what a client shows is what the server had.

mod client;
mod world;

pub(crate) use self::world::class;

use tickwire::endpoint::PeerHandle;
use tickwire::rng::Rng;

use self::client::{Client, GOOD, Line};
use self::world::{World, classes};

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
}

const SCENE: Scene = Scene {
    line: GOOD,
    clients: 3,
    ticks: 200,
    objects: 60,
    changing: 0.3,
    budget: (100_000, 200_000),
    packet: (600, 9_000),
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
    let classes = classes();
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
    for seed in 0..4 {
        run(seed, SCENE);
    }
}

#[test]
fn losses_reordering_and_duplicates_end_in_the_servers_world() {
    let line = Line { loss: 0.2, duplicates: 0.1, delay: (1, 9), false_losses: 0.1 };
    for seed in 10..22 {
        run(seed, Scene { line, ..SCENE });
    }
    // Where much is in flight for long.
    let line = Line { loss: 0.3, duplicates: 0.1, delay: (5, 60), false_losses: 0.2 };
    for seed in 30..36 {
        run(seed, Scene { line, changing: 1.0, objects: 20, ..SCENE });
    }
}

#[test]
fn short_budgets_show_less_often_and_never_what_was_not() {
    let line = Line { loss: 0.1, duplicates: 0.05, delay: (1, 4), false_losses: 0.05 };
    for seed in 50..58 {
        run(seed, Scene { line, budget: (300, 6_000), changing: 0.8, ..SCENE });
    }
}
