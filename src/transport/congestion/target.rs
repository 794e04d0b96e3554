//! The wait in the queue to aim for: short enough for a game's packets, and long enough to be told from noise.

use super::constants::{BLUR, PACKET};
use super::delay::Delay;

/// The queue to aim for, in seconds, is this over the root of bytes a second: 7 ms at 10 Mbit/s, 2 ms at 100. It is at
/// least twice [`BLUR`].
const TARGET: f64 = 8.0;
const MAX_TARGET: f64 = 0.010;

/// The part of both ends' ticks that is added to the target, because ticks blur the measurement.
const TARGET_TICKS: f64 = 0.25;
const MAX_TARGET_TICKS: f64 = 0.025;

/// And of the jitter, which is no queue.
const TARGET_JITTER: f64 = 3.0;
const MAX_TARGET_JITTER: f64 = 0.030;

/// The wait in the queue to aim for at this rate, where nothing blurs it.
pub(super) fn own_target(rate: f64) -> f64 {
    (TARGET / rate.max(1.0).sqrt()).clamp(2.0 * BLUR, MAX_TARGET)
}

/// The wait in the queue to aim for at this capacity.
pub(super) fn target(capacity: f64, delay: &Delay) -> f64 {
    let spacing = PACKET / capacity.max(20.0 * PACKET);
    own_target(capacity)
        + (TARGET_TICKS * delay.ticks()).min(MAX_TARGET_TICKS)
        + (TARGET_JITTER * (delay.jitter() - spacing).max(0.0)).min(MAX_TARGET_JITTER)
}
