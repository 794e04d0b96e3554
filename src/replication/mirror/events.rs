//! What happened to a client's ghosts since the game last asked.
//!
//! Promises: each spawn has one despawn. A ghost that came and went between two ticks of the game is not told of, so that what
//! waits is bounded by the ids.

/// What happened to a ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GhostEventKind {
    /// It is there, with its first values.
    Spawned,
    /// Properties of this mask have other values.
    Changed { mask: u64 },
    /// From now on the client owns it, or no longer.
    Owned { owner: bool },
    /// It is gone. Its id may be another ghost's.
    Despawned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GhostEvent {
    pub class: u16,
    /// The ghost's id: its row among the client's ghosts of the class.
    pub id: u32,
    pub kind: GhostEventKind,
}
