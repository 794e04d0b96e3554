//! The packet header of our own framing: 2 to 10 bytes that carry the newest packet received from the peer, 32 ack bits,
//! and how many numbers before this packet's no packet has. The packet's own number is that of its datagram: netcode
//! carries and authenticates it.
//!
//! Promises: a written header has the shortest form, and reading it gives the same header back. Refuses: truncated
//! headers, and fragments that contradict themselves.
//!
//! | part | bytes | rule |
//! |---|---|---|
//! | prefix | 1 | bit 0: a fragment; bits 1..=4: ack bits byte 0..=3 is not 0xFF; bits 5 and 6: bytes of the ack, less one; bit 7: numbers were skipped |
//! | id, last id | 0 or 2 | in fragments: which one it is, and which is the last |
//! | ack | 1..=4 | the low bits of its number, little-endian; 0 before anything has arrived |
//! | ack bits | 0..=4 | the flagged bytes, lowest first; an absent byte is 0xFF |
//! | skipped | 0 or 1 | how many numbers before this one no packet has |
//!
//! A fragment's packet has the number of its first fragment. The other fragments have prefix 1, and neither acks nor skipped
//! numbers.

use super::fragment::{Fragment, FragmentError, check_place, check_size};
use super::header::{FRAGMENT_FLAG, HeaderError, read_ack_bits, write_ack_bits};
use crate::store::sequence::unwrap;
use crate::transport::ledger::acks::FullHeader;

/// The longest header of a packet in one datagram.
pub const MAX_SIZE: usize = 1 + 4 + 4 + 1;

/// How far the prefix shifts the length of the ack.
const ACK_LENGTH_SHIFT: u32 = 5;
const SKIPPED_FLAG: u8 = 1 << 7;

/// Appends the header of a whole packet or of a first fragment: which fragments there are, if any.
pub fn write(header: &FullHeader, last_id: Option<u8>, out: &mut Vec<u8>) {
    // The low bits. Without ack bits, as before anything has arrived, the ack means nothing.
    let ack = if header.ack == u64::MAX { 0 } else { header.ack as u32 };
    let ack_length = (4 - ack.leading_zeros() as usize / 8).max(1);
    let start = out.len();
    out.push(((ack_length - 1) as u8) << ACK_LENGTH_SHIFT);
    if let Some(last_id) = last_id {
        out[start] |= FRAGMENT_FLAG;
        out.extend([0, last_id]);
    }
    out.extend_from_slice(&ack.to_le_bytes()[..ack_length]);
    out[start] |= write_ack_bits(header.ack_bits, |byte| out.push(byte));
    if header.skipped > 0 {
        out[start] |= SKIPPED_FLAG;
        out.push(header.skipped);
    }
}

/// Appends a fragment; the first one carries the header of its packet.
pub fn write_fragment(fragment: &Fragment<'_>, out: &mut Vec<u8>) {
    match &fragment.header {
        Some(header) => write(header, Some(fragment.last_id), out),
        None => out.extend([FRAGMENT_FLAG, fragment.id, fragment.last_id]),
    }
    out.extend_from_slice(fragment.data);
}

/// Reads the header of a whole packet, which came under this number; `newest_sent` is the newest packet of this side.
/// Returns the payload behind it, too.
pub fn read(number: u64, datagram: &[u8], newest_sent: u64) -> Result<(FullHeader, &[u8]), HeaderError> {
    let (prefix, rest) = datagram.split_first().ok_or(HeaderError::TooShort)?;
    read_acks(number, *prefix, rest, newest_sent)
}

/// Reads a fragment, which came under this number.
pub(in crate::transport) fn read_fragment(
    number: u64,
    datagram: &[u8],
    newest_sent: u64,
    fragment_size: usize,
    max_fragments: usize,
) -> Result<Fragment<'_>, FragmentError> {
    let (&[prefix, id, last_id], rest) = datagram.split_first_chunk().ok_or(FragmentError::TooShort)?;
    check_place(id, last_id, max_fragments)?;
    let packet = number.checked_sub(id.into()).ok_or(FragmentError::Id)?;
    let (header, data) = if id == 0 {
        let (header, data) = read_acks(number, prefix, rest, newest_sent).map_err(FragmentError::Header)?;
        (Some(header), data)
    } else if prefix == FRAGMENT_FLAG {
        (None, rest)
    } else {
        return Err(FragmentError::Prefix);
    };
    check_size(id, last_id, data, fragment_size)?;
    Ok(Fragment { packet, id, last_id, header, data })
}

