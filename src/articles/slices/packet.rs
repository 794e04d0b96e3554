//! The two packets of the chunk system, written with serialize 1.0: little-endian, lowest bit first.
//!
//! | slice packet | bits | rule |
//! |---|---|---|
//! | kind | 1 | 0 |
//! | chunk id | 16 | counts from 0 and wraps |
//! | slice id | int 0..=max - 1 | below the slice count |
//! | slice count | int 1..=max | the same in every packet of the chunk |
//! | byte count | int 1..=1024 | only in the last slice; all others have 1,024 bytes |
//! | data | align, then the bytes | the alignment is zero, and nothing follows |
//!
//! | ack packet | bits | rule |
//! |---|---|---|
//! | kind | 1 | 1 |
//! | chunk id | 16 | |
//! | slice count | int 1..=max | |
//! | received | 1 for each slice | slice 0 first; the rest of the last byte is zero, and nothing follows |
//!
//! An int takes as many bits as its range needs; `max` is the most slices of a chunk, which both ends must agree on: 8
//! bits for the usual 256. The first byte is even in a slice packet and odd in an ack packet.
//!
//! Promises: a written packet reads back unchanged. Refuses: every packet that no writer with the same `max` makes.
//! Nothing read here is trusted beyond that: sender and receiver judge what it claims.

use crate::store::BitSet;
use crate::wire::{BitReader, BitSink, BitWriter, ReadError, bit_len};

use super::SLICE_BYTES;

const KIND_BITS: u32 = 1;
const CHUNK_ID_BITS: u32 = 16;
/// A byte count from 1 to [`SLICE_BYTES`].
const BYTE_COUNT_BITS: u32 = 10;

/// Whether a datagram is a slice packet, if it is any packet of chunks.
pub fn is_slice(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 1 == 0)
}

/// Whether a datagram is an ack packet, if it is any packet of chunks.
pub fn is_ack(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 1 == 1)
}

/// Why a datagram is not the packet it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    WrongKind,
    TooShort,
    Malformed,
    Trailing,
}

impl From<ReadError> for Unreadable {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::PastEnd { .. } => Unreadable::TooShort,
            ReadError::Trailing { .. } => Unreadable::Trailing,
            _ => Unreadable::Malformed,
        }
    }
}

/// A slice packet as it was read: `slice` is below `count`, `count` at most the agreed one, and `data` has the length
/// that its place asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlicePacket<'a> {
    pub(super) chunk: u16,
    pub(super) slice: usize,
    pub(super) count: usize,
    pub(super) data: &'a [u8],
}

/// An ack packet as it was read. The bound of the set is the slice count.
#[derive(Clone, Debug)]
pub(super) struct AckPacket {
    pub(super) chunk: u16,
    pub(super) received: BitSet,
}

/// The widths of both packets, given by the most slices of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    max_slices: i64,
}

impl Format {
    pub(super) fn new(max_slices: usize) -> Self {
        Format { max_slices: max_slices as i64 }
    }

    /// Bits of a slice id, and of a slice count.
    fn index_bits(self) -> u32 {
        bit_len(self.max_slices.cast_unsigned() - 1)
    }

    /// Bytes of a slice packet with `bytes` bytes of data.
    pub(super) fn slice_packet_bytes(self, last: bool, bytes: usize) -> usize {
        let header =
            KIND_BITS + CHUNK_ID_BITS + 2 * self.index_bits() + if last { BYTE_COUNT_BITS } else { 0 };
        header.div_ceil(8) as usize + bytes
    }

    /// Bytes of the longest slice packet.
    pub(super) fn longest_slice_packet(self) -> usize {
        self.slice_packet_bytes(true, SLICE_BYTES)
    }

    /// Bytes of an ack packet for a chunk of `count` slices.
    pub(super) fn ack_packet_bytes(self, count: usize) -> usize {
        ((KIND_BITS + CHUNK_ID_BITS + self.index_bits()) as usize + count).div_ceil(8)
    }

    pub(super) fn write_slice(self, packet: &SlicePacket<'_>, writer: &mut BitWriter) {
        writer.bool(false);
        writer.bits(packet.chunk.into(), CHUNK_ID_BITS);
        writer.int(packet.slice as i64, 0, self.max_slices - 1);
        writer.int(packet.count as i64, 1, self.max_slices);
        if packet.slice == packet.count - 1 {
            writer.int(packet.data.len() as i64, 1, SLICE_BYTES as i64);
        }
        writer.bytes(packet.data);
    }

