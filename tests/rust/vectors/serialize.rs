//! Vectors of serialize: the reference implementation's in `tests/vectors/serialize.json`, whose `ops` are
//! parsed here, then our own pinned bytes for what those leave out. Each is written, read back and measured.

use serde_json::Value;
use tickwire::wire::{BitReader, BitSink, BitWriter, FixedPoint, Measure, Quantizer};

/// One primitive with its value.
#[derive(Clone, Debug)]
enum Op {
    Bool(bool),
    Bits(u64, u32),
    Int(i64, i64, i64),
    Int128(i128, i128, i128),
    Uint128(u128),
    Fixed(i128, FixedPoint),
    Float(f32),
    Double(f64),
    Compressed(f32, Quantizer),
    Align,
    Bytes(Vec<u8>),
    Text(String, u32),
    Wide(String, u32),
    Relative(u32, u32),
    Sequence(u16, u16),
}

impl Op {
    fn write(&self, sink: &mut dyn BitSink) {
        match self {
            Op::Bool(v) => sink.bool(*v),
            Op::Bits(v, n) => sink.bits(*v, *n),
            Op::Int(v, lo, hi) => sink.int(*v, *lo, *hi),
            Op::Int128(v, lo, hi) => sink.int128(*v, *lo, *hi),
            Op::Uint128(v) => sink.uint128(*v),
            Op::Fixed(raw, format) => sink.fixed(*raw, format),
            Op::Float(v) => sink.float(*v),
            Op::Double(v) => sink.double(*v),
            Op::Compressed(v, quantizer) => sink.compressed_float(*v, quantizer),
            Op::Align => sink.align(),
            Op::Bytes(data) => sink.bytes(data),
            Op::Text(text, max) => sink.string(text, *max),
            Op::Wide(text, max) => sink.wstring(text, *max),
            Op::Relative(previous, current) => sink.int_relative(*previous, *current),
            Op::Sequence(previous, current) => sink.sequence_relative(*previous, *current),
        }
    }

    fn read_back(&self, r: &mut BitReader<'_>) {
        match self {
            Op::Bool(v) => assert_eq!(r.bool(), Ok(*v)),
            Op::Bits(v, n) => assert_eq!(r.bits(*n), Ok(*v)),
            Op::Int(v, lo, hi) => assert_eq!(r.int(*lo, *hi), Ok(*v)),
            Op::Int128(v, lo, hi) => assert_eq!(r.int128(*lo, *hi), Ok(*v)),
            Op::Uint128(v) => assert_eq!(r.uint128(), Ok(*v)),
            Op::Fixed(raw, format) => assert_eq!(r.fixed(format), Ok(*raw)),
            Op::Float(v) => assert_eq!(r.float().map(f32::to_bits), Ok(v.to_bits())),
            Op::Double(v) => assert_eq!(r.double().map(f64::to_bits), Ok(v.to_bits())),
            Op::Compressed(v, quantizer) => {
                let (lo, hi, resolution) = quantizer.parameters();
                let read = r.compressed_float(quantizer).unwrap();
                let off = (read - v.clamp(lo, hi)).abs();
                assert!(off <= resolution * 0.501, "{v} came back as {read}");
            }
            Op::Align => assert_eq!(r.align(), Ok(())),
            Op::Bytes(data) => assert_eq!(r.bytes(data.len()), Ok(&data[..])),
            Op::Text(text, max) => assert_eq!(r.string(*max), Ok(&text[..])),
            Op::Wide(text, max) => assert_eq!(r.wstring(*max).as_deref(), Ok(&text[..])),
            Op::Relative(previous, current) => assert_eq!(r.int_relative(*previous), Ok(*current)),
            Op::Sequence(previous, current) => assert_eq!(r.sequence_relative(*previous), Ok(*current)),
        }
    }
}

/// Writes the operations to these bits and bytes, reads them back, and measures them.
fn check(name: &str, ops: &[Op], bits: usize, expected: &str) {
    let (mut writer, mut measure) = (BitWriter::new(), Measure::new());
    for op in ops {
        op.write(&mut writer);
        op.write(&mut measure);
    }
    assert_eq!(hex::encode(writer.as_bytes()), expected, "{name}");
    assert_eq!(writer.bit_len(), bits, "{name}");
    assert!(measure.bits_bound() >= writer.encoded().max_bits(), "{name}");

    let bytes = hex::decode(expected).unwrap();
    let mut reader = BitReader::new(&bytes);
    ops.iter().for_each(|op| op.read_back(&mut reader));
    assert_eq!(reader.position(), bits, "{name}");
    assert_eq!(reader.finish(), Ok(()), "{name}");
}

#[test]
fn reference_vectors_are_written_and_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/serialize.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let vectors = file["serialize"].as_array().unwrap();
    assert_eq!(vectors.len(), 14);
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let lines = vector["ops"].as_array().unwrap();
        let ops: Vec<Op> = lines.iter().flat_map(|line| parse(line.as_str().unwrap())).collect();
        let bits = vector["bits"].as_u64().unwrap() as usize;
        check(name, &ops, bits, vector["bytes"].as_str().unwrap());
    }
}

