//! Fragments of reliable 1.0: packets too large for one datagram, split and put together again.
//!
//! Promises: bounded memory whatever arrives (a window of partial packets and a bound on their bytes together),
//! allocated in proportion to the fragments that came and used again; a packet comes out once all of its fragments are in.
//! Refuses: fragments that contradict themselves, their header or the fragments before them, duplicates, and
//! packets older than the window. There is no time limit: partial packets go when the window passes them.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | 0x01 |
//! | 2 | sequence of the whole packet, little-endian |
//! | 1 | fragment id |
//! | 1 | fragment count - 1 |
//! | 4..=9 | in fragment 0 only: the packet header |
//! | rest | data: the fragment size, in the last fragment what remains |
//!
//! Every number of a fragment is the peer's claim and checked against the configuration, then against what is here. What
//! comes is kept in the order in which it comes, so that no fragment costs more than itself; a packet whose fragments
//! overtook each other is put in order once, when it is whole.

use super::header::{FRAGMENT_FLAG, Header, HeaderError};
use crate::limits::ConfigError;
use crate::store::sequence::{ahead, unwrap};
use crate::store::{BitSet, SequenceBuffer};
use crate::transport::ledger::acks::FullHeader;
use std::collections::BTreeMap;

/// Prefix, sequence, id, count.
pub const FRAGMENT_HEADER_SIZE: usize = 1 + 2 + 1 + 1;

/// Most fragments of one packet: the count - 1 is one byte.
pub const MAX_FRAGMENTS: usize = 256;

/// Buffers of completed packets kept for reuse. Block transfer fills one packet after the other.
const SPARE_BUFFERS: usize = 2;

/// One fragment, of either framing: parsed from a datagram, or about to become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The number of the whole packet.
    pub packet: u64,
    /// Which fragment of the packet.
    pub id: u8,
    /// The id of the last fragment: their count - 1.
    pub last_id: u8,
    /// The packet's header, in fragment 0.
    pub header: Option<FullHeader>,
    /// This fragment's part of the payload.
    pub data: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Whether a datagram holds a fragment rather than a whole packet.
    pub fn is_fragment(datagram: &[u8]) -> bool {
        datagram.first().is_some_and(|prefix| prefix & FRAGMENT_FLAG != 0)
    }

    /// Appends the fragment to `out`, as in reliable 1.0.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(FRAGMENT_FLAG);
        // The low bits.
        out.extend_from_slice(&(self.packet as u16).to_le_bytes());
        out.extend_from_slice(&[self.id, self.last_id]);
        if let Some(header) = self.header {
            Header::from(header).write(out);
        }
        out.extend_from_slice(self.data);
    }

    /// Parses `datagram` as a fragment of reliable 1.0, in a conversation with this fragment size and count, of which these are
    /// the newest packets `received` and `sent`.
    ///
    /// # Errors
    ///
    /// When it is no fragment, or contradicts itself.
    pub fn read(
        datagram: &'a [u8],
        fragment_size: usize,
        max_fragments: usize,
        (received, sent): (u64, u64),
    ) -> Result<Self, FragmentError> {
        let (&[prefix, low, high, id, last_id], rest) =
            datagram.split_first_chunk().ok_or(FragmentError::TooShort)?;
        if prefix != FRAGMENT_FLAG {
            return Err(FragmentError::Prefix);
        }
        check_place(id, last_id, max_fragments)?;
        let sequence = u16::from_le_bytes([low, high]);
        let (header, data) = if id == 0 {
            let (header, len) = Header::read(rest).map_err(FragmentError::Header)?;
            let (encoded, data) = rest.split_at(len);
            if header.sequence != sequence {
                return Err(FragmentError::Sequence);
            }
            if !header.is_canonical(encoded) {
                return Err(FragmentError::NotCanonical);
            }
            (Some(header.unwrap(received, sent)), data)
        } else {
            (None, rest)
        };
        check_size(id, last_id, data, fragment_size)?;
        Ok(Fragment { packet: unwrap(sequence.into(), 16, received), id, last_id, header, data })
    }
}

/// Checks a fragment's number against their count.
pub(super) fn check_place(id: u8, last_id: u8, max_fragments: usize) -> Result<(), FragmentError> {
    if usize::from(last_id) >= max_fragments {
        return Err(FragmentError::TooMany);
    }
    if id > last_id { Err(FragmentError::Id) } else { Ok(()) }
}

/// Checks the size of a fragment's data.
pub(super) fn check_size(id: u8, last_id: u8, data: &[u8], size: usize) -> Result<(), FragmentError> {
    let is_wrong = data.len() > size || (id != last_id && data.len() != size);
    if is_wrong { Err(FragmentError::Size) } else { Ok(()) }
}

