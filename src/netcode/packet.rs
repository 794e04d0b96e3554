//! The seven packets: how they are framed, sealed and opened.
//!
//! Promises: what [`Header::read`] accepts has exactly a length its kind can have, so a wrong one is never
//! decrypted. Refuses: unknown kinds, a number of sequence bytes outside 1..=8, any length that doesn't fit.
//! Accepts, as the standard does, more sequence bytes than needed.
//!
//! Trusted: nothing until [`Header::open`], and after it only that the holder of the key wrote it. The prefix
//! is authenticated as associated data and the sequence as nonce, so neither can be altered. Every read is of
//! a fixed size or a checked one; nothing is allocated.

use super::challenge::CHALLENGE_TOKEN_BYTES;
use super::crypto::{self, Key, TAG_BYTES, TOKEN_NONCE_BYTES};
use super::cursor::Cursor;
use super::drops::DropReason;
use super::private_token::PRIVATE_TOKEN_BYTES;
use super::token::ConnectToken;
use super::{NAME, VERSION, VERSION_BYTES};
use crate::limits::{MAX_DATAGRAM, MAX_PAYLOAD, MIN_MTU};
use crate::time::UnixSeconds;

/// First byte of a connection request.
pub(crate) const REQUEST_PREFIX: u8 = 0;

/// Bytes of a connection request: prefix, version, protocol id, expiry, nonce, private part.
pub const REQUEST_BYTES: usize = 1 + VERSION_BYTES + 8 + 8 + TOKEN_NONCE_BYTES + PRIVATE_TOKEN_BYTES;
const _: () = assert!(REQUEST_BYTES + 40 + 8 == MIN_MTU);

/// Plaintext of a challenge and of a response: challenge sequence, challenge token.
pub const CHALLENGE_BODY_BYTES: usize = 8 + CHALLENGE_TOKEN_BYTES;

/// Plaintext of a keep-alive: client index, max clients.
pub const KEEP_ALIVE_BODY_BYTES: usize = 4 + 4;

/// Most bytes that sealing adds: prefix, sequence, tag.
pub const MAX_OVERHEAD: usize = 1 + 8 + TAG_BYTES;

/// The kinds of encrypted packet, with their type on the wire. (Type 0 is the request.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Server to client: no slot is free.
    Denied = 1,
    /// Server to client: send this back.
    Challenge = 2,
    /// Client to server: the challenge, sent back.
    Response = 3,
    /// In both directions: still connected. The first one tells a client that it is connected.
    KeepAlive = 4,
    /// In both directions: a payload of the layer above.
    Payload = 5,
    /// Both ways: the connection is over.
    Disconnect = 6,
}

impl Kind {
    fn from_bits(bits: u8) -> Option<Kind> {
        use Kind::{Challenge, Denied, Disconnect, KeepAlive, Payload, Response};
        let kinds = [Denied, Challenge, Response, KeepAlive, Payload, Disconnect];
        kinds.into_iter().find(|kind| *kind as u8 == bits)
    }

    /// Whether a packet that begins with this byte is of this kind.
    pub(crate) fn is_of(self, prefix: u8) -> bool {
        prefix & 0x0F == self as u8
    }

    /// Whether a replay window guards it. The others carry what makes a replay harmless.
    pub fn is_replay_protected(self) -> bool {
        matches!(self, Kind::KeepAlive | Kind::Payload | Kind::Disconnect)
    }

    fn body_bytes(self) -> core::ops::RangeInclusive<usize> {
        match self {
            Kind::Denied | Kind::Disconnect => 0..=0,
            Kind::Challenge | Kind::Response => CHALLENGE_BODY_BYTES..=CHALLENGE_BODY_BYTES,
            Kind::KeepAlive => KEEP_ALIVE_BODY_BYTES..=KEEP_ALIVE_BODY_BYTES,
            Kind::Payload => 1..=MAX_PAYLOAD,
        }
    }
}

