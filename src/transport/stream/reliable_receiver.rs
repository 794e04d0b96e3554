//! The receiving half of the reliable channels: a window of messages that starts at the first one not taken, handed out
//! in order or as they arrive, and the credit that tells the sender how far it may go.
//!
//! Refuses (as violations of the peer): ids and bytes beyond the window that both sides know.
//!
//! Memory is proportional to the stored messages, wherever in the window the peer puts them. What the peer is known to
//! know of its credit only decides how often credit is sent.

use std::collections::VecDeque;

use super::blocks::ReceiveBlock;
use super::fragments::PartialMessage;
use super::receive_queue::KEPT_PLACES;
use super::{ChannelFault, MessageFragment, Prefix, Receiving};
use crate::store::IdMap;
use crate::store::sequence::distance;
use crate::transport::direct_tables::{DirectRoom, Placed};
use crate::transport::ledger::Laps;
use crate::transport::message::Received;
use crate::transport::parts::BlockFragment;
use crate::transport::protocol::YojimboChannel;

/// Messages received and not yet taken.
#[derive(Debug)]
pub(crate) struct ReliableReceiver {
    ordered: bool,
    window: usize,
    window_bytes: usize,
    /// Whether the peer is told how far the application has read, and must stay within the window.
    grants: bool,
    /// The block in transfer, which is the next message after all stored ones.
    block: Option<Box<ReceiveBlock>>,
    /// Ordered: how many messages from `unread` on are where the application will find them, and what they take of the
    /// window until it has taken them.
    placed: usize,
    placed_bytes: usize,
    /// Ordered: the messages after those that wait for none, which most are when they arrive.
    in_order: VecDeque<Received>,
    /// The other stored messages by id.
    slots: IdMap<Slot>,
    /// One past the newest of them.
    end: u64,
    /// How far the application has read, and how far the peer surely knows of it. Counted without wrapping: a peer that
    /// acks nothing may leave its known credit behind by any distance.
    read: CreditMark,
    known: CreditMark,
    /// Ids that can be taken, in order of arrival; used if order doesn't matter.
    ready: VecDeque<u16>,
    buffered_bytes: usize,
    /// Bytes of memory of all stored messages.
    memory: usize,
    /// The newest packet with messages, and where `read` was when packets arrived.
    newest: u64,
    laps: Laps,
    /// Messages received, each counted once, and how often one came again.
    pub(super) received: u64,
    pub(super) duplicates: u64,
}

#[derive(Debug)]
enum Slot {
    /// Some of its fragments are stored, or all, and there was no memory to read the message.
    Partial(Box<PartialMessage>),
    Here(Received),
    /// It was taken; holds the window bytes that it gives back once all before it are taken too.
    Taken(usize),
}

/// The receive buffer of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) messages: usize,
    pub(super) bytes: usize,
    /// The receiver reports how far its application has read. Without that, acked messages count as read.
    pub(super) credit: bool,
}

/// How far the application has read. A packet's record of the credit sent for a channel, returned when the packet is
/// acked: the peer is told only the id, so it can't know about messages read after a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CreditMark {
    /// Every message before this one was taken.
    unread: u64,
    /// The bytes of all messages before it.
    bytes: u64,
}

impl CreditMark {
    /// The first message not taken, as its id on the wire.
    pub(crate) fn id(self) -> u16 {
        self.unread as u16
    }
}

impl ReliableReceiver {
    pub(super) fn new(ordered: bool, window: Window) -> Self {
        ReliableReceiver {
            ordered,
            window: window.messages,
            window_bytes: window.bytes,
            grants: window.credit,
            block: None,
            placed: 0,
            placed_bytes: 0,
            in_order: VecDeque::new(),
            slots: IdMap::default(),
            end: 0,
            read: CreditMark::default(),
            known: CreditMark::default(),
            ready: VecDeque::new(),
            buffered_bytes: 0,
            memory: 0,
            newest: 0,
            laps: Laps::new(window.messages),
            received: 0,
            duplicates: 0,
        }
    }

