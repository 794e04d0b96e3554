//! Ghosts that messages name: see [`crate::replication::GhostName`].

use super::Mirror;
use crate::replication::name::GhostName;
use crate::store::sequence::nearest;

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The ghost with this id.
    Here { id: u32 },
    /// One that has ended.
    Gone,
    /// One that has not arrived, or that the game was not told of.
    Awaited,
}

impl Mirror {
    /// The name of the ghost with this id, as the game has it since it last took what changed.
    pub fn name(&self, id: u32) -> GhostName {
        GhostName { id, as_of: self.taken as u16 }
    }

    /// The ghost that the server names.
    pub fn named(&self, class: usize, name: GhostName) -> Named {
        let GhostName { id, as_of } = name;
        let (Some(ghosts), Some(as_of)) = (self.ghosts.get(class), nearest(as_of, self.tick)) else {
            return Named::Awaited;
        };
        let ends = self.ended().any(|ended| ended == (class, id));
        if self.tick > 0 && ghosts.destroyed_at(id as usize) >= as_of {
            Named::Gone
        } else if ghosts.is_reported(id as usize) && !ends {
            Named::Here { id }
        } else {
            Named::Awaited
        }
    }
}
