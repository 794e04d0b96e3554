//! Ghosts in a session: a server's world, or a client's copy of one, over the endpoint's peers.
//!
//! Promises: ghost packets are read when they arrive, so an acked packet has been read; nothing of a server's world
//! goes to a client before the application knows the client. A peer that writes what only the other side may write is
//! disconnected.

use super::timing::{Timing, packet_time};
use crate::endpoint::{Dial, Event, Host, PeerHandle};
use crate::replication::{Mirror, Publisher, Violation};
use crate::time::Instant;
use crate::transport::{Notification, OpaqueBody, Received};
use crate::wire::BitReader;

/// An endpoint's role in ghosts.
#[derive(Default)]
pub enum Ghosts {
    /// The protocol has no ghosts.
    #[default]
    None,
    /// A server's: it holds the world.
    Publisher(Box<Publisher>),
    /// A client's: it holds what it was shown of the world.
    Mirror(Box<Mirror>),
}

impl Ghosts {
    /// The world, on a server.
    pub fn publisher(&mut self) -> Option<&mut Publisher> {
        if let Ghosts::Publisher(publisher) = self { Some(publisher) } else { None }
    }

    /// The copy of the world, on a client.
    pub fn mirror(&mut self) -> Option<&mut Mirror> {
        if let Ghosts::Mirror(mirror) = self { Some(mirror) } else { None }
    }

    /// Whether a client's picture has changed since the application looked.
    pub fn has_news(&self) -> bool {
        if let Ghosts::Mirror(mirror) = self { mirror.has_news() } else { false }
    }

    /// Takes a payload that arrived with a datagram. `server` is the peer whose world a client is shown.
    ///
    /// # Errors
    /// How the peer broke the protocol.
    pub(super) fn read(
        &mut self,
        host: &Host,
        server: &mut Option<PeerHandle>,
        peer: PeerHandle,
        received: &Received,
        timing: &mut Timing,
    ) -> Result<(), Violation> {
        let body = OpaqueBody::read(&received.body);
        let reader = BitReader::with_range(body.bytes, body.start_bit as usize, body.bits);
        let is_shown = self.follow(host, server, peer);
        let (Ghosts::Mirror(mirror), true) = (self, is_shown) else { return Err(Violation::Forged) };
        let mut tick = reader.clone();
        mirror.handle_packet(packet_time(host, mirror, peer, received), reader)?;
        timing.note_ghosts(received.received_at, peer, tick.bits(16).unwrap_or_default() as u32);
        Ok(())
    }

    /// Whether a client is shown this peer's world: that of the server it dialled, or of another one once the
    /// connection to the first is over.
    pub(super) fn follow(&mut self, host: &Host, server: &mut Option<PeerHandle>, peer: PeerHandle) -> bool {
        let Ghosts::Mirror(mirror) = self else { return false };
        if *server == Some(peer) {
            return true;
        }
        let is_here = |dial: &Dial| dial.disconnect_reason().is_none();
        if host.dialled(peer).is_none() || server.and_then(|server| host.dialled(server)).is_some_and(is_here)
        {
            return false;
        }
        if server.replace(peer).is_some() {
            mirror.await_visit();
        }
        true
    }

    /// Takes the notifications of the ghosts' own packets out of the application's.
    pub(super) fn take_notifications(
        &mut self,
        channel: Option<usize>,
        notifications: &mut Vec<(PeerHandle, Notification)>,
    ) {
        let (Ghosts::Publisher(publisher), Some(channel)) = (self, channel) else { return };
        notifications.retain(|(peer, notification)| {
            let other = usize::from(notification.channel) != channel;
            if !other {
                publisher.handle_notification(*peer, notification.tag, notification.delivered);
            }
            other
        });
    }

    /// Admits peers that the application now knows, and removes those that left.
    pub(super) fn note_events(&mut self, events: &[Event]) {
        let Ghosts::Publisher(publisher) = self else { return };
        for event in events {
            match event {
                Event::Accepted { peer, client_id, .. } => publisher.welcome(*peer, *client_id),
                Event::Disconnected { peer, .. } => publisher.remove_peer(*peer),
                Event::Dialled { .. } => {}
            }
        }
    }

    /// Registers the peers that have something to be sent.
    pub(super) fn want(&mut self, now: Instant, host: &mut Host, wants: &mut Vec<(PeerHandle, usize)>) {
        let channel = host.protocol().ghost_channel();
        let (Ghosts::Publisher(publisher), Some(channel)) = (self, channel) else { return };
        wants.clear();
        wants.extend(publisher.wants());
        for (peer, least_bits) in wants.drain(..) {
            // A peer that is about to leave gets nothing more.
            let Some(connection) = host.connection_mut(peer) else { continue };
            if connection.want(channel, least_bits).is_ok() {
                publisher.choose(peer, connection.budget_bits(now));
            }
        }
    }
}