    /// The distance from the first message not taken to a packet's id; None if it was taken. In an older packet, an id
    /// beyond the window is from long ago: the peer hasn't passed the window even since.
    fn index(&self, id: u16, arrival: u64) -> Result<Option<usize>, ChannelFault> {
        let late = arrival < self.newest;
        if self.laps.is_old(arrival) {
            return Ok(None);
        }
        let index = usize::try_from(distance(id, self.read.unread as u16)).ok();
        match index {
            Some(index) if index >= self.window && late => Ok(None),
            Some(index) if index >= self.window => Err(ChannelFault::Window),
            index => Ok(index),
        }
    }

    /// How many messages from `unread` on wait only for the application.
    fn ahead(&self) -> usize {
        self.placed + self.in_order.len()
    }

    /// Which messages of a packet needn't wait here if they are placed directly.
    pub(super) fn direct_room(&self, arrival: u64) -> DirectRoom {
        // In order: while some wait, later ones wait too.
        let waits = !self.in_order.is_empty() || !self.slots.is_empty() || self.block.is_some();
        if !self.ordered || waits || self.laps.is_old(arrival) {
            return DirectRoom::default();
        }
        DirectRoom {
            messages: self.window.saturating_sub(self.placed),
            first: Some((self.read.unread + self.placed as u64) as u16),
            window_bytes: self.window_bytes.saturating_sub(self.buffered_bytes),
        }
    }

    /// Checks that the messages that were placed may be beside the fragments of the same packet: none of them has come
    /// in part, and the window has room for all. Asked where a packet has fragments.
    pub(super) fn check_placed(&self, placed: &Placed) -> Result<(), ChannelFault> {
        let is_open = |id| matches!(self.slots.get(&id), Some(Slot::Partial(partial)) if !partial.is_whole());
        let given_back = |id| match self.slots.get(&id) {
            Some(Slot::Partial(partial)) => partial.window_bytes(),
            _ => 0,
        };
        let given_back: usize = self.placed_ids(placed).map(given_back).sum();
        let bytes = (self.buffered_bytes + placed.window_bytes).saturating_sub(given_back);
        let fits = !self.grants || bytes <= self.window_bytes;
        if fits && !self.placed_ids(placed).any(is_open) { Ok(()) } else { Err(ChannelFault::Window) }
    }

    /// The ids of messages about to be noted as placed.
    fn placed_ids(&self, placed: &Placed) -> impl Iterator<Item = u16> + use<> {
        let first = self.read.unread + self.placed as u64;
        (first..first + u64::from(placed.count)).map(|id| id as u16)
    }

    /// These messages of a packet were placed directly.
    pub(super) fn note_placed(&mut self, arrival: u64, placed: &Placed) {
        self.newest = self.newest.max(arrival);
        if !self.slots.is_empty() {
            // Fragments of the same packet may have been of these messages, too.
            for id in self.placed_ids(placed) {
                let closed = self.close_fragments(id);
                debug_assert!(closed.is_ok(), "it was checked");
            }
        }
        self.placed += placed.count as usize;
        self.placed_bytes += placed.window_bytes;
        self.buffered_bytes += placed.window_bytes;
        self.end = self.end.max(self.read.unread + self.placed as u64);
        self.received += u64::from(placed.count);
    }

    /// The application has taken the placed messages.
    fn pass_placed(&mut self) {
        self.read.unread += core::mem::take(&mut self.placed) as u64;
        let bytes = core::mem::take(&mut self.placed_bytes);
        self.read.bytes += bytes as u64;
        self.buffered_bytes -= bytes;
        self.laps.advance(self.read.unread, self.newest);
    }

    /// Checks that the window allows a message, after others of its packet that claim this many bytes: see
    /// [`super::Streams::check`].
    pub(super) fn check(
        &self,
        prefix: Prefix,
        arrival: u64,
        window_bytes: usize,
        claimed: &mut isize,
    ) -> Result<(), ChannelFault> {
        let Prefix::Id(id) = prefix else { return Err(ChannelFault::Window) };
        if self.index(id, arrival)?.is_none_or(|index| index < self.ahead()) {
            return Ok(());
        }
        let given_back = match self.slots.get(&id) {
            None => 0,
            Some(Slot::Partial(partial)) if partial.is_whole() => partial.window_bytes(),
            Some(Slot::Partial(_)) => return Err(ChannelFault::Window),
            Some(Slot::Here(_) | Slot::Taken(_)) => return Ok(()),
        };
        *claimed += window_bytes as isize - given_back as isize;
        let bytes = self.buffered_bytes.saturating_add_signed(*claimed);
        if self.grants && bytes > self.window_bytes { Err(ChannelFault::Window) } else { Ok(()) }
    }

