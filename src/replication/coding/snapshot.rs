//! Models as both sides have them: those that packets begin with. And which ghosts the packet that they are of was about.

use std::sync::Arc;

use super::super::class::Classes;
use super::{Layout, Model};

/// Bits of a snapshot's number, 0 being the first one, and how many others a client keeps.
pub(in crate::replication) const SLOT_BITS: u32 = 4;
pub(in crate::replication) const SLOTS: usize = (1 << SLOT_BITS) - 1;

/// What a snapshot's models have seen at most, so that they still learn.
const SEEN: u8 = 24;

/// What is kept of a class.
#[derive(Clone, Debug, Default)]
struct Kept {
    models: Box<[Model]>,
    /// The ghosts that its section updated or created, rising: about those that the next packets do.
    ids: Box<[u32]>,
}

/// Of all classes, by class: nothing of those that aren't coded.
#[derive(Clone, Debug)]
pub(in crate::replication) struct Snapshot(Box<[Arc<Kept>]>);

impl Snapshot {
    /// As all packets begin before anything is known.
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

    /// Keeps the models of a class as they stand, and these ids, which are put in order.
    pub(in crate::replication) fn keep(&mut self, class: usize, models: &[Model], ids: &mut [u32]) {
        ids.sort_unstable();
        let models = models.iter().map(|model| Model { seen: model.seen.min(SEEN), ..*model }).collect();
        self.0[class] = Arc::new(Kept { models, ids: (&*ids).into() });
    }
}
