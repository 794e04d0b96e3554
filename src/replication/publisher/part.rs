//! A written coded part of a packet, and what it follows from: for other clients to take.

use std::sync::Arc;

use super::super::coding::Sample;
use super::super::table::Table;
use super::averages::Averages;
use super::costs::ClassCosts;
use super::named::are_same;
use super::scope::{CarriedGhost, GhostState, Scope};

/// The costs of a section.
#[derive(Debug)]
pub(super) struct SectionCosts {
    /// In units of 2^-16 bits: of the heads of updates, creates and destroys, and by property.
    pub(super) heads: [u64; 3],
    pub(super) properties: Box<[u64]>,
    /// The cost and count of updates and creates.
    pub(super) updates: (u64, usize),
    pub(super) creates: (u64, usize),
}

impl SectionCosts {
    /// Adds the costs of one client; returns the bits whose purpose is known.
    pub(super) fn note(&self, costs: &mut ClassCosts, averages: &mut Averages) -> u64 {
        let [updates, creates, destroys] = self.heads.map(|spent| spent >> 16);
        costs.updates += updates;
        costs.creates += creates;
        costs.destroys += destroys;
        let mut known = updates + creates + destroys;
        for (cost, spent) in costs.properties.iter_mut().zip(&self.properties) {
            *cost += spent >> 16;
            known += spent >> 16;
        }
        for (state, (spent, count)) in
            [(GhostState::Live, self.updates), (GhostState::Creating, self.creates)]
        {
            averages.note(state, ((spent >> 16) as usize, count));
        }
        known
    }
}

/// A written coded part, for other clients to take.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) basis: Basis,
    pub(super) carried: Vec<CarriedGhost>,
    pub(super) words: Vec<u64>,
    pub(super) bits: usize,
    pub(super) sample: Arc<Sample>,
    pub(super) spent: Vec<(usize, SectionCosts)>,
}

/// A ready ghost: its class, its id and what is known of it.
type Ready = (u16, u16, u128);

/// All that a part follows from, within its tick.
#[derive(Debug, Default)]
pub(super) struct Basis {
    pub(super) room: usize,
    /// The tick of the newest packet that the client is known to have.
    pub(super) acked: u32,
    pub(super) named: Vec<Arc<Sample>>,
    /// By class and id.
    ghosts: Vec<Ready>,
}

impl Basis {
    /// Keeps what is known of the ready ghosts of coded classes.
    pub(super) fn find_ready(&mut self, tables: &[Table], scopes: &[Scope]) {
        self.ghosts.clear();
        let coded = (0..).zip(tables.iter().zip(scopes));
        let coded = coded.filter(|(_, (table, scope))| table.class().coded && scope.due_count() > 0);
        for (class, (_, scope)) in coded {
            // Ids are below 2^16.
            self.ghosts.extend(scope.each_ready().map(|id| (class, id as u16, scope.key(id))));
        }
    }

    /// The classes with ready ghosts.
    pub(super) fn classes(&self) -> impl Iterator<Item = usize> {
        self.ghosts.chunk_by(|a, b| a.0 == b.0).map(|of_class| of_class[0].0.into())
    }

    /// Whether a part follows from both in the same way.
    pub(super) fn is_same(&self, other: &Basis) -> bool {
        (self.room, self.acked) == (other.room, other.acked)
            && are_same(&self.named, &other.named)
            && self.ghosts == other.ghosts
    }
}
