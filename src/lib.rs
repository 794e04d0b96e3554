//! # Tickwire
//!
//! Real-time game networking: a native UDP transport that Python game logic sits on.
//!
//! ## The layer map
//!
//! Arrows point down only; siblings don't know each other. `tests/rust/layers.rs` checks this table.
//!
//! | layer | modules | promises |
//! |---|---|---|
//! | 9 | `python` (feature `python`) | converts and delegates; the only place that knows PyO3 |
//! | 8 | [`driver`], [`netsim`] | sockets and clocks; links that misbehave on purpose |
//! | 7 | [`session`] | one tick in code: an endpoint and what is above it, in order |
//! | 6 | [`replication`] | ghosts: copies of the server's world on every client, by acked baselines |
//! | 5 | [`articles`] | parts for protocols of one's own, which no other module uses: chunks, a plain connection |
//! | 5 | [`endpoint`] | servers, clients and hosts as sans-IO machines: peers, events, messages |
//! | 4 | [`netcode`], [`transport`] | secure connections (netcode 1.02); one conversation: acks, channels, framing |
//! | 4 | [`timeline`] | the server's tick on a client, its lead, inputs by tick, the time to show |
//! | 4 | [`mesh`] | who is in a game of peers, and which of them is the master |
//! | 4 | [`lockstep`] | turns in which all players run the same commands; desyncs; recorded matches |
//! | 4 | [`rollback`] | every player runs the game at once on guessed inputs, and corrects it |
//! | 4 | [`rendezvous`] | connects peers behind NATs: lobby codes, hole punching, a relay |
//! | 3 | [`wire`] | bytes and bits (serialize 1.0), message schemas |
//! | 3 | [`calls`] | how many calls a peer may make, and which requests wait for a reply |
//! | 2 | [`store`] | fixed-capacity containers |
//! | 1 | [`time`], [`limits`], [`rng`], [`exact`] | instants as inputs, shared bounds with their reasons, a seeded generator, functions that are the same on every platform |
//!
//! Everything below `driver` is sans-IO: a function of (state, bytes, now). No sockets, clocks, threads,
//! Python or hidden randomness. The same seed and the same calls give the same bytes.
//!
//! Verbs tell the kind of a method: `handle_` takes something from the network, a plain verb comes from
//! the application, `poll_` yields output, a noun asks a question.

pub mod exact;
pub mod limits;
pub mod rng;
pub mod time;

pub mod store;

pub mod wire;

pub mod calls;
pub mod mesh;

pub mod lockstep;
pub mod netcode;
pub mod rendezvous;
pub mod rollback;
pub mod timeline;
pub mod transport;

pub mod articles;
pub mod endpoint;

pub mod replication;

pub mod session;

pub mod driver;
pub mod netsim;

#[cfg(feature = "python")]
pub mod python;
