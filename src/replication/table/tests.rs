use super::super::class::Condition;
use super::*;
use crate::rng::Rng;
use crate::wire::{Kind, Properties, Schema};

fn class(capacity: u32, fields: Vec<(&str, Kind)>) -> Arc<GhostClass> {
    let properties = Properties::new(Schema::new(fields).unwrap()).unwrap();
    let conditions = vec![Condition::Always; properties.each().len()];
    Arc::new(GhostClass::new("Tank", properties, conditions, capacity).unwrap())
}

fn ranged(hi: i128) -> Kind {
    Kind::Ranged { lo: 0, hi }
}

/// Health of 0..=100 in a byte, ammunition of 0..=999 in two.
fn tanks(capacity: u32) -> Table {
    Table::new(class(capacity, vec![("health", ranged(100)), ("ammo", ranged(999))]), 4)
}

// Cells of `tanks`.
#[derive(Default)]
struct Cells {
    health: Vec<u8>,
    ammo: Vec<u8>,
}

impl Cells {
    fn new(rows: usize) -> Self {
        Cells { health: vec![0; rows], ammo: vec![0; rows * 2] }
    }

    fn set(&mut self, row: u32, health: u8, ammo: u16) {
        self.health[row as usize] = health;
        self.ammo[row as usize * 2..][..2].copy_from_slice(&ammo.to_le_bytes());
    }

    fn update(&self, table: &mut Table, tick: u32) -> Result<(), Wrong> {
        table.update(
            tick,
            &[Column { cells: &self.health, scan: true }, Column { cells: &self.ammo, scan: true }],
        )
    }
}

fn at(table: &Table, row: u32, tick: u32) -> Option<Vec<u64>> {
    let mut words = vec![0; 2];
    table.words_at(row, tick, &mut words).then_some(words)
}

#[test]
fn what_changed_is_found_with_its_tick() {
    let (mut table, mut cells) = (tanks(100), Cells::new(100));
    for row in 0..70 {
        assert_eq!(table.spawn(), Ok(row));
        cells.set(row, row as u8, 500);
    }
    assert!(!table.has_state(3) && !table.words_at(3, 9, &mut []));
    cells.update(&mut table, 10).unwrap();
    assert_eq!(table.changed(), (0..70).collect::<Vec<_>>());
    assert_eq!((table.spawned_at(69), table.newest(69)), (10, &[69, 500][..]));
    cells.update(&mut table, 11).unwrap();
    assert_eq!(table.changed(), [0; 0]);
    cells.set(66, 66, 501);
    cells.set(2, 1, 500);
    cells.update(&mut table, 12).unwrap();
    assert_eq!(table.changed(), [2, 66]);
    assert_eq!([9, 10, 11, 12].map(|tick| table.changed_since(66, tick)), [3, 2, 2, 0]);
    assert_eq!(table.changed_since(2, 11), 1);
    cells.set(66, 67, 501);
    cells.update(&mut table, 15).unwrap();
    assert_eq!(
        [9, 10, 11, 12, 14, 15].map(|tick| at(&table, 66, tick).map(|words| (words[0], words[1]))),
        [None, Some((66, 500)), Some((66, 500)), Some((66, 501)), Some((66, 501)), Some((67, 501))]
    );
}

#[test]
fn a_column_that_nobody_wrote_is_read_for_new_rows_only() {
    let (mut table, mut cells) = (tanks(9), Cells::new(9));
    table.spawn().unwrap();
    cells.set(0, 5, 5);
    let unscanned = |cells: &Cells, table: &mut Table, tick| {
        table
            .update(
                tick,
                &[Column { cells: &cells.health, scan: true }, Column { cells: &cells.ammo, scan: false }],
            )
            .unwrap();
    };
    unscanned(&cells, &mut table, 1);
    assert_eq!(table.newest(0), [5, 5]);
    cells.set(0, 6, 6);
    unscanned(&cells, &mut table, 2);
    assert_eq!((table.newest(0), table.changed_since(0, 1)), (&[6, 5][..], 1));
    cells.update(&mut table, 3).unwrap();
    assert_eq!((table.newest(0), table.changed_since(0, 2)), (&[6, 6][..], 2));
}

