//! Classes of narrow words: what reading their updates at once makes of a payload is what reading them one by one makes of it,
//! of hostile payloads too.

use super::*;
use crate::replication::class::{Condition, GhostClass};
use crate::replication::packet::{Audience, Base, Writer};
use crate::rng::Rng;
use crate::wire::{BitSink, BitWriter, Kind, Properties, Property, Schema};

/// As many ids as fit in a page, and some more.
const IDS: u32 = 70;

fn class(name: &str, kinds: Vec<Kind>) -> Arc<GhostClass> {
    let count = kinds.len();
    let fields = kinds.into_iter().enumerate().map(|(i, kind)| (format!("p{i}"), kind));
    let properties = Properties::new(Schema::new(fields).unwrap()).unwrap();
    // Which group a ghost is in says what comes with its create.
    let condition = |i| [Condition::Always, Condition::ExceptOwner, Condition::OwnerOnly][i % 3];
    Arc::new(GhostClass::new(name, properties, (0..count).map(condition).collect::<Vec<_>>(), IDS).unwrap())
}

fn classes() -> Arc<Classes> {
    let vector = |axes, resolution| Kind::Vector { axes, lo: -2000.0, hi: 2000.0, resolution };
    let cubes = vec![
        vector(3, 1.0 / 512.0),
        Kind::Rotation { bits: 9 },
        Kind::Bool,
        Kind::Bits { bits: 30 },
        Kind::Ranged { lo: 5, hi: 5 },
        Kind::Rotation { bits: 15 },
        Kind::Bits { bits: 31 },
    ];
    let tanks = vec![
        Kind::Angle { lo: 0.0, hi: 360.0, resolution: 0.5 },
        vector(2, 1.0 / 64.0),
        Kind::Float,
        Kind::Bits { bits: 32 },
        Kind::Ranged { lo: -1, hi: 1 },
        vector(2, 1.0),
    ];
    let names = vec![Kind::Text { max_bytes: 3 }, Kind::Bits { bits: 8 }, Kind::Bits { bits: 40 }];
    Arc::new(Classes::new([class("Cube", cubes), class("Tank", tanks), class("Name", names)]).unwrap())
}

/// A packet of records about any ids, against any states: a section for some of the classes, one of them perhaps twice.
/// Most are against states that the client has.
fn packet(rng: &mut Rng, mirror: &Mirror, tick: u32) -> (usize, Vec<u8>) {
    let classes = mirror.classes();
    let wild = rng.chance(0.05);
    let mut bits = BitWriter::new();
    let mut writer = Writer::new(tick, classes.class_bits());
    writer.begin(&mut bits, None);
    for at in [0, 1, 2, 0].into_iter().filter(|_| rng.chance(0.7)).collect::<Vec<_>>() {
        let class = classes.iter().nth(at).unwrap();
        let (each, properties) = (class.properties.each(), &class.properties);
        writer.reset_section();
        writer.begin_section(&mut bits, at);
        let (begins, mut base, mut mask) = (rng.chance(0.1), Base::Newest { depth: 0 }, 0);
        for id in 0..IDS {
            if rng.chance(0.2) {
                continue;
            }
            let word = |rng: &mut Rng, last: u64| match rng.below(4) {
                0 => last - rng.below(3).min(last),
                1 => rng.below(3).min(last),
                _ => rng.next_u64() % last.saturating_add(1).max(1),
            };
            if rng.chance(if begins { 0.9 } else { 0.01 }) {
                let audience = Audience { owner: rng.chance(0.3), chosen: false };
                let head = writer.create(id, audience, class.is_chosen());
                writer.write(&mut bits, &head);
                for (i, property) in properties.of(class.created(audience.group(class).into())) {
                    if class.properties.with_words() >> i & 1 == 0 {
                        bits.string("ab", 3);
                        continue;
                    }
                    property.words().iter().for_each(|range| range.write(word(rng, range.last()), &mut bits));
                }
                continue;
            }
            if rng.chance(0.01) {
                let head = writer.destroy(id);
                writer.write(&mut bits, &head);
                continue;
            }
            if mask == 0 || rng.chance(0.2) {
                mask = (1 + rng.below(properties.all())) & class.updated_for_any();
            }
            if mask == 0 {
                continue;
            }
            let page = mirror.ghosts[at].pages.get(id as usize);
            let ticks: Vec<u32> = page.into_iter().flat_map(|(page, at)| page.states.ticks(at)).collect();
            let mut before: Vec<u32> = ticks.into_iter().filter(|one| *one < tick).rev().collect();
            if wild || before.is_empty() {
                before = vec![tick - 1, tick - 2, tick - 4];
            }
            if rng.chance(0.1) || before.len() == 1 {
                base = Base::Newest { depth: (rng.below(3) as u8).min(before.len() as u8 - 1) };
            }
            if rng.chance(0.05) {
                let at = rng.below(before.len() as u64) as usize;
                let older = before.get(at + 1).copied().filter(|older| before[at] - older <= 64);
                let older = older.filter(|_| rng.chance(0.7)).unwrap_or(0);
                base = Base::Named { baseline: before[at], older };
            } else if let Base::Named { .. } = base {
                base = Base::Newest { depth: 0 };
            }
            let head = writer.update(id, base, mask, each.len() as u32);
            writer.write(&mut bits, &head);
            if base.has_older() {
                bits.bool(rng.chance(0.7));
            }
            for (_, property) in properties.of(mask & properties.with_words()) {
                for range in property.words() {
                    let base = word(rng, range.last());
                    let near = base.saturating_add(rng.below(9)).min(range.last());
                    let to = if rng.chance(0.5) { near } else { word(rng, range.last()) };
                    range.write_delta(to, base, &mut bits);
                }
            }
            (0..properties.each().len())
                .filter(|i| mask & !properties.with_words() & 1 << i != 0)
                .for_each(|_| bits.string("c", 3));
        }
        writer.end_section(&mut bits);
    }
    writer.end(&mut bits);
    (bits.bit_len(), bits.into_bytes())
}

