//! A server's world as bytes, for another server to continue.
//!
//! | part | bits |
//! |---|---|
//! | head | the bytes `TWW1`, the classes' hash in 64, the world's identity in 64, network ids drawn in 32, the tick in 32 |
//! | class | rows ever used in 17 and a bit for each of them, 1 where a ghost lives; for each ghost 1 and its owner's client id in 64, or 0; then its properties in the order of the fields |
//! | property with words | aligned, the cells of all ghosts as the server has them: numbers of the game, not rounded to the wire's steps |
//! | property without words | for each ghost its bits in 16, then the value as in a message |
//! | clients | how many in 32; each its client id in 64, its visit in 64 and the last tick of that in 32; then for each class 1 where the ids are the rows of all ghosts, or 0, how many ids in 17, and for each the id in 16 and 1 and its row in 16, or 0 of a ghost that ended |
//! | end | aligned, the first 8 bytes of SHA-256 of all before |
//!
//! Promises: the same world gives the same bytes, and bytes that are read give the same world. A world's values are such as the
//! game could have set; memory is bounded by the classes' capacities. Refuses everything else, and worlds of other classes.

use core::fmt;
use std::collections::VecDeque;

use sha2::{Digest, Sha256};

use super::class::{Classes, GhostClass, MAX_CAPACITY};
use super::packet::EarlierVisit;
use crate::wire::{BitReader, BitSink, BitWriter, ReadError};

const MARK: [u8; 4] = *b"TWW1";

/// Bits of a number of rows, up to [`MAX_CAPACITY`]; and of an id or a row below that.
pub(super) const COUNT_BITS: u32 = MAX_CAPACITY.ilog2() + 1;
pub(super) const ROW_BITS: u32 = MAX_CAPACITY.ilog2();

/// Bits of the length of a value without words: more than a record has.
pub(super) const LENGTH_BITS: u32 = 16;

const CHECKSUM_BYTES: usize = 8;

/// Why bytes are no world that can be continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadWorld {
    /// The bytes aren't a saved world.
    Mark,
    /// The checksum doesn't fit: bytes were changed or are missing.
    Checksum,
    /// The world has other ghost classes.
    Classes,
    /// A value can't be read.
    Read(ReadError),
    /// A value is out of its bounds.
    Value { class: String, property: String, row: u32 },
    /// A row is beyond the class's capacity, or there are more than are in use.
    Row { class: String },
    /// The ids of a client aren't in order, or have no ghosts.
    Ids { class: String },
    /// Bytes are left behind the end.
    Trailing,
}

impl fmt::Display for BadWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadWorld::Mark => write!(f, "the bytes must be a saved world, made by world.save()"),
            BadWorld::Checksum => {
                write!(f, "the saved world was changed or is incomplete: its checksum differs")
            }
            BadWorld::Classes => write!(
                f,
                "the saved world must have the protocol's ghost classes, and its classes differ: load it with the version of \
                 the game that saved it"
            ),
            BadWorld::Read(error) => write!(f, "the saved world can't be read: {error}"),
            BadWorld::Value { class, property, row } => {
                write!(f, "the saved world has a value out of its bounds: {class}.{property} of row {row}")
            }
            BadWorld::Row { class } => {
                write!(f, "the saved world has rows of {class} beyond its capacity or its last ghost")
            }
            BadWorld::Ids { class } => {
                write!(f, "the saved world has a client with ids of {class} that are out of order or unknown")
            }
            BadWorld::Trailing => write!(f, "the saved world has bytes after its end"),
        }
    }
}

impl core::error::Error for BadWorld {}

impl From<ReadError> for BadWorld {
    fn from(error: ReadError) -> Self {
        BadWorld::Read(error)
    }
}

/// What a world's network ids are drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedIdentity {
    /// The world's own random number.
    pub key: u64,
    /// How many network ids were drawn.
    pub drawn: u32,
}

