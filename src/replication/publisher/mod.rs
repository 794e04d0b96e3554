//! The server's side: its objects, what each client has of them, and the packets that say what changed.
//!
//! A tick is [`Publisher::begin_tick`], then for each client of [`Publisher::wants`] [`Publisher::choose`] within its budget;
//! packets are written as [`Feature::fill`] asks for them. What became of each comes back to
//! [`Publisher::handle_notification`].
//!
//! Promises: see [`super`]. What nobody has is quantised but never encoded; what many clients have is encoded once for all of
//! them that acked the same. A tick in which nothing changed costs a look at each client and nothing a ghost.

mod averages;
mod cache;
mod choose;
mod coded;
mod costs;
mod fill;
mod names;
mod past;
mod peer;
mod runs;
mod scope;

use std::sync::Arc;

use self::cache::Cache;
use self::choose::Chooser;
use self::coded::PacketCoder;
pub use self::costs::{ClassCosts, Costs};
use self::fill::TickData;
use self::past::ShownLog;
use self::peer::Peer;
use super::class::{Classes, HISTORY};
use super::coding::Snapshot;
use super::packet::MAX_OVERHEAD;
use super::table::{Column, Full, Table, Wrong};
use crate::endpoint::{Feature, PeerHandle};
use crate::wire::{BitWriter, ValueError};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherConfig {
    /// The payload channel of ghosts.
    pub channel: usize,
}

/// The server's objects and clients.
#[derive(Debug)]
pub struct Publisher {
    classes: Arc<Classes>,
    config: PublisherConfig,
    tick: u32,
    /// By class, as all that follow.
    tables: Box<[Table]>,
    caches: Box<[Cache]>,
    weights: Box<[Vec<f32>]>,
    /// By class, then by row.
    owners: Box<[Vec<Option<PeerHandle>>]>,
    costs: Box<[ClassCosts]>,
    /// Bits of packets besides records.
    packets: u64,
    // By slot.
    peers: Vec<Option<Box<Peer>>>,
    chooser: Chooser,
    /// Where a class is coded.
    coder: Option<Box<PacketCoder>>,
    models: Snapshot,
    /// Rows that changed for those who don't own them, and for those who do.
    changed_for: Vec<(u32, [bool; 2])>,
    /// What clients were shown, and the tick from which the world is remembered.
    shown: ShownLog,
    remembered_since: u32,
}

impl Publisher {
    /// A server without objects or clients.
    pub fn new(classes: Arc<Classes>, config: PublisherConfig) -> Self {
        let costs = |count| ClassCosts { properties: vec![0; count], ..ClassCosts::default() };
        let has_coded = classes.iter().any(|class| class.coded);
        Publisher {
            config,
            tick: 0,
            tables: classes.iter().map(|class| Table::new(class.clone(), HISTORY)).collect(),
            caches: classes.iter().map(|class| Cache::new(class)).collect(),
            weights: classes.iter().map(|_| Vec::new()).collect(),
            owners: classes.iter().map(|_| Vec::new()).collect(),
            costs: classes.iter().map(|class| costs(class.properties.each().len())).collect(),
            packets: 0,
            peers: Vec::new(),
            chooser: Chooser::default(),
            coder: has_coded.then(Box::default),
            models: Snapshot::first(&classes),
            changed_for: Vec::new(),
            shown: ShownLog::default(),
            remembered_since: 0,
            classes,
        }
    }

    pub fn classes(&self) -> &Arc<Classes> {
        &self.classes
    }

    /// The tick that was begun last, 0 before the first.
    pub fn tick(&self) -> u32 {
        self.tick
    }

    /// The objects of a class.
    ///
    /// # Panics
    /// When there is no such class; so do all that take one.
    pub fn table(&self, class: usize) -> &Table {
        &self.tables[class]
    }

    // --- clients -----------------------------------------------------------------------------------------

