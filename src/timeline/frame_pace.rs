//! Whether a client's frames are slightly longer than the server's ticks.

use crate::time::Instant;

/// A frame of a whole number of ticks may be off by this fraction: the hold of a client's inputs evens it out.
pub(super) const EVEN_FRAME: f64 = 0.1;
/// Frames whose slip is averaged, for now and for comparison, and frames until a comparison says anything.
const RECENT_FRAMES: u32 = 32;
const MANY_FRAMES: u32 = 1_800;
const FIRST_FRAMES: u32 = 120;
/// Frames slip if they are later than on average by this many ticks: known of 59.94 Hz after three seconds.
const SLIPPED: f64 = 0.05;
/// After this many ticks inputs were late in some frame, or would have been.
const LEARNED: f64 = 1.25;

/// Finds out whether frames are slightly longer than ticks, as those of a 59.94 Hz screen at 60 ticks a second: each input
/// arrives a little later in its tick, and at last too late. The lead has learned from that once it has happened. Until
/// then it doesn't know how early inputs are, because a server that polls takes all of them at the end of the tick. The
/// clock doesn't know either, because it follows the frames. So frames are measured by local time.
#[derive(Debug, Default)]
pub(super) struct FramePace {
    last: Option<Instant>,
    /// How many frames in a row had this many ticks.
    frames: u32,
    usual: u32,
    /// By how many ticks all these frames took longer: now, and on average over the last few and over many of them.
    slip: f64,
    recent: f64,
    typical: f64,
    is_slipping: bool,
}

impl FramePace {
    /// Takes a frame, which has this many ticks if it is like most. Returns whether inputs will be late for the first time.
    pub(super) fn note_frame(&mut self, now: Instant, rate: f64, usual: u32) -> bool {
        let Some(last) = self.last.replace(now) else { return self.is_slipping };
        let ticks = f64::from(usual);
        let off = (now - last).as_secs_f64() * rate - ticks;
        if off.abs() > EVEN_FRAME * ticks || usual != self.usual {
            *self =
                FramePace { last: self.last, usual, is_slipping: self.is_slipping, ..FramePace::default() };
            return self.is_slipping;
        }
        self.frames = self.frames.saturating_add(1);
        self.slip += off;
        self.recent += (self.slip - self.recent) / f64::from(self.frames.min(RECENT_FRAMES));
        self.typical += (self.slip - self.typical) / f64::from(self.frames.min(MANY_FRAMES));
        if self.frames >= FIRST_FRAMES {
            self.is_slipping = self.recent - self.typical > SLIPPED && self.slip < LEARNED;
        }
        self.is_slipping
    }
}
