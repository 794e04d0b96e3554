//! The messages of a tick: one arena of bodies and a record for each, the same for one client or a thousand. Types
//! that the application takes as arrays are in a [`Table`] each instead, and share another arena.
//!
//! Bodies were checked before; memory is bounded by the connections' queues, and kept for the next tick.

use core::ops::Range;
use std::collections::HashSet;
use std::sync::Arc;

use super::PeerHandle;
pub use super::table::Head;
use super::table::Table;
use crate::transport::{Block, Body, Connection, Protocol, Received};

/// Bytes of texts and lists in tables above which no more messages are taken until the next tick: a cell has 32 bits
/// for an offset, and leftovers need room too.
const MAX_ARENA_BYTES: usize = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub head: Head,
    /// Index into the protocol's message types.
    pub message_type: u16,
    /// The block of a block message.
    pub block: Option<Block>,
    body: Range<usize>,
}

/// A loss in front of a message in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    // The sender.
    pub peer: PeerHandle,
    pub channel: u8,
    /// How many messages are missing.
    pub missed: u16,
}

/// Messages that are in no table, in order within each channel of each peer.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    arena: Vec<u8>,
    pub records: Vec<Record>,
}

impl Messages {
    /// The body of a message: the row of its schema, or an opaque body.
    pub fn body(&self, record: &Record) -> &[u8] {
        &self.arena[record.body.clone()]
    }

    /// Clears them and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.records.clear();
    }

    fn push(&mut self, head: &Head, message_type: u16, body: &[u8], block: Option<Block>) {
        let start = self.arena.len();
        self.arena.extend_from_slice(body);
        self.record(head, message_type, start, block);
    }

    /// Where to append a message's body; call [`Messages::settle`] or [`Messages::cut`] afterwards.
    pub(super) fn begin(&mut self) -> &mut Vec<u8> {
        &mut self.arena
    }

    /// The body that begins at `start` is complete; returns the bytes of the message.
    pub(super) fn settle(&mut self, head: &Head, message_type: u16, start: usize) -> usize {
        self.record(head, message_type, start, None);
        size_of::<Record>() + self.arena.len() - start
    }

    /// The number of messages, and the bytes of their bodies.
    pub(super) fn lengths(&self) -> (usize, usize) {
        (self.records.len(), self.arena.len())
    }

    /// Truncates to these lengths.
    pub(super) fn cut(&mut self, (records, bytes): (usize, usize)) {
        self.records.truncate(records);
        self.arena.truncate(bytes);
    }

    /// The sender and channel of a message.
    pub(super) fn sender(&self, index: usize) -> Option<(PeerHandle, u8)> {
        self.records.get(index).map(|record| (record.head.peer, record.head.channel))
    }

    /// A message without a block.
    pub(super) fn get(&self, index: usize) -> Option<(Head, u16, &[u8])> {
        let record = self.records.get(index)?;
        Some((record.head, record.message_type, self.body(record)))
    }

    /// Drops the messages whose mark is false.
    pub(super) fn keep(&mut self, marks: &[bool]) {
        let mut marks = marks.iter();
        self.records.retain(|_| marks.next().copied().unwrap_or(true));
    }

    /// Moves the messages of `other` to the end.
    fn absorb(&mut self, other: &mut Messages) {
        if self.records.is_empty() {
            self.arena.clear();
            core::mem::swap(self, other);
            return;
        }
        let by = self.arena.len();
        self.arena.append(&mut other.arena);
        self.records.extend(other.records.drain(..).map(|mut record| {
            record.body = record.body.start + by..record.body.end + by;
            record
        }));
    }

    fn record(&mut self, head: &Head, message_type: u16, start: usize, block: Option<Block>) {
        self.records.push(Record { head: *head, message_type, block, body: start..self.arena.len() });
    }
}

/// Messages received and taken from the connections.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// The messages that are in no table.
    pub game: Messages,
    /// The places of the tables; None if there are no tables.
    layout: Option<Arc<Layout>>,
    tables: Vec<Table>,
    /// Memory that the tables' cells reference.
    arena: Vec<u8>,
    gaps: Vec<Gap>,
    /// Lent memory for sorting.
    order: Vec<(PeerHandle, u8, u32)>,
}

