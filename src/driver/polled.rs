//! Endpoints ticked by the game's own loop: `receive` and `flush` do the socket work on the caller's thread.

use std::io;
use std::net::SocketAddr;

use super::port::Port;
use crate::endpoint::{Client, ClientHandle, Inbox, SendError, Server};
use crate::store::Datagrams;

/// Reads what waits and gives it to `handle`, which may answer at once.
fn receive(
    port: &mut Port,
    inbound: &mut Datagrams,
    outbound: &mut Datagrams,
    mut handle: impl FnMut(&Port, SocketAddr, &mut [u8], &mut Datagrams),
) -> io::Result<()> {
    inbound.clear();
    // What arrived before an error is handled before the error is told.
    let result = port.receive(inbound);
    for (from, datagram) in inbound.iter_mut() {
        handle(port, from, datagram, outbound);
    }
    send(port, outbound);
    result
}

fn send(port: &mut Port, outbound: &mut Datagrams) {
    port.send(outbound);
    outbound.clear();
}

/// A server and its port.
pub struct PolledServer {
    server: Server,
    port: Port,
    inbound: Datagrams,
    outbound: Datagrams,
}

impl PolledServer {
    /// A server on a port.
    pub fn new(server: Server, port: Port) -> Self {
        PolledServer { server, port, inbound: Datagrams::new(), outbound: Datagrams::new() }
    }

    /// The server, to queue messages and to ask.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// The port.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Handles what has arrived. Answers of the handshake go out at once.
    ///
    /// # Errors
    /// Of the socket, and only what won't pass by itself.
    pub fn receive(&mut self) -> io::Result<()> {
        let server = &mut self.server;
        receive(&mut self.port, &mut self.inbound, &mut self.outbound, |port, from, datagram, out| {
            server.handle_datagram(port.now(), port.unix(), from, datagram, out);
        })
    }

    /// Takes the messages that have arrived.
    pub fn take_messages(&mut self, inbox: &mut Inbox) {
        self.server.take_messages(inbox);
    }

    /// Sends everything due.
    pub fn flush(&mut self) {
        self.server.transmit(self.port.now(), &mut self.outbound);
        send(&mut self.port, &mut self.outbound);
    }

    /// Ends a client's connection; see [`Server::disconnect`].
    ///
    /// # Errors
    /// When the client is not connected.
    pub fn disconnect(&mut self, client: ClientHandle) -> Result<(), SendError> {
        let result = self.server.disconnect(self.port.now(), client, &mut self.outbound);
        send(&mut self.port, &mut self.outbound);
        result
    }

    /// Ends a client's connection for a message; see [`Server::refuse_message`].
    pub fn refuse_message(&mut self, client: ClientHandle) {
        self.server.refuse_message(self.port.now(), client, &mut self.outbound);
        send(&mut self.port, &mut self.outbound);
    }

    /// Ends every connection and sends the farewells.
    pub fn close(&mut self) {
        self.server.close(self.port.now(), &mut self.outbound);
        self.port.send_last(&self.outbound);
        self.outbound.clear();
    }
}

/// A client and its port.
pub struct PolledClient {
    client: Client,
    port: Port,
    inbound: Datagrams,
    outbound: Datagrams,
}

impl PolledClient {
    /// A client on a port.
    pub fn new(client: Client, port: Port) -> Self {
        PolledClient { client, port, inbound: Datagrams::new(), outbound: Datagrams::new() }
    }

    /// The client, to queue messages and to ask.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The port.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Handles what has arrived. Answers of the handshake go out at once.
    ///
    /// # Errors
    /// Of the socket, and only what won't pass by itself.
    pub fn receive(&mut self) -> io::Result<()> {
        let client = &mut self.client;
        receive(&mut self.port, &mut self.inbound, &mut self.outbound, |port, from, datagram, out| {
            client.handle_datagram(port.now(), from, datagram, out);
        })
    }

    /// Takes the messages that have arrived.
    pub fn take_messages(&mut self, inbox: &mut Inbox) {
        self.client.take_messages(inbox);
    }

    /// Sends everything due.
    pub fn flush(&mut self) {
        self.client.transmit(self.port.now(), &mut self.outbound);
        send(&mut self.port, &mut self.outbound);
    }

    /// Ends the connection for a message; see [`Client::refuse_message`].
    pub fn refuse_message(&mut self) {
        self.client.refuse_message(self.port.now(), &mut self.outbound);
        send(&mut self.port, &mut self.outbound);
    }

    /// Ends the connection and sends the farewells.
    pub fn close(&mut self) {
        self.client.close(self.port.now(), &mut self.outbound);
        self.port.send_last(&self.outbound);
        self.outbound.clear();
    }
}
