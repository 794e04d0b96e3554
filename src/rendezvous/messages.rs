//! The messages between a peer and the rendezvous server.
//!
//! Promises: messages read back as written; all requests have one length, above that of their answers to all receivers
//! together. A datagram that isn't exactly a message is none.

use core::net::{IpAddr, SocketAddr};

use super::bytes::{ADDRESS_BYTES, MAGIC, Sendable};
use super::code::LobbyCode;
use super::relay::token::{RelayToken, TOKEN_BYTES};
use super::secrets::{ShortTag, TAG_BYTES, same, short_tag};
use crate::wire::packet::{Counted, Part, Text, from_bytes, packet, to_bytes};
use crate::wire::{BitReader, BitSink, ReadError};

/// Addresses of its own that a peer may send: a few networks of each family.
pub const MAX_INSIDE: usize = 4;

/// Bytes of a game's title, in UTF-8.
pub const MAX_TITLE_BYTES: usize = 48;

/// Games in one answer of the list.
pub(super) const GAMES_A_PAGE: usize = 14;

/// The second byte of requests, and of answers.
const REQUEST: u8 = 0x11;
const ANSWER: u8 = 0x21;

const HEADER_BYTES: usize = 2 + 4 + TAG_BYTES + 1;
const SIGHTING_BYTES: usize = ADDRESS_BYTES + 1 + MAX_INSIDE * ADDRESS_BYTES;
const INTRODUCTION_BYTES: usize =
    2 + 4 + 1 + 8 + 16 + 1 + ADDRESS_BYTES + SIGHTING_BYTES + 1 + ADDRESS_BYTES + TOKEN_BYTES + TAG_BYTES;
const GAME_BYTES: usize = 6 + 8 + 1 + 1 + 1 + MAX_TITLE_BYTES + 1;

const REGISTER_BYTES: usize = 256;
/// An introduction goes to two peers.
const JOIN_BYTES: usize = 2 * INTRODUCTION_BYTES;
const LIST_BYTES: usize = 2 + 4 + 1 + 2 + 2 + 1 + GAMES_A_PAGE * GAME_BYTES;
const OBSERVE_BYTES: usize = 48;
const _: () = assert!(REGISTER_BYTES >= HEADER_BYTES + 16 + 8 + 4 + 1 + MAX_TITLE_BYTES + SIGHTING_BYTES);
const _: () = assert!(LIST_BYTES <= 1200 && JOIN_BYTES <= 1200);

packet! {
    /// Further addresses of a peer, by its own account.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Sighting {
        /// The address that the server's second port saw: equal to the first, or another if the NAT is symmetric.
        pub second: Option<Sendable>,
        /// The peer's own addresses.
        pub inside: Counted<Sendable, 8, MAX_INSIDE>,
    }
}

impl Sighting {
    /// Removes addresses that a peer behind `outside` can't have: others would be made to send there.
    pub(super) fn plausible(mut self, outside: SocketAddr) -> Self {
        self.second = self.second.filter(|second| second.ip() == outside.ip());
        self.inside.retain(|inside| inside.ip() == outside.ip() || is_private(inside.ip()));
        self
    }
}

/// Whether an address is meaningful in one network only.
pub(super) fn is_private(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_private() || ip.is_loopback() || ip.is_link_local(),
        IpAddr::V6(ip) => {
            ip.is_loopback()
                || matches!(ip.segments()[0] & 0xFE00, 0xFC00)
                || ip.segments()[0] & 0xFFC0 == 0xFE80
        }
    }
}

packet! {
    /// A host's description of its game.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct GameInfo {
        pub title: Title,
        /// Joining peers must have the same protocol id.
        pub protocol_id: u64,
        pub players: u8,
        /// With this many players nobody is introduced any more; 0: no limit.
        pub max_players: u8,
        /// Whether the game is in the list, or reachable by its code alone.
        pub listed: bool,
    }
}

packet! {
    /// A game of the list.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ListedGame {
        pub code: LobbyCode,
        pub info: GameInfo,
    }
}

packet! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(super) enum Request as u8 {
        1 => Register { secret: [u8; 16], info: GameInfo, sighting: Sighting },
        2 => Unregister { secret: [u8; 16] },
        3 => Join { code: LobbyCode, protocol_id: u64, nonce: [u8; 16], sighting: Sighting },
        /// The listed games of a protocol from this index on.
        4 => List { protocol_id: u64, first: u16 },
        /// Asks which address a port of the server sees. It needs no cookie.
        5 => Observe,
    }
}

packet! {
    /// A request with its header.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(super) struct Asked {
        pub(super) number: u32,
        pub(super) cookie: ShortTag,
        pub(super) request: Request,
    }
}

packet! {
    /// Why a server refused a request.
    pub enum LobbyRefusal: u8 {
        /// No game has this code, or not any more.
        UnknownCode = 1,
        /// The game is of another protocol.
        Protocol = 2,
        /// The game has all its players.
        GameFull = 3,
        /// The server, or the peer's source, has its maximum of games.
        ServerFull = 4,
    }
}

