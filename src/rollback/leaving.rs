//! Who left, and after which of its frames: agreed by all who stay.
//!
//! What the leaver sent last may have reached some and not others. So each who stays says which players it no longer reaches and
//! up to where it has their inputs, and gives those inputs to whoever has less. When all who stay have named the same leavers, and
//! have the same of one, nothing of it can come any more: the next frame is the first without it. That is never before a frame
//! which somebody confirmed, so no confirmed frame is undone. Who leaves meanwhile is one more leaver, for whom the others wait too.

use super::config::{MAX_PLAYERS, indices};

/// What one peer said of the leavers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeaverReport {
    /// Whom it no longer reaches.
    pub(super) gone: u16,
    /// By player: the first frame that it lacks of a leaver, if it said so.
    pub(super) have: [Option<u32>; MAX_PLAYERS],
    /// For whom it agreed.
    pub(super) settled: u16,
    /// Whom it asked about, not knowing that this side agreed: it is answered once.
    pub(super) asks: u16,
}

/// The leavers, as this side knows them.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaving {
    pub(super) gone: u16,
    pub(super) settled: u16,
    pub(super) reports: [LeaverReport; MAX_PLAYERS],
}

impl Leaving {
    /// Of which leavers a peer is told something.
    pub(super) fn due(&self, peer: usize) -> u16 {
        let report = &self.reports[peer];
        self.gone & (!report.settled | report.asks | !self.settled)
    }

    /// Which players are agreed on now: bit by player. `have` is the first frame that lacks here, by player, and `stay` who is left.
    pub(super) fn agreed(&self, stay: u16, have: impl Fn(usize) -> u32) -> u16 {
        let mut agreed = 0;
        for player in indices(self.gone & !self.settled) {
            let own = have(player);
            let same = |peer: usize| {
                let report = &self.reports[peer];
                let settled = report.settled >> player & 1 == 1;
                (report.gone == self.gone || settled) && report.have[player] == Some(own)
            };
            if indices(stay).all(same) {
                agreed |= 1 << player;
            }
        }
        agreed
    }
}
