//! Rooms: groups of an endpoint's peers, to send to. Everybody is a room, too.
//!
//! Promises: a peer that enters a room is sent every retained value that was sent to the room, and never one older than
//! a value it was sent. A peer has left all rooms when the application gets its last event. Refuses values beyond a
//! channel's bound before any of them is sent.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::error::RoomError;
use super::retained::Retained;
use super::{Event, Host, PeerHandle};
use crate::time::Instant;
use crate::transport::{Message, SendOptions};

#[derive(Debug, Default)]
struct RoomState {
    members: BTreeSet<PeerHandle>,
    retained: Retained,
}

/// A room. It ends with its last copy.
#[derive(Clone, Debug, Default)]
pub struct PeerRoom(Arc<Mutex<RoomState>>);

/// The rooms of an endpoint.
#[derive(Debug, Default)]
pub struct Rooms {
    everybody: PeerRoom,
    others: Vec<Weak<Mutex<RoomState>>>,
}

/// Messages to a room.
#[derive(Clone, Copy, Debug)]
pub struct ToRoom<'a> {
    pub channel: usize,
    pub messages: &'a [(Message, SendOptions)],
    /// A member that isn't sent them.
    pub exclude: Option<PeerHandle>,
    /// The maximum bytes of the channel's newest values that the room keeps for newcomers; None keeps none.
    pub retain_bytes: Option<usize>,
}

impl Rooms {
    /// Makes a room without members.
    pub fn open(&mut self) -> PeerRoom {
        if self.others.len().is_power_of_two() {
            // Half of the rooms came since dropped ones were last removed.
            self.others.retain(|room| room.strong_count() > 0);
        }
        let room = PeerRoom::default();
        self.others.push(Arc::downgrade(&room.0));
        room
    }

    /// The room of all peers that the application knows.
    pub fn everybody(&self) -> &PeerRoom {
        &self.everybody
    }

    /// The application gets these events.
    pub fn note_events(&self, now: Instant, host: &mut Host, events: &[Event]) {
        for event in events {
            match event {
                Event::Accepted { peer, .. } => _ = self.everybody.enter(now, host, *peer),
                Event::Dialled { .. } => {}
                Event::Disconnected { peer, .. } => {
                    let others = self.others.iter().filter_map(Weak::upgrade).map(PeerRoom);
                    others.chain([self.everybody.clone()]).for_each(|room| _ = room.leave(*peer));
                }
            }
        }
    }
}

impl PeerRoom {
    fn inside(&self) -> MutexGuard<'_, RoomState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a peer, and sends it the retained values. False if it is in the room already.
    pub fn enter(&self, now: Instant, host: &mut Host, peer: PeerHandle) -> bool {
        let mut inside = self.inside();
        if !inside.members.insert(peer) {
            return false;
        }
        for (channel, (message, options)) in inside.retained.values() {
            // The peer may be gone already; latest channels are never full.
            let _ = host.send(now, peer, channel, message.clone(), *options);
        }
        true
    }

    /// Removes a peer; false if it isn't in the room.
    pub fn leave(&self, peer: PeerHandle) -> bool {
        self.inside().members.remove(&peer)
    }

    pub fn clear(&self) {
        self.inside().members.clear();
    }

    pub fn members(&self) -> Vec<PeerHandle> {
        self.inside().members.iter().copied().collect()
    }

    pub fn has(&self, peer: PeerHandle) -> bool {
        self.inside().members.contains(&peer)
    }

    /// Queues messages for each member, and keeps them for newcomers if the channel retains. Returns the members that have
    /// no room for all of them.
    ///
    /// # Errors
    /// Why no peer can be sent them.
    pub fn send(&self, now: Instant, host: &mut Host, to: ToRoom<'_>) -> Result<Vec<PeerHandle>, RoomError> {
        let ToRoom { channel, messages, exclude, retain_bytes } = to;
        host.check(channel, messages).map_err(RoomError::Send)?;
        let mut inside = self.inside();
        if let Some(max_bytes) = retain_bytes {
            inside.retained.put(channel, messages, max_bytes)?;
        }
        // The application doesn't know yet that some are gone.
        let is_meant = |peer: &PeerHandle| Some(*peer) != exclude && host.is_connected(*peer);
        let members: Vec<_> = inside.members.iter().copied().filter(is_meant).collect();
        host.send_all(now, members, channel, messages).map_err(RoomError::Send)
    }

    /// Forgets the retained value of a key, or of all keys; returns how many.
    pub fn forget(&self, channel: usize, key: Option<u32>) -> usize {
        self.inside().retained.forget(channel, key)
    }
}
