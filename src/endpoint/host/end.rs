//! The ends of connections: by the application, by what a peer sent, and by the secure connection below.

use super::Host;
use crate::endpoint::PeerHandle;
use crate::endpoint::dial::Dial;
use crate::endpoint::error::SendError;
use crate::endpoint::event::Event;
use crate::endpoint::goodbye::{Closing, Detail, Goodbye};
use crate::endpoint::peers::Peer;
use crate::endpoint::reason::{ConnectionEnd, DisconnectReason, answer_to, reason_of};
use crate::endpoint::stats::{FinalStats, PeerStats};
use crate::store::Datagrams;
use crate::time::Instant;
use crate::transport::{CloseReason, End, Violation};

impl Host {
    /// Ends a peer's connection once the peer has what was queued for it, or when the goodbye's time is over, during
    /// which [`Host::transmit`] must go on; with no time, at once. For the application the peer is gone from now on:
    /// its messages are dropped, chunks end, and only notifications and finally the event follow.
    ///
    /// # Errors
    ///
    /// When the peer is not connected.
    pub fn disconnect_with(
        &mut self,
        now: Instant,
        peer: PeerHandle,
        goodbye: Goodbye,
        out: &mut Datagrams,
    ) -> Result<(), SendError> {
        self.peers.live_mut(peer).ok_or(SendError::NotConnected)?;
        // We dialled this peer, so it isn't kicked.
        let reason =
            if self.links.dialled(peer).is_some() { CloseReason::Closed } else { CloseReason::Kicked };
        if goodbye.linger.is_zero() {
            self.part(now, peer, &Closing::new(now, reason, goodbye), None, out);
        } else {
            self.begin_end(now, peer, reason, goodbye);
        }
        Ok(())
    }

    /// Ends each connection once its peer has what was queued for it, or when the goodbye's time is over, like
    /// [`Host::disconnect_with`]; nobody is admitted any more. Keep calling [`Host::transmit`] until
    /// [`Host::is_over`]. Peers that are left when [`Host::close`] is called get the same text. Only the first call
    /// counts.
    pub fn begin_close(&mut self, now: Instant, goodbye: Goodbye) {
        if self.closing.is_none() {
            for peer in self.connected().collect::<Vec<_>>() {
                self.begin_end(now, peer, CloseReason::Closed, goodbye.clone());
            }
            self.closing = Some(goodbye);
        }
    }

    /// Ends every connection and sends all goodbyes at once: no later call comes.
    pub fn close(&mut self, now: Instant, out: &mut Datagrams) {
        let at_once = || Closing::new(now, CloseReason::Closed, Goodbye::default());
        let parting = self.peers.iter().map(|it| (it.handle, it.closing.clone().unwrap_or_else(at_once)));
        for (peer, closing) in parting.collect::<Vec<_>>() {
            self.part(now, peer, &closing, None, out);
        }
        self.hang_up(now, out);
        self.links.shutdown(now, out);
    }

    /// Whether no connection is left or to come, and all goodbyes were sent.
    pub fn is_over(&self) -> bool {
        let open = self.links.listener.is_some() && self.closing.is_none();
        !open && self.peers.iter().next().is_none() && !self.links.is_busy()
    }

    /// Ends a peer's connection because one of its messages is invalid for its class, as found out by code that the
    /// core can't run. Everything else it sent is dropped, even if the peer is gone by now. `why` is for the log.
    pub fn refuse_message(&mut self, now: Instant, peer: PeerHandle, why: &str, out: &mut Datagrams) {
        if self.peers.live_mut(peer).is_some() {
            self.end(now, peer, &End::Violation(Violation::Message(why.into())), out);
        }
        self.leftovers.game.records.retain(|record| record.head.peer != peer);
        self.arriving.drop_peer(peer);
        self.unfinished.retain(|(over, _)| *over != peer);
    }

    /// Ends a peer's connection because of an invalid payload of this feature. `why` is for the log.
    pub fn refuse_payload(
        &mut self,
        now: Instant,
        peer: PeerHandle,
        feature: &'static str,
        why: &str,
        out: &mut Datagrams,
    ) {
        if self.peers.live_mut(peer).is_some() {
            self.end(now, peer, &End::Violation(Violation::Payload { feature, why: why.into() }), out);
        }
    }

