//! Live interoperation of netcode with an implementation that shares no code with ours, the crate
//! `renetcode`: each one's clients on the other's servers, in virtual time. Both are sans-IO, so datagrams
//! are carried by hand.
//!
//! Where it leaves the standard, ours does not follow, and a test says what comes of it (`deviations.rs`):
//! - it writes sequence 0 in no bytes instead of one, so the first challenge, denial and keep-alive of its server
//!   is no packet to anybody else; its next one is;
//! - it writes IPv6 addresses in tokens in network order instead of little-endian groups;
//! - it allows payloads of 1,300 bytes instead of 1,200;
//! - it keeps a token's client id in front of the public part, and doesn't pad the token.

mod deviations;
mod link;
mod our_client;
mod our_server;
mod tokens;
