//! How much a client's ghosts of a class matter when not all have room: their rows' weights, how far away they are, and
//! whether the client must know them.

use super::super::table::Table;
use super::Publisher;
use crate::endpoint::PeerHandle;

/// From where a client sees the ghosts of a class, in steps of their position's words.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// Where the position's words begin in a row.
    pub start: usize,
    pub axes: usize,
    pub radius: f64,
    /// What the weight falls to, at the radius and beyond.
    pub far_weight: f32,
    /// Empty: no ghost is nearer than others.
    pub views: Vec<[f64; 3]>,
}

impl Sight {
    fn weight(&self, table: &Table, row: u32) -> f32 {
        let words = &table.newest(row)[self.start..][..self.axes];
        let square = |view: &[f64; 3]| -> f64 {
            let each = words.iter().zip(view).map(|(word, at)| *word as f64 - at);
            each.map(|off| off * off).sum()
        };
        let nearest = self.views.iter().map(square).fold(f64::INFINITY, f64::min);
        if nearest == f64::INFINITY {
            return 1.0;
        }
        let far = (nearest.sqrt() / self.radius).min(1.0) as f32;
        1.0 - (1.0 - self.far_weight) * far
    }
}

/// What there is of a class.
#[derive(Clone, Copy)]
pub(super) struct Urgency<'a> {
    pub(super) table: &'a Table,
    pub(super) weights: &'a [f32],
    pub(super) must: &'a [u8],
    pub(super) sight: Option<&'a Sight>,
}

impl Urgency<'_> {
    /// By what a ghost's waiting is multiplied.
    #[inline]
    pub(super) fn weight(&self, row: u32) -> f32 {
        let weight = self.weights.get(row as usize).copied().unwrap_or(1.0);
        self.sight.map_or(weight, |sight| weight * sight.weight(self.table, row))
    }

    /// Whether clients must know it.
    #[inline]
    pub(super) fn is_must(&self, row: u32) -> bool {
        self.must.get(row as usize).is_some_and(|must| *must != 0)
    }
}

impl Publisher {
    /// Says which of a class's objects clients must know, a byte a row: they go before others, in up to half of a client's
    /// budget. Rows beyond needn't be known.
    pub fn set_must_know(&mut self, class: usize, rows: Vec<u8>) {
        self.must[class] = rows;
    }

    /// Says from where a client sees the ghosts of a class; none: they are all as near.
    pub(in crate::replication) fn set_sight(
        &mut self,
        handle: PeerHandle,
        class: usize,
        sight: Option<(&Sight, &[[f64; 3]])>,
    ) {
        let Some(peer) = self.peer_mut(handle) else { return };
        let place = &mut peer.sights[class];
        match sight {
            None => *place = None,
            Some((of, views)) => {
                let sight = place.get_or_insert_with(|| of.clone());
                let kept = core::mem::take(&mut sight.views);
                *sight = Sight { views: kept, ..of.clone() };
                sight.views.clear();
                sight.views.extend_from_slice(views);
            }
        }
    }
}
