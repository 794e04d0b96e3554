//! The relevancy of a whole world: a rule for each class, and which ghosts each client has by it.
//!
//! Promises: after [`Interests::update`] each client of the publisher has what is relevant to it, and nothing else. A
//! class whose rule, rows and viewpoints are unchanged costs a comparison per client. Ids are given in the order in
//! which ghosts spawned, so that they reveal nothing about the rows of others.

use std::collections::HashMap;

use super::class::Classes;
use super::name::GhostName;
use super::publisher::Publisher;
use super::relevancy::{Changes, ClassRelevancy, Interest, Relevancy, RelevancyError, View};
use crate::endpoint::PeerHandle;

/// The rules, and what clients have by them.
#[derive(Debug)]
pub struct Interests {
    /// By class, as all that follow.
    rules: Box<[ClassRelevancy]>,
    peers: HashMap<PeerHandle, Box<[ClassInterest]>>,
    /// The rows of the client and class in hand that it owns.
    owned: Vec<u32>,
    changes: Changes,
    /// Ghosts that clients were given between two ticks, because messages name them: client, class and row.
    ahead: Vec<(PeerHandle, usize, u32)>,
}

/// What a client has of a class, and the inputs of that decision.
#[derive(Debug, Default)]
struct ClassInterest {
    interest: Interest,
    viewpoints: Vec<[f64; 3]>,
    mask: Vec<u8>,
    /// For which rows the game chose it, a byte a row.
    chosen: Vec<u8>,
    /// Whether the ghosts that the client had from the beginning are in its interest.
    has_begun: bool,
}

impl Interests {
    pub fn new(classes: &Classes) -> Self {
        // All classes may have this one.
        let each = classes.iter().filter_map(|class| ClassRelevancy::new(class, Relevancy::Always).ok());
        Interests {
            rules: each.collect(),
            peers: HashMap::new(),
            owned: Vec::new(),
            changes: Changes::default(),
            ahead: Vec::new(),
        }
    }

    /// Changes the rule of a class.
    ///
    /// # Errors
    ///
    /// When the rule doesn't fit the class.
    pub fn set_rule(
        &mut self,
        classes: &Classes,
        class: usize,
        rule: Relevancy,
    ) -> Result<(), RelevancyError> {
        let (Some(of), Some(place)) = (classes.get(class), self.rules.get_mut(class)) else { return Ok(()) };
        *place = ClassRelevancy::new(of, rule)?;
        for of in self.peers.values_mut() {
            // No row has this number: forces a full check.
            of[class].interest.forget(u32::MAX);
        }
        Ok(())
    }

    /// The rule of a class.
    pub fn rule(&self, class: usize) -> Relevancy {
        self.rules.get(class).map_or(Relevancy::Always, |it| it.rule)
    }

    /// Sets the viewpoints of a client for a class with a grid; without any, its own ghosts are the viewpoints.
    pub fn set_viewpoints(&mut self, peer: PeerHandle, class: usize, viewpoints: Vec<[f64; 3]>) {
        self.of(peer)[class].viewpoints = viewpoints;
    }

    /// Sets which rows of a class a client has, a byte a row.
    pub fn set_mask(&mut self, peer: PeerHandle, class: usize, mask: Vec<u8>) {
        self.of(peer)[class].mask = mask;
    }

    /// Sets of which rows of a class a client is sent the properties that the game chooses for, a byte a row.
    pub fn set_chosen(&mut self, peer: PeerHandle, class: usize, rows: Vec<u8>) {
        self.of(peer)[class].chosen = rows;
    }

    fn of(&mut self, peer: PeerHandle) -> &mut [ClassInterest] {
        let count = self.rules.len();
        self.peers.entry(peer).or_insert_with(|| (0..count).map(|_| ClassInterest::default()).collect())
    }

    /// Forgets everything about a row's former ghost. Call it when a ghost spawns in the row: masks that were set
    /// before don't cover that ghost.
    pub fn forget(&mut self, class: usize, row: u32) {
        for of in self.peers.values_mut() {
            let ClassInterest { interest, mask, chosen, .. } = &mut of[class];
            interest.forget(row);
            for byte in [mask, chosen].into_iter().filter_map(|mask| mask.get_mut(row as usize)) {
                *byte = 0;
            }
        }
    }

