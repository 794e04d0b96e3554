//! How peers behind NATs find and reach each other: a lobby, hole punching, a relay.
//!
//! Promises: all three parts are sans-IO; no part sends an unproven address more than it got from there, or keeps
//! anything for it; a datagram is exactly a message or dropped under a name; the game's datagrams are carried
//! unchanged, sealed by netcode from end to end.
//! Refuses to hide who plays with whom: the server and everyone on the path to it sees the addresses, and an attacker
//! who can change datagrams on their way can keep peers apart. Nobody can read or forge a game that way.
//!
//! ## The three parts
//!
//! [`RendezvousServer`] gives a game a code and tells who asks for it, and the game's host, of each other at the same time.
//! [`RendezvousClient`] is a peer's part and shares the game's port: its datagrams begin with [`MAGIC`], which netcode's
//! never do. It tries the other side's addresses and takes one that answers. [`RelayServer`] carries for the rest; or, in a game
//! that both sides are in, a [member](carrying) that reaches both.
//!
//! ## On the wire
//!
//! All is little-endian, after the first byte and the kind; an address is its family (0, 4, 6), 16 bytes and a port.
//!
//! | kind | from | to | says |
//! |---|---|---|---|
//! | 11 register | host | server | number, cookie, secret, game, addresses |
//! | 12 unregister | host | server | number, cookie, secret |
//! | 13 join | joiner | server | number, cookie, code, protocol id, nonce, addresses |
//! | 14 list | anybody | server | number, cookie, protocol id, first |
//! | 15 observe | anybody | a port of the server | number |
//! | 21 challenge | server | a peer without cookie | number, cookie, second port, address seen |
//! | 22 registered, 23 refused, 25 games, 26 observed | server | the peer that asked | number, and the answer |
//! | 24 introduction | server | both | number (0 for the host), session, key, which one leads, addresses, relay and
//! token; signed |
//! | 31 bind | peer | relay | cookie, token |
//! | 32 challenge, 33 bound | relay | the peer that binds | channel, cookie |
//! | 34 data | peer, relay | relay, peer | channel, the datagram |
//! | 41 ask, 42 reply, 43 take, 44 taken | peer | peer | session, number; signed |

mod bytes;
pub mod carrying;
pub mod client;
mod code;
mod messages;
mod probe;
pub mod relay;
mod secrets;
pub mod server;

pub use bytes::MAGIC;
pub use carrying::{CARRIED_HEAD, CarriedHere, MemberRelay, Neighbour, member_address, member_of};
pub use client::{
    Handled, JoinId, MeetingFault, PathKind, RendezvousClient, RendezvousEvent, is_virtual, lobby_address,
    lobby_code,
};
pub use code::{CODE_LETTERS, CodeError, LobbyCode};
pub use messages::{
    GameInfo, Introduction, ListedGame, LobbyRefusal, MAX_INSIDE, MAX_TITLE_BYTES, Sighting, is_title,
};
pub use relay::{RelayServer, RelayServerConfig};
pub use server::{RelayOffer, RendezvousServer, RendezvousServerConfig};
