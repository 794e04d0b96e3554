//! Checksums of confirmed frames, compared by frame, and by field where they differ.

/// Fields that are compared separately; any beyond count as the last.
pub const MAX_FIELDS: usize = 64;

/// How many frames' checksums are kept.
pub const KEPT: usize = 16;

/// A fast 32-bit checksum, the same on every platform: mixes words by multiplication and rotation. It finds mistakes;
/// an attacker can construct collisions.
pub fn hash(seed: u32, bytes: &[u8]) -> u32 {
    let mut mix = Mix::new(seed);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        mix.add(u64::from_le_bytes(*word));
    }
    mix.add_rest(rest);
    mix.finish(bytes.len() as u64)
}

/// The checksum of `size` bytes at `offset` in every `stride` bytes: one field of an array's rows.
pub fn hash_strided(seed: u32, bytes: &[u8], offset: usize, size: usize, stride: usize) -> u32 {
    let mut mix = Mix::new(seed);
    let rows = bytes.chunks_exact(stride.max(1));
    let count = rows.len() as u64;
    for row in rows {
        let Some(field) = row.get(offset..offset + size) else { break };
        let (words, rest) = field.as_chunks::<8>();
        for word in words {
            mix.add(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            mix.add_rest(rest);
        }
    }
    mix.finish(count)
}

struct Mix(u64);

impl Mix {
    fn new(seed: u32) -> Self {
        Mix(0x9E37_79B9_7F4A_7C15 ^ u64::from(seed))
    }

    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(29);
    }

    fn add_rest(&mut self, rest: &[u8]) {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(word));
    }

    fn finish(mut self, length: u64) -> u32 {
        self.add(length);
        self.add(self.0 >> 32);
        (self.0 >> 32) as u32 ^ self.0 as u32
    }
}

/// A confirmed frame's checksums.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameCheck {
    pub(super) frame: u32,
    /// 0 if there is nothing to compare.
    pub(super) sum: u32,
    pub(super) count: u8,
    pub(super) fields: [u32; MAX_FIELDS],
}

impl FrameCheck {
    fn new(frame: u32, values: &[u32]) -> Self {
        let mut check =
            FrameCheck { frame, sum: 0, count: values.len().min(MAX_FIELDS) as u8, fields: [0; MAX_FIELDS] };
        for (i, value) in values.iter().enumerate() {
            let place = &mut check.fields[i.min(MAX_FIELDS - 1)];
            *place = if i < MAX_FIELDS { *value } else { hash(*place, &value.to_le_bytes()) };
            check.sum = hash(check.sum, &value.to_le_bytes()).max(1);
        }
        check
    }

    pub(super) fn fields(&self) -> &[u32] {
        &self.fields[..usize::from(self.count)]
    }

    /// The fields that another player has otherwise or lacks, by its checksums of the same frame, a bit each. A
    /// checksum covers the field's name, so fields need no order.
    pub(super) fn differing(&self, others: &[u32]) -> u64 {
        let fields = self.fields().iter().enumerate();
        fields.fold(0, |mask, (i, own)| mask | u64::from(!others.contains(own)) << i)
    }
}

/// The checksums of the newest confirmed frames.
#[derive(Debug)]
pub(super) struct CheckHistory {
    kept: Vec<FrameCheck>,
    newest: Option<u32>,
    every: u32,
}

impl CheckHistory {
    pub(super) fn new(every: u32) -> Self {
        CheckHistory { kept: Vec::with_capacity(KEPT), newest: None, every }
    }

    /// The next frame to check; its state is the one before it runs.
    pub(super) fn next(&self) -> Option<u32> {
        let every = (self.every > 0).then_some(self.every)?;
        Some(self.newest.map_or(0, |newest| newest + every))
    }

    pub(super) fn is_checked(&self, frame: u32) -> bool {
        self.every > 0 && frame.is_multiple_of(self.every)
    }

    /// Keeps a frame's checksums in place of the oldest.
    pub(super) fn note(&mut self, frame: u32, values: &[u32]) {
        let check = FrameCheck::new(frame, values);
        self.newest = Some(frame);
        let place = frame.checked_div(self.every).unwrap_or(0) as usize % KEPT;
        match self.kept.get_mut(place) {
            Some(kept) => *kept = check,
            None => {
                // The first entries of a game that doesn't begin at frame 0.
                let empty = FrameCheck { frame: u32::MAX, ..check };
                self.kept.resize(place, empty);
                self.kept.push(check);
            }
        }
    }

    pub(super) fn newest(&self) -> Option<&FrameCheck> {
        self.of(self.newest?)
    }

    pub(super) fn of(&self, frame: u32) -> Option<&FrameCheck> {
        let place = frame.checked_div(self.every)? as usize % KEPT;
        self.kept.get(place).filter(|check| check.frame == frame)
    }

    /// The check's frame, from the low 8 bits of its number.
    pub(super) fn frame_of(&self, low: u64) -> Option<u32> {
        let around = self.newest.unwrap_or(0).checked_div(self.every)?;
        u32::try_from(crate::store::sequence::nearest_of(low, 8, around.into())).ok()?.checked_mul(self.every)
    }

    pub(super) fn low_of(&self, frame: u32) -> u64 {
        u64::from(frame.checked_div(self.every).unwrap_or(0) & 0xFF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_changes_the_sum_and_names_the_field() {
        let state: Vec<u8> = (0..4096).map(|i| (i * 7) as u8).collect();
        let sums = |state: &[u8]| [0, 4, 8, 12].map(|at| hash_strided(0, state, at, 4, 16));
        const SUMS: [u32; 4] = [3_512_691_239, 1_560_352_000, 3_628_964_381, 1_514_269_119];
        let whole = hash(0, &state);
        assert_eq!((whole, sums(&state)), (2_787_296_408, SUMS), "the same on every machine");
        for bit in (0..4096 * 8).step_by(77) {
            let mut other = state.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(hash(0, &other), whole);
            let check = FrameCheck::new(16, &sums(&state));
            assert_eq!(check.differing(&sums(&other)), 1 << (bit / 8 % 16 / 4));
        }
    }

    #[test]
    fn checks_are_found_by_the_low_bits_of_their_number() {
        let mut history = CheckHistory::new(16);
        for number in 0..2000u32 {
            assert_eq!(history.next(), Some(number * 16));
            history.note(number * 16, &[number]);
            assert_eq!(history.frame_of(history.low_of(number * 16 + 160)), Some(number * 16 + 160));
            assert!(history.of(number * 16).is_some_and(|check| check.fields() == [number]));
        }
    }
}
