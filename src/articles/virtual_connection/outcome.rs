//! States, events and errors of a plain virtual connection.

use core::fmt;
use core::net::SocketAddr;

use crate::store::counters::counters;
use crate::transport::ack_endpoint::{DropReason, PayloadTooLarge};

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VirtualState {
    /// Waiting for the first packet of any peer.
    Listening,
    /// Sending to the peer, which hasn't answered yet.
    Connecting,
    Connected,
    /// The peer that we connected to fell silent or never answered. The connection stays ended.
    Ended,
}

/// Something happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualEvent {
    /// The first packet of a peer arrived.
    Connected {
        /// The address that the peer has, or claims.
        peer: SocketAddr,
    },
    /// The peer was silent for the whole timeout. A listener listens again.
    TimedOut { peer: SocketAddr },
    /// The peer we connected to never answered.
    NoAnswer { peer: SocketAddr },
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VirtualDrop {
    /// It ends before a packet could begin.
    TooShort,
    /// It has another protocol id.
    ProtocolId,
    /// Its checksum is not that of its bytes.
    Checksum,
    /// It comes from an address that is not the peer's.
    Stranger,
    /// It acks a packet that was never sent, before its sender's address was proven.
    ForgedAck,
    /// The connection has ended.
    Ended,
    /// The packet in it was refused.
    Packet(DropReason),
}

/// Why a payload can't be sent. Nothing was sent then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualSendError {
    /// There is no peer to send to.
    NoPeer,
    /// It is above the largest packet.
    TooLarge(PayloadTooLarge),
    /// The peer hasn't acked a packet yet, so its address may be forged: until then one datagram may be sent for each
    /// received, no larger than it.
    Unproven {
        /// The size of the payload.
        bytes: usize,
        /// The maximum size now; `None` if everything received was answered already.
        bound: Option<usize>,
    },
}

impl fmt::Display for VirtualSendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VirtualSendError::NoPeer => {
                f.write_str("there is no peer to send to: wait for its Connected event")
            }
            VirtualSendError::TooLarge(error) => error.fmt(f),
            VirtualSendError::Unproven { bytes, bound: Some(bound) } => write!(
                f,
                "the payload must be at most {bound} bytes, not {bytes}, until the peer has acked a packet: it may have \
                 forged its address"
            ),
            VirtualSendError::Unproven { bytes, bound: None } => write!(
                f,
                "the payload of {bytes} bytes must wait: what the peer sent is answered, and it hasn't acked a packet yet"
            ),
        }
    }
}

impl std::error::Error for VirtualSendError {}

counters! {
    /// Counts of a connection. Those of packets are in
    /// [`packet_counters`](super::VirtualConnection::packet_counters).
    pub struct VirtualCounters {
        connected,
        /// Peers that fell silent, or never answered.
        timed_out,
        /// Datagrams that carried a packet or a part of one.
        accepted,
        /// Datagrams dropped because no packet fits in them.
        too_short,
        /// Datagrams dropped for their protocol id.
        wrong_protocol_id,
        /// Datagrams dropped for their checksum.
        wrong_checksum,
        /// Datagrams dropped because they are not from the peer.
        strangers,
        /// Datagrams dropped because they ack a packet that was never sent, before their sender's address was proven.
        forged_acks,
        /// Datagrams dropped because the connection has ended.
        after_end,
        /// Datagrams dropped because of the packet in them.
        packets_dropped,
        /// Payloads refused because the peer hadn't acked a packet yet.
        unproven,
    }
}

impl VirtualCounters {
    pub(super) fn count(&mut self, reason: VirtualDrop) {
        *match reason {
            VirtualDrop::TooShort => &mut self.too_short,
            VirtualDrop::ProtocolId => &mut self.wrong_protocol_id,
            VirtualDrop::Checksum => &mut self.wrong_checksum,
            VirtualDrop::Stranger => &mut self.strangers,
            VirtualDrop::ForgedAck => &mut self.forged_acks,
            VirtualDrop::Ended => &mut self.after_end,
            VirtualDrop::Packet(_) => &mut self.packets_dropped,
        } += 1;
    }
}
