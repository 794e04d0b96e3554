//! Streams fill packets: the channels, each with its promise for the messages put in. A channel is queues and
//! windows; the encoding of its messages is the business of the framing, and how much it may send is the scheduler's.
//!
//! | kind | file | promise |
//! |---|---|---|
//! | reliable-ordered, reliable-unordered | `reliable_sender.rs`, `reliable_receiver.rs` | each message exactly once; in order, or at once |
//! | unreliable, sequenced, payload | `unreliable.rs` | each message at most once; sequenced: never an older one
//! after a newer |
//! | redundant | `redundant.rs` | each message in several packets, once, in order, gaps reported |
//! | latest | `latest.rs` | the newest value of each key, until the peer has it |
//!
//! A channel's input was read whole, with bodies within the channel's bound; ids, keys' newness and credit are the
//! peer's claims. Messages that wait for the application are bounded in number: by the window (a violation beyond
//! it), by the receive queue (the oldest make room), by the keys. Marks are our own and never wrap.

mod blocks;
mod draft;
mod fragments;
mod held;
mod latest;
mod outgoing;
mod receive_queue;
mod redundant;
mod reliable_receiver;
mod reliable_sender;
mod resend;
mod scheduler;
mod streams;
mod unreliable;
mod waiting;

pub use draft::Fill;
use draft::Filling;
pub(crate) use draft::{Draft, PacketDraft, SendContext};
pub use held::Pool;
pub(crate) use reliable_receiver::CreditMark;
pub(crate) use resend::ResendTimer;
pub(crate) use streams::Streams;

use reliable_receiver::ReliableReceiver;
use reliable_sender::ReliableSender;
use unreliable::Unreliable;

use core::time::Duration;

use super::error::SendError;
use super::message::{Message, Prefix, Received, Selected, Submission};
use super::parts::{ChannelFault, MessageFragment};
use super::protocol::{ChannelConfig, ChannelKind, Cost};
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
        // In one number: durations are multiplied and divided as seconds and nanoseconds apart. A u64 has centuries of nanoseconds.
        let nanos = |time: Duration| time.as_nanos() as u64;
        let smoothed = || Duration::from_nanos((nanos(self.latency) * 9 + nanos(latency)) / 10);
        self.latency = if self.latency.is_zero() { latency } else { smoothed() };
    }
}

/// The sending half of a channel, as far as all kinds share it: queued messages, and those in flight. Where the outcome
/// of a message becomes known, the message's tag is returned if a notification was asked for.
pub(crate) trait Sending {
    /// Takes a message whose size has been checked. Returns the tag of the message that it replaces, which is lost.
    fn send(&mut self, submission: Submission) -> Result<Option<u32>, SendError>;

