use super::track::WINDOW;
use super::*;
use crate::replication::class::{Condition, GhostClass};
use crate::replication::form::Form;
use crate::replication::packet::{Audience, Base};
use crate::rng::{Entropy, Rng};
use crate::wire::{Kind, Properties, Property, Schema};

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
        let (past, run) = (1 + rng.below(64) as u32, if rng.chance(0.5) { rng.below(13) as u8 } else { 0 });
        let base = Base::UpTo { tick: baseline, past: if run > 0 { past } else { 1 }, run };
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
        let mut place = Place::new(tick, 3, false, (0, &[]));
        for (record, residual) in said.iter().zip(&residuals) {
            place.code(&mut encoder, Some(*record));
            let mut off = Off::default();
            off.begin(2, false);
            layout.code_deviates(&mut encoder, 1, (2, None), residual % 3 == 0);
            let [first, second] = &mut trails[0];
            layout.code_residual(&mut encoder, 2, &mut off, first, *residual);
            layout.code_residual(&mut encoder, 3, &mut off, second, residual >> 5);
        }
        place.code(&mut encoder, None);
        let bytes = encoder.finish().to_vec();
        sum.update(&bytes);
        let mut lent = Vec::new();
        let mut decoder = Decoder::new(&bytes, &mut lent);
        let models = models(layout);
        decoder.load(&models);
        let mut place = Place::new(tick, 3, false, (0, &[]));
        for ((id, op), residual) in said.into_iter().zip(&residuals) {
            assert_eq!(place.code(&mut decoder, None), Some((id, Some(op))), "seed {seed}");
            let mut off = Off::default();
            off.begin(2, false);
            assert_eq!(layout.code_deviates(&mut decoder, 1, (2, None), false), residual % 3 == 0);
            let [first, second] = &mut trails[1];
            assert_eq!(layout.code_residual(&mut decoder, 2, &mut off, first, 0), *residual);
            assert_eq!(layout.code_residual(&mut decoder, 3, &mut off, second, 0), residual >> 5);
        }
        assert_eq!(place.code(&mut decoder, None), None);
        assert_eq!(decoder.left(), 0);
        assert_eq!(trails[0], trails[1]);
    }
    assert_eq!(sum.finalize(), 3_942_106_691, "the same bytes on every machine");
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
        let mut decoder = Decoder::new(&bytes, &mut lent);
        let models = models(layout);
        decoder.load(&models);
        let mut place = Place::new(70_000, 3, true, (0, &[]));
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

/// Words of a rotation, of four numbers of any length.
fn rotation(property: &Property, numbers: [f32; 4]) -> [u64; 4] {
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    let cells = numbers.map(|number| (number / length).to_le_bytes()).concat();
    let mut words = [0; 4];
    property.quantize_column(&cells, 16, &mut words).unwrap();
    words
}

/// Predicts a rotation from these states, the newest first, once it is known which component is the largest.
fn predict(class: &GhostClass, rows: &[[u64; 4]], (past, ahead): (u16, u16), largest: u64) -> [u64; 4] {
    let (motion, property, form) = (Motion::new(class), &class.properties.each()[0], Form::new(4, true));
    let stored: Vec<[u32; 4]> = rows[1..].iter().map(|row| row.map(|word| word as u32)).collect();
    let older: Vec<&[u32]> = stored.iter().map(|row| &row[..]).collect();
    let states = States { newest: &rows[0], older: &older, form, past, ahead };
    let mut guessed = [0; 4];
    let guess = motion.predict((0, property), 0..4, states, rows.len() > 1, &mut guessed);
    let predicted = guessed[0];
    guessed[0] = largest;
    motion.turn(0, guess, &mut guessed);
    assert!(predicted < 4);
    guessed
}

/// A rotation that stays has its words, and those of another component left out are of the same rotation.
#[test]
fn a_rotation_is_the_same_whatever_is_left_out() {
    let class = class();
    let property = &class.properties.each()[0];
    let mut rng = Rng::seeded(5);
    for _ in 0..2000 {
        let mut each = || rng.below(2001) as f32 / 1000.0 - 1.0 + 1e-4;
        let words = rotation(property, [each(), each(), each(), each()]);
        assert_eq!(predict(&class, &[words], (1, 1), words[0]), words);
        for other in (0..4).filter(|other| *other != words[0]) {
            let turned = predict(&class, &[words], (1, 1), other);
            let level = |words: &[u64], which: u64| {
                words[1 + (which - u64::from(which > words[0])) as usize] as i64 - 255
            };
            // What is left out of both is the same, but for its sign.
            for both in (0..4).filter(|it| *it != words[0] && *it != other) {
                assert_eq!(level(&words, both).abs(), level(&turned, both).abs());
            }
        }
    }
}

