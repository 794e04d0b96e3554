//! One player's inputs by frame: the known ones, and guesses for the frames after them.

use super::config::{InputShape, MAX_INPUT_BITS, RING};

/// An input as bits; unused bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameInput<'a> {
    /// Lowest bit first; zero above `bits`.
    pub bytes: &'a [u8],
    pub bits: usize,
}

/// An owned input, with room for the longest.
#[derive(Clone, Debug)]
pub(super) struct HeldInput {
    bytes: [u8; MAX_INPUT_BITS / 8],
    bits: u16,
}

impl HeldInput {
    pub(super) fn new() -> Self {
        HeldInput { bytes: [0; MAX_INPUT_BITS / 8], bits: 0 }
    }

    pub(super) fn set(&mut self, input: GameInput<'_>) {
        let old = self.bytes_len();
        let new = input.bits.div_ceil(8);
        self.bytes[..new].copy_from_slice(&input.bytes[..new]);
        if new < old {
            self.bytes[new..old].fill(0);
        }
        self.bits = input.bits as u16;
    }

    fn bytes_len(&self) -> usize {
        usize::from(self.bits).div_ceil(8)
    }

    pub(super) fn get(&self) -> GameInput<'_> {
        GameInput { bytes: &self.bytes[..self.bytes_len()], bits: self.bits.into() }
    }

    /// The bytes to change: those past the old end are zero. The caller sets `bits` afterwards.
    pub(super) fn parts(&mut self) -> (&mut [u8; MAX_INPUT_BITS / 8], &mut u16) {
        (&mut self.bytes, &mut self.bits)
    }
}

/// A player's inputs in a ring: known ones for frames before `next`, guesses after it.
#[derive(Debug)]
pub(super) struct InputLog {
    stride: usize,
    bytes: Vec<u8>,
    bits: Vec<u16>,
    /// The first frame with an unknown input.
    next: u32,
    neutral_bits: u16,
}

impl InputLog {
    /// A log without known inputs; until some are known, the guess is neutral.
    pub(super) fn new(shape: &InputShape) -> Self {
        let stride = shape.max_bytes();
        InputLog {
            stride,
            bytes: vec![0; stride * RING as usize],
            bits: vec![shape.neutral_bits as u16; RING as usize],
            next: 0,
            neutral_bits: shape.neutral_bits as u16,
        }
    }

    pub(super) fn next(&self) -> u32 {
        self.next
    }

    fn place(frame: u32) -> usize {
        (frame % RING) as usize
    }

    /// The input stored for a frame.
    #[inline]
    pub(super) fn get(&self, frame: u32) -> GameInput<'_> {
        let place = Self::place(frame);
        let bits = usize::from(self.bits[place]);
        GameInput { bytes: &self.bytes[place * self.stride..][..bits.div_ceil(8)], bits }
    }

    /// The base of a frame's changes: the previous input, or the neutral one.
    #[inline]
    pub(super) fn before(&self, frame: u32) -> GameInput<'_> {
        match frame.checked_sub(1) {
            Some(before) => self.get(before),
            None => self.neutral(),
        }
    }

    /// The input before the first one: all zeros.
    pub(super) fn neutral(&self) -> GameInput<'_> {
        let bits = usize::from(self.neutral_bits);
        GameInput { bytes: &ZEROS[..bits.div_ceil(8)], bits }
    }

    fn set(&mut self, frame: u32, input: GameInput<'_>) {
        let place = Self::place(frame);
        let to = &mut self.bytes[place * self.stride..][..self.stride];
        let length = input.bits.div_ceil(8);
        to[..length].copy_from_slice(&input.bytes[..length]);
        to[length..].fill(0);
        self.bits[place] = input.bits as u16;
    }

    /// Adds the next frame's input. False if it equals the stored one.
    pub(super) fn push(&mut self, input: GameInput<'_>) -> bool {
        let is_new = self.get(self.next) != input;
        if is_new {
            self.set(self.next, input);
        }
        self.next += 1;
        is_new
    }

    /// Adds a repetition of the previous input.
    pub(super) fn push_repeat(&mut self) {
        self.repeat_newest(self.next);
        self.next += 1;
    }

    /// Guesses the input of a frame, if it isn't known: the newest known one.
    #[inline]
    pub(super) fn guess(&mut self, frame: u32) -> bool {
        let is_guess = frame >= self.next;
        if is_guess {
            self.repeat_newest(frame);
        }
        is_guess
    }

    fn repeat_newest(&mut self, frame: u32) {
        let Some(newest) = self.next.checked_sub(1) else { return self.clear(frame) };
        let (from, to) = (Self::place(newest), Self::place(frame));
        self.bytes.copy_within(from * self.stride..(from + 1) * self.stride, to * self.stride);
        self.bits[to] = self.bits[from];
    }

    /// Stores the neutral input for a frame, as the player is gone.
    pub(super) fn clear(&mut self, frame: u32) {
        let place = Self::place(frame);
        self.bytes[place * self.stride..][..self.stride].fill(0);
        self.bits[place] = self.neutral_bits;
    }

    /// Starts at a frame, with nothing known before it.
    pub(super) fn start_at(&mut self, frame: u32) {
        self.next = frame;
        if let Some(before) = frame.checked_sub(1) {
            self.clear(before);
        }
    }
}

const ZEROS: [u8; MAX_INPUT_BITS / 8] = [0; MAX_INPUT_BITS / 8];

#[cfg(test)]
mod tests {
    use super::*;

    fn input(byte: &[u8; 1]) -> GameInput<'_> {
        GameInput { bytes: byte, bits: 8 }
    }

    #[test]
    fn guesses_the_newest_input_and_says_when_a_guess_was_wrong() {
        let mut log = InputLog::new(&InputShape::of_bits(8));
        assert!(log.guess(0) && log.get(0).bytes == [0]);
        assert!(log.push(input(&[5])), "it was guessed to be 0");
        assert!(log.guess(1) && log.guess(2) && !log.guess(0));
        assert!(!log.push(input(&[5])));
        assert!(log.push(input(&[6])));
        log.push_repeat();
        assert_eq!((log.get(3).bytes, log.next()), (&[6][..], 4));
    }

    #[test]
    fn the_ring_goes_round() {
        let mut log = InputLog::new(&InputShape::of_bits(8));
        for frame in 0..1000u32 {
            log.push(input(&[frame as u8]));
            let kept = frame.saturating_sub(RING - 1)..=frame;
            assert!(kept.into_iter().all(|frame| log.get(frame).bytes == [frame as u8]));
        }
    }
}