    /// Begins to serve a client, which has nothing until it is let have something.
    pub fn add_peer(&mut self, handle: PeerHandle) {
        let slot = handle.slot as usize;
        if self.peers.len() <= slot {
            self.peers.resize_with(slot + 1, || None);
        }
        if self.peer(handle).is_none() {
            self.peers[slot] = Some(Box::new(Peer::new(handle, &self.classes, &self.models)));
        }
    }

    /// Forgets a client. What it owned has no owner any more.
    pub fn remove_peer(&mut self, handle: PeerHandle) {
        if self.peer(handle).is_none() {
            return;
        }
        self.peers[handle.slot as usize] = None;
        for owner in self.owners.iter_mut().flatten() {
            owner.take_if(|owner| *owner == handle);
        }
    }

    pub fn peers(&self) -> impl Iterator<Item = PeerHandle> {
        self.peers.iter().flatten().map(|peer| peer.handle)
    }

    fn peer(&self, handle: PeerHandle) -> Option<&Peer> {
        self.peers.get(handle.slot as usize)?.as_deref().filter(|peer| peer.handle == handle)
    }

    fn peer_mut(&mut self, handle: PeerHandle) -> Option<&mut Peer> {
        self.peers.get_mut(handle.slot as usize)?.as_deref_mut().filter(|peer| peer.handle == handle)
    }

    // --- objects -----------------------------------------------------------------------------------------

    /// A new object, in the lowest free row. Its cells are to be written before the next tick; no client has it yet. Who is no
    /// client owns nothing.
    ///
    /// # Errors
    /// When there are as many as the class's capacity.
    pub fn spawn(&mut self, class: usize, owner: Option<PeerHandle>) -> Result<u32, Full> {
        let row = self.tables[class].spawn()?;
        let owner = owner.filter(|owner| self.peer(*owner).is_some());
        let owners = &mut self.owners[class];
        if owners.len() <= row as usize {
            owners.resize(row as usize + 1, None);
        }
        owners[row as usize] = owner;
        Ok(row)
    }

    /// Ends an object, for all clients too; false when there is none.
    pub fn despawn(&mut self, class: usize, row: u32) -> bool {
        if !self.tables[class].despawn(row) {
            return false;
        }
        for peer in self.peers.iter_mut().flatten() {
            if peer.scopes[class].leave(row) {
                self.shown.push(self.tick + 1, peer.handle, class, row, false);
            }
        }
        self.owners[class][row as usize] = None;
        // Clients know it by an id of their own, which they keep until they know of the end.
        self.tables[class].release(row);
        true
    }

    /// Who owns an object.
    pub fn owner(&self, class: usize, row: u32) -> Option<PeerHandle> {
        self.owners[class].get(row as usize).copied().flatten()
    }

    /// Gives an object to a client, or to none (nor to who is no client); false when there is no such object.
    pub fn set_owner(&mut self, class: usize, row: u32, owner: Option<PeerHandle>) -> bool {
        if !self.tables[class].is_alive(row) {
            return false;
        }
        let owner = owner.filter(|owner| self.peer(*owner).is_some());
        let before = core::mem::replace(&mut self.owners[class][row as usize], owner);
        if before != owner {
            let tick = self.tick;
            for (handle, owns) in [(before, false), (owner, true)] {
                if let Some(peer) = handle.and_then(|handle| self.peer_mut(handle)) {
                    peer.scopes[class].set_owner(row, tick, owns);
                }
            }
        }
        true
    }

    /// Sets a property without words, from the next tick on: see [`Table::set_cell`].
    ///
    /// # Errors
    /// Why the value can't be written.
    pub fn set_cell(
        &mut self,
        class: usize,
        row: u32,
        property: usize,
        body: &[u8],
    ) -> Result<bool, ValueError> {
        self.tables[class].set_cell(row, property, body)
    }