/// The operations of one line of a vector's `ops`.
fn parse(line: &str) -> Vec<Op> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    match verb {
        "bool" => vec![Op::Bool(rest == "true")],
        "bits" => {
            let (value, n) = rest.split_once(' ').unwrap();
            vec![Op::Bits(unsigned(value), n.parse().unwrap())]
        }
        "int" | "int64" => {
            let (value, range) = rest.split_once(' ').unwrap();
            let (lo, hi) = bounds(range);
            vec![Op::Int(value.parse().unwrap(), lo as i64, hi as i64)]
        }
        "align" => vec![Op::Align],
        "bytes" => vec![Op::Bytes(byte_run(rest))],
        "string" => {
            let (text, buffer) = rest.split_once(" buffer ").unwrap();
            let max = buffer.parse::<u32>().unwrap() - 1;
            vec![Op::Text(text.trim_matches('\'').to_owned(), max)]
        }
        "float" => vec![Op::Float(rest.parse().unwrap())],
        "double" => {
            let (over, under) = rest.split_once('/').unwrap();
            vec![Op::Double(over.parse::<f64>().unwrap() / under.parse::<f64>().unwrap())]
        }
        "compressed_float" => {
            let (range, rest) = rest.split_once(" res ").unwrap();
            let (resolution, values) = rest.split_once(" of ").unwrap();
            let (lo, hi) = bounds(range);
            let quantizer = Quantizer::new(lo, hi, resolution.parse().unwrap()).unwrap();
            values.split(", ").map(|v| Op::Compressed(v.parse().unwrap(), quantizer)).collect()
        }
        "int_relative" => {
            let (previous, differences) =
                rest.strip_prefix("previous ").unwrap().split_once(" for d in ").unwrap();
            let previous: u32 = previous.split_once(' ').unwrap().0.parse().unwrap();
            let relative = |d: &str| Op::Relative(previous, previous + d.parse::<u32>().unwrap());
            differences.split(',').map(relative).collect()
        }
        "sequence_relative" => rest.split(' ').map(sequence_pair).collect(),
        "fixed" => {
            let (raw, range) = rest.strip_prefix("Q16.16 raw ").unwrap().split_once(' ').unwrap();
            let (lo, hi) = bounds(range);
            vec![Op::Fixed(raw.parse().unwrap(), FixedPoint::new(16, lo as i64, hi as i64).unwrap())]
        }
        _ => panic!("unknown operation {line:?}"),
    }
}

