//! A server's world: its ghosts, and which of them each client gets.
//!
//! Promises: no mask that was set before a ghost spawned covers the ghost, however it was spawned.

use std::sync::Arc;

use super::class::Classes;
use super::interests::Interests;
use super::name::GhostName;
use super::publisher::{Publisher, PublisherConfig};
use super::relevancy::{Relevancy, RelevancyError};
use super::table::{Column, Wrong};
use crate::endpoint::PeerHandle;

/// A publisher with the rules by which clients get its ghosts.
#[derive(Debug)]
pub struct ServedWorld {
    publisher: Publisher,
    interests: Interests,
}

impl ServedWorld {
    /// A world without ghosts, all of which will go to all clients.
    pub fn new(classes: Arc<Classes>, config: PublisherConfig) -> Self {
        let interests = Interests::new(&classes);
        ServedWorld { publisher: Publisher::new(classes, config), interests }
    }

    /// The objects, and the clients that get ghosts of them.
    pub fn publisher(&mut self) -> &mut Publisher {
        &mut self.publisher
    }

    /// The rules, masks and viewpoints. Masks cover the ghosts that exist now.
    pub fn interests(&mut self) -> &mut Interests {
        for (class, row) in self.publisher.take_newcomers() {
            self.interests.forget(class, row);
        }
        &mut self.interests
    }

    /// Begins the next tick with these columns, and decides which client gets what.
    pub fn begin_tick(&mut self, columns: &[Vec<Column<'_>>], wrong: &mut Vec<(usize, Wrong)>) {
        self.interests();
        self.publisher.begin_tick(columns, wrong);
        self.interests.update(&mut self.publisher);
    }

    /// The name by which a client knows a ghost that it has, or will have.
    pub fn name(&mut self, peer: PeerHandle, class: usize, row: u32) -> Option<GhostName> {
        self.interests();
        self.interests.name(&mut self.publisher, peer, class, row)
    }

    /// Changes the rule of a class.
    ///
    /// # Errors
    /// When the rule doesn't fit the class.
    pub fn set_rule(&mut self, class: usize, rule: Relevancy) -> Result<(), RelevancyError> {
        self.interests.set_rule(&self.publisher.classes().clone(), class, rule)
    }

    /// The class and row of each ghost whose owner left since the last call, if it has no new owner.
    pub fn take_orphans(&mut self) -> Vec<(usize, u32)> {
        let orphans: Vec<_> = self.publisher.take_orphans().collect();
        orphans.into_iter().filter(|(class, row)| self.publisher.owner(*class, *row).is_none()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::{Condition, GhostClass};
    use crate::wire::{Kind, Properties, Schema};

    const CLIENT: PeerHandle = PeerHandle { slot: 0, generation: 0 };

    #[test]
    fn a_mask_covers_no_ghost_that_spawned_later_in_its_row() {
        let properties = Properties::new(Schema::new([("x", Kind::Bits { bits: 8 })]).unwrap()).unwrap();
        let class = GhostClass::new("Dot", properties, [Condition::Always], 9).unwrap();
        let classes = Arc::new(Classes::new([Arc::new(class)]).unwrap());
        let mut world = ServedWorld::new(classes, PublisherConfig { channel: 3, seed: 0 });
        let has_row = |world: &mut ServedWorld| {
            world.begin_tick(&[vec![Column { cells: &[0], scan: true }]], &mut Vec::new());
            world.publisher().has(CLIENT, 0, 0)
        };
        world.publisher().add_peer(CLIENT);
        world.set_rule(0, Relevancy::Mask).unwrap();
        assert_eq!(world.publisher().spawn(0, None), Ok(0));
        world.interests().set_mask(CLIENT, 0, vec![1]);
        assert!(has_row(&mut world));
        world.publisher().despawn(0, 0);
        assert_eq!(world.publisher().spawn(0, None), Ok(0));
        assert!(!has_row(&mut world));
        world.publisher().despawn(0, 0);
        assert_eq!(world.publisher().spawn(0, None), Ok(0));
        world.interests().set_mask(CLIENT, 0, vec![1]);
        assert!(has_row(&mut world), "set after the spawn");
    }
}