packet! {
    /// An introduction, sent to both peers at the same time.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Introduction {
        pub(super) session: u64,
        pub(super) key: [u8; 16],
        /// Whether the receiver asked for the other one, and so chooses the path.
        pub(super) leads: bool,
        pub(super) outside: Sendable,
        pub(super) sighting: Sighting,
        pub(super) relay: Option<(Sendable, RelayToken)>,
    }
}

packet! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(super) enum Answer as u8 {
        1 => Challenge { cookie: ShortTag, second_port: u16, seen: Sendable },
        2 => Registered { code: LobbyCode, seen: Sendable },
        3 => Refused { why: LobbyRefusal },
        /// Its signature comes behind the other parts.
        4 => Introduction { peer: Introduction },
        5 => Games { total: u16, first: u16, games: Counted<ListedGame, 8, GAMES_A_PAGE> },
        6 => Observed { seen: Sendable },
    }
}

/// The text of a title.
pub struct Title;

impl Part for Title {
    type Value = String;

    fn write<S: BitSink>(value: &String, sink: &mut S) {
        Text::<6, MAX_TITLE_BYTES>::write(value, sink);
    }

    fn read(reader: &mut BitReader<'_>) -> Result<String, ReadError> {
        let title = Text::<6, MAX_TITLE_BYTES>::read(reader)?;
        if is_title(&title) { Ok(title) } else { Err(ReadError::Invalid { part: "title" }) }
    }
}

/// The bytes of requests with this first byte: above those of their answers.
fn padded_bytes(kind: u8) -> Option<usize> {
    Some(match kind {
        1 => REGISTER_BYTES,
        3 => JOIN_BYTES,
        4 => LIST_BYTES,
        2 | 5 => OBSERVE_BYTES,
        _ => return None,
    })
}

impl Asked {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([MAGIC, REQUEST]);
        out.extend(to_bytes::<Asked>(self));
        let bytes = padded_bytes(out[start + HEADER_BYTES - 1]).unwrap_or_default();
        debug_assert!(out.len() - start <= bytes);
        out.resize(start + bytes, 0);
    }

    /// The number and cookie of a request, whose other parts may be anything. None if the datagram hasn't the length of
    /// one, or needs no cookie.
    pub(super) fn head(datagram: &[u8]) -> Option<(u32, ShortTag)> {
        let (number, rest) = datagram.strip_prefix(&[MAGIC, REQUEST])?.split_first_chunk()?;
        let (cookie, rest) = rest.split_first_chunk()?;
        let kind = *rest.first()?;
        let is_one = padded_bytes(kind) == Some(datagram.len()) && kind != 5;
        is_one.then_some((u32::from_le_bytes(*number), *cookie))
    }

    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let said = datagram.strip_prefix(&[MAGIC, REQUEST])?;
        let mut reader = BitReader::new(said);
        let asked = <Asked as Part>::read(&mut reader).ok()?;
        let (left, last) = (reader.position().div_ceil(8), said[reader.position() / 8..].first());
        let is_zero = |byte: &u8| *byte == 0;
        let is_padded = last.is_none_or(|last| last >> (reader.position() % 8) == 0);
        let bytes = padded_bytes(*datagram.get(HEADER_BYTES - 1)?);
        let fits = Some(datagram.len()) == bytes && is_padded && said[left..].iter().all(is_zero);
        fits.then_some(asked)
    }
}

impl Answer {
    /// Writes the answer. An introduction is signed with the receiver's key.
    pub(super) fn write(&self, number: u32, key: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([MAGIC, ANSWER]);
        out.extend(number.to_le_bytes());
        out.extend(to_bytes::<Answer>(self));
        if let Answer::Introduction { .. } = self {
            let tag = short_tag(key, &[b"introduction", &out[start..]]);
            out.extend_from_slice(&tag);
            debug_assert!(out.len() - start <= INTRODUCTION_BYTES);
        }
    }

    /// Reads an answer and its number. The receiver proves an introduction.
    pub(super) fn read(datagram: &[u8]) -> Option<(u32, Self)> {
        let (number, said) = datagram.strip_prefix(&[MAGIC, ANSWER])?.split_first_chunk()?;
        let number = u32::from_le_bytes(*number);
        if let Ok(answer) = from_bytes::<Answer>(said) {
            return Some((number, answer))
                .filter(|(_, answer)| !matches!(answer, Answer::Introduction { .. }));
        }
        let (said, _) = said.split_last_chunk::<TAG_BYTES>()?;
        let Ok(Answer::Introduction { mut peer }) = from_bytes::<Answer>(said) else { return None };
        // The server filters these too, but an impostor in its place would not.
        peer.sighting = peer.sighting.plausible(peer.outside);
        Some((number, Answer::Introduction { peer }))
    }

