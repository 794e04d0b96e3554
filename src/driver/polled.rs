//! Carries the datagrams of one endpoint when it is called: on the game's thread, once or a few times a tick.
//!
//! Promises: a call reads a bounded number of datagrams; a datagram's time is never before its arrival, so that no
//! round trip seems shorter than it was, and datagrams of one system call share it (with a
//! [`capture`](super::capture), those of one call, so that a replay has the same ticks); a simulated link delays,
//! loses and duplicates only sent datagrams, so a pair with a link on each side has bad conditions once in each
//! direction.

use std::io;
use std::net::SocketAddr;

use super::capture::{Capture, Captured, Way};
use super::clock::WallClock;
use super::hosted::{HostedCounters, HostedPorts};
use super::local::{LocalClients, LocalCounters, is_local};
use super::port::{Port, canonical};
use super::simulated::VirtualNetwork;
use super::udp::{DEFAULT_RECEIVE_BOUND, UdpConfig, UdpCounters, UdpSocket};
#[cfg(target_os = "linux")]
use super::wakes::Wakes;
use crate::netsim::conditions::{Conditions, ConditionsError};
use crate::netsim::link::{Link, LinkCounters};
use crate::rendezvous::carrying::CarryCounters;
use crate::rendezvous::{CARRIED_HEAD, CarriedHere, Handled, MemberRelay, RendezvousClient};
use crate::store::Datagrams;
use crate::time::{Instant, UnixSeconds};

/// Carries the datagrams of one endpoint.
pub struct Driver {
    /// For an event loop, once it asked. Before the port, so that it is dropped first.
    #[cfg(target_os = "linux")]
    wakes: Option<Box<Wakes>>,
    port: Port,
    link: Option<Link<(SocketAddr, Vec<u8>)>>,
    /// A peer's part in a rendezvous, which shares the port.
    rendezvous: Option<Box<RendezvousClient>>,
    /// A player's part in carrying for others, on the same port.
    members: Option<Box<MemberRelay>>,
    /// A server's clients in its own process.
    locals: LocalClients,
    /// The server and the client of a game that players host.
    hosted: Option<Box<HostedPorts>>,
    out: Datagrams,
    log: Option<Log>,
    unix: WallClock,
}

impl core::fmt::Debug for Driver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Driver").field("port", &self.port).finish_non_exhaustive()
    }
}

/// Where the datagrams are captured.
#[derive(Debug)]
struct Log {
    capture: Capture,
    local: SocketAddr,
    /// The driver's time zero, in nanoseconds since 1970.
    origin: u64,
}

/// The counters of a driver.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriverCounters {
    /// The socket's; zeros on a virtual network.
    pub udp: UdpCounters,
    /// The simulated link's; zeros without one.
    pub link: LinkCounters,
    /// What a player carried for others; None if it isn't asked to carry.
    pub carry: Option<CarryCounters>,
    /// A server's local clients'; None if it never had any.
    pub local: Option<LocalCounters>,
    /// A hosted game's, on a peer's port; None without one.
    pub hosted: Option<HostedCounters>,
}

impl Driver {
    /// A driver over a UDP socket bound to `address`; with port 0 the system picks one. A socket bound to all IPv6
    /// addresses receives IPv4 too, with plain IPv4 addresses.
    ///
    /// # Errors
    ///
    /// The system's, with errno.
    pub fn udp(address: SocketAddr, config: UdpConfig) -> io::Result<Self> {
        Port::udp(address, config).map(Self::over)
    }

    /// A driver at `address` of a virtual network; port 0 picks a free one.
    ///
    /// # Errors
    /// When the address is in use.
    pub fn simulated(network: VirtualNetwork, address: SocketAddr) -> io::Result<Self> {
        Port::simulated(network, address).map(Self::over)
    }

    fn over(port: Port) -> Self {
        Driver {
            port,
            #[cfg(target_os = "linux")]
            wakes: None,
            link: None,
            rendezvous: None,
            members: None,
            locals: LocalClients::default(),
            hosted: None,
            out: Datagrams::new(),
            log: None,
            unix: WallClock::UNREAD,
        }
    }