/// The destination of an arriving message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// The table with this number.
    Table(u16),
    /// The records: it has no table, or its row references the tail.
    Record,
    /// It is no message of the game.
    Waits,
}

/// The tables of an inbox.
#[derive(Debug)]
pub(super) struct Layout {
    protocol: Arc<Protocol>,
    /// By message type: its table, if any.
    places: Vec<Option<usize>>,
    /// By message type: its destination.
    seats: Vec<Seat>,
    /// The row sizes of the tables, and their types.
    row_sizes: Vec<(usize, u16)>,
    /// Some records have a table, and their rows reference the tail.
    splits_records: bool,
}

impl Layout {
    /// A table for each of these types. Opaque types get none.
    fn new(protocol: Arc<Protocol>, types: &[u16]) -> Self {
        let mut seats: Vec<Seat> = (0..protocol.messages().len())
            .map(|number| if protocol.is_of_feature(number as u16) { Seat::Waits } else { Seat::Record })
            .collect();
        let (mut places, mut row_sizes, mut splits_records) = (vec![None; seats.len()], Vec::new(), false);
        for message_type in types {
            let number = usize::from(*message_type);
            let Some(Body::Declared(schema)) = protocol.messages().get(number).map(|kind| &kind.body) else {
                continue;
            };
            places[number] = Some(row_sizes.len());
            splits_records |= schema.has_tail();
            if !schema.has_tail() && seats[number] == Seat::Record {
                // At most as many as types.
                seats[number] = Seat::Table(row_sizes.len() as u16);
            }
            row_sizes.push((schema.row_size(), *message_type));
        }
        Layout { protocol, places, seats, row_sizes, splits_records }
    }

    pub(super) fn tables(&self) -> Vec<Table> {
        self.row_sizes.iter().map(|(row_size, _)| Table::new(*row_size)).collect()
    }

    /// The row size and message type of a table.
    pub(super) fn rows_of(&self, table: u16) -> Option<(usize, u16)> {
        self.row_sizes.get(usize::from(table)).copied()
    }

    pub(super) fn seat(&self, message_type: u16) -> Seat {
        self.seats.get(usize::from(message_type)).copied().unwrap_or(Seat::Waits)
    }
}

impl Inbox {
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty inbox with tables for messages of these types. Opaque types get none.
    pub fn with_tables(protocol: Arc<Protocol>, types: &[u16]) -> Self {
        let layout = Layout::new(protocol, types);
        Inbox { tables: layout.tables(), layout: Some(Arc::new(layout)), ..Inbox::default() }
    }

    /// Takes the tables, in the order in which the types were given, and the arena that their cells reference.
    pub fn take_tables(&mut self) -> (Vec<Table>, Vec<u8>) {
        (self.tables.iter_mut().map(Table::take).collect(), core::mem::take(&mut self.arena))
    }

