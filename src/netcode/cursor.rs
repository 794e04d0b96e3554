//! Reading fixed-size little-endian fields out of bytes that may end anywhere: the one way into tokens,
//! challenges and requests. Never past the end, never an allocation.

/// The unread bytes. Every read returns `None` at the end instead of reading past it.
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl Cursor<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_at_the_end_without_losing_what_is_left() {
        let mut cursor = Cursor(&[1, 2, 3]);
        assert_eq!(cursor.u16(), Some(0x0201));
        assert_eq!(cursor.u16(), None);
        assert_eq!(cursor.u8(), Some(3));
        assert_eq!(cursor.u8(), None);
    }
}
