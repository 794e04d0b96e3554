//! The messages between a peer and the rendezvous server.
//!
//! Promises: messages read back as written; all requests have one length, above that of their answers to all receivers
//! together. A datagram that isn't exactly a message is none.

use core::net::{IpAddr, SocketAddr};

use super::bytes::{ADDRESS_BYTES, Fields, MAGIC, write_address, write_addresses};
use super::code::LobbyCode;
use super::relay::token::{RelayToken, TOKEN_BYTES};
use super::secrets::{ShortTag, TAG_BYTES, same, short_tag};

/// Addresses of its own that a peer may send: a few networks of each family.
pub const MAX_INSIDE: usize = 4;

/// Bytes of a game's title, in UTF-8.
pub const MAX_TITLE_BYTES: usize = 48;

/// Games in one answer of the list.
pub(super) const GAMES_A_PAGE: usize = 14;

const HEADER_BYTES: usize = 1 + 1 + 4 + TAG_BYTES;
const SIGHTING_BYTES: usize = ADDRESS_BYTES + 1 + MAX_INSIDE * ADDRESS_BYTES;
const INTRODUCTION_BYTES: usize =
    2 + 4 + 8 + 16 + 1 + ADDRESS_BYTES + SIGHTING_BYTES + 1 + ADDRESS_BYTES + TOKEN_BYTES + TAG_BYTES;
const GAME_BYTES: usize = 6 + 8 + 1 + 1 + 1 + MAX_TITLE_BYTES;

const REGISTER_BYTES: usize = 256;
/// An introduction goes to two peers.
const JOIN_BYTES: usize = 2 * INTRODUCTION_BYTES;
const LIST_BYTES: usize = 2 + 4 + 2 + 2 + 1 + GAMES_A_PAGE * GAME_BYTES;
const OBSERVE_BYTES: usize = 48;
const _: () = assert!(REGISTER_BYTES >= HEADER_BYTES + 16 + 8 + 3 + 1 + MAX_TITLE_BYTES + SIGHTING_BYTES);
const _: () = assert!(LIST_BYTES <= 1200 && JOIN_BYTES <= 1200);

mod kind {
    pub(super) const REGISTER: u8 = 0x11;
    pub(super) const UNREGISTER: u8 = 0x12;
    pub(super) const JOIN: u8 = 0x13;
    pub(super) const LIST: u8 = 0x14;
    pub(super) const OBSERVE: u8 = 0x15;
    pub(super) const CHALLENGE: u8 = 0x21;
    pub(super) const REGISTERED: u8 = 0x22;
    pub(super) const REFUSED: u8 = 0x23;
    pub(super) const INTRODUCTION: u8 = 0x24;
    pub(super) const GAMES: u8 = 0x25;
    pub(super) const OBSERVED: u8 = 0x26;
}

/// Further addresses of a peer, by its own account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// The address that the server's second port saw: equal to the first, or another if the NAT is symmetric.
    pub second: Option<SocketAddr>,
    /// The peer's own addresses.
    pub inside: Vec<SocketAddr>,
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

/// A host's description of its game.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GameInfo {
    pub title: String,
    /// Joining peers must have the same protocol id.
    pub protocol_id: u64,
    pub players: u8,
    /// With this many players nobody is introduced any more; 0: no limit.
    pub max_players: u8,
    /// Whether the game is in the list, or reachable by its code alone.
    pub listed: bool,
}

/// A game of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGame {
    pub code: LobbyCode,
    pub info: GameInfo,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Register {
        secret: [u8; 16],
        info: GameInfo,
        sighting: Sighting,
    },
    Unregister {
        secret: [u8; 16],
    },
    Join {
        code: LobbyCode,
        protocol_id: u64,
        nonce: [u8; 16],
        sighting: Sighting,
    },
    /// The listed games of a protocol from this index on.
    List {
        protocol_id: u64,
        first: u16,
    },
}

/// A request with its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) number: u32,
    pub(super) cookie: ShortTag,
    pub(super) request: Request,
}

/// Why a server refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LobbyRefusal {
    /// No game has this code, or not any more.
    UnknownCode = 1,
    /// The game is of another protocol.
    Protocol = 2,
    /// The game has all its players.
    GameFull = 3,
    /// The server, or the peer's source, has its maximum of games.
    ServerFull = 4,
}

/// An introduction, sent to both peers at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    pub(super) session: u64,
    pub(super) key: [u8; 16],
    /// Whether the receiver asked for the other one, and so chooses the path.
    pub(super) leads: bool,
    pub(super) outside: SocketAddr,
    pub(super) sighting: Sighting,
    pub(super) relay: Option<(SocketAddr, RelayToken)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Challenge { cookie: ShortTag, second_port: u16, seen: SocketAddr },
    Registered { code: LobbyCode, seen: SocketAddr },
    Refused(LobbyRefusal),
    Introduction(Introduction),
    Games { total: u16, first: u16, games: Vec<ListedGame> },
    Observed(SocketAddr),
}

