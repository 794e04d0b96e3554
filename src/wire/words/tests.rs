use super::super::{BitWriter, Measure};
use super::*;
use crate::rng::Rng;

const METRICS: [Metric; 4] = [Metric::Line, Metric::Circle, Metric::Float, Metric::Choice];

/// Ranges of all metrics, small and large, one of several and alone.
fn ranges(lasts: &[u64]) -> Vec<WordRange> {
    let of = |last: u64| {
        METRICS.into_iter().flat_map(move |metric| {
            let fits = match metric {
                Metric::Float => [u64::MAX, u32::MAX.into()].contains(&last),
                Metric::Circle => last <= u32::MAX.into(),
                _ => true,
            };
            [false, true].into_iter().filter(move |_| fits).map(move |s| WordRange::new(last, metric, s))
        })
    };
    lasts.iter().flat_map(|last| of(*last)).collect()
}

fn written(write: impl FnOnce(&mut BitWriter)) -> (Vec<u8>, usize) {
    let mut writer = BitWriter::new();
    write(&mut writer);
    let bits = writer.bit_len();
    (writer.into_bytes(), bits)
}

#[test]
fn every_residual_is_of_one_word() {
    for range in ranges(&[0, 1, 2, 3, 4, 6, 7, 30, 63, 100, 255]) {
        for base in 0..=range.last() {
            let mut residuals: Vec<u64> = (0..=range.last()).map(|word| range.residual(word, base)).collect();
            for (word, residual) in (0..).zip(&residuals) {
                assert_eq!(range.word(*residual, base), word, "{range:?} against {base}");
            }
            residuals.sort_unstable();
            assert!(residuals.into_iter().eq(0..=range.last()), "{range:?} against {base}");
            assert_eq!(range.residual(base, base), 0);
        }
    }
}

#[test]
fn words_of_any_range_are_read_as_they_were_written() {
    let mut rng = Rng::seeded(4);
    let lasts: Vec<u64> = (0..64).flat_map(|bits| [u64::MAX >> bits, (u64::MAX >> bits) / 3 * 2]).collect();
    for range in ranges(&lasts) {
        for _ in 0..40 {
            let within = |word: u64| if range.last() == u64::MAX { word } else { word % (range.last() + 1) };
            let base = within(rng.next_u64());
            let reach = 1 << rng.below(40);
            let near = base.wrapping_add(rng.below(reach)).wrapping_sub(rng.below(reach));
            for word in [within(near), within(rng.next_u64()), base, 0, range.last()] {
                assert_eq!(range.word(range.residual(word, base), base), word, "{range:?} against {base}");
                let (bytes, bits) = written(|w| {
                    range.write_delta(word, base, w);
                    range.write(word, w);
                });
                let mut reader = BitReader::new(&bytes);
                assert_eq!(range.read_delta(base, &mut reader), Ok(word), "{range:?} against {base}");
                assert_eq!(range.read(&mut reader), Ok(word));
                assert_eq!(reader.position(), bits);
            }
        }
    }
}

#[test]
fn what_is_read_does_not_depend_on_what_follows() {
    let mut rng = Rng::seeded(9);
    for range in ranges(&[0, 1, 2, 7, 510, 1000, (1 << 21) - 1, u32::MAX.into(), u64::MAX >> 8, u64::MAX]) {
        for _ in 0..400 {
            let (start, length) = (rng.below(8) as usize, 1 + rng.below(80) as usize);
            let sparse = rng.below(20) as u32;
            let bytes: Vec<u8> =
                (0..32).map(|_| rng.next_u64() as u8 & (0xFF << sparse.min(8)) as u8).collect();
            let short = bytes[..(start + length).div_ceil(8)].to_vec();
            let mut ends = BitReader::with_range(&short, start, length);
            let mut goes_on = BitReader::with_range(&bytes, start, 200);
            let (found, same) = (range.read_residual(&mut ends), range.read_residual(&mut goes_on));
            if !matches!(found, Err(ReadError::PastEnd { .. })) {
                assert_eq!((found, ends.position()), (same, goes_on.position()), "{range:?}");
            }
        }
    }
}

