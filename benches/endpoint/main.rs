//! One tick of a server: receive a packet of each client, take the messages, queue one for each client, send. Datagrams are
//! handed over in memory, so that all that is timed is the server's own; the clients' work is not.
//!
//! Busy: 64 or 1,000 clients that send and are sent a message in each tick. Idle: none, or a thousand, that say nothing, and of
//! whom a sixth keep alive in a tick. Woken: for one of a thousand, between ticks.

use criterion::{Criterion, criterion_group, criterion_main};

use world::World;

mod world;

fn tick(c: &mut Criterion) {
    for (name, count, busy) in [
        ("tick_of_64_connections", 64, true),
        ("tick_of_1000_connections", 1000, true),
        ("tick_of_0_idle", 0, false),
        ("tick_of_1000_idle", 1000, false),
    ] {
        let mut world = None;
        c.bench_function(&format!("endpoint/{name}"), |b| {
            let world = world.get_or_insert_with(|| World::connected(count));
            b.iter_custom(|iterations| (0..iterations).map(|_| world.tick(busy)).sum());
        });
    }
    let mut world = None;
    c.bench_function("endpoint/wake_for_one_of_1000", |b| {
        let world = world.get_or_insert_with(|| World::connected(1000));
        // Everybody says a word in between, or connections would time out.
        b.iter_custom(|iterations| {
            let wake = |n: u64| {
                if n.is_multiple_of(15) {
                    world.tick(false);
                }
                world.wake()
            };
            (0..iterations).map(wake).sum()
        });
    });
}

criterion_group!(benches, tick);
criterion_main!(benches);
