//! The messages of a tick: one arena of bodies and a record for each, the same for one client or a thousand. Types
//! that the application takes as arrays are in a [`Table`] each instead, and share another arena.
//!
//! Bodies were checked before; memory is bounded by the connections' queues, and kept for the next tick.

use core::ops::Range;
use std::collections::HashSet;
use std::sync::Arc;

use super::PeerHandle;
use super::table::{Head, Table};
use crate::time::Instant;
use crate::transport::{Block, Body, Connection, End, Protocol, ReadPackets, Received};

/// Bytes of texts and lists in tables above which no more messages are taken until the next tick: a cell has 32 bits
/// for an offset, and leftovers need room too.
const MAX_ARENA_BYTES: usize = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    // The sender.
    pub peer: PeerHandle,
    pub channel: u8,
    /// Index into the protocol's message types.
    pub message_type: u16,
    /// The packet that brought it.
    pub packet_sequence: u16,
    /// When that packet was handled.
    pub received_at: Instant,
    /// Latest channels: the key of the value. 0 on others.
    pub key: u32,
    /// Redundant channels: how many messages before this one were lost. 0 on others.
    pub missed: u16,
    /// The block of a block message.
    pub block: Option<Block>,
    body: Range<usize>,
}

impl Record {
    fn head(&self) -> Head {
        let Record { peer, received_at, key, packet_sequence, missed, channel, .. } = *self;
        Head { peer, received_at, key, packet_sequence, missed, channel }
    }
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
    records: Vec<Record>,
}

impl Messages {
    pub fn records(&self) -> &[Record] {
        &self.records
    }

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
        self.records.get(index).map(|record| (record.peer, record.channel))
    }

    /// A message without a block.
    pub(super) fn get(&self, index: usize) -> Option<(Head, u16, &[u8])> {
        let record = self.records.get(index)?;
        Some((record.head(), record.message_type, self.body(record)))
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
        self.records.push(Record {
            peer: head.peer,
            channel: head.channel,
            message_type,
            packet_sequence: head.packet_sequence,
            received_at: head.received_at,
            key: head.key,
            missed: head.missed,
            block,
            body: start..self.arena.len(),
        });
    }
}

/// Messages received and taken from the connections.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    game: Messages,
    tables: Option<Box<Tables>>,
    /// Lent memory for sorting.
    order: Vec<(PeerHandle, u8, u32)>,
}

/// The tables of an inbox.
#[derive(Clone, Debug)]
struct Tables {
    protocol: Arc<Protocol>,
    /// By message type: its table, if any.
    places: Vec<Option<usize>>,
    tables: Vec<Table>,
    arena: Vec<u8>,
    gaps: Vec<Gap>,
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
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// By message type: its table, if any.
    places: Option<Vec<Option<usize>>>,
    /// By message type: its destination.
    seats: Vec<Seat>,
    /// The row sizes of the tables, and their types.
    row_sizes: Vec<(usize, u16)>,
    /// Some records have a table, and their rows reference the tail.
    splits_records: bool,
}

impl Layout {
    pub(super) fn tables(&self) -> Vec<Table> {
        self.row_sizes.iter().map(|(row_size, _)| Table::new(*row_size)).collect()
    }

    /// The row size and message type of a table.
    pub(super) fn rows_of(&self, table: u16) -> Option<(usize, u16)> {
        self.row_sizes.get(usize::from(table)).copied()
    }

    pub(super) fn splits_records(&self) -> bool {
        self.splits_records
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
        let mut places = vec![None; protocol.messages().len()];
        let mut tables = Vec::new();
        for message_type in types {
            let number = usize::from(*message_type);
            if let Some(Body::Declared(schema)) = protocol.messages().get(number).map(|kind| &kind.body) {
                places[number] = Some(tables.len());
                tables.push(Table::new(schema.row_size()));
            }
        }
        let tables = Tables { protocol, places, tables, arena: Vec::new(), gaps: Vec::new() };
        Inbox { tables: Some(Box::new(tables)), ..Inbox::default() }
    }

