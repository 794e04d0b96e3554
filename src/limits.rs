//! Every bound that more than one layer must know, with its reason. Bounds of one layer live in that layer.

/// Largest netcode payload: the standard's, chosen so that a datagram (payload + 25 bytes of netcode + 28
/// of IPv4/UDP = 1,253) stays under IPv6's guaranteed 1,280.
pub const MAX_PAYLOAD: usize = 1200;

/// Largest datagram netcode 1.02 lets anyone send (the standard's receive buffer).
pub const MAX_DATAGRAM: usize = 1300;

/// Bytes around a netcode payload in its IP packet, at most: IPv6, UDP, and netcode's prefix, sequence and tag.
pub const PAYLOAD_OVERHEAD: usize = 40 + 8 + (1 + 8 + 16);

/// The path MTU that all packets fit unless set otherwise: IPv6's guaranteed one.
pub const DEFAULT_MTU: usize = 1280;

/// The smallest path MTU to set: where the connection request doesn't fit, with IPv6, nobody connects.
pub const MIN_MTU: usize = 40 + 8 + 1078;

/// Client slots of one server: the most that a slot index may name.
pub const MAX_CLIENT_SLOTS: usize = 65_536;
