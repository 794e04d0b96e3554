//! The events and payloads that a server reports to the layer above.

use core::net::SocketAddr;

use super::USER_DATA_BYTES;
use super::slots::ClientHandle;

/// The result of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// A payload of a connected client.
    Payload {
        client: ClientHandle,
        /// The packet's sequence: each comes once.
        number: u64,
        /// The payload, in the datagram's own memory.
        payload: &'a [u8],
    },
    /// Nothing for the layer above.
    Nothing,
}

/// Why a client is gone, other than by [`Server::disconnect`](super::Server::disconnect).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerDisconnect {
    TimedOut,
    ByPeer,
    /// The same client connected again: its next connection is the next event.
    Replaced,
}

/// An event of a client. Poll after each datagram and update to get events and payloads in order; events wait until
/// polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A client has a slot.
    Connected {
        client: ClientHandle,
        /// The client's id in the backend.
        client_id: u64,
        address: SocketAddr,
        /// The backend's data about the client.
        user_data: Box<[u8; USER_DATA_BYTES]>,
    },
    /// A client is gone and its slot is free. Our own disconnects raise no event.
    Disconnected { client: ClientHandle, reason: ServerDisconnect },
}
