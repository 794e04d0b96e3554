//! The streams of one connection, in one allocation, and which of them are busy: a bit each.
//!
//! Promises: a stream that had nothing to send, to credit or to be read isn't visited again before something is given
//! to it: most of many are idle in a tick, and far from the processor's cache.

use super::draft::{Draft, Set};
use super::held::{HeldMemory, Pool};
use super::reliable_receiver::ReliableReceiver;
use super::reliable_sender::ReliableSender;
use super::unreliable::Unreliable;
use super::{
    ChannelStats, CreditMark, Filling, PacketDraft, Receiving, ResendTimer, SendContext, Sending, Stream,
};
use std::sync::Arc;

use crate::store::prefetch;
use crate::time::Instant;
use crate::transport::candidates::{Attribute, Column, ColumnRequest};
use crate::transport::direct_tables::{DirectRoom, MAX_DIRECT_BYTES, Placed};
use crate::transport::message::{Prefix, Received};
use crate::transport::parts::{BlockFragment, ChannelFault};
use crate::transport::protocol::{Cost, Protocol, Share, YojimboChannel};

/// As many streams as most games have.
const PREFETCHED_LANES: usize = 4;

/// A stream with the scheduler's data about it.
#[derive(Debug)]
pub(super) struct Lane {
    stream: Stream,
    pub(super) share: Share,
    /// A weighted stream's service, in bits over its weight (the virtual time of start-time fair queueing, Goyal, Vin
    /// and Cheng 1996).
    pub(super) served: u64,
    /// The bits that its first message due needs, as of the last query; None if none is due.
    pub(super) need: Option<usize>,
}

/// The scheduler's state, kept from packet to packet.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    /// Bits that weighted streams have not had of their tenths, while they have something due.
    pub(super) owed: usize,
    /// The service of the weighted stream that was served last: a stream that was silent begins here.
    pub(super) virtual_time: u64,
    /// Which stream comes first for a packet of its own.
    pub(super) turn: usize,
    /// A message that needs a packet of its own was due when the last packet was composed.
    pub(super) large_due: bool,
}

/// All streams of a connection.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(super) lanes: Box<[Lane]>,
    pub(super) scheduler: Scheduler,
    /// The memory of what the application has not taken.
    pub(crate) held: HeldMemory,
    /// May have something to send, now or later.
    pub(super) busy: Set,
    /// May have something to do at the end of a tick.
    ticking: Set,
    /// May have something to be read.
    unread: Set,
    /// May have credit to grant.
    crediting: Set,
    /// Some of their messages were placed directly.
    placed: Set,
    /// The tick in which messages are placed directly.
    direct_tick: u64,
    /// How many bytes more may be placed in it.
    pub(crate) direct_bytes: usize,
}

impl Streams {
    /// The streams of a protocol, at most 64.
    pub(crate) fn new(protocol: &Protocol, pool: Arc<Pool>) -> Self {
        let credit = protocol.yojimbo().is_none();
        let lanes = protocol.channels().iter().map(|config| Lane {
            stream: Stream::open(config, credit),
            share: config.share,
            served: 0,
            need: None,
        });
        let (lanes, none) = (lanes.collect(), Set::default());
        Streams {
            lanes,
            scheduler: Scheduler::default(),
            held: HeldMemory::new(protocol, pool),
            busy: none,
            ticking: none,
            unread: none,
            crediting: none,
            placed: none,
            direct_tick: 0,
            direct_bytes: MAX_DIRECT_BYTES,
        }
    }

