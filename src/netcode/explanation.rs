//! The explanation that a server in development mode gives for a refused request. No other library sends or reads it.
//!
//! The layers above may add a note, by which the other side finds out what differs.
//!
//! Promises: it is smaller than half of the request it answers, and repeats that request's nonce, so that only
//! somebody who saw the request can forge it. Nothing else in it is proven: a client believes it only if its own
//! token was made in development mode, and only before it has heard anything else of the server.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::crypto::TOKEN_NONCE_BYTES;
use super::cursor::Cursor;
use super::drops::DropReason;
use super::packet::{REQUEST_BYTES, Request};

/// A type that the standard has no packet of, and no sequence bytes.
pub(crate) const EXPLANATION_PREFIX: u8 = 0x0F;

const TITLE: &[u8; 16] = b"TICKWIRE REFUSED";
const EXPLANATION_BYTES: usize = 1 + TITLE.len() + TOKEN_NONCE_BYTES + 1 + 8;
const _: () = assert!(EXPLANATION_BYTES + MAX_NOTE_BYTES < REQUEST_BYTES / 2);

/// The most bytes that the layers above may add.
pub const MAX_NOTE_BYTES: usize = 448;

/// Discard-only addresses (RFC 6666): their last 64 bits are a hash of the protocol of the layers above.
const HASH_PREFIX: [u16; 4] = [0x0100, 0, 0, 0];

/// The address in a development token's internal addresses that carries the client's protocol hash. Other servers
/// skip it.
pub fn hash_address(hash: u64) -> SocketAddr {
    let [a, b, c, d] = HASH_PREFIX;
    let part = |shift: u32| (hash >> shift) as u16;
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(a, b, c, d, part(48), part(32), part(16), part(0))), 0)
}

/// The hash in such an address.
pub(crate) fn hash_in(address: SocketAddr) -> Option<u64> {
    let IpAddr::V6(ip) = address.ip() else { return None };
    let segments = ip.segments();
    let (prefix, rest) = segments.split_at(HASH_PREFIX.len());
    let hash = rest.iter().fold(0, |hash, part| hash << 16 | u64::from(*part));
    (address.port() == 0 && prefix == HASH_PREFIX).then_some(hash)
}

/// The protocol of the layers above, which a server in development mode may reveal.
#[derive(Clone, Debug)]
pub struct UpperProtocol {
    /// Two sides with other hashes can't talk.
    pub hash: u64,
    /// For a client with another one: at most [`MAX_NOTE_BYTES`]; the rest isn't sent.
    pub note: Vec<u8>,
}

/// Why a server refuses every request with this token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It has another protocol id: this one.
    ProtocolId(u64),
    /// It has another private key.
    PrivateKey,
    /// The token doesn't name it.
    OtherServer,
    /// The layers above speak another protocol.
    Protocol,
}

impl Refusal {
    /// The explanation for requests dropped for this reason by a server with this protocol id.
    pub(crate) fn of(reason: DropReason, protocol_id: u64) -> Option<Refusal> {
        Some(match reason {
            DropReason::WrongProtocol => Refusal::ProtocolId(protocol_id),
            DropReason::TokenNotAuthentic => Refusal::PrivateKey,
            DropReason::TokenForOtherServer => Refusal::OtherServer,
            DropReason::ProtocolDiffers => Refusal::Protocol,
            _ => return None,
        })
    }

    /// Appends the answer to a request with this nonce, with the note if it is useful.
    pub(crate) fn write(self, nonce: &[u8; TOKEN_NONCE_BYTES], note: &[u8], out: &mut Vec<u8>) {
        let (kind, id) = match self {
            Refusal::ProtocolId(id) => (1, id),
            Refusal::PrivateKey => (2, 0),
            Refusal::OtherServer => (3, 0),
            Refusal::Protocol => (4, 0),
        };
        out.push(EXPLANATION_PREFIX);
        out.extend_from_slice(TITLE);
        out.extend_from_slice(nonce);
        out.push(kind);
        out.extend_from_slice(&u64::to_le_bytes(id));
        if self.has_note() {
            out.extend_from_slice(&note[..note.len().min(MAX_NOTE_BYTES)]);
        }
    }