/// The fragments of `payload`, in order.
///
/// # Panics
/// When the payload is empty, or takes more than [`MAX_FRAGMENTS`] of `fragment_size` bytes.
pub fn split(
    header: FullHeader,
    payload: &[u8],
    fragment_size: usize,
) -> impl ExactSizeIterator<Item = Fragment<'_>> {
    let parts = payload.chunks(fragment_size);
    let last_id = parts.len().checked_sub(1).and_then(|last| u8::try_from(last).ok());
    let last_id = last_id.expect("a payload of 1 to 256 fragments");
    parts.enumerate().map(move |(id, data)| Fragment {
        packet: header.sequence,
        // The last id is a u8, so each one is.
        id: id as u8,
        last_id,
        header: (id == 0).then_some(header),
        data,
    })
}

/// Why a fragment was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FragmentError {
    /// It ends inside the fragment header.
    TooShort,
    /// Its prefix is odd, but not 0x01.
    Prefix,
    /// It names more fragments than a packet may have.
    TooMany,
    /// Its id is not below its count.
    Id,
    /// Fragment 0 without a readable packet header.
    Header(HeaderError),
    /// The packet header in fragment 0 has another sequence.
    Sequence,
    /// The packet header in fragment 0 is not in its shortest form.
    NotCanonical,
    /// It holds more than a fragment, or less and is not the last.
    Size,
    /// Its packet is older than the window of partial packets.
    Stale,
    /// Its packet has another count of fragments.
    Count,
    /// It was received before.
    Duplicate,
    /// The partial packets from its own on already take all the memory they may.
    Memory,
}

/// Checks that a setting can be a window of packet numbers.
pub(super) fn check_window(field: &'static str, capacity: usize) -> Result<(), ConfigError> {
    let valid = SequenceBuffer::<()>::valid_capacity(capacity);
    ConfigError::unless(valid, field, capacity, "a power of two up to 32768")
}

// Settings of `Reassembly`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReassemblyConfig {
    /// How many numbers behind the newest the packets lie of which fragments are kept, a power of two.
    pub window: usize,
    /// Data bytes of every fragment but the last. Both ends need the same.
    pub fragment_size: usize,
    /// Most fragments of a packet, up to [`MAX_FRAGMENTS`]. Both ends need the same.
    pub max_fragments: usize,
    /// Most bytes of all partial packets together, at least one packet's.
    pub max_bytes: usize,
}

impl ReassemblyConfig {
    fn check(&self) -> Result<(), ConfigError> {
        check_window("reassembly.window", self.window)?;
        let (size, count) = (self.fragment_size, self.max_fragments);
        ConfigError::within("reassembly.max_fragments", count, 1, MAX_FRAGMENTS)?;
        ConfigError::within("reassembly.fragment_size", size, 1, u16::MAX.into())?;
        let enough = self.max_bytes >= size * count;
        ConfigError::unless(
            enough,
            "reassembly.max_bytes",
            self.max_bytes,
            "fragment_size x max_fragments or more",
        )
    }
}

/// A packet that lacks some fragments.
#[derive(Debug)]
struct Partial {
    header: Option<FullHeader>,
    received: BitSet,
    /// The fragments' ids in the order in which they came.
    order: Vec<u8>,
    payload: Vec<u8>,
    /// The bytes it may grow to, counted against the bound.
    reserved: usize,
}

impl Partial {
    /// Stores a fragment. The buffer grows as it fills, never beyond its reservation.
    fn push(&mut self, fragment: &Fragment<'_>) {
        let payload = &mut self.payload;
        let end = payload.len() + fragment.data.len();
        if payload.capacity() < end {
            let target = (end * 2).min(self.reserved);
            payload.reserve_exact(target - payload.len());
        }
        payload.extend_from_slice(fragment.data);
        self.order.push(fragment.id);
    }

    /// Writes the data of all fragments, in their own order, of which all but the last have `size` bytes.
    fn write_in_order(&self, size: usize, out: &mut Vec<u8>) {
        let mut starts = [0; MAX_FRAGMENTS];
        let last = self.order.len() - 1;
        let short = self.order.len() * size - self.payload.len();
        let mut start = 0;
        for id in &self.order {
            starts[usize::from(*id)] = start;
            start += if usize::from(*id) == last { size - short } else { size };
        }
        out.clear();
        out.reserve_exact(self.payload.len());
        for (id, start) in starts[..=last].iter().enumerate() {
            let bytes = if id == last { size - short } else { size };
            out.extend_from_slice(&self.payload[*start..start + bytes]);
        }
    }
}

/// A packet put together.
#[derive(Debug, PartialEq, Eq)]
pub struct Reassembled {
    /// The header that fragment 0 carried.
    pub header: FullHeader,
    /// The payload. Give it back to [`Reassembly::recycle`] after use.
    pub payload: Vec<u8>,
}

/// The packets of which not all fragments are here yet.
#[derive(Debug)]
pub struct Reassembly {
    /// By number. Numbers before 0 come first.
    partials: BTreeMap<i64, Partial>,
    /// One past the newest packet.
    next: u64,
    /// The bytes that the partial packets may grow to.
    reserved: usize,
    config: ReassemblyConfig,
    /// Bytes of all partial packets together: at most those of the configuration.
    limit: usize,
    spare: Vec<Vec<u8>>,
}

