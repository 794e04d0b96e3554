//! Channels: what is promised for the messages put in. A channel is queues and windows; how its messages look
//! in a packet is the business of the framing, and what it may send is the stream manager's.
//!
//! | kind | file | promise |
//! |---|---|---|
//! | reliable-ordered, reliable-unordered | `reliable.rs` | each message exactly once; in order, or at once |
//! | unreliable, sequenced, payload | `unreliable.rs` | each message at most once; sequenced: never an older one after a newer |
//! | redundant | `redundant.rs` | each message in several packets, once, in order, gaps told |
//! | latest | `latest.rs` | the newest value of each key, until the peer has it |
//!
//! What a channel is given was read whole, with bodies within the channel's bound; ids, keys' newness and credit are the
//! peer's claims. What waits for the application is bounded in messages: by the window (a violation beyond it), by the
//! receive queue (the oldest make room), by the keys. Marks are our own and never wrap.

mod blocks;
mod chunks_place;
mod fragments;
mod latest;
mod redundant;
mod reliable;
mod reliable_receiver;
mod resend;
mod unreliable;
mod waiting;

pub use blocks::Desync;
pub(crate) use blocks::{BlockFragment, BlockLimits, Fragment};
pub(crate) use fragments::{FragmentFault, MessageFragment, fragment_of};
pub(crate) use reliable_receiver::CreditMark;
pub(crate) use resend::ResendTimer;

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

use super::candidates::{Column, Wanted};
use super::connection::SendOptions;
use super::framing::Cost;
use super::message::{Message, Received};
use super::protocol::{ChannelConfig, ChannelKind};
use crate::time::Instant;

/// Counts of one channel since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChannelStats {
    /// Messages now waiting to be sent or acked.
    pub queued: usize,
    /// Messages sent, each counted once.
    pub sent: u64,
    /// Times a message was sent again.
    pub resent: u64,
    /// Messages the peer is known to have.
    pub delivered: u64,
    /// Messages given up as lost; never on reliable channels.
    pub lost: u64,
    /// Messages received, each counted once.
    pub received: u64,
    /// Messages received again, or too old to be of use, and dropped.
    pub duplicates: u64,
    /// Messages that the peer sent and that never came; known on redundant channels.
    pub missed: u64,
    /// Messages pushed out, before they were sent or before they were read, by a full queue, a tick's budget or
    /// a newer value.
    pub dropped: u64,
    /// Bytes of message bodies sent, each time they were sent.
    pub bytes_sent: u64,
    /// Smoothed time from sending to the ack; zero until the first.
    pub latency: Duration,
}

impl ChannelStats {
    /// Counts a message that goes out, the first time or again.
    fn count_sent(&mut self, message: &Message, again: bool) {
        *(if again { &mut self.resent } else { &mut self.sent }) += 1;
        self.bytes_sent += message.encoded.bits().div_ceil(8) as u64;
    }

    /// Counts a message the peer is known to have since just now.
    fn count_delivered(&mut self, latency: Duration) {
        self.delivered += 1;
        self.latency = if self.latency.is_zero() { latency } else { (self.latency * 9 + latency) / 10 };
    }
}

/// Why a channel doesn't take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// As many messages wait as may.
    Full {
        /// How many that is.
        capacity: usize,
    },
    /// As many messages wait for the next tick's packets as may; those that don't fit are dropped then.
    TickFull {
        /// How many that is.
        capacity: usize,
    },
    /// The encoded message is larger than the channel takes.
    TooLarge {
        /// The message's upper bound in bytes.
        bytes: usize,
        /// The channel's.
        max_bytes: usize,
    },
    /// The encoded message is larger than a packet has room for.
    Packet {
        /// The message's upper bound in bytes.
        bytes: usize,
        /// What a packet leaves it.
        max_bytes: usize,
        /// The packet's own bound.
        max_packet_bytes: usize,
    },
    /// There is no channel of this index.
    NoChannel {
        /// The index.
        channel: usize,
        /// How many there are.
        channels: usize,
    },
    /// A latest channel has no such key.
    NoKey {
        /// The key.
        key: u32,
        /// How many there are.
        keys: usize,
    },
    /// Messages go on channels of messages, payloads on channels of payloads.
    WrongKind,
    /// A message of a layer goes on a channel of a kind that doesn't take such.
    WrongType {
        /// The message's type.
        message_type: u16,
        /// The channel's kind.
        kind: &'static str,
    },
    /// A block of no bytes, or of more than the channel takes.
    Block {
        /// The block's bytes.
        bytes: usize,
        /// The most that the channel takes.
        max_bytes: usize,
    },
    /// The channel has no blocks.
    BlocksDisabled,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full { capacity } => {
                write!(
                    f,
                    "{capacity} messages wait to be sent or acked already, as many as send_queue allows: \
                     try again in a later tick, or disconnect a peer that can't keep up"
                )
            }
            SendError::TickFull { capacity } => write!(
                f,
                "{capacity} messages of one tick wait to be sent already, as many as send_queue allows: send fewer a tick, \
                 or allow more"
            ),
            SendError::TooLarge { bytes, max_bytes } => {
                write!(f, "the message must take at most {max_bytes} bytes, the channel's max_message_bytes, not {bytes}")
            }
            SendError::Packet { bytes, max_bytes, max_packet_bytes } => write!(
                f,
                "the message must take at most {max_bytes} bytes, which max_packet_size={max_packet_bytes} leaves it, not {bytes}"
            ),
            SendError::NoChannel { channel, channels } => {
                write!(f, "channel must be 0 to {}, not {channel}", channels - 1)
            }
            SendError::NoKey { key, keys } => {
                write!(f, "key must be 0 to {}, not {key}", keys - 1)
            }
            SendError::Block { bytes, max_bytes } => {
                write!(f, "the block must be 1 to {max_bytes} bytes, not {bytes}")
            }
            SendError::WrongType { message_type, kind } => {
                write!(f, "messages of type {message_type} are not for {kind} channels")
            }
            SendError::BlocksDisabled => f.write_str("the channel takes no blocks: make it without disable_blocks"),
            SendError::WrongKind => f.write_str(
                "send_payload() is for payload channels, send_chunk() for chunks, and send() for all other channels",
            ),
        }
    }
}

