//! A server that this endpoint dials, and how the connection to it ended.

use super::PeerHandle;
use super::event::{Event, LinkEvent};
use super::reason::{ConnectionEnd, DisconnectReason};
use crate::netcode::{self, ClientDisconnect, Farewell, Refusal, Repeats};
use crate::store::Datagrams;
use crate::time::Instant;
use crate::transport::Protocol;

/// A server that is being dialled, or was.
pub struct Dial {
    pub peer: PeerHandle,
    // See `Host::dial`.
    id: u64,
    /// The secure connection: its state and address, and how its token is used.
    pub netcode: netcode::Client,
    /// Our slot on the server, while connected.
    pub slot: Option<u32>,
    /// How the connection ended, once it has.
    pub end: Option<ConnectionEnd>,
    /// Why no way leads to the server, if the layer above has found that out.
    fault: Option<ConnectionEnd>,
    /// The connection is over, and goodbyes with this farewell are repeated.
    repeats: Option<(Repeats, Vec<u8>)>,
}

impl Dial {
    /// Whether it has ended and all goodbyes were sent.
    pub fn is_over(&self) -> bool {
        self.end.is_some() && self.repeats.is_none()
    }

    pub(super) fn new(peer: PeerHandle, id: u64, netcode: netcode::Client) -> Self {
        Dial { peer, id, netcode, slot: None, end: None, fault: None, repeats: None }
    }

    /// Whether the connection is neither up nor over.
    pub fn is_pending(&self) -> bool {
        self.end.is_none() && self.slot.is_none()
    }

    pub(super) fn poll_event(&mut self, protocol: &Protocol) -> Option<LinkEvent> {
        let event = self.netcode.poll_event()?;
        match event {
            netcode::ClientEvent::Connected { client_index, max_clients } => {
                self.slot = Some(client_index);
                let event = Event::Dialled { peer: self.peer, client_index, max_clients };
                Some(LinkEvent::Up { event, id: self.id })
            }
            // A server whose connection is over may still repeat its goodbyes.
            netcode::ClientEvent::Disconnected { .. } if self.end.is_some() => None,
            netcode::ClientEvent::Disconnected { reason } => {
                if let (ClientDisconnect::Unreachable, Some(fault)) = (reason, self.fault.take()) {
                    let (peer, ConnectionEnd { reason, detail }) = (self.peer, fault);
                    return Some(LinkEvent::Down { peer, reason, answer: None, detail });
                }
                let detail = match reason {
                    ClientDisconnect::Refused(refusal) => self.explained(refusal, protocol).map(Into::into),
                    _ => None,
                };
                let reason = match reason {
                    ClientDisconnect::Refused(Refusal::Protocol) => DisconnectReason::ProtocolMismatch,
                    ClientDisconnect::Refused(_) => DisconnectReason::Refused,
                    ClientDisconnect::Unreachable => DisconnectReason::Unreachable,
                    ClientDisconnect::Denied => DisconnectReason::ServerFull,
                    ClientDisconnect::TokenExpired => DisconnectReason::TokenExpired,
                    ClientDisconnect::TimedOut => DisconnectReason::TimedOut,
                    ClientDisconnect::RequestTimedOut => DisconnectReason::RequestTimedOut,
                    ClientDisconnect::ResponseTimedOut => DisconnectReason::ResponseTimedOut,
                    ClientDisconnect::ByPeer => DisconnectReason::PeerDisconnected,
                };
                Some(LinkEvent::Down { peer: self.peer, reason, answer: None, detail })
            }
        }
    }

    /// No way leads to the server's address.
    pub(super) fn note_no_way(&mut self, now: Instant, reason: DisconnectReason, detail: String) {
        self.fault = Some(ConnectionEnd { reason, detail: Some(detail.into()) });
        self.netcode.note_no_way(now);
        if !self.netcode.state().is_final() {
            // The token has another address.
            self.fault = None;
        }
    }

    /// The explanation of a refusal by a server in development mode, and what to do.
    fn explained(&self, refusal: Refusal, protocol: &Protocol) -> Option<String> {
        let differences = || protocol.differences(self.netcode.note());
        Some(match refusal {
            Refusal::ProtocolId(theirs) => {
                let ours = self.netcode.token.protocol_id;
                let more = differences().map_or_else(String::new, |more| format!(" ({more})"));
                format!(
                    "the server has protocol id {theirs:#x}, and this client {ours:#x}: give both the same id{more}"
                )
            }
            Refusal::Protocol => return differences(),
            Refusal::PrivateKey => "the server has another key: give both sides the same key, or none".into(),
            Refusal::OtherServer => "the connect token doesn't contain the server's address: give the \
                                     server the token's address in public_addresses"
                .into(),
        })
    }

    /// Notes how the connection ended, for later queries.
    pub(super) fn note_end(&mut self, end: ConnectionEnd) {
        (self.slot, self.end) = (None, Some(end));
    }

    /// Tells the server that the connection is over: all goodbyes at once, or with a farewell that it understands, spread
    /// until the given time.
    pub(super) fn disconnect(
        &mut self,
        now: Instant,
        farewell: Option<Farewell>,
        until: Option<Instant>,
        out: &mut Datagrams,
    ) {
        let farewell = farewell.filter(|farewell| farewell.understood).map(|farewell| farewell.payload);
        if let (Some(until), Some(farewell)) = (until, &farewell) {
            self.repeats = Some((Repeats::new(now, until), farewell.clone()));
            return self.repeat(now, false, out);
        }
        // A farewell is an ordinary packet.
        let sent = self.netcode.disconnect(farewell.as_deref(), out);
        debug_assert!(sent.is_ok(), "{sent:?}");
    }

    /// Sends the goodbyes that are due, or `all` that are left.
    pub(super) fn repeat(&mut self, now: Instant, all: bool, out: &mut Datagrams) {
        let Some((repeats, farewell)) = &mut self.repeats else { return };
        for _ in if all { repeats.take_all() } else { repeats.take_due(now) } {
            // It fails if the server has ended the connection too, and then needs no goodbye.
            let _ = self.netcode.send_payload(now, farewell, out);
        }
        if repeats.is_over() {
            self.repeats = None;
            self.netcode.forget();
        }
    }

    pub(super) fn next_deadline(&self) -> Instant {
        let repeats = self.repeats.as_ref().map_or(Instant::NEVER, |(repeats, _)| repeats.next());
        self.netcode.next_deadline().min(repeats)
    }
}
