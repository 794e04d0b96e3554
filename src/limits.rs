//! Every bound that more than one layer must know, with its reason. Bounds of one layer live in that layer.

/// Largest netcode payload: the standard's, chosen so that a datagram (payload + 25 bytes of netcode + 28
/// of IPv4/UDP = 1,253) stays under IPv6's guaranteed 1,280.
pub const MAX_PAYLOAD: usize = 1200;

/// Largest datagram netcode 1.02 lets anyone send (the standard's receive buffer).
pub const MAX_DATAGRAM: usize = 1300;

/// One past [`MAX_DATAGRAM`]: a receive buffer of this size tells a longer datagram from one that fits,
/// so nothing is ever truncated silently.
pub const RECEIVE_BUFFER: usize = MAX_DATAGRAM + 1;

/// Client slots of one server: the most that a slot index may name.
pub const MAX_CLIENT_SLOTS: usize = 65_536;
