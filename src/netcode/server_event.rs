//! The events and payloads that a server reports to the layer above.

use core::net::SocketAddr;

use super::USER_DATA_BYTES;
use super::slots::ClientHandle;

/// A payload of a connected client: the client, the packet's sequence, of which each comes once, and the payload in the
/// datagram's own memory.
pub type Received<'a> = (ClientHandle, u64, &'a [u8]);

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
