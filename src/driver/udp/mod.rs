//! A UDP socket that never blocks a game and never fails because of one peer.
//!
//! Promises: a datagram longer than the caller takes is dropped and counted, never cut; one call reads a
//! bounded number of datagrams; what passes (a full buffer, a peer whose port closed) is counted and goes by;
//! an error of binding keeps its errno; once its memory has grown to what a call brings, it allocates nothing.
//! Refuses: an IPv6 socket carries IPv6 only, on every platform. For both families, bind two.
//!
//! Bytes are not looked at. What a stranger can do is fill the kernel's buffer: a call reads its bound, whatever waits.
//!
//! Where the system can (Linux), one system call carries many datagrams, datagrams of one length to one peer leave
//! as one that is cut apart on its way (GSO), and such that arrive together are handed over as one (GRO). Elsewhere,
//! or when told so, there is a system call for each datagram. All else is the same, and the same code.

#[cfg(target_os = "linux")]
mod linux;
mod plain;
mod runs;
mod slab;

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;

use socket2::{Domain, Protocol, Socket, Type};

use self::runs::{Run, gather};
use self::slab::{Piece, Slab};
use crate::limits::MAX_DATAGRAM;
use crate::store::Datagrams;
use crate::store::counters::counters;
use crate::time::Duration;

/// Kernel buffers, each direction: a full datagram takes up to 2.5 kB of it, which Linux allows for by granting twice
/// what it is asked, so that more than [`DEFAULT_RECEIVE_BOUND`] of them fit. A system may grant less.
pub const DEFAULT_KERNEL_BUFFER: usize = 4 << 20;

/// Below this, a refused buffer size isn't halved further.
const SMALLEST_KERNEL_BUFFER: usize = 64 << 10;

/// Datagrams that one call reads: 1,000 clients that send 60 a second, read 30 times a second, and half as many
/// again. (100 Mbit/s in full datagrams, read 60 times a second, are 170.) With what netcode does to find them
/// forged, that is some milliseconds of work: more of a flood waits in the kernel.
pub const DEFAULT_RECEIVE_BOUND: usize = 3000;

/// Settings of a [`UdpSocket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The kernel's send buffer to ask for, in bytes.
    pub send_buffer: usize,
    /// The kernel's receive buffer to ask for, in bytes.
    pub receive_buffer: usize,
    /// Datagrams that one call reads at most, those dropped counted; at least 1.
    pub receive_bound: usize,
    /// The longest datagram to receive, in bytes. Longer ones are dropped.
    pub max_datagram: usize,
    /// Carry several datagrams with one system call, where the system can.
    pub batched: bool,
    /// Let datagrams of one length to one peer leave as one (GSO), where the system can; only with `batched`.
    pub cut: bool,
    /// Let datagrams of one length from one peer arrive as one (GRO), where the system can; only with `batched`.
    /// Some may then wait here and not in the system: not for who waits by [`UdpSocket::number`] or
    /// [`UdpSocket::handle`].
    pub joined: bool,
}

impl Default for UdpConfig {
    fn default() -> Self {
        UdpConfig {
            send_buffer: DEFAULT_KERNEL_BUFFER,
            receive_buffer: DEFAULT_KERNEL_BUFFER,
            receive_bound: DEFAULT_RECEIVE_BOUND,
            max_datagram: MAX_DATAGRAM,
            batched: true,
            cut: true,
            joined: true,
        }
    }
}

counters! {
    /// What went through a socket and what passed by.
    pub struct UdpCounters {
        /// Datagrams handed to the kernel.
        sent,
        /// Of these, such that left together as one, to be cut apart on their way (GSO).
        sent_joined,
        /// System calls to send, those in vain included.
        send_calls,
        /// Datagrams received.
        received,
        /// Of these, such that came together as one (GRO).
        received_joined,
        /// System calls to receive, those in vain included.
        receive_calls,
        /// Datagrams that the kernel dropped, because its receive buffer was full or their checksum wrong, where the
        /// system tells (Linux). Such that would have come as one (GRO) count as one.
        kernel_drops,
        /// Datagrams dropped because they are longer than the caller takes.
        too_long,
        /// Datagrams not sent because the kernel's buffers were full.
        send_buffer_full,
        /// Reports that a peer or its network can't be reached.
        unreachable,
        /// Calls that a signal interrupted.
        interrupted,
        /// Datagrams not sent for another reason, which the call returned.
        send_errors,
        /// Times that the system didn't take several datagrams as one. They went one by one.
        cut_refused,
    }
}

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
    /// Whether datagrams may leave as one.
    cut: bool,
    slab: Slab,
    runs: Vec<Run>,
    counters: UdpCounters,
    kernel_drops: Cell<KernelDrops>,
    #[cfg(test)]
    fault: Option<tests::Fault>,
}