    pub(super) fn read_slice(self, datagram: &[u8]) -> Result<SlicePacket<'_>, Unreadable> {
        let mut reader = BitReader::new(datagram);
        if reader.bool()? {
            return Err(Unreadable::WrongKind);
        }
        let chunk = read_chunk_id(&mut reader)?;
        let slice = read_index(&mut reader, 0, self.max_slices - 1)?;
        let count = read_index(&mut reader, 1, self.max_slices)?;
        if slice >= count {
            return Err(Unreadable::Malformed);
        }
        let last = slice == count - 1;
        let bytes = if last { read_index(&mut reader, 1, SLICE_BYTES as i64)? } else { SLICE_BYTES };
        let data = reader.bytes(bytes)?;
        reader.finish()?;
        Ok(SlicePacket { chunk, slice, count, data })
    }

    pub(super) fn write_ack(self, chunk: u16, received: &BitSet, writer: &mut BitWriter) {
        writer.bool(true);
        writer.bits(chunk.into(), CHUNK_ID_BITS);
        writer.int(received.bound() as i64, 1, self.max_slices);
        (0..received.bound()).for_each(|slice| writer.bool(received.contains(slice)));
    }

    pub(super) fn read_ack(self, datagram: &[u8]) -> Result<AckPacket, Unreadable> {
        let mut reader = BitReader::new(datagram);
        if !reader.bool()? {
            return Err(Unreadable::WrongKind);
        }
        let chunk = read_chunk_id(&mut reader)?;
        let count = read_index(&mut reader, 1, self.max_slices)?;
        if count > reader.remaining_bits() {
            return Err(Unreadable::TooShort);
        }
        let mut received = BitSet::new(count);
        for slice in 0..count {
            if reader.bool()? {
                received.insert(slice);
            }
        }
        reader.finish()?;
        Ok(AckPacket { chunk, received })
    }
}

fn read_chunk_id(reader: &mut BitReader<'_>) -> Result<u16, ReadError> {
    Ok(reader.bits(CHUNK_ID_BITS)? as u16)
}

