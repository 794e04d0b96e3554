//! Bytes of which most are few: the few lie within the value, and only more of them are allocated.

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
    Allocated(Box<[u8]>),
}

impl From<&[u8]> for SmallBytes {
    fn from(given: &[u8]) -> Self {
        let mut bytes = [0; INLINE];
        match (bytes.get_mut(..given.len()), u8::try_from(given.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(given);
                SmallBytes(Repr::Inline { len, bytes })
            }
            _ => SmallBytes(Repr::Allocated(given.into())),
        }
    }
}

impl From<Box<[u8]>> for SmallBytes {
    fn from(given: Box<[u8]>) -> Self {
        SmallBytes(Repr::Allocated(given))
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

#[cfg(test)]
mod tests {
    use super::*;

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