    /// Whether an introduction was signed by someone with the key.
    pub(super) fn is_signed(datagram: &[u8], key: &[u8]) -> bool {
        let Some((signed, tag)) = datagram.split_last_chunk::<TAG_BYTES>() else { return false };
        same(tag, &short_tag(key, &[b"introduction", signed]))
    }
}

/// Whether a title may be shown to others: none of its characters ends a line or reorders the text around the title.
pub fn is_title(title: &str) -> bool {
    let changes_lines = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    // The characters of Unicode's property Bidi_Control.
    let reorders = |letter| matches!(letter, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    title.len() <= MAX_TITLE_BYTES && !title.chars().any(|letter| changes_lines(letter) || reorders(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rendezvous::relay::RelayTerms;
    use crate::time::UnixSeconds;

    const FAR: SocketAddr = SocketAddr::new(IpAddr::V6(core::net::Ipv6Addr::LOCALHOST), 65_535);

    fn bytes_of(request: Request) -> usize {
        let mut out = Vec::new();
        Asked { number: 1, cookie: [1; TAG_BYTES], request }.write(&mut out);
        out.len()
    }

    fn bytes_of_answer(answer: &Answer) -> usize {
        let mut out = Vec::new();
        answer.write(u32::MAX, &[1; 16], &mut out);
        out.len()
    }

    #[test]
    fn the_largest_answers_to_a_request_are_no_larger_than_the_request() {
        let sighting = Sighting { second: Some(FAR), inside: vec![FAR; MAX_INSIDE] };
        let title = "t".repeat(MAX_TITLE_BYTES);
        let info = GameInfo { title, protocol_id: u64::MAX, players: 255, max_players: 255, listed: true };
        let code = LobbyCode::random(0);
        let terms =
            RelayTerms { channel: u64::MAX, side: true, expires: UnixSeconds(0), bytes_per_second: 1 };
        let peer = Introduction {
            session: u64::MAX,
            key: [1; 16],
            leads: true,
            outside: FAR,
            sighting: sighting.clone(),
            relay: Some((FAR, RelayToken::new(&[1; 32], terms))),
        };
        let games = vec![ListedGame { code, info: info.clone() }; GAMES_A_PAGE];
        let secret = [1; 16];
        let refused = Answer::Refused { why: LobbyRefusal::ServerFull };
        let cases = [
            (
                Request::Register { secret, info, sighting: sighting.clone() },
                vec![Answer::Registered { code, seen: FAR }, refused.clone()],
                1,
            ),
            (Request::Unregister { secret }, vec![], 0),
            (
                Request::Join { code, protocol_id: 1, nonce: [1; 16], sighting },
                vec![Answer::Introduction { peer }, refused],
                // One for each side.
                2,
            ),
            (
                Request::List { protocol_id: 1, first: 0 },
                vec![Answer::Games { total: u16::MAX, first: u16::MAX, games }],
                1,
            ),
            (Request::Observe, vec![Answer::Observed { seen: FAR }], 1),
        ];
        let challenge = Answer::Challenge { cookie: [1; TAG_BYTES], second_port: u16::MAX, seen: FAR };
        for (request, answers, receivers) in cases {
            let asked = bytes_of(request.clone());
            assert!(bytes_of_answer(&challenge) <= asked.min(36), "{request:?}");
            for answer in answers {
                assert!(receivers * bytes_of_answer(&answer) <= asked, "{request:?}: {answer:?}");
            }
        }
    }

    #[test]
    fn a_cookie_is_read_before_the_rest() {
        let mut bytes = Vec::new();
        let (cookie, request) = ([7; TAG_BYTES], Request::List { protocol_id: 1, first: 0 });
        Asked { number: 3, cookie, request }.write(&mut bytes);
        bytes.iter_mut().skip(HEADER_BYTES).for_each(|byte| *byte = 0xFF);
        assert_eq!((Asked::head(&bytes), Asked::read(&bytes)), (Some((3, cookie)), None));
        assert_eq!((0..bytes.len()).find_map(|cut| Asked::head(&bytes[..cut])), None);
        let mut observe = Vec::new();
        Asked { number: 3, cookie, request: Request::Observe }.write(&mut observe);
        assert_eq!(Asked::head(&observe), None, "it needs no cookie");
    }

    #[test]
    fn titles_end_no_line_and_turn_no_text_around() {
        for title in ["", "Ann's game ✓", "משחק", "👩\u{200D}🚀"] {
            assert!(is_title(title), "{title:?}");
        }
        for title in ["a\nb", "a\u{2028}b", "a\u{202E}b", "\u{200F}a", "a\u{2066}", "a\0", "\u{85}"] {
            assert!(!is_title(title), "{title:?}");
        }
        assert!(!is_title(&"a".repeat(MAX_TITLE_BYTES + 1)));
    }
}
