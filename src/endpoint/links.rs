//! The secure connections below an endpoint's peers: a server that listens, clients that dial, or both on one
//! address.
//!
//! Promises: each payload goes to the peer whose key opened it. A peer that dialled us and that we dialled has two
//! connections from one address, and both work.

use core::net::SocketAddr;

use super::PeerHandle;
use super::dial::Dial;
use super::event::{Event, LinkEvent};
use super::reason::DisconnectReason;
use crate::netcode::{self, Counters, Farewell, ServerDisconnect};
use crate::store::Datagrams;
use crate::time::{Instant, UnixSeconds};
use crate::transport::{CloseReason, Outlet, Protocol};

/// The connections below the peers. The listener's clients have the first slots, dialled servers the later ones.
pub(super) struct Links {
    pub(super) listener: Option<netcode::Server>,
    first_dial: u32,
    pub(super) dials: Vec<Dial>,
    /// Counters of dials whose place was taken by another.
    replaced: Counters,
}

impl Links {
    /// A listener with this many slots, if there is one.
    pub(super) fn new(listener: Option<netcode::Server>, slots: usize) -> Self {
        // At most 65,536.
        Links { listener, first_dial: slots as u32, dials: Vec::new(), replaced: Counters::default() }
    }

    /// Begins to dial, reusing the place of one that is over and that `is_free`, if there is one.
    pub(super) fn dial(
        &mut self,
        id: u64,
        netcode: netcode::Client,
        is_free: impl Fn(PeerHandle) -> bool,
    ) -> PeerHandle {
        if let Some(old) = self.dials.iter_mut().find(|dial| dial.is_over() && is_free(dial.peer)) {
            let peer = PeerHandle { generation: old.peer.generation.wrapping_add(1), ..old.peer };
            self.replaced.add(old.netcode.counters());
            *old = Dial::new(peer, id, netcode);
            return peer;
        }
        let peer = PeerHandle { slot: self.first_dial + self.dials.len() as u32, generation: 0 };
        self.dials.push(Dial::new(peer, id, netcode));
        peer
    }

    /// Above this many waiting events, newcomers wait: each place may have two, a connection's first and its last.
    pub(super) fn max_events(&self) -> usize {
        2 * (self.first_dial as usize + self.dials.len())
    }

    pub(super) fn dialled(&self, peer: PeerHandle) -> Option<&Dial> {
        let place = peer.slot.checked_sub(self.first_dial)?;
        self.dials.get(place as usize).filter(|dial| dial.peer == peer)
    }

    pub(super) fn dialled_mut(&mut self, peer: PeerHandle) -> Option<&mut Dial> {
        let place = peer.slot.checked_sub(self.first_dial)?;
        self.dials.get_mut(place as usize).filter(|dial| dial.peer == peer)
    }

