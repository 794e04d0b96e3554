//! The packet header of reliable 1.0: 4 to 9 bytes that carry a sequence, the newest sequence received from
//! the peer, and 32 ack bits.
//!
//! Promises: a written header is the canonical (shortest) form, and reading it gives the same header back.
//! Refuses: truncated headers, and fragments (bit 0 of the prefix set).
//!
//! | part | bytes | rule |
//! |---|---|---|
//! | prefix | 1 | bit 0 clear; bits 1..=4: ack bits byte 0..=3 is not 0xFF; bit 5: the ack fits in one byte |
//! | sequence | 2 | little-endian |
//! | ack | 1 or 2 | sequence - ack when that is at most 255 (counting across the wrap), else the ack |
//! | ack bits | 0..=4 | the flagged bytes, lowest first; an absent byte is 0xFF |
//!
//! Nothing in a header is trusted here; sequence and acks are claims that `Acks` judges.

use crate::store::sequence::unwrap;
use crate::transport::ledger::acks::FullHeader;

/// Bit 0 of the prefix: clear on a packet, set on a fragment.
pub(crate) const FRAGMENT_FLAG: u8 = 1;
/// Bits 1..=4 of the prefix: which bytes of the ack bits are present.
const ACK_BYTE_FLAGS: [u8; 4] = [1 << 1, 1 << 2, 1 << 3, 1 << 4];
/// Bit 5 of the prefix: the ack is written as its one-byte distance behind the sequence.
const SHORT_ACK_FLAG: u8 = 1 << 5;

/// Writes the bytes of ack bits that are not 0xFF; returns their flags in the prefix.
pub(super) fn write_ack_bits(ack_bits: u32, mut put: impl FnMut(u8)) -> u8 {
    let mut prefix = 0;
    for (byte, flag) in ack_bits.to_le_bytes().into_iter().zip(ACK_BYTE_FLAGS) {
        if byte != 0xFF {
            prefix |= flag;
            put(byte);
        }
    }
    prefix
}

/// Reads the bytes of ack bits that the prefix flags; returns what is behind them, too.
pub(super) fn read_ack_bits(prefix: u8, mut rest: &[u8]) -> Result<(u32, &[u8]), HeaderError> {
    let mut ack_bytes = [0xFF; 4];
    for (byte, flag) in ack_bytes.iter_mut().zip(ACK_BYTE_FLAGS) {
        if prefix & flag != 0 {
            (*byte, rest) = rest.split_first().map(|(b, r)| (*b, r)).ok_or(HeaderError::TooShort)?;
        }
    }
    Ok((u32::from_le_bytes(ack_bytes), rest))
}

/// The header of every packet: its number, and acks for the other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The number of this packet.
    pub sequence: u16,
    /// The newest sequence of the peer. Whether that packet was received is bit 0 of `ack_bits`.
    pub ack: u16,
    /// Bit n is set when packet `ack` - n was received.
    pub ack_bits: u32,
}

impl Header {
    /// Prefix, sequence, two bytes of ack, all four bytes of ack bits.
    pub const MAX_SIZE: usize = 1 + 2 + 2 + 4;

    /// The full numbers, by the newest that are known: the peer's received one and ours sent.
    pub fn unwrap(&self, received: u64, sent: u64) -> FullHeader {
        let (sequence, ack) = (unwrap(self.sequence.into(), 16, received), unwrap(self.ack.into(), 16, sent));
        FullHeader { sequence, ack, ack_bits: self.ack_bits, skipped: 0 }
    }

    /// The bytes of the canonical form.
    pub fn size(&self) -> usize {
        let ack = if self.sequence.wrapping_sub(self.ack) <= 255 { 1 } else { 2 };
        1 + 2 + ack + self.ack_bits.to_le_bytes().iter().filter(|byte| **byte != 0xFF).count()
    }

