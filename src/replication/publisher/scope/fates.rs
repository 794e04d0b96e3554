//! Handles the fate of a client's packets, ghost by ghost: which baselines it has, and what is due again.

use super::super::super::class::HISTORY;
use super::Scope;
use super::record::{CarriedGhost, CarriedOp, GhostState};

/// Where fewer of this many ids have a record in a packet, their records are loaded at once: each is in a cache line of its own.
const SPARSE: usize = 4;

impl Scope {
    /// A packet of tick `sent` that carried these was delivered, or is lost.
    pub(in super::super) fn handle_fates(
        &mut self,
        carried: &[CarriedGhost],
        delivered: bool,
        sent: u32,
        tick: u32,
    ) {
        if let [first, .., last] = carried
            && usize::from(last.id.abs_diff(first.id)) > SPARSE * carried.len()
        {
            self.load(carried.iter().map(|each| each.id.into()));
        }
        for each in carried {
            if delivered {
                self.handle_delivered(*each, sent, tick);
            } else {
                self.handle_lost(*each, sent, tick);
            }
        }
    }

    /// The client has received a packet of tick `sent` that carried this.
    #[inline]
    fn handle_delivered(&mut self, carried: CarriedGhost, sent: u32, tick: u32) {
        let id = usize::from(carried.id);
        let record = &mut self.records[id];
        let waits = record.waits();
        match (carried.op, record.state) {
            // In any order of arrival, the client had the state that it was written against.
            (op, GhostState::Live) if op.is_update() && record.since(carried.base_count) < HISTORY => {
                record.acknowledge(sent, carried.count, op);
            }
            // Another copy may have ended an earlier ghost with this id.
            (CarriedOp::Destroy, GhostState::Destroying) if sent >= self.entered[id] => {
                self.clear_due(carried.id.into());
                self.free(carried.id.into());
            }
            (CarriedOp::Create, GhostState::Creating)
                if sent >= record.acked && record.since(carried.count) < HISTORY =>
            {
                record.state = GhostState::Live;
                (record.acked, record.acked_count) = (sent, carried.count);
                record.older_age = 0;
                record.hold.forget_states();
            }
            (CarriedOp::Create, GhostState::Live) if record.since(carried.count) < HISTORY => {
                record.acknowledge(sent, carried.count, CarriedOp::Create);
            }
            _ => {}
        }
        if waits {
            self.go_on(carried, tick);
        }
    }

    /// A packet of tick `sent` that carried this is lost: what no later one carries is due again.
    #[inline]
    fn handle_lost(&mut self, carried: CarriedGhost, sent: u32, tick: u32) {
        let record = &mut self.records[usize::from(carried.id)];
        let used = self.used[usize::from(carried.id) / 64] >> (carried.id % 64) & 1 == 1;
        let waits = used && record.waits();
        if used && record.sent == sent {
            if record.state == GhostState::Destroying {
                record.destroy();
            }
            self.mark_due(carried.id.into());
        }
        if waits {
            self.go_on(carried, tick);
        }
    }

    /// One more record's fate of a waiting ghost is known: it goes on, or starts again if there is none left to wait
    /// for.
    fn go_on(&mut self, carried: CarriedGhost, tick: u32) {
        let record = &mut self.records[usize::from(carried.id)];
        let waits = record.waits();
        if waits && record.count == carried.count {
            record.create_again(tick);
        } else if waits {
            return;
        }
        self.mark_due(carried.id.into());
    }
}
