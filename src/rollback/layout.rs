//! The fields of a state that is copied as bytes: their checksums, and which of them differ.

use core::ops::Range;

use super::checks::{hash, hash_strided};

/// A field of a state: an array, or a part of each of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateField {
    /// Its name in reports.
    pub name: String,
    /// Its type, which is the same for all players.
    pub kind: String,
    /// The array's bytes in the state.
    pub array: Range<usize>,
    /// Bytes of a row.
    pub stride: usize,
    /// The field's bytes in a row; None for all of them.
    pub part: Option<Range<usize>>,
}

/// The fields of a state.
#[derive(Clone, Debug, Default)]
pub struct StateLayout {
    pub fields: Vec<StateField>,
}

impl StateLayout {
    /// A mark of the fields' names, types and lengths, which all players must share. Never 0.
    pub fn mark(&self) -> u64 {
        let mut hasher = crc32fast::Hasher::new();
        for field in &self.fields {
            hasher.update(field.name.as_bytes());
            hasher.update(&(field.array.len() as u64).to_le_bytes());
            hasher.update(&(field.part.as_ref().map_or(0, Range::len) as u64).to_le_bytes());
            hasher.update(field.kind.as_bytes());
        }
        u64::from(hasher.finalize()).max(1)
    }

    /// The names of the fields, in the order of their checksums.
    pub fn names(&self) -> Vec<String> {
        self.fields.iter().map(|field| field.name.clone()).collect()
    }

    /// The checksums of a state's fields.
    pub fn sums(&self, state: &[u8]) -> Vec<u32> {
        let sum = |field: &StateField| {
            let (seed, bytes) = (hash(0, field.name.as_bytes()), &state[field.array.clone()]);
            match &field.part {
                None => hash(seed, bytes),
                Some(part) => hash_strided(seed, bytes, part.start, part.len(), field.stride),
            }
        };
        self.fields.iter().map(sum).collect()
    }

    /// The fields that differ between two states, each with its first differing row: `speed[3]`.
    pub fn differences(&self, one: &[u8], other: &[u8]) -> Vec<String> {
        let differing = |field: &StateField| {
            let rows = |state: &'_ [u8]| state[field.array.clone()].to_vec();
            let part = |row: &[u8]| row[field.part.clone().unwrap_or(0..row.len())].to_vec();
            let (one, other) = (rows(one), rows(other));
            let mut pairs = one.chunks(field.stride).zip(other.chunks(field.stride));
            pairs.position(|(one, other)| part(one) != part(other))
        };
        let shown = |field: &StateField| Some(format!("{}[{}]", field.name, differing(field)?));
        self.fields.iter().filter_map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_first_differing_row_of_each_field() {
        let field = |name: &str, part| StateField {
            name: name.into(),
            kind: "u1".into(),
            array: 2..8,
            stride: 2,
            part,
        };
        let layout =
            StateLayout { fields: vec![field("a", Some(0..1)), field("b", Some(1..2)), field("all", None)] };
        let (one, other) = ([0; 10], [9, 9, 0, 0, 0, 1, 0, 1, 9, 9]);
        assert_eq!(layout.differences(&one, &other), ["b[1]", "all[1]"]);
        let (one, other) = (layout.sums(&one), layout.sums(&other));
        assert_eq!(one[0], other[0]);
        assert_ne!(one[1..], other[1..]);
    }
}
