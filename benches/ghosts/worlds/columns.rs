//! The cells of a class's objects, a column a property.

use tickwire::replication::{Column, GhostClass};

/// One column a property, with a cell for each row.
#[derive(Clone)]
pub(crate) struct Columns {
    cells: Vec<Vec<u8>>,
    sizes: Vec<usize>,
}

impl Columns {
    pub(crate) fn new(class: &GhostClass, rows: usize) -> Self {
        let sizes: Vec<usize> =
            class.properties.each().iter().map(|property| property.field().node().size()).collect();
        Columns { cells: sizes.iter().map(|size| vec![0; rows * size]).collect(), sizes }
    }

    /// The cell of a row in a property's column.
    pub(crate) fn cell(&self, property: usize, row: usize) -> &[u8] {
        let size = self.sizes[property];
        &self.cells[property][row * size..][..size]
    }

    pub(crate) fn put(&mut self, property: usize, row: usize, cell: &[u8]) {
        let size = self.sizes[property];
        self.cells[property][row * size..][..size].copy_from_slice(cell);
    }

    pub(crate) fn put_integer(&mut self, property: usize, row: usize, integer: u64) {
        let size = self.sizes[property];
        self.put(property, row, &integer.to_le_bytes()[..size]);
    }

    pub(crate) fn put_numbers(&mut self, property: usize, row: usize, numbers: &[f64]) {
        self.put_each(property, row, numbers.iter().map(|number| number.to_le_bytes()));
    }

    pub(crate) fn put_singles(&mut self, property: usize, row: usize, numbers: &[f32]) {
        self.put_each(property, row, numbers.iter().map(|number| number.to_le_bytes()));
    }

    fn put_each<const N: usize>(
        &mut self,
        property: usize,
        row: usize,
        numbers: impl Iterator<Item = [u8; N]>,
    ) {
        let size = self.sizes[property];
        let cell = &mut self.cells[property][row * size..][..size];
        cell.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(cell, number)| *cell = number);
    }

    /// The first three numbers of a cell.
    pub(crate) fn numbers(&self, property: usize, row: usize) -> [f64; 3] {
        let numbers = self.cell(property, row).as_chunks().0;
        std::array::from_fn(|axis| numbers.get(axis).map_or(0.0, |number| f64::from_le_bytes(*number)))
    }

    /// Writes the values that these words stand for.
    pub(crate) fn put_words(&mut self, class: &GhostClass, row: usize, words: &[u64], body: &mut [u8]) {
        class.properties.restore(words, body);
        for (i, property) in class.properties.each().iter().enumerate() {
            let size = self.sizes[i];
            self.put(i, row, &body[property.field().offset()..][..size]);
        }
    }

    pub(crate) fn scanned(&self) -> Vec<Column<'_>> {
        self.cells.iter().map(|cells| Column { cells, scan: true }).collect()
    }

    pub(crate) fn all_mut(&mut self) -> Vec<&mut [u8]> {
        self.cells.iter_mut().map(|cells| &mut cells[..]).collect()
    }

    /// How many cells of a row differ from the values that these words stand for.
    pub(crate) fn wrong(&self, class: &GhostClass, row: usize, words: &[u64], body: &mut [u8]) -> usize {
        class.properties.restore(words, body);
        let differs = |i: usize| {
            let offset = class.properties.each()[i].field().offset();
            self.cell(i, row) != &body[offset..][..self.sizes[i]]
        };
        (0..self.cells.len()).filter(|i| differs(*i)).count()
    }
}
