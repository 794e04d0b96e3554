//! The encoding of chunk items: `STANDARD.md`, "Chunks".
//!
//! Reading promises: numbers are within what the items can mean; whether a chunk has such a slice is for the chunks
//! to judge. Memory is the bytes of the packet, and eight bytes for each run of eight.

use super::refusal::Refusal;
use crate::transport::chunks::{
    Item, MAX_LABEL_BYTES, MAX_RUNS, Offer, Rejection, SLICE_LENGTH_BITS, Verdict,
};
use crate::wire::{BitReader, BitSink, BitWriter};

const SLICE: u64 = 0;
const OFFER: u64 = 1;
const ANSWER: u64 = 2;
const WITHDRAW: u64 = 3;

const SIZE_BITS: u32 = 40;
/// Slices are between these, so that neither their number nor a packet is too large.
const SLICE_BYTES: core::ops::RangeInclusive<u64> = 512..=1200;

const ACCEPTED: u64 = 0;
const PAUSED: u64 = 6;
const COMPLETE: u64 = 7;

/// Writes one item; the bytes of slices are in `arena`.
pub(super) fn write_item(writer: &mut BitWriter, item: &Item, arena: &[u8]) {
    match item {
        Item::Slice { id, index, bytes } => {
            writer.bits(SLICE, 2);
            writer.bits((*id).into(), 16);
            writer.bits((*index).into(), 32);
            writer.bits(bytes.len() as u64, SLICE_LENGTH_BITS);
            writer.bytes(&arena[bytes.clone()]);
        }
        Item::Offer(Offer { id, size, slice_bytes, hash, label }) => {
            writer.bits(OFFER, 2);
            writer.bits((*id).into(), 16);
            writer.bits(*size, SIZE_BITS);
            writer.bits((*slice_bytes).into(), SLICE_LENGTH_BITS);
            writer.bytes(hash);
            writer.string(label, MAX_LABEL_BYTES as u32);
        }
        Item::Answer { id, verdict } => {
            writer.bits(ANSWER, 2);
            writer.bits((*id).into(), 16);
            write_verdict(writer, verdict);
        }
        Item::Withdraw { id } => {
            writer.bits(WITHDRAW, 2);
            writer.bits((*id).into(), 16);
        }
    }
}

fn write_verdict(writer: &mut BitWriter, verdict: &Verdict) {
    match verdict {
        Verdict::Accepted { have, paused } => {
            writer.bits(if *paused { PAUSED } else { ACCEPTED }, 3);
            for (first, count) in have {
                writer.bool(true);
                writer.bits((*first).into(), 32);
                writer.bits((*count).into(), 32);
            }
            writer.bool(false);
        }
        Verdict::Rejected(rejection) => writer.bits(*rejection as u64, 3),
        Verdict::Complete => writer.bits(COMPLETE, 3),
    }
}

/// Reads one item; the bytes of a slice are appended to `arena`.
pub(super) fn read_item(reader: &mut BitReader<'_>, arena: &mut Vec<u8>) -> Result<Item, Refusal> {
    let kind = reader.bits(2)?;
    let id = reader.bits(16)? as u16;
    Ok(match kind {
        SLICE => {
            let index = reader.bits(32)? as u32;
            let length = reader.bits(SLICE_LENGTH_BITS)?;
            if length > *SLICE_BYTES.end() {
                return Err(Refusal::Length);
            }
            let start = arena.len();
            arena.extend_from_slice(reader.bytes(length as usize)?);
            Item::Slice { id, index, bytes: start..arena.len() }
        }
        OFFER => {
            let size = reader.bits(SIZE_BITS)?;
            let slice_bytes = reader.bits(SLICE_LENGTH_BITS)?;
            if !SLICE_BYTES.contains(&slice_bytes) {
                return Err(Refusal::Length);
            }
            let mut hash = [0; 32];
            hash.copy_from_slice(reader.bytes(32)?);
            let label = reader.string(MAX_LABEL_BYTES as u32)?.into();
            Item::Offer(Offer { id, size, slice_bytes: slice_bytes as u16, hash, label })
        }
        ANSWER => Item::Answer { id, verdict: read_verdict(reader)? },
        _ => Item::Withdraw { id },
    })
}

fn read_verdict(reader: &mut BitReader<'_>) -> Result<Verdict, Refusal> {
    match reader.bits(3)? {
        verdict @ (ACCEPTED | PAUSED) => {
            let mut have = Vec::new();
            while reader.bool()? {
                if have.len() == MAX_RUNS {
                    return Err(Refusal::Length);
                }
                have.push((reader.bits(32)? as u32, reader.bits(32)? as u32));
            }
            Ok(Verdict::Accepted { have, paused: verdict == PAUSED })
        }
        COMPLETE => Ok(Verdict::Complete),
        number => Ok(Verdict::Rejected(Rejection::from_number(number as u8))),
    }
}