    /// Takes the losses in front of messages in tables.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        core::mem::take(&mut self.gaps)
    }

    /// Drops table rows of peers for which `keep` returns false.
    pub fn keep_rows(&mut self, keep: impl Fn(PeerHandle) -> bool) {
        self.tables.iter_mut().for_each(|table| table.retain(&keep));
        self.gaps.retain(|gap| keep(gap.peer));
    }

    /// Whether there is any message, in a table or not.
    pub fn has_any(&self) -> bool {
        !self.game.records.is_empty() || self.tables.iter().any(|table| table.count() > 0)
    }

    /// Collects the peers that have messages.
    pub fn note_peers(&self, into: &mut HashSet<PeerHandle>) {
        into.extend(self.game.records.iter().map(|record| record.head.peer));
        into.extend(self.tables.iter().flat_map(Table::peers));
        into.extend(self.gaps.iter().map(|gap| gap.peer));
    }

    /// Moves these messages to their destinations, for peers that the application knows; others stay.
    pub(super) fn append(&mut self, messages: &mut Messages, is_announced: impl Fn(PeerHandle) -> bool) {
        let mut waiting = Messages::default();
        for Record { head, message_type, block, body } in messages.records.drain(..) {
            let body = &messages.arena[body];
            if is_announced(head.peer) {
                self.push(&head, message_type, body, block);
            } else {
                waiting.push(&head, message_type, body, block);
            }
        }
        messages.arena.clear();
        if !waiting.records.is_empty() {
            *messages = waiting;
        }
    }

    /// The tables of this inbox.
    pub(super) fn layout(&self, protocol: &Arc<Protocol>) -> Arc<Layout> {
        self.layout.clone().unwrap_or_else(|| Arc::new(Layout::new(protocol.clone(), &[])))
    }

    /// Whether it has these tables.
    pub(super) fn has_layout(&self, layout: &Layout) -> bool {
        self.layout.as_ref().map_or(layout.row_sizes.is_empty(), |own| own.places == layout.places)
    }

    /// Moves arrived messages to the end, from these tables, which have the same layout: some of the records may go
    /// into tables.
    pub(super) fn absorb(&mut self, records: &mut Messages, tables: &mut [Table]) {
        if self.layout.as_ref().is_some_and(|layout| layout.splits_records) {
            self.append(records, |_| true);
        } else {
            self.game.absorb(records);
        }
        self.tables.iter_mut().zip(tables).for_each(|(table, arrived)| table.absorb(arrived));
    }

    /// Sorts the game's messages outside of tables, except for the first this many, by slot and channel; messages of
    /// one channel keep their order. So a game that iterates over them behaves the same however packets overtook each
    /// other.
    pub(super) fn sort(&mut self, first: usize) {
        let Some(records) = self.game.records.get_mut(first..) else { return };
        let place = |record: &Record| (record.head.peer, record.head.channel);
        if records.is_sorted_by_key(place) {
            return;
        }
        let order = &mut self.order;
        order.clear();
        // An inbox has fewer than 2^32 messages: each takes more than a byte.
        let places = records.iter().map(place).zip(0..);
        order.extend(places.map(|((peer, channel), index)| (peer, channel, index)));
        order.sort_unstable();
        for place in 0..records.len() {
            // A swap may have moved it.
            let mut from = order[place].2 as usize;
            while from < place {
                from = order[from].2 as usize;
            }
            order[place].2 = from as u32;
            records.swap(place, from);
        }
    }

    /// Takes everything that a connection has for its application. True if there is no room for more and some may be
    /// left.
    pub(super) fn take_from(
        &mut self,
        peer: PeerHandle,
        connection: &mut Connection,
        channels: usize,
    ) -> bool {
        for channel in 0..channels {
            while !self.is_full()
                && let Some(received) = connection.poll_received(channel)
            {
                let Received { received_at, key, packet_sequence, missed, block, .. } = received;
                // A protocol has at most 64 channels.
                let channel = channel as u8;
                // The game sees the low bits.
                let packet_sequence = packet_sequence as u16;
                let head = Head { peer, received_at, key, packet_sequence, missed, channel };
                self.push(&head, received.message_type, &received.body, block);
                connection.reclaim(received.body);
            }
        }
        self.is_full()
    }

    fn is_full(&self) -> bool {
        self.arena.len() > MAX_ARENA_BYTES
    }

    /// Moves a message of the game to its destination.
    pub(super) fn push(&mut self, head: &Head, message_type: u16, body: &[u8], block: Option<Block>) {
        if !self.push_row(head, message_type, body) {
            self.game.push(head, message_type, body, block);
        }
    }

    /// Adds a message to the table of its type; false when there is none.
    fn push_row(&mut self, head: &Head, message_type: u16, body: &[u8]) -> bool {
        let Some(Layout { protocol, places, .. }) = self.layout.as_deref() else { return false };
        // Payloads have no type.
        let channel = protocol.channels().get(usize::from(head.channel));
        if channel.is_none_or(|channel| channel.kind.is_payload()) {
            return false;
        }
        let number = usize::from(message_type);
        let table = places.get(number).copied().flatten().and_then(|place| self.tables.get_mut(place));
        let (Some(table), Some(kind)) = (table, protocol.messages().get(number)) else { return false };
        let Body::Declared(schema) = &kind.body else { return false };
        table.push(head, |rows| schema.split_body(body, rows, &mut self.arena));
        if head.missed > 0 {
            self.gaps.push(Gap { peer: head.peer, channel: head.channel, missed: head.missed });
        }
        true
    }
}
