//! Payloads that nobody wrote, or that were changed on their way, and clients that read them.

use tickwire::rng::{Entropy, Rng};

use super::client::{Client, Line};
use super::world::World;
use super::{CODED, SCENE, Scene, live, run};
use crate::fuzz_targets::ghosts::{CHOSEN, Fed, coded_classes};

const LINE: Line = Line { loss: 0.1, duplicates: 0.1, delay: (1, 5), false_losses: 0.1 };

/// What a client is sent.
type Payloads = Vec<(usize, Vec<u8>)>;

/// Packets as a server sends them, some with a few bits turned, cut short or out of order, and some that nobody wrote.
#[test]
fn no_payload_breaks_a_client() {
    for coded in CODED {
        let scene = Scene { line: LINE, clients: 1, ticks: 60, objects: 20, coded, ..SCENE };
        damage(coded, &run(70, scene)[0].payloads());
    }
}

/// The same, where the game chooses of which ghosts a client is sent all, and changes its mind.
#[test]
fn no_payload_breaks_a_client_that_is_chosen() {
    for coded in CODED {
        let coded = coded | CHOSEN;
        damage(coded, &sent_to_the_chosen(coded));
    }
}

/// Of clients that come together, so that what the models learn is of many ghosts.
fn sent_to_the_chosen(coded: u8) -> Payloads {
    let classes = coded_classes(coded);
    let (mut rng, mut world) = (Rng::seeded(71), World::new(&classes));
    let mut clients = [0, 1].map(|slot| Client::new(slot, &classes, LINE, u64::from(slot)));
    clients.iter().for_each(|client| world.publisher.add_peer(client.handle));
    let mut chosen = vec![0; 300];
    for now in 1..80 {
        clients.iter_mut().for_each(|client| client.notify(now, &mut world.publisher));
        live(&mut world, &clients, &Scene { objects: 20, ..SCENE }, &mut rng);
        for row in &mut chosen {
            *row ^= u8::from(rng.chance(0.03));
        }
        world.begin_tick();
        for client in &mut clients {
            world.publisher.set_chosen(client.handle, 1, &chosen);
            client.send(now, &mut world.publisher, 100_000, 9_000);
            client.receive(now);
        }
    }
    clients[0].payloads()
}

fn damage(coded: u8, payloads: &[(usize, Vec<u8>)]) {
    let (mut broken, mut whole) = (0, 0);
    for seed in 0..300 {
        let (mut rng, mut fed) = (Rng::seeded(seed), Fed::new(coded_classes(coded)));
        let turned = [0.0, 0.02, 0.2][seed as usize % 3];
        let from = rng.below(payloads.len() as u64 / 2) as usize;
        let from = if seed % 2 == 0 { 0 } else { from };
        whole += 1;
        for (bits, bytes) in &payloads[from..] {
            let (mut bits, mut bytes) = (*bits, bytes.clone());
            if turned > 0.0 && rng.chance(0.02) {
                continue;
            }
            if rng.chance(turned) {
                match rng.below(4) {
                    0 => bits = rng.below(bits as u64 + 1) as usize,
                    1 => rng.fill(&mut bytes[2..]),
                    _ => {
                        for _ in 0..1 + rng.below(3) {
                            let at = rng.below(bits as u64) as usize;
                            bytes[at / 8] ^= 1 << (at % 8);
                        }
                    }
                }
            }
            if !fed.feed(&bytes, 0, bits) {
                (broken, whole) = (broken + 1, whole - 1);
                break;
            }
            if rng.chance(0.3) {
                fed.take();
            }
        }
        fed.take();
    }
    assert!(broken > 50 && whole > 50, "{broken} {whole} of {coded}");
}
