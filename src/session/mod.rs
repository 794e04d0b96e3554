//! One tick in code: an endpoint and the features above it, in the order in which they fill packets and read them.
//! Drivers carry sessions, and the bindings bind them.
//!
//! Promises: a tick hands up one value, [`Tick`], taken whole, whose parts are all of the same moment. A peer's first
//! event comes at least a tick before anything else from that peer, and its last event at least a tick after, so an
//! application may read the parts of a tick in any order. A lingering session is ticked without its application, and
//! ends in time.

mod feature;
mod features;
mod ghosts;
mod hosted;
pub mod hosting;
mod lockstep;
mod lockstep_worlds;
mod opening;
mod peer_core;
mod peer_links;
mod peers;
pub mod protocol;
mod rollback;
mod settings;
mod tick;
pub mod timing;
mod view;
mod ways;

pub use ghosts::Ghosts;
pub use hosted::{Seat, Standing, client_id};
pub use lockstep::SharedLockstep;
pub use opening::Opening;
pub use peer_core::Carried;
pub use peers::{PeerConfig, PeerPart};
pub use rollback::SharedRollback;
pub use settings::Setting;
pub use tick::Tick;
pub use timing::Timing;
pub use view::{ClientView, PastView, Playing, View};

use core::net::SocketAddr;

use self::features::Features;
use self::hosting::HostingCounters;
use self::protocol::ServerTime;
use self::view::Line;
use crate::endpoint::{Event, Goodbye, Host, MAX_LINGER, PeerHandle, Rooms};
use crate::netcode;
use crate::replication::Mirror;
use crate::store::Datagrams;
use crate::time::{Duration, Instant, UnixSeconds};
use crate::transport::{ReadPackets, Received};

/// How often a lingering endpoint, which nobody ticks, ticks itself: copies of redundant messages go out with ticks.
const LINGER_TICK: Duration = Duration::from_millis(16);

/// An endpoint with the features above it.
pub struct Session {
    host: Host,
    /// Grows with each possible change.
    version: u64,
    lingering: Option<Lingering>,
    rooms: Rooms,
    features: Features,
    /// An earlier tick told the application that it is connected, so it may see ghosts.
    shows_ghosts: bool,
    knows_server: bool,
    /// The last take held back the server's last event, so that the application can still look at the world.
    has_waited: bool,
    payloads: Vec<(PeerHandle, usize, Received)>,
}

/// How long a host that leaves waits at most until the next hosts have its world.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(2);

/// The wait for peers after the application closed the session.
struct Lingering {
    until: Instant,
    next_tick: Instant,
    /// The goodbye that follows once the next hosts have the world.
    goodbye: Option<Goodbye>,
}

impl Session {
    /// A session of a new endpoint.
    pub fn new(host: Host) -> Self {
        Self::with_roles(host, Ghosts::None, None)
    }

    /// Like [`Session::new`], with a role in ghosts and in the server's time.
    pub fn with_roles(host: Host, ghosts: Ghosts, time: Option<&ServerTime>) -> Self {
        let timing = if host.listener().is_some() { Timing::server(time) } else { Timing::client(time) };
        let mut ghosts = ghosts;
        if let (Some(mirror), Timing::Client(_)) = (ghosts.mirror(), &timing) {
            mirror.note_owned();
        }
        Session {
            features: Features::new(host.protocol(), ghosts, timing),
            host,
            version: 0,
            lingering: None,
            rooms: Rooms::default(),
            shows_ghosts: false,
            knows_server: false,
            has_waited: false,
            payloads: Vec::new(),
        }
    }

    /// Gives it its part in a game without a server, before anything else was done with it.
    pub fn set_peers(&mut self, now: Instant, mut part: PeerPart) {
        part.attach(self.host.protocol());
        self.host.serve_peers();
        self.features.peers.insert(Box::new(part)).host_game(now, &mut self.host);
    }

    /// Its part in a game without a server.
    pub fn peers(&mut self) -> Option<&mut PeerPart> {
        self.features.peers.as_deref_mut()
    }

    /// The counters of a game that the peers host.
    pub fn hosting_counters(&self) -> Option<HostingCounters> {
        self.features.peers.as_ref()?.hosting_counters()
    }

    /// The endpoint, for queries.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The endpoint, for changes: earlier answers about it may no longer hold.
    pub fn change(&mut self) -> &mut Host {
        self.version += 1;
        &mut self.host
    }

    /// Dials again after the connection to the server is over. The time of that connection ends now; its ghosts stay until
    /// the next server tells which of them it continues.
    pub fn redial(&mut self, netcode: netcode::Client) -> PeerHandle {
        self.features.timing.forget_server();
        self.change().dial_prepared(netcode, 0)
    }