#[test]
fn a_wrong_value_keeps_its_rows_last_good_state() {
    let (mut table, mut cells) = (tanks(9), Cells::new(9));
    for row in 0..3 {
        table.spawn().unwrap();
        cells.set(row, 50, 7);
    }
    cells.set(2, 101, 7);
    let error = ValueError::OutOfRange { value: 101, lo: 0, hi: 100 };
    let wrong = cells.update(&mut table, 1);
    assert_eq!(wrong, Err(Wrong { row: 2, property: 0, error }));
    assert_eq!((table.changed(), table.has_state(2)), (&[0, 1][..], false), "a row without a state");
    cells.set(2, 100, 8);
    cells.set(1, 51, 1000);
    let error = ValueError::OutOfRange { value: 1000, lo: 0, hi: 999 };
    let wrong = Wrong { row: 1, property: 1, error };
    assert_eq!(cells.update(&mut table, 2), Err(wrong.clone()));
    assert_eq!((table.changed(), table.newest(1)), (&[2][..], &[50, 7][..]), "all of the row stays");
    assert_eq!(table.spawned_at(2), 2);
    assert_eq!(cells.update(&mut table, 3), Err(wrong), "said until it is mended");
    assert_eq!(table.changed(), [0; 0]);
    cells.set(1, 51, 999);
    cells.update(&mut table, 4).unwrap();
    assert_eq!((table.changed(), table.newest(1), table.changed_since(1, 3)), (&[1][..], &[51, 999][..], 3));
    assert_eq!(cells.update(&mut table, 5), Ok(()));
    // A row that isn't alive may hold any value.
    cells.set(0, 255, 7);
    assert!(table.despawn(0));
    assert_eq!((cells.update(&mut table, 6), table.changed()), (Ok(()), &[][..]));
}

#[test]
fn a_column_that_is_too_short_is_refused_whole() {
    let (mut table, mut cells) = (tanks(9), Cells::new(2));
    (0..3).for_each(|_| _ = table.spawn());
    assert_eq!(cells.update(&mut table, 1), Err(Wrong { row: 2, property: 0, error: ValueError::Row }));
    assert_eq!(table.update(1, &[]), Err(Wrong { row: 0, property: 0, error: ValueError::Row }));
    cells = Cells::new(3);
    assert_eq!((cells.update(&mut table, 2), table.changed()), (Ok(()), &[0, 1, 2][..]));
}

#[test]
fn rows_are_the_lowest_that_nobody_has() {
    let mut table = tanks(130);
    (0..130).for_each(|row| assert_eq!(table.spawn(), Ok(row)));
    assert_eq!(table.spawn(), Err(Full { capacity: 130 }));
    assert!(table.despawn(70) && !table.despawn(70) && !table.despawn(500));
    assert_eq!(table.spawn(), Err(Full { capacity: 130 }), "some peer has it");
    table.release(70);
    table.release(71);
    table.release(500);
    assert!(table.despawn(3));
    table.release(3);
    assert_eq!([table.spawn(), table.spawn()], [Ok(3), Ok(70)]);
    assert_eq!((table.spawn(), table.rows()), (Err(Full { capacity: 130 }), 130));
}