    /// Puts a link with bad conditions before all that is sent. Its packets leave when the driver is called.
    ///
    /// # Errors
    /// When the conditions can't be met.
    pub fn set_link(&mut self, conditions: Conditions, seed: u64) -> Result<(), ConditionsError> {
        self.link = Some(Link::new(conditions, seed)?);
        Ok(())
    }

    /// Makes the driver of a client in the same process, whose datagrams pass through memory.
    pub fn connect_local(&mut self) -> Driver {
        Self::over(Port::Local(self.locals.connect(self.local_address(), self.port.clock())))
    }

    /// Makes the driver of the server, or of the client, of the game that the players of this peer's port host. The
    /// address stands for it.
    pub fn open_hosted(&mut self, is_server: bool, address: SocketAddr) -> Driver {
        let clock = self.port.clock();
        let hosted = self.hosted.get_or_insert_default();
        let port = match is_server {
            true => hosted.open_server(address, clock),
            false => hosted.open_client(address, clock),
        };
        Self::over(Port::Local(port))
    }

    /// The ports of the game that the players host.
    pub fn hosted(&mut self) -> Option<&mut HostedPorts> {
        self.hosted.as_deref_mut()
    }

    /// Whether there are clients in the same process.
    pub(super) fn has_locals(&self) -> bool {
        !self.locals.is_empty()
    }

    /// Gives the port's datagrams of a rendezvous to a peer's part in it, and wraps what goes to its virtual addresses.
    pub fn set_rendezvous(&mut self, client: RendezvousClient) {
        self.rendezvous = Some(Box::new(client));
    }

    /// The peer's part in a rendezvous.
    pub fn rendezvous(&mut self) -> Option<&mut RendezvousClient> {
        self.rendezvous.as_deref_mut()
    }

    /// Has the port carry for players who don't reach each other, and wraps what goes to addresses that stand for some.
    pub fn set_member_relay(&mut self, relay: MemberRelay) {
        self.members = Some(Box::new(relay));
    }

    /// The player's part in carrying.
    pub fn member_relay(&mut self) -> Option<&mut MemberRelay> {
        self.members.as_deref_mut()
    }

    /// Captures all datagrams from now on: received ones on arrival, sent ones as they leave.
    pub fn set_capture(&mut self, capture: Capture) {
        self.log = Some(Log { capture, local: self.local_address(), origin: self.origin() });
    }

    /// Where datagrams are captured.
    pub fn capture(&self) -> Option<&Capture> {
        self.log.as_ref().map(|log| &log.capture)
    }

    /// The driver's time zero by the wall clock, in nanoseconds since 1970.
    pub fn origin(&self) -> u64 {
        self.port.clock().origin()
    }

    /// The address bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The time, since the driver's start or the virtual network's.
    pub fn now(&self) -> Instant {
        self.port.now()
    }

    /// The wall clock, for tokens.
    pub fn unix(&self) -> UnixSeconds {
        self.port.clock().unix()
    }

    pub fn counters(&self) -> DriverCounters {
        let udp = self.port.socket().map(UdpSocket::counters).unwrap_or_default();
        let link = self.link.as_ref().map(Link::counters).unwrap_or_default();
        let carry = self.members.as_ref().map(|members| members.counters());
        let hosted = self.hosted.as_ref().map(|hosted| hosted.counters());
        DriverCounters { udp, link, carry, local: self.locals.counters(), hosted }
    }

    /// Passes each waiting datagram to `handle`, up to the bound of one call, and sends its answers.
    ///
    /// # Errors
    ///
    /// A permanent receive error. Datagrams received before it have been handled and answered.
    pub fn receive(
        &mut self,
        handle: impl FnMut(Instant, UnixSeconds, SocketAddr, &mut [u8], &mut Datagrams),
    ) -> io::Result<()> {
        self.receive_at_most(DEFAULT_RECEIVE_BOUND, handle).map(drop)
    }

