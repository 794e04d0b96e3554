//! Our own framing without netcode: a peer that writes what it likes, and datagrams with the numbers that netcode would give
//! them.

use tickwire::time::Instant;
use tickwire::transport::acks::FullHeader;
use tickwire::transport::fragment::Fragment;
use tickwire::transport::{Connection, End, numbered};

/// Bytes of a fragment.
const FRAGMENT: usize = 1024;

/// The largest packet in one datagram.
const LARGEST: usize = 1200 - numbered::MAX_SIZE;

/// A peer that numbers its packets, and acks the packets that it accepts.
#[derive(Debug, Default)]
pub struct Peer {
    /// The number of its next datagram.
    pub next: u64,
    newest: Option<u64>,
    bits: u32,
}

impl Peer {
    /// The header of its next packet.
    pub fn header(&self) -> FullHeader {
        FullHeader {
            sequence: self.next,
            ack: self.newest.unwrap_or(u64::MAX),
            ack_bits: self.bits,
            skipped: 0,
        }
    }

    /// The datagrams of a packet, with their numbers.
    pub fn send(&mut self, payload: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let sent = datagrams(self.header(), payload);
        self.next += sent.len() as u64;
        sent
    }

    /// Acks a packet from now on.
    pub fn accept(&mut self, packet: u64) {
        let newest = self.newest.unwrap_or(packet);
        self.bits = self.bits.unbounded_shl(packet.saturating_sub(newest).min(32) as u32);
        self.newest = Some(newest.max(packet));
        self.bits |= 1u32.unbounded_shl(newest.saturating_sub(packet).min(32) as u32);
    }
}

/// A header, and no acks: nothing has arrived.
pub fn ackless(number: u64) -> FullHeader {
    FullHeader { sequence: number, ack: u64::MAX, ack_bits: 0, skipped: 0 }
}

/// A packet in one datagram.
pub fn datagram(header: &FullHeader, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    numbered::write(header, None, &mut datagram);
    datagram.extend_from_slice(payload);
    datagram
}

/// One fragment of a packet.
pub fn fragment(header: &FullHeader, id: u8, last_id: u8, data: &[u8]) -> Vec<u8> {
    let (packet, header) = (header.sequence, (id == 0).then_some(*header));
    let mut datagram = Vec::new();
    numbered::write_fragment(&Fragment { packet, id, last_id, header, data }, &mut datagram);
    datagram
}

/// The datagrams of a packet, with their numbers.
pub fn datagrams(header: FullHeader, payload: &[u8]) -> Vec<(u64, Vec<u8>)> {
    if payload.len() <= LARGEST {
        return vec![(header.sequence, datagram(&header, payload))];
    }
    let parts = payload.chunks(FRAGMENT);
    let last_id = (parts.len() - 1) as u8;
    let parts = parts.enumerate();
    parts
        .map(|(id, data)| (header.sequence + id as u64, fragment(&header, id as u8, last_id, data)))
        .collect()
}

/// Hands a packet to a connection.
///
/// # Errors
/// The conversation is over, and why.
pub fn deliver(peer: &mut Peer, ours: &mut Connection, now: Instant, payload: &[u8]) -> Result<(), End> {
    let mut datagrams = peer.send(payload).into_iter();
    datagrams.try_for_each(|(number, datagram)| ours.handle_datagram(now, number, &datagram))
}

/// A datagram with its number in front, for wires that carry bytes.
pub fn labelled((number, datagram): (u64, &[u8])) -> Vec<u8> {
    [&number.to_le_bytes()[..], datagram].concat()
}

/// Hands over a datagram that was [`labelled`].
///
/// # Errors
/// The conversation is over, and why.
pub fn handle(ours: &mut Connection, now: Instant, labelled: &[u8]) -> Result<(), End> {
    let (number, datagram) = labelled.split_first_chunk().expect("a number");
    ours.handle_datagram(now, u64::from_le_bytes(*number), datagram)
}
