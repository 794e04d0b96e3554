use super::*;
use crate::replication::class::{Condition, GhostClass};
use crate::wire::{BitSink, BitWriter, Kind, Properties, ReadError, Schema};

fn mirror() -> Mirror {
    mirror_of(100)
}

/// One class with a byte, and a text that only creates have.
fn mirror_of(capacity: u32) -> Mirror {
    let fields = [("x", Kind::Bits { bits: 8 }), ("name", Kind::Text { max_bytes: 3 })];
    let properties = Properties::new(Schema::new(fields).unwrap()).unwrap();
    let conditions = [Condition::Always, Condition::Initial];
    let class = GhostClass::new("Dot", properties, conditions, capacity).unwrap();
    Mirror::new(Arc::new(Classes::new([Arc::new(class)]).unwrap()))
}

/// A packet of one section.
fn packet(tick: u64, write: impl FnOnce(&mut BitWriter)) -> (usize, Vec<u8>) {
    let mut bits = BitWriter::new();
    // The tick and no visit.
    bits.bits(tick, 17);
    bits.bool(true);
    write(&mut bits);
    bits.bits(0, 2);
    (bits.bit_len(), bits.into_bytes())
}

fn create(bits: &mut BitWriter, x: u64, name: &str) {
    // The first id, a create, owned by another.
    bits.bits(0b01011, 5);
    bits.bits(x, 8);
    bits.string(name, 3);
}

fn update(bits: &mut BitWriter, age: u64, x: u64, base: u64) {
    // The first id, an update, no older state, a mask of the first property.
    bits.bits(0b111, 3);
    bits.bits(0b00, 2);
    bits.bits(age - 1, 6);
    bits.bits(0b0100, 4);
    let schema = Schema::new([("x", Kind::Bits { bits: 8 })]).unwrap();
    Properties::new(schema).unwrap().each()[0].write_delta(&[x], &[base], bits);
}

fn feed(mirror: &mut Mirror, (bits, bytes): (usize, Vec<u8>)) -> Result<(), Violation> {
    mirror.handle_payload(BitReader::with_range(&bytes, 0, bits))
}

fn take(mirror: &mut Mirror, x: &mut [u8]) -> Vec<GhostEventKind> {
    let mut events = Vec::new();
    mirror.take(&mut [[x, &mut []]], &mut events);
    assert!(events.iter().all(|event| (event.class, event.id) == (0, 0)));
    events.iter().map(|event| event.kind).collect()
}

#[test]
fn the_newest_tick_is_shown_however_packets_arrive() {
    let (mut mirror, mut x) = (mirror(), [0]);
    feed(&mut mirror, packet(10, |bits| create(bits, 5, "a"))).unwrap();
    assert_eq!((take(&mut mirror, &mut x), x), (vec![GhostEventKind::Spawned], [5]));
    feed(&mut mirror, packet(14, |bits| update(bits, 4, 7, 5))).unwrap();
    feed(&mut mirror, packet(12, |bits| update(bits, 2, 6, 5))).unwrap();
    assert_eq!((take(&mut mirror, &mut x), x), (vec![GhostEventKind::Changed { mask: 1 }], [7]));
    // A late state can be a baseline all the same.
    feed(&mut mirror, packet(16, |bits| update(bits, 4, 9, 6))).unwrap();
    assert_eq!((take(&mut mirror, &mut x), x), (vec![GhostEventKind::Changed { mask: 1 }], [9]));
    // Against the newest, with the step before it: it came late, so tick 16's isn't one of them.
    let newest = |bits: &mut BitWriter, depth: u64, linear: u64, x: u64, base: u64| {
        bits.bits(0b10111 | depth << 5, 7);
        bits.bits(0b010, 3);
        bits.bits(linear, u32::from(depth > 0));
        let schema = Schema::new([("x", Kind::Bits { bits: 8 })]).unwrap();
        Properties::new(schema).unwrap().each()[0].write_delta(&[x], &[base], bits);
    };
    feed(&mut mirror, packet(17, |bits| newest(bits, 1, 1, 12, 11))).unwrap();
    assert_eq!((take(&mut mirror, &mut x), x), (vec![GhostEventKind::Changed { mask: 1 }], [12]));
    feed(&mut mirror, packet(15, |bits| newest(bits, 2, 0, 8, 7))).unwrap();
    feed(&mut mirror, packet(18, |bits| update(bits, 3, 20, 8))).unwrap();
    assert_eq!((take(&mut mirror, &mut x), x), (vec![GhostEventKind::Changed { mask: 1 }], [20]));
    // The end, and an update sent before it.
    feed(&mut mirror, packet(20, |bits| bits.bits(0b0011, 4))).unwrap();
    feed(&mut mirror, packet(19, |bits| create(bits, 1, "b"))).unwrap();
    feed(&mut mirror, packet(18, |bits| update(bits, 2, 1, 9))).unwrap();
    assert_eq!(take(&mut mirror, &mut x), [GhostEventKind::Despawned]);
    assert_eq!((mirror.is_alive(0, 0), mirror.counters().skipped), (false, 2));
}

