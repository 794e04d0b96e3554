//! A UDP socket that never blocks a game and never fails because of one peer.
//!
//! Promises: a datagram longer than the caller takes is dropped and counted, never cut; one call reads a
//! bounded number of datagrams; what passes (a full buffer, a peer whose port closed) is counted and goes by;
//! an error of binding keeps its errno; once its memory has grown to what a call brings, it allocates nothing.
//! Refuses: an IPv6 socket carries IPv6 only, on every platform, unless it is told to carry both families.
//!
//! Datagrams may be fragmented on their way: Linux, which alone would forbid it, is told not to.
//!
//! Bytes are not looked at. What a stranger can do is fill the kernel's buffer: a call reads its bound, whatever waits.
//!
//! Where the system can (Linux), one system call carries many datagrams, datagrams of one length to one peer leave
//! as one that the system splits (GSO), and datagrams that arrive together are handed over as one (GRO). Elsewhere,
//! or when told so, there is a system call for each datagram. All else is the same, and the same code.

mod config;
mod errors;
mod gso;
#[cfg(target_os = "linux")]
mod linux;
mod plain;
mod receive;
mod runs;
mod send;
mod slab;

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

pub use self::config::{DEFAULT_KERNEL_BUFFER, DEFAULT_RECEIVE_BOUND, UdpConfig, UdpCounters};
pub(super) use self::errors::{is_out_of_buffers, is_unreachable};
use self::gso::Gso;
#[cfg(target_os = "linux")]
use self::linux::{drops, refuses_to_cut};
#[cfg(not(target_os = "linux"))]
use self::plain::{drops, refuses_to_cut};
use self::runs::Run;
use self::slab::Slab;
use crate::time::Duration;

/// The maximum of UDP's length field.
const MAX_DATAGRAM: usize = 65_535;

/// Below this, a refused buffer size isn't halved further.
const SMALLEST_KERNEL_BUFFER: usize = 64 << 10;

/// A non-blocking UDP socket.
#[derive(Debug)]
pub struct UdpSocket {
    socket: std::net::UdpSocket,
    local_address: SocketAddr,
    send_buffer: usize,
    receive_buffer: usize,
    receive_bound: usize,
    max_datagram: usize,
    calls: Calls,
    gso: Gso,
    started: std::time::Instant,
    slab: Slab,
    runs: Vec<Run>,
    counters: UdpCounters,
    kernel_drops: Cell<KernelDrops>,
    // See `UdpSocket::watch_refusals`.
    #[cfg(target_os = "linux")]
    watches: bool,
    #[cfg(test)]
    fault: Option<tests::Fault>,
    /// Time that a test lets pass.
    #[cfg(test)]
    skipped: Duration,
}

/// How the system is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    Plain,
    #[cfg(target_os = "linux")]
    Batched,
}

/// The system's count, which wraps around, and ours.
#[derive(Clone, Copy, Debug, Default)]
struct KernelDrops {
    seen: u32,
    total: u64,
}

impl UdpSocket {
    /// A socket bound to `address`. With port 0 the system picks one.
    ///
    /// # Errors
    ///
    /// The system's, with errno: address in use, not available, not permitted.
    pub fn bind(address: SocketAddr, config: UdpConfig) -> io::Result<Self> {
        let socket = bind(address, config.both_families, config.send_buffer, config.receive_buffer)?;
        let (send_buffer, receive_buffer) = (socket.send_buffer_size()?, socket.recv_buffer_size()?);
        let socket = std::net::UdpSocket::from(socket);
        let config = UdpConfig { max_datagram: config.max_datagram.min(MAX_DATAGRAM), ..config };
        let (calls, cut, slab) = means(&socket, config);
        Ok(UdpSocket {
            local_address: socket.local_addr()?,
            socket,
            send_buffer,
            receive_buffer,
            receive_bound: config.receive_bound.max(1),
            max_datagram: config.max_datagram,
            calls,
            gso: Gso::new(cut),
            started: std::time::Instant::now(),
            slab,
            runs: Vec::new(),
            counters: UdpCounters::default(),
            #[cfg(target_os = "linux")]
            watches: false,
            kernel_drops: Cell::default(),
            #[cfg(test)]
            fault: None,
            #[cfg(test)]
            skipped: Duration::ZERO,
        })
    }

    /// The address bound to, with the port that was picked.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// The send buffer granted, in bytes, as the system counts (Linux counts its own overhead in: twice).
    pub fn send_buffer(&self) -> usize {
        self.send_buffer
    }

    /// The receive buffer granted, in bytes, as the system counts.
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// Datagrams that one call reads at most, those dropped counted.
    pub fn receive_bound(&self) -> usize {
        self.receive_bound
    }

