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
    /// Keeps what the ready ghosts are.
    pub(super) fn find_ready(&mut self, tables: &[Table], scopes: &[Scope]) {
        self.ghosts.clear();
        self.ghosts.extend(ready(tables, scopes));
    }

    /// The classes with ready ghosts.
    pub(super) fn classes(&self) -> impl Iterator<Item = usize> {
        self.ghosts.chunk_by(|a, b| a.0 == b.0).map(|of_class| of_class[0].0.into())
    }

    /// Whether another one is the same, but for its ghosts, and these are what is ready.
    pub(super) fn is_same(&self, other: &Basis, tables: &[Table], scopes: &[Scope]) -> bool {
        (self.room, self.acked) == (other.room, other.acked)
            && are_same(&self.named, &other.named)
            && are_equal(&self.ghosts, ready(tables, scopes))
    }
}

/// Whether these are the others, each in its place. Faster than [`Iterator::eq`] for what is made of many iterators.
fn are_equal(some: &[Ready], mut others: impl Iterator<Item = Ready>) -> bool {
    let rest = others.try_fold(some, |some, other| {
        let (first, rest) = some.split_first()?;
        (*first == other).then_some(rest)
    });
    rest.is_some_and(<[_]>::is_empty)
}

/// The ready ghosts of coded classes.
fn ready(tables: &[Table], scopes: &[Scope]) -> impl Iterator<Item = Ready> {
    let coded = (0..).zip(tables.iter().zip(scopes));
    let coded = coded.filter(|(_, (table, scope))| table.class().coded && scope.due_count() > 0);
    // Ids are below 2^16.
    coded.flat_map(|(class, (_, scope))| scope.each_ready().map(move |id| (class, id as u16, scope.key(id))))
}