/// An even turn goes on within a level or two, however far ahead, over changes of the largest component too.
#[test]
fn an_even_turn_goes_on() {
    let class = class();
    let property = &class.properties.each()[0];
    let mut rng = Rng::seeded(7);
    let (mut off, mut changed) = ([0; 5], 0);
    for _ in 0..500 {
        let axis = [0; 3].map(|_| rng.below(2001) as f32 / 1000.0 - 1.0 + 1e-4);
        let (start, speed) = (rng.below(600) as f32 / 100.0, rng.below(60) as f32 / 1000.0);
        let at = |tick: i32| {
            let (sine, cosine) = (start + speed * tick as f32).sin_cos();
            let length = axis.iter().map(|it| it * it).sum::<f32>().sqrt();
            let [x, y, z] = axis.map(|it| it / length * sine);
            rotation(property, [x, y, z, cosine])
        };
        let rows: Vec<_> = (0..WINDOW as i32).map(|back| at(-back)).collect();
        let ahead = 1 + rng.below(6) as u16;
        let expected = at(ahead.into());
        let guessed = predict(&class, &rows, (1, ahead), expected[0]);
        changed += usize::from(expected[0] != rows[0][0]);
        let each = expected[1..].iter().zip(&guessed[1..]).map(|(a, b)| a.abs_diff(*b));
        off[each.max().unwrap().min(4) as usize] += 1;
    }
    assert!(changed > 30, "{changed} have another largest component by then");
    assert!(off[0] + off[1] > 480 && off[4] < 5, "{off:?} by how many levels they are off");
}

/// What lies on a line or a parabola goes on exactly, by whichever ticks; what jumps goes on from its last steps.
#[test]
fn numbers_go_on() {
    let to = |ahead: f32, were: &dyn Fn(i16) -> i16| {
        let were = core::array::from_fn(|i| were(i as i16).into());
        (track::go_on(ahead, 1.0, &were, WINDOW, true) * 64.0).round() / 64.0
    };
    assert_eq!([1.0, 2.0, 6.0].map(|ahead| to(ahead, &|i| -5 * i)), [5.0, 10.0, 30.0]);
    assert_eq!([1.0, 2.0, 2.5].map(|ahead| to(ahead, &|i| -6 * i)), [6.0, 12.0, 15.0]);
    assert_eq!([1.0, 2.0, 6.0].map(|ahead| to(ahead, &|i| 2 * i * i - 7 * i)), [9.0, 22.0, 114.0]);
    assert_eq!(to(3.0, &|i| 2 * i * i - 7 * i), 2.0 * 9.0 + 7.0 * 3.0);
    // It jumped by 90 one state ago, and moved by 3 before.
    assert_eq!(to(1.0, &|i| if i == 0 { 0 } else { -90 - 3 * i }), 93.0);
    assert_eq!(to(200.0, &|_| 0), 0.0);
}

/// Rows of any words give words of the property, of numbers as large as there are.
#[test]
fn any_words_are_predicted() {
    let class = class();
    let property = &class.properties.each()[0];
    let mut rng = Rng::seeded(6);
    for _ in 0..5000 {
        let mut rows = [[0; 4]; WINDOW];
        let near = rng.chance(0.5);
        for (i, word) in rows.as_flattened_mut().iter_mut().enumerate() {
            let last = property.words()[i % 4].last();
            *word = if near && i % 4 > 0 { last - rng.below(9) } else { rng.below(last + 1) };
        }
        let (past, ahead) = (1 + rng.below(64) as u16, 1 + rng.below(300) as u16);
        let rows = &rows[..=rng.below(13) as usize];
        let guessed = predict(&class, rows, (past, ahead), rng.below(4));
        assert!(property.words().iter().zip(guessed).all(|(range, word)| word <= range.last()));
    }
    let far = u32::MAX as f32;
    for count in 1..=WINDOW {
        for seed in 0..200 {
            let mut rng = Rng::seeded(seed);
            let ahead = (1 + rng.below(255)) as f32 / (1 + rng.below(64)) as f32;
            let mut signs = || if rng.chance(0.5) { far } else { -far };
            let were = core::array::from_fn(|i| if seed % 2 == 0 { signs() } else { far * (i % 2) as f32 });
            let moved = track::go_on(ahead, 1.0, &were, count, true);
            assert!(moved.abs() < (1u64 << 62) as f32, "{moved}");
        }
    }
}
