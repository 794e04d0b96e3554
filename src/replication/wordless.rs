//! The values of properties without words: texts, bytes, lists. They are encoded once, when they are set, and sent
//! whole.
//!
//! Promises: a set value belongs to the row's state from the next tick on, like cells that are read then. An invalid
//! value changes nothing. A row without a set value has the value whose row is zero, if there is one.

use crate::wire::{BitWriter, Encoded, Properties, ValueError};

/// The values of all rows.
#[derive(Debug)]
pub(super) struct Wordless {
    /// The property of each value of a row, and its initial value.
    properties: Box<[(usize, Result<Encoded, ValueError>)]>,
    /// By row and then by property: what holds, and what will from the next tick on.
    values: Vec<Option<Encoded>>,
    set: Vec<Option<Box<Encoded>>>,
    writer: BitWriter,
}

impl Wordless {
    pub(super) fn new(properties: &Properties) -> Self {
        let zero = vec![0; properties.schema().row_size()];
        let without = properties.all() & !properties.with_words();
        let mut writer = BitWriter::new();
        let each = (0..properties.each().len()).filter(|property| without >> property & 1 == 1);
        let each =
            each.map(|property| (property, encode(properties, property, &zero, &mut writer))).collect();
        Wordless { properties: each, values: Vec::new(), set: Vec::new(), writer }
    }

    /// Whether the class has none.
    pub(super) fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    /// Makes room for rows below `rows`.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.values.resize(rows * self.properties.len(), None);
        self.set.resize_with(rows * self.properties.len(), || None);
    }

    /// Forgets the values of a row.
    pub(super) fn clear(&mut self, row: usize) {
        let range = row * self.properties.len()..(row + 1) * self.properties.len();
        self.values[range.clone()].fill(None);
        self.set[range].fill(None);
    }

    /// Sets a value, whether it differs from the last one that was set.
    pub(super) fn set(
        &mut self,
        properties: &Properties,
        row: usize,
        property: usize,
        body: &[u8],
    ) -> Result<bool, ValueError> {
        let Some(at) = self.at(row, property) else {
            return Err(ValueError::Type { expected: "a cell of its column", found: "a value by itself" });
        };
        let value = encode(properties, property, body, &mut self.writer)?;
        let before = self.set[at].as_deref().or(self.values[at].as_ref());
        if before == Some(&value) {
            return Ok(false);
        }
        self.set[at] = Some(Box::new(value));
        Ok(true)
    }

    /// The first value that the row lacks, and why it has none of itself.
    pub(super) fn lacks(&self, row: usize) -> Option<(usize, ValueError)> {
        let mut each = self.properties.iter().enumerate();
        each.find_map(|(place, (property, default))| {
            let at = row * self.properties.len() + place;
            let has = self.set[at].is_some() || self.values[at].is_some();
            default.as_ref().err().filter(|_| !has).map(|error| (*property, error.clone()))
        })
    }

    /// Makes a row's set values its state; returns the mask of the properties that changed.
    pub(super) fn commit(&mut self, row: usize) -> u64 {
        let mut changed = 0;
        for (place, (property, default)) in self.properties.iter().enumerate() {
            let at = row * self.properties.len() + place;
            let value = match self.set[at].take() {
                Some(value) => *value,
                None if self.values[at].is_some() => continue,
                None => match default {
                    Ok(value) => value.clone(),
                    Err(_) => continue,
                },
            };
            if self.values[at].as_ref() != Some(&value) {
                self.values[at] = Some(value);
                changed |= 1 << property;
            }
        }
        changed
    }

    /// The value of a row.
    pub(super) fn value(&self, row: usize, property: usize) -> Option<&Encoded> {
        self.values.get(self.at(row, property)?)?.as_ref()
    }

    /// The value that a row will have from the next tick on.
    pub(super) fn next_value(&self, row: usize, property: usize) -> Option<&Encoded> {
        let at = self.at(row, property)?;
        let default = self.properties.iter().find(|(each, _)| *each == property)?.1.as_ref().ok();
        self.set.get(at)?.as_deref().or(self.values[at].as_ref()).or(default)
    }

    fn at(&self, row: usize, property: usize) -> Option<usize> {
        let place = self.properties.iter().position(|(each, _)| *each == property)?;
        Some(row * self.properties.len() + place)
    }
}

fn encode(
    properties: &Properties,
    property: usize,
    body: &[u8],
    writer: &mut BitWriter,
) -> Result<Encoded, ValueError> {
    writer.clear();
    properties.write_fields(body, 1 << property, writer).map_err(|(_, error)| error)?;
    Ok(writer.encoded())
}
