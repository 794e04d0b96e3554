//! The client slots of a server: who is connected, found by slot, address or client id in constant time.
//!
//! Promises: the lowest free slot is taken first, and a handle never reaches the next client of its slot: each
//! connection has a generation of its own.

use core::cmp::Reverse;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeSet, BinaryHeap};

use super::crypto::Key;
use super::replay::{REPLAY_WINDOW, ReplayWindow};
use super::sealer::Sealer;
use crate::store::keyed_hash::{KeyedHash, KeyedMap};
use crate::time::{Duration, Instant};

/// Names one connection of a client, and never another in the same slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientHandle {
    /// The client slot: the client index on the wire.
    pub slot: u32,
    /// Which connection of that slot, counted from 0.
    pub generation: u32,
}

impl ClientHandle {
    /// Both as one number, the slot in the low half: for columns.
    pub fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    /// The handle with this [`ClientHandle::number`].
    pub fn from_number(number: u64) -> Self {
        // The halves of the number.
        ClientHandle { slot: number as u32, generation: (number >> 32) as u32 }
    }
}

/// An address as numbers, which hash in a third of the time; IPv4 is mapped to IPv6, because a socket may report
/// either.
type AddressKey = (u128, u64);

fn key(address: SocketAddr) -> AddressKey {
    let scope = if let SocketAddr::V6(address) = address { address.scope_id() } else { 0 };
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    (ip.to_bits(), u64::from(scope) << 16 | u64::from(address.port()))
}

pub(crate) struct Connection {
    pub(crate) client_id: u64,
    pub(crate) address: SocketAddr,
    pub(crate) sealer: Sealer,
    pub(crate) receive_key: Key,
    pub(crate) timeout: Option<Duration>,
    pub(crate) last_send: Instant,
    pub(crate) last_receive: Instant,
    /// Whether the client has shown, by a keep-alive or payload, that it knows it is connected.
    pub(crate) confirmed: bool,
}

struct Slot {
    generation: u32,
    connection: Option<Connection>,
}

pub(crate) struct Slots {
    /// Grows to the most clients there have been at once.
    slots: Vec<Slot>,
    /// By slot, of the connection in it. All in one block of memory.
    replays: Vec<ReplayWindow>,
    capacity: usize,
    /// Free slots below `slots.len()`, lowest first.
    freed: BinaryHeap<Reverse<u32>>,
    /// Free slots that are taken only when there are no others: of clients that a layer above isn't through with.
    resting: BTreeSet<u32>,
    /// Whether slots rest when they become free, until [`Slots::release`].
    pub(crate) rests: bool,
    by_address: KeyedMap<AddressKey, u32>,
    by_client_id: KeyedMap<u64, u32>,
}

