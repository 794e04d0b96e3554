//! How much a client's ghosts of a class matter when not all have room: their rows' weights, how far away they are, and
//! whether the client must know them.

use super::super::table::Table;
use super::Publisher;
use crate::endpoint::PeerHandle;

/// From where a client sees the ghosts of a class, in steps of their position's words.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// The index of the position.
    pub property: usize,
    pub axes: usize,
    pub radius: f64,
    /// The weight at the radius and beyond.
    pub far_weight: f32,
    /// Empty: no ghost is nearer than others.
    pub views: Vec<[f64; 3]>,
}

impl Sight {
    fn weight(&self, table: &Table, row: u32) -> f32 {
        let words = &table.position_words(row, self.property)[..self.axes];
        let square = |view: &[f64; 3]| -> f64 {
            let each = words.iter().zip(view).map(|(word, at)| *word as f64 - at);
            each.map(|off| off * off).sum()
        };
        let nearest = self.views.iter().map(square).fold(f64::INFINITY, f64::min);
        if nearest == f64::INFINITY {
            return 1.0;
        }
        far_weight_raised(self.far_weight, self.radius * self.radius / nearest)
    }
}

/// Doubles a weight for each factor of 4 between a ghost's distance and the radius, up to 1. `ratio` is the square of
/// (radius / distance).
///
/// An error of a ghost's place is seen under an angle, which falls with the distance. The sum of these angles is least
/// if the intervals between a ghost's updates grow with the root of its distance. The weight has few values because
/// ghosts with equal weights that were sent in the same tick are also due in the same tick. So their updates share a
/// baseline, which the packet then names once.
fn far_weight_raised(far_weight: f32, ratio: f64) -> f32 {
    // The exponent of a float; 0 below 1, and 128 at infinity.
    let exponent = ((ratio.max(1.0) as f32).to_bits() >> 23) - 127;
    (far_weight * (1u64 << (exponent / 4)) as f32).min(1.0)
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
        sight: Option<Sight>,
    ) {
        if let Some(peer) = self.peer_mut(handle) {
            peer.sights[class] = sight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_doubles_at_a_quarter_of_the_distance() {
        let at = |distance: f64| far_weight_raised(0.1, (600.0 / distance).powi(2));
        assert_eq!([at(9000.0), at(600.0), at(151.0)], [0.1; 3]);
        assert_eq!([at(149.0), at(38.0)], [0.2; 2]);
        assert_eq!([at(37.0), at(9.0)], [0.4, 0.8]);
        assert_eq!([at(2.0), at(0.0)], [1.0; 2]);
    }
}
