//! naia's sockets in memory: the bench takes what they are given to send, and gives them what arrives.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use naia_client::transport as client;
use naia_server::transport as server;
use naia_shared::IdentityToken;

/// What lies in one end's socket.
#[derive(Debug, Default)]
struct Pipe {
    arrived: VecDeque<(SocketAddr, Bytes)>,
    sent: Vec<(SocketAddr, Bytes)>,
    /// At the server: clients that ask for a token, and those that have got one.
    asked: VecDeque<SocketAddr>,
    tokens: HashMap<SocketAddr, IdentityToken>,
}

/// One end, and all the handles to it that naia wants.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pipe: Arc<Mutex<Pipe>>,
    /// Of a client: the server's pipe, and the client's address.
    server: Option<Arc<Mutex<Pipe>>>,
    address: SocketAddr,
    /// What was received last.
    last: Bytes,
}

impl Default for Wire {
    fn default() -> Self {
        let address = SocketAddr::from(([10, 0, 0, 1], 1));
        Wire { pipe: Arc::default(), server: None, address, last: Bytes::new() }
    }
}

fn locked(pipe: &Mutex<Pipe>) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    /// The server's socket.
    pub(super) fn socket(&self) -> Box<dyn server::Socket> {
        Box::new(self.clone())
    }

    /// A client's socket.
    pub(super) fn client_socket(&self, server: &Wire, address: SocketAddr) -> Box<dyn client::Socket> {
        Box::new(Wire { server: Some(server.pipe.clone()), address, ..self.clone() })
    }

    /// A packet of a client arrives, or for it.
    pub(super) fn deliver(&self, client: SocketAddr, bytes: Bytes) {
        locked(&self.pipe).arrived.push_back((client, bytes));
    }

    /// What this end sent, each with its client.
    pub(super) fn take_sent(&self) -> Vec<(SocketAddr, Bytes)> {
        std::mem::take(&mut locked(&self.pipe).sent)
    }

    fn push(&self, client: SocketAddr, payload: &[u8]) {
        locked(&self.pipe).sent.push((client, Bytes::copy_from_slice(payload)));
    }

    fn pop(&mut self) -> Option<(SocketAddr, &[u8])> {
        let (from, bytes) = locked(&self.pipe).arrived.pop_front()?;
        self.last = bytes;
        Some((from, &self.last))
    }
}

impl server::Socket for Wire {
    fn listen(self: Box<Self>) -> server::ListenResult {
        (self.clone(), self.clone(), self.clone(), self)
    }
}

impl server::PacketSender for Wire {
    fn send(&self, address: &SocketAddr, payload: &[u8]) -> Result<(), server::SendError> {
        self.push(*address, payload);
        Ok(())
    }
}

impl server::PacketReceiver for Wire {
    fn receive(&mut self) -> Result<Option<(SocketAddr, &[u8])>, server::RecvError> {
        Ok(self.pop())
    }
}

impl server::AuthSender for Wire {
    fn accept(&self, address: &SocketAddr, token: &IdentityToken) -> Result<(), server::SendError> {
        locked(&self.pipe).tokens.insert(*address, token.clone());
        Ok(())
    }

    fn reject(&self, _: &SocketAddr) -> Result<(), server::SendError> {
        Err(server::SendError)
    }
}

impl server::AuthReceiver for Wire {
    fn receive(&mut self) -> Result<Option<(SocketAddr, &[u8])>, server::RecvError> {
        Ok(locked(&self.pipe).asked.pop_front().map(|client| (client, [].as_slice())))
    }
}

/// What a client's socket is made into.
type Handles =
    (Box<dyn client::IdentityReceiver>, Box<dyn client::PacketSender>, Box<dyn client::PacketReceiver>);

impl client::Socket for Wire {
    fn connect(self: Box<Self>) -> Handles {
        if let Some(server) = &self.server {
            locked(server).asked.push_back(self.address);
        }
        (self.clone(), self.clone(), self)
    }

    fn connect_with_auth(self: Box<Self>, _: Vec<u8>) -> Handles {
        self.connect()
    }

    fn connect_with_auth_headers(self: Box<Self>, _: Vec<(String, String)>) -> Handles {
        self.connect()
    }

    fn connect_with_auth_and_headers(self: Box<Self>, _: Vec<u8>, _: Vec<(String, String)>) -> Handles {
        self.connect()
    }
}

impl client::IdentityReceiver for Wire {
    fn receive(&mut self) -> client::IdentityReceiverResult {
        let token = self.server.as_ref().and_then(|server| locked(server).tokens.remove(&self.address));
        token.map_or(client::IdentityReceiverResult::Waiting, client::IdentityReceiverResult::Success)
    }
}

impl client::PacketSender for Wire {
    fn send(&self, payload: &[u8]) -> Result<(), client::SendError> {
        self.push(self.address, payload);
        Ok(())
    }

    fn server_addr(&self) -> client::ServerAddr {
        client::ServerAddr::Found(self.address)
    }
}

impl client::PacketReceiver for Wire {
    fn receive(&mut self) -> Result<Option<&[u8]>, client::RecvError> {
        Ok(self.pop().map(|(_, bytes)| bytes))
    }

    fn server_addr(&self) -> client::ServerAddr {
        client::ServerAddr::Found(self.address)
    }
}
