//! A UDP socket that never blocks a game and never fails because of one peer.
//!
//! Promises: a datagram longer than the caller takes is dropped and counted, never cut; one call reads a
//! bounded number of datagrams; what passes (a full buffer, a peer whose port closed) is counted and goes by;
//! an error of binding keeps its errno.
//! Refuses: an IPv6 socket carries IPv6 only, on every platform. For both families, bind two.
//!
//! Bytes are not looked at. What a stranger can do is fill the kernel's buffer: a call reads its bound, whatever waits.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

use crate::limits::RECEIVE_BUFFER;
use crate::store::Datagrams;
use crate::store::counters::counters;
use crate::time::Duration;

/// Kernel buffers, each direction: twice a burst of 1,500 full datagrams. A system may grant less.
pub const DEFAULT_KERNEL_BUFFER: usize = 4 << 20;

/// Below this, a refused buffer size isn't halved further.
const SMALLEST_KERNEL_BUFFER: usize = 64 << 10;

/// Datagrams that one call reads: 2 MB of them, some milliseconds of work. A flood waits in the kernel.
pub const DEFAULT_RECEIVE_BOUND: usize = 1500;

/// Settings of a [`UdpSocket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The kernel's send buffer to ask for, in bytes.
    pub send_buffer: usize,
    /// The kernel's receive buffer to ask for, in bytes.
    pub receive_buffer: usize,
    /// Datagrams that one call reads at most, those dropped counted; at least 1.
    pub receive_bound: usize,
}

impl Default for UdpConfig {
    fn default() -> Self {
        UdpConfig {
            send_buffer: DEFAULT_KERNEL_BUFFER,
            receive_buffer: DEFAULT_KERNEL_BUFFER,
            receive_bound: DEFAULT_RECEIVE_BOUND,
        }
    }
}