    /// A feature above has something to write on a payload channel, in a room of at least this many bits; false when it is
    /// no payload channel.
    pub(crate) fn want(&mut self, index: usize, least_bits: usize) -> bool {
        let lane = self.lanes.get_mut(index);
        let Some(unreliable) = lane.and_then(|lane| lane.stream.unreliable_mut()) else { return false };
        unreliable.want(least_bits);
        self.busy.insert(index);
        true
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// The sending half of one, for changes to what it has to send; None for chunks.
    pub(crate) fn sending(&mut self, index: usize) -> Option<&mut dyn Sending> {
        self.busy.insert(index);
        self.ticking.insert(index);
        self.lanes[index].stream.sending_mut()
    }

    /// Changes what the receiving half of one has to be read or credited; None for chunks.
    pub(crate) fn receive<R>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut dyn Receiving) -> R,
    ) -> Option<R> {
        self.unread.insert(index);
        self.crediting.insert(index);
        self.change(index, |stream| stream.receiving_mut().map(change))
    }

    /// Changes what a stream holds for the application, and accounts for the memory.
    fn change<R>(&mut self, index: usize, change: impl FnOnce(&mut Stream) -> R) -> R {
        let stream = &mut self.lanes[index].stream;
        let before = stream.received_memory();
        let result = change(stream);
        self.held.change_messages(before, stream.received_memory());
        result
    }

    /// The sending half of a reliable stream, like [`Streams::sending`]; None for other streams.
    pub(crate) fn sending_reliable(&mut self, index: usize) -> Option<&mut ReliableSender> {
        self.busy.insert(index);
        self.ticking.insert(index);
        self.lanes[index].stream.sender_mut()
    }

    /// Changes the receiving half of a reliable stream, like [`Streams::receive`]; None for other streams.
    pub(crate) fn receive_reliable<R>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut ReliableReceiver) -> R,
    ) -> Option<R> {
        self.unread.insert(index);
        self.crediting.insert(index);
        self.change(index, |stream| stream.receiver_mut().map(change))
    }

    /// Whether the message that came last needs the place of the oldest of those that were placed directly.
    pub(crate) fn pushes_out(&mut self, index: usize) -> bool {
        self.lanes[index].stream.unreliable_mut().is_some_and(Unreliable::pushes_out)
    }

    /// Whether what comes on a channel goes again until it is acked.
    pub(crate) fn is_reliable(&self, index: usize) -> bool {
        matches!(self.lanes[index].stream, Stream::Reliable { .. })
    }

    /// Selects the next fragment of the block that is due on this channel, if it fits; returns its bits, 0 for none.
    pub(crate) fn select_block_fragment(
        &mut self,
        index: usize,
        context: &SendContext,
        (cost, bits_left): (Cost<'_>, usize),
        draft: &mut Draft,
    ) -> usize {
        let sender = self.lanes[index].stream.sender_mut();
        let selected = sender.and_then(|sender| sender.select_block_fragment(context, cost, bits_left));
        let Some((fragment, bits)) = selected else { return 0 };
        // The framing writes either messages or one fragment of a channel. The sender selects no message from a block on,
        // and a fragment is only of the first.
        debug_assert!(draft.of(index).is_empty(), "a block's fragment is alone in its channel's entry");
        draft.of(index).push(fragment);
        draft.chosen.insert(index);
        bits
    }

    /// Takes a fragment of a block.
    pub(crate) fn handle_block_fragment(
        &mut self,
        index: usize,
        fragment: BlockFragment,
        limits: &YojimboChannel,
    ) -> Result<(), ChannelFault> {
        self.unread.insert(index);
        let handled = |receiver: &mut ReliableReceiver| receiver.handle_block_fragment(fragment, limits);
        self.change(index, |stream| stream.receiver_mut().map(handled)).ok_or(ChannelFault::Window)?
    }

    /// Whether a message has room among those not yet taken. Without credit the peer can't know.
    pub(crate) fn has_room(&self, index: usize, prefix: Prefix) -> bool {
        self.lanes[index].stream.receiver().is_none_or(|receiver| receiver.has_room(prefix))
    }

    /// Has the memory fetched that a packet, either way, needs.
    pub(crate) fn prefetch(&self) {
        prefetch(&self.lanes[..self.lanes.len().min(PREFETCHED_LANES)]);
    }

    // --- sending -----------------------------------------------------------------------------------------

    /// Whether a tick may find anything to send or to drop. If not, none does until something is sent or arrives, or a
    /// packet is lost.
    pub(crate) fn are_busy(&mut self) -> bool {
        for index in self.busy.iter() {
            if self.lanes[index].is_idle() {
                self.busy.remove(index);
            }
        }
        !self.busy.is_empty()
    }

    /// Whether nothing that was given to them can still get to the peer but what got there: see [`Sending::is_drained`].
    pub(crate) fn are_drained(&self) -> bool {
        self.lanes.iter().filter_map(|lane| lane.stream.sending()).all(Sending::is_drained)
    }

    /// When the first message is due; [`Instant::ZERO`] for those that are.
    pub(crate) fn next_deadline(&self, timer: ResendTimer) -> Instant {
        let busy = self.busy.iter().filter_map(|index| self.lanes[index].stream.sending());
        busy.map(|sending| sending.next_deadline(timer)).min().unwrap_or(Instant::NEVER)
    }

    /// The tick's packets are out: messages that may not wait are dropped, and reported.
    pub(crate) fn end_of_tick(&mut self, mut dropped: impl FnMut(usize, u32)) {
        for index in self.ticking.iter() {
            match &mut self.lanes[index].stream {
                Stream::Unreliable(unreliable) => unreliable.end_of_tick(&mut |tag| dropped(index, tag)),
                Stream::Latest(latest) => latest.end_of_tick(),
                Stream::Reliable { .. } | Stream::Redundant(_) | Stream::Chunks => {}
            }
            if self.lanes[index].is_idle() {
                self.ticking.remove(index);
            }
        }
    }

    /// Calls [`Sending::abandon_all`] for each stream.
    pub(crate) fn abandon_all(&mut self, mut lost: impl FnMut(usize, u32)) {
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if let Some(sending) = lane.stream.sending_mut() {
                sending.abandon_all(&mut |tag| lost(index, tag));
            }
        }
    }

    /// How many unordered messages are queued.
    pub(crate) fn candidates(&self) -> usize {
        let count = |lane: &Lane| match &lane.stream {
            Stream::Unreliable(unreliable) => unreliable.candidates(),
            Stream::Latest(latest) => latest.candidates(),
            Stream::Reliable { .. } | Stream::Redundant(_) | Stream::Chunks => 0,
        };
        self.lanes.iter().map(count).sum()
    }

    /// Appends this attribute of each of them, stream by stream and in queue order.
    pub(crate) fn describe(&self, now: Instant, slot: u32, attribute: Attribute, column: &mut Column) {
        for (channel, lane) in (0..).zip(&self.lanes) {
            let wanted = ColumnRequest { attribute, now, slot, channel };
            match &lane.stream {
                Stream::Unreliable(unreliable) => unreliable.describe(&wanted, column),
                Stream::Latest(latest) => latest.describe(&wanted, column),
                Stream::Reliable { .. } | Stream::Redundant(_) | Stream::Chunks => {}
            }
        }
    }

    /// Sends them in the order of these scores, highest first within their stream, until the end of the tick: one for
    /// each of [`Streams::candidates`], taken off the front.
    pub(crate) fn prioritize(&mut self, scores: &mut &[f32]) {
        for lane in &mut self.lanes {
            match &mut lane.stream {
                Stream::Unreliable(unreliable) => unreliable.prioritize(scores),
                Stream::Latest(latest) => latest.prioritize(scores),
                Stream::Reliable { .. } | Stream::Redundant(_) | Stream::Chunks => {}
            }
        }
    }

    /// Counts of one stream since the beginning.
    pub(crate) fn stats(&self, index: usize) -> ChannelStats {
        let lane = &self.lanes[index];
        let stats = lane.stream.sending().map(Sending::stats).unwrap_or_default();
        let Some(receiver) = lane.stream.receiver() else { return stats };
        ChannelStats { received: receiver.received, duplicates: receiver.duplicates, ..stats }
    }

    // --- receiving ---------------------------------------------------------------------------------------

    /// Checks that the windows that both sides know allow a message of the peer: [`Receiving::handle`] refuses no
    /// other. Asked for all messages of a packet before any is handed over, so that nothing of it is applied when one
    /// is refused. `claimed`: how much the earlier messages of the packet add to the window's bytes; it adds its own.
    pub(crate) fn check(
        &self,
        index: usize,
        (prefix, arrival): (Prefix, u64),
        window_bytes: usize,
        claimed: &mut isize,
    ) -> Result<(), ChannelFault> {
        match &self.lanes[index].stream {
            Stream::Reliable { receiver, .. } => receiver.check(prefix, arrival, window_bytes, claimed),
            Stream::Chunks => Err(ChannelFault::Window),
            Stream::Unreliable(_) | Stream::Redundant(_) | Stream::Latest(_) => Ok(()),
        }
    }

    /// Whether the peer's credit is possible: see [`ReliableSender::check_credit`].
    pub(crate) fn check_credit(&self, index: usize, unread: u16, arrival: u64) -> Result<(), ChannelFault> {
        match &self.lanes[index].stream {
            Stream::Reliable { sender, .. } => sender.check_credit(unread, arrival),
            _ => Err(ChannelFault::Window),
        }
    }

    /// Messages may be placed directly in this tick.
    pub(crate) fn begin_direct(&mut self, tick: u64) {
        if self.direct_tick != tick {
            self.direct_tick = tick;
            self.direct_bytes = MAX_DIRECT_BYTES;
            for index in core::mem::take(&mut self.placed).iter() {
                if let Some(unreliable) = self.lanes[index].stream.unreliable_mut() {
                    unreliable.placed = 0;
                }
            }
        }
    }

    /// The room for messages of a packet that are placed directly, without waiting in a stream.
    pub(crate) fn direct_room(&self, index: usize, arrival: u64) -> DirectRoom {
        match &self.lanes[index].stream {
            Stream::Reliable { receiver, .. } => receiver.direct_room(arrival),
            Stream::Unreliable(unreliable) => unreliable.direct_room(arrival),
            Stream::Redundant(_) | Stream::Latest(_) | Stream::Chunks => DirectRoom::default(),
        }
    }

    /// Refuses messages of a packet that may not be placed, like [`Streams::check`]: asked where a packet has fragments.
    pub(crate) fn check_placed(&self, placed: &Placed) -> Result<(), ChannelFault> {
        match &self.lanes[usize::from(placed.channel)].stream {
            Stream::Reliable { receiver, .. } => receiver.check_placed(placed),
            Stream::Chunks => Err(ChannelFault::Window),
            Stream::Unreliable(_) | Stream::Redundant(_) | Stream::Latest(_) => Ok(()),
        }
    }

    /// These messages of a packet were placed.
    pub(crate) fn note_placed(&mut self, arrival: u64, placed: &Placed) {
        let index = usize::from(placed.channel);
        self.placed.insert(index);
        if self.is_reliable(index) {
            // It must be told when they are read.
            self.unread.insert(index);
        }
        self.change(index, |stream| match stream {
            Stream::Reliable { receiver, .. } => receiver.note_placed(arrival, placed),
            Stream::Unreliable(unreliable) => unreliable.note_placed(arrival, placed),
            Stream::Redundant(_) | Stream::Latest(_) | Stream::Chunks => {}
        });
    }

    /// Whether a message waits for the application.
    pub(crate) fn have_received(&self) -> bool {
        let mut unread = self.unread.iter().filter_map(|index| self.lanes[index].stream.receiving());
        unread.any(Receiving::has_received)
    }

    /// Takes the next message of one for the application.
    pub(crate) fn poll_received(&mut self, index: usize) -> Option<Received> {
        if !self.unread.contains(index) {
            return None;
        }
        let received = self.change(index, |stream| stream.receiving_mut()?.poll_received());
        // Messages that were read must be credited, placed ones too.
        self.crediting.insert(index);
        if received.is_none() {
            self.unread.remove(index);
        }
        received
    }

    /// The credit that the next packet should carry, by stream.
    pub(crate) fn credits_due(&mut self, mut due: impl FnMut(u8, CreditMark)) {
        for index in self.crediting.iter() {
            match self.lanes[index].stream.receiver().and_then(ReliableReceiver::credit_due) {
                // At most 64.
                Some(mark) => due(index as u8, mark),
                None => self.crediting.remove(index),
            }
        }
    }

    /// Whether the application's next message comes after this one, which is not here yet.
    pub(crate) fn awaits(&self, index: usize, prefix: Prefix) -> bool {
        self.lanes[index].stream.receiver().is_some_and(|receiver| receiver.awaits(prefix))
    }
}

