//! Finds rows near a viewpoint: the rows of a class by cells of a square grid, so that few are visited.
//!
//! Rows are sorted by counting once in each tick in which one moved. Cells lie over the two axes along which the rows
//! are spread most, one row of cells after the other, so that a circle touches one run of rows in each row of cells.
//! The distance uses all axes of the position.
//!
//! Promises: the result doesn't depend on the cells; positions are those of the words, so a row with an invalid value
//! stays where it was last. Nothing is allocated once there were as many rows and cells. Cells are larger than
//! requested if there would otherwise be far more cells than rows.

use super::super::table::Table;

/// Cells, at most this many for each row.
const CELLS_A_ROW: usize = 4;

/// Cells at least that few rows may have.
const FEW_CELLS: usize = 1024;

/// A row and its position.
#[derive(Clone, Copy, Debug, Default)]
struct RowPlace {
    at: [u32; 3],
    row: u32,
}

/// The rows of a class by position. Lengths are in steps of the position's words.
#[derive(Debug)]
pub(super) struct Grid {
    /// The index of the position, and how many axes it has.
    property: usize,
    axes: usize,
    cell: f64,
    /// The two axes, the lowest words along them, and cells a step.
    over: [usize; 2],
    low: [u32; 2],
    rate: [f64; 2],
    /// Cells along both axes.
    size: [usize; 2],
    /// Where each cell's rows begin among the sorted ones, and where the last one's end.
    starts: Vec<u32>,
    found: Vec<RowPlace>,
    cells: Vec<u32>,
    sorted: Vec<RowPlace>,
}

impl Grid {
    /// For the positions of a property; `cell` is in steps.
    pub(super) fn new(property: usize, axes: usize, cell: f64) -> Self {
        Grid {
            property,
            axes,
            cell,
            over: [0, 1],
            low: [0; 2],
            rate: [0.0; 2],
            size: [1; 2],
            starts: vec![0; 2],
            found: Vec::new(),
            cells: Vec::new(),
            sorted: Vec::new(),
        }
    }

    /// How many axes positions have.
    pub(super) fn axes(&self) -> usize {
        self.axes
    }

    /// Where a row is.
    pub(super) fn place(&self, table: &Table, row: u32) -> [f64; 3] {
        self.words(table, row).map(f64::from)
    }

    fn words(&self, table: &Table, row: u32) -> [u32; 3] {
        // Positions have 32 bits an axis.
        table.position_words(row, self.property).map(|word| word as u32)
    }

    /// Sorts the rows that have a state.
    pub(super) fn sort(&mut self, table: &Table) {
        self.found.clear();
        let (mut low, mut high) = ([u32::MAX; 3], [0; 3]);
        for row in table.alive() {
            let at = self.words(table, row);
            for axis in 0..3 {
                low[axis] = low[axis].min(at[axis]);
                high[axis] = high[axis].max(at[axis]);
            }
            self.found.push(RowPlace { at, row });
        }
        self.lay(low, high);
        let cells = self.size[0] * self.size[1];
        self.starts.clear();
        self.starts.resize(cells + 1, 0);
        self.cells.clear();
        for placed in &self.found {
            let [x, y] = self.over.map(|axis| f64::from(placed.at[axis]));
            let cell = self.along(1, y) * self.size[0] + self.along(0, x);
            self.starts[cell + 1] += 1;
            // At most four times the rows, which are below 2^16.
            self.cells.push(cell as u32);
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        self.sorted.resize(self.found.len(), RowPlace::default());
        for (placed, cell) in self.found.iter().zip(&self.cells) {
            let next = &mut self.starts[*cell as usize];
            self.sorted[*next as usize] = *placed;
            *next += 1;
        }
        // Each start is now where the next cell's was.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }

    /// Chooses axes and cells for rows in this box.
    fn lay(&mut self, low: [u32; 3], high: [u32; 3]) {
        let spread = |axis: usize| f64::from(high[axis].saturating_sub(low[axis]));
        let narrow = (0..3).rev().min_by(|a, b| spread(*a).total_cmp(&spread(*b))).unwrap_or(2);
        self.over = [usize::from(narrow == 0), if narrow == 2 { 1 } else { 2 }];
        self.low = self.over.map(|axis| low[axis]);
        let most = (self.found.len() * CELLS_A_ROW).max(FEW_CELLS) as f64;
        let mut cell = self.cell;
        let count = |cell: f64| self.over.map(|axis| (spread(axis) / cell).floor() + 1.0);
        while count(cell).iter().product::<f64>() > most {
            cell *= 2.0;
        }
        self.rate = [1.0 / cell; 2];
        // At most `most`.
        self.size = count(cell).map(|count| count as usize);
    }

    /// The cell along an axis: never falls as `at` rises.
    #[inline]
    fn along(&self, axis: usize, at: f64) -> usize {
        // Positions below the first cell become 0.
        let cell = ((at - f64::from(self.low[axis])) * self.rate[axis]) as usize;
        cell.min(self.size[axis] - 1)
    }

    /// Calls `each` with the rows nearer than `far` and the squares of their distances.
    #[inline]
    pub(super) fn near(&self, view: [f64; 3], far: f64, mut each: impl FnMut(u32, f64)) {
        let of = |which: usize| {
            let at = view[self.over[which]];
            (self.along(which, at - far), self.along(which, at + far))
        };
        let ((left, right), (bottom, top)) = (of(0), of(1));
        for line in bottom..=top {
            let first = line * self.size[0];
            let run = self.starts[first + left] as usize..self.starts[first + right + 1] as usize;
            for placed in &self.sorted[run] {
                let apart: [f64; 3] = core::array::from_fn(|axis| f64::from(placed.at[axis]) - view[axis]);
                let square = apart.iter().map(|apart| apart * apart).sum::<f64>();
                if square <= far * far {
                    each(placed.row, square);
                }
            }
        }
    }
}