/// The ghosts of a class.
#[derive(Clone, Debug, Default)]
pub struct SavedClass {
    /// The rows in which ghosts live, rising.
    pub rows: Vec<u32>,
    /// By place among the rows: the client id of the ghost's owner.
    pub owners: Vec<Option<u64>>,
    /// By property: the cells of all ghosts; empty for properties without words.
    pub cells: Vec<Vec<u8>>,
    /// By property: the body of each ghost's value; empty for properties with words.
    pub bodies: Vec<Vec<Box<[u8]>>>,
}

/// What a client had been sent.
#[derive(Clone, Debug)]
pub(super) struct SavedClient {
    pub(super) client: u64,
    pub(super) last: EarlierVisit,
    /// By class: the ids that the client may have ghosts of, rising, each with its row; none for those that ended.
    pub(super) ids: Vec<Vec<(u32, Option<u32>)>>,
}

/// A world that was saved.
#[derive(Clone, Debug)]
pub struct SavedWorld {
    pub identity: SavedIdentity,
    pub tick: u32,
    pub classes: Vec<SavedClass>,
    pub(super) clients: VecDeque<SavedClient>,
}

impl SavedWorld {
    /// The bytes that a world of these classes begins with.
    pub fn begin(classes: &Classes) -> Vec<u8> {
        [&MARK[..], &classes.hash().to_le_bytes()].concat()
    }

    /// Ends a world with its checksum.
    pub fn seal(mut body: Vec<u8>) -> Vec<u8> {
        let sum = checksum(&body);
        body.extend_from_slice(&sum);
        body
    }

    /// Reads a world of these classes, for a server with this many slots: of more clients the last are remembered.
    ///
    /// # Errors
    /// Why the bytes are none.
    pub fn read(bytes: &[u8], classes: &Classes, slots: usize) -> Result<Self, BadWorld> {
        if !bytes.starts_with(&MARK) {
            return Err(BadWorld::Mark);
        }
        let end = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or(BadWorld::Checksum)?;
        let (body, sum) = bytes.split_at(end);
        if checksum(body) != *sum {
            return Err(BadWorld::Checksum);
        }
        let begin = SavedWorld::begin(classes);
        let Some(rest) = body.strip_prefix(&begin[..]) else { return Err(BadWorld::Classes) };
        let mut reader = BitReader::new(rest);
        let key = reader.bits(64)?;
        // Both have 32 bits.
        let (drawn, tick) = (reader.bits(32)? as u32, reader.bits(32)? as u32);
        let all = classes.iter().map(|class| SavedClass::read(&mut reader, class));
        let all: Vec<_> = all.collect::<Result<_, _>>()?;
        let mut clients = VecDeque::new();
        for _ in 0..reader.bits(32)? {
            clients.push_back(SavedClient::read(&mut reader, classes, &all)?);
            if clients.len() > slots {
                clients.pop_front();
            }
        }
        reader.align()?;
        if reader.remaining_bits() > 0 {
            return Err(BadWorld::Trailing);
        }
        Ok(SavedWorld { identity: SavedIdentity { key, drawn }, tick, classes: all, clients })
    }
}

impl SavedClass {
    fn read(reader: &mut BitReader<'_>, class: &GhostClass) -> Result<Self, BadWorld> {
        // At most 17 bits.
        let count = reader.bits(COUNT_BITS)? as u32;
        if count > class.capacity {
            return Err(BadWorld::Row { class: class.name.clone() });
        }
        let mut saved = SavedClass::default();
        for row in 0..count {
            if reader.bool()? {
                saved.rows.push(row);
            }
        }
        if saved.rows.last().map_or(0, |last| last + 1) != count {
            return Err(BadWorld::Row { class: class.name.clone() });
        }
        for _ in &saved.rows {
            let owner = if reader.bool()? { Some(reader.bits(64)?) } else { None };
            saved.owners.push(owner);
        }
        let properties = &class.properties;
        for (place, property) in properties.each().iter().enumerate() {
            let (mut cells, mut bodies) = (Vec::new(), Vec::new());
            if property.has_words() {
                let size = property.field().node().size();
                cells = reader.bytes(saved.rows.len() * size)?.to_vec();
                let mut words = vec![0; saved.rows.len() * property.words().len()];
                let wrong = property.quantize_column(&cells, size, &mut words).err();
                if let Some(row) = wrong.and_then(|(at, _)| saved.rows.get(at)) {
                    return Err(value_of(class, place, *row));
                }
            } else {
                for row in &saved.rows {
                    let body = read_body(reader, class, place)?;
                    bodies.push(body.ok_or_else(|| value_of(class, place, *row))?);
                }
            }
            saved.cells.push(cells);
            saved.bodies.push(bodies);
        }
        Ok(saved)
    }
}

