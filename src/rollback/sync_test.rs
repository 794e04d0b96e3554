//! The sync test: runs each frame `k` times more on the same inputs, from saved states, and expects the same result.
//!
//! This finds on one machine what would desync two: a step that reads a clock, an unseeded generator, memory that isn't
//! saved, or a set's order.

use super::config::InputShape;
use super::input_log::{GameInput, InputLog};

/// A request to the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayStep {
    /// Save the state as it is before this frame.
    Save(u32),
    /// Load the state before this frame.
    Load(u32),
    /// Run a frame with the inputs of [`SyncTest::input`].
    Advance(u32),
    /// Compare the state with the saved one of this frame, without saving it.
    Compare(u32),
}

/// A game that plays against itself.
#[derive(Debug)]
pub struct SyncTest {
    frame: u32,
    back: u32,
    logs: Vec<InputLog>,
}

impl SyncTest {
    /// Goes back `back` frames, at least one, after each frame.
    pub fn new(players: usize, shape: &InputShape, back: u32) -> Self {
        let back = back.clamp(1, super::config::MAX_WINDOW);
        SyncTest { frame: 0, back, logs: (0..players).map(|_| InputLog::new(shape)).collect() }
    }

    // The next frame to run.
    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// How many states must be kept.
    pub fn states(&self) -> usize {
        self.back as usize + 1
    }

    /// Takes the next frame's input of the next player; give all of them before [`SyncTest::advance`].
    pub fn give(&mut self, player: usize, input: GameInput<'_>) {
        self.logs[player].push(input);
    }

    /// An input of one of the last frames.
    pub fn input(&self, player: usize, frame: u32) -> GameInput<'_> {
        self.logs[player].get(frame)
    }

    /// One frame: runs it, goes back, and runs the frames since then again.
    pub fn advance(&mut self, steps: &mut Vec<ReplayStep>) {
        steps.clear();
        let frame = self.frame;
        // A later frame's state was saved by the frame before.
        if frame == 0 {
            steps.push(ReplayStep::Save(frame));
        }
        steps.push(ReplayStep::Advance(frame));
        self.frame += 1;
        let first = self.frame.saturating_sub(self.back);
        // The game goes on with the newest state: it is saved to be compared with the replayed one.
        steps.extend([ReplayStep::Save(self.frame), ReplayStep::Load(first)]);
        for again in first..self.frame {
            steps.extend([ReplayStep::Advance(again), ReplayStep::Compare(again + 1)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::states::StateRing;
    use super::*;

    /// Runs a game with one number as its state; from frame `fault` on, its step isn't deterministic.
    fn first_difference(fault: u32) -> Option<u32> {
        let mut test = SyncTest::new(1, &InputShape::of_bits(8), 7);
        let mut ring = StateRing::new(8, test.states());
        let (mut state, mut calls, mut steps) = (1u64, 0u64, Vec::new());
        for frame in 0..100u32 {
            test.give(0, GameInput { bytes: &[frame as u8], bits: 8 });
            test.advance(&mut steps);
            for step in &steps {
                match *step {
                    ReplayStep::Save(frame) => ring.save(frame).copy_from_slice(&state.to_le_bytes()),
                    ReplayStep::Load(frame) => {
                        state = u64::from_le_bytes(ring.get(frame).unwrap().try_into().unwrap());
                    }
                    ReplayStep::Advance(frame) => {
                        calls += 1;
                        let input = u64::from(test.input(0, frame).bytes[0]);
                        state = state.wrapping_mul(31).wrapping_add(input);
                        state ^= if frame >= fault { calls } else { 0 };
                    }
                    ReplayStep::Compare(frame) => {
                        if ring.get(frame).unwrap() != state.to_le_bytes() {
                            return Some(frame);
                        }
                    }
                }
            }
        }
        None
    }

    #[test]
    fn finds_a_step_that_is_not_the_same_twice() {
        assert_eq!(first_difference(u32::MAX), None);
        assert_eq!(first_difference(0), Some(1));
        assert_eq!(first_difference(30), Some(31));
    }
}