/// A number, decimal or `0x`.
fn unsigned(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// The bounds in `[lo,hi]`, which may have exponents.
fn bounds(text: &str) -> (f64, f64) {
    let inside = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap();
    let (lo, hi) = inside.split_once(',').unwrap();
    (lo.parse().unwrap(), hi.parse().unwrap())
}

/// The bytes of `first..last (count)` in hex, or of `(0)`.
fn byte_run(text: &str) -> Vec<u8> {
    let Some((first, rest)) = text.split_once("..") else {
        assert_eq!(text, "(0)");
        return Vec::new();
    };
    let (last, count) = rest.split_once(' ').unwrap();
    let byte = |digits| u8::from_str_radix(digits, 16).unwrap();
    let run: Vec<u8> = (byte(first)..=byte(last)).collect();
    assert_eq!(count, format!("({})", run.len()));
    run
}

fn sequence_pair(text: &str) -> Op {
    let inside = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap();
    let (previous, current) = inside.split_once(',').unwrap();
    Op::Sequence(previous.parse().unwrap(), current.parse().unwrap())
}

#[test]
fn uint128_is_its_low_half_then_its_high_half() {
    let value = 0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF;
    check("aligned", &[Op::Uint128(value)], 128, "ffeeddccbbaa99887766554433221100");
    // Shifted up by one bit, with the lowest bit set: 2 * value + 1.
    let ops = [Op::Bool(true), Op::Uint128(value)];
    check("after a bit", &ops, 129, "ffddbb9977553311efccaa886644220000");
    check("largest", &[Op::Uint128(u128::MAX)], 128, &"ff".repeat(16));
}

#[test]
fn int128_takes_the_bits_of_its_range() {
    let (lo, hi) = (-(1 << 90), 1 << 90);
    let value = -0xF0E1_D2C3_B4A5_9687;
    // 2^90 - 0xf0e1d2c3b4a59687.
    check("92 bits", &[Op::Int128(value, lo, hi)], 92, "79695a4b3c2d1e0fffffff03");
    check("smallest", &[Op::Int128(lo, lo, hi)], 92, "000000000000000000000000");
    check("largest", &[Op::Int128(hi, lo, hi)], 92, "000000000000000000000008");
    check("zero of all", &[Op::Int128(0, i128::MIN, i128::MAX)], 128, "00000000000000000000000000000080");
    check("all ones", &[Op::Int128(i128::MAX, i128::MIN, i128::MAX)], 128, &"ff".repeat(16));
    check("no choice", &[Op::Int128(lo, lo, lo), Op::Bool(true)], 1, "01");
    // As int64 where both apply.
    check("narrow", &[Op::Int128(-3, -10, 10), Op::Int(-3, -10, 10)], 10, "e700");
}

#[test]
fn integers_reach_the_edges_of_64_bits() {
    let full = |value| Op::Int(value, i64::MIN, i64::MAX);
    check("smallest", &[full(i64::MIN)], 64, "0000000000000000");
    check("zero", &[full(0)], 64, "0000000000000080");
    check("minus one", &[full(-1)], 64, "ffffffffffffff7f");
    check("largest, off a byte", &[Op::Bool(false), full(i64::MAX)], 65, "feffffffffffffff01");
    check("edge of a range", &[Op::Int(-8, -8, 0), Op::Int(0, -8, 0)], 8, "80");
    check("power of two", &[Op::Int(8, 0, 8), Op::Int(7, 0, 7)], 7, "78");
    check("no choice", &[Op::Int(-5, -5, -5), Op::Bits(1, 1)], 1, "01");
    check("all bits", &[Op::Bits(u64::MAX, 64), Op::Bits(0, 64)], 128, "ffffffffffffffff0000000000000000");
}

#[test]
fn wide_fixed_point_is_split_like_any_integer() {
    let q20 = FixedPoint::new(20, -(1 << 50), 1 << 50).unwrap();
    // -2.75 over +-2^50: 2^70 - 2.75 * 2^20.
    check("20 places", &[Op::Fixed(-2_883_584, q20)], 72, "0000d4ffffffffff3f");
    let all = FixedPoint::new(64, i64::MIN, i64::MAX).unwrap();
    // 1.5 with 64 places: 2^127 + 3 * 2^63.
    let one_and_a_half = 3i128 << 63;
    check("64 places", &[Op::Fixed(one_and_a_half, all)], 128, "00000000000000800100000000000080");
    let q4 = FixedPoint::new(4, -50, 50).unwrap();
    check("4 places", &[Op::Fixed(-77, q4)], 11, "d302");
    let single = FixedPoint::new(16, 7, 7).unwrap();
    check("no choice", &[Op::Fixed(7 << 16, single), Op::Bool(true)], 1, "01");
}

#[test]
fn wide_strings_are_units_of_32_bits_without_an_align() {
    let wide = |text: &str| Op::Wide(text.to_owned(), 7);
    check("Latin", &[wide("Größe")], 163, "3d02000090030000b0070000f80600002803000000");
    check("empty", &[wide(""), Op::Bool(true)], 4, "08");
    check("a surrogate pair", &[wide("🎮")], 67, "e2c1060070fd060000");
    check("one unit at most", &[Op::Wide("Z".to_owned(), 1)], 33, "b500000000");
    check("none at most", &[Op::Wide(String::new(), 0), Op::Text(String::new(), 0)], 0, "");
    // The narrow string aligns, the wide one does not.
    check("behind a string", &[Op::Text("up".to_owned(), 15), wide("Z")], 59, "027570d102000000");
}

#[test]
fn floats_keep_every_pattern() {
    let signalling = [Op::Float(f32::from_bits(0x7F80_0001)), Op::Double(f64::from_bits(0xFFF0 << 48 | 1))];
    check("signalling NaNs", &signalling, 96, "0100807f010000000000f0ff");
    check("negative zero", &[Op::Bool(true), Op::Float(-0.0)], 33, "0100000001");
}

#[test]
fn every_width_of_bits_in_one_run() {
    let pattern = 0x9E37_79B9_7F4A_7C15u64;
    let ops: Vec<Op> = (1..=64).map(|n| Op::Bits(pattern >> (64 - n), n)).collect();
    check("1..=64", &ops, 2080, EVERY_WIDTH);
}

/// The 260 bytes of widths 1 to 64, each the top bits of one pattern, as a big integer filled from bit 0.
const EVERY_WIDTH: &str = "\
    65cef3e9c913cf788ea7f16c3c379e379e6e3cbbf1dc8de7dd78be1b4fefc69377e39977e339efc6d3bc1bcfe6dd786e\
    de8de7cdbbf174f36e3cb979379eb979379e72f36e3ccbcdbbf15c6ede8de7e5e6dd78bedcbc1bcf2f37efc6f3979b77\
    e3f9979b77e3e92f37efc6b3bfdcbc1b4ffde5e6dd78d25f6ede8d67facbcdbbf194fe72f36e3c4b7fb979379e4a7fb9\
    79379e94fe72f36e3c53facbcdbbf19cd25f6ede8de729fde5e6dd783ea5bfdcbc1bcf4fe92f37efc6d3a7f4979b77e3\
    c9a7f4979b77e3894fe92f37efc6133ea5bfdcbc1b4ff029fde5e6dd78069fd25f6ede8da7e053facbcdbbf12cf894fe\
    72f36e3c157c4a7fb979379e157c4a7fb979379e";
