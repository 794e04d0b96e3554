use super::super::{BitSink, BitWriter};
use super::*;
use crate::rng::Rng;

fn written(write: impl FnOnce(&mut BitWriter)) -> Vec<u8> {
    let mut writer = BitWriter::new();
    write(&mut writer);
    writer.into_bytes()
}

#[test]
fn every_width_reads_back_at_every_position() {
    let mut rng = Rng::seeded(1);
    for start in 1..=64 {
        for n in 1..=64 {
            let value = rng.next_u64() >> (64 - n);
            let noise = rng.next_u64();
            let bytes = written(|w| {
                w.bits(noise >> (64 - start), start);
                w.bits(value, n);
                w.bits(noise, 64);
            });
            let mut reader = BitReader::new(&bytes);
            assert_eq!(reader.bits(start), Ok(noise >> (64 - start)));
            assert_eq!(reader.bits(n), Ok(value), "{n} bits at {start}");
            assert_eq!(reader.bits(64), Ok(noise));
            assert_eq!(reader.finish(), Ok(()));
            let end = (start + n) as usize;
            let mut exact = BitReader::with_range(&bytes[..end.div_ceil(8)], start as usize, n as usize);
            assert_eq!(exact.bits(n), Ok(value), "up to the last byte");
            assert_eq!(exact.bits(1), Err(ReadError::PastEnd { needed: 1, remaining: 0 }));
        }
    }
}

#[test]
fn bytes_are_copied_from_every_position() {
    let data: Vec<u8> = (0..40u8).map(|n| n.wrapping_mul(41)).collect();
    for (start, length) in (0..20).flat_map(|start| (0..=24).map(move |length| (start, length))) {
        let mut expected = BitReader::with_range(&data, start, usize::MAX);
        let bytes: Vec<u8> = (0..length).map(|_| expected.bits(8).unwrap() as u8).collect();
        let mut reader = BitReader::with_range(&data, start, length * 8);
        assert!(!reader.clone().copy(&mut vec![0; length + 1]), "not all there");
        let mut copied = vec![0; length];
        assert!(reader.copy(&mut copied), "{length} at {start}");
        assert_eq!((copied, reader.position()), (bytes, expected.position()), "{length} at {start}");
        // At the very end of the data.
        let end = &data[..(start + length * 8).div_ceil(8)];
        assert!(BitReader::with_range(end, start, length * 8).copy(&mut vec![0; length]));
    }
    let mut failed = BitReader::new(&data);
    failed.bits(64).and_then(|_| failed.int(7, 7)).unwrap();
    let _: Result<(), _> = failed.refuse(ReadError::Padding);
    assert!(!failed.copy(&mut []), "nothing is read after a refusal");
}

#[test]
fn the_first_refusal_is_final() {
    let mut reader = BitReader::new(&[0b1111_1001, 0]);
    assert_eq!(reader.int(0, 8), Err(ReadError::OutOfRange { offset: 9, span: 8 }));
    assert_eq!(reader.remaining_bits(), 0);
    assert_eq!(reader.int(7, 7), Err(ReadError::Failed), "not even what takes no bits");
    assert_eq!(reader.int128(7, 7), Err(ReadError::Failed));
    assert_eq!(reader.align(), Err(ReadError::Failed));
    assert_eq!(reader.bytes(0), Err(ReadError::Failed));
    assert_eq!(reader.finish(), Err(ReadError::Failed));
}

#[test]
fn refuses_padding_that_is_not_zero() {
    let mut reader = BitReader::new(&[0xFD, 0xAB]);
    reader.bits(3).unwrap();
    assert_eq!(reader.align(), Err(ReadError::Padding));
    let mut reader = BitReader::new(&[0x05, 0xAB]);
    reader.bits(3).unwrap();
    assert_eq!(reader.bytes(1), Ok(&[0xAB][..]));
}