/// A connection request as it arrived. Nothing in it is proven.
pub struct Request<'a> {
    pub protocol_id: u64,
    /// When the token claims to expire; proven by opening the private part.
    pub expires: UnixSeconds,
    pub nonce: [u8; TOKEN_NONCE_BYTES],
    /// The sealed private part of the token.
    pub sealed: &'a mut [u8; PRIVATE_TOKEN_BYTES],
}

impl<'a> Request<'a> {
    /// Appends the request that dials with `token`.
    pub fn write(token: &ConnectToken, out: &mut Vec<u8>) {
        out.push(REQUEST_PREFIX);
        out.extend_from_slice(VERSION);
        out.extend_from_slice(&token.protocol_id.to_le_bytes());
        out.extend_from_slice(&token.expires.0.to_le_bytes());
        out.extend_from_slice(&token.nonce);
        out.extend_from_slice(&*token.sealed);
    }

    /// Parses a datagram whose first byte, the type, is 0.
    ///
    /// # Errors
    ///
    /// When it has another length or version.
    pub fn read(datagram: &'a mut [u8]) -> Result<Request<'a>, DropReason> {
        let claimed = datagram.get(1..1 + VERSION_BYTES);
        // Before the length, which other versions have others of.
        if claimed.is_some_and(|claimed| claimed.starts_with(NAME) && claimed != VERSION) {
            return Err(DropReason::WrongVersion);
        }
        if datagram.len() > REQUEST_BYTES {
            return Err(DropReason::TooLong);
        }
        let (fields, sealed) =
            datagram.split_last_chunk_mut::<PRIVATE_TOKEN_BYTES>().ok_or(DropReason::TooShort)?;
        let early = DropReason::TooShort;
        let mut cursor = Cursor(fields);
        let _prefix = cursor.u8().ok_or(early)?;
        let version = cursor.array::<VERSION_BYTES>().ok_or(early)?;
        let request = Request {
            protocol_id: cursor.u64().ok_or(early)?,
            expires: UnixSeconds(cursor.u64().ok_or(early)?),
            nonce: cursor.array().ok_or(early)?,
            sealed,
        };
        if version == *VERSION { Ok(request) } else { Err(DropReason::WrongVersion) }
    }
}

/// Appends a sealed packet. A sequence must never be used twice under one key.
pub fn seal(out: &mut Vec<u8>, protocol_id: u64, key: &Key, sequence: u64, kind: Kind, body: &[u8]) {
    seal_in_place(out, protocol_id, key, sequence, kind, |out| out.extend_from_slice(body));
}

/// Like [`seal`], for a body that `write` appends where it is sealed.
pub(super) fn seal_in_place(
    out: &mut Vec<u8>,
    protocol_id: u64,
    key: &Key,
    sequence: u64,
    kind: Kind,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let sequence_bytes = (8 - sequence.leading_zeros() as usize / 8).max(1);
    let prefix = kind as u8 | (sequence_bytes as u8) << 4;
    out.push(prefix);
    out.extend_from_slice(&sequence.to_le_bytes()[..sequence_bytes]);
    let body_at = out.len();
    write(out);
    debug_assert!(kind.body_bytes().contains(&(out.len() - body_at)));
    let tag = crypto::seal(key, sequence, &associated_data(protocol_id, prefix), &mut out[body_at..]);
    out.extend_from_slice(&tag);
}

/// The plaintext of a challenge or response.
pub fn challenge_body(sequence: u64, token: &[u8; CHALLENGE_TOKEN_BYTES]) -> [u8; CHALLENGE_BODY_BYTES] {
    let mut body = [0; CHALLENGE_BODY_BYTES];
    body[..8].copy_from_slice(&sequence.to_le_bytes());
    body[8..].copy_from_slice(token);
    body
}

/// The plaintext of a keep-alive.
pub fn keep_alive_body(client_index: u32, max_clients: u32) -> [u8; KEEP_ALIVE_BODY_BYTES] {
    let mut body = [0; KEEP_ALIVE_BODY_BYTES];
    body[..4].copy_from_slice(&client_index.to_le_bytes());
    body[4..].copy_from_slice(&max_clients.to_le_bytes());
    body
}

/// The unencrypted part of an encrypted packet. Nothing in it is proven before [`Header::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of packet.
    pub kind: Kind,
    pub sequence: u64,
    prefix: u8,
    /// Where the sealed body begins.
    pub(super) body_at: usize,
}

