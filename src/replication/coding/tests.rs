use super::*;
use crate::replication::class::{Condition, GhostClass};
use crate::replication::packet::{Audience, Base};
use crate::rng::{Entropy, Rng};
use crate::wire::{Kind, Properties, Schema};

fn class() -> GhostClass {
    let kinds = [
        ("turn", Kind::Rotation { bits: 9 }),
        ("fuel", Kind::Optional(Box::new(Kind::Bits { bits: 40 }))),
        ("uid", Kind::Bits { bits: 64 }),
    ];
    let properties = Properties::new(Schema::new(kinds).unwrap()).unwrap();
    GhostClass::new("Car", properties, [Condition::Always; 3], 9).unwrap().with_coding(true)
}

/// The probability of a model of which nothing is known.
const EVEN: u16 = 1 << (SCALE - 1);

fn models(layout: Layout) -> Vec<u16> {
    vec![EVEN; layout.count()]
}

#[test]
fn decisions_are_read_as_they_were_written() {
    for seed in 0..200 {
        let mut rng = Rng::seeded(seed);
        let (count, chance) = (rng.below(3000), [0.5, 0.01, 0.999][seed as usize % 3]);
        let said: Vec<bool> = (0..count).map(|_| rng.chance(chance)).collect();
        let mut encoder = Encoder::default();
        encoder.clear();
        encoder.load(&[EVEN, 100, 4000]);
        for (i, bit) in said.iter().enumerate() {
            if rng.chance(0.1) {
                // What is taken back leaves nothing.
                let (mark, before) = (encoder.mark(), encoder.seen().to_vec());
                for _ in 0..rng.below(50) {
                    let bit = rng.chance(0.5);
                    encoder.code(0, bit);
                    encoder.raw(rng.below(1 << 20), 20);
                }
                encoder.restore(mark);
                assert!(encoder.seen() == before);
            }
            encoder.code(i % 3, *bit);
            if i % 7 == 0 {
                encoder.raw(i as u64 % 128, 7);
            }
        }
        let (spent, bits, bytes) = (encoder.spent(), encoder.bits(), encoder.finish().to_vec());
        assert_eq!(bytes.len() * 8, bits);
        assert!(spent <= (bits as u64) << 16, "{spent} of {bits} bits");
        let mut lent = Vec::new();
        let mut decoder = Decoder::new(&bytes, &mut lent);
        decoder.load(&[EVEN, 100, 4000]);
        for (i, bit) in said.iter().enumerate() {
            assert_eq!(decoder.code(i % 3, false), *bit, "seed {seed}");
            if i % 7 == 0 {
                assert_eq!(decoder.raw(0, 7), i as u64 % 128);
            }
        }
        assert_eq!((decoder.left(), decoder.is_beyond()), (0, false));
    }
}

#[test]
fn likely_decisions_take_little() {
    let mut encoder = Encoder::default();
    encoder.clear();
    encoder.load(&[80]);
    (0..1000).for_each(|i| _ = encoder.code(0, i % 50 == 0));
    assert!(encoder.bits() < 190, "{}", encoder.bits());
    assert!(encoder.spent() >> 16 > 130, "what is spent is known");
}

fn heads(rng: &mut Rng, tick: u32) -> Vec<(u32, Op)> {
    let (mut said, mut next) = (Vec::new(), 0);
    for _ in 0..rng.below(60) {
        let bound = [1, 3, 200, 5000][rng.below(4) as usize];
        let id = next + rng.below(bound) as u32;
        next = id + 1;
        let baseline = tick - 1 - [rng.below(3), rng.below(60_000)][rng.below(2) as usize] as u32;
        let older = if rng.chance(0.5) { baseline - 1 - rng.below(64) as u32 } else { 0 };
        let base = match rng.below(4) {
            depth @ 0..3 => Base::Newest { depth: depth as u8 },
            _ => Base::Named { baseline, older },
        };
        let op = match rng.below(8) {
            0 => Op::Destroy,
            1 => Op::Create(Audience { owner: rng.below(2) == 1, chosen: false }),
            _ => Op::Update { base, whole: rng.chance(0.2), mask: 1 + rng.below(7) },
        };
        said.push((id, op));
    }
    said
}

