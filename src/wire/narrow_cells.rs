//! Cells of narrow words: how they are made is found out once for a class.
//!
//! Promises: the values are those of [`Property::restore_column`].

use super::codec::Codec;
use super::property::{MAX_LEAF_WORDS, Property};
use super::{Node, SmallestThree, Steps};

/// How a property's cells are made of its words.
#[derive(Clone, Debug)]
pub(super) struct NarrowCells {
    size: usize,
    kind: CellKind,
}

/// The commonest ones, and others.
#[derive(Clone, Debug)]
enum CellKind {
    Vector2(Steps),
    Vector3(Steps),
    Rotation(SmallestThree),
    Other,
}

impl NarrowCells {
    pub(super) fn of(property: &Property) -> Self {
        let node = property.field().node();
        let kind = match node {
            Node::Leaf(leaf) => match leaf.codec() {
                Codec::Vector2(steps) => CellKind::Vector2(*steps),
                Codec::Vector3(steps) => CellKind::Vector3(*steps),
                Codec::Rotation(rotation) => CellKind::Rotation(*rotation),
                _ => CellKind::Other,
            },
            _ => CellKind::Other,
        };
        NarrowCells { size: node.size(), kind }
    }

    /// Bytes of a cell.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Puts the value of these words into its cell; false if it is none of the commonest.
    #[inline]
    pub(super) fn restore(&self, words: &[u32], cell: &mut [u8]) -> bool {
        match &self.kind {
            CellKind::Vector2(steps) => vector::<2>(steps, words, cell),
            CellKind::Vector3(steps) => vector::<3>(steps, words, cell),
            CellKind::Rotation(rotation) => {
                let (Some(words), Some(numbers)) = (words.first_chunk(), cell.first_chunk_mut::<16>()) else {
                    return false;
                };
                let numbers = numbers.as_chunks_mut::<4>().0;
                rotation.each(words.map(|word| word as usize), &mut |i, component| {
                    numbers[i & 3] = (component as f32).to_le_bytes();
                });
                true
            }
            CellKind::Other => false,
        }
    }
}

#[inline]
fn vector<const N: usize>(steps: &Steps, words: &[u32], cell: &mut [u8]) -> bool {
    let numbers = cell.as_chunks_mut::<8>().0;
    let (Some(words), Some(numbers)) = (words.first_chunk::<N>(), numbers.first_chunk_mut::<N>()) else {
        return false;
    };
    for (number, word) in numbers.iter_mut().zip(words) {
        *number = steps.value(*word).to_le_bytes();
    }
    true
}

/// As [`NarrowCells::restore`], of any property.
#[inline(never)]
pub(super) fn restore_other(property: &Property, words: &[u32], cell: &mut [u8]) {
    let mut all = [0; MAX_LEAF_WORDS];
    let all = &mut all[..words.len()];
    all.iter_mut().zip(words).for_each(|(to, word)| *to = u64::from(*word));
    property.restore_column(all, cell, cell.len());
}