/// How the system is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    Plain,
    #[cfg(target_os = "linux")]
    Batched,
}

/// What one attempt to receive gave.
enum Filled {
    /// Something to hand out; whether more may wait in the kernel.
    Some {
        more: bool,
    },
    /// An error that says nothing of this socket; more may wait.
    Passed,
    Nothing,
}

/// The system's count, which wraps around, and ours.
#[derive(Clone, Copy, Debug, Default)]
struct KernelDrops {
    seen: u32,
    total: u64,
}

impl UdpSocket {
    /// A socket bound to `address`. Port 0 lets the system pick one.
    ///
    /// # Errors
    /// As the system says it, errno kept: address in use, not available, not permitted.
    pub fn bind(address: SocketAddr, config: UdpConfig) -> io::Result<Self> {
        let socket = bind(address, config.send_buffer, config.receive_buffer)?;
        let (send_buffer, receive_buffer) = (socket.send_buffer_size()?, socket.recv_buffer_size()?);
        let socket = std::net::UdpSocket::from(socket);
        let (calls, cut, slab) = means(&socket, config);
        Ok(UdpSocket {
            local_address: socket.local_addr()?,
            socket,
            send_buffer,
            receive_buffer,
            receive_bound: config.receive_bound.max(1),
            max_datagram: config.max_datagram,
            calls,
            cut,
            slab,
            runs: Vec::new(),
            counters: UdpCounters::default(),
            kernel_drops: Cell::default(),
            #[cfg(test)]
            fault: None,
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

    /// What went through and what passed by. The kernel's part is asked for now: a system call.
    pub fn counters(&self) -> UdpCounters {
        let mut drops = self.kernel_drops.get();
        if let Some(now) = drops_of(&self.socket) {
            drops.total += u64::from(now.wrapping_sub(drops.seen));
            drops.seen = now;
            self.kernel_drops.set(drops);
        }
        UdpCounters { kernel_drops: drops.total, ..self.counters }
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

    /// Receives one datagram, and tells where it came from. `None` when none waits, or as many as one call reads
    /// were dropped.
    ///
    /// # Errors
    /// Only what won't pass by itself.
    pub fn receive(&mut self) -> io::Result<Option<(SocketAddr, &mut [u8])>> {
        let mut left = self.receive_bound;
        while left > 0 {
            if let Some(piece) = self.slab.take() {
                left -= 1;
                if self.accept(&piece) {
                    return Ok(Some((piece.from, self.slab.bytes(&piece))));
                }
            } else {
                match self.fill(1)? {
                    Filled::Some { .. } => {}
                    Filled::Passed => left -= 1,
                    Filled::Nothing => break,
                }
            }
        }
        Ok(None)
    }

    /// Appends the datagrams that wait to `out`, each with the address it came from, up to the bound of one
    /// call. True when the bound ended it and more may wait.
    ///
    /// # Errors
    /// Only what won't pass by itself. What was received before is in `out`.
    pub fn receive_batch(&mut self, out: &mut Datagrams) -> io::Result<bool> {
        self.receive_each(self.receive_bound, |from, datagram| out.push(from, datagram))
    }

    /// Gives each datagram that waits to `handle`, with the address it came from, reading at most `bound`, those
    /// dropped counted. True when the bound ended it and more may wait.
    ///
    /// # Errors
    /// Only what won't pass by itself. What was received before has been handled.
    pub fn receive_each(
        &mut self,
        bound: usize,
        mut handle: impl FnMut(SocketAddr, &mut [u8]),
    ) -> io::Result<bool> {
        let (mut left, mut more) = (bound, true);
        while left > 0 {
            if let Some(piece) = self.slab.take() {
                left -= 1;
                if self.accept(&piece) {
                    handle(piece.from, self.slab.bytes(&piece));
                }
            } else if more {
                match self.fill(left)? {
                    Filled::Some { more: maybe } => more = maybe,
                    Filled::Passed => left -= 1,
                    Filled::Nothing => return Ok(false),
                }
            } else {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends one datagram; false when it could not go now. That is counted, and no worse than a loss on the way.
    ///
    /// # Errors
    /// What won't pass by itself for this destination. It is counted, and the socket goes on.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> io::Result<bool> {
        let run = Run::single(to, 0..datagram.len());
        match self.send_runs(datagram, std::slice::from_ref(&run)) {
            Ok(_) => Ok(true),
            Err(error) if self.count_unsent(&error, 1) => Ok(false),
            Err(error) => {
                self.counters.send_errors += 1;
                Err(error)
            }
        }
    }

    /// Sends a batch in order, and goes on whatever becomes of each datagram: all is in the counters.
    pub fn send_batch(&mut self, batch: &Datagrams) {
        let mut runs = std::mem::take(&mut self.runs);
        let mut rest = batch.entries();
        while !rest.is_empty() {
            gather(rest, self.cut, self.calls.batch(), &mut runs);
            let done = match self.send_runs(batch.arena(), &runs) {
                Ok(datagrams) => datagrams,
                Err(error) => self.send_apart(batch.arena(), rest, &runs, &error),
            };
            rest = rest.get(done..).unwrap_or_default();
        }
        self.runs = runs;
    }

    /// Does what is left to do for the first of `runs`, which failed: how many of `entries` are done with.
    fn send_apart(
        &mut self,
        arena: &[u8],
        entries: &[(SocketAddr, Range<usize>)],
        runs: &[Run],
        error: &io::Error,
    ) -> usize {
        let count = runs.first().map_or(1, |run| run.count);
        if self.count_unsent(error, count as u64) {
            return count;
        }
        if count == 1 {
            self.counters.send_errors += 1;
            return 1;
        }
        self.counters.cut_refused += 1;
        let mut sent = 0;
        for (to, bytes) in entries.iter().take(count) {
            sent += usize::from(self.send(*to, &arena[bytes.clone()]).unwrap_or(false));
        }
        // When none goes by itself either, it was not for their being one.
        self.cut &= sent == 0 || !refuses_to_cut(error);
        count
    }

    /// One system call for the first of `runs`: how many datagrams went.
    fn send_runs(&mut self, arena: &[u8], runs: &[Run]) -> io::Result<usize> {
        self.counters.send_calls += 1;
        #[cfg(test)]
        let runs = tests::until_fault(self.fault, arena, runs)?;
        let sent = match self.calls {
            Calls::Plain => plain::send(&self.socket, arena, runs)?,
            #[cfg(target_os = "linux")]
            Calls::Batched => linux::send(&self.socket, arena, runs)?,
        };
        let went = runs.get(..sent).unwrap_or(runs);
        let joined = went.iter().filter(|run| run.count > 1).map(|run| run.count).sum::<usize>();
        let datagrams = went.iter().map(|run| run.count).sum::<usize>();
        self.counters.sent += datagrams as u64;
        self.counters.sent_joined += joined as u64;
        // No system should say so, and none shall keep us here if it does.
        if datagrams == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(datagrams) }
    }

    /// Blocks until a datagram waits or `timeout` has passed; true when one (or an error) waits. For a thread
    /// of its own: nothing else may use the socket meanwhile, which `&mut` sees to.
    ///
    /// # Errors
    /// When the socket can't be switched between blocking and not.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        if !self.slab.is_empty() {
            return Ok(true);
        }
        // A timeout of zero would mean none at all.
        self.socket.set_read_timeout(Some(timeout.max(Duration::from_micros(1))))?;
        self.socket.set_nonblocking(false)?;
        let peeked = self.socket.peek_from(&mut [0]);
        self.socket.set_nonblocking(true)?;
        let timed_out =
            |kind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted);
        // Any other error is for the next receive to find: Windows reports one for a datagram above one byte.
        Ok(!matches!(peeked, Err(error) if timed_out(error.kind())))
    }

    /// Reads into the slab, of which all was handed out, at most `most` times a slot.
    fn fill(&mut self, most: usize) -> io::Result<Filled> {
        self.counters.receive_calls += 1;
        let read = match self.calls {
            Calls::Plain => plain::receive(&self.socket, &mut self.slab).map(|read| (read, 1)),
            #[cfg(target_os = "linux")]
            Calls::Batched => linux::receive(&self.socket, &mut self.slab, most),
        };
        let error = match read {
            // When fewer came than could have, no more did; or an error that the next call will be told.
            Ok((read, room)) => return Ok(Filled::Some { more: read >= room }),
            Err(error) => error,
        };
        if error.kind() == ErrorKind::WouldBlock {
            Ok(Filled::Nothing)
        } else if is_too_long(&error) {
            self.counters.too_long += 1;
            Ok(Filled::Passed)
        } else if self.count_passing(&error, 1) {
            Ok(Filled::Passed)
        } else {
            Err(error)
        }
    }

    /// Whether a datagram is one to hand over. A slot is longer than those are: one that fills it may be the
    /// beginning of a longer one.
    fn accept(&mut self, piece: &Piece) -> bool {
        if piece.bytes.len() > self.max_datagram {
            self.counters.too_long += 1;
            return false;
        }
        self.counters.received += 1;
        self.counters.received_joined += u64::from(piece.joined);
        true
    }

    /// Counts datagrams that could not go now; false when it is not a matter of time.
    fn count_unsent(&mut self, error: &io::Error, datagrams: u64) -> bool {
        if error.kind() == ErrorKind::WouldBlock || is_out_of_buffers(error) {
            self.counters.send_buffer_full += datagrams;
            return true;
        }
        self.count_passing(error, datagrams)
    }

    /// Counts an error that says nothing about this socket; false when it does.
    ///
    /// Windows reports an ICMP "port unreachable" for something sent earlier as `ConnectionReset` of the next
    /// receive (SIO_UDP_CONNRESET would switch that off); other systems may refuse the next send.
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
    if !config.batched {
        return (Calls::Plain, false, Slab::new(config.max_datagram + 1, 1));
    }
    let joined = config.joined && linux::join(socket);
    let slot = if joined { linux::LONGEST_JOINED } else { config.max_datagram } + 1;
    (Calls::Batched, config.cut && linux::can_cut(socket), Slab::new(slot, Calls::Batched.batch()))
}

/// See above.
#[cfg(not(target_os = "linux"))]
fn means(_socket: &std::net::UdpSocket, config: UdpConfig) -> (Calls, bool, Slab) {
    (Calls::Plain, false, Slab::new(config.max_datagram + 1, Calls::Plain.batch()))
}

#[cfg(target_os = "linux")]
use linux::{drops as drops_of, refuses_to_cut};

#[cfg(not(target_os = "linux"))]
fn drops_of(_socket: &std::net::UdpSocket) -> Option<u32> {
    None
}

#[cfg(not(target_os = "linux"))]
fn refuses_to_cut(_error: &io::Error) -> bool {
    false
}

/// The system's number of a socket: a file descriptor, on Windows a SOCKET.
pub fn number(socket: &std::net::UdpSocket) -> i64 {
    #[cfg(unix)]
    return std::os::fd::AsRawFd::as_raw_fd(socket).into();
    #[cfg(windows)]
    return i64::try_from(std::os::windows::io::AsRawSocket::as_raw_socket(socket)).unwrap_or(-1);
}

/// A non-blocking socket bound to `address`, of one family only, with these kernel buffers if it gets them.
pub(super) fn bind(address: SocketAddr, send_buffer: usize, receive_buffer: usize) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    grow(send_buffer, |size| socket.set_send_buffer_size(size));
    grow(receive_buffer, |size| socket.set_recv_buffer_size(size));
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Asks for a kernel buffer of `size`, and for half of it again and again where the system refuses rather than
/// grants less (macOS). What came of it is read back.
fn grow(mut size: usize, set: impl Fn(usize) -> io::Result<()>) {
    while set(size).is_err() && size > SMALLEST_KERNEL_BUFFER {
        size /= 2;
    }
}

/// What the system says of a peer, or the way to it, that can't be reached.
pub(super) fn is_unreachable(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
    )
}

/// ENOBUFS, which has no `ErrorKind`.
pub(super) fn is_out_of_buffers(error: &io::Error) -> bool {
    let code = if cfg!(windows) {
        10_055
    } else if cfg!(any(target_os = "linux", target_os = "android")) {
        105
    } else {
        55
    };
    error.raw_os_error() == Some(code)
}

/// WSAEMSGSIZE: how Windows reports a datagram longer than the buffer. Other systems cut it to the buffer's
/// length, which is one more than any valid datagram has.
fn is_too_long(error: &io::Error) -> bool {
    cfg!(windows) && error.raw_os_error() == Some(10_040)
}

#[cfg(test)]
mod tests;