#[test]
fn records_are_read_as_they_were_written() {
    let class = class();
    let layout = Layout::new(&class);
    let mut sum = crc32fast::Hasher::new();
    for seed in 0..200 {
        let mut trails = [[Trail::default(); 2]; 2];
        let (mut rng, tick) = (Rng::seeded(seed), 100_000);
        let said = heads(&mut rng, tick);
        let residuals: Vec<u64> = (0..60).map(|_| rng.next_u64() >> rng.below(64)).collect();
        let mut encoder = Encoder::default();
        encoder.clear();
        encoder.load(&models(layout));
        let mut place = Place::new(tick, 3, false);
        for (record, residual) in said.iter().zip(&residuals) {
            place.code(&mut encoder, Some(*record));
            let mut off = Off::default();
            off.begin(2, 1);
            layout.code_guess(&mut encoder, 1, 2, *residual as usize % 3);
            let [first, second] = &mut trails[0];
            layout.code_residual(&mut encoder, 2, &mut off, first, *residual);
            layout.code_residual(&mut encoder, 3, &mut off, second, residual >> 5);
        }
        place.code(&mut encoder, None);
        let bytes = encoder.finish().to_vec();
        sum.update(&bytes);
        let mut lent = Vec::new();
        let models = models(layout);
        let mut decoder = Decoder::new(&bytes, &mut lent);
        decoder.load(&models);
        let mut place = Place::new(tick, 3, false);
        for ((id, op), residual) in said.into_iter().zip(&residuals) {
            assert_eq!(place.code(&mut decoder, None), Some((id, Some(op))), "seed {seed}");
            let mut off = Off::default();
            off.begin(2, 1);
            assert_eq!(layout.code_guess(&mut decoder, 1, 2, 0), *residual as usize % 3);
            let [first, second] = &mut trails[1];
            assert_eq!(layout.code_residual(&mut decoder, 2, &mut off, first, 0), *residual);
            assert_eq!(layout.code_residual(&mut decoder, 3, &mut off, second, 0), residual >> 5);
        }
        assert_eq!(place.code(&mut decoder, None), None);
        assert_eq!(decoder.left(), 0);
        assert_eq!(trails[0], trails[1]);
    }
    assert_eq!(sum.finalize(), 3_935_574_256, "the same bytes on every machine");
}

/// Any bytes are decisions: nothing panics, and it goes on behind the end until that is asked for.
#[test]
fn any_bytes_are_decisions() {
    let layout = Layout::new(&class());
    for seed in 0..200 {
        let mut rng = Rng::seeded(seed);
        let mut bytes = vec![0; rng.below(40) as usize];
        rng.fill(&mut bytes);
        let mut lent = Vec::new();
        let models = models(layout);
        let mut decoder = Decoder::new(&bytes, &mut lent);
        decoder.load(&models);
        let mut place = Place::new(70_000, 3, true);
        let mut trail = Trail::default();
        for _ in 0..2000 {
            place.code(&mut decoder, None);
            let mut off = Off::default();
            layout.code_residual(&mut decoder, 1, &mut off, &mut trail, 0);
            decoder.raw(0, 37);
        }
        assert!(decoder.is_beyond());
    }
}

/// A rotation turned to another component left out is the same one, and turned back it has the levels that it had.
#[test]
fn a_rotation_is_the_same_whatever_is_left_out() {
    let class = class();
    let property = &class.properties.each()[0];
    let cells = |q: [f32; 4]| q.map(f32::to_le_bytes).concat();
    let mut rng = Rng::seeded(5);
    for _ in 0..2000 {
        let mut each = || rng.below(2001) as f32 / 1000.0 - 1.0;
        let q = [each(), each(), each(), each()];
        let length = q.iter().map(|it| it * it).sum::<f32>().sqrt();
        if length < 0.1 {
            continue;
        }
        let mut words = [0; 4];
        property.quantize_column(&cells(q.map(|it| it / length)), 16, &mut words).unwrap();
        let largest = words[0];
        for other in (0..4).filter(|other| *other != largest) {
            let mut rows = words;
            assert!(turn(property, 0..4, (&mut rows, 4, 0), other));
            assert_eq!(rows[0], largest, "its place stays");
            assert!(rows[1..].iter().all(|word| *word <= property.words()[1].last()));
            let levels = |words: &[u64]| [words[1], words[2], words[3]].map(|word| word as i64 - 255);
            let square: i64 = levels(&rows).iter().map(|it| it * it).sum();
            assert!(square <= 4 * 255 * 255);
            // What is left out of both is the same, but for its sign.
            let at = |words: &[u64], out: u64, which: u64| {
                levels(words)[(which - u64::from(which > out)) as usize]
            };
            for both in (0..4).filter(|it| *it != largest && *it != other) {
                assert_eq!(at(&words, largest, both).abs(), at(&rows, other, both).abs());
            }
        }
        let mut rows = words;
        assert!(!turn(property, 0..4, (&mut rows, 4, 0), largest));
        assert_eq!(rows, words);
    }
}

/// Rows of any words turn into words of the property.
#[test]
fn any_rotation_turns_into_words_of_its_range() {
    let class = class();
    let property = &class.properties.each()[0];
    let mut rng = Rng::seeded(6);
    for _ in 0..2000 {
        let mut rows = [0; 12];
        for (i, word) in rows.iter_mut().enumerate() {
            *word = rng.below(property.words()[i % 4].last() + 1);
        }
        turn(property, 0..4, (&mut rows, 4, 2), rng.below(4));
        assert!(rows.iter().enumerate().all(|(i, word)| *word <= property.words()[i % 4].last()));
    }
}