    /// The counters. The kernel's part is read now: a system call.
    pub fn counters(&self) -> UdpCounters {
        let mut known = self.kernel_drops.get();
        if let Some(now) = drops(&self.socket) {
            known.total += u64::from(now.wrapping_sub(known.seen));
            known.seen = now;
            self.kernel_drops.set(known);
        }
        UdpCounters { kernel_drops: known.total, ..self.counters }
    }

    /// Another handle of the socket, for a system's own way to wait: it can be read without holding this one.
    ///
    /// # Errors
    /// When the process has no handle to spare.
    pub fn handle(&self) -> io::Result<std::net::UdpSocket> {
        self.socket.try_clone()
    }

    /// The system's number of the socket.
    pub fn number(&self) -> i64 {
        number(&self.socket)
    }

    /// The socket's descriptor, to wait on with others.
    #[cfg(target_os = "linux")]
    pub(super) fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.socket)
    }

    /// Starts or stops reports about datagrams that find no open port: see [`UdpSocket::refused`]. Only some systems
    /// have them.
    pub fn watch_refusals(&mut self, watch: bool) {
        #[cfg(target_os = "linux")]
        {
            let is_ipv6 = self.local_address().is_ipv6();
            self.watches = linux::watch_refusals(&self.socket, is_ipv6, watch) && watch;
            // Reports that it already has would keep the socket readable.
            while !watch && linux::refused(&self.socket).is_some() {}
        }
        #[cfg(not(target_os = "linux"))]
        let _ = watch;
    }

    /// The destination of a datagram that was refused since the last call, if the system reports it. Anybody who
    /// guesses this socket's port can forge such a report.
    pub fn refused(&mut self) -> Option<SocketAddr> {
        #[cfg(target_os = "linux")]
        if self.watches {
            return linux::refused(&self.socket);
        }
        None
    }

    /// How long there has been this socket.
    fn age(&self) -> Duration {
        let age = self.started.elapsed();
        #[cfg(test)]
        let age = age + self.skipped;
        age
    }

    /// Counts an error that says nothing about this socket; false if it does.
    ///
    /// Windows reports an ICMP "port unreachable" for an earlier datagram as `ConnectionReset` of the next receive
    /// (SIO_UDP_CONNRESET would switch that off); other systems may refuse the next send.
    fn count_passing(&mut self, error: &io::Error, datagrams: u64) -> bool {
        match error.kind() {
            ErrorKind::Interrupted => self.counters.interrupted += datagrams,
            kind if is_unreachable(kind) => self.counters.unreachable += datagrams,
            _ => return false,
        }
        true
    }
}

impl Calls {
    /// The most runs, or slots, that one system call carries.
    fn batch(self) -> usize {
        match self {
            Calls::Plain => 1,
            #[cfg(target_os = "linux")]
            Calls::Batched => linux::BATCH,
        }
    }
}

/// How this system is to be called, whether datagrams may leave as one, and where to receive.
#[cfg(target_os = "linux")]
fn means(socket: &std::net::UdpSocket, config: UdpConfig) -> (Calls, bool, Slab) {
    let _as_the_system_says =
        linux::allow_fragments(socket, socket.local_addr().is_ok_and(|at| at.is_ipv6()));
    if !config.batched {
        return (Calls::Plain, false, Slab::new(config.max_datagram + 1, 1));
    }
    let joined = config.gro && linux::join(socket);
    let slot = if joined { MAX_DATAGRAM } else { config.max_datagram } + 1;
    (Calls::Batched, config.gso && linux::has_gso(socket), Slab::new(slot, Calls::Batched.batch()))
}

#[cfg(not(target_os = "linux"))]
fn means(_socket: &std::net::UdpSocket, config: UdpConfig) -> (Calls, bool, Slab) {
    (Calls::Plain, false, Slab::new(config.max_datagram + 1, Calls::Plain.batch()))
}

/// The system's number of a socket: a file descriptor, on Windows a SOCKET.
fn number(socket: &std::net::UdpSocket) -> i64 {
    #[cfg(unix)]
    return std::os::fd::AsRawFd::as_raw_fd(socket).into();
    #[cfg(windows)]
    return i64::try_from(std::os::windows::io::AsRawSocket::as_raw_socket(socket)).unwrap_or(-1);
}

/// A non-blocking socket bound to `address`, with these kernel buffers if it gets them; of one family only, unless IPv6 is to
/// carry `both_families`.
pub(super) fn bind(
    address: SocketAddr,
    both_families: bool,
    send_buffer: usize,
    receive_buffer: usize,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!both_families)?;
    }
    grow(send_buffer, |size| socket.set_send_buffer_size(size));
    grow(receive_buffer, |size| socket.set_recv_buffer_size(size));
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Requests a kernel buffer of `size`, and half of it repeatedly if the system refuses instead of granting less
/// (macOS). The result is read back.
fn grow(mut size: usize, set: impl Fn(usize) -> io::Result<()>) {
    while set(size).is_err() && size > SMALLEST_KERNEL_BUFFER {
        size /= 2;
    }
}

#[cfg(test)]
mod tests;