    /// Ends the lingering connections that are done, and those whose time is over.
    pub(super) fn end_linger(&mut self, now: Instant, out: &mut Datagrams) {
        let is_through = |peer: &&Peer| match &peer.closing {
            Some(closing) => closing.until <= now || peer.connection.is_drained(),
            None => false,
        };
        let through = self.peers.iter().filter(is_through);
        let through = through.filter_map(|peer| Some((peer.handle, peer.closing.clone()?)));
        for (peer, closing) in through.collect::<Vec<_>>() {
            let until = Some(closing.until).filter(|until| now < *until);
            self.part(now, peer, &closing, until, out);
        }
        if self.closing.is_some() {
            self.hang_up(now, out);
        }
    }

    /// Ends one that is being dialled.
    pub fn hang_up_on(&mut self, now: Instant, peer: PeerHandle, out: &mut Datagrams) {
        if self.links.dialled(peer).is_some_and(Dial::is_pending) {
            self.links.disconnect(now, peer, None, None, out);
            self.report(peer, DisconnectReason::Closed, None, None);
        }
    }

    /// Ends a peer's connection, or the dial to it, without a goodbye: the layer above knows that the peer is gone.
    pub fn lose(&mut self, peer: PeerHandle, reason: DisconnectReason) {
        let is_dialled = self.links.dialled(peer).is_some_and(Dial::is_pending);
        if is_dialled || self.peers.find_mut(peer).is_some() {
            self.links.forget(peer);
            self.report(peer, reason, None, None);
        }
    }

    /// Gives up everything that is being dialled.
    fn hang_up(&mut self, now: Instant, out: &mut Datagrams) {
        let detail = self.closing.as_ref().and_then(|goodbye| goodbye.detail.clone());
        let pending = self.links.dials.iter().filter(|dial| dial.is_pending()).map(|dial| dial.peer);
        for peer in pending.collect::<Vec<_>>() {
            self.links.disconnect(now, peer, None, None, out);
            let detail = detail.as_ref().map(|detail| detail.as_str().into());
            self.report(peer, DisconnectReason::Closed, detail, None);
        }
    }

    fn begin_end(&mut self, now: Instant, handle: PeerHandle, reason: CloseReason, goodbye: Goodbye) {
        let channels = self.protocol.game_channels();
        let Some(peer) = self.peers.live_mut(handle) else { return };
        // Earlier messages are still handed over, but not those of undecided newcomers.
        if peer.is_admitted() {
            self.leftovers.take_from(handle, &mut peer.connection, channels);
            self.incoming.finish(handle, peer.id, &mut peer.connection);
        }
        peer.closing = Some(Closing::new(now, reason, goodbye));
        self.lingering += 1;
    }

    /// Ends a connection as the application asked; the goodbyes may be spread `until` the given time.
    fn part(
        &mut self,
        now: Instant,
        peer: PeerHandle,
        closing: &Closing,
        until: Option<Instant>,
        out: &mut Datagrams,
    ) {
        self.leave(now, peer, Some(closing.reason), closing.detail(), until, out);
        self.report(peer, closing.own_reason(), closing.detail().map(Into::into), None);
    }

    /// A peer's packet ended the conversation.
    pub(super) fn end(&mut self, now: Instant, peer: PeerHandle, end: &End, out: &mut Datagrams) {
        self.leave(now, peer, answer_to(end), None, None, out);
        let closed = match self.links.dialled(peer) {
            Some(_) => DisconnectReason::ServerClosed,
            None => DisconnectReason::PeerDisconnected,
        };
        let violation = if let End::Violation(violation) = end { Some(violation.clone()) } else { None };
        let reason = reason_of(end, closed);
        if reason == DisconnectReason::ProtocolMismatch && self.unannounced.contains(&peer) {
            return self.hide(peer, reason);
        }
        self.report(peer, reason, None, violation);
    }