    /// Passes a datagram to its connection, and returns the payload in it, decrypted in place, with its number: each number
    /// of a peer comes once. Before that, `claimed` gets the client that is at its source address.
    pub(super) fn handle_datagram<'a>(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &'a mut [u8],
        out: &mut Datagrams,
        claimed: impl FnOnce(PeerHandle),
    ) -> Option<(PeerHandle, u64, &'a [u8])> {
        if let Some(place) = self.dial_of(from, datagram) {
            let dial = &mut self.dials[place];
            let (number, payload) = dial.netcode.handle_datagram(now, from, datagram, out)?;
            return Some((dial.peer, number, payload));
        }
        self.listener.as_mut()?.handle_claimed(now, unix, from, datagram, out, claimed)
    }

    /// The dial that a datagram is for; without a listener any dial, so that refusals are counted.
    fn dial_of(&self, from: SocketAddr, datagram: &[u8]) -> Option<usize> {
        let place = self.dials.iter().position(|dial| dial.netcode.is_from(from));
        let Some(listener) = &self.listener else { return place.or(self.dials.len().checked_sub(1)) };
        place.filter(|place| self.dials[*place].netcode.is_for_us(datagram, listener.has_address(from)))
    }

    // See `Host::note_unreachable`.
    pub(super) fn note_unreachable(&mut self, now: Instant, address: SocketAddr) {
        self.dials.iter_mut().for_each(|dial| dial.netcode.note_unreachable(now, address));
    }

    // See `Host::note_no_way`.
    pub(super) fn note_no_way(
        &mut self,
        now: Instant,
        peer: PeerHandle,
        reason: DisconnectReason,
        detail: String,
    ) {
        let dial = self.dialled_mut(peer).filter(|dial| dial.is_pending());
        dial.into_iter().for_each(|dial| dial.note_no_way(now, reason, detail.clone()));
    }

    /// What has happened since the last call.
    pub(super) fn poll_event(&mut self, protocol: &Protocol) -> Option<LinkEvent> {
        let event = self.listener.as_mut().and_then(netcode::Server::poll_event).map(accepted);
        event.or_else(|| self.dials.iter_mut().find_map(|dial| dial.poll_event(protocol)))
    }

    /// A server that has been silent for too long.
    pub(super) fn overdue(&self, now: Instant) -> Option<PeerHandle> {
        self.dials.iter().find(|dial| dial.netcode.is_overdue(now)).map(|dial| dial.peer)
    }

    /// Gives up a server that is overdue, and sends it a goodbye.
    pub(super) fn give_up(
        &mut self,
        now: Instant,
        peer: PeerHandle,
        farewell: Option<Farewell>,
        out: &mut Datagrams,
    ) {
        let Some(dial) = self.dialled_mut(peer) else { return };
        let farewell = farewell.filter(|farewell| farewell.understood).map(|farewell| farewell.payload);
        let sent = dial.netcode.give_up(now, farewell.as_deref(), out);
        debug_assert!(sent.is_ok(), "{sent:?}");
    }

    /// The lowest number that the next packet for a peer may have.
    pub(super) fn next_number(&self, peer: PeerHandle) -> u64 {
        let listener = || self.listener.as_ref()?.next_number(peer).ok();
        self.dialled(peer).map(|dial| dial.netcode.next_number()).or_else(listener).unwrap_or_default()
    }

    /// Where packets for a peer that is connected are sealed.
    pub(super) fn outlet<'a>(
        &'a mut self,
        now: Instant,
        peer: PeerHandle,
        out: &'a mut Datagrams,
    ) -> impl Outlet + 'a {
        Sealing { links: self, now, peer, out }
    }

    /// Sends keep-alives, and notices timeouts.
    pub(super) fn update(&mut self, now: Instant, out: &mut Datagrams) {
        if let Some(listener) = &mut self.listener {
            listener.update(now, out);
        }
        self.dials.iter_mut().for_each(|dial| dial.netcode.update(now, out));
    }

    /// Sends the goodbyes that are due.
    pub(super) fn say_goodbyes(&mut self, now: Instant, out: &mut Datagrams) {
        if let Some(listener) = &mut self.listener {
            listener.say_goodbyes(now, out);
        }
        self.dials.iter_mut().for_each(|dial| dial.repeat(now, false, out));
    }

    /// Sends all remaining goodbyes: no later call comes.
    pub(super) fn shutdown(&mut self, now: Instant, out: &mut Datagrams) {
        if let Some(listener) = &mut self.listener {
            listener.shutdown(now, out);
        }
        self.dials.iter_mut().for_each(|dial| dial.repeat(now, true, out));
    }

    /// Sets the last packet for a client that the listener has just reported as gone.
    pub(super) fn set_farewell(&mut self, peer: PeerHandle, farewell: Farewell) {
        if let Some(listener) = &mut self.listener {
            listener.set_farewell(peer, farewell);
        }
    }

    /// Ends a connection and tells the peer, with goodbyes spread until the given time if this layer repeats them.
    pub(super) fn disconnect(
        &mut self,
        now: Instant,
        peer: PeerHandle,
        farewell: Option<Farewell>,
        until: Option<Instant>,
        out: &mut Datagrams,
    ) {
        if let Some(dial) = self.dialled_mut(peer) {
            dial.disconnect(now, farewell, until, out);
        } else if let Some(listener) = &mut self.listener {
            // The peer is connected, and the farewell is an ordinary packet.
            let sent = listener.disconnect(now, peer, farewell, out);
            debug_assert!(sent.is_ok(), "{sent:?}");
        }
    }

    /// Ends a connection without a goodbye: the peer has sent one.
    pub(super) fn forget(&mut self, peer: PeerHandle) {
        if let Some(dial) = self.dialled_mut(peer) {
            dial.netcode.forget();
        } else if let Some(listener) = &mut self.listener {
            listener.forget(peer);
        }
    }

    /// Whether goodbyes are left, or a server is being dialled.
    pub(super) fn is_busy(&self) -> bool {
        self.listener.as_ref().is_some_and(netcode::Server::has_leavers)
            || !self.dials.iter().all(Dial::is_over)
    }

    pub(super) fn next_deadline(&self) -> Instant {
        let listener = self.listener.as_ref().map_or(Instant::NEVER, netcode::Server::next_deadline);
        self.dials.iter().map(Dial::next_deadline).fold(listener, Instant::min)
    }

    /// Drops of all connections.
    pub(super) fn counters(&self) -> Counters {
        let mut sum = self.listener.as_ref().map_or_else(Counters::default, |it| it.counters().clone());
        let dials = self.dials.iter().map(|dial| dial.netcode.counters());
        dials.chain([&self.replaced]).for_each(|counters| sum.add(counters));
        sum
    }
}

/// Seals packets for a peer.
struct Sealing<'a> {
    links: &'a mut Links,
    now: Instant,
    peer: PeerHandle,
    out: &'a mut Datagrams,
}

impl Outlet for Sealing<'_> {
    fn push(&mut self, number: u64, write: &mut dyn FnMut(&mut Vec<u8>)) {
        let Sealing { links, now, peer, out } = self;
        let sent = if let Some(dial) = links.dialled_mut(*peer) {
            dial.netcode.send_numbered(*now, number, write, out)
        } else if let Some(listener) = &mut links.listener {
            listener.send_numbered(*now, *peer, number, write, out)
        } else {
            Ok(())
        };
        // The peer is connected, and the number is free: this layer sees to both.
        debug_assert!(sent.is_ok(), "{sent:?}");
    }
}

/// Translates the listener's event.
fn accepted(event: netcode::ServerEvent) -> LinkEvent {
    match event {
        netcode::ServerEvent::Connected { client, client_id, address, user_data } => {
            let event = Event::Accepted { peer: client, client_id, address, user_data };
            LinkEvent::Up { event, id: client_id }
        }
        netcode::ServerEvent::Disconnected { client, reason } => {
            let (reason, answer) = match reason {
                ServerDisconnect::TimedOut => (DisconnectReason::TimedOut, Some(CloseReason::TimedOut)),
                ServerDisconnect::Replaced => (DisconnectReason::Replaced, Some(CloseReason::Replaced)),
                ServerDisconnect::ByPeer => (DisconnectReason::PeerDisconnected, None),
            };
            LinkEvent::Down { peer: client, reason, answer, detail: None }
        }
    }
}
