//! The server's half: its objects, the state of each client, and the packets of changes.
//!
//! A tick is [`Publisher::begin_tick`], then for each client of [`Publisher::wants`] [`Publisher::choose`] within its
//! budget; packets are written when [`Feature::fill`] asks for them. [`Publisher::handle_notification`] hears the fate
//! of each.
//!
//! Promises: see [`super`]. An object that no client has is quantised but never encoded; what many clients have is
//! encoded once for all that acked the same state. A tick without changes costs a little per client and nothing per
//! ghost.

mod averages;
mod cache;
mod choose;
mod coded;
mod costs;
mod fill;
mod given;
mod memory;
mod named;
mod names;
mod part;
mod past;
mod peer;
mod runs;
mod saving;
mod scope;
mod urgency;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use self::cache::Cache;
use self::choose::Chooser;
use self::coded::PacketCoder;
pub use self::costs::{ClassCosts, Costs};
use self::fill::TickData;
use self::past::ShownLog;
use self::peer::{Memory, Peer};
pub use self::urgency::Sight;
use super::class::{Classes, HISTORY};
use super::packet::{Audience, MAX_OVERHEAD, Visit};
use super::table::{Column, Full, Table, Wrong};
use crate::endpoint::{Feature, PeerHandle};
use crate::wire::{BitWriter, ValueError};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherConfig {
    /// The payload channel for ghosts.
    pub channel: usize,
    /// Decides the numbers of visits: another one for each server that ever was.
    pub seed: u64,
}

/// The server's objects and clients.
#[derive(Debug)]
pub struct Publisher {
    classes: Arc<Classes>,
    config: PublisherConfig,
    tick: u32,
    /// By class, as are all below.
    tables: Box<[Table]>,
    caches: Box<[Cache]>,
    weights: Box<[Vec<f32>]>,
    must: Box<[Vec<u8>]>,
    /// By class, then by row.
    owners: Box<[Vec<Option<PeerHandle>>]>,
    /// Class and row of objects whose owners left, until they are taken.
    orphans: BTreeSet<(usize, u32)>,
    /// The objects that spawned since they were last taken, by class and row.
    newcomers: BTreeSet<(usize, u32)>,
    /// By class and row of objects whose owners left: the client ids of these.
    waiting: BTreeMap<(usize, u32), u64>,
    /// Clients that left, the longest gone first.
    memories: VecDeque<Memory>,
    /// How many of them the saved world had.
    most_remembered: usize,
    /// How many visits there were.
    visits: u64,
    costs: Box<[ClassCosts]>,
    /// Bits of packets outside records.
    packets: u64,
    // By slot.
    peers: Vec<Option<Box<Peer>>>,
    chooser: Chooser,
    /// Set if any class is coded.
    coder: Option<Box<PacketCoder>>,
    /// What clients were shown, and the first remembered tick.
    shown: ShownLog,
    remembered_since: u32,
}

impl Publisher {
    /// A server without objects or clients.
    pub fn new(classes: Arc<Classes>, config: PublisherConfig) -> Self {
        let costs = |count| ClassCosts { properties: vec![0; count], ..ClassCosts::default() };
        Publisher {
            config,
            tick: 0,
            tables: classes.iter().map(|class| Table::new(class.clone(), HISTORY)).collect(),
            caches: classes.iter().map(|class| Cache::new(class)).collect(),
            weights: classes.iter().map(|_| Vec::new()).collect(),
            must: classes.iter().map(|_| Vec::new()).collect(),
            owners: classes.iter().map(|_| Vec::new()).collect(),
            orphans: BTreeSet::new(),
            newcomers: BTreeSet::new(),
            waiting: BTreeMap::new(),
            memories: VecDeque::new(),
            most_remembered: 0,
            visits: 0,
            costs: classes.iter().map(|class| costs(class.properties.each().len())).collect(),
            packets: 0,
            peers: Vec::new(),
            chooser: Chooser::default(),
            coder: PacketCoder::of(&classes),
            shown: ShownLog::default(),
            remembered_since: 0,
            classes,
        }
    }

    pub fn classes(&self) -> &Arc<Classes> {
        &self.classes
    }

    /// The current tick, 0 before the first.
    pub fn tick(&self) -> u32 {
        self.tick
    }

    /// The objects of a class.
    ///
    /// # Panics
    /// If there is no such class; the other methods that take one panic too.
    pub fn table(&self, class: usize) -> &Table {
        &self.tables[class]
    }

    // --- clients -----------------------------------------------------------------------------------------

    /// Adds a client of which nothing is remembered; it has no ghosts at first.
    pub fn add_peer(&mut self, handle: PeerHandle) {
        let slot = handle.slot as usize;
        if self.peers.len() <= slot {
            self.peers.resize_with(slot + 1, || None);
        }
        if self.peer(handle).is_none() {
            self.peers[slot] = Some(Box::new(Peer::new(handle, &self.classes)));
        }
    }

