//! The progress of a chunk, at either end.

use super::SLICE_BYTES;
use crate::time::Duration;

/// The progress of a chunk: acked at the sender, received at the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkProgress {
    /// Bytes transferred so far.
    pub bytes: usize,
    /// Bytes of the chunk. The receiver knows them only once it has the last slice; until then, the maximum they can
    /// be.
    pub total_bytes: usize,
    /// Slices transferred so far.
    pub slices: usize,
    /// Slices of the chunk.
    pub total_slices: usize,
    /// The mean rate since the chunk's first slice, in its bytes per second; 0 at first.
    pub bytes_per_second: f64,
    /// The time that the rest takes at this rate. `None` while the rate is 0.
    pub time_left: Option<Duration>,
}

impl ChunkProgress {
    /// The progress of a chunk with `slices` of `total_slices` transferred, `elapsed` after it began. `last_bytes` are
    /// those of the last slice if known, and `last` says whether it is transferred.
    pub(super) fn new(
        slices: usize,
        total_slices: usize,
        last_bytes: Option<usize>,
        last: bool,
        elapsed: Duration,
    ) -> Self {
        let missing_of_last = SLICE_BYTES - last_bytes.unwrap_or(SLICE_BYTES);
        let bytes = slices * SLICE_BYTES - if last { missing_of_last } else { 0 };
        let total_bytes = total_slices * SLICE_BYTES - missing_of_last;
        let seconds = elapsed.as_secs_f64();
        let bytes_per_second = if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
        let time_left = (bytes_per_second > 0.0)
            .then(|| Duration::try_from_secs_f64((total_bytes - bytes) as f64 / bytes_per_second).ok())
            .flatten();
        ChunkProgress { bytes, total_bytes, slices, total_slices, bytes_per_second, time_left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_left_follow_from_the_bytes_across() {
        let progress = ChunkProgress::new(2, 4, Some(24), false, Duration::from_millis(500));
        assert_eq!((progress.bytes, progress.total_bytes), (2048, 3 * 1024 + 24));
        assert_eq!(progress.bytes_per_second, 4096.0);
        assert_eq!(progress.time_left, Some(Duration::from_secs_f64(1048.0 / 4096.0)));
        let start = ChunkProgress::new(0, 4, Some(24), false, Duration::ZERO);
        assert_eq!((start.bytes_per_second, start.time_left), (0.0, None));
    }

    #[test]
    fn the_size_is_a_bound_until_the_last_slice_is_known() {
        let total = |last_bytes, last| {
            let progress = ChunkProgress::new(1, 2, last_bytes, last, Duration::ZERO);
            (progress.bytes, progress.total_bytes)
        };
        assert_eq!(total(None, false), (1024, 2048));
        assert_eq!(total(Some(1), true), (1, 1025));
    }
}
