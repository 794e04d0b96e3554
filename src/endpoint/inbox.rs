//! What a tick hands up: one arena of message bodies and a record for each, the same for one client or a thousand.
//!
//! Knows no bytes from outside but bodies that were checked; memory is what the connections' queues held, kept for the
//! next tick.

use core::ops::Range;

use crate::netcode::ClientHandle;
use crate::time::Instant;
use crate::transport::{Connection, Received};

/// One message received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// From whom. On a client: the default handle.
    pub client: ClientHandle,
    /// The channel's index.
    pub channel: u8,
    /// Index into the protocol's message types.
    pub message_type: u16,
    /// The packet that brought it.
    pub packet_sequence: u16,
    /// When that packet was handled.
    pub received_at: Instant,
    /// Latest channels: what this is the value of. 0 on others.
    pub key: u32,
    /// Redundant channels: how many messages before this one never came. 0 on others.
    pub missed: u16,
    body: Range<usize>,
}

/// Messages received and taken from the connections, in order within each channel of each client.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    arena: Vec<u8>,
    records: Vec<Record>,
}

impl Inbox {
    /// An empty inbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// The messages.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The body of a message: the row of its schema, or an opaque body.
    pub fn body(&self, record: &Record) -> &[u8] {
        &self.arena[record.body.clone()]
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Forgets all messages and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.records.clear();
    }

    /// Moves the messages of `other` behind these.
    pub(super) fn append(&mut self, other: &mut Inbox) {
        let base = self.arena.len();
        self.arena.append(&mut other.arena);
        self.records.extend(other.records.drain(..).map(|mut record| {
            record.body = base + record.body.start..base + record.body.end;
            record
        }));
    }

    /// Takes all that a connection has for its application.
    pub(super) fn take_from(&mut self, client: ClientHandle, connection: &mut Connection, channels: usize) {
        for channel in 0..channels {
            while let Some(received) = connection.poll_received(channel) {
                self.push(client, channel as u8, &received);
            }
        }
    }

    fn push(&mut self, client: ClientHandle, channel: u8, received: &Received) {
        let start = self.arena.len();
        self.arena.extend_from_slice(&received.body);
        self.records.push(Record {
            client,
            channel,
            message_type: received.message_type,
            packet_sequence: received.packet_sequence,
            received_at: received.received_at,
            key: received.key,
            missed: received.missed,
            body: start..self.arena.len(),
        });
    }
}
