//! Saved worlds that anyone may have written: refused, or continued. A world that is continued has only values that can be sent, and
//! is saved as the same bytes again.

use std::sync::Arc;

use tickwire::endpoint::PeerHandle;
use tickwire::replication::{Classes, Column, Publisher, PublisherConfig, SavedIdentity, SavedWorld};

use super::ghosts::classes;
use super::input::Input;

/// More than any input names clients.
const SLOTS: usize = 1 << 16;

fn server(classes: &Arc<Classes>) -> Publisher {
    Publisher::new(classes.clone(), PublisherConfig { channel: 0, seed: 1 })
}

/// The cells of all rows that a class may have, by property.
fn cells_of(classes: &Classes) -> Vec<Vec<Vec<u8>>> {
    let of = |class: &Arc<tickwire::replication::GhostClass>| {
        let each = class.properties.each().iter();
        each.map(|property| vec![0; property.field().node().size() * class.capacity as usize]).collect()
    };
    classes.iter().map(of).collect()
}

fn columns(cells: &[Vec<Vec<u8>>]) -> Vec<Vec<Column<'_>>> {
    let column = |cells| Column { cells, scan: true };
    cells.iter().map(|class| class.iter().map(|cells| column(cells)).collect()).collect()
}

/// A world that a game may have, saved.
fn some_world(classes: &Arc<Classes>, input: &mut Input<'_>) -> Vec<u8> {
    let (mut publisher, mut cells) = (server(classes), cells_of(classes));
    let clients = [0, 1].map(|slot| PeerHandle { slot, generation: 0 });
    clients.iter().for_each(|client| publisher.welcome(*client, client.slot.into()));
    for _ in 0..input.below(40) {
        let class = input.below(2) as usize;
        if input.below(5) == 0 {
            publisher.despawn(class, input.below(30));
            continue;
        }
        let owner = clients.get(input.below(4) as usize).copied();
        let Ok(row) = publisher.spawn(class, owner) else { continue };
        for (property, cells) in classes.get(class).unwrap().properties.each().iter().zip(&mut cells[class]) {
            let size = property.field().node().size();
            let bytes = input.bytes(size.min(3));
            cells[row as usize * size..][..bytes.len()].copy_from_slice(bytes);
        }
        if input.below(3) == 0 {
            publisher.begin_tick(&columns(&cells), &mut Vec::new());
            clients.iter().for_each(|client| _ = publisher.enter(*client, class, row));
        }
    }
    if input.below(2) == 0 {
        publisher.remove_peer(clients[0]);
    }
    publisher.save(&columns(&cells), SavedIdentity { key: 3, drawn: input.u32() })
}

fn judge(classes: &Arc<Classes>, bytes: &[u8]) -> bool {
    let Ok(saved) = SavedWorld::read(bytes, classes, SLOTS) else { return false };
    let (mut publisher, mut cells) = (server(classes), cells_of(classes));
    publisher.load(&saved);
    for (class, of) in saved.classes.iter().enumerate() {
        let properties = classes.get(class).unwrap().properties.each();
        for (place, (property, saved)) in properties.iter().zip(&of.cells).enumerate() {
            let size = property.field().node().size();
            if !property.has_words() {
                continue;
            }
            for (row, cell) in of.rows.iter().zip(saved.chunks_exact(size)) {
                cells[class][place][*row as usize * size..][..size].copy_from_slice(cell);
            }
        }
    }
    assert_eq!(publisher.save(&columns(&cells), saved.identity), bytes);
    let mut wrong = Vec::new();
    publisher.begin_tick(&columns(&cells), &mut wrong);
    assert_eq!(wrong, []);
    true
}

pub fn run(data: &[u8]) {
    let (classes, mut input) = (classes(), Input::new(data));
    if input.below(2) == 0 {
        let mut body = SavedWorld::begin(&classes);
        body.extend_from_slice(input.bytes(data.len()));
        judge(&classes, &SavedWorld::seal(body));
        return;
    }
    let mut bytes = some_world(&classes, &mut input);
    assert!(judge(&classes, &bytes), "its own bytes are read");
    for _ in 0..input.below(4) {
        let at = input.u16() as usize % bytes.len();
        bytes[at] ^= 1 << input.below(8);
        if input.below(3) > 0 {
            bytes.truncate(bytes.len() - 8);
            bytes = SavedWorld::seal(bytes);
        }
        judge(&classes, &bytes);
    }
}