#[test]
fn what_is_near_is_small() {
    let residuals = |range: &WordRange, base: u64, words: &[u64]| -> Vec<u64> {
        words.iter().map(|word| range.residual(*word, base)).collect()
    };
    let line = WordRange::new(100, Metric::Line, true);
    assert_eq!(residuals(&line, 50, &[50, 51, 49, 52, 48, 100, 0]), [0, 1, 2, 3, 4, 99, 100]);
    assert_eq!(residuals(&line, 2, &[2, 3, 1, 4, 0, 5, 100]), [0, 1, 2, 3, 4, 5, 100]);
    assert_eq!(residuals(&line, 99, &[99, 100, 98, 97, 0]), [0, 1, 2, 3, 100]);
    let circle = WordRange::new(9, Metric::Circle, true);
    assert_eq!(residuals(&circle, 8, &[8, 9, 7, 0, 6, 1, 5, 2, 4, 3]), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let choice = WordRange::new(5, Metric::Choice, true);
    assert_eq!(residuals(&choice, 2, &[2, 0, 1, 3, 4, 5]), [0, 1, 2, 3, 4, 5]);
    let float = WordRange::new(u32::MAX.into(), Metric::Float, true);
    let pattern = |value: f32| u64::from(value.to_bits());
    let next = pattern(1.5) + 1;
    assert_eq!(residuals(&float, pattern(1.5), &[next, pattern(1.5) - 1]), [1, 2]);
    // The zeros are neighbours.
    assert_eq!(residuals(&float, pattern(-0.0), &[pattern(0.0), pattern(-f32::from_bits(1))]), [1, 2]);
}

#[test]
fn a_delta_takes_the_bits_of_its_tier() {
    let bits = |range: &WordRange, word: u64, base: u64| {
        let mut measure = Measure::new();
        range.write_delta(word, base, &mut measure);
        measure.bits_bound()
    };
    let position = WordRange::new((1 << 21) - 1, Metric::Line, true);
    let base = 1 << 20;
    let taken = [0, 1, 2, 17, 18, 145, 147, 2194, 34_962, 34_963].map(|up| bits(&position, base + up, base));
    // 4 residuals in 1 + 2 bits, 32 in 2 + 5, 256 in 3 + 8, 4096 in 4 + 12, 65,536 in 5 + 16, the rest in 5 + 21.
    assert_eq!(taken, [3, 3, 3, 7, 7, 11, 16, 16, 21, 26]);
    let rotation = WordRange::new(510, Metric::Line, true);
    assert_eq!([255, 258, 273, 274].map(|word| bits(&rotation, word, 255)), [3, 7, 7, 11]);
    assert_eq!([0, 9].map(|word| bits(&WordRange::new(31, Metric::Line, true), word, 0)), [5, 5]);
    let largest = WordRange::new(3, Metric::Choice, true);
    assert_eq!([1, 2].map(|word| bits(&largest, word, 1)), [1, 3]);
    assert_eq!([1, 2].map(|word| bits(&WordRange::new(3, Metric::Choice, false), word, 1)), [2, 2]);
    assert_eq!(bits(&WordRange::new(1, Metric::Choice, true), 1, 1), 1);
    assert_eq!(bits(&WordRange::new(0, Metric::Line, true), 0, 0), 0);
}

#[test]
fn bits_of_a_delta_are_those_that_it_takes() {
    let mut rng = Rng::seeded(12);
    for (last, metric, several) in [
        (0, Metric::Line, true),
        (1, Metric::Choice, true),
        (3, Metric::Choice, true),
        (3, Metric::Choice, false),
        (510, Metric::Line, true),
        (359, Metric::Circle, true),
        ((1 << 21) - 1, Metric::Line, true),
        (u32::MAX.into(), Metric::Float, true),
        (u64::MAX, Metric::Line, true),
    ] {
        let range = WordRange::new(last, metric, several);
        for _ in 0..2000 {
            let base = rng.next_u64() >> rng.below(64);
            let near = base.wrapping_add(rng.next_u64() >> (1 + rng.below(63)));
            let [word, base] =
                [near, base].map(|word| if last == u64::MAX { word } else { word % (last + 1) });
            let (_, bits) = written(|w| range.write_delta(word, base, w));
            assert_eq!(range.delta_bits(word, base) as usize, bits, "{word} {base} of {last}");
        }
    }
}

#[test]
fn a_residual_of_no_word_is_refused() {
    let health = WordRange::new(1000, Metric::Line, false);
    // After tiers of 2 and 5 bits: 36 residuals.
    let read = |rest: u64| {
        let (bytes, bits) = written(|w| w.bits(rest << 2, 12));
        health.read_delta(500, &mut BitReader::with_range(&bytes, 0, bits))
    };
    assert_eq!(read(964), Ok(0));
    assert_eq!(read(965), Err(ReadError::OutOfRange { offset: 965, span: 964 }));
}

#[test]
fn what_goes_on_is_found_ahead_and_stays_in_its_range() {
    let line = WordRange::new(1000, Metric::Line, true);
    assert_eq!(line.extrapolate(100, 110, 2, 3), 125);
    assert_eq!(line.extrapolate(110, 100, 2, 3), 85);
    assert_eq!(line.extrapolate(900, 990, 1, 9), 1000);
    assert_eq!(line.extrapolate(100, 10, 1, 9), 0);
    assert_eq!(line.extrapolate(100, 110, 0, 3), 110);
    let wide = WordRange::new(u64::MAX, Metric::Line, true);
    assert_eq!(wide.extrapolate(0, u64::MAX - 1, 1, u16::MAX), u64::MAX);
    assert_eq!(wide.extrapolate(u64::MAX, 1, 1, u16::MAX), 0);
    let circle = WordRange::new(359, Metric::Circle, true);
    assert_eq!(circle.extrapolate(350, 355, 1, 2), 5);
    assert_eq!(circle.extrapolate(5, 355, 2, 4), 335);
    assert_eq!(WordRange::new(9, Metric::Choice, true).extrapolate(1, 5, 1, 1), 5);
}

#[test]
fn a_word_moves_within_its_range() {
    let line = WordRange::new(1000, Metric::Line, true);
    assert_eq!([30, 900, -200, i64::MAX].map(|steps| line.moved_by(120, steps)), [150, 1000, 0, 1000]);
    let circle = WordRange::new(359, Metric::Circle, true);
    assert_eq!([10, -10, 720].map(|steps| circle.moved_by(355, steps)), [5, 345, 355]);
    assert_eq!([circle.behind(5, 355), circle.behind(345, 5), line.behind(5, 355)], [10, -20, -350]);
    assert_eq!(WordRange::new(9, Metric::Choice, true).moved_by(5, 3), 5);
}
