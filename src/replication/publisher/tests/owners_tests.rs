//! What others see of a change of owner, and of properties that only owners get.

use super::*;

/// A world of one ghost, with a secret.
fn secretive(condition: Condition, coded: bool) -> Publisher {
    let fields = [("x", Kind::Bits { bits: 32 }), ("secret", Kind::Bits { bits: 32 })];
    let properties = Properties::new(Schema::new(fields).unwrap()).unwrap();
    let class = GhostClass::new("Dot", properties, [Condition::Always, condition], 1).unwrap();
    let classes = Arc::new(Classes::new([Arc::new(class.with_coding(coded))]).unwrap());
    let mut publisher = Publisher::new(classes, PublisherConfig { channel: 3, seed: 0 });
    publisher.add_peer(ONE);
    publisher.add_peer(OTHER);
    publisher
}

/// What a client that owns nothing and wasn't chosen is sent, while the secret of the client that was chosen changes each tick or never.
fn bytes_of_others(secret: bool, condition: Condition, coded: bool) -> Vec<(usize, Vec<u8>)> {
    let mut publisher = secretive(condition, coded);
    let row = publisher.spawn(0, Some(ONE)).unwrap();
    assert!(publisher.enter(ONE, 0, row) && publisher.enter(OTHER, 0, row));
    let mut found = Vec::new();
    for now in 0..800u32 {
        let cells = [now / 40, if secret { now } else { 0 }].map(u32::to_le_bytes);
        let columns = [0, 1].map(|i| Column { cells: &cells[i], scan: true });
        publisher.begin_tick(&[columns], &mut Vec::new());
        publisher.set_chosen(ONE, 0, &[1]);
        publisher.set_chosen(OTHER, 0, &[0, 1]);
        for peer in [ONE, OTHER] {
            for (record, bits, bytes) in packets(&mut publisher, peer, 9000) {
                publisher.handle_notification(peer, record, true);
                if peer == OTHER {
                    found.push((bits, bytes));
                }
            }
        }
    }
    found
}

#[test]
fn a_secret_is_nothing_that_others_could_tell() {
    for condition in [Condition::OwnerOnly, Condition::Chosen] {
        for coded in [false, true] {
            let [quiet, busy] = [false, true].map(|secret| bytes_of_others(secret, condition, coded));
            assert_eq!(quiet.len(), 20);
            assert!(quiet == busy, "{condition:?} {coded}");
        }
    }
}

/// Delivers everything due to a client; returns the number of packets.
fn deliver(publisher: &mut Publisher, mirror: &mut Mirror) -> usize {
    let packets = packets(publisher, ONE, 9000);
    for (record, bits, bytes) in &packets {
        mirror.handle_payload(BitReader::with_range(bytes, 0, *bits)).unwrap();
        publisher.handle_notification(ONE, *record, true);
    }
    packets.len()
}

#[test]
fn a_second_packet_of_a_tick_is_not_of_the_next_life() {
    let mut publisher = publisher(1);
    let mut mirror = Mirror::new(publisher.classes().clone());
    let row = publisher.spawn(0, None).unwrap();
    publisher.enter(ONE, 0, row);
    tick(&mut publisher, &[1]);
    deliver(&mut publisher, &mut mirror);
    // Another owner, while the tick's state is in flight.
    publisher.set_owner(0, row, Some(ONE));
    deliver(&mut publisher, &mut mirror);
    tick(&mut publisher, &[1]);
    deliver(&mut publisher, &mut mirror);
    assert!(mirror.owns(0, 0));
    // The next ghost gets the same id, in the tick of the end.
    publisher.despawn(0, row);
    tick(&mut publisher, &[1]);
    deliver(&mut publisher, &mut mirror);
    assert!(!mirror.is_alive(0, 0));
    let row = publisher.spawn(0, None).unwrap();
    assert!(publisher.enter(ONE, 0, row));
    deliver(&mut publisher, &mut mirror);
    tick(&mut publisher, &[9]);
    deliver(&mut publisher, &mut mirror);
    assert!(mirror.is_alive(0, 0) && mirror.tick_of(0, 0) == mirror.tick());
    // It left and came back, and its state was kept.
    publisher.leave(ONE, 0, row);
    tick(&mut publisher, &[9]);
    deliver(&mut publisher, &mut mirror);
    assert!(publisher.enter(ONE, 0, row));
    deliver(&mut publisher, &mut mirror);
    assert_eq!((publisher.due(ONE), mirror.is_alive(0, 0)), (1, false));
    tick(&mut publisher, &[9]);
    deliver(&mut publisher, &mut mirror);
    assert_eq!((publisher.due(ONE), mirror.is_alive(0, 0)), (0, true));
}

#[test]
fn orphans_are_the_rows_of_owners_that_left() {
    let mut publisher = publisher(4);
    let rows = [Some(ONE), Some(OTHER), Some(ONE), None].map(|owner| publisher.spawn(0, owner).unwrap());
    publisher.set_owner(0, rows[0], Some(OTHER));
    publisher.despawn(0, rows[1]);
    assert!(publisher.owned(OTHER, 0).eq([rows[0]]) && publisher.owned(ONE, 0).eq([rows[2]]));
    publisher.remove_peer(OTHER);
    assert!(publisher.take_orphans().eq([(0, rows[0])]));
    assert_eq!((publisher.owner(0, rows[0]), publisher.owner(0, rows[2])), (None, Some(ONE)));
    assert_eq!((publisher.take_orphans().count(), publisher.owned(OTHER, 0).count()), (0, 0));
}

#[test]
fn a_client_that_is_gone_owns_nothing() {
    let mut publisher = publisher(2);
    publisher.remove_peer(OTHER);
    let (row, none) = (publisher.spawn(0, Some(OTHER)).unwrap(), publisher.spawn(0, None).unwrap());
    assert!(publisher.set_owner(0, none, Some(OTHER)));
    assert_eq!((publisher.owner(0, row), publisher.owner(0, none)), (None, None));
}

#[test]
fn a_ghost_named_ahead_comes_with_its_tick_whoever_it_is_then_for() {
    for condition in [Condition::Chosen, Condition::OwnerOnly] {
        let by_choice = condition == Condition::Chosen;
        let mut publisher = secretive(condition, false);
        let mut mirror = Mirror::new(publisher.classes().clone());
        let row = publisher.spawn(0, None).unwrap();
        // A message names it before its first tick, and only then it is the client's.
        assert!(publisher.enter_ahead(ONE, 0, row));
        assert!(publisher.name(ONE, 0, row).is_some());
        if !by_choice {
            publisher.set_owner(0, row, Some(ONE));
        }
        publisher.begin_tick(&[[Column { cells: &7u32.to_le_bytes(), scan: true }; 2]], &mut Vec::new());
        if by_choice {
            publisher.set_chosen(ONE, 0, &[1]);
        }
        assert_eq!((deliver(&mut publisher, &mut mirror), mirror.is_alive(0, 0)), (1, true), "{by_choice}");
        assert_eq!((mirror.owns(0, 0), publisher.due(ONE)), (!by_choice, 0));
    }
}
