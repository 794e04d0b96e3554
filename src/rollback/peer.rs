//! The state kept about another player, apart from its inputs.

use super::checks::MAX_FIELDS;
use super::pace::Advantage;
use crate::time::Instant;

/// How many payloads carry the fields' checksums once a frame differs.
pub(super) const DETAIL_COPIES: u8 = 12;

/// A peer's checksum of a frame that isn't confirmed here yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyCheck {
    pub(super) frame: u32,
    pub(super) sum: u32,
}

/// A differing frame, until its fields are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspicion {
    pub(super) frame: u32,
    /// When it is reported without them.
    pub(super) until: Instant,
}

/// The state kept about another player.
#[derive(Debug, Default)]
pub(super) struct PeerState {
    /// The first frame of this side's inputs that it lacks, by its ack.
    pub(super) acked: u32,
    /// This side's inputs before this frame were sent at least once.
    pub(super) sent: u32,
    /// The last ack sent to it.
    pub(super) ack_sent: u32,
    pub(super) filled_at: Option<Instant>,
    pub(super) payloads: u32,
    /// The delay of its inputs, in frames.
    pub(super) delay: u32,
    pub(super) advantage: Advantage,
    /// The newest frame whose checksum was sent.
    pub(super) check_sent: Option<u32>,
    pub(super) early: [Option<EarlyCheck>; 4],
    pub(super) last_equal: Option<u32>,
    pub(super) suspicion: Option<Suspicion>,
    /// A differing frame, and how many more times its fields are sent.
    pub(super) detail: Option<(u32, u8)>,
    /// Its desync was reported, which happens once.
    pub(super) is_reported: bool,
}

/// Scratch memory to read the checksums of a frame's fields.
pub(super) type FieldSums = [u32; MAX_FIELDS];

/// A spectator from a player's point of view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watcher {
    pub(super) next: u32,
    pub(super) is_fresh: bool,
    pub(super) sent: u32,
    pub(super) sent_at: Option<Instant>,
    pub(super) is_lost: bool,
}
