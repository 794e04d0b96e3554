//! What is known of one of the other players, beside its inputs.

use super::checks::MAX_FIELDS;
use super::pace::Advantage;
use crate::time::Instant;

/// Payloads that carry the checksums of a frame's fields, after it was seen that they differ.
pub(super) const DETAIL_COPIES: u8 = 12;

/// A checksum that a peer told of a frame which isn't confirmed here yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyCheck {
    pub(super) frame: u32,
    pub(super) sum: u32,
}

/// A frame that differs, until it is known in which fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspicion {
    pub(super) frame: u32,
    /// When it is reported without.
    pub(super) until: Instant,
}

/// One of the others.
#[derive(Debug, Default)]
pub(super) struct PeerState {
    /// The first frame of this side's inputs that it lacks, as it said.
    pub(super) acked: u32,
    /// This side's inputs before this frame were sent once.
    pub(super) sent: u32,
    /// Which of its own inputs were acked last.
    pub(super) ack_sent: u32,
    pub(super) filled_at: Option<Instant>,
    pub(super) payloads: u32,
    /// Frames by which its inputs are delayed.
    pub(super) delay: u32,
    pub(super) advantage: Advantage,
    /// The newest frame whose checksum was told.
    pub(super) check_sent: Option<u32>,
    pub(super) early: [Option<EarlyCheck>; 4],
    pub(super) last_equal: Option<u32>,
    pub(super) suspicion: Option<Suspicion>,
    /// A frame that differs, of which fields are told this many times more.
    pub(super) detail: Option<(u32, u8)>,
    /// It was reported to differ: once is enough.
    pub(super) is_reported: bool,
}

/// Memory for the checksums of a frame's fields, as they are read.
pub(super) type FieldSums = [u32; MAX_FIELDS];

/// A spectator, as a player sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watcher {
    pub(super) next: u32,
    pub(super) is_fresh: bool,
    pub(super) sent: u32,
    pub(super) sent_at: Option<Instant>,
    pub(super) is_lost: bool,
}
