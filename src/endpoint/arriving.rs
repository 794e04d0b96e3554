//! Messages placed on arrival where the application will find them: as rows in the tables of their types, with
//! records beside them. At the end of a tick they are handed over as a whole.
//!
//! Promises: a refused datagram leaves nothing; each channel's bound holds, wherever its messages wait. Refuses more
//! than [`MAX_BYTES`] in all, and everything that arrives before the application has said which tables it wants.
//! Those messages wait in their channels, within their bounds.

use std::collections::HashMap;
use std::sync::Arc;

use super::PeerHandle;
use super::inbox::{Inbox, Layout, Messages, Seat};
use super::table::{HEAD_BYTES, Head, Table};
use crate::time::Instant;
use crate::transport::{DirectTables, Protocol};

/// Above this many bytes, messages wait in their channels: what a server with a thousand players receives in half a
/// second.
const MAX_BYTES: usize = 32 << 20;

pub(super) struct Arriving {
    /// The application's tables, as of its last tick.
    layout: Option<Arc<Layout>>,
    tables: Vec<Table>,
    /// Messages of types without a table, and of types whose rows reference the tail: these are split when they are
    /// handed over.
    records: Messages,
    /// The destination of each message, in order of arrival.
    log: Vec<Seat>,
    bytes: usize,
    tick: u64,
    /// How many messages of a channel must make room for newer ones.
    pushed_out: HashMap<(PeerHandle, u8), usize>,
    current: Current,
}

/// The datagram being read.
#[derive(Default)]
struct Current {
    peer: Option<PeerHandle>,
    now: Instant,
    /// The head of its rows, except for the channel.
    head: Option<[u8; HEAD_BYTES]>,
    /// The lengths of the log and the records before it, and the bytes of the records.
    log: usize,
    records: (usize, usize),
    bytes: usize,
    /// The message being read: its record, if it has one, and the start of its body.
    record: Option<(Head, u16)>,
    body: usize,
}

impl Arriving {
    pub(super) fn new() -> Self {
        Arriving {
            layout: None,
            tables: Vec::new(),
            records: Messages::default(),
            log: Vec::new(),
            bytes: 0,
            tick: 0,
            pushed_out: HashMap::new(),
            current: Current::default(),
        }
    }

