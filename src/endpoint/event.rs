//! Events of an endpoint's connections.

use core::net::SocketAddr;

use super::PeerHandle;
use super::reason::DisconnectReason;
use crate::netcode::USER_DATA_BYTES;
use crate::transport::{CloseReason, Violation};

/// Something happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client that dialled us is in one of our slots.
    Accepted {
        peer: PeerHandle,
        /// The id in its connect token.
        client_id: u64,
        address: SocketAddr,
        /// The user data in its connect token.
        user_data: Box<[u8; USER_DATA_BYTES]>,
    },
    /// We got a slot on a server that we dialled.
    Dialled { peer: PeerHandle, client_index: u32, max_clients: u32 },
    /// A connection is over, or one that we dialled never came up. Messages that the peer had sent still come with
    /// the inbox.
    Disconnected {
        /// The handle, which is stale now.
        peer: PeerHandle,
        reason: DisconnectReason,
        /// How the peer broke the protocol, if it did.
        violation: Option<Violation>,
        /// The reason text from the application that ended it.
        detail: Option<Box<str>>,
    },
}

impl Event {
    /// The peer that the event is about.
    pub fn peer(&self) -> PeerHandle {
        match self {
            Event::Accepted { peer, .. } | Event::Dialled { peer, .. } | Event::Disconnected { peer, .. } => {
                *peer
            }
        }
    }
}

/// Events of the secure connections below.
pub(super) enum LinkEvent {
    /// A connection is up; chunks of the peer are kept under this id.
    Up { event: Event, id: u64 },
    /// A connection is gone. The peer is told, and an `answer` can tell it why.
    Down { peer: PeerHandle, reason: DisconnectReason, answer: Option<CloseReason>, detail: Option<Box<str>> },
}
