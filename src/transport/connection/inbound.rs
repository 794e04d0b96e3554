//! The state of the peer besides its packets.

/// The peer's greeting and farewell.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    /// A packet of the peer had a hello.
    pub(super) hello_received: bool,
    /// The peer application's text about the end.
    pub(super) detail: Option<Box<str>>,
    /// The peer is a replayed capture: see [`ConnectionConfig`](super::ConnectionConfig).
    pub(super) is_replayed: bool,
}
