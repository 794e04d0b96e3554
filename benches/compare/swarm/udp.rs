//! A client of a server that speaks nothing but datagrams.

use std::net::{SocketAddr, UdpSocket};

use crate::clients::{Client, Counts};
use crate::{ANSWER_BYTES, REQUEST_BYTES};

/// A connected socket.
pub(crate) struct UdpClient {
    socket: UdpSocket,
    answered: bool,
}

impl UdpClient {
    /// A client of `server`.
    pub(crate) fn new(server: SocketAddr) -> Self {
        UdpClient { socket: connected(server), answered: false }
    }
}

/// A socket on this machine that doesn't block and talks to `server` only.
pub(crate) fn connected(server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    socket.set_nonblocking(true).expect("sockets can be non-blocking");
    socket.connect(server).expect("the server is on this machine");
    socket
}

impl Client for UdpClient {
    fn tick(&mut self, counts: &mut Counts) {
        let mut buffer = [0; 2048];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            counts.received += u64::from(len == ANSWER_BYTES);
            self.answered = true;
        }
        counts.sent += u64::from(self.socket.send(&[7; REQUEST_BYTES]).is_ok());
    }

    fn connected(&self) -> bool {
        self.answered
    }
}