    /// Removes a client. Its objects have no owner until it comes back.
    pub fn remove_peer(&mut self, handle: PeerHandle) {
        if self.peer(handle).is_none() {
            return;
        }
        let Some(peer) = self.peers[handle.slot as usize].take() else { return };
        for (class, rows) in peer.owned.iter().enumerate() {
            for row in rows {
                self.owners[class][*row as usize] = None;
                self.orphans.insert((class, *row));
            }
        }
        self.remember_client(*peer);
    }

    /// The class and row of each object whose owner left since the last call. It may have another owner by now, or be
    /// another object.
    pub fn take_orphans(&mut self) -> impl Iterator<Item = (usize, u32)> {
        core::mem::take(&mut self.orphans).into_iter()
    }

    /// The class and row of each object that spawned since the last call. It may be gone by now.
    pub(super) fn take_newcomers(&mut self) -> BTreeSet<(usize, u32)> {
        core::mem::take(&mut self.newcomers)
    }

    pub fn peers(&self) -> impl Iterator<Item = PeerHandle> {
        self.peers.iter().flatten().map(|peer| peer.handle)
    }

    fn peer(&self, handle: PeerHandle) -> Option<&Peer> {
        self.peers.get(handle.slot as usize)?.as_deref().filter(|peer| peer.handle == handle)
    }

    fn peer_mut(&mut self, handle: PeerHandle) -> Option<&mut Peer> {
        find_peer(&mut self.peers, handle)
    }

    // --- objects -----------------------------------------------------------------------------------------

    /// A new object, in the lowest free row. The caller writes its cells before the next tick; no client has it yet. An
    /// unknown client as owner counts as none.
    ///
    /// # Errors
    /// The class is at its capacity.
    pub fn spawn(&mut self, class: usize, owner: Option<PeerHandle>) -> Result<u32, Full> {
        let row = self.tables[class].spawn()?;
        let owners = &mut self.owners[class];
        if owners.len() <= row as usize {
            owners.resize(row as usize + 1, None);
        }
        self.replace_owner(class, row, owner);
        self.newcomers.insert((class, row));
        // These were set for the row's former object.
        if let Some(weight) = self.weights[class].get_mut(row as usize) {
            *weight = 1.0;
        }
        if let Some(must) = self.must[class].get_mut(row as usize) {
            *must = 0;
        }
        Ok(row)
    }

    /// Ends an object for all clients; false if there is none.
    pub fn despawn(&mut self, class: usize, row: u32) -> bool {
        if !self.tables[class].despawn(row) {
            return false;
        }
        self.replace_owner(class, row, None);
        for peer in self.peers.iter_mut().flatten() {
            if peer.scopes[class].leave(row) {
                self.shown.push(self.tick + 1, peer.handle, class, row, false);
            }
        }
        for memory in &mut self.memories {
            memory.scopes[class].leave(row);
        }
        // Clients know it by their own ids, which stay taken until they know of its end.
        self.tables[class].release(row);
        true
    }

    /// The owner of an object.
    pub fn owner(&self, class: usize, row: u32) -> Option<PeerHandle> {
        self.owners[class].get(row as usize).copied().flatten()
    }

    /// The rows of a class that a client owns, in rising order.
    pub fn owned(&self, handle: PeerHandle, class: usize) -> impl Iterator<Item = u32> {
        self.peer(handle).into_iter().flat_map(move |peer| peer.owned[class].iter().copied())
    }

    /// Gives an object to a client, or to none (nor to an unknown one); false if there is no such object.
    pub fn set_owner(&mut self, class: usize, row: u32, owner: Option<PeerHandle>) -> bool {
        if !self.tables[class].is_alive(row) {
            return false;
        }
        let tick = self.tick;
        for (handle, owns) in self.replace_owner(class, row, owner) {
            if let Some(peer) = handle.and_then(|handle| self.peer_mut(handle)) {
                peer.scopes[class].set_audience(row, tick, |before| Audience { owner: owns, ..before });
            }
        }
        true
    }

    /// Gives a row to a client, or to none. Returns the former owner and the new one, each with whether it owns the row
    /// now; none if they are the same.
    fn replace_owner(
        &mut self,
        class: usize,
        row: u32,
        owner: Option<PeerHandle>,
    ) -> [(Option<PeerHandle>, bool); 2] {
        let owner = owner.filter(|owner| self.peer(*owner).is_some());
        self.waiting.remove(&(class, row));
        let before = core::mem::replace(&mut self.owners[class][row as usize], owner);
        if before == owner {
            return [(None, false); 2];
        }
        let next = self.tick + 1;
        if let Some(peer) = before.and_then(|before| self.peer_mut(before)) {
            peer.disown(class, row, next);
        }
        if let Some(peer) = owner.and_then(|owner| self.peer_mut(owner)) {
            peer.owned[class].insert(row);
        }
        [(before, false), (owner, true)]
    }

    /// Sets a property without words from the next tick on: see [`Table::set_cell`].
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