    /// Takes a message if it is new; otherwise gives it back.
    fn take(&mut self, id: u16, arrival: u64, message: Received) -> Result<Option<Received>, ChannelFault> {
        let index = self.index(id, arrival);
        self.newest = self.newest.max(arrival);
        let index = match index? {
            Some(index) if index >= self.ahead() => index,
            _ => return Ok(Some(message)),
        };
        self.close_fragments(id)?;
        if self.slots.contains_key(&id) {
            return Ok(Some(message));
        }
        if self.grants && self.buffered_bytes + message.window_bytes > self.window_bytes {
            return Err(ChannelFault::Window);
        }
        self.buffered_bytes += message.window_bytes;
        self.memory += message.held_memory();
        self.end = self.end.max(self.read.unread + index as u64 + 1);
        if self.ordered && index == self.ahead() {
            self.in_order.push_back(message);
            self.close_gap();
            return Ok(None);
        }
        self.slots.insert(id, Slot::Here(message));
        if !self.ordered {
            self.ready.push_back(id);
        }
        Ok(None)
    }

    /// Moves the messages that waited for the last one in order.
    fn close_gap(&mut self) {
        while !self.slots.is_empty() {
            let next = (self.read.unread + self.ahead() as u64) as u16;
            if !matches!(self.slots.get(&next), Some(Slot::Here(_))) {
                break;
            }
            let Some(Slot::Here(message)) = self.slots.remove(&next) else { break };
            self.in_order.push_back(message);
        }
    }

    /// Stores the assembly of a fragmented message. While some are missing, only fragments may come under its id.
    fn close_fragments(&mut self, id: u16) -> Result<(), ChannelFault> {
        if let Some(Slot::Partial(partial)) = self.slots.get(&id) {
            if !partial.is_whole() {
                return Err(ChannelFault::Window);
            }
            self.buffered_bytes -= partial.window_bytes();
            self.memory -= partial.memory();
            self.slots.remove(&id);
        }
        Ok(())
    }

    /// Takes a fragment of a message, with its bytes; returns the message's body when it is complete and to be read. Then
    /// [`Receiving::handle`] takes the message, or the packet is not acked.
    pub(crate) fn handle_message_fragment(
        &mut self,
        fragment: &MessageFragment,
        data: &[u8],
        arrival: u64,
    ) -> Result<Option<Vec<u8>>, ChannelFault> {
        let index = self.index(fragment.id, arrival);
        self.newest = self.newest.max(arrival);
        let index = index?;
        let Some(index) = index.filter(|index| *index >= self.ahead()) else {
            self.duplicates += 1;
            return Ok(None);
        };
        if !self.slots.contains_key(&fragment.id) {
            let partial = PartialMessage::new(fragment);
            if self.buffered_bytes + partial.window_bytes() > self.window_bytes {
                return Err(ChannelFault::Window);
            }
            self.buffered_bytes += partial.window_bytes();
            self.memory += partial.memory();
            self.slots.insert(fragment.id, Slot::Partial(Box::new(partial)));
            self.end = self.end.max(self.read.unread + index as u64 + 1);
        }
        let Some(Slot::Partial(partial)) = self.slots.get_mut(&fragment.id) else {
            self.duplicates += 1;
            return Ok(None);
        };
        let before = partial.memory();
        let handled = partial.handle(fragment, data, arrival);
        self.memory += partial.memory() - before;
        let (whole, is_new) = handled?;
        self.duplicates += u64::from(!is_new);
        Ok(whole)
    }

    /// Whether there is room for a message. If the peer isn't sent credit, it can't know that the application reads too
    /// slowly: then this is false until it has read. A message that the window refuses in any case has room, to be
    /// refused.
    pub(super) fn has_room(&self, prefix: Prefix) -> bool {
        let Prefix::Id(id) = prefix else { return true };
        let Ok(index) = usize::try_from(distance(id, self.read.unread as u16)) else { return true };
        if index < self.window {
            return self.buffered_bytes <= self.window_bytes || !self.has_received();
        }
        let is_here = |at: &usize| {
            matches!(self.slots.get(&((self.read.unread + *at as u64) as u16)), Some(Slot::Here(_)))
        };
        let in_order = self.ahead();
        let waiting = in_order + (in_order..self.window).take_while(is_here).count();
        index >= waiting + self.window
    }

