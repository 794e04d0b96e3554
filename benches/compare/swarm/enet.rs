//! A client of an ENet server: `rusty_enet`, which is ENet's C code in Rust.

use std::net::{SocketAddr, UdpSocket};

use rusty_enet::{Event, Host, HostSettings, Packet, PeerID};

use crate::clients::{Client, Counts};
use crate::{ANSWER_BYTES, REQUEST_BYTES};

/// A host with one peer, the server.
pub(crate) struct EnetClient {
    host: Host<UdpSocket>,
    server: PeerID,
    connected: bool,
}

impl EnetClient {
    /// A client that dials `server`.
    pub(crate) fn new(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        let settings = HostSettings { peer_limit: 1, channel_limit: 2, ..HostSettings::default() };
        let mut host = Host::new(socket, settings).expect("these settings are within ENet's bounds");
        let server = host.connect(server, 2, 0).expect("the one peer is free").id();
        EnetClient { host, server, connected: false }
    }
}

impl Client for EnetClient {
    fn tick(&mut self, counts: &mut Counts) {
        while let Ok(Some(event)) = self.host.service() {
            match event {
                Event::Connect { .. } => self.connected = true,
                Event::Disconnect { .. } => self.connected = false,
                Event::Receive { packet, .. } => {
                    counts.received += u64::from(packet.data().len() == ANSWER_BYTES);
                }
            }
        }
        if self.connected {
            let packet = Packet::unreliable(&[7; REQUEST_BYTES][..]);
            counts.sent += u64::from(self.host.peer_mut(self.server).send(0, &packet).is_ok());
            self.host.flush();
        }
    }

    fn connected(&self) -> bool {
        self.connected
    }
}
