//! A UDP proxy that puts bad conditions between any clients and any server.
//!
//! Each source address is a client. It gets its own socket towards the server, so that the server can tell clients
//! apart as without the proxy, and a link in each direction.
//!
//! Promises: datagrams pass unchanged, whatever they carry; none is delivered early; on an idle machine an incoming
//! one is noticed within [`NAP`], and a due one goes out within about as much. Clients, memory and the work of one
//! turn are bounded, and drops are counted. No network error ends it. Refuses to forward to itself.

mod config;
mod counters;
mod datagram;
mod direction;
mod relay;
mod socket;
mod thread;

use std::collections::{HashSet, VecDeque};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use mio::{Events, Poll, Token, Waker};

pub use config::{DEFAULT_IDLE_TIMEOUT, DEFAULT_MAX_BYTES, DEFAULT_MAX_CLIENTS, ProxyConfig, ProxyError};
pub use counters::{ClientCounters, PathCounters, ProxyCounters, UnderWay};
pub use direction::{Both, Direction};
pub use thread::ProxyThread;

use crate::netsim::conditions::{Conditions, ConditionsError};
use crate::time::{Duration, Instant};
use relay::{Bounds, Delivery, Relay};
use socket::{MAX_DATAGRAM, Read, Sent, Socket};

/// How long the proxy sleeps at a time, without receiving, when the next delivery is near.
pub const NAP: Duration = Duration::from_micros(200);

/// Deliveries nearer than this are awaited in naps, later ones in the poll, whose timeouts are whole milliseconds and
/// on Windows end at ticks of up to 16 ms.
const NEAR: Duration = Duration::from_millis(if cfg!(windows) { 20 } else { 2 });

/// A delivery that is later than this counts as late.
const LATE: Duration = Duration::from_millis(1);

/// Datagrams read in one turn: fewer than a kernel buffer holds, so that deliveries don't wait for a flood.
const READ_BOUND: usize = 256;

/// Datagrams read from one socket before it is the next one's turn.
const READ_SHARE: usize = 32;

/// Datagrams delivered in one turn, so that reading doesn't wait for a burst.
const DELIVER_BOUND: usize = 256;

/// How often idle clients are searched for.
const IDLE_CHECK: Duration = Duration::from_millis(500);

/// Events per poll; more come with the next one.
const EVENTS: usize = 256;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
/// The token of the client in slot 0; the others follow.
const FIRST_CLIENT: usize = 2;

/// A UDP proxy with bad links. It works when [`Proxy::turn`] is called; [`ProxyThread`] does so.
#[derive(Debug)]
pub struct Proxy {
    target: SocketAddr,
    address: SocketAddr,
    started: std::time::Instant,
    poll: Poll,
    events: Events,
    waker: Arc<Waker>,
    listener: Socket,
    /// By the client's slot.
    upstreams: Vec<Option<Socket>>,
    ready: Ready,
    relay: Relay,
    paths: Both<PathCounters>,
    clients: ClientCounters,
    idle_check: Instant,
    buffer: Vec<u8>,
}

impl Proxy {
    /// A proxy that listens at `address`; with port 0 the system picks one.
    ///
    /// # Errors
    ///
    /// Any [`ProxyError`], with errno.
    pub fn bind(address: SocketAddr, config: ProxyConfig) -> Result<Self, ProxyError> {
        let ProxyConfig { target, conditions, seed, max_clients, idle_timeout, max_bytes } = config;
        let bounds = Bounds { clients: max_clients, bytes: max_bytes, idle: idle_timeout };
        let relay = Relay::new(conditions, bounds, seed)?;
        let mut listener = Socket::listen(address)?;
        let address = listener.local_address()?;
        let everywhere = address.ip().is_unspecified() && target.ip().is_loopback();
        if address.port() == target.port() && (address.ip() == target.ip() || everywhere) {
            return Err(ProxyError::ToItself(address));
        }
        let poll = Poll::new()?;
        listener.register(poll.registry(), LISTENER)?;
        Ok(Proxy {
            target,
            address,
            started: std::time::Instant::now(),
            waker: Arc::new(Waker::new(poll.registry(), WAKER)?),
            poll,
            events: Events::with_capacity(EVENTS),
            listener,
            upstreams: Vec::new(),
            ready: Ready::default(),
            relay,
            paths: Both::default(),
            clients: ClientCounters::default(),
            idle_check: Instant::ZERO,
            buffer: vec![0; MAX_DATAGRAM],
        })
    }

    /// Where clients send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything counted since the start.
    pub fn counters(&self) -> ProxyCounters {
        ProxyCounters {
            paths: self.paths,
            links: self.relay.links(),
            clients: self.relay.clients() + self.clients,
            under_way: self.relay.under_way(),
        }
    }

    /// Changes the conditions from now on, except for datagrams that have left the queue.
    ///
    /// # Errors
    ///
    /// When they can't be met. The old ones stay then.
    pub fn set_conditions(&mut self, conditions: Both<Conditions>) -> Result<(), ConditionsError> {
        self.relay.set_conditions(self.now(), conditions)
    }

    /// Waits for something to do, at most this long, and does a bounded part of it.
    pub fn turn(&mut self, longest: Duration) {
        self.wait(longest);
        self.read();
        self.deliver();
        self.forget_idle();
    }