    fn has_note(self) -> bool {
        matches!(self, Refusal::ProtocolId(_) | Refusal::Protocol)
    }

    /// Reads the answer to a request with this nonce, and its note.
    pub(crate) fn read<'a>(
        datagram: &'a [u8],
        nonce: &[u8; TOKEN_NONCE_BYTES],
    ) -> Option<(Refusal, &'a [u8])> {
        let (datagram, note) = datagram.split_at_checked(EXPLANATION_BYTES)?;
        let mut cursor = Cursor(datagram);
        let is_ours = note.len() <= MAX_NOTE_BYTES
            && cursor.u8()? == EXPLANATION_PREFIX
            && cursor.array::<16>()? == *TITLE
            && cursor.array::<TOKEN_NONCE_BYTES>()? == *nonce;
        let refusal = match (is_ours.then(|| cursor.u8()).flatten()?, cursor.u64()?) {
            (1, id) => Refusal::ProtocolId(id),
            (2, 0) => Refusal::PrivateKey,
            (3, 0) => Refusal::OtherServer,
            (4, 0) => Refusal::Protocol,
            _ => return None,
        };
        (note.is_empty() || refusal.has_note()).then_some((refusal, note))
    }
}

/// The nonce of a datagram that is a request by its length and type; it may be forged.
pub(crate) fn nonce_of(datagram: &mut [u8]) -> Option<[u8; TOKEN_NONCE_BYTES]> {
    Request::read(datagram).ok().map(|request| request.nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: [u8; TOKEN_NONCE_BYTES] = [7; TOKEN_NONCE_BYTES];

    #[test]
    fn an_address_of_a_hash_is_told_from_others() {
        for hash in [0, 1, u64::MAX, 0x0123_4567_89AB_CDEF] {
            assert_eq!(hash_in(hash_address(hash)), Some(hash));
        }
        for other in ["127.0.0.1:0", "[::1]:0", "[100::1]:5", "[100:0:0:1::1]:0"] {
            assert_eq!(hash_in(other.parse().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let with_id = Refusal::ProtocolId(u64::MAX);
        for refusal in [with_id, Refusal::PrivateKey, Refusal::OtherServer, Refusal::Protocol] {
            let mut bytes = Vec::new();
            refusal.write(&NONCE, &[], &mut bytes);
            assert_eq!(bytes.len(), EXPLANATION_BYTES);
            assert_eq!(Refusal::read(&bytes, &NONCE), Some((refusal, &[][..])));
            assert_eq!(Refusal::read(&bytes, &[8; TOKEN_NONCE_BYTES]), None, "of another request");
            for bit in 0..8 * (bytes.len() - 8) {
                let mut altered = bytes.clone();
                altered[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(Refusal::read(&altered, &NONCE), Some((refusal, &[][..])), "bit {bit}");
            }
            (0..bytes.len()).for_each(|len| assert_eq!(Refusal::read(&bytes[..len], &NONCE), None));
            bytes.resize(EXPLANATION_BYTES + MAX_NOTE_BYTES + 1, 0);
            assert_eq!(Refusal::read(&bytes, &NONCE), None, "too long");
            bytes.pop();
            assert_eq!(Refusal::read(&bytes, &NONCE).is_some(), refusal.has_note());
            let mut noted = Vec::new();
            refusal.write(&NONCE, &[5; 1000], &mut noted);
            let note = if refusal.has_note() { &[5; MAX_NOTE_BYTES][..] } else { &[] };
            assert_eq!(Refusal::read(&noted, &NONCE), Some((refusal, note)));
        }
    }
}
