//! Messages of one type as rows, for applications that take them as arrays.
//!
//! A row is a head with sender, time and channel, followed by the row of its schema. All numbers are little-endian.

use core::ops::Range;

use super::PeerHandle;
use crate::time::{Duration, Instant};

/// One column of a row's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadColumn {
    pub name: &'static str,
    /// Its NumPy type string.
    pub dtype: &'static str,
    /// Its code in Python's `struct`.
    pub code: char,
    /// Its offset in a row.
    pub offset: usize,
}

const fn column(name: &'static str, dtype: &'static str, code: char, offset: usize) -> HeadColumn {
    HeadColumn { name, dtype, code, offset }
}

/// The columns of a row's head.
pub const HEAD: [HeadColumn; 7] = [
    // [`PeerHandle::number`] of the sender.
    column("client", "<u8", 'Q', 0),
    // When the packet was handled, in seconds.
    column("received", "<f8", 'd', 8),
    column("slot", "<u4", 'I', 16),
    column("key", "<u4", 'I', 20),
    column("sequence", "<u2", 'H', 24),
    column("missed", "<u2", 'H', 26),
    column("channel", "u1", 'B', 28),
];

/// Bytes of a row's head; rows are aligned to it too.
pub const HEAD_BYTES: usize = 32;

/// Bytes from one row to the next, for a schema with rows of `row_size` bytes.
pub fn stride(row_size: usize) -> usize {
    (HEAD_BYTES + row_size).next_multiple_of(8)
}

/// The sender of a message, with its channel and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    // The sender.
    pub peer: PeerHandle,
    /// When the packet was handled that brought it.
    pub received_at: Instant,
    /// Latest channels: the key of the value. 0 on others.
    pub key: u32,
    /// The packet that brought it.
    pub packet_sequence: u16,
    /// Redundant channels: how many messages before this one were lost. 0 on others.
    pub missed: u16,
    pub channel: u8,
}

impl Head {
    /// Changes the channel in a serialized head.
    pub(super) fn set_channel(bytes: &mut [u8; HEAD_BYTES], channel: u8) {
        bytes[HEAD[6].offset] = channel;
    }

    /// Reads the head of a row.
    fn read(row: &[u8]) -> Option<Self> {
        let row: &[u8; HEAD_BYTES] = row.first_chunk()?;
        let half = |at: usize| u16::from_le_bytes([row[at], row[at + 1]]);
        let number = |at: usize| u64::from(half(at)) | u64::from(half(at + 2)) << 16;
        Some(Head {
            peer: PeerHandle::from_number(number(0) | number(4) << 32),
            received_at: Instant::ZERO
                + Duration::from_secs_f64(f64::from_bits(number(8) | number(12) << 32)),
            key: number(20) as u32,
            packet_sequence: half(24),
            missed: half(26),
            channel: row[28],
        })
    }

    pub(super) fn bytes(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let mut put = |at: usize, cell: &[u8]| bytes[at..at + cell.len()].copy_from_slice(cell);
        put(0, &self.peer.number().to_le_bytes());
        put(8, &self.received_at.as_secs_f64().to_le_bytes());
        put(16, &self.peer.slot.to_le_bytes());
        put(20, &self.key.to_le_bytes());
        put(24, &self.packet_sequence.to_le_bytes());
        put(26, &self.missed.to_le_bytes());
        put(28, &[self.channel]);
        bytes
    }
}

/// The messages of one type.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<u8>,
    stride: usize,
    /// Bytes of the previous table: the next one may be as large.
    expected: usize,
}

impl Table {
    pub(super) fn new(row_size: usize) -> Self {
        Table { rows: Vec::new(), stride: stride(row_size), expected: 0 }
    }

    /// The rows, one after the other.
    pub fn rows(&self) -> &[u8] {
        &self.rows
    }

    /// The rows, with the memory they are in.
    pub fn into_rows(self) -> Vec<u8> {
        self.rows
    }