    /// Like [`Host::report`], for a peer with a different protocol that the application has no event of: a
    /// client is not shown at all, and a dialled server only as unavailable.
    fn hide(&mut self, handle: PeerHandle, reason: DisconnectReason) {
        self.report(handle, reason, None, None);
        self.purge(handle);
        if self.links.dialled(handle).is_some() {
            self.events.retain(|event| event.peer() != handle || matches!(event, Event::Disconnected { .. }));
            return;
        }
        self.connection_counters.mismatched += 1;
        self.events.retain(|event| event.peer() != handle);
        self.forget(handle);
    }

    /// Drops everything of a peer that is gone except its events; the application gets nothing more of it.
    pub(super) fn purge(&mut self, handle: PeerHandle) {
        self.unannounced.remove(&handle);
        self.announced_late.remove(&handle);
        self.left_undecided.retain(|peer| peer.handle != handle);
        self.leftovers.game.records.retain(|record| record.head.peer != handle);
        self.arriving.drop_peer(handle);
        self.unfinished.retain(|(over, _)| *over != handle);
        self.notifications.retain(|(over, _)| *over != handle);
        self.incoming.drop_peer(handle);
    }

    /// Ends the secure connection, and tells the peer why unless it knows.
    pub(super) fn leave(
        &mut self,
        now: Instant,
        handle: PeerHandle,
        answer: Option<CloseReason>,
        detail: Option<&str>,
        until: Option<Instant>,
        out: &mut Datagrams,
    ) {
        let Some(peer) = self.peers.find_mut(handle) else { return };
        let Some(answer) = answer else { return self.links.forget(handle) };
        let farewell = peer.farewell(now, answer, detail);
        self.links.disconnect(now, handle, farewell, until, out);
    }

    /// Ends the conversation and reports it to the application, with the peer's text unless there is an `own` one. If
    /// the application had asked for the end, that is the reason, whatever was faster.
    pub(super) fn report(
        &mut self,
        handle: PeerHandle,
        mut reason: DisconnectReason,
        own: Option<Box<str>>,
        violation: Option<Violation>,
    ) {
        let mut detail = own;
        if let Some(mut peer) = self.peers.remove(handle) {
            detail = detail.or_else(|| peer.connection.take_detail());
            if let Some(closing) = &peer.closing {
                self.lingering -= 1;
                peer.connection.discard_received();
                if violation.is_none() {
                    (reason, detail) = (closing.own_reason(), closing.detail().map(Into::into));
                }
            }
            let stats = PeerStats::of(&peer.connection, &self.protocol);
            self.final_stats.insert(handle, FinalStats { id: peer.id, stats });
            self.ended = self.ended + peer.connection.counters();
            self.ended_chunks = self.ended_chunks + peer.connection.chunks().counters;
            if peer.is_admitted() {
                self.keep_what_is_left(peer);
            } else {
                self.left_undecided.push(peer);
            }
        }
        if let Some(dial) = self.links.dialled_mut(handle) {
            dial.note_end(ConnectionEnd { reason, detail: detail.clone() });
        }
        let event = Event::Disconnected { peer: handle, reason, violation, detail };
        self.note_link(&event);
        self.events.push_back(event);
    }

    /// Keeps what the application hasn't taken of a connection that is over.
    pub(super) fn keep_what_is_left(&mut self, peer: Peer) {
        let Peer { handle, id, mut connection, .. } = peer;
        let channels = self.protocol.game_channels();
        self.leftovers.take_from(handle, &mut connection, channels);
        connection.abandon_all();
        let ready = core::iter::from_fn(|| connection.poll_notification());
        self.notifications.extend(ready.map(|ready| (handle, ready)));
        self.incoming.finish(handle, id, &mut connection);
        if connection.has_unread() {
            self.unfinished.push((handle, connection));
        }
    }

    /// [`Host::refuse`] for a newcomer that is still connected.
    pub(super) fn send_away(
        &mut self,
        now: Instant,
        peer: PeerHandle,
        detail: Option<&Detail>,
        out: &mut Datagrams,
    ) {
        self.leave(now, peer, Some(CloseReason::Kicked), detail.map(Detail::as_str), None, out);
        self.report(peer, DisconnectReason::Kicked, None, None);
    }
}
