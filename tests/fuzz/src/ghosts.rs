//! A client's ghosts, over payloads that anyone may have written: a violation, or records that are read or passed over.
//! What is shown is always of a value that could have been written, spawns and despawns take turns, and memory is bounded by the
//! classes' capacities.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwire::replication::{Classes, Condition, GhostClass, GhostEvent, GhostEventKind, Mirror};
use tickwire::wire::{BitReader, Kind, Properties, Schema};

use super::input::Input;

pub fn class(name: &str, fields: Vec<(&str, Kind, Condition)>, capacity: u32) -> Arc<GhostClass> {
    let conditions: Vec<Condition> = fields.iter().map(|(_, _, condition)| *condition).collect();
    let schema = Schema::new(fields.into_iter().map(|(name, kind, _)| (name, kind))).unwrap();
    Arc::new(GhostClass::new(name, Properties::new(schema).unwrap(), conditions, capacity).unwrap())
}

/// Two classes: one of plain words, one with everything.
pub fn classes() -> Arc<Classes> {
    use Condition::{Always, ExceptOwner, Initial, OwnerOnly};
    let bits = |bits| Kind::Bits { bits };
    let vector = |axes| Kind::Vector { axes, lo: -100.0, hi: 100.0, resolution: 1.0 / 64.0 };
    let cubes = vec![
        ("uid", bits(32), Always),
        ("position", vector(3), Always),
        ("turn", Kind::Rotation { bits: 9 }, Always),
        ("health", bits(10), Always),
    ];
    let tanks = vec![
        ("uid", bits(32), Always),
        ("position", vector(2), Always),
        ("heading", Kind::Angle { lo: 0.0, hi: 360.0, resolution: 0.5 }, Always),
        ("name", Kind::Text { max_bytes: 12 }, Initial),
        ("ammo", bits(10), OwnerOnly),
        ("pose", bits(4), ExceptOwner),
        ("model", bits(6), Initial),
        ("says", Kind::Text { max_bytes: 20 }, Always),
        ("fuel", Kind::Optional(Box::new(bits(40))), Always),
    ];
    Arc::new(Classes::new([class("Cube", cubes, 600), class("Tank", tanks, 300)]).unwrap())
}

/// Among the bits of coded classes: what only owners are sent goes to those whom the game chooses.
pub const CHOSEN: u8 = 0b100;

/// The same, with those coded whose bit is set.
pub fn coded_classes(which: u8) -> Arc<Classes> {
    let condition = |condition: &Condition| match condition {
        Condition::OwnerOnly => Condition::Chosen,
        Condition::ExceptOwner => Condition::Always,
        other => *other,
    };
    let class = |(at, class): (usize, &Arc<GhostClass>)| {
        let mut class = GhostClass::clone(class);
        if which & CHOSEN != 0 {
            let conditions: Vec<Condition> = class.conditions.iter().map(condition).collect();
            class = GhostClass::new(class.name, class.properties, conditions, class.capacity).unwrap();
        }
        Arc::new(class.with_coding(which >> at & 1 == 1))
    };
    Arc::new(Classes::new(classes().iter().enumerate().map(class)).unwrap())
}

/// A client's columns.
pub fn columns_of(classes: &Classes) -> Vec<Vec<Vec<u8>>> {
    classes.iter().map(|class| class.properties.each().iter().map(|_| Vec::new()).collect()).collect()
}

/// Takes a client's updates into its columns, grown as needed.
pub fn take(mirror: &mut Mirror, columns: &mut [Vec<Vec<u8>>], events: &mut Vec<GhostEvent>) {
    let classes = mirror.classes().clone();
    for ((class, columns), of) in columns.iter_mut().enumerate().zip(classes.iter()) {
        for (property, column) in of.properties.each().iter().zip(columns) {
            column.resize(property.field().node().size() * mirror.rows(class), 0);
        }
    }
    let mut views: Vec<Vec<&mut [u8]>> = columns
        .iter_mut()
        .map(|columns| columns.iter_mut().map(|column| column.as_mut_slice()).collect())
        .collect();
    mirror.take(&mut views, events);
}

/// A client to feed, with the model of its state.
pub struct Fed {
    mirror: Mirror,
    columns: Vec<Vec<Vec<u8>>>,
    events: Vec<GhostEvent>,
    alive: BTreeSet<(u16, u32)>,
}

impl Fed {
    pub fn new(classes: Arc<Classes>) -> Self {
        let columns = columns_of(&classes);
        Fed { mirror: Mirror::new(classes), columns, events: Vec::new(), alive: BTreeSet::new() }
    }

    /// False once the protocol was broken.
    pub fn feed(&mut self, bytes: &[u8], start: usize, bits: usize) -> bool {
        let fine = self.mirror.handle_payload(BitReader::with_range(bytes, start, bits)).is_ok();
        for (class, of) in self.mirror.classes().iter().enumerate() {
            assert!(self.mirror.rows(class) <= of.capacity as usize);
        }
        fine
    }

    pub fn take(&mut self) {
        self.events.clear();
        take(&mut self.mirror, &mut self.columns, &mut self.events);
        let classes = self.mirror.classes().clone();
        let most: u32 = classes.iter().map(|class| class.capacity).sum();
        assert!(self.events.len() <= 4 * most as usize);
        for GhostEvent { class, id, kind } in &self.events {
            let ghost = (*class, *id);
            match kind {
                GhostEventKind::Spawned => assert!(self.alive.insert(ghost)),
                GhostEventKind::Despawned => assert!(self.alive.remove(&ghost)),
                GhostEventKind::Changed { mask } => assert!(*mask != 0 && self.alive.contains(&ghost)),
                GhostEventKind::Owned { owner } => assert_eq!(*owner, self.mirror.owns((*class).into(), *id)),
            }
        }
        for (class, of) in classes.iter().enumerate() {
            for id in 0..self.mirror.rows(class) as u32 {
                let alive = self.mirror.is_alive(class, id);
                assert_eq!(alive, self.alive.contains(&(class as u16, id)));
                let (owns, group) = (self.mirror.owns(class, id), self.mirror.group(class, id));
                assert!(group < of.groups() && (alive || group == 0));
                assert_eq!(group & of.group(true, false), of.group(owns, false));
                for (i, property) in of.properties.each().iter().enumerate().filter(|_| alive) {
                    let size = property.field().node().size();
                    let mut words = vec![0; property.words().len()];
                    let cell = &self.columns[class][i][id as usize * size..];
                    assert_eq!(property.quantize_column(cell, size, &mut words), Ok(()));
                    if let Some(body) = self.mirror.value(class, id, i) {
                        property.field().load(body);
                    }
                }
            }
        }
    }
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut fed = Fed::new(coded_classes(input.u8()));
    let mut goes_on = true;
    while goes_on && !input.is_empty() {
        let how = input.u8();
        let bytes = input.piece();
        if how & 0x80 != 0 {
            fed.mirror.await_visit();
        }
        let start = usize::from(how & 7).min(bytes.len() * 8);
        // Payloads end at any bit.
        let bits = (bytes.len() * 8 - start).saturating_sub(usize::from(how >> 3 & 7));
        goes_on = fed.feed(bytes, start, bits);
        if how & 0x40 == 0 {
            fed.take();
        }
    }
    fed.take();
}
