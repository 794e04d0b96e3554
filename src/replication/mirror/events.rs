//! What happened to a client's ghosts since the game last asked, in order.
//!
//! Promises: each spawn has one despawn. A ghost that came and went between two ticks of the game is not told of, so that what
//! waits is bounded by the ids.

/// What happened to a ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
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
    pub happened: Happened,
}

/// Spawns and despawns that were not taken.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// None where both the spawn and the despawn were.
    events: Vec<Option<GhostEvent>>,
    cancelled: usize,
}

impl Pending {
    pub(super) fn push(&mut self, event: GhostEvent) {
        self.events.push(Some(event));
    }

    /// Takes back the last event of this ghost, a spawn.
    pub(super) fn cancel_spawn(&mut self, class: u16, id: u32) {
        let spawn = GhostEvent { class, id, happened: Happened::Spawned };
        let Some(found) = self.events.iter_mut().rev().find(|event| **event == Some(spawn)) else { return };
        *found = None;
        self.cancelled += 1;
        if self.cancelled > 64 && self.cancelled > self.events.len() / 2 {
            self.events.retain(Option::is_some);
            self.cancelled = 0;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &GhostEvent> {
        self.events.iter().flatten()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.len() == self.cancelled
    }

    pub(super) fn take(&mut self, events: &mut Vec<GhostEvent>) {
        events.extend(self.events.drain(..).flatten());
        self.cancelled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_went_takes_no_memory() {
        let (mut pending, mut events) = (Pending::default(), Vec::new());
        let of = |id, happened| GhostEvent { class: 0, id, happened };
        pending.push(of(7, Happened::Despawned));
        for id in 0..10_000 {
            pending.push(of(id, Happened::Spawned));
            pending.cancel_spawn(0, id);
        }
        pending.push(of(7, Happened::Spawned));
        assert!(pending.events.len() < 200);
        pending.take(&mut events);
        assert_eq!(events, [of(7, Happened::Despawned), of(7, Happened::Spawned)]);
    }
}