#[test]
fn ghosts_without_a_cell_wait() {
    let (mut mirror, mut x) = (mirror(), [0]);
    feed(&mut mirror, packet(10, |bits| create(bits, 5, "abc"))).unwrap();
    assert_eq!((take(&mut mirror, &mut []), mirror.rows(0)), (vec![GhostEventKind::Spawned], 1));
    assert_eq!((take(&mut mirror, &mut x), x), (vec![GhostEventKind::Changed { mask: 3 }], [5]));
    assert!(mirror.value(0, 0, 1).is_some() && mirror.value(0, 0, 0).is_none());
    assert!(take(&mut mirror, &mut x).is_empty());
}

#[test]
fn what_breaks_the_protocol_is_named() {
    let broken = |packet: (usize, Vec<u8>)| {
        let mut mirror = mirror();
        feed(&mut mirror, self::packet(10, |bits| create(bits, 5, "a"))).unwrap();
        feed(&mut mirror, packet).unwrap_err()
    };
    assert_eq!(broken(packet(14, |bits| update(bits, 3, 7, 5))), Violation::Baseline { class: 0, id: 0 });
    // A state before the only one.
    let deep = packet(14, |bits| bits.bits(0b01_0011_0111, 11));
    assert_eq!(broken(deep), Violation::Baseline { class: 0, id: 0 });
    assert_eq!(broken(packet(14, |bits| bits.bits(1 | 200 << 5, 21))), Violation::Form);
    assert_eq!(broken(packet(14, |bits| bits.bits(1 | 1200 << 5, 21))), Violation::Id { class: 0, id: 1200 });
    let (bits, mut bytes) = packet(14, |bits| bits.bits(0b0011, 4));
    bytes.push(0);
    assert_eq!(broken((bits + 1, bytes.clone())), Violation::Trailing { bits: 1 });
    assert_eq!(broken((bits - 1, bytes)), Violation::Read(ReadError::PastEnd { needed: 1, remaining: 0 }));
    let name = packet(14, |bits| {
        bits.bits(0b01011, 5);
        bits.bits(0, 8);
        bits.data(b"a\0", 3);
    });
    assert_eq!(broken(name), Violation::Read(ReadError::InteriorNul));
}

/// As many ghosts as there are ids, in time linear in their number.
#[test]
fn what_came_and_went_is_not_told_of() {
    const IDS: u32 = 1 << 16;
    let (mut mirror, mut x, mut events) = (mirror_of(IDS), vec![0; IDS as usize], Vec::new());
    let of = |id, kind| GhostEvent { class: 0, id, kind };
    let creates = |tick, ids: u32| packet(tick, move |bits| (0..ids).for_each(|_| create(bits, 5, "a")));
    let destroys = |tick, ids: u32| packet(tick, move |bits| (0..ids).for_each(|_| bits.bits(0b0011, 4)));
    for tick in [10, 20] {
        feed(&mut mirror, creates(tick, IDS)).unwrap();
        feed(&mut mirror, destroys(tick + 1, IDS)).unwrap();
    }
    mirror.take(&mut [[&mut x[..], &mut []]], &mut events);
    assert!(events.is_empty() && !mirror.has_news());
    // Ids reused between two looks of the game, and one that comes and goes after that.
    feed(&mut mirror, creates(30, 2)).unwrap();
    mirror.take(&mut [[&mut x[..], &mut []]], &mut events);
    assert_eq!(
        core::mem::take(&mut events),
        [of(0, GhostEventKind::Spawned), of(1, GhostEventKind::Spawned)]
    );
    feed(&mut mirror, destroys(31, 2)).unwrap();
    feed(&mut mirror, creates(32, 3)).unwrap();
    feed(&mut mirror, destroys(33, 1)).unwrap();
    assert_eq!(mirror.ended().collect::<Vec<_>>(), [(0, 0), (0, 1)]);
    mirror.take(&mut [[&mut x[..], &mut []]], &mut events);
    let (ended, spawned) = (GhostEventKind::Despawned, GhostEventKind::Spawned);
    assert_eq!(events, [of(0, ended), of(1, ended), of(1, spawned), of(2, spawned)]);
}