impl Asked {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, length) = match self.request {
            Request::Register { .. } => (kind::REGISTER, REGISTER_BYTES),
            Request::Unregister { .. } => (kind::UNREGISTER, OBSERVE_BYTES),
            Request::Join { .. } => (kind::JOIN, JOIN_BYTES),
            Request::List { .. } => (kind::LIST, LIST_BYTES),
        };
        out.extend_from_slice(&[MAGIC, kind]);
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.cookie);
        match &self.request {
            Request::Register { secret, info, sighting } => {
                out.extend_from_slice(secret);
                write_info(info, out);
                write_sighting(sighting, out);
            }
            Request::Unregister { secret } => out.extend_from_slice(secret),
            Request::Join { code, protocol_id, nonce, sighting } => {
                out.extend_from_slice(code.bytes());
                out.extend_from_slice(&protocol_id.to_le_bytes());
                out.extend_from_slice(nonce);
                write_sighting(sighting, out);
            }
            Request::List { protocol_id, first } => {
                out.extend_from_slice(&protocol_id.to_le_bytes());
                out.extend_from_slice(&first.to_le_bytes());
            }
        }
        debug_assert!(out.len() <= start + length);
        out.resize(start + length, 0);
    }

    /// Number and cookie of a datagram with a request's length, to be checked before anything else.
    pub(super) fn peek(datagram: &[u8]) -> Option<(u32, ShortTag)> {
        let length = match *datagram.get(1)? {
            kind::REGISTER => REGISTER_BYTES,
            kind::UNREGISTER => OBSERVE_BYTES,
            kind::JOIN => JOIN_BYTES,
            kind::LIST => LIST_BYTES,
            _ => return None,
        };
        let mut fields = Fields(datagram.get(2..)?);
        (datagram[0] == MAGIC && datagram.len() == length).then_some((fields.u32()?, fields.array()?))
    }

    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let (number, cookie) = Self::peek(datagram)?;
        let mut fields = Fields(datagram.get(HEADER_BYTES..)?);
        let request = match datagram[1] {
            kind::REGISTER => Request::Register {
                secret: fields.array()?,
                info: read_info(&mut fields)?,
                sighting: read_sighting(&mut fields)?,
            },
            kind::UNREGISTER => Request::Unregister { secret: fields.array()? },
            kind::JOIN => Request::Join {
                code: LobbyCode::from_bytes(fields.array()?)?,
                protocol_id: fields.u64()?,
                nonce: fields.array()?,
                sighting: read_sighting(&mut fields)?,
            },
            _ => Request::List { protocol_id: fields.u64()?, first: fields.u16()? },
        };
        fields.0.iter().all(|byte| *byte == 0).then_some(Asked { number, cookie, request })
    }
}

/// Asks which address a port of the server sees.
pub(super) fn write_observe(number: u32, out: &mut Vec<u8>) {
    let end = out.len() + OBSERVE_BYTES;
    out.extend_from_slice(&[MAGIC, kind::OBSERVE]);
    out.extend_from_slice(&number.to_le_bytes());
    out.resize(end, 0);
}

/// The number of such a question.
pub(super) fn read_observe(datagram: &[u8]) -> Option<u32> {
    let asks = datagram.len() == OBSERVE_BYTES && datagram.starts_with(&[MAGIC, kind::OBSERVE]);
    asks.then(|| Fields(&datagram[2..]).u32())?
}

impl Answer {
    /// Writes the answer. An introduction is signed with the receiver's key.
    pub(super) fn write(&self, number: u32, key: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let kind = match self {
            Answer::Challenge { .. } => kind::CHALLENGE,
            Answer::Registered { .. } => kind::REGISTERED,
            Answer::Refused(_) => kind::REFUSED,
            Answer::Introduction(_) => kind::INTRODUCTION,
            Answer::Games { .. } => kind::GAMES,
            Answer::Observed(_) => kind::OBSERVED,
        };
        out.extend_from_slice(&[MAGIC, kind]);
        out.extend_from_slice(&number.to_le_bytes());
        match self {
            Answer::Challenge { cookie, second_port, seen } => {
                out.extend_from_slice(cookie);
                out.extend_from_slice(&second_port.to_le_bytes());
                write_address(Some(*seen), out);
            }
            Answer::Registered { code, seen } => {
                out.extend_from_slice(code.bytes());
                write_address(Some(*seen), out);
            }
            Answer::Refused(refusal) => out.push(*refusal as u8),
            Answer::Introduction(introduction) => {
                introduction.write(out);
                let tag = short_tag(key, &[b"introduction", &out[start..]]);
                out.extend_from_slice(&tag);
                debug_assert!(out.len() - start <= INTRODUCTION_BYTES);
            }
            Answer::Games { total, first, games } => {
                out.extend_from_slice(&total.to_le_bytes());
                out.extend_from_slice(&first.to_le_bytes());
                out.push(games.len() as u8);
                for game in games {
                    out.extend_from_slice(game.code.bytes());
                    write_info(&game.info, out);
                }
            }
            Answer::Observed(seen) => write_address(Some(*seen), out),
        }
    }

