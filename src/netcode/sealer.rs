//! Sending: a key with its next sequence, the payloads the layer above may send, and goodbyes.

use core::fmt;
use core::net::SocketAddr;

use super::crypto::Key;
use super::packet::{self, Kind};
use crate::limits::MAX_PAYLOAD;
use crate::store::Datagrams;
use crate::time::Duration;

/// Requests, responses and keep-alives go out this often while nothing else does.
pub const SEND_INTERVAL: Duration = Duration::from_millis(100);

/// How many packets announce the end of a connection: some of them will arrive.
pub const DISCONNECT_REPEATS: u32 = 10;

/// Challenge and denied packets have sequences from here on, so that they never meet a connection's, which start at 0
/// under the same key.
pub(super) const ADMISSION_SEQUENCES: u64 = 1 << 63;

/// Why a payload was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// There is no such connection: it has ended, or has not begun.
    NotConnected,
    /// Netcode has no empty payloads.
    Empty,
    // Longer than `MAX_PAYLOAD`.
    TooLong(usize),
    /// The number was used before, or is above all that a connection may use.
    Number {
        /// The lowest number that is free.
        next: u64,
        /// The number that was refused.
        number: u64,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::NotConnected => write!(f, "the connection has ended or has not begun"),
            SendError::Empty => write!(f, "a payload must have at least 1 byte, not 0"),
            SendError::TooLong(n) => write!(f, "a payload must have at most {MAX_PAYLOAD} bytes, not {n}"),
            SendError::Number { next, number } => {
                write!(f, "number must be {next} to {}, not {number}", ADMISSION_SEQUENCES - 1)
            }
        }
    }
}

impl core::error::Error for SendError {}

/// Refuses payloads netcode can't carry.
pub(crate) fn check_payload(payload: &[u8]) -> Result<(), SendError> {
    match payload.len() {
        0 => Err(SendError::Empty),
        1..=MAX_PAYLOAD => Ok(()),
        n => Err(SendError::TooLong(n)),
    }
}

/// A key with the sequence of the next packet. It is the only way to send under its key and can't be copied, so
/// no sequence is used twice.
pub(crate) struct Sealer {
    protocol_id: u64,
    key: Key,
    /// The number of the next packet. A sealer of a connection began at 0.
    pub(super) sequence: u64,
}

impl Sealer {
    pub(crate) fn new(protocol_id: u64, key: Key, first_sequence: u64) -> Self {
        Sealer { protocol_id, key, sequence: first_sequence }
    }

    /// Checks a sequence that the caller chose.
    ///
    /// # Errors
    /// When the sequence was used, or is not a connection's.
    pub(crate) fn check_number(&self, number: u64) -> Result<(), SendError> {
        let is_free = (self.sequence..ADMISSION_SEQUENCES).contains(&number);
        is_free.then_some(()).ok_or(SendError::Number { next: self.sequence, number })
    }

    /// Leaves out the sequences before this one.
    ///
    /// # Errors
    /// Those of [`Sealer::check_number`].
    pub(crate) fn skip_to(&mut self, number: u64) -> Result<(), SendError> {
        self.check_number(number)?;
        self.sequence = number;
        Ok(())
    }

    pub(crate) fn send(&mut self, to: SocketAddr, kind: Kind, body: &[u8], out: &mut Datagrams) {
        self.send_written(to, kind, |arena| arena.extend_from_slice(body), out);
    }

    /// Sends a packet whose body `write` appends.
    pub(crate) fn send_written(
        &mut self,
        to: SocketAddr,
        kind: Kind,
        write: impl FnOnce(&mut Vec<u8>),
        out: &mut Datagrams,
    ) {
        out.push_with(to, |arena| {
            packet::seal_in_place(arena, self.protocol_id, &self.key, self.sequence, kind, write);
        });
        self.sequence += 1;
    }

    /// Sends one goodbye: the farewell of the layer above, or a disconnect packet.
    pub(crate) fn send_goodbye(&mut self, to: SocketAddr, farewell: Option<&[u8]>, out: &mut Datagrams) {
        match farewell {
            Some(payload) => self.send(to, Kind::Payload, payload, out),
            None => self.send(to, Kind::Disconnect, &[], out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_used_twice() {
        let mut sealer = Sealer::new(1, [0; 32], 0);
        let (to, mut out) = (SocketAddr::from(([10, 0, 0, 1], 1)), Datagrams::new());
        for (number, is_free) in [(3, true), (3, false), (0, false), (4, true), (9, true), (1 << 63, false)] {
            assert_eq!(sealer.skip_to(number).is_ok(), is_free, "{number}");
            if is_free {
                sealer.send(to, Kind::Payload, &[7], &mut out);
            }
        }
        let error = sealer.skip_to(3).unwrap_err().to_string();
        assert_eq!(error, "number must be 10 to 9223372036854775807, not 3");
        let numbers: Vec<_> =
            out.iter().map(|(_, it)| packet::Header::read(it).map(|it| it.sequence)).collect();
        assert_eq!(numbers, [3, 4, 9].map(Ok));
    }
}