impl Lane {
    /// Whether it has nothing to send, now or later.
    pub(super) fn is_idle(&self) -> bool {
        self.stream.sending().is_none_or(Sending::is_idle)
    }

    /// Asks what its first message due needs.
    pub(super) fn poll_need(&mut self, context: &SendContext, cost: Cost<'_>) {
        self.need = self.stream.sending_mut().and_then(|sending| sending.next_bits(context, cost));
    }

    /// Selects what fits into this many bits for a packet, and returns how many it takes.
    pub(super) fn select(
        &mut self,
        index: usize,
        bits_left: usize,
        packet: &mut PacketDraft<'_, '_>,
    ) -> usize {
        let (context, cost) = (packet.context, packet.protocol.cost(index));
        let PacketDraft { fill, draft, writer, .. } = packet;
        let selected = draft.of(index);
        let before = selected.len();
        let mut filling = Filling { context, cost, bits_left, used: cost.entry, selected };
        let Some(sending) = self.stream.sending_mut() else { return 0 };
        sending.select(&mut filling);
        let mut refused = None;
        if let (Some(unreliable), Some(fill)) = (self.stream.unreliable_mut(), fill) {
            refused = unreliable.offer(index, &mut filling, &mut **fill, writer);
        }
        let used = if filling.selected.len() == before { 0 } else { filling.used };
        draft.refused.extend(refused.map(|record| (index as u8, record)));
        if used > 0 {
            draft.chosen.insert(index);
        }
        debug_assert!(used <= bits_left);
        self.poll_need(context, cost);
        used
    }
}
