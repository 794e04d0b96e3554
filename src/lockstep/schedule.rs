//! When the next turn is due: turns follow each other by their length; who is late hurries a little, who runs ahead of the
//! others waits a little, and after a long halt time begins anew.

use super::config::{NORMAL_SPEED, Pace};
use crate::time::{Duration, Instant};

/// The part of a turn by which it may be shortened or drawn out to be in step with the others.
const MAX_CORRECTION: f64 = 0.125;
/// The part of its lead that a turn gives back.
const LEAD_GAIN: f64 = 0.25;

/// The real time of a turn.
pub fn length(step: Duration, pace: Pace, speed: u8) -> Duration {
    step * u32::from(pace.steps) * u32::from(NORMAL_SPEED) / u32::from(speed.max(1))
}

/// When the turn after one is due.
///
/// `due` was the time of the one that starts `now`, `stalled` whether it waited for data; `lead` is how many milliseconds
/// this player runs ahead of the others in the mean.
pub fn next_due(due: Instant, now: Instant, stalled: bool, length: Duration, lead: f64) -> Instant {
    let late = now - due;
    let whole = length.as_secs_f64();
    let correction = (lead / 1000.0 * LEAD_GAIN).clamp(-whole * MAX_CORRECTION, whole * MAX_CORRECTION);
    let begins = if stalled && late > length / 4 {
        // What was waited for isn't run after: the others waited too.
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
