//! Models as both sides have them: those that packets begin with.

use std::sync::Arc;

use super::super::class::Classes;
use super::{Layout, Model};

/// Bits of a snapshot's number, 0 being the first one, and how many others a client keeps.
pub(in crate::replication) const SLOT_BITS: u32 = 4;
pub(in crate::replication) const SLOTS: usize = (1 << SLOT_BITS) - 1;

/// What a snapshot's models have seen at most, so that they still learn.
const SEEN: u8 = 24;

/// The models of all classes, by class: none of those that aren't coded.
#[derive(Clone, Debug)]
pub(in crate::replication) struct Snapshot(Box<[Arc<[Model]>]>);

impl Snapshot {
    /// As all packets begin before anything is known.
    pub(in crate::replication) fn first(classes: &Classes) -> Self {
        let of = |layout: Layout| vec![Model::EVEN; layout.count()].into();
        let models =
            classes.iter().map(|class| if class.coded { of(Layout::new(class)) } else { Arc::default() });
        Snapshot(models.collect())
    }

    pub(in crate::replication) fn models(&self, class: usize) -> &[Model] {
        &self.0[class]
    }

    /// Keeps the models of a class as they stand.
    pub(in crate::replication) fn keep(&mut self, class: usize, models: &[Model]) {
        self.0[class] = models.iter().map(|model| Model { seen: model.seen.min(SEEN), ..*model }).collect();
    }
}