    /// Selects the messages of one packet, and counts an upper bound of their bits.
    fn select(&mut self, filling: &mut Filling<'_>);

    /// The bits of the first message due, with its entry. None if none is due.
    fn next_bits(&mut self, context: &SendContext, cost: Cost<'_>) -> Option<usize>;

    /// When the first message is due; [`Instant::ZERO`] for those that are.
    fn next_deadline(&self, resend: ResendTimer) -> Instant;

    /// Whether no tick finds anything to send or to drop here until something is sent or arrives, or a packet is
    /// lost.
    fn is_idle(&self) -> bool;

    /// Whether everything given to the channel has reached the peer or never will: nothing waits, and nothing is in
    /// flight.
    fn is_drained(&self) -> bool {
        self.is_idle()
    }

    /// A packet with the message of this mark was acked.
    fn handle_ack(&mut self, now: Instant, mark: u64) -> Option<u32>;

    /// [`Sending::handle_ack`] for as many messages, whose marks follow each other; those to notify of are reported.
    fn handle_acks(&mut self, now: Instant, first: u64, count: u16, delivered: &mut dyn FnMut(u32)) {
        let marks = first..first + u64::from(count);
        marks.filter_map(|mark| self.handle_ack(now, mark)).for_each(delivered);
    }

    /// A packet with the message of this mark is lost. It may yet be acked.
    fn handle_lost(&mut self, mark: u64) -> Option<u32>;

    /// The connection is over: drops all messages and reports those still open.
    fn abandon_all(&mut self, lost: &mut dyn FnMut(u32));

    /// Counts since the beginning. A reliable channel's `received` and `duplicates` are its receiver's:
    /// [`Streams::stats`] adds them.
    fn stats(&self) -> ChannelStats;
}

/// The receiving half of a channel, as far as all kinds share it: messages that wait for the application.
pub(crate) trait Receiving {
    /// A message from the peer; `arrival` numbers packets without wrapping. Gives back the message that the
    /// application won't get: this one, or one that made room for it.
    fn handle(
        &mut self,
        prefix: Prefix,
        arrival: u64,
        message: Received,
    ) -> Result<Option<Received>, ChannelFault>;

    /// Bytes of memory of messages that the application has not taken, without a walk over them.
    fn received_memory(&self) -> usize;

    /// Whether a message waits for the application, or was placed where it waits.
    fn has_received(&self) -> bool;

    /// Takes the next message for the application, which has those that were placed before.
    fn poll_received(&mut self) -> Option<Received>;
}

/// One channel of one connection.
#[derive(Debug)]
enum Stream {
    Reliable {
        sender: ReliableSender,
        receiver: ReliableReceiver,
    },
    Unreliable(Unreliable),
    Redundant(redundant::Redundant),
    Latest(latest::Latest),
    /// Chunks have no messages: [`Chunks`](super::chunks) has them.
    Chunks,
}

/// A half of whichever stream it is.
macro_rules! half {
    ($stream:expr, $half:ident) => {
        match $stream {
            Stream::Reliable { $half, .. } => Some($half),
            Stream::Unreliable(half) => Some(half),
            Stream::Redundant(half) => Some(half),
            Stream::Latest(half) => Some(half),
            Stream::Chunks => None,
        }
    };
}

impl Stream {
    /// A channel of this configuration; with `credit`, the receiver of a reliable one reports how far its application
    /// has read.
    fn open(config: &ChannelConfig, credit: bool) -> Self {
        let send_queue = config.send_queue;
        match config.kind {
            ChannelKind::Reliable { ordered, receive_window, receive_bytes, resend } => {
                let window =
                    reliable_receiver::Window { messages: receive_window, bytes: receive_bytes, credit };
                let sender = ReliableSender::new(send_queue, window, resend);
                Stream::Reliable { sender, receiver: ReliableReceiver::new(ordered, window) }
            }
            ChannelKind::Unreliable { receive_queue } | ChannelKind::Payload { receive_queue } => {
                Stream::Unreliable(Unreliable::new(send_queue, receive_queue, false))
            }
            ChannelKind::Sequenced { receive_queue } => {
                Stream::Unreliable(Unreliable::new(send_queue, receive_queue, true))
            }
            ChannelKind::Redundant { copies, receive_queue } => {
                Stream::Redundant(redundant::Redundant::new(send_queue, copies, receive_queue))
            }
            ChannelKind::Latest { keys } => Stream::Latest(latest::Latest::new(keys)),
            ChannelKind::Chunks => Stream::Chunks,
        }
    }

    fn sending(&self) -> Option<&dyn Sending> {
        half!(self, sender)
    }

    fn sending_mut(&mut self) -> Option<&mut dyn Sending> {
        half!(self, sender)
    }

    fn receiving(&self) -> Option<&dyn Receiving> {
        half!(self, receiver)
    }

    fn receiving_mut(&mut self) -> Option<&mut dyn Receiving> {
        half!(self, receiver)
    }

    fn received_memory(&self) -> usize {
        self.receiving().map_or(0, Receiving::received_memory)
    }

    fn sender_mut(&mut self) -> Option<&mut ReliableSender> {
        if let Stream::Reliable { sender, .. } = self { Some(sender) } else { None }
    }

    fn receiver(&self) -> Option<&ReliableReceiver> {
        if let Stream::Reliable { receiver, .. } = self { Some(receiver) } else { None }
    }

    fn receiver_mut(&mut self) -> Option<&mut ReliableReceiver> {
        if let Stream::Reliable { receiver, .. } = self { Some(receiver) } else { None }
    }

    fn unreliable_mut(&mut self) -> Option<&mut Unreliable> {
        if let Stream::Unreliable(unreliable) = self { Some(unreliable) } else { None }
    }
}