#[test]
fn a_row_that_is_used_again_has_nothing_of_before() {
    let (mut table, mut cells) = (tanks(9), Cells::new(9));
    table.spawn().unwrap();
    for tick in 1..9 {
        cells.set(0, tick, tick.into());
        cells.update(&mut table, tick.into()).unwrap();
    }
    assert_eq!((at(&table, 0, 3), at(&table, 0, 4)), (None, Some(vec![4, 4])), "four are remembered");
    table.despawn(0);
    table.release(0);
    assert_eq!(table.spawn(), Ok(0));
    assert_eq!((at(&table, 0, 8), table.alive().count()), (None, 0));
    cells.update(&mut table, 9).unwrap();
    assert_eq!((at(&table, 0, 8), at(&table, 0, 9), table.changed_since(0, 8)), (None, Some(vec![8, 8]), 3));
    assert_eq!((table.alive().collect::<Vec<_>>(), table.changed()), (vec![0], &[0][..]));
}

#[test]
fn texts_hold_from_the_next_tick_on() {
    let fields = vec![("name", Kind::Text { max_bytes: 5 }), ("health", ranged(100))];
    let class = class(9, fields);
    let schema = class.properties.schema().clone();
    let size = schema.row_size();
    let body = |name: &str| {
        let mut body = vec![0; size];
        body[..8].copy_from_slice(&[(size as u32).to_le_bytes(), (name.len() as u32).to_le_bytes()].concat());
        body.extend(name.as_bytes());
        body
    };
    let mut table = Table::new(class, 4);
    let row = table.spawn().unwrap();
    let health = vec![7; 9];
    let update = |table: &mut Table, tick| {
        let columns = [Column::default(), Column { cells: &health, scan: true }];
        table.update(tick, &columns).map(|()| table.changed_since(row, tick - 1))
    };
    assert_eq!(update(&mut table, 1), Ok(3), "the value of a zero row");
    assert_eq!(table.value(row, 0).map(|value| value.bits()), Some(8));
    assert_eq!(table.set_cell(row, 0, &body("Ada")), Ok(true));
    assert_eq!(table.value(row, 0).map(|value| value.bits()), Some(8), "of the last tick still");
    assert_eq!(table.set_cell(row, 0, &body("Ada")), Ok(false));
    assert_eq!(update(&mut table, 2), Ok(1));
    assert_eq!(table.value(row, 0).map(|value| value.bits()), Some(32));
    let long = Err(ValueError::TooLong { length: 6, max: 5, unit: "bytes" });
    assert_eq!(table.set_cell(row, 0, &body("Ada II")), long);
    assert!(matches!(table.set_cell(row, 1, &body("")), Err(ValueError::Type { .. })));
    assert!(table.set_cell(row + 1, 0, &body("")).is_err(), "not alive");
    assert_eq!((update(&mut table, 3), table.set_cell(row, 0, &body("Ada"))), (Ok(0), Ok(false)));
    // Set back before the tick: nothing has changed.
    table.set_cell(row, 0, &body("Bob")).unwrap();
    table.set_cell(row, 0, &body("Ada")).unwrap();
    assert_eq!((update(&mut table, 4), table.changed()), (Ok(0), &[][..]));
}

#[test]
fn a_row_whose_value_must_be_set_has_no_state_before() {
    let mut table = Table::new(class(9, vec![("key", Kind::Raw { bytes: 2 })]), 4);
    let row = table.spawn().unwrap();
    let update = |table: &mut Table, tick| table.update(tick, &[Column::default()]);
    let error = ValueError::Length { length: 0, count: 2 };
    assert_eq!(update(&mut table, 1), Err(Wrong { row, property: 0, error }));
    let body = [8u32.to_le_bytes(), 2u32.to_le_bytes()].concat();
    assert_eq!(table.set_cell(row, 0, &[&body[..], &[1, 2]].concat()), Ok(true));
    assert_eq!((update(&mut table, 2), table.changed(), table.has_state(row)), (Ok(()), &[row][..], true));
}

