//! A fixed amount of an endpoint's work, for programs that count instructions: `count busy 64 60` gives 64 clients 60 ticks in
//! which everybody sends, `count idle 1000 60` ticks in which nobody does, and `count woken 1000 60` ticks in which nobody
//! does but one, for whom the server wakes fifteen times a tick.

use world::World;

mod world;

fn main() {
    // Cargo adds `--bench`, which says nothing here.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let [kind, clients, ticks] = &args[..] else { return };
    let busy = kind == "busy";
    let woken = kind == "woken";
    assert!(busy || woken || kind == "idle", "{kind}: busy, idle or woken");
    let mut world = World::connected(clients.parse().expect("a number of clients"));
    for _ in 0..ticks.parse().expect("a number of ticks") {
        world.tick(busy);
        if woken {
            for _ in 0..15 {
                world.wake();
            }
        }
    }
}