fn read_acks(
    number: u64,
    prefix: u8,
    bytes: &[u8],
    newest_sent: u64,
) -> Result<(FullHeader, &[u8]), HeaderError> {
    let ack_length = usize::from(prefix >> ACK_LENGTH_SHIFT & 3) + 1;
    let (low, rest) = bytes.split_at_checked(ack_length).ok_or(HeaderError::TooShort)?;
    let mut ack = [0; 4];
    ack[..ack_length].copy_from_slice(low);
    let (ack_bits, mut rest) = read_ack_bits(prefix, rest)?;
    let mut skipped = 0;
    if prefix & SKIPPED_FLAG != 0 {
        (skipped, rest) = rest.split_first().map(|(b, r)| (*b, r)).ok_or(HeaderError::TooShort)?;
    }
    let ack = unwrap(u32::from_le_bytes(ack).into(), 32, newest_sent);
    Ok((FullHeader { sequence: number, ack, ack_bits, skipped }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn header(ack: u64, ack_bits: u32, skipped: u8) -> FullHeader {
        FullHeader { sequence: 1 << 40, ack, ack_bits, skipped }
    }

    fn written(header: &FullHeader) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(header, None, &mut bytes);
        bytes
    }

    #[test]
    fn sizes_go_from_two_to_ten_bytes() {
        for (ack, bytes) in [(100, 2), (256, 3), (65_536, 4), (1 << 24, 5), ((1 << 32) + 7, 2)] {
            assert_eq!(written(&header(ack, u32::MAX, 0)).len(), bytes, "{ack}");
        }
        assert_eq!(written(&header(u64::MAX, 0, 0)), [0b0001_1110, 0, 0, 0, 0, 0], "nothing has arrived");
        assert_eq!(written(&header(u64::MAX - 1, 0, 255)).len(), MAX_SIZE);
    }

    #[test]
    fn reads_what_it_writes_and_nothing_shorter() {
        let mut rng = Rng::seeded(11);
        for _ in 0..20_000 {
            let newest_sent = rng.next_u64() >> rng.below(64);
            let ack = newest_sent.wrapping_sub(rng.next_u64() >> 33 >> rng.below(32)).min(u64::MAX - 1);
            let ack_bits = (rng.next_u64() | rng.next_u64() | rng.next_u64()) as u32;
            let header = header(ack, ack_bits, if rng.chance(0.3) { rng.below(256) as u8 } else { 0 });
            let mut bytes = written(&header);
            for cut in 0..bytes.len() {
                assert_eq!(read(1 << 40, &bytes[..cut], newest_sent), Err(HeaderError::TooShort));
            }
            bytes.extend_from_slice(b"payload");
            assert_eq!(read(1 << 40, &bytes, newest_sent), Ok((header, &b"payload"[..])));
        }
    }

    #[test]
    fn a_fragment_that_contradicts_itself_is_refused() {
        let read = |number: u64, bytes: &[u8]| read_fragment(number, bytes, 0, 4, 3).map(|it| it.packet);
        let mut first = Vec::new();
        write(&header(7, u32::MAX, 0), Some(2), &mut first);
        first.extend([9; 4]);
        assert_eq!(read(5, &first), Ok(5));
        assert_eq!(read(5, &first[..4]), Err(FragmentError::Size));
        assert_eq!(read(5, &first[..3]), Err(FragmentError::Header(HeaderError::TooShort)));
        let later = [1, 2, 2, 9];
        assert_eq!(read(5, &later), Ok(3));
        assert_eq!(read(1, &later), Err(FragmentError::Id), "its packet would be before 0");
        assert_eq!(read(5, &later[..2]), Err(FragmentError::TooShort));
        assert_eq!(read(5, &[1, 2, 1, 9]), Err(FragmentError::Id));
        assert_eq!(read(5, &[1, 2, 3, 9]), Err(FragmentError::TooMany));
        assert_eq!(read(5, &[3, 2, 2, 9]), Err(FragmentError::Prefix));
        assert_eq!(read(5, &[1, 1, 2, 9]), Err(FragmentError::Size));
        assert_eq!(read(5, &[1, 2, 2, 9, 9, 9, 9, 9]), Err(FragmentError::Size));
    }
}