    /// The game's messages that are in no table.
    pub fn records(&self) -> &[Record] {
        self.game.records()
    }

    /// The body of a message of the game: the row of its schema, or an opaque body.
    pub fn body(&self, record: &Record) -> &[u8] {
        self.game.body(record)
    }

    /// Whether there are no messages outside of tables.
    pub(super) fn is_empty(&self) -> bool {
        self.game.records.is_empty()
    }

    /// Clears the messages outside of tables, and keeps the memory.
    pub fn clear(&mut self) {
        self.game.clear();
    }

    /// Drops a peer's messages outside of tables.
    pub(super) fn drop_peer(&mut self, peer: PeerHandle) {
        self.game.records.retain(|record| record.peer != peer);
    }

    /// Takes the tables, in the order in which the types were given, and the arena that their cells reference.
    pub fn take_tables(&mut self) -> (Vec<Table>, Vec<u8>) {
        let Some(tables) = &mut self.tables else { return (Vec::new(), Vec::new()) };
        (tables.tables.iter_mut().map(Table::take).collect(), core::mem::take(&mut tables.arena))
    }

    /// Takes the losses in front of messages in tables.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        self.tables.as_mut().map(|tables| core::mem::take(&mut tables.gaps)).unwrap_or_default()
    }

    /// Drops table rows of peers for which `keep` returns false.
    pub fn keep_rows(&mut self, keep: impl Fn(PeerHandle) -> bool) {
        if let Some(tables) = &mut self.tables {
            tables.tables.iter_mut().for_each(|table| table.retain(&keep));
            tables.gaps.retain(|gap| keep(gap.peer));
        }
    }

    /// Whether a peer has a message outside of tables.
    pub(super) fn has_any_of(&self, peer: PeerHandle) -> bool {
        self.game.records.iter().any(|record| record.peer == peer)
    }

    /// Whether there is any message, in a table or not.
    pub fn has_any(&self) -> bool {
        let in_tables = |tables: &Tables| tables.tables.iter().any(|table| table.count() > 0);
        !self.is_empty() || self.tables.as_deref().is_some_and(in_tables)
    }

    /// Collects the peers that have messages.
    pub fn note_peers(&self, into: &mut HashSet<PeerHandle>) {
        into.extend(self.game.records.iter().map(|record| record.peer));
        if let Some(tables) = &self.tables {
            into.extend(tables.tables.iter().flat_map(Table::peers));
            into.extend(tables.gaps.iter().map(|gap| gap.peer));
        }
    }

    /// Moves the messages of `other`, which has no tables, to the end of these, for peers that the application knows.
    pub(super) fn append(&mut self, other: &mut Inbox, is_announced: impl Fn(PeerHandle) -> bool) {
        let messages = &mut other.game;
        let mut waiting = Messages::default();
        for mut record in messages.records.drain(..) {
            let block = record.block.take();
            let body = &messages.arena[record.body.clone()];
            let head = record.head();
            if is_announced(record.peer) {
                self.push(&head, record.message_type, body, block);
            } else {
                waiting.push(&head, record.message_type, body, block);
            }
        }
        messages.arena.clear();
        if !waiting.records.is_empty() {
            *messages = waiting;
        }
    }

    /// The tables of this inbox.
    pub(super) fn layout(&self, protocol: &Protocol) -> Layout {
        let places = self.tables.as_ref().map(|tables| tables.places.clone());
        let place_of =
            |number: usize| places.as_ref().and_then(|places| places.get(number).copied().flatten());
        let mut splits_records = false;
        let mut row_sizes = vec![(0, 0); self.tables.as_ref().map_or(0, |tables| tables.tables.len())];
        let seats = (0u16..).zip(protocol.messages()).map(|(number, kind)| {
            let place = place_of(number.into());
            match (&kind.body, place) {
                _ if protocol.is_of_feature(number) => Seat::Waits,
                (Body::Declared(schema), Some(place)) => {
                    row_sizes[place] = (schema.row_size(), number);
                    // At most as many as types.
                    splits_records |= schema.has_tail();
                    if schema.has_tail() { Seat::Record } else { Seat::Table(place as u16) }
                }
                _ => Seat::Record,
            }
        });
        let seats = seats.collect();
        Layout { seats, places, row_sizes, splits_records }
    }

    /// Whether it has these tables.
    pub(super) fn has_layout(&self, layout: &Layout) -> bool {
        self.tables.as_ref().map(|tables| &tables.places) == layout.places.as_ref()
    }

    /// Moves arrived messages to the end, from an inbox with the same tables; with `split`, some of the records go into
    /// tables.
    pub(super) fn absorb(&mut self, records: &mut Messages, tables: &mut [Table], split: bool) {
        if split {
            self.route(records);
        } else {
            self.game.absorb(records);
        }
        let own = self.tables.iter_mut().flat_map(|tables| &mut tables.tables);
        own.zip(tables).for_each(|(table, arrived)| table.absorb(arrived));
    }

    /// Sorts the game's messages outside of tables, except for the first this many, by slot and channel; messages of
    /// one channel keep their order. So a game that iterates over them behaves the same however packets overtook each
    /// other.
    pub(super) fn sort(&mut self, first: usize) {
        let Some(records) = self.game.records.get_mut(first..) else { return };
        if records.is_sorted_by_key(|record| (record.peer, record.channel)) {
            return;
        }
        let order = &mut self.order;
        order.clear();
        // An inbox has fewer than 2^32 messages: each takes more than a byte.
        order.extend(records.iter().zip(0..).map(|(record, index)| (record.peer, record.channel, index)));
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

    /// Moves a message of the game to its destination.
    pub(super) fn route_one(&mut self, (head, message_type, body): (Head, u16, &[u8])) {
        self.push(&head, message_type, body, None);
    }

    /// Moves messages of the game to their destinations.
    fn route(&mut self, messages: &mut Messages) {
        for record in messages.records.drain(..) {
            let body = &messages.arena[record.body.clone()];
            self.push(&record.head(), record.message_type, body, record.block);
        }
        messages.arena.clear();
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

    /// Takes the contents of a connection's packets one by one, so that their messages never wait in its window.
    ///
    /// # Errors
    ///
    /// What is wrong with the first packet that is refused.
    pub(super) fn take_read(
        &mut self,
        peer: PeerHandle,
        connection: &mut Connection,
        channels: usize,
        read: ReadPackets,
    ) -> Result<(), End> {
        connection.handle_read(read, |connection| {
            self.take_from(peer, connection, channels);
        })
    }

    fn is_full(&self) -> bool {
        self.tables.as_ref().is_some_and(|tables| tables.arena.len() > MAX_ARENA_BYTES)
    }

    fn push(&mut self, head: &Head, message_type: u16, body: &[u8], block: Option<Block>) {
        let in_table = self.tables.as_mut().is_some_and(|tables| tables.push(head, message_type, body));
        if !in_table {
            self.game.push(head, message_type, body, block);
        }
    }
}

impl Tables {
    /// Adds a message to the table of its type; false when there is none.
    fn push(&mut self, head: &Head, message_type: u16, body: &[u8]) -> bool {
        let Tables { protocol, places, tables, arena, gaps } = self;
        // Payloads have no type.
        let channel = protocol.channels().get(usize::from(head.channel));
        if channel.is_none_or(|channel| channel.kind.is_payload()) {
            return false;
        }
        let number = usize::from(message_type);
        let table = places.get(number).copied().flatten().and_then(|place| tables.get_mut(place));
        let (Some(table), Some(kind)) = (table, protocol.messages().get(number)) else { return false };
        let Body::Declared(schema) = &kind.body else { return false };
        table.push(head, |rows| schema.split_body(body, rows, arena));
        if head.missed > 0 {
            gaps.push(Gap { peer: head.peer, channel: head.channel, missed: head.missed });
        }
        true
    }
}
