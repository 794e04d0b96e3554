//! Secure connections: netcode 1.02.
//!
//! Promises: nobody without a connect token connects; what arrives as a payload was sent by the holder of that
//! token, is unaltered and arrives at most once; nobody is answered with more bytes than he sent before he has
//! proven his address. It promises neither arrival nor order: that is the transport's.
//!
//! Refuses everything else: dropped and counted under a [`DropReason`], never answered.
//!
//! A sans-IO layer: [`Client`] and [`Server`] are functions of (state, bytes, now). `STATE_MACHINE.md` beside
//! this file has their states. A connection costs a server under 400 bytes and its replay window.

pub mod address;
pub mod challenge;
pub mod packet;
pub mod private_token;
pub mod replay;
pub mod token;

mod admission;
mod client;
mod config;
mod crypto;
mod cursor;
mod drops;
mod half_open;
mod keyed_hash;
mod leaving;
mod sealer;
mod server;
mod slots;
mod source_limit;
mod token_history;

pub use address::{AddressError, format_address, parse_address};
pub use client::{Client, ClientDisconnect, ClientEvent, ClientState};
pub use config::{ClientConfig, ConfigError, ServerConfig};
pub use crypto::Key;
pub use drops::{Counters, DropReason};
pub use sealer::{DISCONNECT_REPEATS, SEND_INTERVAL, SendError};
pub use server::{Received, Server, ServerDisconnect, ServerEvent};
pub use slots::ClientHandle;
pub use token::{ConnectToken, TOKEN_BYTES, TokenError, TokenParams};

/// Bytes of [`VERSION`].
const VERSION_BYTES: usize = 13;

/// Names the standard in tokens, requests and associated data.
const VERSION: &[u8; VERSION_BYTES] = b"NETCODE 1.02\0";

/// Bytes a backend may pass to the server in a token.
pub const USER_DATA_BYTES: usize = 256;
