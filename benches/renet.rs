//! The same messages through Tickwire's endpoints and through `renet`, in memory: a server and 64 clients, in each tick
//! one message from each client and to each, and floods over one connection.
//!
//! Tickwire seals every packet (netcode 1.02: ChaCha20-Poly1305) and acks it; renet here is the layer above its
//! transport, without encryption. `renet_sealed` adds what its own transport would: `renetcode`, which speaks the same
//! protocol. Times are of both ends together, per message.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use renet::{Bytes, ConnectionConfig as RenetConfig, DefaultChannel, RenetClient, RenetServer};
use renetcode::{
    ClientAuthentication, ConnectToken as RenetToken, NetcodeClient, NetcodeServer, ServerAuthentication,
    ServerConfig as RenetServerConfig, ServerResult,
};
use tickwire::endpoint::{
    ChunkLimits, Client, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Inbox, Server, ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::rng::Pcg32;
use tickwire::store::Datagrams;
use tickwire::time::{Instant, UnixSeconds};
use tickwire::transport::{
    Body, BudgetConfig, ChannelConfig, ConnectionConfig, Message, MessageType, Protocol, SendOptions,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema};