    /// Like [`Driver::receive`], with its own bound. True if the bound ended it and more may wait.
    ///
    /// # Errors
    ///
    /// Those of [`Driver::receive`].
    pub fn receive_at_most(
        &mut self,
        bound: usize,
        mut handle: impl FnMut(Instant, UnixSeconds, SocketAddr, &mut [u8], &mut Datagrams),
    ) -> io::Result<bool> {
        let (mut last, mut read) = (None, 0);
        let Driver { port, rendezvous, members, locals, hosted, out, log, unix, .. } = self;
        let virtual_unix = port.clock().virtual_unix();
        let mut result = port.receive(bound, log.is_some(), |now, from, datagram| {
            if let Some(log) = &log {
                log.received(now, from, datagram);
            }
            last = Some(now);
            read += 1;
            if locals.is_forged(from) {
                return;
            }
            let unix = virtual_unix.unwrap_or_else(|| unix.read(now));
            let (mut from, mut skipped) =
                match rendezvous.as_mut().map(|it| it.handle_datagram(now, from, datagram, out)) {
                    None => (from, 0),
                    Some(Handled::NotOurs) => (rendezvous.as_ref().map_or(from, |it| it.known_as(from)), 0),
                    Some(Handled::Relayed(from, inside)) => (from, datagram.len() - inside.len()),
                    Some(Handled::Taken) => return,
                };
            match members.as_mut().map(|it| it.handle_datagram(now, from, &datagram[skipped..], out)) {
                None | Some(CarriedHere::NotCarried) => {}
                Some(CarriedHere::Taken) => return,
                Some(CarriedHere::Ours(sender)) => (from, skipped) = (sender, skipped + CARRIED_HEAD),
            }
            if hosted.as_mut().is_some_and(|it| it.handle_datagram(from, &datagram[skipped..])) {
                return;
            }
            handle(now, unix, from, &mut datagram[skipped..], out);
        });
        if !locals.is_empty() {
            let now = port.now();
            let unix = virtual_unix.unwrap_or_else(|| unix.read(now));
            let more = locals.take(bound, |from, datagram| {
                if let Some(log) = &log {
                    log.received(now, from, datagram);
                }
                last = Some(now);
                handle(now, unix, from, datagram, out);
            });
            result = result.map(|more_waits| more_waits || more);
        }
        self.note_read(read, matches!(result, Ok(true)));
        if self.sends_between() {
            self.send(last.unwrap_or_else(|| self.now()));
        }
        result
    }

    /// Sends the datagrams that `write` appends.
    pub fn transmit<T>(&mut self, write: impl FnOnce(Instant, &mut Datagrams) -> T) -> T {
        self.transmit_at(self.now(), write)
    }

    /// Like [`Driver::transmit`], by a clock that was just read.
    pub(super) fn transmit_at<T>(
        &mut self,
        now: Instant,
        write: impl FnOnce(Instant, &mut Datagrams) -> T,
    ) -> T {
        let result = write(now, &mut self.out);
        self.send(now);
        result
    }

    // See `UdpSocket::watch_refusals`.
    pub fn watch_refusals(&mut self, watch: bool) {
        if let Some(socket) = self.port.socket_mut() {
            socket.watch_refusals(watch);
        }
    }

    // See `UdpSocket::refused`.
    pub fn refused(&mut self) -> Option<SocketAddr> {
        self.port.socket_mut()?.refused().map(canonical)
    }

    /// The socket, for waiting on it; None on a virtual network.
    pub fn socket(&self) -> Option<&UdpSocket> {
        self.port.socket()
    }

