//! A ring of saved states: bytes of a fixed size, copied in and out.

/// The states of the newest frames, in one block of memory that is allocated once.
#[derive(Debug)]
pub struct StateRing {
    size: usize,
    bytes: Vec<u8>,
    frames: Vec<Option<u32>>,
}

impl StateRing {
    /// Room for this many states of `size` bytes.
    pub fn new(size: usize, states: usize) -> Self {
        let states = states.max(1);
        StateRing { size, bytes: vec![0; size * states], frames: vec![None; states] }
    }

    // Bytes of a state.
    pub fn size(&self) -> usize {
        self.size
    }

    fn place(&self, frame: u32) -> usize {
        frame as usize % self.frames.len()
    }

    /// The memory for a frame's state, which replaces the oldest.
    pub fn save(&mut self, frame: u32) -> &mut [u8] {
        let place = self.place(frame);
        self.frames[place] = Some(frame);
        &mut self.bytes[place * self.size..][..self.size]
    }

    /// The state of a frame, if it is still kept.
    pub fn get(&self, frame: u32) -> Option<&[u8]> {
        let place = self.place(frame);
        (self.frames[place] == Some(frame)).then(|| &self.bytes[place * self.size..][..self.size])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_newest_states() {
        let mut ring = StateRing::new(2, 3);
        for frame in 0..10u8 {
            ring.save(frame.into()).copy_from_slice(&[frame, frame]);
        }
        assert_eq!(ring.get(6), None);
        assert!((7..10u8).all(|frame| ring.get(frame.into()) == Some(&[frame, frame][..])));
    }
}