    /// The name by which a client knows an object that it has, or will have from the next tick on. For an object
    /// spawned in this tick that is a prediction by the rule; the next [`Interests::update`] decides.
    pub fn name(
        &mut self,
        publisher: &mut Publisher,
        peer: PeerHandle,
        class: usize,
        row: u32,
    ) -> Option<GhostName> {
        if publisher.has(peer, class, row) {
            return publisher.name(peer, class, row);
        }
        let is_owner = publisher.owner(class, row) == Some(peer);
        let is_new = !publisher.table(class).has_state(row);
        let may = match self.rule(class) {
            Relevancy::Always => true,
            Relevancy::Owner => is_owner,
            Relevancy::Grid(_) => is_owner || is_new,
            Relevancy::Mask => self.of(peer)[class].mask.get(row as usize).is_some_and(|byte| *byte != 0),
        };
        if may && publisher.enter_ahead(peer, class, row) {
            self.ahead.push((peer, class, row));
        }
        publisher.name(peer, class, row)
    }

    /// Gives clients what is relevant from now on, and takes away the rest: after [`Publisher::begin_tick`].
    pub fn update(&mut self, publisher: &mut Publisher) {
        let tick = publisher.tick();
        let handles: Vec<PeerHandle> = publisher.peers().collect();
        if self.peers.len() > handles.len() {
            // They come by slot.
            self.peers.retain(|peer, _| {
                handles
                    .binary_search_by_key(&peer.slot, |other| other.slot)
                    .is_ok_and(|at| handles[at] == *peer)
            });
        }
        for class in 0..self.rules.len() {
            let table = publisher.table(class);
            self.rules[class].begin_tick(table);
            let by_owner = matches!(self.rule(class), Relevancy::Owner | Relevancy::Grid(_));
            for peer in &handles {
                self.owned.clear();
                if by_owner {
                    let table = publisher.table(class);
                    self.owned.extend(publisher.owned(*peer, class).filter(|row| table.has_state(*row)));
                }
                let count = self.rules.len();
                let of = self.peers.entry(*peer);
                let of = of.or_insert_with(|| (0..count).map(|_| ClassInterest::default()).collect());
                let ClassInterest { interest, viewpoints, mask, chosen, has_begun } = &mut of[class];
                if !core::mem::replace(has_begun, true) {
                    // A client that came back has ghosts already.
                    interest.assume(&publisher.shown_rows(*peer, class));
                }
                let view = View { owned: &self.owned, viewpoints, mask };
                self.rules[class].update(tick, publisher.table(class), view, interest, &mut self.changes);
                // In the order of spawning: row numbers are reused, so ids in their order would reveal ghosts that
                // the client has never seen. Ghosts of one tick are in row order.
                let table = publisher.table(class);
                self.changes.entered.sort_unstable_by_key(|row| (table.spawned_at(*row), *row));
                for row in self.changes.left.drain(..) {
                    publisher.leave(*peer, class, row);
                }
                for row in self.changes.entered.drain(..) {
                    // If it has no id yet, ask again in the next tick.
                    if !publisher.enter(*peer, class, row) && !publisher.has(*peer, class, row) {
                        interest.forget(row);
                    }
                }
                publisher.set_chosen(*peer, class, chosen);
                publisher.set_sight(*peer, class, self.rules[class].sight(interest));
            }
        }
        for (peer, class, row) in self.ahead.drain(..) {
            let of = self.peers.get(&peer);
            if !of.is_some_and(|of| of[class].interest.contains(row)) {
                publisher.leave(peer, class, row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::replication::{Column, Condition, GhostClass, PublisherConfig};
    use crate::wire::{Kind, Properties, Schema};

    const ONE: PeerHandle = PeerHandle { slot: 0, generation: 0 };
    const OTHER: PeerHandle = PeerHandle { slot: 1, generation: 0 };

    struct World {
        publisher: Publisher,
        interests: Interests,
        cells: Vec<u8>,
    }

    impl World {
        fn new(capacity: u32) -> Self {
            let schema = Schema::new([("x", Kind::Bits { bits: 8 })]).unwrap();
            let properties = Properties::new(schema).unwrap();
            let class = GhostClass::new("Dot", properties, [Condition::Always], capacity).unwrap();
            let classes = Arc::new(Classes::new([Arc::new(class)]).unwrap());
            let mut publisher = Publisher::new(classes.clone(), PublisherConfig { channel: 3, seed: 0 });
            publisher.add_peer(ONE);
            publisher.add_peer(OTHER);
            World { publisher, interests: Interests::new(&classes), cells: vec![0; capacity as usize] }
        }

        fn rule(&mut self, rule: Relevancy) {
            let classes = self.publisher.classes().clone();
            self.interests.set_rule(&classes, 0, rule).unwrap();
        }

        fn tick(&mut self) -> [Vec<u32>; 2] {
            let columns = [[Column { cells: &self.cells, scan: true }]];
            self.publisher.begin_tick(&columns, &mut Vec::new());
            self.interests.update(&mut self.publisher);
            [ONE, OTHER].map(|peer| (0..9).filter(|row| self.publisher.has(peer, 0, *row)).collect())
        }
    }

    #[test]
    fn rules_say_who_has_what_and_may_change() {
        let mut world = World::new(9);
        for owner in [Some(ONE), Some(OTHER), None] {
            world.publisher.spawn(0, owner).unwrap();
        }
        assert_eq!(world.tick(), [vec![0, 1, 2], vec![0, 1, 2]]);
        world.rule(Relevancy::Owner);
        assert_eq!(world.tick(), [vec![0], vec![1]]);
        world.publisher.set_owner(0, 2, Some(ONE));
        assert_eq!(world.tick(), [vec![0, 2], vec![1]]);
        world.rule(Relevancy::Mask);
        world.interests.set_mask(OTHER, 0, vec![1, 0, 1]);
        assert_eq!(world.tick(), [vec![], vec![0, 2]]);
        world.rule(Relevancy::Always);
        assert_eq!(world.tick(), [vec![0, 1, 2], vec![0, 1, 2]]);
    }

    #[test]
    fn ids_say_nothing_of_rows_that_hidden_ones_had() {
        let mut world = World::new(9);
        world.rule(Relevancy::Mask);
        (0..2).for_each(|_| _ = world.publisher.spawn(0, None).unwrap());
        assert!(world.tick().iter().all(Vec::is_empty));
        world.publisher.despawn(0, 0);
        world.interests.forget(0, 0);
        assert_eq!(world.publisher.spawn(0, None), Ok(0));
        world.interests.set_mask(ONE, 0, vec![1, 1]);
        assert_eq!(world.tick(), [vec![0, 1], vec![]]);
        assert_eq!([0, 1].map(|row| world.publisher.ghost_id(ONE, 0, row)), [Some(1), Some(0)]);
    }

    #[test]
    fn masks_end_with_their_ghosts() {
        let mut world = World::new(9);
        world.rule(Relevancy::Mask);
        world.publisher.spawn(0, None).unwrap();
        world.interests.set_mask(ONE, 0, vec![1]);
        assert_eq!(world.tick(), [vec![0], vec![]]);
        world.publisher.despawn(0, 0);
        // A mask that is set while the row is empty doesn't cover its next ghost either.
        world.interests.set_mask(OTHER, 0, vec![1]);
        assert_eq!(world.publisher.spawn(0, None), Ok(0));
        world.interests.forget(0, 0);
        assert!(world.tick().iter().all(Vec::is_empty));
    }

    #[test]
    fn a_row_that_ended_is_another_when_it_comes_again() {
        let mut world = World::new(9);
        world.publisher.spawn(0, None).unwrap();
        assert_eq!(world.tick()[0], [0]);
        world.interests.forget(0, 0);
        world.publisher.despawn(0, 0);
        assert_eq!(world.publisher.spawn(0, None), Ok(0));
        assert_eq!(world.tick()[0], [0]);
    }

    #[test]
    fn what_has_no_id_yet_is_asked_for_again() {
        let mut world = World::new(1);
        world.publisher.spawn(0, None).unwrap();
        assert_eq!(world.tick()[0], [0]);
        // Its create went out, so its end takes a round trip.
        let mut writer = crate::wire::BitWriter::new();
        let create = crate::endpoint::Feature::fill(&mut world.publisher, ONE, 3, 9000, &mut writer).unwrap();
        world.publisher.handle_notification(ONE, create, true);
        world.interests.forget(0, 0);
        world.publisher.despawn(0, 0);
        world.publisher.spawn(0, None).unwrap();
        assert_eq!(world.tick(), [vec![], vec![0]]);
        writer.clear();
        let end = crate::endpoint::Feature::fill(&mut world.publisher, ONE, 3, 9000, &mut writer).unwrap();
        world.publisher.handle_notification(ONE, end, true);
        assert_eq!(world.tick(), [vec![0], vec![0]]);
    }
}
