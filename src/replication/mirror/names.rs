//! Ghosts that messages name: see [`crate::replication::GhostName`].

use super::Mirror;
use crate::replication::name::GhostName;
use crate::store::sequence::nearest;

/// The state of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The ghost with this id.
    Here { id: u32 },
    /// One that has ended.
    Gone,
    /// A ghost that has not arrived, or was not reported to the game.
    Awaited,
}

impl Mirror {
    /// The state of the name with this id, as of the game's last take.
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
        if self.tick > 0 && ghosts.pages.head(id as usize).destroyed >= as_of {
            Named::Gone
        } else if ghosts.is_reported(id as usize) && !ends {
            Named::Here { id }
        } else {
            Named::Awaited
        }
    }
}