#[test]
fn an_end_that_comes_before_its_beginning_is_remembered() {
    let mut mirror = mirror();
    feed(&mut mirror, packet(12, |bits| bits.bits(0b0011, 4))).unwrap();
    assert_eq!(mirror.rows(0), 0);
    feed(&mut mirror, packet(11, |bits| create(bits, 5, "a"))).unwrap();
    assert!(!mirror.is_alive(0, 0) && !mirror.has_news());
    feed(&mut mirror, packet(13, |bits| create(bits, 5, "a"))).unwrap();
    assert!(mirror.is_alive(0, 0) && mirror.rows(0) == 1);
}

/// Wherever in a packet the mistake is: ghosts of the records in front of it stay as they are, and none of them comes or goes.
#[test]
fn a_packet_that_is_refused_leaves_nothing() {
    let (mut mirror, mut x) = (mirror(), [0; 3]);
    let mut taken = |mirror: &mut Mirror| {
        let mut events = Vec::new();
        mirror.take(&mut [[&mut x[..], &mut []]], &mut events);
        (events.len(), x)
    };
    feed(&mut mirror, packet(10, |bits| [5, 6].iter().for_each(|x| create(bits, *x, "a")))).unwrap();
    assert_eq!(taken(&mut mirror), (2, [5, 6, 0]));
    let before = mirror.counters();
    let update_of = |bits: &mut BitWriter, x, base| update(bits, 4, x, base);
    // An update of the first, the end of the second, the beginning of a third; then something that isn't allowed.
    let records = |bits: &mut BitWriter| {
        update_of(bits, 7, 5);
        bits.bits(0b0011, 4);
        create(bits, 9, "b");
    };
    let (length, bytes) = packet(14, records);
    for cut in 17..length {
        assert!(feed(&mut mirror, (cut, bytes.clone())).is_err(), "{cut} bits");
        assert_eq!((mirror.tick_of(0, 0), mirror.is_alive(0, 1), mirror.rows(0)), (FIRST_TICK + 10, true, 2));
    }
    let trailing = packet(14, |bits| {
        records(bits);
        bits.bits(0b1, 1);
    });
    assert!(feed(&mut mirror, trailing).is_err());
    let unknown = packet(14, |bits| {
        update_of(bits, 7, 5);
        // Of the next id, against a state that it never had.
        update(bits, 3, 7, 6);
    });
    assert_eq!(feed(&mut mirror, unknown), Err(Violation::Baseline { class: 0, id: 1 }));
    assert!(!mirror.has_news() && mirror.tick() == FIRST_TICK + 10 && mirror.counters() == before);
    assert_eq!(taken(&mut mirror), (0, [5, 6, 0]));
    // And the same without a mistake.
    feed(&mut mirror, (length, bytes)).unwrap();
    assert_eq!(taken(&mut mirror), (3, [7, 6, 9]));
}

#[test]
fn memory_of_a_huge_packet_is_given_back() {
    let fields = (0..900).map(|i| (format!("flag{i}"), Kind::Bool)).collect();
    let properties = Properties::new(Schema::new([("flags", Kind::Nested { fields })]).unwrap()).unwrap();
    let class = GhostClass::new("Wall", properties, [Condition::Always], 100).unwrap();
    let mut mirror = Mirror::new(Arc::new(Classes::new([Arc::new(class)]).unwrap()));
    let ghosts = |bits: &mut BitWriter| {
        for _ in 0..100 {
            bits.bits(0b01011, 5);
            (0..900).for_each(|_| bits.bool(true));
        }
    };
    feed(&mut mirror, packet(10, ghosts)).unwrap();
    assert!(mirror.is_alive(0, 99) && mirror.staged.words.capacity() < 20_000);
}
