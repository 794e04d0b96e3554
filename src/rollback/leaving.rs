//! Departed players: the ones who stay agree on each one's last frame.
//!
//! A leaver's last inputs may have reached some players and not others. So each of the others reports which players it
//! can't reach any more and up to which frame it has their inputs, and forwards those inputs to players with fewer. When
//! all who stay have named the same leavers and have the same inputs of one, no more of its inputs can come: the next
//! frame is the first without it. That frame is never below one that somebody confirmed, so no confirmed frame is
//! undone. A player that leaves meanwhile is one more leaver.

use super::config::{MAX_PLAYERS, indices};

/// One peer's report on the leavers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeaverReport {
    /// The players it can't reach any more.
    pub(super) gone: u16,
    /// The first missing frame of each leaver, if reported.
    pub(super) have: [Option<u32>; MAX_PLAYERS],
    /// The leavers for which it has agreed.
    pub(super) settled: u16,
    /// The leavers it asks about, unaware that this side has agreed: answered once.
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
    /// The leavers to report to a peer.
    pub(super) fn due(&self, peer: usize) -> u16 {
        let report = &self.reports[peer];
        self.gone & (!report.settled | report.asks | !self.settled)
    }

    /// The mask of the leavers agreed on now. `have` is the first frame missing here, by player; `stay` are the players
    /// who stay.
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