    /// Sets the factors of a class's priorities by row, which stay until they are set again. Missing rows and later
    /// objects have 1; rows with 0 or less go last.
    pub fn set_weights(&mut self, class: usize, weights: &[f32]) {
        let all = &mut self.weights[class];
        all.clear();
        all.extend_from_slice(weights);
    }

    // --- a tick ------------------------------------------------------------------------------------------

    /// Begins the next tick: reads the columns by class and property, and marks changes for the clients that have them.
    /// Adds the first invalid value of each class to `errors`; its row keeps its former state.
    pub fn begin_tick<'a, C: AsRef<[Column<'a>]>>(
        &mut self,
        columns: &[C],
        errors: &mut Vec<(usize, Wrong)>,
    ) {
        for peer in self.peers.iter_mut().flatten() {
            peer.end_tick(self.tick, self.coder.as_deref_mut().map(|coder| &mut coder.samples));
        }
        if let Some(coder) = &mut self.coder {
            coder.end_tick();
        }
        self.tick += 1;
        for (class, table) in self.tables.iter_mut().enumerate() {
            let columns = columns.get(class).map_or(&[][..], |columns| columns.as_ref());
            let cache = &self.caches[class];
            if let Err(wrong) =
                table.update_sent(self.tick, columns, |row, group| cache.encoded_at(row, group))
            {
                errors.push((class, wrong));
            }
            self.caches[class].begin_tick(self.tick, table.rows(), &mut self.costs[class].properties);
            if !table.changed().is_empty() {
                for peer in self.peers.iter_mut().flatten() {
                    peer.scopes[class].mark_changed(self.tick, table);
                }
            }
        }
    }

    /// The clients that have something due, each with the minimum of bits that a payload needs.
    pub fn wants(&self) -> impl Iterator<Item = (PeerHandle, usize)> {
        self.peers.iter().flatten().filter(|peer| peer.is_due(self.tick)).map(|peer| {
            let due = peer.scopes.iter().zip(self.classes.iter()).filter(|(scope, _)| scope.due_count() > 0);
            let most = due.map(|(_, class)| {
                let overhead = if class.coded { coded::MAX_OVERHEAD } else { 0 };
                class.properties.schema().max_bits() + overhead
            });
            let visit = peer.visit_to_tell().map_or(0, Visit::bits);
            (peer.handle, MAX_OVERHEAD + visit + most.max().unwrap_or(0))
        })
    }

    /// Chooses which of a client's due ghosts go out in this tick, in about this many bits; at least one if any is due.
    /// Without this call all go as far as there is room.
    pub fn choose(&mut self, handle: PeerHandle, budget_bits: usize) {
        let Publisher { peers, tick, tables, weights, must, chooser, .. } = self;
        if let Some(peer) = find_peer(peers, handle) {
            chooser.choose(peer, *tick, budget_bits as f32, tables, weights, must);
            peer.has_chosen = true;
        }
    }

    /// Handles the fate of the packet with this record.
    pub fn handle_notification(&mut self, handle: PeerHandle, record: u32, delivered: bool) {
        let tick = self.tick;
        if let Some(peer) = self.peer_mut(handle) {
            peer.handle_notification(record, delivered, tick);
        }
    }

    /// By slot, the last tick in which an object changed that its client owns and gets, or in which it lost one; 0 if it never
    /// owned any.
    pub fn owned_changes(&self, by_slot: &mut Vec<u32>) {
        by_slot.clear();
        by_slot.resize(self.peers.len(), 0);
        for (changed, peer) in by_slot.iter_mut().zip(&self.peers) {
            let Some(Peer { owned, disowned_at, scopes, .. }) = peer.as_deref() else { continue };
            let each = owned.iter().zip(&self.tables).zip(scopes).zip(self.classes.iter());
            let last = each.flat_map(|(((rows, table), scope), class)| {
                rows.iter().map(|row| {
                    let chosen = class.is_chosen() && scope.is_chosen(*row);
                    table.last_change(*row, class.updated(class.group(true, chosen)))
                })
            });
            *changed = last.max().unwrap_or(0).max(*disowned_at);
        }
    }

    // --- questions ---------------------------------------------------------------------------------------

    /// The cost of everything sent.
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

    /// How many ghosts are due for a client.
    pub fn due(&self, handle: PeerHandle) -> usize {
        self.peer(handle).map_or(0, |peer| peer.scopes.iter().map(|scope| scope.due_count()).sum())
    }
}

fn find_peer(peers: &mut [Option<Box<Peer>>], handle: PeerHandle) -> Option<&mut Peer> {
    peers.get_mut(handle.slot as usize)?.as_deref_mut().filter(|peer| peer.handle == handle)
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
        let peer = find_peer(&mut self.peers, handle)?;
        if !peer.has_chosen {
            peer.has_chosen = true;
            self.chooser.choose(peer, self.tick, f32::MAX, &self.tables, &self.weights, &self.must);
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