/// Reads a value without words; None unless its bits are those that it is written in.
fn read_body(
    reader: &mut BitReader<'_>,
    class: &GhostClass,
    property: usize,
) -> Result<Option<Box<[u8]>>, ReadError> {
    let bits = reader.bits(LENGTH_BITS)? as usize;
    // Values have aligns of their own, counted from their first bit.
    let bytes = reader.bytes(bits.div_ceil(8))?;
    let (mut value, mut body) = (BitReader::with_range(bytes, 0, bits), Vec::new());
    class.properties.read_fields(&mut value, 1 << property, &mut body)?;
    let mut written = BitWriter::new();
    let same = class.properties.write_fields(&body, 1 << property, &mut written).is_ok()
        && written.bit_len() == bits
        && written.as_bytes() == bytes;
    Ok(same.then(|| body.into()))
}

impl SavedClient {
    fn read(reader: &mut BitReader<'_>, classes: &Classes, saved: &[SavedClass]) -> Result<Self, BadWorld> {
        let client = reader.bits(64)?;
        let last = EarlierVisit { number: reader.bits(64)?, until: reader.bits(32)? as u32 };
        let mut ids = Vec::new();
        for (class, saved) in classes.iter().zip(saved) {
            if reader.bool()? {
                ids.push(saved.rows.iter().map(|row| (*row, Some(*row))).collect());
                continue;
            }
            let (mut each, mut next, mut shown) = (Vec::new(), 0, vec![false; saved.rows.len()]);
            for _ in 0..reader.bits(COUNT_BITS)? {
                // Both have at most 16 bits.
                let id = reader.bits(ROW_BITS)? as u32;
                let row = if reader.bool()? { Some(reader.bits(ROW_BITS)? as u32) } else { None };
                if id < next || id >= class.capacity {
                    return Err(ids_of(class));
                }
                if let Some(row) = row {
                    let place = saved.rows.binary_search(&row).map_err(|_| ids_of(class))?;
                    if core::mem::replace(&mut shown[place], true) {
                        return Err(ids_of(class));
                    }
                }
                next = id + 1;
                each.push((id, row));
            }
            if is_all(&each, &saved.rows) {
                return Err(ids_of(class));
            }
            ids.push(each);
        }
        Ok(SavedClient { client, last, ids })
    }
}

fn value_of(class: &GhostClass, property: usize, row: u32) -> BadWorld {
    let property = class.properties.each()[property].field().name().to_owned();
    BadWorld::Value { class: class.name.clone(), property, row }
}

fn ids_of(class: &GhostClass) -> BadWorld {
    BadWorld::Ids { class: class.name.clone() }
}

/// Whether ids are those of all ghosts, each its row.
pub(super) fn is_all(ids: &[(u32, Option<u32>)], rows: &[u32]) -> bool {
    ids.len() == rows.len() && ids.iter().zip(rows).all(|(id, row)| *id == (*row, Some(*row)))
}

pub(super) fn write_ids(bits: &mut BitWriter, ids: &[(u32, Option<u32>)], rows: &[u32]) {
    bits.bool(is_all(ids, rows));
    if is_all(ids, rows) {
        return;
    }
    bits.bits(ids.len() as u64, COUNT_BITS);
    for (id, row) in ids {
        bits.bits((*id).into(), ROW_BITS);
        bits.bool(row.is_some());
        if let Some(row) = row {
            bits.bits((*row).into(), ROW_BITS);
        }
    }
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let digest = Sha256::digest(body);
    core::array::from_fn(|i| digest[i])
}
