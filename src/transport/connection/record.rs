//! The ledger's record of a packet until its outcome is known.

use crate::store::List;
use crate::transport::chunks;
use crate::transport::congestion::SentStamp;
use crate::transport::ledger::Reported;
use crate::transport::message::Selected;
use crate::transport::stream::CreditMark;

/// The actions for when a packet is acked or lost.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) hello: bool,
    pub(super) stamp: Option<SentStamp>,
    /// Its bytes on the wire if it carries messages, or 0.
    pub(super) message_bytes: u32,
    /// The runs that its ack ranges reported.
    pub(super) reported: Reported,
    /// Its contents, in [`Connection`](super::Connection)'s lists.
    pub(super) carried: List,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum PacketContent {
    /// This many messages of a channel, whose marks follow each other.
    Messages {
        channel: u8,
        count: u16,
        first: u64,
    },
    Credit {
        channel: u8,
        mark: CreditMark,
    },
    Chunk(chunks::ChunkContent),
    Fragment {
        channel: u8,
        mark: u64,
        index: u16,
    },
}

/// A packet's record of a channel's messages.
pub(super) fn runs(channel: u8, selected: &[Selected]) -> impl Iterator<Item = PacketContent> {
    let whole = |selected: &Selected| selected.fragment.is_none();
    let runs = selected.chunk_by(move |a, b| whole(a) && whole(b) && a.mark + 1 == b.mark);
    runs.map(move |run| match run[0] {
        Selected { fragment: Some(index), mark, .. } => PacketContent::Fragment { channel, mark, index },
        // A packet has fewer than 65,536 messages.
        Selected { mark, .. } => PacketContent::Messages { channel, count: run.len() as u16, first: mark },
    })
}
