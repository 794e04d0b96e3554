//! How peers behind boxes that translate addresses (NATs) find and reach each other: a lobby, punching, a relay.
//!
//! Promises: sans-IO, all three parts; no part answers who didn't prove its address with more than it got, and keeps
//! anything of it; what is read is exactly a message or dropped under a name; the game's datagrams are carried as they are,
//! sealed by netcode from end to end.
//! Refuses to hide who plays with whom: the server and all on the way to it see the addresses, and who can change
//! datagrams on their way can keep peers apart. Nobody reads or forges a game by it.
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
//! | 21 challenge | server | who has no cookie | number, cookie, second port, address seen |
//! | 22 registered, 23 refused, 25 games, 26 observed | server | who asked | number, and what was asked for |
//! | 24 introduction | server | both | number (0 for the host), session, key, who leads, addresses, relay and token; signed |
//! | 31 bind | peer | relay | cookie, token |
//! | 32 challenge, 33 bound | relay | who binds | channel, cookie |
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
mod source_limit;

pub use bytes::MAGIC;
pub use carrying::{CARRIED_HEAD, CarriedHere, MemberRelay, Neighbour, member_address, member_of};
pub use client::{
    Handled, JoinId, PathKind, RendezvousClient, RendezvousEvent, is_virtual, lobby_address, lobby_code,
};
pub use code::{CODE_LETTERS, CodeError, LobbyCode};
pub use messages::{
    GameInfo, Introduction, ListedGame, LobbyRefusal, MAX_INSIDE, MAX_TITLE_BYTES, Sighting, is_title,
};
pub use relay::{RelayServer, RelayServerConfig};
pub use server::{RelayOffer, RendezvousServer, RendezvousServerConfig};
