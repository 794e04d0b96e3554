//! The receiving half of the reliable channels: a window of messages from the first that the application has
//! not taken, handed out in order or as they come, and the credit that tells the sender how far it may go.
//!
//! Refuses (as violations of the peer): ids and bytes beyond the window that both sides know.
//!
//! One message may open the whole window, of some bytes a place. What the peer is known to know of credit is its claim, and
//! only decides how often credit is said.

use std::collections::VecDeque;

use super::blocks::ReceiveBlock;
use super::reliable::Window;
use super::{BlockFragment, BlockLimits, Desync, WindowViolation};
use crate::store::sequence::distance;
use crate::transport::laps::Laps;
use crate::transport::message::Received;

/// Messages received and not taken.
#[derive(Debug)]
pub(super) struct Receiver {
    ordered: bool,
    window: usize,
    window_bytes: usize,
    /// The peer is told how far the application has read, and must not go beyond the window.
    grants: bool,
    /// The block being received, which is the next message behind all that are here.
    block: Option<Box<ReceiveBlock>>,
    /// `slots[i]` is message `unread + i`.
    slots: VecDeque<Slot>,
    /// Every message before this one was taken. Counted without wrapping: a peer that acks nothing may leave what is
    /// known of credit behind by any distance.
    unread: u64,
    /// Ids that can be taken, in the order they came; used when order doesn't matter.
    ready: VecDeque<u16>,
    buffered_bytes: usize,
    credit: Credit,
    /// The newest packet with messages, and where `unread` stood when packets came.
    newest: u64,
    laps: Laps,
}

#[derive(Debug)]
enum Slot {
    Missing,
    Here(Received),
    Taken,
}

/// How far the application has read, and how much of that the peer surely knows.
#[derive(Debug, Default)]
struct Credit {
    read_bytes: u64,
    known: u64,
    known_bytes: u64,
}

/// What a packet said of a channel's credit: given back when the packet is acked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CreditMark {
    unread: u64,
    read_bytes: u64,
}

impl CreditMark {
    /// The first message not taken, as the wire has it.
    pub(crate) fn id(self) -> u16 {
        self.unread as u16
    }
}

impl Receiver {
    pub(super) fn new(ordered: bool, window: Window) -> Self {
        Receiver {
            ordered,
            window: window.messages,
            window_bytes: window.bytes,
            grants: window.credit,
            block: None,
            slots: VecDeque::new(),
            unread: 0,
            ready: VecDeque::new(),
            buffered_bytes: 0,
            credit: Credit::default(),
            newest: 0,
            laps: Laps::new(window.messages),
        }
    }

    /// Takes a message if it is new; otherwise gives it back. In a packet older than others, an id beyond the window is one of
    /// long ago: the peer has not gone beyond it even since.
    pub(super) fn handle(
        &mut self,
        id: u16,
        arrival: u64,
        message: Received,
    ) -> Result<Option<Received>, WindowViolation> {
        let late = arrival < self.newest;
        self.newest = self.newest.max(arrival);
        if self.laps.is_old(arrival) {
            return Ok(Some(message));
        }
        let Ok(index) = usize::try_from(distance(id, self.unread as u16)) else { return Ok(Some(message)) };
        if index >= self.window {
            return if late { Ok(Some(message)) } else { Err(WindowViolation) };
        }
        if self.slots.get(index).is_some_and(|slot| !matches!(slot, Slot::Missing)) {
            return Ok(Some(message));
        }
        if self.grants && self.buffered_bytes + message.window_bytes > self.window_bytes {
            return Err(WindowViolation);
        }
        self.buffered_bytes += message.window_bytes;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || Slot::Missing);
        }
        self.slots[index] = Slot::Here(message);
        if !self.ordered {
            self.ready.push_back(id);
        }
        Ok(None)
    }

    /// Whether a message has room. Where the peer is told nothing, it can't know that the application reads too slowly: then
    /// this is false until it did. A message that the window refuses whatever was read has room, to be refused.
    pub(super) fn has_room(&self, id: u16) -> bool {
        let Ok(index) = usize::try_from(distance(id, self.unread as u16)) else { return true };
        if index < self.window {
            return self.buffered_bytes <= self.window_bytes || !self.has_next();
        }
        let waiting = self.slots.iter().take_while(|slot| matches!(slot, Slot::Here(_))).count();
        index >= waiting + self.window
    }

    /// Takes a fragment of a block; true when the message is whole and new.
    pub(super) fn handle_fragment(
        &mut self,
        fragment: BlockFragment,
        limits: BlockLimits,
    ) -> Result<bool, Desync> {
        let id = fragment.id;
        let gap = self.slots.iter().any(|slot| matches!(slot, Slot::Missing));
        let next = self.unread.wrapping_add(self.slots.len() as u64) as u16;
        // A block is sent when all before it was acked. What else comes is late.
        if gap || id != next {
            return Ok(false);
        }
        let block = self.block.get_or_insert_with(|| Box::new(ReceiveBlock::new(fragment.count)));
        let Some(message) = block.handle(fragment, limits)? else { return Ok(false) };
        self.block = None;
        Ok(self.handle(id, 0, message).map_err(|_| Desync::Window)?.is_none())
    }

    /// Bytes of memory that messages take that were not taken.
    pub(super) fn memory(&self) -> usize {
        let here = |slot: &Slot| if let Slot::Here(message) = slot { message.memory() } else { 0 };
        self.slots.iter().map(here).sum()
    }

    /// Whether this is the message that all others here are behind.
    pub(super) fn awaits(&self, id: u16) -> bool {
        self.ordered && id == self.unread as u16 && !self.has_next()
    }

    /// Whether [`Receiver::poll`] would give a message.
    pub(super) fn has_next(&self) -> bool {
        if self.ordered { matches!(self.slots.front(), Some(Slot::Here(_))) } else { !self.ready.is_empty() }
    }

    pub(super) fn poll(&mut self) -> Option<Received> {
        let id = if self.ordered { self.unread as u16 } else { self.ready.pop_front()? };
        let index = usize::from(id.wrapping_sub(self.unread as u16));
        let slot = self.slots.get_mut(index)?;
        let Slot::Here(message) = core::mem::replace(slot, Slot::Taken) else {
            *slot = Slot::Missing;
            return None;
        };
        while matches!(self.slots.front(), Some(Slot::Taken)) {
            self.slots.pop_front();
            self.unread += 1;
        }
        self.laps.advance(self.unread, self.newest);
        self.buffered_bytes -= message.window_bytes;
        self.credit.read_bytes += message.window_bytes as u64;
        Some(message)
    }

    pub(super) fn credit_due(&self) -> Option<CreditMark> {
        let fresh = (self.unread - self.credit.known) as usize;
        let fresh_bytes = (self.credit.read_bytes - self.credit.known_bytes) as usize;
        // Without order the bytes read may lie behind a gap, where telling them would say nothing.
        let due = fresh > 0 && (fresh * 4 >= self.window || fresh_bytes * 4 >= self.window_bytes);
        due.then_some(CreditMark { unread: self.unread, read_bytes: self.credit.read_bytes })
    }

    pub(super) fn credit_known(&mut self, mark: CreditMark) {
        if mark.read_bytes > self.credit.known_bytes {
            self.credit.known = mark.unread;
            self.credit.known_bytes = mark.read_bytes;
        }
    }
}
