//! A server's world beside a simple model of it: every state that every object ever had, as cells.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwire::endpoint::PeerHandle;
use tickwire::replication::{Classes, Column, GhostClass, Publisher, PublisherConfig, Table};
use tickwire::rng::Rng;
use tickwire::wire::{Kind, Value};

/// The property by which the test knows an object: always the same.
pub(super) const UID: usize = 0;

/// What the client's first tick is above the server's.
pub(super) const FIRST_TICK: u32 = 1 << 16;

/// A value as it is compared: a cell, or a text.
type Bytes = Vec<u8>;

/// An object that is or was.
#[derive(Default)]
pub(super) struct Object {
    pub(super) alive: bool,
    /// By property, the values with the tick from which each held.
    pub(super) values: BTreeMap<usize, Vec<(u32, Bytes)>>,
}

impl Object {
    pub(super) fn at(&self, property: usize, tick: u32) -> Option<&Bytes> {
        let values = self.values.get(&property)?;
        let after = values.partition_point(|(since, _)| *since <= tick);
        values.get(after.checked_sub(1)?).map(|(_, value)| value)
    }

    /// Whether it ever had this value up to a tick.
    pub(super) fn had(&self, property: usize, tick: u32, value: &[u8]) -> bool {
        self.values[&property].iter().any(|(since, each)| *since <= tick && each == value)
    }
}

pub(super) struct World {
    pub(super) publisher: Publisher,
    /// By class and property.
    pub(super) columns: Vec<Vec<Vec<u8>>>,
    /// By class, the uid of each row that is alive.
    pub(super) rows: Vec<BTreeMap<u32, u32>>,
    /// By class and uid.
    pub(super) objects: Vec<BTreeMap<u32, Object>>,
    next_uid: u32,
}

pub(super) fn size_of_cell(class: &GhostClass, property: usize) -> usize {
    class.properties.each()[property].field().node().size()
}

impl World {
    pub(super) fn new(classes: &Arc<Classes>) -> Self {
        let columns = classes.iter().map(|class| {
            let sizes = (0..class.properties.each().len()).map(|i| size_of_cell(class, i));
            sizes.map(|size| vec![0; size * class.capacity as usize]).collect()
        });
        World {
            columns: columns.collect(),
            rows: classes.iter().map(|_| BTreeMap::new()).collect(),
            objects: classes.iter().map(|_| BTreeMap::new()).collect(),
            publisher: Publisher::new(classes.clone(), PublisherConfig { channel: 0, seed: 0 }),
            next_uid: 1,
        }
    }

    pub(super) fn class(&self, class: usize) -> Arc<GhostClass> {
        self.publisher.classes().get(class).unwrap().clone()
    }

    /// Spawns an object with random values, if there is room.
    pub(super) fn spawn(
        &mut self,
        class: usize,
        owner: Option<PeerHandle>,
        uid: Option<u32>,
        rng: &mut Rng,
    ) -> Option<u32> {
        let row = self.publisher.spawn(class, owner).ok()?;
        let uid = uid.unwrap_or(self.next_uid);
        self.next_uid = self.next_uid.max(uid) + 1;
        self.rows[class].insert(row, uid);
        self.objects[class].insert(uid, Object { alive: true, ..Object::default() });
        let size = size_of_cell(&self.class(class), UID);
        self.columns[class][UID][row as usize * size..][..size].copy_from_slice(&uid.to_le_bytes()[..size]);
        for property in 1..self.columns[class].len() {
            // Values near the old one begin from the same, whatever was in the row.
            let size = size_of_cell(&self.class(class), property);
            self.columns[class][property][row as usize * size..][..size].fill(0);
            self.write(class, row, property, rng);
        }
        Some(row)
    }

    pub(super) fn despawn(&mut self, class: usize, row: u32) {
        assert!(self.publisher.despawn(class, row));
        assert!(!self.publisher.despawn(class, row), "once");
        let uid = self.rows[class].remove(&row).unwrap();
        self.objects[class].get_mut(&uid).unwrap().alive = false;
    }