    pub(super) fn read(datagram: &[u8]) -> Option<(u32, Self)> {
        let mut fields = Fields(datagram);
        let [magic, kind] = fields.array()?;
        if magic != MAGIC {
            return None;
        }
        let number = fields.u32()?;
        let answer = match kind {
            kind::CHALLENGE => Answer::Challenge {
                cookie: fields.array()?,
                second_port: fields.u16()?,
                seen: fields.address()?,
            },
            kind::REGISTERED => {
                Answer::Registered { code: LobbyCode::from_bytes(fields.array()?)?, seen: fields.address()? }
            }
            kind::REFUSED => Answer::Refused(match fields.u8()? {
                1 => LobbyRefusal::UnknownCode,
                2 => LobbyRefusal::Protocol,
                3 => LobbyRefusal::GameFull,
                4 => LobbyRefusal::ServerFull,
                _ => return None,
            }),
            kind::INTRODUCTION => {
                let introduction = Introduction::read(&mut fields)?;
                let _proven_by_the_receiver = fields.array::<TAG_BYTES>()?;
                Answer::Introduction(introduction)
            }
            kind::GAMES => {
                let (total, first, count) = (fields.u16()?, fields.u16()?, usize::from(fields.u8()?));
                let read = |_| {
                    let code = LobbyCode::from_bytes(fields.array()?)?;
                    Some(ListedGame { code, info: read_info(&mut fields)? })
                };
                let games =
                    (count <= GAMES_A_PAGE).then(|| (0..count).map(read).collect::<Option<_>>())??;
                Answer::Games { total, first, games }
            }
            kind::OBSERVED => Answer::Observed(fields.address()?),
            _ => return None,
        };
        fields.0.is_empty().then_some((number, answer))
    }

    /// Whether an introduction was signed by someone with the key.
    pub(super) fn is_signed(datagram: &[u8], key: &[u8]) -> bool {
        let Some((signed, tag)) = datagram.split_last_chunk::<TAG_BYTES>() else { return false };
        same(tag, &short_tag(key, &[b"introduction", signed]))
    }
}

impl Introduction {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&self.key);
        out.push(u8::from(self.leads));
        write_address(Some(self.outside), out);
        write_sighting(&self.sighting, out);
        write_address(self.relay.as_ref().map(|(address, _)| *address), out);
        if let Some((_, token)) = &self.relay {
            out.extend_from_slice(token.bytes());
        }
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (session, key) = (fields.u64()?, fields.array()?);
        let leads = match fields.u8()? {
            flag @ 0..=1 => flag == 1,
            _ => return None,
        };
        let (outside, sighting) = (fields.address()?, read_sighting(fields)?);
        let relay = match fields.maybe_address()? {
            Some(address) => Some((address, RelayToken::from_bytes(fields.array()?))),
            None => None,
        };
        // The server filters these too, but an impostor in its place would not.
        let sighting = sighting.plausible(outside);
        Some(Introduction { session, key, leads, outside, sighting, relay })
    }
}

fn write_sighting(sighting: &Sighting, out: &mut Vec<u8>) {
    write_address(sighting.second, out);
    write_addresses(&sighting.inside, out);
}

fn read_sighting(fields: &mut Fields<'_>) -> Option<Sighting> {
    Some(Sighting { second: fields.maybe_address()?, inside: fields.addresses(MAX_INSIDE)? })
}

fn write_info(info: &GameInfo, out: &mut Vec<u8>) {
    out.extend_from_slice(&info.protocol_id.to_le_bytes());
    out.extend_from_slice(&[
        info.players,
        info.max_players,
        u8::from(info.listed) << 7 | info.title.len() as u8,
    ]);
    out.extend_from_slice(info.title.as_bytes());
}

fn read_info(fields: &mut Fields<'_>) -> Option<GameInfo> {
    let (protocol_id, [players, max_players, length]) = (fields.u64()?, fields.array()?);
    let (listed, length) = (length & 0x80 != 0, usize::from(length & 0x7F));
    let title = core::str::from_utf8((length <= MAX_TITLE_BYTES).then(|| fields.take(length))??).ok()?;
    is_title(title).then(|| GameInfo { title: title.into(), protocol_id, players, max_players, listed })
}

/// Whether a title may be shown to others.
pub fn is_title(title: &str) -> bool {
    title.len() <= MAX_TITLE_BYTES && !title.chars().any(char::is_control)
}
