//! Time sync: the side that runs ahead slows down, so that all guess equally much.
//!
//! Each side measures how many frames it is ahead of the newest frame it has heard of, which is too many by the
//! packet's travel time. Half the difference of both sides' measurements is the true lead: the travel times of both
//! directions are in both, and cancel out (GGPO's time sync).

/// The divisor of a measurement's share in the average.
const PART: i32 = 16;
/// Averages are held in this fraction of a frame.
const SCALE: i32 = 256;
/// Sent values are in this fraction of a frame, in 8 bits.
const SENT_SCALE: i32 = 4;
/// Seconds in which the leading side gives up its lead.
const CATCH_SECONDS: f64 = 1.0;
/// The maximum reduction of the rate.
const MAX_SLOWER: f64 = 0.1;
/// Leads below this are noise: frames are counted whole.
const DEAD_FRAMES: f64 = 0.5;

/// How far this side is ahead of one peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Advantage {
    // In 1/SCALE frames.
    own: i32,
    theirs: Option<i32>,
    measures: u32,
}

impl Advantage {
    /// Takes a measurement: the own frame less the newest one heard of.
    pub(super) fn measure(&mut self, frames: i64) {
        let value = frames.clamp(-100, 100) as i32 * SCALE;
        // The first measurements count more, as in a plain average.
        self.measures = (self.measures + 1).min(PART.cast_unsigned());
        self.own += (value - self.own) / self.measures.cast_signed();
    }

    /// The measurement for the peer, in 8 bits.
    pub(super) fn measured(&self) -> u8 {
        (self.own * SENT_SCALE / SCALE).clamp(-127, 127) as i8 as u8
    }

    /// Takes the peer's measurement.
    pub(super) fn note_theirs(&mut self, measured: u8) {
        self.theirs = Some(i32::from(measured.cast_signed()) * SCALE / SENT_SCALE);
    }

    /// By how many frames this side is ahead of the peer.
    pub(super) fn ahead(&self) -> f64 {
        let Some(theirs) = self.theirs else { return 0.0 };
        f64::from(self.own - theirs) / f64::from(2 * SCALE)
    }
}

/// The share of its rate at which a side with this lead should run.
pub(super) fn speed(ahead: f64, rate: f64) -> f64 {
    if ahead <= DEAD_FRAMES { 1.0 } else { 1.0 - (ahead / CATCH_SECONDS / rate).min(MAX_SLOWER) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_packets_take_falls_out() {
        let (mut a, mut b) = (Advantage::default(), Advantage::default());
        for _ in 0..200 {
            // A is 4 frames ahead, and packets take 6.
            a.measure(4 + 6);
            b.measure(-4 + 6);
            a.note_theirs(b.measured());
            b.note_theirs(a.measured());
        }
        assert!((a.ahead() - 4.0).abs() < 0.3, "{}", a.ahead());
        assert!((b.ahead() + 4.0).abs() < 0.3, "{}", b.ahead());
        assert!(speed(a.ahead(), 60.0) < 0.95 && speed(b.ahead(), 60.0) == 1.0);
    }
}
