//! Sequence numbers. Numbers on the wire have few bits and wrap: half the range is "more recent" (reliable 1.0; the article
//! "Reliability, Ordering and Congestion Avoidance over UDP"). Inside, packets have 64-bit numbers, which never run out.

/// True when `a` is more recent than `b`: ahead by 1..=32,768, counting across the wrap, where a distance of
/// exactly 32,768 goes to the numerically larger one (so the relation stays antisymmetric).
pub const fn greater(a: u16, b: u16) -> bool {
    (a > b && a - b <= 32_768) || (a < b && b - a > 32_768)
}

/// True when `a` is older than `b`.
pub const fn less(a: u16, b: u16) -> bool {
    greater(b, a)
}

/// How far `a` is ahead of `b`, counting across the wrap: negative when it is behind.
pub const fn distance(a: u16, b: u16) -> i32 {
    // A cast to i16 is the wrapping difference in -32,768..=32,767.
    a.wrapping_sub(b) as i16 as i32
}

/// The number with these low bits, of which there are 1 to 63, that is nearest to a known one. Of two, it is the smaller.
pub const fn nearest_of(low: u64, bits: u32, known: i64) -> i64 {
    // The difference, sign-extended from its low bits.
    let difference = low.cast_signed().wrapping_sub(known) << (64 - bits) >> (64 - bits);
    known.wrapping_add(difference)
}

/// The number with these low bits that is nearest to a known one; None if that exceeds 32 bits.
pub const fn nearest(low: u16, known: u32) -> Option<u32> {
    known.checked_add_signed(distance(low, known as u16))
}

/// As [`nearest_of`], for 64-bit numbers. Numbers before 0 wrap.
pub const fn unwrap(low: u64, bits: u32, known: u64) -> u64 {
    nearest_of(low, bits, known.cast_signed()).cast_unsigned()
}

/// How far the 64-bit number `a` is ahead of `b`; negative if it is behind. Numbers before 0 wrap.
pub const fn ahead(a: u64, b: u64) -> i64 {
    // A cast to i64 is the wrapping difference.
    a.wrapping_sub(b) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bits_name_the_nearest_number() {
        assert_eq!(nearest(5, 65_534), Some(65_541));
        assert_eq!(nearest(65_534, 65_541), Some(65_534));
        assert_eq!(nearest(7, 9), Some(7));
        assert_eq!(nearest(65_535, 3), None, "before the first");
        assert_eq!(nearest(2, u32::MAX), None, "after the last");
    }

    #[test]
    fn low_bits_give_the_nearest_number() {
        for known in [-1, 0, 1, 5, 4095, 4096, 70_000, i64::from(u32::MAX) - 3] {
            for offset in -2048..2048 {
                let number = known + offset;
                assert_eq!(nearest_of((number & 0xFFF).cast_unsigned(), 12, known), number);
            }
        }
    }

    #[test]
    fn numbers_are_unwrapped_before_0_and_after_the_last_too() {
        assert_eq!(unwrap(5, 16, 65_534), 65_541);
        assert_eq!(unwrap(65_535, 16, 0), u64::MAX);
        assert_eq!(unwrap(0, 16, u64::MAX), 0);
        assert_eq!(ahead(unwrap(1, 16, u64::MAX), u64::MAX), 2);
        assert_eq!(ahead(unwrap(32_768, 16, 0), 0), -32_768, "half the range ahead is behind");
    }

    #[test]
    fn half_the_range_is_more_recent() {
        assert!(greater(1, 0) && !greater(0, 1) && !greater(7, 7));
        assert!(greater(0, 65_535) && less(65_535, 0));
        assert!(greater(32_768, 0) && !greater(0, 32_768));
        assert!(less(32_769, 0), "32,769 ahead is 32,767 behind");
    }

    #[test]
    fn is_antisymmetric_over_the_whole_range() {
        for a in (0..=u16::MAX).step_by(251) {
            for b in (0..=u16::MAX).step_by(241) {
                assert_eq!(greater(a, b), less(b, a));
                assert!(a == b || greater(a, b) != greater(b, a), "{a} {b}");
            }
        }
    }

    #[test]
    fn distance_crosses_the_wrap() {
        assert_eq!(distance(2, 65_534), 4);
        assert_eq!(distance(65_534, 2), -4);
        assert_eq!(distance(5, 5), 0);
    }
}