impl Reassembly {
    /// No partial packets.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn new(config: ReassemblyConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let limit = config.max_bytes;
        Ok(Reassembly { partials: BTreeMap::new(), next: 0, reserved: 0, config, limit, spare: Vec::new() })
    }

    /// Takes a fragment that was read; returns the packet if it was the last one missing.
    ///
    /// # Errors
    ///
    /// When it has no place, or was there before.
    pub fn insert(&mut self, fragment: &Fragment<'_>) -> Result<Option<Reassembled>, FragmentError> {
        let count = usize::from(fragment.last_id) + 1;
        if !self.contains(fragment.packet) {
            self.create(fragment.packet, count)?;
        }
        let partial = self.partials.get_mut(&fragment.packet.cast_signed()).ok_or(FragmentError::Stale)?;
        if partial.received.bound() != count {
            return Err(FragmentError::Count);
        }
        let id = usize::from(fragment.id);
        if !partial.received.insert(id) {
            return Err(FragmentError::Duplicate);
        }
        partial.header = partial.header.or(fragment.header);
        partial.push(fragment);
        if !partial.received.is_full() {
            return Ok(None);
        }
        // Every fragment is here, so fragment 0 and its header are.
        let Some(mut complete) = self.remove(fragment.packet) else { return Ok(None) };
        if !complete.order.is_sorted() {
            let mut payload = self.take_spare(complete.reserved);
            complete.write_in_order(self.config.fragment_size, &mut payload);
            self.recycle(core::mem::replace(&mut complete.payload, payload));
        }
        let Partial { header, payload, .. } = complete;
        Ok(header.map(|header| Reassembled { header, payload }))
    }

    /// Lowers the memory bound for now. It stays at least one packet's.
    pub(crate) fn limit(&mut self, bytes: usize) {
        let ReassemblyConfig { fragment_size, max_fragments, max_bytes, .. } = self.config;
        self.limit = bytes.max(fragment_size * max_fragments).min(max_bytes);
    }

    /// Whether some fragments of this packet are here.
    pub fn contains(&self, sequence: u64) -> bool {
        self.partials.contains_key(&sequence.cast_signed())
    }

    /// Moves the window up to `sequence`, dropping the partial packets it leaves behind.
    pub fn advance(&mut self, sequence: u64) {
        if ahead(sequence, self.next) < 0 {
            return;
        }
        self.next = sequence.wrapping_add(1);
        let (next, window) = (self.next, self.config.window as i64);
        while let Some(oldest) = self.partials.first_entry()
            && ahead(next, oldest.key().cast_unsigned()) > window
        {
            self.reserved -= oldest.remove().reserved;
        }
    }

    fn remove(&mut self, packet: u64) -> Option<Partial> {
        let partial = self.partials.remove(&packet.cast_signed())?;
        self.reserved -= partial.reserved;
        Some(partial)
    }

    /// Takes the buffer of a packet back, for the next one.
    pub fn recycle(&mut self, mut payload: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS {
            payload.clear();
            self.spare.push(payload);
        }
    }

    /// The bytes that the partial packets may grow to.
    pub fn reserved_bytes(&self) -> usize {
        self.reserved
    }

    fn create(&mut self, sequence: u64, count: usize) -> Result<(), FragmentError> {
        if ahead(self.next, sequence) > self.config.window as i64 {
            return Err(FragmentError::Stale);
        }
        self.advance(sequence);
        let reserved = count * self.config.fragment_size;
        self.make_room(sequence, reserved)?;
        let (received, payload) = (BitSet::new(count), self.take_spare(reserved));
        let partial = Partial { header: None, received, order: Vec::new(), payload, reserved };
        self.reserved += reserved;
        self.partials.insert(sequence.cast_signed(), partial);
        Ok(())
    }

    /// An empty buffer. A spare one larger than its accounted size would exceed the memory bound.
    fn take_spare(&mut self, reserved: usize) -> Vec<u8> {
        let spare = self.spare.iter().position(|spare| spare.capacity() <= reserved);
        spare.map(|at| self.spare.swap_remove(at)).unwrap_or_default()
    }

    /// Drops partial packets older than `sequence`, oldest first, until `wanted` more bytes fit the bound.
    fn make_room(&mut self, sequence: u64, wanted: usize) -> Result<(), FragmentError> {
        while self.reserved + wanted > self.limit
            && let Some(oldest) =
                self.partials.keys().next().copied().filter(|oldest| *oldest < sequence.cast_signed())
            && let Some(partial) = self.remove(oldest.cast_unsigned())
        {
            self.recycle(partial.payload);
        }
        if self.reserved + wanted <= self.limit { Ok(()) } else { Err(FragmentError::Memory) }
    }
}

#[cfg(test)]
mod tests;