    /// Sets by how much the priorities of a class's objects are multiplied, by row, until they are set again. Rows beyond have 1;
    /// what isn't above 0 goes last.
    pub fn set_weights(&mut self, class: usize, weights: &[f32]) {
        let all = &mut self.weights[class];
        all.clear();
        all.extend_from_slice(weights);
    }

    // --- relevancy ---------------------------------------------------------------------------------------

    /// Lets a client have an object; false when it has it, or there is no such client or object, or no id: ask again in a
    /// later tick, when the client knows of ends.
    pub fn enter(&mut self, handle: PeerHandle, class: usize, row: u32) -> bool {
        let (tick, owner) = (self.tick, self.owner(class, row) == Some(handle));
        let capacity = self.tables[class].class().capacity;
        let enters = self.tables[class].is_alive(row)
            && self.peer_mut(handle).is_some_and(|peer| {
                let scope = &mut peer.scopes[class];
                scope.has_room(capacity) && scope.enter(row, tick, owner)
            });
        if enters {
            self.shown.push(tick, handle, class, row, true);
        }
        enters
    }

    /// Takes an object from a client; false when it doesn't have it.
    pub fn leave(&mut self, handle: PeerHandle, class: usize, row: u32) -> bool {
        let leaves = self.peer_mut(handle).is_some_and(|peer| peer.scopes[class].leave(row));
        if leaves {
            self.shown.push(self.tick, handle, class, row, false);
        }
        leaves
    }

    /// Whether a client has an object, or is about to get it.
    pub fn has(&self, handle: PeerHandle, class: usize, row: u32) -> bool {
        self.ghost_id(handle, class, row).is_some()
    }

    /// By which id a client knows an object.
    pub fn ghost_id(&self, handle: PeerHandle, class: usize, row: u32) -> Option<u32> {
        self.peer(handle)?.scopes[class].id_of(row)
    }

    // --- a tick ------------------------------------------------------------------------------------------

