use super::*;
use crate::replication::class::{Condition, GhostClass};
use crate::wire::{BitReader, Kind, Properties, Schema};

use crate::replication::mirror::Mirror;

mod crowds_tests;
mod flipped_tests;
mod lines_tests;
mod owners_tests;
mod refused_tests;
mod returning_tests;
mod runs_tests;

const ONE: PeerHandle = PeerHandle { slot: 0, generation: 0 };
const OTHER: PeerHandle = PeerHandle { slot: 1, generation: 0 };

fn publisher(capacity: u32) -> Publisher {
    let schema = Schema::new([("x", Kind::Bits { bits: 32 })]).unwrap();
    let class =
        GhostClass::new("Dot", Properties::new(schema).unwrap(), [Condition::Always], capacity).unwrap();
    let classes = Arc::new(Classes::new([Arc::new(class)]).unwrap());
    let mut publisher = Publisher::new(classes, PublisherConfig { channel: 3, seed: 0 });
    publisher.add_peer(ONE);
    publisher.add_peer(OTHER);
    publisher
}

fn tick(publisher: &mut Publisher, cells: &[u32]) {
    let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
    let mut errors = Vec::new();
    publisher.begin_tick(&[[Column { cells: &bytes, scan: true }]], &mut errors);
    assert_eq!(errors, []);
}

/// The packets that a client is sent in a tick, with their records.
fn packets(publisher: &mut Publisher, peer: PeerHandle, room: usize) -> Vec<(u32, usize, Vec<u8>)> {
    let (mut found, mut writer) = (Vec::new(), BitWriter::new());
    while let Some(record) = publisher.fill(peer, 3, room, &mut writer) {
        found.push((record, writer.bit_len(), writer.as_bytes().to_vec()));
        writer.clear();
    }
    found
}

#[test]
fn clients_with_the_same_baseline_get_the_same_bits() {
    let mut publisher = publisher(9);
    let row = publisher.spawn(0, None).unwrap();
    assert!(publisher.enter(ONE, 0, row) && publisher.enter(OTHER, 0, row));
    assert!(!publisher.enter(ONE, 0, row), "it has it");
    for value in 0..5 {
        tick(&mut publisher, &[value * 1000]);
        let [a, b] = [ONE, OTHER].map(|peer| packets(&mut publisher, peer, 9000));
        assert_eq!((a.len(), &a), (1, &b));
        let uses: Vec<u32> = publisher.caches[0].entries.iter().map(|entry| entry.uses).collect();
        assert_eq!(uses, [2], "encoded once for both");
        publisher.handle_notification(ONE, a[0].0, true);
        publisher.handle_notification(OTHER, b[0].0, true);
    }
    tick(&mut publisher, &[4000]);
    assert_eq!((publisher.wants().count(), packets(&mut publisher, ONE, 9000).len()), (0, 0));
}

#[test]
fn only_what_no_later_packet_carries_goes_again() {
    let mut publisher = publisher(9);
    for _ in 0..2 {
        let row = publisher.spawn(0, None).unwrap();
        publisher.enter(ONE, 0, row);
    }
    tick(&mut publisher, &[1, 1]);
    let first = packets(&mut publisher, ONE, 9000)[0].0;
    // The second row alone.
    tick(&mut publisher, &[1, 2]);
    let second = packets(&mut publisher, ONE, 9000)[0].0;
    publisher.handle_notification(ONE, first, false);
    assert_eq!(publisher.due(ONE), 1, "the first row; the other is under way again");
    publisher.handle_notification(ONE, second, false);
    assert_eq!(publisher.due(ONE), 2);
    // A fate counts once: repeated, or of another client, it changes nothing.
    publisher.handle_notification(ONE, second, true);
    publisher.handle_notification(OTHER, second, false);
    assert_eq!((publisher.due(ONE), publisher.due(OTHER)), (2, 0));
}

