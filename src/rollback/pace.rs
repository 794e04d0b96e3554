//! Who is ahead of whom: the one who is slows down, so that all guess equally much.
//!
//! Each side measures by how many frames it is ahead of the newest frame that it has heard of, which is too much by what the
//! packet took. Half the difference of the two sides' measures is by how much the one is ahead: what both directions take is in
//! both, and falls out (GGPO's time sync).

/// A measure enters the average by this part.
const PART: i32 = 16;
/// An average is held in this part of a frame.
const SCALE: i32 = 256;
/// What goes over the wire is in this part of a frame, in 8 bits.
const SENT_SCALE: i32 = 4;
/// Seconds in which the one ahead gives up what it is ahead.
const CATCH_SECONDS: f64 = 1.0;
/// The rate is lowered by this part at most.
const MAX_SLOWER: f64 = 0.1;
/// Less than this is noise of frames that are counted whole.
const DEAD_FRAMES: f64 = 0.5;

/// How far ahead of one peer this side is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Advantage {
    // In 1/SCALE frames.
    own: i32,
    theirs: Option<i32>,
    measures: u32,
}

impl Advantage {
    /// Measured: own frame less the newest that was heard of.
    pub(super) fn measure(&mut self, frames: i64) {
        let value = frames.clamp(-100, 100) as i32 * SCALE;
        // The first ones count more, as an average of all.
        self.measures = (self.measures + 1).min(PART.cast_unsigned());
        self.own += (value - self.own) / self.measures.cast_signed();
    }

    /// What is told the peer, in 8 bits.
    pub(super) fn told(&self) -> u8 {
        (self.own * SENT_SCALE / SCALE).clamp(-127, 127) as i8 as u8
    }

    /// What the peer told.
    pub(super) fn hear(&mut self, told: u8) {
        self.theirs = Some(i32::from(told.cast_signed()) * SCALE / SENT_SCALE);
    }

    /// Frames by which this side is ahead of the peer.
    pub(super) fn ahead(&self) -> f64 {
        let Some(theirs) = self.theirs else { return 0.0 };
        f64::from(self.own - theirs) / f64::from(2 * SCALE)
    }
}

/// The part of its rate at which a side that is this much ahead should go on.
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
            a.hear(b.told());
            b.hear(a.told());
        }
        assert!((a.ahead() - 4.0).abs() < 0.3, "{}", a.ahead());
        assert!((b.ahead() + 4.0).abs() < 0.3, "{}", b.ahead());
        assert!(speed(a.ahead(), 60.0) < 0.95 && speed(b.ahead(), 60.0) == 1.0);
    }
}