    /// Begins the next tick: reads the columns, by class and then by property, and marks what changed for those who have it. Adds
    /// to `errors` of each class the first value that can't be written; its row keeps the state that it had.
    pub fn begin_tick<'a, C: AsRef<[Column<'a>]>>(
        &mut self,
        columns: &[C],
        errors: &mut Vec<(usize, Wrong)>,
    ) {
        for peer in self.peers.iter_mut().flatten() {
            peer.end_tick(self.tick);
        }
        self.tick += 1;
        for (class, table) in self.tables.iter_mut().enumerate() {
            let columns = columns.get(class).map_or(&[][..], |columns| columns.as_ref());
            let cache = &self.caches[class];
            if let Err(wrong) = table.update_sent(self.tick, columns, |row| cache.encoded_at(row)) {
                errors.push((class, wrong));
            }
            self.caches[class].begin_tick(self.tick, table.rows(), &mut self.costs[class].properties);
            let changed = table.changed();
            if changed.is_empty() {
                continue;
            }
            let (class_of, tick) = (table.class(), self.tick);
            if class_of.is_plain() {
                for peer in self.peers.iter_mut().flatten() {
                    peer.scopes[class].mark_changed(table.changed_blocks());
                }
                continue;
            }
            // What a client isn't told of changes nothing of what it gets.
            let masks = [class_of.updated(false), class_of.updated(true)];
            self.changed_for.clear();
            self.changed_for.extend(changed.iter().map(|row| {
                let mask = table.changed_since(*row, tick - 1);
                (*row, masks.map(|updated| mask & updated != 0 || table.spawned_at(*row) == tick))
            }));
            for peer in self.peers.iter_mut().flatten() {
                peer.scopes[class].mark_changed_for(&self.changed_for);
            }
        }
    }

    /// The clients for whom something is due, with the least room in which anything of it can be said.
    pub fn wants(&self) -> impl Iterator<Item = (PeerHandle, usize)> {
        self.peers.iter().flatten().filter(|peer| peer.is_due(self.tick)).map(|peer| {
            let due = peer.scopes.iter().zip(self.classes.iter()).filter(|(scope, _)| scope.due_count() > 0);
            let most = due.map(|(_, class)| {
                let overhead = if class.coded { coded::MAX_OVERHEAD } else { 0 };
                class.properties.schema().max_bits() + overhead
            });
            (peer.handle, MAX_OVERHEAD + most.max().unwrap_or(0))
        })
    }

    /// Decides what of a client's due ghosts goes out in this tick, in about this many bits; where there are any, at least one
    /// ghost does. Without it all do, as far as there is room.
    pub fn choose(&mut self, handle: PeerHandle, budget_bits: usize) {
        let Publisher { peers, tick, weights, chooser, .. } = self;
        let peer = peers.get_mut(handle.slot as usize).and_then(|peer| peer.as_deref_mut());
        if let Some(peer) = peer.filter(|peer| peer.handle == handle) {
            chooser.choose(peer, *tick, budget_bits as f32, weights);
            peer.has_chosen = true;
        }
    }

    /// What became of a packet, by the record that it was given.
    pub fn handle_notification(&mut self, handle: PeerHandle, record: u32, delivered: bool) {
        let tick = self.tick;
        if let Some(peer) = self.peer_mut(handle) {
            peer.handle_notification(record, delivered, tick);
        }
    }

    /// The tick in which anything changed last that each client owns and gets, by slot: 0 where it owns nothing.
    pub fn owned_changes(&self, by_slot: &mut Vec<u32>) {
        by_slot.clear();
        by_slot.resize(self.peers.len(), 0);
        for ((owners, table), class) in self.owners.iter().zip(&self.tables).zip(self.classes.iter()) {
            let mask = class.updated(true);
            for (owner, row) in owners.iter().zip(0..) {
                if let Some(changed) = owner.and_then(|owner| by_slot.get_mut(owner.slot as usize)) {
                    *changed = (*changed).max(table.last_change(row, mask));
                }
            }
        }
    }

    // --- questions ---------------------------------------------------------------------------------------

    /// What all that was sent cost.
    pub fn costs(&self) -> Costs {
        let mut costs = Costs { classes: self.costs.to_vec(), packets: self.packets };
        for (cache, class) in self.caches.iter().zip(&mut costs.classes) {
            cache.add_costs(&mut class.properties);
        }
        costs
    }

    /// Bits of all payloads for a client.
    pub fn peer_bits(&self, handle: PeerHandle) -> u64 {
        self.peer(handle).map_or(0, |peer| peer.bits)
    }

    /// Ghosts that are due for a client.
    pub fn due(&self, handle: PeerHandle) -> usize {
        self.peer(handle).map_or(0, |peer| peer.scopes.iter().map(|scope| scope.due_count()).sum())
    }
}

impl Feature for Publisher {
    fn fill(
        &mut self,
        handle: PeerHandle,
        channel: usize,
        bits: usize,
        writer: &mut BitWriter,
    ) -> Option<u32> {
        if channel != self.config.channel {
            return None;
        }
        let peer = self.peers.get_mut(handle.slot as usize)?.as_deref_mut()?;
        if peer.handle != handle {
            return None;
        }
        if !peer.has_chosen {
            peer.has_chosen = true;
            self.chooser.choose(peer, self.tick, f32::MAX, &self.weights);
        }
        peer.make_ready(bits);
        let mut world = TickData {
            tick: self.tick,
            class_bits: self.classes.class_bits(),
            tables: &self.tables,
            caches: &mut self.caches,
            costs: &mut self.costs,
            coder: self.coder.as_deref_mut(),
        };
        let overhead = world.fill(peer, bits, writer)?;
        self.packets += overhead;
        peer.bits += writer.bit_len() as u64;
        Some(peer.track_sent(self.tick))
    }
}

#[cfg(test)]
mod tests;
