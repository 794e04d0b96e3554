//! When the next turn is due. A late player hurries a little, one that runs ahead of the others waits a little, and
//! after a long stop the clock starts again.

use super::config::{NORMAL_SPEED, Pace};
use crate::time::{Duration, Instant};

/// How much a turn may be shortened or lengthened to stay in step with the others, as a share of it.
const MAX_CORRECTION: f64 = 0.125;
/// The share of its lead that a player gives up in a turn.
const LEAD_GAIN: f64 = 0.25;

/// The real time of a turn.
pub fn length(step: Duration, pace: Pace, speed: u8) -> Duration {
    step * u32::from(pace.steps) * u32::from(NORMAL_SPEED) / u32::from(speed.max(1))
}

/// When the next turn is due.
///
/// `due` was the due time of the turn that starts `now`, `stalled` whether it waited for data; `lead` is the mean
/// number of milliseconds that this player runs ahead of the others.
pub fn next_due(due: Instant, now: Instant, stalled: bool, length: Duration, lead: f64) -> Instant {
    let late = now - due;
    let whole = length.as_secs_f64();
    let correction = (lead / 1000.0 * LEAD_GAIN).clamp(-whole * MAX_CORRECTION, whole * MAX_CORRECTION);
    let begins = if stalled && late > length / 4 {
        // Time lost to a stall isn't made up: the others waited too.
        Instant::ZERO + (now - (Instant::ZERO + length / 4))
    } else if late > length * 4 {
        now
    } else {
        due
    };
    Instant::from_nanos(begins.as_nanos() + ((whole + correction) * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_each_other_and_come_in_step() {
        let ms = Instant::from_millis;
        let length = length(Duration::from_millis(33), Pace { steps: 3, delay: 2 }, 10);
        assert_eq!(length, Duration::from_millis(99));
        assert_eq!(next_due(ms(1000), ms(1010), false, length, 0.0), ms(1099));
        assert_eq!(next_due(ms(1000), ms(1010), false, length, 20.0), ms(1104));
        assert!(next_due(ms(1000), ms(1010), false, length, -900.0) >= ms(1086));
        assert!(next_due(ms(1000), ms(1090), true, length, 0.0) > ms(1160), "a stall moves all that follows");
        assert_eq!(next_due(ms(1000), ms(9000), false, length, 0.0), ms(9099), "time begins anew");
    }
}
