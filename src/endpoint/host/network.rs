//! Datagrams in and out, and time.

use core::net::SocketAddr;

use super::Host;
use crate::endpoint::PeerHandle;
use crate::endpoint::event::LinkEvent;
use crate::endpoint::feature::{Feature, ForPeer};
use crate::endpoint::goodbye::Closing;
use crate::endpoint::peers::Peer;
use crate::endpoint::reason::DisconnectReason;
use crate::endpoint::schedule::{Pace, Visit};
use crate::netcode::Farewell;
use crate::store::Datagrams;
use crate::time::{Duration, Instant, UnixSeconds};
use crate::transport::{CloseReason, Connection};

/// A driver that was awake between ticks so recently is taken to be so on.
const AWAKE: Duration = Duration::from_millis(50);

impl Host {
    /// Takes one datagram; it is decrypted in place. Answers of the handshake are appended to `out`.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &mut [u8],
        out: &mut Datagrams,
    ) {
        let has_room = self.events.len() < self.links.max_events();
        if let Some(listener) = &mut self.links.listener {
            listener.set_welcoming(has_room && self.closing.is_none());
        }
        let peers = &self.peers;
        let claimed = |peer: PeerHandle| peers.prefetch(peer.slot);
        let received = self.links.handle_datagram(now, unix, from, datagram, out, claimed);
        self.apply_link_events(now);
        let Some((handle, number, payload)) = received else { return };
        let Some(peer) = self.peers.change(handle) else { return };
        peer.connection.prefetch();
        peer.connection.swap_scratch(&mut self.scratch);
        // The application gets nothing of peers that it doesn't know yet or no longer.
        let handled = if peer.is_heard() && !self.unannounced.contains(&handle) {
            peer.connection.handle_into(now, number, payload, self.arriving.of(handle))
        } else {
            peer.connection.handle_datagram(now, number, payload)
        };
        if handled.is_ok() && peer.closing.is_some() {
            peer.connection.discard_received();
        }
        for channel in self.protocol.feature_channels() {
            let received = core::iter::from_fn(|| peer.connection.poll_received(channel));
            self.payloads.extend(received.map(|received| (handle, channel, received)));
        }
        peer.connection.swap_scratch(&mut self.scratch);
        let news = peer.news(self.protocol.has_chunks());
        if let Err(end) = handled {
            return self.end(now, handle, &end, out);
        }
        if self.protocol.has_chunks() && peer.closing.is_none() {
            // Now, because the next datagram may carry a slice of a chunk that this one offers.
            self.incoming.poll(peer.handle, peer.id, &mut peer.connection, &mut peer.quota);
        }
        self.peers.schedule.set_news(handle.slot as usize, news);
    }

    /// The system reports that nothing listens at an address.
    pub fn note_unreachable(&mut self, now: Instant, address: SocketAddr) {
        self.links.note_unreachable(now, address);
        self.apply_link_events(now);
    }

    /// The layer below has found out that no way leads to the address at which a server is dialled: the dial ends with
    /// this reason, unless the token has another address.
    pub fn note_no_way(&mut self, now: Instant, peer: PeerHandle, reason: DisconnectReason, detail: String) {
        self.links.note_no_way(now, peer, reason, detail);
        self.apply_link_events(now);
    }

    /// Appends everything that is due to `out`, and notices timeouts: once a tick. Idle connections cost no more than
    /// a glance.
    pub fn transmit(&mut self, now: Instant, out: &mut Datagrams) {
        self.transmit_at(now, Pace::Tick, out, None);
    }

    /// Like [`Host::transmit`], and asks the feature to fill the channels passed to [`Connection::want`], peer by peer and
    /// packet by packet.
    pub fn transmit_with(&mut self, now: Instant, out: &mut Datagrams, feature: &mut dyn Feature) {
        self.transmit_at(now, Pace::Tick, out, Some(feature));
    }

    /// Appends what needn't wait for the tick, like [`Connection::transmit_between`], and notices timeouts: for
    /// drivers that wake at [`Host::next_deadline`] and after datagrams. Idle connections cost no more than a glance.
    pub fn transmit_between(&mut self, now: Instant, out: &mut Datagrams) {
        self.awake_until = now + AWAKE;
        self.transmit_at(now, Pace::Between, out, None);
    }

    /// When [`Host::transmit_between`] has something to do, unless a datagram arrives earlier; [`Instant::ZERO`] if
    /// that must be recomputed because something was sent or received.
    pub fn next_deadline(&self) -> Instant {
        if self.closing.is_some() && self.links.dials.iter().any(|dial| dial.is_pending()) {
            return Instant::ZERO;
        }
        let next =
            self.peers.schedule.next_deadline().min(self.links.next_deadline()).min(self.stalled_deadline());
        if self.lingering == 0 {
            return next;
        }
        let closing = self.peers.iter().filter_map(|peer| peer.closing.as_ref());
        closing.map(|closing| closing.until).fold(next, Instant::min)
    }

    fn transmit_at(
        &mut self,
        now: Instant,
        pace: Pace,
        out: &mut Datagrams,
        mut feature: Option<&mut dyn Feature>,
    ) {
        while let Some(overdue) = self.links.overdue(now) {
            let farewell = self.farewell(now, overdue, CloseReason::TimedOut);
            self.links.give_up(now, overdue, farewell, out);
            self.apply_link_events(now);
        }
        let has_chunks = self.protocol.has_chunks();
        let awake = now < self.awake_until;
        // With many connections, the next wake-up is usually for another connection. A client's only one is visited anyway.
        let foretells = awake && self.links.listener.is_some();
        self.peers.visit_due(now, pace, |peer| {
            if has_chunks && peer.closing.is_none() {
                self.incoming.poll(peer.handle, peer.id, &mut peer.connection, &mut peer.quota);
            }
            peer.connection.swap_scratch(&mut self.scratch);
            let lost = peer.connection.packets_lost();
            peer.connection.set_awake(awake);
            peer.connection.skip_to(self.links.next_number(peer.handle));
            let sent = out.len();
            let mut outlet = self.links.outlet(now, peer.handle, out);
            let next = match (pace, feature.as_mut().filter(|_| peer.closing.is_none())) {
                (Pace::Between, _) => peer.connection.transmit_between(now, &mut outlet),
                (Pace::Tick, None) => peer.connection.transmit(now, &mut outlet),
                (Pace::Tick, Some(feature)) => {
                    let mut fill = ForPeer { peer: peer.handle, feature: &mut **feature };
                    peer.connection.transmit_filled(now, &mut outlet, &mut fill)
                }
            };
            drop(outlet);
            let news = peer.news(has_chunks);
            let chunks_move = has_chunks && !peer.connection.chunks().is_idle();
            let changed = out.len() > sent || peer.connection.packets_lost() != lost;
            let other =
                next_of_other_pace(now, pace, &mut peer.connection, (changed, chunks_move), foretells);
            peer.connection.swap_scratch(&mut self.scratch);
            Visit { next, news, other }
        });
        if !self.stalled.is_empty() {
            self.end_stalled(now, out);
        }
        // After the packets, which keep connections alive too.
        self.links.update(now, out);
        self.apply_link_events(now);
        self.links.say_goodbyes(now, out);
        if self.lingering > 0 || self.closing.is_some() {
            self.end_linger(now, out);
        }
    }

    /// Applies the events of the secure connections below.
    fn apply_link_events(&mut self, now: Instant) {
        while let Some(event) = self.links.poll_event(&self.protocol) {
            match event {
                LinkEvent::Up { event, id } => {
                    let Ok(connection) = Connection::new(&self.config, self.protocol.clone()) else {
                        continue;
                    };
                    // The next one skips other numbers.
                    if let Some(seeds) = &mut self.skip_seeds {
                        self.config.skip_seed = Some(seeds.next_u64());
                    }
                    let handle = event.peer();
                    let is_held =
                        self.asks_admission && (self.serves_peers || self.links.dialled(handle).is_none());
                    let mut peer = Peer::new(handle, id, Box::new(connection), is_held);
                    if let Some(goodbye) = &self.closing {
                        peer.closing = Some(Closing::new(now, CloseReason::Closed, goodbye.clone()));
                        self.lingering += 1;
                    }
                    self.peers.insert(peer);
                    self.unannounced.insert(handle);
                    self.note_link(&event);
                    self.events.push_back(event);
                }
                LinkEvent::Down { peer, reason, answer, detail } => {
                    if let Some(farewell) = answer.and_then(|answer| self.farewell(now, peer, answer)) {
                        self.links.set_farewell(peer, farewell);
                    }
                    self.report(peer, reason, detail, None);
                }
            }
        }
    }

    /// The last packet for a peer that fell silent or was replaced.
    fn farewell(&mut self, now: Instant, handle: PeerHandle, reason: CloseReason) -> Option<Farewell> {
        let peer = self.peers.find_mut(handle)?;
        let closing = peer.closing.take();
        let farewell = peer.farewell(now, reason, closing.as_ref().and_then(Closing::detail));
        peer.closing = closing;
        farewell
    }
}

/// When the pace other than this one has something to do, after a visit; None if that is unchanged.
fn next_of_other_pace(
    now: Instant,
    pace: Pace,
    connection: &mut Connection,
    (changed, chunks_move): (bool, bool),
    foretells: bool,
) -> Option<Instant> {
    if pace == Pace::Between {
        // After a datagram, most ticks have nothing to do and needn't find that out by a visit.
        return Some(connection.next_tick());
    }
    if foretells && changed && !chunks_move {
        // A visit at the next wake-up would cost more.
        return Some(connection.next_between(now));
    }
    (changed || chunks_move).then_some(Instant::ZERO)
}
