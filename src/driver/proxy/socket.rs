//! A socket that reports readiness, and what each of its errors means to a proxy.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use mio::event::Source;
use mio::{Interest, Registry, Token};

use crate::driver::udp::{self, DEFAULT_KERNEL_BUFFER};

/// Kernel buffers of a client's socket, each direction: some milliseconds at the highest rates.
const CLIENT_KERNEL_BUFFER: usize = 1 << 20;

/// One more than the longest UDP datagram, so that none is truncated.
pub(super) const MAX_DATAGRAM: usize = 65_536;

#[derive(Debug)]
pub(super) struct Socket(mio::net::UdpSocket);

/// The result of one read.
pub(super) enum Read {
    Datagram(usize, SocketAddr),
    /// Nothing more for now: there will be an event when that changes.
    Empty,
    /// A peer can't be reached; more may wait.
    Unreachable,
    /// Another error; more may wait.
    Failed,
}

/// The outcome of sending a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Done,
    BufferFull,
    /// The peer of this datagram, or of an earlier one, can't be reached.
    Unreachable,
    Failed,
}

impl Socket {
    /// The socket that clients send to.
    pub(super) fn listen(address: SocketAddr) -> io::Result<Self> {
        let socket = udp::bind(address, false, DEFAULT_KERNEL_BUFFER, DEFAULT_KERNEL_BUFFER)?;
        Ok(Socket(mio::net::UdpSocket::from_std(socket.into())))
    }

    /// A socket with its own port that sends to `peer`, and receives only from it.
    pub(super) fn connect(peer: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = udp::bind(any, false, CLIENT_KERNEL_BUFFER, CLIENT_KERNEL_BUFFER)?;
        socket.connect(&peer.into())?;
        Ok(Socket(mio::net::UdpSocket::from_std(socket.into())))
    }

    pub(super) fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Registers it for readiness events under this token.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.0.register(registry, token, Interest::READABLE)
    }

    pub(super) fn read(&self, buffer: &mut [u8]) -> Read {
        loop {
            match self.0.recv_from(buffer) {
                Ok((len, from)) => return Read::Datagram(len, from),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Read::Empty,
                    ErrorKind::Interrupted => {}
                    kind if udp::is_unreachable(kind) => return Read::Unreachable,
                    _ => return Read::Failed,
                },
            }
        }
    }

    /// Sends to the connected peer, or to the given one.
    pub(super) fn send(&self, to: Option<SocketAddr>, datagram: &[u8]) -> Sent {
        loop {
            let result = match to {
                None => self.0.send(datagram),
                Some(to) => self.0.send_to(datagram, to),
            };
            let Err(error) = result else { return Sent::Done };
            return match error.kind() {
                ErrorKind::Interrupted => continue,
                ErrorKind::WouldBlock => Sent::BufferFull,
                _ if udp::is_out_of_buffers(&error) => Sent::BufferFull,
                kind if udp::is_unreachable(kind) => Sent::Unreachable,
                _ => Sent::Failed,
            };
        }
    }
}