    /// The rooms of its peers.
    pub fn rooms(&mut self) -> &mut Rooms {
        &mut self.rooms
    }

    /// A number that differs after each [`Session::change`].
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The session's role in ghosts.
    pub fn ghosts(&mut self) -> &mut Ghosts {
        &mut self.features.ghosts.role
    }

    /// The session's role in inputs and the server's time.
    pub fn timing(&mut self) -> &mut Timing {
        &mut self.features.timing
    }

    /// A server's tick: the last one flushed, with the number that ghosts' packets carry.
    pub fn tick(&mut self) -> u32 {
        self.features.tick()
    }

    /// Takes the inputs for the tick that now begins, by this clock: once a tick, after [`Session::take`].
    pub fn take_inputs(&mut self, clock: impl FnOnce() -> Instant) {
        if self.features.timing.inputs().is_none() {
            return;
        }
        let (now, tick) = (clock(), self.tick());
        if let Timing::Server(timing) = &mut self.features.timing {
            timing.take(now, tick);
        }
    }

    /// The world as a client sees it, to be read in each tick. The server's last event is held back for one tick so
    /// that the final state can still be read. None until the tick after the one with the connected event.
    pub fn mirror(&mut self) -> Option<&mut Mirror> {
        if self.shows_ghosts { self.features.ghosts.role.mirror() } else { None }
    }

