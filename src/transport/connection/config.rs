//! The settings of a connection, and why it ends.

use core::fmt;
use std::sync::Arc;

use crate::limits::MAX_PAYLOAD;
use crate::transport::congestion::CongestionConfig;
use crate::transport::framing::{CloseReason, Fault, Refusal};
use crate::transport::pacing::BudgetConfig;
use crate::transport::packet::{AckEndpointConfig, LossBound, numbered};
use crate::transport::parts::ChannelFault;
use crate::transport::stream::Pool;

/// Settings of one connection's transport.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// The framing sets the header, and bounds datagrams.
    pub packets: AckEndpointConfig,
    /// How much may be sent in messages.
    pub budget: BudgetConfig,
    /// How fast chunks may go out beside them.
    pub congestion: CongestionConfig,
    /// Skips packet numbers now and then, so that a peer that acks packets it has not received is found out: by this
    /// seed, which the peer must not know. None: no numbers are skipped. A server gives each connection its own.
    pub skip_seed: Option<u64>,
    /// The memory for messages that the endpoint's connections share. A clone of the configuration shares it, too.
    pub pool: Arc<Pool>,
    /// Whether the peer may refer to packets and messages that were never sent: those of the game whose capture is
    /// replayed.
    pub replayed: bool,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        let mut packets = AckEndpointConfig::large();
        // As at the default MTU, whichever the framing.
        packets.fragment_above = MAX_PAYLOAD - numbered::MAX_SIZE;
        packets.acks.early_loss = true;
        packets.acks.sent_window = 16;
        packets.acks.loss_bound = LossBound::Rtt { multiple: 2.0, at_least: LossBound::DEFAULT_TIME };
        ConnectionConfig {
            packets,
            budget: BudgetConfig::default(),
            congestion: CongestionConfig::default(),
            skip_seed: None,
            pool: Arc::default(),
            replayed: false,
        }
    }
}

/// Why a connection is over, from this side's view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer closed it.
    ByPeer(CloseReason),
    /// The sides' protocols differ.
    Mismatch,
    /// The peer broke the protocol: how.
    Violation(Violation),
}

/// How a peer broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    Packet(Refusal),
    /// A message or credit beyond the window that both sides know.
    Window,
    /// Fragments of a message that don't fit together.
    Fragments,
    /// An ack of a packet that was never sent.
    Ack,
    /// An opaque message that its own code refused: why.
    Message(String),
    /// An invalid payload of a feature, with the reason.
    Payload {
        feature: &'static str,
        why: String,
    },
    /// A fault of yojimbo's framing.
    Yojimbo(Fault),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Packet(refusal) => refusal.fmt(f),
            Violation::Window => f.write_str("a message or credit is beyond the receive window"),
            Violation::Fragments => f.write_str("the fragments of a message don't fit together"),
            Violation::Ack => f.write_str("a packet is acked that was never sent"),
            Violation::Message(why) => write!(f, "a message is refused by its own serialize: {why}"),
            Violation::Payload { feature, why } => write!(f, "{feature}: {why}"),
            Violation::Yojimbo(fault) => fault.fmt(f),
        }
    }
}

impl From<ChannelFault> for End {
    fn from(fault: ChannelFault) -> Self {
        End::Violation(match fault {
            ChannelFault::Window => Violation::Window,
            ChannelFault::Fragments | ChannelFault::FragmentSize => Violation::Fragments,
        })
    }
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        End::Violation(Violation::Yojimbo(fault))
    }
}