/// An integer in a range that starts at 0 or 1.
fn read_index(reader: &mut BitReader<'_>, lo: i64, hi: i64) -> Result<usize, ReadError> {
    Ok(reader.int(lo, hi)? as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::articles::slices::MAX_SLICES;

    fn slice_packet(max_slices: usize, chunk: u16, slice: usize, count: usize, data: &[u8]) -> Vec<u8> {
        let mut writer = BitWriter::new();
        Format::new(max_slices).write_slice(&SlicePacket { chunk, slice, count, data }, &mut writer);
        writer.into_bytes()
    }

    fn ack_packet(max_slices: usize, chunk: u16, count: usize, received: &[usize]) -> Vec<u8> {
        let mut set = BitSet::new(count);
        received.iter().for_each(|slice| assert!(set.insert(*slice)));
        let mut writer = BitWriter::new();
        Format::new(max_slices).write_ack(chunk, &set, &mut writer);
        writer.into_bytes()
    }

    #[test]
    fn bytes_are_those_of_the_tables() {
        // Kind 0, chunk id 0x1234, slice 2 of 3, 5 bytes: 1 + 16 + 8 + 8 + 10 bits, and 5 of alignment.
        let last = slice_packet(256, 0x1234, 2, 3, b"hello");
        assert_eq!(hex::encode(&last), "682404040800".to_owned() + &hex::encode(b"hello"));
        // Slice 1 of 3: no byte count, and 1,024 bytes.
        let middle = slice_packet(256, 0x1234, 1, 3, &[0xAB; 1024]);
        assert_eq!(hex::encode(&middle), "6824020400".to_owned() + &"ab".repeat(1024));
        // The widths follow the most slices: none for a slice id when there is one slice at most.
        assert_eq!(hex::encode(slice_packet(1, 0, 0, 1, b"x")), "0000000078");
        let wide = slice_packet(MAX_SLICES, 0xFFFF, 8191, 8192, b"x");
        assert_eq!(hex::encode(wide), "feffffffff070078");
        // Kind 1, chunk id 0x1234, 10 slices, of which 0, 3 and 9: 1 + 16 + 8 + 10 bits.
        assert_eq!(hex::encode(ack_packet(256, 0x1234, 10, &[0, 3, 9])), "6924121204");
        assert_eq!(hex::encode(ack_packet(1, 7, 1, &[0])), "0f0002");
    }

    #[test]
    fn what_is_written_reads_back_and_has_the_size_foretold() {
        for max_slices in [1, 2, 3, 100, 256, 257, MAX_SLICES] {
            let format = Format::new(max_slices);
            for (slice, count) in [(0, 1), (0, max_slices), (max_slices - 1, max_slices)] {
                let last = slice == count - 1;
                let data = vec![7; if last { 300 } else { SLICE_BYTES }];
                let bytes = slice_packet(max_slices, 40_000, slice, count, &data);
                assert_eq!(bytes.len(), format.slice_packet_bytes(last, data.len()));
                assert!(is_slice(&bytes) && !is_ack(&bytes));
                let expected = SlicePacket { chunk: 40_000, slice, count, data: &data };
                assert_eq!(format.read_slice(&bytes), Ok(expected));

                let bytes = ack_packet(max_slices, 40_000, count, &[slice]);
                assert_eq!(bytes.len(), format.ack_packet_bytes(count));
                assert!(is_ack(&bytes) && !is_slice(&bytes));
                let ack = format.read_ack(&bytes).unwrap();
                assert_eq!((ack.chunk, ack.received.bound(), ack.received.len()), (40_000, count, 1));
                assert!(ack.received.contains(slice));
            }
        }
    }

    #[test]
    fn every_packet_fits_the_mtu_and_a_full_slice_pays_for_any_ack() {
        let format = Format::new(MAX_SLICES);
        assert!(format.longest_slice_packet() <= 1200);
        assert!(format.ack_packet_bytes(MAX_SLICES) <= format.slice_packet_bytes(false, SLICE_BYTES));
    }

    #[test]
    fn refuses_slices_that_no_writer_makes() {
        let refusal = |bytes: &[u8]| Format::new(200).read_slice(bytes).unwrap_err();
        let good = slice_packet(200, 1, 2, 3, b"hello");
        assert_eq!(refusal(&[]), Unreadable::TooShort);
        (1..good.len()).for_each(|n| assert_eq!(refusal(&good[..n]), Unreadable::TooShort, "{n} bytes"));
        assert_eq!(refusal(&[&good[..], b"!"].concat()), Unreadable::Trailing);
        assert_eq!(refusal(&ack_packet(200, 1, 3, &[2])), Unreadable::WrongKind);
        let mut padded = good.clone();
        padded[5] |= 0x80;
        assert_eq!(refusal(&padded), Unreadable::Malformed);
        for (slice, count) in [(3, 3), (200, 1), (0, 201), (255, 255)] {
            let mut writer = BitWriter::new();
            writer.bits(0, 1 + 16);
            writer.bits(slice, 8);
            writer.bits(count - 1, 8);
            writer.bytes(&[0; 1024]);
            assert_eq!(refusal(writer.as_bytes()), Unreadable::Malformed, "slice {slice} of {count}");
        }
        let short_middle = slice_packet(200, 1, 1, 3, &[0; 1023]);
        assert_eq!(refusal(&short_middle), Unreadable::TooShort);
    }

    #[test]
    fn refuses_acks_that_no_writer_makes() {
        let refusal = |bytes: &[u8]| Format::new(200).read_ack(bytes).unwrap_err();
        let good = ack_packet(200, 1, 20, &[2, 19]);
        (0..good.len()).for_each(|n| assert_eq!(refusal(&good[..n]), Unreadable::TooShort, "{n} bytes"));
        assert_eq!(refusal(&[&good[..], &[0]].concat()), Unreadable::Trailing);
        assert_eq!(refusal(&slice_packet(200, 1, 2, 3, b"x")), Unreadable::WrongKind);
        let mut more_bits = good.clone();
        *more_bits.last_mut().unwrap() |= 0x80;
        assert_eq!(refusal(&more_bits), Unreadable::Trailing);
        let mut too_many = BitWriter::new();
        too_many.bits(1, 1 + 16);
        too_many.bits(200, 8);
        (0..201).for_each(|_| too_many.bool(true));
        assert_eq!(refusal(too_many.as_bytes()), Unreadable::Malformed);
    }
}