    /// What an event loop waits on for a server: a descriptor that moderates wakes (see [`super::wakes`]) where the system
    /// has such ones, else the socket; None on a virtual network.
    ///
    /// # Errors
    ///
    /// When the system has no descriptor to spare.
    #[cfg(target_os = "linux")]
    pub fn wake_number(&mut self) -> io::Result<Option<i64>> {
        let Some(socket) = self.port.socket() else { return Ok(None) };
        let wakes = match self.wakes.take() {
            Some(wakes) => wakes,
            None => Box::new(Wakes::new(socket.descriptor())?),
        };
        Ok(Some(self.wakes.insert(wakes).number()))
    }

    #[cfg(not(target_os = "linux"))]
    pub fn wake_number(&mut self) -> io::Result<Option<i64>> {
        Ok(self.socket().map(UdpSocket::number))
    }

    /// Datagrams were read; whether more wait.
    #[cfg(target_os = "linux")]
    fn note_read(&mut self, datagrams: usize, more_waits: bool) {
        let Some(wakes) = &mut self.wakes else { return };
        wakes.note_read(self.port.now(), datagrams, more_waits);
    }

    #[cfg(not(target_os = "linux"))]
    fn note_read(&mut self, _datagrams: usize, _more_waits: bool) {}

    /// When a packet leaves the simulated link in front, or the rendezvous has something to say: the driver is to be
    /// called then.
    pub fn next_delivery(&self) -> Instant {
        let link = self.link.as_ref().and_then(Link::next_delivery).unwrap_or(Instant::NEVER);
        self.rendezvous.as_ref().map_or(link, |it| link.min(it.next_deadline()))
    }

    /// Withdraws the code of our game, and sends at once all that a simulated link still holds: no later call will come.
    pub fn finish(&mut self) {
        if let Some(rendezvous) = &mut self.rendezvous {
            rendezvous.unregister(&mut self.out);
        }
        if let Some(link) = &mut self.link {
            while let Some(at) = link.next_delivery() {
                while let Some((to, datagram)) = link.poll(at) {
                    self.out.push(to, &datagram);
                }
            }
        }
        self.send_out(self.now());
        self.flush_capture();
    }

    /// Whether a call that takes nothing may send something.
    fn sends_between(&self) -> bool {
        !self.out.is_empty() || self.members.is_some() || self.rendezvous.is_some() || self.link.is_some()
    }

    fn send(&mut self, now: Instant) {
        if let Some(hosted) = &mut self.hosted {
            hosted.take_outgoing(&mut self.out);
        }
        if self.has_locals() {
            if let Some(log) = &self.log {
                self.out.iter().filter(|(to, _)| is_local(*to)).for_each(|(to, it)| log.sent(now, to, it));
            }
            self.locals.send(&mut self.out);
        }
        if let Some(members) = &mut self.members {
            members.wrap_all(now, &mut self.out);
        }
        if let Some(rendezvous) = &mut self.rendezvous {
            rendezvous.wrap_all(now, &mut self.out);
            rendezvous.transmit(now, &mut self.out);
        }
        if let Some(link) = &mut self.link {
            for (to, datagram) in self.out.iter() {
                link.send(now, (to, datagram.to_vec()), datagram.len());
            }
            self.out.clear();
            while let Some((to, datagram)) = link.poll(now) {
                self.out.push(to, &datagram);
            }
        }
        self.send_out(now);
    }

    fn send_out(&mut self, now: Instant) {
        if let Some(log) = &self.log {
            self.out.iter().for_each(|(to, datagram)| log.sent(now, to, datagram));
        }
        self.port.send(&mut self.out);
        self.out.clear();
    }

    fn flush_capture(&self) {
        if let Some(log) = &self.log {
            log.capture.flush();
        }
    }
}

impl Log {
    fn received(&self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.record(now, Way::In, from, self.local, datagram);
    }

    fn sent(&self, now: Instant, to: SocketAddr, datagram: &[u8]) {
        self.record(now, Way::Out, self.local, to, datagram);
    }

    fn record(&self, now: Instant, way: Way, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let nanos = self.origin.saturating_add(now.as_nanos());
        self.capture.record(&Captured { nanos, way, from, to, datagram, opened: false });
    }
}

#[cfg(test)]
mod tests;
