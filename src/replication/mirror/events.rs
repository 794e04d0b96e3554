//! Events of a client's ghosts since the game's last take.
//!
//! Promises: each spawn has one despawn. A ghost that came and went between two takes has no events, so the number of
//! events is bounded by the ids.

/// What happened to a ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GhostEventKind {
    /// It exists, with its first values.
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