impl Slots {
    pub(crate) fn new(capacity: usize, hash: &KeyedHash) -> Self {
        Slots {
            slots: Vec::new(),
            replays: Vec::new(),
            capacity,
            freed: BinaryHeap::new(),
            resting: BTreeSet::new(),
            rests: false,
            by_address: KeyedMap::with_hasher(hash.clone()),
            by_client_id: KeyedMap::with_hasher(hash.clone()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_address.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    /// Puts a connection into the lowest free slot, preferring slots that don't rest.
    ///
    /// # Panics
    /// When no slot is free, or the address or client id is already connected: the server asks before.
    pub(crate) fn insert(&mut self, connection: Connection) -> ClientHandle {
        assert!(!self.is_full() && !self.by_client_id.contains_key(&connection.client_id));
        let unused = self.slots.len() < self.capacity;
        let resting = || if unused { None } else { self.resting.pop_first() };
        let index = match self.freed.pop().map(|Reverse(index)| index).or_else(resting) {
            Some(index) => index,
            None => {
                self.slots.push(Slot { generation: 0, connection: None });
                self.replays.push(ReplayWindow::new(REPLAY_WINDOW));
                // Below the capacity, which is at most 65,536.
                (self.slots.len() - 1) as u32
            }
        };
        let taken = self.by_address.insert(key(connection.address), index);
        assert!(taken.is_none(), "an address connects once");
        self.by_client_id.insert(connection.client_id, index);
        self.replays[index as usize].reset();
        let slot = &mut self.slots[index as usize];
        slot.connection = Some(connection);
        ClientHandle { slot: index, generation: slot.generation }
    }

    /// Frees the slot of a connection, if the handle still names one.
    pub(crate) fn remove(&mut self, client: ClientHandle) -> Option<Connection> {
        let slot = self.slots.get_mut(client.slot as usize)?;
        if slot.generation != client.generation {
            return None;
        }
        let connection = slot.connection.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.by_address.remove(&key(connection.address));
        self.by_client_id.remove(&connection.client_id);
        if self.rests {
            self.resting.insert(client.slot);
        } else {
            self.freed.push(Reverse(client.slot));
        }
        Some(connection)
    }

    /// The slot that this client was the last one in rests no longer.
    pub(crate) fn release(&mut self, client: ClientHandle) {
        let next = client.generation.wrapping_add(1);
        let was_last = self.slots.get(client.slot as usize).is_some_and(|slot| slot.generation == next);
        if was_last && self.resting.remove(&client.slot) {
            self.freed.push(Reverse(client.slot));
        }
    }

    pub(crate) fn find(&self, client: ClientHandle) -> Option<&Connection> {
        let slot = self.slots.get(client.slot as usize)?;
        slot.connection.as_ref().filter(|_| slot.generation == client.generation)
    }

    pub(crate) fn find_mut(&mut self, client: ClientHandle) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(client.slot as usize)?;
        slot.connection.as_mut().filter(|_| slot.generation == client.generation)
    }

    /// A connection with its replay window.
    pub(crate) fn receiving(&mut self, client: ClientHandle) -> Option<(&mut Connection, &mut ReplayWindow)> {
        let slot = self.slots.get_mut(client.slot as usize)?;
        let connection = slot.connection.as_mut().filter(|_| slot.generation == client.generation)?;
        Some((connection, self.replays.get_mut(client.slot as usize)?))
    }

    pub(crate) fn by_address(&self, address: SocketAddr) -> Option<ClientHandle> {
        self.by_address.get(&key(address)).and_then(|&index| self.occupant(index))
    }

    pub(crate) fn by_client_id(&self, client_id: u64) -> Option<ClientHandle> {
        self.by_client_id.get(&client_id).and_then(|&index| self.occupant(index))
    }

    /// The client in a slot.
    pub(crate) fn occupant(&self, index: u32) -> Option<ClientHandle> {
        let slot = self.slots.get(index as usize)?;
        slot.connection.as_ref().map(|_| ClientHandle { slot: index, generation: slot.generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn connection(n: u16) -> Connection {
        Connection {
            client_id: n.into(),
            address: format!("1.1.1.1:{n}").parse().unwrap(),
            sealer: Sealer::new(1, [0; 32], 0),
            receive_key: [0; 32],
            timeout: None,
            last_send: Instant::ZERO,
            last_receive: Instant::ZERO,
            confirmed: false,
        }
    }

    #[test]
    fn the_lowest_free_slot_is_taken_and_old_handles_reach_nobody() {
        let mut slots = Slots::new(3, &KeyedHash::new(&mut Rng::seeded(1)));
        let handles: Vec<_> = (1..=3).map(|n| slots.insert(connection(n))).collect();
        assert_eq!(handles.iter().map(|h| h.slot).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(slots.is_full());
        assert!(slots.remove(handles[2]).is_some() && slots.remove(handles[0]).is_some());
        assert!(slots.remove(handles[0]).is_none() && slots.find(handles[0]).is_none());

        let next = slots.insert(connection(4));
        assert_eq!((next.slot, next.generation), (0, 1));
        assert!(slots.find(handles[0]).is_none() && slots.remove(handles[0]).is_none());
        assert_eq!(slots.by_client_id(4), Some(next));
        assert_eq!(slots.by_address(connection(4).address), Some(next));
        assert_eq!(slots.by_client_id(1), None);
        assert_eq!([0, 1, 2].map(|slot| slots.occupant(slot).is_some()), [true, true, false]);
    }

    #[test]
    fn slots_that_rest_are_taken_last() {
        let mut slots = Slots::new(3, &KeyedHash::new(&mut Rng::seeded(1)));
        slots.rests = true;
        let first = slots.insert(connection(1));
        slots.remove(first);
        let second = slots.insert(connection(2));
        assert_eq!((first.slot, second.slot), (0, 1), "a new one rather");
        slots.remove(second);
        slots.release(second);
        slots.release(second);
        assert_eq!(slots.insert(connection(3)).slot, 1);
        assert_eq!(slots.insert(connection(4)).slot, 2);
        assert_eq!(slots.insert(connection(5)).slot, 0, "there is no other");
        assert!(slots.is_full());
        slots.release(first);
        assert!(slots.is_full());
    }

    #[test]
    fn a_slot_rests_until_its_last_client_is_told_of() {
        let mut slots = Slots::new(2, &KeyedHash::new(&mut Rng::seeded(1)));
        slots.rests = true;
        let (first, other) = (slots.insert(connection(1)), slots.insert(connection(2)));
        slots.remove(first);
        let second = slots.insert(connection(3));
        assert_eq!((second.slot, second.generation), (0, 1), "there is no other");
        slots.remove(other);
        slots.remove(second);
        slots.release(first);
        slots.release(other);
        assert_eq!(slots.insert(connection(4)).slot, 1, "the second one in slot 0 waits for its event");
    }

    #[test]
    fn a_connection_is_small() {
        // The maps are at worst half full.
        let entries = size_of::<(SocketAddr, u32)>() + size_of::<(u64, u32)>();
        assert!(size_of::<Slot>() + 2 * entries < 400, "{} + 2 * {entries}", size_of::<Slot>());
    }
}