impl core::error::Error for SendError {}

/// The peer did what the channel's window forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowViolation;

/// A message handed to a channel.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub(crate) message: Message,
    pub(crate) at: Instant,
    pub(crate) options: SendOptions,
}

impl Submission {
    /// What to tell when the message's fate is known.
    fn fate(&self) -> Fate {
        Fate::of(self.options)
    }
}

/// What stands before a message in its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    None,
    /// The message's number in its channel.
    Id(u16),
    /// What it is the value of.
    Key(u16),
}

/// A message that the packet being composed carries.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    pub(crate) prefix: Prefix,
    pub(crate) message: Message,
    /// By which the channel knows it again when the packet's fate is known.
    pub(crate) mark: u64,
    /// Which fragment of it, if it is cut.
    pub(crate) fragment: Option<u16>,
}

/// When a packet is composed, and what is known of the link then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    /// It is a tick's, not one between ticks.
    pub(crate) tick: bool,
    pub(crate) resend: ResendTimer,
}

/// What a packet's fate makes of a message in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The message's own fate is not known yet, or was before.
    Open,
    /// It is now, with the tag to tell it by.
    Told(u32),
}

impl Fate {
    /// The fate, just known, of a message sent with these options.
    fn of(options: SendOptions) -> Self {
        if options.notify { Fate::Told(options.tag) } else { Fate::Open }
    }
}

/// One channel of one connection, of whatever kind.
pub(crate) trait Channel: fmt::Debug + Send {
    /// Takes a message whose size has been checked; returns the fate of the one whose place it takes, which is lost.
    fn send(&mut self, submission: Submission) -> Result<Fate, SendError>;

    /// Takes the messages of one packet into `selected` and returns the bits that they take at most, with
    /// their entry: 0 for none.
    fn select(
        &mut self,
        moment: &Moment,
        cost: &Cost<'_>,
        bits_left: usize,
        selected: &mut Vec<Selected>,
    ) -> usize;

    /// The next fragment of the block that holds up all messages behind it; None when there is none, or no room for it.
    fn select_fragment(&mut self, _: &Moment, _: &Cost<'_>, _bits_left: usize) -> Option<Fragment> {
        None
    }

    /// A packet with a fragment of the message of this mark was acked.
    fn handle_fragment_ack(&mut self, _now: Instant, _mark: u64, _index: usize) -> Fate {
        Fate::Open
    }

    /// A packet with a fragment of the message of this mark is lost. It may yet be acked.
    fn handle_fragment_lost(&mut self, _mark: u64, _index: usize) {}

    /// A fragment of a block from the peer.
    fn handle_fragment(&mut self, _: BlockFragment, _: BlockLimits) -> Result<(), Desync> {
        Err(Desync::Window)
    }

    /// A fragment of a message from the peer, with its bytes; gives the message's body when it is whole and to be read. Then
    /// [`Channel::handle`] takes the message, or nothing does and the packet is not acked.
    fn handle_message_fragment(
        &mut self,
        _: &MessageFragment,
        _data: &[u8],
        _arrival: u64,
    ) -> Result<Option<Vec<u8>>, FragmentFault> {
        Err(FragmentFault::Window)
    }

    /// Whether a message has room among those that the application doesn't take. Without credit the peer can't know.
    fn has_room(&self, _: Prefix) -> bool {
        true
    }

