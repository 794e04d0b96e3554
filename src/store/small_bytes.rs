//! Short byte strings are stored inline; only longer ones are allocated, in memory that is reused if it is given
//! back.

use core::fmt;
use core::ops::Deref;

/// Bytes that need no allocation. With the length and the tag they fill 64 bytes.
const INLINE: usize = 62;

/// Bytes that don't change.
#[derive(Clone)]
pub struct SmallBytes(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE] },
    Allocated(Vec<u8>),
}

impl From<&[u8]> for SmallBytes {
    fn from(given: &[u8]) -> Self {
        SmallBytes::inline(given).unwrap_or_else(|| SmallBytes(Repr::Allocated(given.into())))
    }
}

impl SmallBytes {
    fn inline(given: &[u8]) -> Option<Self> {
        let mut bytes = [0; INLINE];
        bytes.get_mut(..given.len())?.copy_from_slice(given);
        // At most 62.
        Some(SmallBytes(Repr::Inline { len: given.len() as u8, bytes }))
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Repr::Allocated(bytes) => bytes,
        }
    }
}

impl fmt::Debug for SmallBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Most memory kept for later, in bytes: a thousand messages of a kilobyte.
const MAX_SPARE: usize = 1 << 20;

/// What capacities are multiples of.
const BUFFER_STEP: usize = 128;

/// Memory of bytes that were many, for the next ones.
#[derive(Debug, Default)]
pub struct Spares {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spares {
    /// Copies the bytes, into reused memory if they need any.
    pub fn keep(&mut self, given: &[u8]) -> SmallBytes {
        SmallBytes::inline(given).unwrap_or_else(|| {
            let mut buffer = self.buffers.pop().unwrap_or_default();
            self.bytes -= buffer.capacity();
            buffer.clear();
            // Rounded to a few sizes, so that it fits most of the next ones.
            buffer.reserve(given.len().next_multiple_of(BUFFER_STEP));
            buffer.extend_from_slice(given);
            SmallBytes(Repr::Allocated(buffer))
        })
    }

    /// Takes back the memory of bytes that are no longer needed.
    pub fn reclaim(&mut self, bytes: SmallBytes) {
        if let Repr::Allocated(buffer) = bytes.0
            && self.bytes + buffer.capacity() <= MAX_SPARE
        {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_given_back_is_used_again_and_bounded() {
        let mut spares = Spares::default();
        let kept = spares.keep(&[1; 1000]);
        let memory = kept.as_ptr();
        spares.reclaim(kept);
        let kept = spares.keep(&[2; 1024]);
        assert_eq!((kept.as_ptr(), &*kept), (memory, &[2; 1024][..]));
        spares.reclaim(kept);
        let many: Vec<_> = (0..2000).map(|_| spares.keep(&[3; 1000])).collect();
        assert_eq!(spares.bytes, 0);
        many.into_iter().for_each(|kept| spares.reclaim(kept));
        assert_eq!(spares.bytes, MAX_SPARE);
        assert_eq!(spares.bytes, spares.buffers.iter().map(Vec::capacity).sum::<usize>());
    }

    #[test]
    fn bytes_of_any_length_are_kept() {
        for length in (0..130).chain([255, 256, 257, 1000]) {
            let given: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let kept = SmallBytes::from(given.as_slice());
            assert_eq!(*kept, given);
            assert_eq!(matches!(kept.0, Repr::Inline { .. }), length <= INLINE);
        }
        assert_eq!(size_of::<SmallBytes>(), INLINE + 2);
    }
}
