//! Streams fill packets: the channels, each with its promise for the messages put in. A channel is queues and
//! windows; the encoding of its messages is the business of the framing, and how much it may send is the scheduler's.
//!
//! | kind | file | promise |
//! |---|---|---|
//! | reliable-ordered, reliable-unordered | `reliable.rs` | each message exactly once; in order, or at once |
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
pub(super) mod external;
mod fragments;
mod held;
mod latest;
mod outgoing;
mod receive_queue;
mod redundant;
mod reliable;
mod reliable_receiver;
mod reliable_sender;
mod resend;
mod scheduler;
mod streams;
mod unreliable;
mod waiting;

pub(crate) use draft::Draft;
pub(crate) use external::Offer;
pub use held::Pool;
pub(crate) use reliable_receiver::CreditMark;
pub(crate) use resend::ResendTimer;
pub(crate) use streams::Streams;

use reliable::Reliable;
use unreliable::Unreliable;

use core::time::Duration;

use super::candidates::{Column, Wanted};
use super::direct_tables::{DirectRoom, Placed};
use super::error::SendError;
use super::message::{Message, Prefix, Received, Selected, SendOptions, Submission};
use super::parts::{BlockFragment, BlockLimits, Desync, Fragment, FragmentFault, MessageFragment};
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

/// The peer violated the channel's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowViolation;

impl Submission {
    /// The notification for when the message's outcome is known.
    fn fate(&self) -> Fate {
        Fate::of(self.options)
    }
}

/// The time at which a packet is composed, and the link's estimates then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendContext {
    pub(crate) now: Instant,
    /// It is a tick's, not one between ticks.
    pub(crate) tick: bool,
    pub(crate) resend: ResendTimer,
    /// A feature exists that fills external streams.
    pub(crate) fills: bool,
}

/// The effect of a packet's outcome on a message in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The message's own outcome is not known yet, or was before.
    Open,
    /// The outcome is known now; notify under this tag.
    Notify(u32),
}

impl Fate {
    /// For a message sent with these options, when its outcome becomes known.
    fn of(options: SendOptions) -> Self {
        if options.notify { Fate::Notify(options.tag) } else { Fate::Open }
    }
}

/// The sending half of a channel, as far as all kinds share it: queued messages, and those in flight.
pub(crate) trait Sending {
    /// Takes a message whose size has been checked; returns the notification of the message that it replaces, which
    /// is lost.
    fn send(&mut self, submission: Submission) -> Result<Fate, SendError>;

    /// Selects the messages of one packet and returns an upper bound of their bits, with their entry: 0 for none.
    fn select(
        &mut self,
        context: &SendContext,
        cost: Cost<'_>,
        bits_left: usize,
        selected: &mut Vec<Selected>,
    ) -> usize;

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
    fn handle_ack(&mut self, now: Instant, mark: u64) -> Fate;

    /// [`Sending::handle_ack`] for as many messages, whose marks follow each other; those to notify of are reported.
    fn handle_acks(&mut self, now: Instant, first: u64, count: u16, delivered: &mut dyn FnMut(Fate)) {
        for mark in first..first + u64::from(count) {
            let fate = self.handle_ack(now, mark);
            if fate != Fate::Open {
                delivered(fate);
            }
        }
    }

    /// A packet with the message of this mark is lost. It may yet be acked.
    fn handle_lost(&mut self, mark: u64) -> Fate;

    /// The connection is over: drops all messages and reports those still open.
    fn abandon_all(&mut self, lost: &mut dyn FnMut(Fate));

    /// Counts since the beginning.
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
    ) -> Result<Option<Received>, WindowViolation>;

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
    Reliable(Reliable),
    Unreliable(Unreliable),
    Redundant(redundant::Redundant),
    Latest(latest::Latest),
    /// Chunks have no messages: [`Chunks`](super::chunks) has them.
    Chunks,
}