counters! {
    /// What went through a socket and what passed by.
    pub struct UdpCounters {
        /// Datagrams handed to the kernel.
        sent,
        /// Datagrams received.
        received,
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
    counters: UdpCounters,
}

/// What one read gave.
enum Read {
    Datagram(usize, SocketAddr),
    /// Something that is no datagram for us; more may wait.
    Dropped,
    Empty,
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
        Ok(UdpSocket {
            local_address: socket.local_addr()?,
            socket,
            send_buffer,
            receive_buffer,
            receive_bound: config.receive_bound.max(1),
            counters: UdpCounters::default(),
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

    /// What went through and what passed by.
    pub fn counters(&self) -> UdpCounters {
        self.counters
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

    /// Receives one datagram: its length and where it came from. `None` when none waits, or as many as one
    /// call reads were dropped. `buffer` is one longer than the longest datagram to take ([`RECEIVE_BUFFER`]).
    ///
    /// # Errors
    /// Only what won't pass by itself.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        for _ in 0..self.receive_bound {
            match self.read(buffer)? {
                Read::Datagram(len, from) => return Ok(Some((len, from))),
                Read::Dropped => {}
                Read::Empty => break,
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
        let bound = self.receive_bound;
        self.receive_each(&mut [0; RECEIVE_BUFFER], bound, |from, datagram| out.push(from, datagram))
    }

    /// Gives each datagram that waits to `handle`, with the address it came from, reading at most `bound`, those
    /// dropped counted. True when the bound ended it and more may wait. `buffer` is as for
    /// [`UdpSocket::receive`].
    ///
    /// # Errors
    /// Only what won't pass by itself. What was received before has been handled.
    pub fn receive_each(
        &mut self,
        buffer: &mut [u8],
        bound: usize,
        mut handle: impl FnMut(SocketAddr, &mut [u8]),
    ) -> io::Result<bool> {
        for _ in 0..bound {
            match self.read(buffer)? {
                Read::Datagram(len, from) => handle(from, &mut buffer[..len]),
                Read::Dropped => {}
                Read::Empty => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Sends one datagram; false when it could not go now. That is counted, and no worse than a loss on the way.
    ///
    /// # Errors
    /// What won't pass by itself for this destination. It is counted, and the socket goes on.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> io::Result<bool> {
        let error = match self.socket.send_to(datagram, to) {
            Ok(_) => {
                self.counters.sent += 1;
                return Ok(true);
            }
            Err(error) => error,
        };
        if error.kind() == ErrorKind::WouldBlock || is_out_of_buffers(&error) {
            self.counters.send_buffer_full += 1;
        } else if !self.count_passing(&error) {
            self.counters.send_errors += 1;
            return Err(error);
        }
        Ok(false)
    }

    /// Sends a batch in order, and goes on whatever becomes of each datagram: all is in the counters.
    pub fn send_batch(&mut self, batch: &Datagrams) {
        for (to, datagram) in batch.iter() {
            let _counted = self.send(to, datagram);
        }
    }

    /// Blocks until a datagram waits or `timeout` has passed; true when one (or an error) waits. For a thread
    /// of its own: nothing else may use the socket meanwhile, which `&mut` sees to.
    ///
    /// # Errors
    /// When the socket can't be switched between blocking and not.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
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

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Read> {
        let error = match self.socket.recv_from(buffer) {
            // A full buffer may hold the beginning of a longer datagram.
            Ok((len, from)) if len < buffer.len() => {
                self.counters.received += 1;
                return Ok(Read::Datagram(len, from));
            }
            Ok(_) => {
                self.counters.too_long += 1;
                return Ok(Read::Dropped);
            }
            Err(error) => error,
        };
        if error.kind() == ErrorKind::WouldBlock {
            Ok(Read::Empty)
        } else if is_too_long(&error) {
            self.counters.too_long += 1;
            Ok(Read::Dropped)
        } else if self.count_passing(&error) {
            Ok(Read::Dropped)
        } else {
            Err(error)
        }
    }

    /// Counts an error that says nothing about this socket; false when it does.
    ///
    /// Windows reports an ICMP "port unreachable" for something sent earlier as `ConnectionReset` of the next
    /// receive (SIO_UDP_CONNRESET would switch that off); other systems may refuse the next send.
    fn count_passing(&mut self, error: &io::Error) -> bool {
        match error.kind() {
            ErrorKind::Interrupted => self.counters.interrupted += 1,
            kind if is_unreachable(kind) => self.counters.unreachable += 1,
            _ => return false,
        }
        true
    }
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
mod tests {
    use super::*;
    use crate::limits::MAX_DATAGRAM;

    const SECOND: Duration = Duration::from_secs(1);

    fn socket() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0".parse().unwrap(), UdpConfig::default()).unwrap()
    }

    #[test]
    fn what_is_sent_is_received_with_its_source() {
        let (mut a, mut b) = (socket(), socket());
        let mut buffer = [0; RECEIVE_BUFFER];
        assert_eq!(b.receive(&mut buffer).unwrap(), None);
        assert!(a.send(b.local_address(), b"hello").unwrap());
        assert!(b.wait(SECOND).unwrap());
        assert_eq!(b.receive(&mut buffer).unwrap(), Some((5, a.local_address())));
        assert_eq!(&buffer[..5], b"hello");
        assert_eq!(b.receive(&mut buffer).unwrap(), None, "waiting leaves the socket non-blocking");
    }

    #[test]
    fn a_datagram_above_the_limit_is_counted_and_not_cut() {
        let (mut a, mut b) = (socket(), socket());
        for len in [MAX_DATAGRAM + 1, 5000, MAX_DATAGRAM] {
            a.send(b.local_address(), &vec![7; len]).unwrap();
        }
        assert!(b.wait(SECOND).unwrap());
        let mut buffer = [0; RECEIVE_BUFFER];
        assert_eq!(b.receive(&mut buffer).unwrap(), Some((MAX_DATAGRAM, a.local_address())));
        assert_eq!(b.counters(), UdpCounters { received: 1, too_long: 2, ..UdpCounters::default() });
    }

    #[test]
    fn one_call_reads_a_bounded_number() {
        let config = UdpConfig { receive_bound: 3, ..UdpConfig::default() };
        let mut a = socket();
        let mut b = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
        let mut batch = Datagrams::new();
        (0..5).for_each(|n| batch.push(b.local_address(), &[n]));
        a.send_batch(&batch);
        assert_eq!(a.counters().sent, 5);
        batch.clear();
        assert!(b.wait(SECOND).unwrap());
        assert!(b.receive_batch(&mut batch).unwrap());
        assert_eq!(batch.len(), 3);
        while batch.len() < 5 && b.wait(SECOND).unwrap() {
            assert!(!b.receive_batch(&mut batch).unwrap());
        }
        let received: Vec<_> = batch.iter().map(|(from, bytes)| (from, bytes[0])).collect();
        assert_eq!(received, (0..5).map(|n| (a.local_address(), n)).collect::<Vec<_>>());
    }

    #[test]
    fn datagrams_dropped_count_against_the_bound_of_a_call() {
        let (mut a, mut b) = (socket(), socket());
        (0..10).for_each(|_| assert!(a.send(b.local_address(), &[0; 9]).unwrap()));
        assert!(a.send(b.local_address(), &[0; 8]).unwrap());
        assert!(b.wait(SECOND).unwrap());
        let mut buffer = [0; 8 + 1];
        let refuse = |_, _: &mut [u8]| panic!("longer than what is taken");
        assert!(b.receive_each(&mut buffer, 10, refuse).unwrap(), "more may wait");
        assert_eq!(b.counters().too_long, 10);
        let mut taken = Vec::new();
        b.receive_each(&mut buffer, 10, |_, datagram| taken.push(datagram.len())).unwrap();
        assert_eq!(taken, [8]);
    }

    #[test]
    fn a_closed_port_stalls_nothing() {
        let (mut a, mut b) = (socket(), socket());
        let closed = socket().local_address();
        for n in 0..10 {
            let _passing = a.send(closed, b"anyone?").unwrap();
            while !a.send(b.local_address(), &[n]).unwrap() {}
            let mut buffer = [0; RECEIVE_BUFFER];
            assert_eq!(a.receive(&mut buffer).unwrap(), None);
            assert!(b.wait(SECOND).unwrap());
            assert_eq!(b.receive(&mut buffer).unwrap(), Some((1, a.local_address())));
        }
    }

    #[test]
    fn waiting_ends_with_its_timeout() {
        assert!(!socket().wait(Duration::from_millis(5)).unwrap());
        assert!(!socket().wait(Duration::ZERO).unwrap());
    }

    #[test]
    fn buffers_are_read_back_and_bind_errors_keep_their_errno() {
        let a = socket();
        assert!(a.send_buffer() > 0 && a.receive_buffer() > 0);
        assert_ne!(a.local_address().port(), 0);
        let error = UdpSocket::bind(a.local_address(), UdpConfig::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.raw_os_error().is_some());
    }

    #[test]
    fn an_ipv6_socket_leaves_ipv4_alone() {
        // Where the machine has no IPv6 there is nothing to see.
        let Ok(v6) = UdpSocket::bind("[::]:0".parse().unwrap(), UdpConfig::default()) else { return };
        let v4 = SocketAddr::from(([0, 0, 0, 0], v6.local_address().port()));
        assert!(UdpSocket::bind(v4, UdpConfig::default()).is_ok());
    }
}