    /// Shows a client's world in a view, at `now` or at a tick that the application asks for. Returns the tick that is shown,
    /// if any is.
    pub fn show<'a, C: AsMut<[&'a mut [u8]]>>(
        &mut self,
        view: &mut ClientView,
        now: Option<Instant>,
        tick: Option<f64>,
        columns: &mut [C],
    ) -> Option<f64> {
        let mirror = self.features.ghosts.role.mirror().filter(|_| self.shows_ghosts)?;
        let server = self.features.ghosts.server;
        let line = server.map_or(Line::default(), |server| timing::line_to(&self.host, mirror, server, now));
        view.show((mirror, self.features.timing.player()), line, now, tick, columns)
    }

    /// Takes one datagram; it is decrypted in place. Answers of the handshake are appended to `out`.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &mut [u8],
        out: &mut Datagrams,
    ) {
        if let Some(peers) = &mut self.features.peers {
            peers.set_unix(now, unix);
        }
        self.change().handle_datagram(now, unix, from, datagram, out);
        let mut payloads = core::mem::take(&mut self.payloads);
        self.host.take_payloads(&mut payloads);
        for (peer, channel, received) in payloads.drain(..) {
            let before = self.features.ghosts.server;
            let read = self.features.read(now, &self.host, peer, channel, received);
            self.note_server(before);
            if let Err((feature, why)) = read {
                self.host.refuse_payload(now, peer, feature, &why, out);
            }
        }
        self.payloads = payloads;
        self.run_peers(now, out);
    }

    fn run_peers(&mut self, now: Instant, out: &mut Datagrams) {
        if let Some(peers) = &mut self.features.peers {
            peers.run(now, &mut self.host, out);
        }
    }

    /// Takes everything that waits for the application. If packets came that only the application's code can read,
    /// takes only those: read them, and pass the result to [`Session::handle_read`].
    pub fn take(&mut self, now: Instant, tick: &mut Tick) {
        tick.unread = self.change().take_unread();
        if tick.unread.is_empty() {
            self.take_rest(now, tick);
        }
    }

    /// Takes the contents of the packets that the application has read, which come first in the tick's inbox, and
    /// then everything else.
    pub fn handle_read(
        &mut self,
        now: Instant,
        read: Vec<(PeerHandle, ReadPackets)>,
        tick: &mut Tick,
        out: &mut Datagrams,
    ) {
        for (peer, read) in read {
            self.change().handle_read(now, peer, read, &mut tick.inbox, out);
        }
        self.take_rest(now, tick);
    }

    fn take_rest(&mut self, now: Instant, tick: &mut Tick) {
        self.change().take_messages(&mut tick.inbox);
        self.host.take_chunk_events(&mut tick.chunks);
        if let Some(peers) = &mut self.features.peers {
            peers.take_worlds(&mut tick.chunks);
        }
        self.host.take_notifications(&mut tick.notifications);
        self.features.take_notifications(&mut tick.notifications);
        // Last: nothing of a peer may come before the application knows it.
        let (mut events, mut final_stats, mut here) = (Vec::new(), Vec::new(), None);
        // The application may never look at ghosts, or have no columns for them: the event is held back only once.
        let is_shown = self.shows_ghosts && !self.has_waited && self.features.ghosts.role.has_news();
        let (server, mut waits) = (self.features.ghosts.server.filter(|_| is_shown), false);
        let is_here = |peer| {
            waits |= server == Some(peer);
            server == Some(peer) || here.get_or_insert_with(|| tick.peers()).contains(&peer)
        };
        self.host.take_events(is_here, &mut events, &mut final_stats);
        self.has_waited = waits;
        self.shows_ghosts = self.knows_server;
        for event in &events {
            if let Event::Dialled { peer, .. } = event {
                let before = self.features.ghosts.server;
                if self.features.ghosts.follow(&self.host, *peer) {
                    self.note_server(before);
                    self.knows_server = true;
                }
            }
        }
        self.rooms.note_events(now, &mut self.host, &events);
        self.features.note_events(now, &self.host, &events);
        if let Some(peers) = &mut self.features.peers {
            let is_more = peers.is_over() && !tick.peers().is_empty();
            peers.take(&events, is_more, &mut tick.players);
        }
        tick.events.append(&mut events);
        // Only a server's application asks for them.
        if self.features.peers.is_none() {
            tick.final_stats.append(&mut final_stats);
        }
    }

    /// Hides the new server's world until the application knows that server.
    fn note_server(&mut self, before: Option<PeerHandle>) {
        if before.is_some() && before != self.features.ghosts.server {
            (self.shows_ghosts, self.knows_server) = (false, false);
        }
    }

    /// Appends everything that is due, messages and ghosts included: once a tick.
    pub fn transmit(&mut self, now: Instant, out: &mut Datagrams) {
        self.version += 1;
        self.run_peers(now, out);
        if let Some(peers) = &mut self.features.peers {
            peers.host_game(now, &mut self.host);
        }
        self.end_handover(now);
        self.features.transmit(now, &mut self.host, out);
    }

    /// Appends what needn't wait for a tick of the application; while it lingers, ticks included.
    pub fn transmit_between(&mut self, now: Instant, out: &mut Datagrams) {
        match &mut self.lingering {
            Some(lingering) if lingering.next_tick <= now => {
                lingering.next_tick = now + LINGER_TICK;
                self.transmit(now, out);
            }
            _ => {
                self.run_peers(now, out);
                self.change().transmit_between(now, out);
            }
        }
    }

    /// When [`Session::transmit_between`] has something to do, unless a datagram arrives earlier.
    pub fn next_deadline(&self) -> Instant {
        let tick = self.lingering.as_ref().map_or(Instant::NEVER, |lingering| lingering.next_tick);
        let peers = self.features.peers.as_ref().map_or(Instant::NEVER, |peers| peers.next_deadline());
        self.host.next_deadline().min(tick).min(peers)
    }

    /// Ends each connection once its peer has what was queued for it, or when the goodbye's time is over. The host of a
    /// game first waits until the next hosts have its world. Returns for how long at most the session must be driven
    /// until [`Session::has_lingered`], because of this call or an earlier one; None: close it now.
    pub fn begin_close(&mut self, now: Instant, goodbye: Goodbye, out: &mut Datagrams) -> Option<Duration> {
        let linger = goodbye.linger.min(MAX_LINGER);
        let is_first = self.lingering.is_none();
        let hands_over =
            is_first && self.features.peers.as_mut().is_some_and(|peers| peers.is_handing_over(now));
        if !hands_over {
            self.change().begin_close(now, goodbye.clone());
            if linger.is_zero() {
                return None;
            }
        }
        if is_first {
            let patience = if hands_over { HANDOVER_TIMEOUT } else { Duration::ZERO };
            let (until, next_tick) = (now + patience + linger, now + LINGER_TICK);
            self.lingering =
                Some(Lingering { until, next_tick, goodbye: Some(goodbye).filter(|_| hands_over) });
            self.transmit(now, out);
        }
        self.lingering.as_ref().map(|lingering| lingering.until - now)
    }

    /// Ends the connections of a host that leaves, once the next hosts have its world or were given enough time.
    fn end_handover(&mut self, now: Instant) {
        let (Some(lingering), Some(peers)) = (&mut self.lingering, &mut self.features.peers) else { return };
        let Some(linger) = lingering.goodbye.as_ref().map(|goodbye| goodbye.linger) else { return };
        let mut chunks = Vec::new();
        self.host.take_chunk_events(&mut chunks);
        peers.take_worlds(&mut chunks);
        if now + linger < lingering.until && peers.is_handing_over(now) {
            return;
        }
        lingering.until = now + linger;
        if let Some(goodbye) = lingering.goodbye.take() {
            self.change().begin_close(now, goodbye);
        }
    }

    /// Whether the application closed it, to linger.
    pub fn is_lingering(&self) -> bool {
        self.lingering.is_some()
    }

    /// Whether lingering is done, or has taken long enough.
    pub fn has_lingered(&self, now: Instant) -> bool {
        let Some(lingering) = &self.lingering else { return false };
        lingering.until <= now || self.host.is_over()
    }
}
