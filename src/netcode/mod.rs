//! Secure connections: netcode 1.02.
//!
//! Promises: nobody without a connect token connects; an arriving payload was sent by that token's holder, is unaltered
//! and arrives at most once; nobody is answered with more bytes than they sent before they have proven their address by
//! a challenge sent there. It promises neither arrival nor order, which are the transport's.
//!
//! Refuses everything else: dropped and counted under a [`DropReason`], never answered. The exception is a server in
//! development mode, which tells clients with another id or key what differs: see [`Refusal`].
//!
//! ## What is trusted, what is checked, what is bounded
//!
//! | from the network | trusted | checked, in this order | bounded by |
//! |---|---|---|---|
//! | request | nothing | exact length, version, protocol id, expiry, history, source limit, then the token's seal | decrypts: 32 a second and source, and 131,072 for all together; memory: the half-open places and the history |
//! | token, opened | the backend | addresses (1 to 32), this server, client id, places | as above |
//! | response | nothing | half-open address, kind, length, seal, then the challenge's seal, token and address | an answer shorter than itself |
//! | packet of a connected address | nothing | kind, length, replay, then its seal | one decrypt of at most 1,200 bytes |
//! | the same, opened | its client, for its own connection | length of the kind | its slot |
//! | packet to a client | nothing | address, kind, length, replay, then its seal | one decrypt |
//!
//! What the standard leaves open stays open: all servers of a token share its keys, and each starts a connection's
//! sequences at 0. Our client goes on to the next server only from one that it hasn't answered, or that was full: one
//! that may have accepted it, unheard, would use the same nonces as the next. Other clients don't take this care, and
//! two clients may have one token. A backend that must exclude this gives out tokens for one server.
//!
//! A sans-IO layer: [`Client`] and [`Server`] are functions of (state, bytes, now). `STATE_MACHINE.md` beside
//! this file has their states. A connection costs a server under 400 bytes and its replay window.

pub mod challenge;
pub mod opener;
pub mod packet;
pub mod private_token;
pub mod replay;
pub mod token;

mod address;
mod admission;
mod client;
mod client_state;
mod config;
mod crypto;
mod cursor;
mod drops;
mod explanation;
mod half_open;
mod leaving;
mod sealer;
mod server;
mod server_event;
mod slots;
mod token_error;
mod token_history;
mod token_use;

pub use client::Client;
pub use client_state::{ClientDisconnect, ClientEvent, ClientState};
pub use config::{ClientConfig, ServerConfig};
pub use crypto::Key;
pub use drops::{Counters, DropReason};
pub use explanation::{MAX_NOTE_BYTES, Refusal, UpperProtocol, hash_address};
pub use leaving::{Farewell, Repeats};
pub use sealer::{DISCONNECT_REPEATS, SEND_INTERVAL, SendError};
pub use server::Server;
pub use server_event::{Received, ServerDisconnect, ServerEvent};
pub use slots::ClientHandle;
pub use token::{ConnectToken, TokenIdentity, TokenParams};
pub use token_error::TokenError;
pub use token_use::TokenUse;

// Bytes of `VERSION`.
const VERSION_BYTES: usize = 13;

/// How the [`VERSION`]s of netcode begin.
const NAME: &[u8] = b"NETCODE ";

/// Names the standard in tokens, requests and associated data.
const VERSION: &[u8; VERSION_BYTES] = b"NETCODE 1.02\0";

/// Bytes of a connect token.
pub const TOKEN_BYTES: usize = 2048;

/// Bytes a backend may pass to the server in a token.
pub const USER_DATA_BYTES: usize = 256;