    /// Bytes from a row to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.rows.len() / self.stride.max(1)
    }

    /// The senders of the rows.
    pub(super) fn peers(&self) -> impl Iterator<Item = PeerHandle> {
        let rows = self.rows.chunks_exact(self.stride.max(1));
        rows.filter_map(|row| Some(PeerHandle::from_number(u64::from_le_bytes(*row.first_chunk()?))))
    }

    /// Appends a row with this head; `fill` appends the rest.
    pub(super) fn push(&mut self, head: &Head, fill: impl FnOnce(&mut Vec<u8>)) {
        if self.rows.capacity() == 0 {
            self.rows.reserve(self.expected.max(16 * self.stride));
        }
        let end = self.rows.len() + self.stride;
        self.rows.extend_from_slice(&head.bytes());
        fill(&mut self.rows);
        self.rows.resize(end, 0);
    }

    /// Where to append the rest of a row with this head; call [`Table::settle`] or [`Table::cut_last`] afterwards.
    pub(super) fn begin(&mut self, head: &[u8; HEAD_BYTES]) -> &mut Vec<u8> {
        if self.rows.capacity() == 0 {
            self.rows.reserve(self.expected.max(16 * self.stride));
        }
        self.rows.extend_from_slice(head);
        &mut self.rows
    }

    /// The row is complete; returns its bytes.
    pub(super) fn settle(&mut self) -> usize {
        let end = self.rows.len().next_multiple_of(self.stride);
        self.rows.resize(end, 0);
        self.stride
    }

    /// Drops the last row, complete or not.
    pub(super) fn cut_last(&mut self) {
        let whole = self.rows.len().saturating_sub(1) / self.stride;
        self.rows.truncate(whole * self.stride);
    }

    /// The sender and channel of a row.
    pub(super) fn sender(&self, row: usize) -> Option<(PeerHandle, u8)> {
        let (head, _) = self.get(row, 0)?;
        Some((head.peer, head.channel))
    }

    /// Drops the rows whose mark is false.
    pub(super) fn keep(&mut self, marks: &[bool]) {
        let mut marks = marks.iter();
        self.retain_rows(|_| marks.next().copied().unwrap_or(true));
    }

    /// A row's head, and its first `size` bytes.
    pub(super) fn get(&self, row: usize, size: usize) -> Option<(Head, &[u8])> {
        let row = self.rows.get(row * self.stride..)?;
        Some((Head::read(row)?, row.get(HEAD_BYTES..HEAD_BYTES + size)?))
    }

    /// Moves the rows of another table of the same type to the end.
    pub(super) fn absorb(&mut self, other: &mut Table) {
        if self.rows.is_empty() {
            core::mem::swap(self, other);
        } else {
            self.rows.extend_from_slice(&other.rows);
        }
        other.rows.clear();
    }

    /// Takes the rows and leaves an empty table.
    pub(super) fn take(&mut self) -> Table {
        let empty = Table { rows: Vec::new(), stride: self.stride, expected: self.rows.len() };
        core::mem::replace(self, empty)
    }

    /// Drops the rows of peers for which `keep` returns false.
    pub(super) fn retain(&mut self, keep: impl Fn(PeerHandle) -> bool) {
        self.retain_rows(|row| {
            let number = row.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
            keep(PeerHandle::from_number(number))
        });
    }

    fn retain_rows(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        let stride = self.stride;
        let mut kept = 0;
        for row in 0..self.count() {
            let place: Range<usize> = row * stride..(row + 1) * stride;
            if keep(&self.rows[place.clone()]) {
                self.rows.copy_within(place, kept * stride);
                kept += 1;
            }
        }
        self.rows.truncate(kept * stride);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(slot: u32) -> Head {
        Head {
            peer: PeerHandle { slot, generation: 3 },
            received_at: Instant::from_millis(1500),
            key: 7,
            packet_sequence: 65_535,
            missed: 2,
            channel: 9,
        }
    }

    #[test]
    fn a_head_has_each_column_at_its_offset() {
        let mut table = Table::new(3);
        table.push(&head(5), |rows| rows.extend([1, 2, 3]));
        assert_eq!((table.stride(), table.count(), table.rows().len()), (40, 1, 40));
        let row = table.rows();
        let expected: [&[u8]; 7] = [
            &(3u64 << 32 | 5).to_le_bytes(),
            &1.5f64.to_le_bytes(),
            &5u32.to_le_bytes(),
            &7u32.to_le_bytes(),
            &65_535u16.to_le_bytes(),
            &2u16.to_le_bytes(),
            &[9],
        ];
        for (column, cell) in HEAD.iter().zip(expected) {
            assert_eq!(&row[column.offset..column.offset + cell.len()], cell, "{}", column.name);
        }
        assert_eq!(row[HEAD_BYTES..], [1, 2, 3, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn rows_of_unwanted_clients_are_gone_and_the_others_stay_in_order() {
        let mut table = Table::new(1);
        (0..6).for_each(|n: u32| table.push(&head(n % 3), |rows| rows.push(n as u8)));
        let gone = [head(1).peer, PeerHandle { slot: 2, generation: 4 }];
        table.retain(|peer| !gone.contains(&peer));
        let bodies: Vec<u8> = table.rows().chunks(table.stride()).map(|row| row[HEAD_BYTES]).collect();
        assert_eq!(bodies, [0, 2, 3, 5]);
        assert_eq!(table.take().count(), 4);
        assert_eq!(table.count(), 0);
    }
}
