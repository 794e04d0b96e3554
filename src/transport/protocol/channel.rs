//! The settings of a channel, and their bounds.

use core::time::Duration;

use crate::limits::ConfigError;
use crate::transport::message::MESSAGE_OVERHEAD_BYTES;

/// Largest encoded message: what 256 fragments of 1,024 bytes carry, less room for the other sections of
/// the packet it rides in.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024 - MAX_CONTROL_BYTES;

/// Bytes of a packet besides the messages in it, at most: hello, ack delay, ack ranges, credit of every channel, an entry.
pub(crate) const MAX_CONTROL_BYTES: usize = 1024;

/// Largest receive window in messages: far below half the range of the 16-bit ids.
pub const MAX_WINDOW: usize = 16_384;

/// Keys of a latest channel: 16 bits on the wire at most.
const MAX_KEYS: usize = 65_536;

/// Early copies of a reliable message: more would be a flood, not redundancy.
pub const MAX_EARLY_COPIES: usize = 8;

/// The largest weight of a channel.
const MAX_WEIGHT: usize = 1000;

/// When a reliable message is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// This long after its last transmission, as in the article.
    After(Duration),
    /// When the packets that carry it are lost, or a timeout from RTT and its variance has passed.
    Adaptive {
        /// Packets, a tick apart, that carry it from the start while the budget has room; 1 for no redundancy.
        early_copies: u8,
    },
}

impl Default for Resend {
    /// By lost packets and round trips. The article's fixed 0.1 s sends each message twice on a line of 150 ms, and
    /// on a line slower than the data, over and over until it carries nothing else.
    fn default() -> Self {
        Resend::Adaptive { early_copies: 1 }
    }
}

/// The promise of a channel. Windows and keys are part of the protocol hash; queues and timing are local choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// Each message exactly once.
    Reliable {
        /// In order, or in order of arrival.
        ordered: bool,
        /// Messages the receiver buffers before its application takes them: the sender never sends beyond it.
        receive_window: usize,
        /// Bytes the receiver buffers before its application takes them, `MESSAGE_OVERHEAD_BYTES` a message
        /// included.
        receive_bytes: usize,
        /// When a message is sent again.
        resend: Resend,
    },
    /// Each message at most once, in any order, never sent again.
    Unreliable {
        /// Messages the receiver keeps for its application; the oldest make room.
        receive_queue: usize,
    },
    /// Each message at most once, never sent again; older ones are dropped once a newer one came.
    Sequenced { receive_queue: usize },
    /// Each message in several packets; at most once, in order, with gaps reported.
    Redundant {
        /// Packets that carry each message, a tick apart; 0 for as many as needed until one is acked.
        copies: u8,
        receive_queue: usize,
    },
    /// The newest value of each key, until the peer has it.
    Latest {
        /// Keys are 0 to this, exclusive.
        keys: usize,
    },
    /// Opaque bits, at most once, each with one notification, in packet order.
    Payload { receive_queue: usize },
    /// Large blocks, in slices; they get what the other channels leave. A protocol has at most one such channel.
    Chunks,
}

impl ChannelKind {
    /// The kind's name, as in the protocol hash and in statistics.
    pub fn name(&self) -> &'static str {
        match self {
            ChannelKind::Reliable { ordered: true, .. } => "reliable_ordered",
            ChannelKind::Reliable { ordered: false, .. } => "reliable_unordered",
            ChannelKind::Unreliable { .. } => "unreliable",
            ChannelKind::Sequenced { .. } => "sequenced",
            ChannelKind::Redundant { .. } => "redundant",
            ChannelKind::Latest { .. } => "latest",
            ChannelKind::Payload { .. } => "payload",
            ChannelKind::Chunks => "chunks",
        }
    }

    /// Whether the receiver grants credit.
    pub fn has_credit(&self) -> bool {
        matches!(self, ChannelKind::Reliable { .. })
    }

    /// Whether it carries payloads instead of messages.
    pub fn is_payload(&self) -> bool {
        matches!(self, ChannelKind::Payload { .. })
    }

    /// Whether it carries chunks instead of messages.
    pub fn is_chunks(&self) -> bool {
        matches!(self, ChannelKind::Chunks)
    }

    /// Whether messages have numbers on the wire.
    pub(crate) fn has_ids(&self) -> bool {
        matches!(self, ChannelKind::Reliable { .. } | ChannelKind::Redundant { .. })
    }
}

/// A channel's share of a connection's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Comes before all channels that are not strict; these keep a tenth of each packet.
    pub strict: bool,
    /// The share among channels that are not strict, relative to theirs; 1 to 1,000.
    pub weight: u32,
}

impl Default for Share {
    fn default() -> Self {
        Share { strict: false, weight: 1 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// For people; not part of the protocol hash.
    pub name: String,
    /// The promise of the channel.
    pub kind: ChannelKind,
    /// Messages that may wait on the sending side. A local choice.
    pub send_queue: usize,
    /// Largest encoded message. Part of the protocol hash.
    pub max_message_bytes: usize,
    /// Its part of what may be sent. A local choice.
    pub share: Share,
}

impl ChannelConfig {
    /// A channel of this kind with the default queue, message size and share.
    pub fn new(kind: ChannelKind) -> Self {
        ChannelConfig {
            name: String::new(),
            kind,
            send_queue: 1024,
            max_message_bytes: 65_536,
            share: Share::default(),
        }
    }

    /// Reliable-ordered with the article's resend time of 0.1 s.
    pub fn reliable_ordered() -> Self {
        let resend = Resend::default();
        let (receive_window, receive_bytes) = (1024, 1 << 20);
        Self::new(ChannelKind::Reliable { ordered: true, receive_window, receive_bytes, resend })
    }

    pub fn unreliable() -> Self {
        Self::new(ChannelKind::Unreliable { receive_queue: 1024 })
    }

    /// Checks every setting against its bound.
    ///
    /// # Errors
    /// The first setting out of its bound.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let check = ConfigError::within::<usize>;
        check("send_queue", self.send_queue, 1, MAX_WINDOW)?;
        check("max_message_bytes", self.max_message_bytes, 1, MAX_MESSAGE_BYTES)?;
        check("weight", self.share.weight as usize, 1, MAX_WEIGHT)?;
        match self.kind {
            ChannelKind::Reliable { receive_window, receive_bytes, resend, .. } => {
                check("receive_window", receive_window, 4, MAX_WINDOW)?;
                // Credit is renewed at each quarter of the window; a message of half the window always fits.
                let least = 2 * (self.max_message_bytes + MESSAGE_OVERHEAD_BYTES);
                check("receive_bytes", receive_bytes, least, 1 << 30)?;
                match resend {
                    Resend::After(time) => {
                        check("resend_time in milliseconds", time.as_millis() as usize, 1, 60_000)
                    }
                    Resend::Adaptive { early_copies } => {
                        check("early_copies", early_copies.into(), 1, MAX_EARLY_COPIES)
                    }
                }
            }
            ChannelKind::Unreliable { receive_queue }
            | ChannelKind::Sequenced { receive_queue }
            | ChannelKind::Redundant { receive_queue, .. }
            | ChannelKind::Payload { receive_queue } => check("receive_queue", receive_queue, 1, MAX_WINDOW),
            ChannelKind::Latest { keys } => check("keys", keys, 1, MAX_KEYS),
            ChannelKind::Chunks => Ok(()),
        }
    }
}
