//! Snapshots of the models that both sides have, from which packets start, and the ghosts of their packet.

use std::sync::Arc;

use super::super::class::Classes;
use super::{Layout, Model};

/// Bits of a snapshot's number (0 is the initial one), and how many others a client keeps.
pub(in crate::replication) const SLOT_BITS: u32 = 4;
pub(in crate::replication) const SLOTS: usize = (1 << SLOT_BITS) - 1;

/// The maximum of `seen` in a snapshot's models, so that they go on learning.
const SEEN: u8 = 24;

/// The kept state of a class.
#[derive(Clone, Debug, Default)]
struct Kept {
    models: Box<[Model]>,
    /// The ghosts that its section updated or created, in rising order: the next packets are likely to be about them.
    ids: Box<[u32]>,
}

/// The state of all classes, empty for classes that aren't coded.
#[derive(Clone, Debug)]
pub(in crate::replication) struct Snapshot(Box<[Arc<Kept>]>);

impl Snapshot {
    /// The state before any packet.
    pub(in crate::replication) fn first(classes: &Classes) -> Self {
        let of =
            |layout: Layout| Kept { models: vec![Model::EVEN; layout.count()].into(), ids: Box::default() };
        let each = classes
            .iter()
            .map(|class| Arc::new(if class.coded { of(Layout::new(class)) } else { Kept::default() }));
        Snapshot(each.collect())
    }

    pub(in crate::replication) fn models(&self, class: usize) -> &[Model] {
        &self.0[class].models
    }

    pub(in crate::replication) fn ids(&self, class: usize) -> &[u32] {
        &self.0[class].ids
    }

    /// Keeps the current models of a class and these ids, which it sorts.
    pub(in crate::replication) fn keep(&mut self, class: usize, models: &[Model], ids: &mut [u32]) {
        ids.sort_unstable();
        let models = models.iter().map(|model| Model { seen: model.seen.min(SEEN), ..*model }).collect();
        self.0[class] = Arc::new(Kept { models, ids: (&*ids).into() });
    }
}