/// What is known of a ghost: its newest tick, whether it is alive, its group, and all states with their ticks.
type KnownGhost = (u32, bool, usize, Vec<(u32, Vec<u64>)>);

/// All that is known of a class's ghosts.
fn known(mirror: &Mirror, class: usize) -> Vec<KnownGhost> {
    let ghosts = &mirror.ghosts[class];
    let of = |id: u32| {
        let states = ghosts.pages.get(id as usize).map(|(page, at)| {
            let mut words = vec![0; ghosts.class().properties.word_count()];
            let state = |tick: u32| {
                assert!(page.states.words_at(at, tick, &mut words));
                (tick, words.clone())
            };
            page.states.ticks(at).map(state).collect()
        });
        (
            mirror.tick_of(class, id),
            mirror.is_alive(class, id),
            mirror.group(class, id),
            states.unwrap_or_default(),
        )
    };
    (0..IDS).map(of).collect()
}

fn take(mirror: &mut Mirror, columns: &mut [Vec<Vec<u8>>]) -> Vec<GhostEvent> {
    let mut events = Vec::new();
    let mut views: Vec<Vec<&mut [u8]>> =
        columns.iter_mut().map(|columns| columns.iter_mut().map(Vec::as_mut_slice).collect()).collect();
    mirror.take(&mut views, &mut events);
    events
}

#[test]
fn narrow_updates_are_those_of_any_class() {
    let classes = classes();
    let column = |property: &Property| vec![0; property.field().node().size() * IDS as usize];
    let columns: Vec<Vec<Vec<u8>>> =
        classes.iter().map(|class| class.properties.each().iter().map(column).collect()).collect();
    let (mut fine, mut refused) = (0, 0);
    for seed in 0..40 {
        let mut rng = Rng::seeded(seed);
        let mut mirrors = [Mirror::new(classes.clone()), Mirror::new(classes.clone())];
        mirrors[1].ghosts.iter_mut().for_each(|ghosts| ghosts.narrow = None);
        let mut columns = [columns.clone(), columns.clone()];
        for round in 0..60 {
            // Some come late.
            let tick = FIRST_TICK + 20 + 2 * round - rng.below(5) as u32 * u32::from(rng.chance(0.2));
            let (mut bits, mut bytes) = packet(&mut rng, &mirrors[0], tick);
            if round > 2 && rng.chance(0.5) {
                for _ in 0..1 + rng.below(3) {
                    // What is behind the tick: another would be far ahead.
                    let at = 16 + rng.below(bits as u64 - 16) as usize;
                    bytes[at / 8] ^= 1 << (at % 8);
                }
            }
            if rng.chance(0.1) {
                bits -= rng.below(bits as u64 - 16) as usize;
            }
            let [one, other] = mirrors
                .each_mut()
                .map(|mirror| mirror.handle_payload(BitReader::with_range(&bytes, 0, bits)));
            assert_eq!(one.is_ok(), other.is_ok(), "seed {seed}, round {round}: {one:?}, {other:?}");
            *if one.is_ok() { &mut fine } else { &mut refused } += 1;
            let [one, other] = mirrors.each_ref();
            assert_eq!(one.counters(), other.counters(), "seed {seed}, round {round}");
            for class in 0..classes.iter().count() {
                assert_eq!(known(one, class), known(other, class), "seed {seed}, round {round}");
            }
            if rng.chance(0.7) {
                let [one, other] = &mut mirrors;
                let events = take(one, &mut columns[0]);
                assert_eq!(events, take(other, &mut columns[1]), "seed {seed}, round {round}");
                assert!(columns[0] == columns[1], "seed {seed}, round {round}");
            }
        }
    }
    assert!(fine > 400 && refused > 200, "{fine} {refused}");
}
