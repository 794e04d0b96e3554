//! How long ghosts wait under a small packet, a budget, or a long round trip.

use std::collections::VecDeque;

use super::*;
use crate::rng::Rng;

/// Two classes of ghosts that one client has.
fn two_classes(each: u32) -> (Publisher, Mirror) {
    let class = |name| {
        let properties = Properties::new(Schema::new([("x", Kind::Bits { bits: 32 })]).unwrap()).unwrap();
        Arc::new(GhostClass::new(name, properties, [Condition::Always], each).unwrap())
    };
    let classes = Arc::new(Classes::new([class("Dot"), class("Line")]).unwrap());
    let mut publisher = Publisher::new(classes.clone(), PublisherConfig { channel: 3, seed: 0 });
    publisher.add_peer(ONE);
    for class in 0..2 {
        for row in 0..each {
            assert_eq!(publisher.spawn(class, None), Ok(row));
            assert!(publisher.enter(ONE, class, row));
        }
    }
    (publisher, Mirror::new(classes))
}

/// Runs ticks in which each of many ghosts changes, too many for a packet; returns the maximum age of the client's
/// oldest state.
fn worst_wait(each: u32, ticks: u32, room: usize, budget: Option<usize>) -> u32 {
    let (mut publisher, mut mirror) = two_classes(each);
    let (mut had, mut worst) = (vec![(0, 0); 2 * each as usize], 0);
    for now in 1..ticks {
        let values = (0..each).map(|row| (now * 7919 + row).wrapping_mul(0x9E37_79B9));
        let bytes: Vec<u8> = values.flat_map(|value| value.to_le_bytes()).collect();
        let column = Column { cells: &bytes, scan: true };
        publisher.begin_tick(&[[column], [column]], &mut Vec::new());
        if let Some(budget) = budget {
            publisher.choose(ONE, budget);
        }
        let mut writer = BitWriter::new();
        if let Some(record) = publisher.fill(ONE, 3, room, &mut writer) {
            assert!(writer.bit_len() <= room);
            let bits = writer.bit_len();
            mirror.handle_payload(BitReader::with_range(writer.as_bytes(), 0, bits)).unwrap();
            publisher.handle_notification(ONE, record, true);
        }
        for (i, (tick, at)) in (0..).zip(&mut had) {
            let newest = mirror.tick_of((i / each) as usize, i % each);
            if newest != *tick {
                (*tick, *at) = (newest, now);
            }
            worst = worst.max(now - *at);
        }
    }
    worst
}

#[test]
fn what_a_packet_has_no_room_for_goes_first_in_the_next() {
    // About a fifth fits a packet, whatever was estimated.
    let room = 3_000;
    for budget in [Some(room / 2), Some(2 * room), Some(10 * room), Some(usize::MAX >> 8), None] {
        let worst = worst_wait(200, 200, room, budget);
        assert!(worst < 40, "a state of {worst} ticks ago with a budget of {budget:?}");
    }
}

#[test]
fn a_budget_of_less_than_a_record_sends_one() {
    let worst = worst_wait(5, 200, 3_000, Some(1));
    assert!(worst < 30, "{worst}");
    assert_eq!(worst_wait(5, 20, 3_000, Some(0)), 19, "nothing is nothing");
}

/// Bits of the only ghost's create head.
const CREATE: u64 = 5;

/// How many creates and packets an ever-changing ghost takes when acks come after this many ticks.
fn creates_and_packets(rtt: u32, ticks: u32) -> (u64, u32) {
    let mut publisher = publisher(1);
    let row = publisher.spawn(0, None).unwrap();
    publisher.enter(ONE, 0, row);
    let mut mirror = Mirror::new(publisher.classes().clone());
    let (mut under_way, mut sent) = (VecDeque::<(u32, u32, usize, Vec<u8>)>::new(), 0);
    for now in 0..ticks + 2 * rtt {
        while under_way.front().is_some_and(|(at, ..)| at + rtt <= now) {
            let (_, record, bits, bytes) = under_way.pop_front().unwrap();
            mirror.handle_payload(BitReader::with_range(&bytes, 0, bits)).unwrap();
            publisher.handle_notification(ONE, record, true);
        }
        tick(&mut publisher, &[now.min(ticks).wrapping_mul(0x9E37_79B9)]);
        for (record, bits, bytes) in packets(&mut publisher, ONE, 9000) {
            under_way.push_back((now, record, bits, bytes));
            sent += 1;
        }
    }
    let mut cells = [[0; 4]; 1];
    mirror.take(&mut [[cells.as_flattened_mut()]], &mut Vec::new());
    assert_eq!(u32::from_le_bytes(cells[0]), ticks.wrapping_mul(0x9E37_79B9), "rtt {rtt}");
    (publisher.costs().classes[0].creates / CREATE, sent)
}

#[test]
fn on_a_long_line_only_the_first_records_are_whole() {
    for (rtt, least) in [(5, 590), (16, 590), (30, 590), (40, 460), (100, 190)] {
        let (creates, packets) = creates_and_packets(rtt, 600);
        println!("rtt {rtt}: {creates} creates in {packets} packets");
        assert!(creates <= u64::from(rtt) + 1 && packets >= least, "rtt {rtt}: {creates} of {packets}");
    }
}