    /// Appends the canonical form to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (bytes, len) = self.bytes();
        out.extend_from_slice(&bytes[..len]);
    }

    /// The canonical form, and how many bytes it takes.
    fn bytes(&self) -> ([u8; Self::MAX_SIZE], usize) {
        let mut bytes = [0; Self::MAX_SIZE];
        let mut len = 1;
        let mut put = |byte| {
            bytes[len] = byte;
            len += 1;
        };
        self.sequence.to_le_bytes().into_iter().for_each(&mut put);
        let mut prefix = match u8::try_from(self.sequence.wrapping_sub(self.ack)) {
            Ok(behind) => {
                put(behind);
                SHORT_ACK_FLAG
            }
            Err(_) => {
                self.ack.to_le_bytes().into_iter().for_each(&mut put);
                0
            }
        };
        prefix |= write_ack_bits(self.ack_bits, put);
        bytes[0] = prefix;
        (bytes, len)
    }

    /// The header at the start of `bytes` and the number of bytes it takes. Longer forms than the canonical
    /// one and set reserved bits (6 and 7) are read, as the reference does.
    ///
    /// # Errors
    /// When the bytes end inside the header, or start a fragment.
    pub fn read(bytes: &[u8]) -> Result<(Header, usize), HeaderError> {
        let (&[prefix, low, high], rest) = bytes.split_first_chunk().ok_or(HeaderError::TooShort)?;
        if prefix & FRAGMENT_FLAG != 0 {
            return Err(HeaderError::Fragment);
        }
        let sequence = u16::from_le_bytes([low, high]);
        let (ack, rest) = if prefix & SHORT_ACK_FLAG != 0 {
            let (&behind, rest) = rest.split_first().ok_or(HeaderError::TooShort)?;
            (sequence.wrapping_sub(u16::from(behind)), rest)
        } else {
            let (&ack, rest) = rest.split_first_chunk().ok_or(HeaderError::TooShort)?;
            (u16::from_le_bytes(ack), rest)
        };
        let (ack_bits, rest) = read_ack_bits(prefix, rest)?;
        let header = Header { sequence, ack, ack_bits };
        Ok((header, bytes.len() - rest.len()))
    }

    /// Whether `bytes` are exactly what [`Header::write`] makes of this header. The header inside fragment 0
    /// must be: a receiver strips it by its re-encoded length.
    pub fn is_canonical(&self, bytes: &[u8]) -> bool {
        let (canonical, len) = self.bytes();
        canonical[..len] == *bytes
    }
}

impl From<FullHeader> for Header {
    fn from(full: FullHeader) -> Self {
        // The low bits.
        Header { sequence: full.sequence as u16, ack: full.ack as u16, ack_bits: full.ack_bits }
    }
}

/// Why bytes are not a packet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderError {
    /// The bytes end inside the header.
    TooShort,
    /// Bit 0 of the prefix is set: a fragment, not a packet.
    Fragment,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn written(header: &Header) -> Vec<u8> {
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        bytes
    }

    #[test]
    fn sizes_go_from_four_to_nine_bytes() {
        let steady = Header { sequence: 200, ack: 100, ack_bits: u32::MAX };
        assert_eq!(written(&steady).len(), 1 + 2 + 1);
        let worst = Header { sequence: 10_000, ack: 100, ack_bits: 0 };
        assert_eq!(written(&worst).len(), Header::MAX_SIZE);
    }

    #[test]
    fn reads_what_it_writes_and_nothing_shorter() {
        let mut rng = Rng::seeded(11);
        for _ in 0..20_000 {
            let sequence = rng.next_u64() as u16;
            let near = rng.chance(0.5);
            let ack = if near { sequence.wrapping_sub(rng.below(300) as u16) } else { rng.next_u64() as u16 };
            let ack_bits = (rng.next_u64() | rng.next_u64() | rng.next_u64()) as u32;
            let header = Header { sequence, ack, ack_bits };
            let mut bytes = written(&header);
            assert_eq!(bytes.len(), header.size());
            assert!(header.is_canonical(&bytes));
            for cut in 0..bytes.len() {
                assert_eq!(Header::read(&bytes[..cut]), Err(HeaderError::TooShort));
            }
            let len = bytes.len();
            bytes.extend_from_slice(b"payload");
            assert_eq!(Header::read(&bytes), Ok((header, len)));
        }
    }

    #[test]
    fn reads_longer_forms_and_tells_them_from_the_canonical_one() {
        let steady = Header { sequence: 200, ack: 100, ack_bits: u32::MAX };
        let long_ack = [0x00, 200, 0, 100, 0];
        let flagged_ones = [0x22, 200, 0, 100, 0xFF];
        let reserved_bits = [0xE0, 200, 0, 100];
        for bytes in [&long_ack[..], &flagged_ones, &reserved_bits] {
            assert_eq!(Header::read(bytes), Ok((steady, bytes.len())));
            assert!(!steady.is_canonical(bytes));
        }
    }

    #[test]
    fn refuses_a_fragment() {
        assert_eq!(Header::read(&[0x01, 0, 0, 0, 0, 0]), Err(HeaderError::Fragment));
    }
}