impl Header {
    /// Reads the part in clear and checks the length.
    ///
    /// # Errors
    /// When it is not an encrypted packet of a possible length.
    pub fn read(datagram: &[u8]) -> Result<Header, DropReason> {
        if datagram.len() > MAX_DATAGRAM {
            return Err(DropReason::TooLong);
        }
        let (&prefix, rest) = datagram.split_first().ok_or(DropReason::TooShort)?;
        let kind = Kind::from_bits(prefix & 0x0F).ok_or(DropReason::UnknownType)?;
        let sequence_bytes = usize::from(prefix >> 4);
        if !(1..=8).contains(&sequence_bytes) {
            return Err(DropReason::SequenceLength);
        }
        let (low_bytes, sealed) = rest.split_at_checked(sequence_bytes).ok_or(DropReason::TooShort)?;
        let body_bytes = sealed.len().checked_sub(TAG_BYTES).ok_or(DropReason::TooShort)?;
        if body_bytes < *kind.body_bytes().start() {
            return Err(DropReason::TooShort);
        }
        if body_bytes > *kind.body_bytes().end() {
            return Err(DropReason::TooLong);
        }
        let mut sequence = [0; 8];
        sequence[..sequence_bytes].copy_from_slice(low_bytes);
        let sequence = u64::from_le_bytes(sequence);
        Ok(Header { kind, sequence, prefix, body_at: 1 + sequence_bytes })
    }

    /// Authenticates and decrypts the datagram this header was read from, in place.
    ///
    /// # Errors
    ///
    /// [`DropReason::NotAuthentic`] for another key or protocol id and for altered bytes; the datagram's contents are
    /// meaningless then.
    pub fn open<'a>(
        &self,
        datagram: &'a mut [u8],
        protocol_id: u64,
        key: &Key,
    ) -> Result<Body<'a>, DropReason> {
        let refused = DropReason::NotAuthentic;
        let sealed = datagram.get_mut(self.body_at..).ok_or(refused)?;
        let associated = associated_data(protocol_id, self.prefix);
        let text = crypto::open(key, self.sequence, &associated, sealed).ok_or(refused)?;
        Body::read(self.kind, text).ok_or(refused)
    }
}

/// The contents of an authentic packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Body<'a> {
    // See `Kind::Denied`.
    Denied,
    /// See [`Kind::Challenge`] and [`Kind::Response`].
    Challenge {
        /// The sequence the challenge token is sealed with.
        sequence: u64,
        /// The challenge token, sealed.
        token: &'a mut [u8; CHALLENGE_TOKEN_BYTES],
    },
    // See `Kind::KeepAlive`.
    KeepAlive {
        /// The client's slot; a client sends 0.
        client_index: u32,
        /// The server's number of slots; a client sends 0.
        max_clients: u32,
    },
    // See `Kind::Payload`.
    Payload(&'a [u8]),
    // See `Kind::Disconnect`.
    Disconnect,
}

impl<'a> Body<'a> {
    /// `None` only for a length that [`Header::read`] has refused already.
    fn read(kind: Kind, text: &'a mut [u8]) -> Option<Body<'a>> {
        Some(match kind {
            Kind::Denied => Body::Denied,
            Kind::Challenge | Kind::Response => {
                let (sequence, token) = text.split_first_chunk_mut::<8>()?;
                Body::Challenge { sequence: u64::from_le_bytes(*sequence), token: token.try_into().ok()? }
            }
            Kind::KeepAlive => {
                let mut cursor = Cursor(text);
                Body::KeepAlive { client_index: cursor.u32()?, max_clients: cursor.u32()? }
            }
            Kind::Payload => Body::Payload(text),
            Kind::Disconnect => Body::Disconnect,
        })
    }
}

pub(super) fn associated_data(protocol_id: u64, prefix: u8) -> [u8; VERSION_BYTES + 8 + 1] {
    let mut data = [0; VERSION_BYTES + 8 + 1];
    data[..VERSION_BYTES].copy_from_slice(VERSION);
    data[VERSION_BYTES..VERSION_BYTES + 8].copy_from_slice(&protocol_id.to_le_bytes());
    data[VERSION_BYTES + 8] = prefix;
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Entropy, Rng};