/// Random writes, spawns, despawns and releases, compared with a map that remembers everything.
#[test]
fn every_tick_is_as_a_simple_table_has_it() {
    for seed in 0..30 {
        let mut rng = Rng::seeded(seed);
        let (mut table, mut cells) = (tanks(200), Cells::new(200));
        let mut states: Vec<Vec<(u32, Option<[u64; 2]>)>> = vec![Vec::new(); 200];
        for tick in 1..60 {
            for _ in 0..rng.below(20) {
                if let Ok(row) = table.spawn() {
                    states[row as usize] = vec![(0, None)];
                }
            }
            for row in 0..200 {
                if rng.chance(0.3) {
                    cells.set(row, rng.below(104) as u8, rng.below(1005) as u16);
                }
                if rng.chance(0.02) && table.despawn(row) && rng.chance(0.9) {
                    table.release(row);
                }
            }
            _ = cells.update(&mut table, tick);
            let mut changed = Vec::new();
            for row in (0..200).filter(|row| table.is_alive(*row)) {
                let (health, ammo) = (cells.health[row as usize], &cells.ammo[row as usize * 2..][..2]);
                let now = [health.into(), u64::from(u16::from_le_bytes([ammo[0], ammo[1]]))];
                let states = &mut states[row as usize];
                let before = states.last().unwrap().1;
                if now[0] <= 100 && now[1] <= 999 && before != Some(now) {
                    let mask = before.map_or(3, |before| {
                        u64::from(before[0] != now[0]) | u64::from(before[1] != now[1]) << 1
                    });
                    assert_eq!(table.changed_since(row, tick - 1), mask);
                    states.push((tick, Some(now)));
                    changed.push(row);
                }
                for ago in 0..tick.min(9) {
                    let then = states.iter().rev().find(|(since, _)| *since <= tick - ago);
                    let place = states.iter().rev().position(|(since, _)| *since <= tick - ago);
                    let expected = then.and_then(|(_, words)| *words).filter(|_| place < Some(5));
                    assert_eq!(at(&table, row, tick - ago), expected.map(|words| words.to_vec()));
                }
            }
            assert_eq!(table.changed(), changed);
            let blocks = table.changed_blocks().iter().enumerate();
            let bits = blocks.flat_map(|(block, bits)| ones(*bits).map(move |row| (block * 64 + row) as u32));
            assert_eq!(bits.collect::<Vec<_>>(), changed);
        }
    }
}

#[test]
fn what_others_are_not_told_of_is_no_turn_of_theirs() {
    let fields = [("health", ranged(100)), ("ammo", ranged(999))];
    let properties = Properties::new(Schema::new(fields).unwrap()).unwrap();
    let conditions = [Condition::Always, Condition::OwnerOnly];
    let class = GhostClass::new("Tank", properties, conditions, 9).unwrap();
    let (mut table, mut plain, mut cells) = (Table::new(Arc::new(class), 4), tanks(9), Cells::new(9));
    let row = table.spawn().unwrap();
    plain.spawn().unwrap();
    let mut turns = Vec::new();
    for (tick, health, ammo) in [(10, 1, 1), (11, 1, 2), (12, 2, 2), (13, 3, 3)] {
        cells.set(row, health, ammo);
        cells.update(&mut table, tick).unwrap();
        cells.update(&mut plain, tick).unwrap();
        turns.push([0, 1].map(|group| table.turn(group, row)).map(|turn| (turn.before, turn.last)));
        // Other rows' previous state isn't that of the tick before.
        assert_eq!((table.has_stepped(row), plain.has_stepped(row)), (false, true), "tick {tick}");
    }
    let (others, owners): (Vec<_>, Vec<_>) = turns.into_iter().map(|[other, owner]| (other, owner)).unzip();
    assert_eq!(others, [(10, 10), (10, 10), (10, 12), (12, 13)]);
    assert_eq!(owners, [(10, 10), (10, 11), (11, 12), (12, 13)]);
    let next = |group| [10, 11, 12, 13].map(|tick| table.next_change(group, row, tick).unwrap_or(0));
    assert_eq!((next(0), next(1)), ([12, 12, 13, 0], [11, 12, 13, 0]), "nor a state of theirs");
}