#[test]
fn an_id_is_free_again_when_its_end_was_acked() {
    let mut publisher = publisher(9);
    let a = publisher.spawn(0, None).unwrap();
    publisher.enter(ONE, 0, a);
    tick(&mut publisher, &[1]);
    let create = packets(&mut publisher, ONE, 9000)[0].0;
    publisher.handle_notification(ONE, create, true);
    assert!(publisher.despawn(0, a) && !publisher.despawn(0, a));
    let b = publisher.spawn(0, None).unwrap();
    publisher.enter(ONE, 0, b);
    assert_eq!((b, publisher.ghost_id(ONE, 0, b)), (a, Some(1)), "the row is, the id isn't");
    tick(&mut publisher, &[2]);
    let end = packets(&mut publisher, ONE, 9000)[0].0;
    publisher.handle_notification(ONE, end, false);
    assert_eq!(publisher.due(ONE), 2, "both were lost");
    tick(&mut publisher, &[2]);
    let end = packets(&mut publisher, ONE, 9000)[0].0;
    publisher.handle_notification(ONE, end, true);
    let c = publisher.spawn(0, None).unwrap();
    publisher.enter(ONE, 0, c);
    assert_eq!(publisher.ghost_id(ONE, 0, c), Some(0));
    // An object that was never sent needs no destroy.
    assert!(publisher.leave(ONE, 0, c) && !publisher.leave(ONE, 0, c));
    assert_eq!(publisher.due(ONE), 0);
}

#[test]
fn a_short_budget_takes_turns_by_age_and_weight() {
    let mut publisher = publisher(300);
    for _ in 0..200 {
        let row = publisher.spawn(0, None).unwrap();
        publisher.enter(ONE, 0, row);
    }
    // A row with ten times the weight.
    let mut weights = vec![1.0; 200];
    weights[150] = 10.0;
    publisher.set_weights(0, &weights);
    let mut mirror = Mirror::new(publisher.classes().clone());
    let (mut times, mut last) = (vec![0; 200], vec![0; 200]);
    for now in 1..400u32 {
        tick(&mut publisher, &vec![now * 77; 200]);
        publisher.choose(ONE, 300);
        let packets = packets(&mut publisher, ONE, 9000);
        assert!(!packets.is_empty(), "tick {now}");
        for (record, bits, bytes) in packets {
            mirror.handle_payload(BitReader::with_range(&bytes, 0, bits)).unwrap();
            publisher.handle_notification(ONE, record, true);
            assert!(bits < 2_000, "{bits}");
        }
        for id in 0..200 {
            let tick = mirror.tick_of(0, id);
            times[id as usize] += u32::from(tick != last[id as usize]);
            last[id as usize] = tick;
        }
    }
    let (least, most) = (times[..150].iter().min().unwrap(), times[..150].iter().max().unwrap());
    assert!(*least > 15 && most - least < 10, "{least} {most}");
    assert!(times[150] > 3 * most, "{} {most}", times[150]);
}

#[test]
fn only_the_first_destroy_and_one_after_a_loss_go_before_all_else() {
    let mut publisher = publisher(9);
    for _ in 0..3 {
        let row = publisher.spawn(0, None).unwrap();
        publisher.enter(ONE, 0, row);
    }
    for (value, arrives) in [(1, true), (2, false), (3, true)] {
        tick(&mut publisher, &[value; 3]);
        let record = packets(&mut publisher, ONE, 9000)[0].0;
        publisher.handle_notification(ONE, record, arrives);
    }
    publisher.despawn(0, 0);
    let mut last = 0;
    // There is room for one record a tick.
    let destroys = [4, 5, 6, 7, 8, 9].map(|value| {
        if value == 9 {
            publisher.handle_notification(ONE, last, false);
        }
        tick(&mut publisher, &[0, value, value]);
        publisher.choose(ONE, 1);
        let before = publisher.costs().classes[0].destroys;
        last = packets(&mut publisher, ONE, 9000)[0].0;
        publisher.costs().classes[0].destroys > before
    });
    assert_eq!(destroys, [true, false, false, true, false, true], "the copy waited for its turn");
}