    /// Takes a fragment of a block.
    pub(super) fn handle_block_fragment(
        &mut self,
        fragment: BlockFragment,
        limits: &YojimboChannel,
    ) -> Result<(), ChannelFault> {
        let id = fragment.id;
        let gap = (self.ahead() + self.slots.len()) as u64 != self.end - self.read.unread;
        // A block is sent once everything before it is acked. Any other fragment is late.
        if gap || id != self.end as u16 {
            return Ok(());
        }
        let block = self.block.get_or_insert_with(|| Box::new(ReceiveBlock::new(fragment.count)));
        let Some(message) = block.handle(fragment, limits)? else { return Ok(()) };
        self.block = None;
        let duplicate = self.take(id, 0, message)?;
        self.received += u64::from(duplicate.is_none());
        Ok(())
    }

    /// Whether this is the message that all stored ones wait for.
    pub(super) fn awaits(&self, prefix: Prefix) -> bool {
        self.ordered && prefix == Prefix::Id(self.read.unread as u16) && !self.has_received()
    }

    fn poll_any(&mut self) -> Option<Received> {
        let id = self.ready.pop_front()?;
        let Slot::Here(message) = self.slots.remove(&id)? else { return None };
        if id == self.read.unread as u16 {
            self.pass(message.window_bytes);
            while let Some(Slot::Taken(bytes)) = self.slots.get(&(self.read.unread as u16)) {
                let bytes = *bytes;
                self.slots.remove(&(self.read.unread as u16));
                self.pass(bytes);
            }
        } else {
            self.slots.insert(id, Slot::Taken(message.window_bytes));
        }
        Some(message)
    }

    /// Advances past the first message not taken.
    fn pass(&mut self, bytes: usize) {
        self.read.unread += 1;
        self.read.bytes += bytes as u64;
    }

    /// The credit that the next packet should carry: None while the peer is certain to have enough.
    pub(super) fn credit_due(&self) -> Option<CreditMark> {
        let fresh = (self.read.unread - self.known.unread) as usize;
        let fresh_bytes = (self.read.bytes - self.known.bytes) as usize;
        let due = fresh * 4 >= self.window || fresh_bytes * 4 >= self.window_bytes;
        due.then_some(self.read)
    }

    /// The packet with this credit was acked.
    pub(crate) fn credit_known(&mut self, mark: CreditMark) {
        if mark.unread > self.known.unread {
            self.known = mark;
        }
    }

    /// The sum that `memory` is to be.
    fn sum_memory(&self) -> usize {
        let held = |slot: &Slot| match slot {
            Slot::Here(message) => message.held_memory(),
            Slot::Partial(partial) => partial.memory(),
            Slot::Taken(_) => 0,
        };
        let in_order: usize = self.in_order.iter().map(Received::held_memory).sum();
        in_order + self.slots.values().map(held).sum::<usize>()
    }
}

impl Receiving for ReliableReceiver {
    fn handle(
        &mut self,
        prefix: Prefix,
        arrival: u64,
        message: Received,
    ) -> Result<Option<Received>, ChannelFault> {
        let Prefix::Id(id) = prefix else { return Err(ChannelFault::Window) };
        let duplicate = self.take(id, arrival, message)?;
        *(if duplicate.is_some() { &mut self.duplicates } else { &mut self.received }) += 1;
        Ok(duplicate)
    }

    fn received_memory(&self) -> usize {
        self.memory
    }

    fn has_received(&self) -> bool {
        if self.ordered { self.ahead() > 0 } else { !self.ready.is_empty() }
    }

    fn poll_received(&mut self) -> Option<Received> {
        if self.placed > 0 {
            self.pass_placed();
        }
        let message = if self.ordered { self.in_order.pop_front() } else { self.poll_any() };
        let Some(message) = message else {
            debug_assert_eq!(self.memory, self.sum_memory());
            self.in_order.shrink_to(KEPT_PLACES);
            return None;
        };
        if self.ordered {
            self.pass(message.window_bytes);
        }
        self.memory -= message.held_memory();
        self.laps.advance(self.read.unread, self.newest);
        self.buffered_bytes -= message.window_bytes;
        Some(message)
    }
}