    /// Writes a random value near the old one, or anywhere.
    pub(super) fn write(&mut self, class: usize, row: u32, property: usize, rng: &mut Rng) {
        let of = self.class(class);
        let (field, size) = (of.properties.each()[property].field(), size_of_cell(&of, property));
        let cell = &mut self.columns[class][property][row as usize * size..][..size];
        let mut floats = |each: &mut dyn FnMut(f64) -> f64| {
            for place in cell.as_chunks_mut::<8>().0 {
                *place = each(f64::from_le_bytes(*place)).to_le_bytes();
            }
        };
        let far = rng.chance(0.1);
        match field.kind() {
            Kind::Vector { .. } => floats(&mut |old| {
                let new = if far { rng.unit() * 200.0 - 100.0 } else { old + rng.unit() - 0.5 };
                new.clamp(-100.0, 100.0)
            }),
            Kind::Angle { .. } => floats(&mut |old| (old + rng.unit() * 20.0) % 360.0),
            Kind::Rotation { .. } => {
                for place in cell.as_chunks_mut::<4>().0 {
                    *place = (rng.unit() as f32 + 0.1).to_le_bytes();
                }
            }
            Kind::Bits { bits } => {
                let value = rng.next_u64() >> (64 - bits);
                cell.copy_from_slice(&value.to_le_bytes()[..size]);
            }
            Kind::Optional(_) => {
                let value = rng.next_u64() >> 24;
                cell[..8].copy_from_slice(&value.to_le_bytes());
                cell[8] = rng.chance(0.7).into();
            }
            Kind::Text { max_bytes } => {
                let length = rng.below(u64::from(*max_bytes) + 1);
                let text: String = (0..length).map(|_| char::from(b'a' + rng.below(26) as u8)).collect();
                let mut body = vec![0; of.properties.schema().row_size()];
                let (start, at) = (body.len() as u32, field.offset());
                body[at..at + 4].copy_from_slice(&start.to_le_bytes());
                body[at + 4..at + 8].copy_from_slice(&(length as u32).to_le_bytes());
                body.extend_from_slice(text.as_bytes());
                self.publisher.set_cell(class, row, property, &body).unwrap();
            }
            other => panic!("{other}"),
        }
    }

    /// Begins a tick and notes what changed.
    pub(super) fn begin_tick(&mut self) -> u32 {
        let columns: Vec<Vec<Column<'_>>> = self
            .columns
            .iter()
            .map(|columns| columns.iter().map(|cells| Column { cells, scan: true }).collect())
            .collect();
        let mut errors = Vec::new();
        self.publisher.begin_tick(&columns, &mut errors);
        assert_eq!(errors, []);
        let tick = self.publisher.tick();
        for class in 0..self.rows.len() {
            let table = self.publisher.table(class);
            for row in table.changed() {
                let Some(uid) = self.rows[class].get(row) else { continue };
                let object = self.objects[class].get_mut(uid).unwrap();
                note(object, table, *row, tick);
            }
        }
        tick
    }
}

/// The values of a row, as a client would have them.
fn note(object: &mut Object, table: &Table, row: u32, tick: u32) {
    let properties = &table.class().properties;
    for (i, property) in properties.each().iter().enumerate() {
        let value = if property.has_words() {
            let mut cell = vec![0; property.field().node().size()];
            let start = properties.word_start(i);
            let (words, size) = (&table.newest(row)[start..start + property.words().len()], cell.len());
            property.restore_column(words, &mut cell, size);
            cell
        } else {
            let mut writer = tickwire::wire::BitWriter::new();
            writer.append(table.value(row, i).unwrap());
            let (bits, bytes) = (writer.bit_len(), writer.into_bytes());
            let (mut body, mut reader) = (Vec::new(), tickwire::wire::BitReader::with_range(&bytes, 0, bits));
            properties.read_fields(&mut reader, 1 << i, &mut body).unwrap();
            text_of(table.class(), i, &body)
        };
        let values = object.values.entry(i).or_default();
        if values.last().is_none_or(|(_, last)| *last != value) {
            values.push((tick, value));
        }
    }
}

pub(super) fn text_of(class: &GhostClass, property: usize, body: &[u8]) -> Vec<u8> {
    match class.properties.each()[property].field().load(body) {
        Value::Text(text) => text.as_bytes().to_vec(),
        other => panic!("{other:?}"),
    }
}