/// A half of whichever stream it is.
macro_rules! half {
    ($stream:expr) => {
        match $stream {
            Stream::Reliable(half) => Some(half),
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
                Stream::Reliable(Reliable::new(send_queue, ordered, window, resend))
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
        half!(self)
    }

    fn sending_mut(&mut self) -> Option<&mut dyn Sending> {
        half!(self)
    }

    fn receiving(&self) -> Option<&dyn Receiving> {
        half!(self)
    }

    fn receiving_mut(&mut self) -> Option<&mut dyn Receiving> {
        half!(self)
    }

    fn received_memory(&self) -> usize {
        self.receiving().map_or(0, Receiving::received_memory)
    }

    fn reliable(&self) -> Option<&Reliable> {
        if let Stream::Reliable(reliable) = self { Some(reliable) } else { None }
    }

    fn reliable_mut(&mut self) -> Option<&mut Reliable> {
        if let Stream::Reliable(reliable) = self { Some(reliable) } else { None }
    }

    fn unreliable_mut(&mut self) -> Option<&mut Unreliable> {
        if let Stream::Unreliable(unreliable) = self { Some(unreliable) } else { None }
    }

    /// The tick's packets are out: what may not wait is dropped, and reported.
    fn end_of_tick(&mut self, dropped: &mut dyn FnMut(Fate)) {
        match self {
            Stream::Unreliable(unreliable) => unreliable.end_of_tick(dropped),
            Stream::Latest(latest) => latest.end_of_tick(),
            _ => {}
        }
    }

    /// How many unordered messages are queued.
    fn candidates(&self) -> usize {
        match self {
            Stream::Unreliable(unreliable) => unreliable.candidates(),
            Stream::Latest(latest) => latest.candidates(),
            _ => 0,
        }
    }

    /// Appends the wanted attribute of each of them, in queue order.
    fn describe(&self, wanted: &Wanted, column: &mut Column) {
        match self {
            Stream::Unreliable(unreliable) => unreliable.describe(wanted, column),
            Stream::Latest(latest) => latest.describe(wanted, column),
            _ => {}
        }
    }

    /// Sends them in the order of these scores, highest first, until the end of the tick: one for each of
    /// [`Stream::candidates`], taken off the front.
    fn prioritize(&mut self, scores: &mut &[f32]) {
        match self {
            Stream::Unreliable(unreliable) => unreliable.prioritize(scores),
            Stream::Latest(latest) => latest.prioritize(scores),
            _ => {}
        }
    }

    /// Checks that the windows that both sides know allow a message of the peer: [`Receiving::handle`] refuses no
    /// other. Asked for all messages of a packet before any is handed over, so that nothing of it is applied when one
    /// is refused. `claimed`: how much the earlier messages of the packet add to the window's bytes; it adds its own.
    fn check(
        &self,
        prefix: Prefix,
        arrival: u64,
        window_bytes: usize,
        claimed: &mut isize,
    ) -> Result<(), WindowViolation> {
        match self {
            Stream::Reliable(reliable) => reliable.check(prefix, arrival, window_bytes, claimed),
            Stream::Chunks => Err(WindowViolation),
            _ => Ok(()),
        }
    }

    /// Which messages of a packet needn't wait here if they are placed directly.
    fn direct_room(&self, arrival: u64) -> DirectRoom {
        match self {
            Stream::Reliable(reliable) => reliable.direct_room(arrival),
            Stream::Unreliable(unreliable) => unreliable.direct_room(arrival),
            _ => DirectRoom::default(),
        }
    }

    /// Whether messages may have gone there, as for [`Stream::check`]: asked where a packet has fragments.
    fn check_placed(&self, placed: &Placed) -> Result<(), WindowViolation> {
        match self {
            Stream::Reliable(reliable) => reliable.check_placed(placed),
            Stream::Chunks => Err(WindowViolation),
            _ => Ok(()),
        }
    }

    /// These messages of a packet went there.
    fn note_placed(&mut self, arrival: u64, placed: &Placed) {
        match self {
            Stream::Reliable(reliable) => reliable.note_placed(arrival, placed),
            Stream::Unreliable(unreliable) => unreliable.note_placed(arrival, placed),
            _ => {}
        }
    }
}
