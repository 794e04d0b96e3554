//! What each client sees: the application's part of visibility, where a library hasn't one by distance.

use crate::scene::Scene;

/// Cells of a side, as wide as clients see: more than 4 km of them.
const CELLS: usize = 32;

/// A client sees an entity from now on, or no longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) client: usize,
    pub(crate) row: usize,
    pub(crate) visible: bool,
}

#[derive(Debug)]
pub(crate) struct Sights {
    radius: f32,
    cells: Vec<Vec<u32>>,
    /// By client, rising.
    seen: Vec<Vec<u32>>,
    changes: Vec<Change>,
}

impl Sights {
    pub(crate) fn new(radius: f32, clients: usize) -> Self {
        let cells = vec![Vec::new(); CELLS * CELLS];
        Sights { radius, cells, seen: vec![Vec::new(); clients], changes: Vec::new() }
    }

    /// The rows that a client sees, rising.
    pub(crate) fn of(&self, client: usize) -> &[u32] {
        &self.seen[client]
    }

    fn cell(&self, place: [f32; 2]) -> [usize; 2] {
        place.map(|at| ((at / self.radius).floor() + CELLS as f32 / 2.0) as usize)
    }

    /// What has changed for the clients that are there and look from these places. What is seen stays so a little beyond the radius.
    pub(crate) fn update(&mut self, scene: &Scene, eyes: &[[f32; 2]], connected: &[bool]) -> &[Change] {
        self.changes.clear();
        self.cells.iter_mut().for_each(Vec::clear);
        for (row, place) in scene.position.iter().enumerate() {
            let [x, z] = self.cell([place[0], place[2]]);
            self.cells[z * CELLS + x].push(row as u32);
        }
        for client in (0..connected.len()).filter(|client| connected[*client]) {
            let eye = eyes[client];
            let ([x, z], old) = (self.cell(eye), std::mem::take(&mut self.seen[client]));
            let mut new = Vec::with_capacity(old.len() + 8);
            // One cell more where the edge is beyond the next one's.
            for cell in (z - 2..=z + 2).flat_map(|z| (x - 2..=x + 2).map(move |x| z * CELLS + x)) {
                for row in &self.cells[cell] {
                    let place = scene.position[*row as usize];
                    let apart = [place[0] - eye[0], place[2] - eye[1]];
                    let square = apart[0] * apart[0] + apart[1] * apart[1];
                    let near = square <= self.radius * self.radius;
                    let edge = self.radius * 1.05;
                    if near || square <= edge * edge && old.binary_search(row).is_ok() {
                        new.push(*row);
                    }
                }
            }
            new.sort_unstable();
            let differs = |these: &[u32], others: &[u32], visible: bool, changes: &mut Vec<Change>| {
                let only = these.iter().filter(|row| others.binary_search(row).is_err());
                changes.extend(only.map(|row| Change { client, row: *row as usize, visible }));
            };
            differs(&new, &old, true, &mut self.changes);
            differs(&old, &new, false, &mut self.changes);
            self.seen[client] = new;
        }
        &self.changes
    }
}
