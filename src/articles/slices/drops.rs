//! Why packets are dropped, each reason under a name, and what both ends count.

use super::packet::Unreadable;
use crate::store::counters::counters;

/// Why an ack was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AckDrop {
    /// It is a slice packet.
    WrongKind,
    /// It ends too early.
    TooShort,
    /// A number is out of its range.
    Malformed,
    Trailing,
    /// It is for a chunk that is not in flight: most often a late ack of the one before.
    OtherChunk,
    /// Its slice count is not the chunk's.
    SliceCount,
    /// It names a slice that was never sent.
    NeverSent,
}

impl From<Unreadable> for AckDrop {
    fn from(reason: Unreadable) -> Self {
        match reason {
            Unreadable::WrongKind => AckDrop::WrongKind,
            Unreadable::TooShort => AckDrop::TooShort,
            Unreadable::Malformed => AckDrop::Malformed,
            Unreadable::Trailing => AckDrop::Trailing,
        }
    }
}

counters! {
    /// Counts of a sender, and the acks it dropped, by reason.
    pub struct SenderCounters {
        /// Chunks that are known to be across.
        chunks_acked,
        chunks_cancelled,
        slices_sent,
        /// Of these, slices sent before.
        slices_resent,
        /// Bytes sent, headers included.
        bytes_sent,
        acks_received,
        /// Slice packets where acks belong.
        wrong_kind,
        too_short,
        /// Acks with a number out of its range.
        malformed,
        /// Acks with trailing bytes.
        trailing,
        /// Acks for a chunk not in flight; late ones are normal.
        other_chunk,
        /// Acks with another slice count than the chunk's.
        slice_count,
        /// Acks of slices that were never sent.
        never_sent,
    }
}

impl SenderCounters {
    pub(super) fn count(&mut self, reason: AckDrop) {
        *match reason {
            AckDrop::WrongKind => &mut self.wrong_kind,
            AckDrop::TooShort => &mut self.too_short,
            AckDrop::Malformed => &mut self.malformed,
            AckDrop::Trailing => &mut self.trailing,
            AckDrop::OtherChunk => &mut self.other_chunk,
            AckDrop::SliceCount => &mut self.slice_count,
            AckDrop::NeverSent => &mut self.never_sent,
        } += 1;
    }
}

/// Why a slice was dropped. The first three still cause an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SliceDrop {
    Duplicate,
    /// Its chunk is complete and waits to be read.
    Complete,
    /// Its chunk was the last one read.
    AlreadyRead,
    /// It is of the next chunk, while this one waits to be read.
    Unread,
    /// It is of a chunk before that, or of one that was given up.
    Old,
    /// It is of a chunk that can't be in flight yet.
    FarAhead,
    /// Its slice count is not that of the chunk's first slice.
    SliceCount,
    /// It is an ack packet.
    WrongKind,
    /// It ends too early.
    TooShort,
    /// A number is out of its range, a slice id not below the count, or the padding not zero.
    Malformed,
    Trailing,
}

impl From<Unreadable> for SliceDrop {
    fn from(reason: Unreadable) -> Self {
        match reason {
            Unreadable::WrongKind => SliceDrop::WrongKind,
            Unreadable::TooShort => SliceDrop::TooShort,
            Unreadable::Malformed => SliceDrop::Malformed,
            Unreadable::Trailing => SliceDrop::Trailing,
        }
    }
}

counters! {
    /// Counts of a receiver, and the slices it dropped, by reason.
    pub struct ReceiverCounters {
        /// Chunks that came whole.
        chunks_received,
        /// Incomplete chunks that the sender gave up.
        chunks_abandoned,
        /// Slices that found their place.
        slices_received,
        acks_sent,
        /// Bytes of acks sent, headers included.
        bytes_sent,
        /// Slices that came before.
        duplicates,
        /// Slices of a chunk that is complete and not read.
        complete,
        /// Slices of the chunk read last.
        already_read,
        /// Slices of the next chunk while one waits to be read.
        unread,
        /// Slices of older chunks.
        old,
        /// Slices of chunks that can't be in flight yet.
        far_ahead,
        /// Slices with another slice count than the chunk's first.
        slice_count,
        /// Ack packets where slices belong.
        wrong_kind,
        too_short,
        /// Slices with a number out of its range or padding that is not zero.
        malformed,
        /// Slices with trailing bytes.
        trailing,
    }
}

impl ReceiverCounters {
    pub(super) fn count(&mut self, reason: SliceDrop) {
        *match reason {
            SliceDrop::Duplicate => &mut self.duplicates,
            SliceDrop::Complete => &mut self.complete,
            SliceDrop::AlreadyRead => &mut self.already_read,
            SliceDrop::Unread => &mut self.unread,
            SliceDrop::Old => &mut self.old,
            SliceDrop::FarAhead => &mut self.far_ahead,
            SliceDrop::SliceCount => &mut self.slice_count,
            SliceDrop::WrongKind => &mut self.wrong_kind,
            SliceDrop::TooShort => &mut self.too_short,
            SliceDrop::Malformed => &mut self.malformed,
            SliceDrop::Trailing => &mut self.trailing,
        } += 1;
    }
}