    /// Ends a wait of [`Proxy::turn`] from another thread.
    fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    fn wait(&mut self, longest: Duration) {
        let gap = if self.ready.is_empty() {
            self.relay.next_delivery().map_or(longest, |at| at.since(self.now()))
        } else {
            Duration::ZERO
        };
        let timeout = gap.saturating_sub(NEAR).min(longest);
        if timeout.is_zero() && !gap.is_zero() {
            std::thread::sleep(gap.min(NAP));
        }
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return,
            // Never seen; if it lasted, it must not take the whole processor.
            Err(_) => return std::thread::sleep(NAP),
        }
        for event in &self.events {
            if event.token() != WAKER {
                self.ready.push(event.token());
            }
        }
    }

    /// Reads the waiting datagrams of all sockets, in turn.
    fn read(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut left = READ_BOUND;
        while left > 0
            && let Some(token) = self.ready.pop()
        {
            let bound = READ_SHARE.min(left);
            let read = match token {
                LISTENER => self.read_clients(bound, &mut buffer),
                Token(number) => self.read_server(number - FIRST_CLIENT, bound, &mut buffer),
            };
            if read == bound {
                self.ready.push(token);
            }
            left -= read.max(1);
        }
        self.buffer = buffer;
    }

    /// Reads from the clients; how often, and below `bound` only when nothing is left.
    fn read_clients(&mut self, bound: usize, buffer: &mut [u8]) -> usize {
        let now = self.now();
        for read in 0..bound {
            match self.listener.read(buffer) {
                Read::Datagram(len, from) => {
                    if let Some(slot) = self.slot(now, from) {
                        self.put(now, slot, Direction::Up, &buffer[..len]);
                    }
                }
                Read::Empty => return read,
                Read::Unreachable => self.paths.down.unreachable += 1,
                Read::Failed => self.paths.up.errors += 1,
            }
        }
        bound
    }

    /// Reads the server's datagrams for the client in `slot`, like [`Proxy::read_clients`].
    fn read_server(&mut self, slot: usize, bound: usize, buffer: &mut [u8]) -> usize {
        let now = self.now();
        for read in 0..bound {
            // Gone meanwhile, with its socket.
            let Some(Some(upstream)) = self.upstreams.get(slot) else { return read };
            match upstream.read(buffer) {
                Read::Datagram(len, _) => self.put(now, slot, Direction::Down, &buffer[..len]),
                Read::Empty => return read,
                Read::Unreachable => self.paths.up.unreachable += 1,
                Read::Failed => self.paths.down.errors += 1,
            }
        }
        bound
    }

    fn put(&mut self, now: Instant, slot: usize, direction: Direction, datagram: &[u8]) {
        let path = self.paths.of_mut(direction);
        path.received += 1;
        path.received_bytes += datagram.len() as u64;
        if !self.relay.put(now, slot, direction, datagram) {
            path.memory_full += 1;
        }
    }

    /// The slot of the client at `from`, which is admitted if it is new and there is room.
    fn slot(&mut self, now: Instant, from: SocketAddr) -> Option<usize> {
        if let Some(slot) = self.relay.slot(from) {
            return Some(slot);
        }
        if !self.relay.has_room() {
            self.clients.refused += 1;
            return None;
        }
        let slot = self.admit(now, from).ok();
        self.clients.without_socket += u64::from(slot.is_none());
        slot
    }

    fn admit(&mut self, now: Instant, from: SocketAddr) -> Result<usize, ProxyError> {
        let mut upstream = Socket::connect(self.target)?;
        upstream.register(self.poll.registry(), Token(FIRST_CLIENT + self.relay.vacant_slot()))?;
        let slot = self.relay.admit(now, from)?;
        if self.upstreams.len() <= slot {
            self.upstreams.resize_with(slot + 1, || None);
        }
        self.upstreams[slot] = Some(upstream);
        Ok(slot)
    }

    fn deliver(&mut self) {
        let now = self.now();
        for _ in 0..DELIVER_BOUND {
            let Some(Delivery { slot, client, direction, due, datagram }) = self.relay.poll(now) else {
                return;
            };
            let (socket, to) = match direction {
                Direction::Up => (self.upstreams.get(slot).and_then(Option::as_ref), None),
                Direction::Down => (Some(&self.listener), Some(client)),
            };
            let Some(socket) = socket else { continue };
            let path = self.paths.of_mut(direction);
            let mut sent = socket.send(to, datagram.bytes());
            if sent == Sent::Unreachable {
                // The error may be about an earlier datagram, in which case this one was not sent.
                path.unreachable += 1;
                sent = socket.send(to, datagram.bytes());
            }
            match sent {
                Sent::Done => {
                    path.forwarded += 1;
                    path.forwarded_bytes += datagram.bytes().len() as u64;
                    path.late += u64::from(now.since(due) > LATE);
                }
                Sent::BufferFull => path.send_buffer_full += 1,
                Sent::Unreachable => path.unreachable += 1,
                Sent::Failed => path.errors += 1,
            }
        }
    }

    fn forget_idle(&mut self) {
        let now = self.now();
        if now < self.idle_check {
            return;
        }
        self.idle_check = now + IDLE_CHECK;
        for slot in self.relay.forget_idle(now) {
            if let Some(upstream) = self.upstreams.get_mut(slot) {
                *upstream = None;
            }
        }
    }
}

/// Sockets that may have datagrams waiting, in the order they became ready, each once.
#[derive(Debug, Default)]
struct Ready {
    queue: VecDeque<Token>,
    queued: HashSet<Token>,
}

impl Ready {
    fn push(&mut self, token: Token) {
        if self.queued.insert(token) {
            self.queue.push_back(token);
        }
    }

    fn pop(&mut self) -> Option<Token> {
        let token = self.queue.pop_front()?;
        self.queued.remove(&token);
        Some(token)
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
