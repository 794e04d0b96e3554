//! Ghosts in a session: a server's world, or a client's copy of one, over the endpoint's peers.
//!
//! Promises: ghost packets are read when they arrive, so an acked packet has been read; nothing of a server's world
//! goes to a client before the application knows the client. A peer that writes what only the other side may write is
//! disconnected.

use super::feature::{Feature, Moment, succeeds};
use super::protocol::GHOSTS;
use super::timing::packet_time;
use crate::endpoint::{self, Event, Host, PeerHandle};
use crate::replication::{Mirror, Publisher, ServedWorld, Violation};
use crate::time::Instant;
use crate::transport::{Notification, OpaqueBody, Received};
use crate::wire::BitWriter;

/// An endpoint's role in ghosts.
#[derive(Default)]
pub enum Ghosts {
    /// The protocol has no ghosts.
    #[default]
    None,
    /// A server's: it holds the world.
    World(Box<ServedWorld>),
    /// A client's: it holds the part of the world that it was shown.
    Mirror(Box<Mirror>),
}

impl Ghosts {
    /// The world, on a server.
    pub fn world(&mut self) -> Option<&mut ServedWorld> {
        if let Ghosts::World(world) = self { Some(world) } else { None }
    }

    /// The publisher of the world, on a server.
    pub fn publisher(&mut self) -> Option<&mut Publisher> {
        self.world().map(ServedWorld::publisher)
    }

    /// The copy of the world, on a client.
    pub fn mirror(&mut self) -> Option<&mut Mirror> {
        if let Ghosts::Mirror(mirror) = self { Some(mirror) } else { None }
    }

    /// Whether a client's picture has changed since the application looked.
    pub fn has_news(&self) -> bool {
        if let Ghosts::Mirror(mirror) = self { mirror.has_news() } else { false }
    }
}

/// Ghosts as a feature of a session.
pub(super) struct GhostPart {
    pub(super) role: Ghosts,
    /// The server whose world a client is shown.
    pub(super) server: Option<PeerHandle>,
    wants: Vec<(PeerHandle, usize)>,
}

impl GhostPart {
    pub(super) fn new(role: Ghosts) -> Self {
        GhostPart { role, server: None, wants: Vec::new() }
    }

    /// Whether a client is shown this peer's world: that of the server it dialled, or of another one once the
    /// connection to the first is over.
    pub(super) fn follow(&mut self, host: &Host, peer: PeerHandle) -> bool {
        let Some(mirror) = self.role.mirror() else { return false };
        if self.server == Some(peer) {
            return true;
        }
        if !succeeds(host, self.server, peer) {
            return false;
        }
        if self.server.replace(peer).is_some() {
            mirror.await_visit();
        }
        true
    }
}

impl Feature for GhostPart {
    fn name(&self) -> &'static str {
        GHOSTS
    }

    fn read(
        &mut self,
        _: Moment,
        host: &Host,
        peer: PeerHandle,
        _: usize,
        received: Received,
    ) -> Result<Option<u16>, String> {
        let reader = OpaqueBody::read(&received.body).reader();
        let is_shown = self.follow(host, peer);
        let Some(mirror) = self.role.mirror().filter(|_| is_shown) else {
            return Err(Violation::Forged.to_string());
        };
        let mut tick = reader.clone();
        let arrived = (received.received_at, received.packet_sequence);
        let time = packet_time(host, mirror, peer, arrived);
        mirror.handle_packet(time, reader).map_err(|violation| violation.to_string())?;
        Ok(Some(tick.bits(16).unwrap_or_default() as u16))
    }

    /// A report about the time arrived, which comes when no ghost changes too.
    fn note_tick(&mut self, host: &Host, peer: PeerHandle, arrived: (Instant, u64), low: u16) {
        if let Some(mirror) = self.role.mirror() {
            mirror.note_tick(packet_time(host, mirror, peer, arrived), low);
        }
    }

    fn note_fate(&mut self, peer: PeerHandle, fate: &Notification) {
        if let Some(publisher) = self.role.publisher() {
            publisher.handle_notification(peer, fate.tag, fate.delivered);
        }
    }

    /// Admits peers that the application now knows, and removes those that left.
    fn note_events(&mut self, _: Moment, _: &Host, events: &[Event]) {
        let Some(publisher) = self.role.publisher() else { return };
        for event in events {
            match event {
                Event::Accepted { peer, client_id, .. } => publisher.welcome(*peer, *client_id),
                Event::Disconnected { peer, .. } => publisher.remove_peer(*peer),
                Event::Dialled { .. } => {}
            }
        }
    }

    fn want(&mut self, now: Instant, host: &mut Host, channel: usize) {
        let Some(publisher) = self.role.publisher() else { return };
        self.wants.clear();
        self.wants.extend(publisher.wants());
        for (peer, least_bits) in self.wants.drain(..) {
            // A peer that is about to leave gets nothing more.
            let Some(connection) = host.connection_mut(peer) else { continue };
            if connection.want(channel, least_bits).is_ok() {
                publisher.choose(peer, connection.budget_bits(now));
            }
        }
    }

    fn fill(
        &mut self,
        _: Moment,
        peer: PeerHandle,
        channel: usize,
        bits: usize,
        writer: &mut BitWriter,
    ) -> Option<u32> {
        endpoint::Feature::fill(self.role.publisher()?, peer, channel, bits, writer)
    }
}