#[test]
fn a_client_that_is_gone_takes_its_property_and_its_packets_along() {
    let mut publisher = publisher(9);
    let row = publisher.spawn(0, Some(ONE)).unwrap();
    publisher.enter(ONE, 0, row);
    tick(&mut publisher, &[1]);
    publisher.remove_peer(ONE);
    publisher.remove_peer(ONE);
    assert_eq!((publisher.owner(0, row), publisher.peers().count()), (None, 1));
    assert!(packets(&mut publisher, ONE, 9000).is_empty() && !publisher.enter(ONE, 0, row));
    // The next client in its slot has nothing.
    let next = PeerHandle { generation: 1, ..ONE };
    publisher.add_peer(next);
    assert!(!publisher.has(next, 0, row) && publisher.set_owner(0, row, Some(next)));
    assert!(!publisher.set_owner(0, 7, None));
}

#[test]
fn too_little_room_is_left_alone() {
    let mut publisher = publisher(9);
    let row = publisher.spawn(0, None).unwrap();
    publisher.enter(ONE, 0, row);
    tick(&mut publisher, &[1]);
    let least = publisher.wants().next().unwrap().1;
    for room in 0..50 {
        assert!(packets(&mut publisher, ONE, room).is_empty());
    }
    assert_eq!(publisher.fill(ONE, 2, 9000, &mut BitWriter::new()), None, "another's channel");
    assert_eq!(packets(&mut publisher, ONE, least).len(), 1);
}

#[test]
fn a_client_of_a_quiet_world_keeps_up_with_its_ticks() {
    let mut publisher = publisher(9);
    let row = publisher.spawn(0, None).unwrap();
    publisher.enter(ONE, 0, row);
    let mut mirror = Mirror::new(publisher.classes().clone());
    let (mut sent, mut lost) = (0, 0);
    for step in 0..200_000u32 {
        tick(&mut publisher, &[step / 99_991]);
        if publisher.wants().all(|(peer, _)| peer != ONE) {
            continue;
        }
        for (record, bits, bytes) in packets(&mut publisher, ONE, 9000) {
            // Two of three are lost.
            sent += 1;
            let arrives = sent % 3 == 0;
            lost += u32::from(!arrives);
            if arrives {
                mirror.handle_payload(BitReader::with_range(&bytes, 0, bits)).unwrap();
            }
            publisher.handle_notification(ONE, record, arrives);
        }
    }
    let mut cells = [[0; 4]; 1];
    mirror.take(&mut [[cells.as_flattened_mut()]], &mut Vec::new());
    assert_eq!(u32::from_le_bytes(cells[0]), 2);
    assert!(lost > 10 && sent < 150, "{sent} sent, {lost} lost");
}

#[test]
fn a_client_is_never_given_an_id_beyond_the_capacity() {
    let mut publisher = publisher(1);
    let first = publisher.spawn(0, None).unwrap();
    assert!(publisher.enter(ONE, 0, first));
    tick(&mut publisher, &[1]);
    let create = packets(&mut publisher, ONE, 9000)[0].0;
    publisher.handle_notification(ONE, create, true);
    publisher.despawn(0, first);
    let second = publisher.spawn(0, None).unwrap();
    assert!(!publisher.enter(ONE, 0, second), "the only id is still the first one's");
    tick(&mut publisher, &[2]);
    let end = packets(&mut publisher, ONE, 9000)[0].0;
    assert!(!publisher.enter(ONE, 0, second));
    publisher.handle_notification(ONE, end, true);
    assert!(publisher.enter(ONE, 0, second));
    assert_eq!(publisher.ghost_id(ONE, 0, second), Some(0));
}