    /// Sets the sender of the next datagram.
    pub(super) fn of(&mut self, peer: PeerHandle) -> &mut Self {
        self.current.peer = Some(peer);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Moves everything into the application's inbox, after its contents.
    pub(super) fn take_into(&mut self, inbox: &mut Inbox, protocol: &Arc<Protocol>) {
        if !self.pushed_out.is_empty() {
            let mut pushed_out = core::mem::take(&mut self.pushed_out);
            self.retain(|peer, channel| match pushed_out.get_mut(&(peer, channel)) {
                Some(left @ 1..) => {
                    *left -= 1;
                    false
                }
                _ => true,
            });
        }
        if !self.log.is_empty() {
            self.hand_over(inbox);
        }
        self.reset();
        self.tick += 1;
        if self.layout.as_ref().is_none_or(|layout| !inbox.has_layout(layout)) {
            let layout = inbox.layout(protocol);
            self.tables = layout.tables();
            self.layout = Some(layout);
        }
    }

    fn hand_over(&mut self, inbox: &mut Inbox) {
        let Some(layout) = &self.layout else { return };
        if inbox.has_layout(layout) {
            inbox.absorb(&mut self.records, &mut self.tables);
            return;
        }
        // The application's inbox has other tables now: route one by one, in order of arrival.
        let (mut rows, mut records) = (vec![0..; self.tables.len()], 0..);
        for seat in &self.log {
            let message = match *seat {
                Seat::Table(table) => layout.rows_of(table).and_then(|(size, message_type)| {
                    let place = usize::from(table);
                    let (head, body) = self.tables[place].get(rows[place].next()?, size)?;
                    Some((head, message_type, body))
                }),
                Seat::Record => records.next().and_then(|index| self.records.get(index)),
                Seat::Waits => None,
            };
            message.into_iter().for_each(|(head, kind, body)| inbox.push(&head, kind, body, None));
        }
        self.records.clear();
        self.tables.clear();
    }

    /// Drops a peer's messages.
    pub(super) fn drop_peer(&mut self, gone: PeerHandle) {
        self.retain(|peer, _| peer != gone);
        self.pushed_out.retain(|(peer, _), _| *peer != gone);
        if self.log.is_empty() {
            self.reset();
        }
    }

    /// Empties everything, including the bytes of dropped messages.
    fn reset(&mut self) {
        self.log.clear();
        self.records.clear();
        self.bytes = 0;
    }

    /// Keeps the messages for which `keep` returns true; it is called in order of arrival.
    fn retain(&mut self, mut keep: impl FnMut(PeerHandle, u8) -> bool) {
        // For each table, and for the records.
        let mut kept: Vec<Vec<bool>> = vec![Vec::new(); self.tables.len()];
        let mut records = Vec::new();
        self.log.retain(|seat| {
            let (whose, marks) = match *seat {
                Seat::Table(table) => {
                    let marks = &mut kept[usize::from(table)];
                    (self.tables[usize::from(table)].sender(marks.len()), marks)
                }
                Seat::Record => (self.records.sender(records.len()), &mut records),
                Seat::Waits => return false,
            };
            let keeps = whose.is_none_or(|(peer, channel)| keep(peer, channel));
            marks.push(keeps);
            keeps
        });
        self.tables.iter_mut().zip(&kept).for_each(|(table, kept)| table.keep(kept));
        self.records.keep(&records);
    }
}

impl DirectTables for Arriving {
    fn begin(&mut self, now: Instant) -> u64 {
        self.current = Current {
            peer: self.current.peer,
            now,
            log: self.log.len(),
            records: self.records.lengths(),
            bytes: self.bytes,
            ..Current::default()
        };
        self.tick
    }

    fn place(&mut self, packet_sequence: u64, channel: u8, message_type: u16) -> Option<&mut Vec<u8>> {
        let seat = self.layout.as_ref()?.seat(message_type);
        let peer = self.current.peer?;
        if self.bytes > MAX_BYTES {
            return None;
        }
        let received_at = self.current.now;
        // The game sees the low bits.
        let packet_sequence = packet_sequence as u16;
        let head = || Head { peer, received_at, key: 0, packet_sequence, missed: 0, channel };
        let body = match seat {
            Seat::Table(table) => {
                let bytes = self.current.head.get_or_insert_with(|| head().bytes());
                Head::set_channel(bytes, channel);
                self.tables.get_mut(usize::from(table))?.begin(bytes)
            }
            Seat::Record => {
                self.current.record = Some((head(), message_type));
                self.current.body = self.records.lengths().1;
                self.records.begin()
            }
            Seat::Waits => return None,
        };
        self.log.push(seat);
        Some(body)
    }

    fn settle(&mut self) {
        let Current { record, body, .. } = &mut self.current;
        self.bytes += match self.log.last() {
            Some(Seat::Table(table)) => self.tables[usize::from(*table)].settle(),
            Some(Seat::Record) => {
                record.take().map_or(0, |(head, kind)| self.records.settle(&head, kind, *body))
            }
            _ => 0,
        };
    }

    fn cut(&mut self) {
        let Current { log, records, bytes, .. } = self.current;
        for seat in self.log.drain(log.min(self.log.len())..) {
            if let Seat::Table(table) = seat {
                self.tables[usize::from(table)].cut_last();
            }
        }
        self.records.cut(records);
        self.bytes = bytes;
    }

    fn push_out(&mut self, channel: u8) {
        if let Some(peer) = self.current.peer {
            *self.pushed_out.entry((peer, channel)).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests;