#[test]
fn refuses_strings_with_two_meanings() {
    let string = |bytes: &[u8]| BitReader::new(bytes).string(255).map(str::to_owned);
    assert_eq!(string(b"\x02ab").as_deref(), Ok("ab"));
    assert_eq!(string(b"\x02a\0"), Err(ReadError::InteriorNul));
    assert_eq!(string(b"\x02\xC0\x80"), Err(ReadError::Utf8), "an overlong NUL");
    assert_eq!(string(b"\x03\xED\xA0\x80"), Err(ReadError::Utf8), "an encoded surrogate");
    assert_eq!(string(b"\x03ab"), Err(ReadError::PastEnd { needed: 24, remaining: 16 }));
    let too_long = BitReader::new(b"\x05hello").string(4);
    assert_eq!(too_long, Err(ReadError::OutOfRange { offset: 5, span: 4 }));
}

#[test]
fn refuses_wide_strings_that_are_not_utf_16() {
    let wide = |units: &[u32]| {
        let bytes = written(|w| {
            w.int(units.len() as i64, 0, 7);
            units.iter().for_each(|unit| w.bits(u64::from(*unit), 32));
        });
        BitReader::new(&bytes).wstring(7)
    };
    assert_eq!(wide(&[]).as_deref(), Ok(""));
    assert_eq!(wide(&[0xD83D, 0xDCA9, 0xFFFF, 0xD7FF, 0xE000]).as_deref(), Ok("💩\u{FFFF}\u{D7FF}\u{E000}"));
    assert_eq!(wide(&[0x10000]), Err(ReadError::CodeUnit { group: 0x10000 }));
    assert_eq!(wide(&[0x41, 0]), Err(ReadError::InteriorNul));
    for unpaired in [&[0xD800][..], &[0xDBFF, 0x41], &[0xDC00, 0xD800], &[0x41, 0xDFFF], &[0xD800, 0xD800]] {
        assert_eq!(wide(unpaired), Err(ReadError::UnpairedSurrogate), "{unpaired:x?}");
    }
    let cut = BitReader::new(&[0x07, 0, 0, 0, 0]).wstring(7);
    assert_eq!(cut, Err(ReadError::PastEnd { needed: 224, remaining: 37 }));
}

#[test]
fn refuses_relative_integers_that_do_not_rise() {
    let absolute = |previous: u32, current: u32| {
        let bytes = written(|w| {
            w.bits(0, 6);
            w.bits(u64::from(current), 32);
        });
        BitReader::new(&bytes).int_relative(previous)
    };
    assert_eq!(absolute(5, 6), Ok(6), "a longer form than needed is no refusal");
    assert_eq!(absolute(5, 5), Err(ReadError::NotIncreasing { previous: 5, current: 5 }));
    assert_eq!(absolute(5, 1 << 31), Err(ReadError::BeyondRelative { current: 1 << 31 }));
    let next = BitReader::new(&[1]).int_relative(MAX_RELATIVE);
    assert_eq!(next, Err(ReadError::BeyondRelative { current: 1 << 31 }));
    // 3 bits for 2..=6 can also say 7.
    let tier = BitReader::new(&[0b10110]).int_relative(0);
    assert_eq!(tier, Err(ReadError::OutOfRange { offset: 5, span: 4 }));
}

#[test]
fn a_strict_end_is_the_zero_rest_of_a_byte() {
    let end = |bytes: &[u8], bits| {
        let mut reader = BitReader::new(bytes);
        reader.bits(bits).and_then(|_| reader.finish())
    };
    assert_eq!(end(&[0x07], 3), Ok(()));
    assert_eq!(end(&[0x87], 3), Err(ReadError::Trailing { remaining: 5 }));
    assert_eq!(end(&[0x07, 0], 3), Err(ReadError::Trailing { remaining: 13 }));
    assert_eq!(end(&[0x07, 0], 8), Err(ReadError::Trailing { remaining: 8 }));
    assert_eq!(end(&[0x07], 8), Ok(()));
}

#[test]
fn a_start_beyond_the_data_is_past_its_end() {
    let mut reader = BitReader::with_range(&[0; 4], 100, usize::MAX);
    assert_eq!(reader.bits(1), Err(ReadError::PastEnd { needed: 1, remaining: 0 }));
    let mut reader = BitReader::with_range(&[0; 4], 5, 9);
    assert_eq!(reader.bits(10), Err(ReadError::PastEnd { needed: 10, remaining: 9 }));
}