    const KEY: Key = [1; 32];

    fn sealed(sequence: u64, kind: Kind, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        seal(&mut out, 7, &KEY, sequence, kind, body);
        out
    }

    #[test]
    fn sequences_take_as_few_bytes_as_they_need() {
        for (sequence, bytes) in [(0, 1), (255, 1), (256, 2), (u64::from(u32::MAX), 4), (1 << 63, 8)] {
            let packet = sealed(sequence, Kind::Disconnect, &[]);
            assert_eq!(packet.len(), 1 + bytes + TAG_BYTES, "{sequence}");
            assert_eq!(Header::read(&packet).unwrap().sequence, sequence);
        }
    }

    #[test]
    fn more_sequence_bytes_than_needed_are_accepted() {
        let prefix = Kind::Disconnect as u8 | 8 << 4;
        let mut packet = vec![prefix, 1, 0, 0, 0, 0, 0, 0, 0];
        packet.extend(crypto::seal(&KEY, 1, &associated_data(7, prefix), &mut []));
        let header = Header::read(&packet).unwrap();
        assert_eq!(header.sequence, 1);
        assert_eq!(header.open(&mut packet, 7, &KEY), Ok(Body::Disconnect));
    }

    #[test]
    fn lengths_no_kind_can_have_are_refused_before_decrypting() {
        let read = |prefix: u8, len: usize| {
            let mut packet = vec![0; len];
            packet[0] = prefix;
            Header::read(&packet).map(|h| h.kind)
        };
        use DropReason::{SequenceLength, TooLong, TooShort, UnknownType};
        for (kind, body) in [(1, 0), (2, 308), (3, 308), (4, 8), (6, 0)] {
            assert!(read(0x10 | kind, 18 + body).is_ok());
            assert_eq!(read(0x10 | kind, 17 + body), Err(TooShort));
            assert_eq!(read(0x10 | kind, 19 + body), Err(TooLong));
            assert!(read(0x80 | kind, 25 + body).is_ok());
        }
        assert!(read(0x15, 19).is_ok() && read(0x15, 17 + 1201).is_ok());
        assert_eq!(read(0x15, 18), Err(TooShort));
        assert_eq!(read(0x15, 18 + 1201), Err(TooLong));
        assert_eq!(read(0x05, 30), Err(SequenceLength));
        assert_eq!(read(0x95, 30), Err(SequenceLength));
        assert_eq!(read(0x10, 1078), Err(UnknownType));
        assert_eq!(read(0x17, 30), Err(UnknownType));
        assert_eq!(Header::read(&[]), Err(TooShort));
        assert_eq!(Header::read(&[0x85, 0, 0]), Err(TooShort));
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let packet = sealed(0x1234, Kind::KeepAlive, &keep_alive_body(3, 16));
        for bit in 0..packet.len() * 8 {
            let mut altered = packet.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let opened = Header::read(&altered).and_then(|h| h.open(&mut altered, 7, &KEY).map(|_| ()));
            assert!(opened.is_err(), "bit {bit}");
        }
        let header = Header::read(&packet).unwrap();
        assert!(header.open(&mut packet.clone(), 8, &KEY).is_err(), "another protocol id");
        assert!(header.open(&mut packet.clone(), 7, &KEY).is_ok());
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut rng = Rng::seeded(5);
        for len in (0..1400).chain(0..1400) {
            let mut bytes = vec![0; len];
            rng.fill(&mut bytes);
            if let Ok(header) = Header::read(&bytes) {
                assert!(header.open(&mut bytes, 7, &KEY).is_err());
            }
            let _ = Request::read(&mut bytes);
        }
    }
}