#[test]
fn what_always_changes_and_is_seldom_sent_goes_as_updates() {
    let mut publisher = publisher(1);
    let row = publisher.spawn(0, None).unwrap();
    publisher.enter(ONE, 0, row);
    let mut mirror = Mirror::new(publisher.classes().clone());
    for now in 0..2_000u32 {
        tick(&mut publisher, &[now]);
        if now % 100 == 0 {
            for (record, bits, bytes) in packets(&mut publisher, ONE, 9000) {
                mirror.handle_payload(BitReader::with_range(&bytes, 0, bits)).unwrap();
                publisher.handle_notification(ONE, record, true);
            }
        }
    }
    assert_eq!(publisher.costs().classes[0].creates / CREATE, 1);
}

#[test]
fn the_least_room_has_room_for_many_texts() {
    let texts = (0..40).map(|i| (format!("text_{i}"), Kind::Text { max_bytes: 5 }));
    let properties = Properties::new(Schema::new(texts).unwrap()).unwrap();
    let (size, each) = (properties.schema().row_size(), properties.schema().fields().to_vec());
    let class = GhostClass::new("Texts", properties, [Condition::Always; 40], 1).unwrap();
    let classes = Arc::new(Classes::new([Arc::new(class)]).unwrap());
    let mut publisher = Publisher::new(classes, PublisherConfig { channel: 3, seed: 0 });
    publisher.add_peer(ONE);
    let row = publisher.spawn(0, None).unwrap();
    publisher.enter(ONE, 0, row);
    for (property, field) in each.iter().enumerate() {
        let (mut body, at) = (vec![0; size], field.offset());
        body[at..at + 8].copy_from_slice(&[(size as u32).to_le_bytes(), 5u32.to_le_bytes()].concat());
        body.extend_from_slice(b"abcde");
        publisher.set_cell(0, row, property, &body).unwrap();
    }
    publisher.begin_tick(&[[Column::default(); 40]], &mut Vec::new());
    let least = publisher.wants().next().unwrap().1;
    assert_eq!(packets(&mut publisher, ONE, least).len(), 1);
}

/// A client keeps what it was sent in some ticks only, to read what is coded. A packet that arrives when it keeps what that names no
/// more doesn't count as read, however many others overtook it.
#[test]
fn a_coded_packet_overtaken_by_any_many_is_read_or_sent_again() {
    const ROWS: u32 = 64;
    let (mut skipped, mut read) = (0, 0);
    for (delay, seed) in
        [20, 60, 100, 140, 200, 400, 700].into_iter().flat_map(|delay| [(delay, 1), (delay, 2)])
    {
        let properties = Properties::new(Schema::new([("x", Kind::Bits { bits: 32 })]).unwrap()).unwrap();
        let class = GhostClass::new("Dot", properties, [Condition::Always], ROWS).unwrap().with_coding(true);
        let classes = Arc::new(Classes::new([Arc::new(class)]).unwrap());
        let mut publisher = Publisher::new(classes.clone(), PublisherConfig { channel: 3, seed: 0 });
        let (mut mirror, mut rng) = (Mirror::new(classes), Rng::seeded(seed));
        publisher.add_peer(ONE);
        for row in 0..ROWS {
            assert!(publisher.spawn(0, None) == Ok(row) && publisher.enter(ONE, 0, row));
        }
        // Each is seldom sent, so that few records of it are under way whatever is late.
        let mut cells = [0u32; ROWS as usize];
        let mut under_way = VecDeque::<(u32, u32, bool, usize, Vec<u8>)>::new();
        for now in 0..2_500u32 {
            let arrived = under_way.iter_mut().filter(|(at, ..)| *at == now);
            for (_, _, arrives, bits, bytes) in arrived {
                if *arrives {
                    mirror.handle_payload(BitReader::with_range(bytes, 0, *bits)).unwrap();
                }
            }
            // Their fates are known in order.
            while under_way.front().is_some_and(|(at, ..)| *at <= now) {
                let (_, record, arrives, ..) = under_way.pop_front().unwrap();
                publisher.handle_notification(ONE, record, arrives);
            }
            // The first ones change with what is late, and then not for long.
            let changes = |row: &u32| {
                if *row < 8 { [250, 1_000].contains(&now) } else { (now + row).is_multiple_of(32) }
            };
            for row in (0..ROWS).filter(|row| now < 2_000 && changes(row)) {
                cells[row as usize] = rng.below(1 << 32) as u32;
            }
            tick(&mut publisher, &cells);
            for (record, bits, bytes) in packets(&mut publisher, ONE, 9000) {
                let (late, arrives) = (now < 1_000 && now % 500 == 250, now >= 2_000 || rng.chance(0.97));
                let at = now + if late { delay } else { 1 + rng.below(4) as u32 };
                under_way.push_back((at, record, arrives || late, bits, bytes));
            }
        }
        let mut shown = [[0; 4]; ROWS as usize];
        mirror.take(&mut [[shown.as_flattened_mut()]], &mut Vec::new());
        assert_eq!(shown.map(u32::from_le_bytes), cells, "delay {delay}");
        let counters = mirror.counters();
        (skipped, read) = (skipped + counters.skipped, read + counters.records);
    }
    assert!(skipped > 4 && read > 10_000, "{skipped} of {read} skipped");
}
