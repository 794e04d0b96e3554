//! Payloads that nobody wrote, or that were changed on their way, and clients that read them.

use tickwire::replication::Mirror;
use tickwire::rng::{Entropy, Rng};
use tickwire::wire::BitReader;

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

/// A client that refuses packets beside one that never got them: what it shows, and how it reads what comes afterwards, is the
/// same.
#[test]
fn a_packet_that_is_refused_leaves_no_trace() {
    for coded in CODED {
        let scene = Scene { line: LINE, clients: 1, ticks: 60, objects: 20, coded, ..SCENE };
        let payloads = run(72, scene)[0].payloads();
        let mut refused = 0;
        for seed in 0..40 {
            refused += refuse(&mut Rng::seeded(seed), coded, &payloads);
        }
        assert!(refused > 100, "{refused} of {coded}");
    }
}

/// Feeds two clients until the protocol is broken; returns how many packets one of them refused.
fn refuse(rng: &mut Rng, coded: u8, payloads: &Payloads) -> u32 {
    let fed = |bits, bytes: &[u8], mirror: &mut Mirror| {
        mirror.handle_payload(BitReader::with_range(bytes, 0, bits))
    };
    let [mut refusing, mut other] = [(); 2].map(|()| Mirror::new(coded_classes(coded)));
    let (mut refused, mut taken) = (0, Vec::<&(usize, Vec<u8>)>::new());
    for payload in payloads {
        let (bits, bytes) = payload;
        if rng.chance(0.3) {
            let mut turned = bytes.clone();
            // Often near the beginning, so that most of the packet is read.
            let within = if rng.chance(0.5) { 60 } else { *bits };
            let at = 16 + rng.below(within.min(*bits) as u64 - 16) as usize;
            turned[at / 8] ^= 1 << (at % 8);
            let mut probe = Mirror::new(coded_classes(coded));
            taken.iter().for_each(|(bits, bytes)| fed(*bits, bytes, &mut probe).unwrap());
            if fed(*bits, &turned, &mut probe).is_err() {
                assert!(fed(*bits, &turned, &mut refusing).is_err());
                refused += 1;
                if rng.chance(0.3) {
                    continue;
                }
            }
        }
        let results = [&mut refusing, &mut other].map(|mirror| fed(*bits, bytes, mirror));
        assert_eq!(results[0], results[1]);
        assert_eq!(state(&refusing), state(&other));
        if results[0].is_err() {
            break;
        }
        taken.push(payload);
    }
    refused
}

/// All that a client knows.
fn state(mirror: &Mirror) -> String {
    let ghosts = (0..mirror.classes().iter().count()).flat_map(|class| {
        (0..mirror.rows(class) as u32).map(move |id| {
            let says = (0..12).map(|property| mirror.value(class, id, property)).collect::<Vec<_>>();
            (mirror.tick_of(class, id), mirror.is_alive(class, id), mirror.group(class, id), says)
        })
    });
    let changing = [0, 1].map(|class| mirror.changing(class).collect::<Vec<_>>());
    format!("{} {:?} {:?} {changing:?}", mirror.tick(), mirror.counters(), ghosts.collect::<Vec<_>>())
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
