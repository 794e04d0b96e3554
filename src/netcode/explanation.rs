//! What a server in development mode says of a request that it refuses. No other library sends or takes it.
//!
//! Promises: it is far smaller than the request it answers, and repeats that request's nonce, so that nobody who didn't see
//! the request can make it up. Nothing in it is proven beyond that: a client believes it only where its own token was made in
//! development mode, and only while nothing else was heard of the server.

use super::crypto::TOKEN_NONCE_BYTES;
use super::cursor::Cursor;
use super::drops::DropReason;
use super::packet::{REQUEST_BYTES, Request};

/// A type that the standard has no packet of, and no sequence bytes.
pub(crate) const EXPLANATION_PREFIX: u8 = 0x0F;

const TITLE: &[u8; 16] = b"TICKWIRE REFUSED";
const EXPLANATION_BYTES: usize = 1 + TITLE.len() + TOKEN_NONCE_BYTES + 1 + 8;
const _: () = assert!(EXPLANATION_BYTES < REQUEST_BYTES / 10);

/// Why a server refuses whoever asks with this token, however often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It has another protocol id: this one.
    ProtocolId(u64),
    /// It has another private key.
    PrivateKey,
    /// The token doesn't name it.
    OtherServer,
}

impl Refusal {
    /// Of what was dropped for this reason by a server with this protocol id.
    pub(crate) fn of(reason: DropReason, protocol_id: u64) -> Option<Refusal> {
        Some(match reason {
            DropReason::WrongProtocol => Refusal::ProtocolId(protocol_id),
            DropReason::TokenNotAuthentic => Refusal::PrivateKey,
            DropReason::TokenForOtherServer => Refusal::OtherServer,
            _ => return None,
        })
    }

    /// Appends the answer to a request with this nonce.
    pub(crate) fn write(self, nonce: &[u8; TOKEN_NONCE_BYTES], out: &mut Vec<u8>) {
        let (kind, id) = match self {
            Refusal::ProtocolId(id) => (1, id),
            Refusal::PrivateKey => (2, 0),
            Refusal::OtherServer => (3, 0),
        };
        out.push(EXPLANATION_PREFIX);
        out.extend_from_slice(TITLE);
        out.extend_from_slice(nonce);
        out.push(kind);
        out.extend_from_slice(&u64::to_le_bytes(id));
    }

    /// Reads the answer to a request with this nonce.
    pub(crate) fn read(datagram: &[u8], nonce: &[u8; TOKEN_NONCE_BYTES]) -> Option<Refusal> {
        let mut cursor = Cursor(datagram);
        let is_ours = datagram.len() == EXPLANATION_BYTES
            && cursor.u8()? == EXPLANATION_PREFIX
            && cursor.array::<16>()? == *TITLE
            && cursor.array::<TOKEN_NONCE_BYTES>()? == *nonce;
        match (is_ours.then(|| cursor.u8()).flatten()?, cursor.u64()?) {
            (1, id) => Some(Refusal::ProtocolId(id)),
            (2, 0) => Some(Refusal::PrivateKey),
            (3, 0) => Some(Refusal::OtherServer),
            _ => None,
        }
    }
}

/// The nonce of what is a request by its length and type, whoever made it.
pub(crate) fn nonce_of(datagram: &mut [u8]) -> Option<[u8; TOKEN_NONCE_BYTES]> {
    Request::read(datagram).ok().map(|request| request.nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: [u8; TOKEN_NONCE_BYTES] = [7; TOKEN_NONCE_BYTES];

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        for refusal in [Refusal::ProtocolId(u64::MAX), Refusal::PrivateKey, Refusal::OtherServer] {
            let mut bytes = Vec::new();
            refusal.write(&NONCE, &mut bytes);
            assert_eq!(bytes.len(), EXPLANATION_BYTES);
            assert_eq!(Refusal::read(&bytes, &NONCE), Some(refusal));
            assert_eq!(Refusal::read(&bytes, &[8; TOKEN_NONCE_BYTES]), None, "of another request");
            for bit in 0..8 * (bytes.len() - 8) {
                let mut altered = bytes.clone();
                altered[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(Refusal::read(&altered, &NONCE), Some(refusal), "bit {bit}");
            }
            (0..bytes.len()).for_each(|len| assert_eq!(Refusal::read(&bytes[..len], &NONCE), None));
            bytes.push(0);
            assert_eq!(Refusal::read(&bytes, &NONCE), None, "too long");
        }
    }
}
