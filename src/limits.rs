//! Bounds that more than one layer must know, with their reasons. Bounds of one layer are in that layer.

/// The largest netcode payload: the standard's, chosen so that a datagram (payload + 25 bytes of netcode + 28 of
/// IPv4/UDP = 1,253) stays below IPv6's guaranteed 1,280.
pub const MAX_PAYLOAD: usize = 1200;

/// The largest datagram that netcode 1.02 allows (the standard's receive buffer).
pub const MAX_DATAGRAM: usize = 1300;

/// The maximum of bytes around a netcode payload in its IP packet: IPv6, UDP, and netcode's prefix, sequence and tag.
pub const PAYLOAD_OVERHEAD: usize = 40 + 8 + (1 + 8 + 16);

/// The default path MTU, IPv6's guaranteed one.
pub const DEFAULT_MTU: usize = 1280;

/// The smallest path MTU that can be set: over IPv6, the connection request needs as much.
pub const MIN_MTU: usize = 40 + 8 + 1078;

/// The maximum of client slots on a server.
pub const MAX_CLIENT_SLOTS: usize = 65_536;