    /// The bits that the first message due needs, with its entry. None when none is due.
    fn next_bits(&mut self, moment: &Moment, cost: &Cost<'_>) -> Option<usize>;

    /// When the first message is due; [`Instant::ZERO`] for those that are.
    fn next_deadline(&self, resend: ResendTimer) -> Instant;

    /// Whether no tick finds anything to send or to drop here until something is sent or arrives, or a packet is lost.
    fn rests(&self) -> bool;

    /// Whether nothing that was given to the channel can still get to the peer but what got there: nothing waits, and
    /// nothing is in flight whose loss or delivery isn't known.
    fn is_drained(&self) -> bool {
        self.rests()
    }

    /// A packet with the message of this mark was acked.
    fn handle_ack(&mut self, now: Instant, mark: u64) -> Fate;

    /// A packet with the message of this mark is lost. It may yet be acked.
    fn handle_lost(&mut self, mark: u64) -> Fate;

    /// The tick's packets are out: what may not wait is dropped, and shown.
    fn end_of_tick(&mut self, _dropped: &mut dyn FnMut(Fate)) {}

    /// The connection is over: drops all messages and shows the fates of those still open.
    fn conclude(&mut self, _lost: &mut dyn FnMut(Fate)) {}

    /// How many messages wait whose order is free.
    fn candidates(&self) -> usize {
        0
    }

    /// Appends what is wanted of each of them, in the order they came.
    fn describe(&self, _wanted: &Wanted, _column: &mut Column) {}

    /// Has them go out in the order of these scores, highest first, until the end of the tick: one for each of
    /// [`Channel::candidates`], taken off the front.
    fn prioritize(&mut self, _scores: &mut &[f32]) {}

    /// Whether the windows that both sides know allow a message of the peer: [`Channel::handle`] refuses no other. Asked of all
    /// messages of a packet before any is handed over, so that nothing of it is taken when one is refused. `claimed`: what
    /// those of the packet before it add to the window's bytes; it adds its own.
    fn check(
        &self,
        _: Prefix,
        _arrival: u64,
        _window_bytes: usize,
        _claimed: &mut isize,
    ) -> Result<(), WindowViolation> {
        Ok(())
    }

    /// Likewise of credit.
    fn check_credit(&self, _unread: u16, _arrival: u64) -> Result<(), WindowViolation> {
        Err(WindowViolation)
    }

    /// A message from the peer; `arrival` numbers packets without wrapping. Gives back what the application won't get: the
    /// message, or one that made room for it.
    fn handle(
        &mut self,
        prefix: Prefix,
        arrival: u64,
        message: Received,
    ) -> Result<Option<Received>, WindowViolation>;

    /// The peer's application has taken every message before `unread`: so they are delivered, whatever acks said. `arrival`
    /// is the number of the packet, as for [`Channel::handle`].
    fn handle_credit(
        &mut self,
        _now: Instant,
        _unread: u16,
        _arrival: u64,
        _delivered: &mut dyn FnMut(Fate),
    ) -> Result<(), WindowViolation> {
        Err(WindowViolation)
    }

    /// What the next packet should say of credit: nothing while the peer surely knows of enough of it.
    fn credit_due(&self) -> Option<CreditMark> {
        None
    }

    /// The packet that said this of credit was acked.
    fn credit_known(&mut self, _mark: CreditMark) {}

    /// Bytes of memory that messages take that the application has not taken.
    fn received_memory(&self) -> usize;

    /// Whether what the application could take next is behind this message, which is not here yet.
    fn awaits(&self, _prefix: Prefix) -> bool {
        false
    }

    /// Whether a message waits for the application.
    fn has_received(&self) -> bool;

    /// Takes the next message for the application.
    fn poll_received(&mut self) -> Option<Received>;

    /// Counts since the beginning.
    fn stats(&self) -> ChannelStats;
}

/// Queues a message for the application; the oldest makes room when `capacity` wait, and is given back.
fn push_newest(received: &mut VecDeque<Received>, capacity: usize, message: Received) -> Option<Received> {
    let pushed_out = if received.len() >= capacity { received.pop_front() } else { None };
    received.push_back(message);
    pushed_out
}

/// A channel of this configuration; with `credit`, the receiver of a reliable one tells how far its application has read.
pub(crate) fn open(config: &ChannelConfig, credit: bool) -> Box<dyn Channel> {
    let send_queue = config.send_queue;
    match config.kind {
        ChannelKind::Reliable { ordered, receive_window, receive_bytes, resend } => {
            let window = reliable::Window { messages: receive_window, bytes: receive_bytes, credit };
            Box::new(reliable::Reliable::new(send_queue, ordered, window, resend))
        }
        ChannelKind::Unreliable { receive_queue } | ChannelKind::Payload { receive_queue } => {
            Box::new(unreliable::Unreliable::new(send_queue, receive_queue, false))
        }
        ChannelKind::Sequenced { receive_queue } => {
            Box::new(unreliable::Unreliable::new(send_queue, receive_queue, true))
        }
        ChannelKind::Redundant { copies, receive_queue } => {
            Box::new(redundant::Redundant::new(send_queue, copies, receive_queue))
        }
        ChannelKind::Latest { keys } => Box::new(latest::Latest::new(keys)),
        ChannelKind::Chunks => Box::new(chunks_place::ChunksPlace),
    }
}
