//! Reliable-ordered, as the article "Reliable Ordered Messages" gives it: messages ride in packets until a
//! packet with them is acked, and are handed out in order.
//!
//! Promises: each message exactly once, in order, however bad the network, as long as the connection lives.
//! Refuses (as violations of the peer): ids and bytes beyond the window that both sides know. The sender
//! never goes beyond it, because the receiver tells how far its application has read ("credit").

use core::time::Duration;
use std::collections::VecDeque;

use super::{ChannelStats, SendError};
use crate::store::sequence::distance;
use crate::time::Instant;
use crate::transport::framing::Cost;
use crate::transport::message::{Message, Received};

/// How many messages that don't fit into the rest of a packet are passed over in search of one that does.
const MOST_MISFITS: usize = 16;

/// What the peer did that the window forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowViolation {
    Id,
    Bytes,
}

#[derive(Debug)]
pub(crate) struct ReliableOrdered {
    sender: Sender,
    receiver: Receiver,
    stats: ChannelStats,
}

/// Messages sent and not acked, oldest first, and what the receiver's window has room for.
#[derive(Debug)]
struct Sender {
    capacity: usize,
    window: usize,
    window_bytes: usize,
    resend_time: Duration,
    /// `queue[i]` is message `oldest + i`. The front is unacked.
    queue: VecDeque<Outgoing>,
    oldest: u16,
    /// The peer's application has taken every message before this one.
    peer_unread: u16,
    /// Window bytes of the messages `peer_unread .. oldest`: acked, and in the peer's buffer for all we know.
    unread_sizes: VecDeque<u32>,
    unread_bytes: usize,
}

#[derive(Debug)]
struct Outgoing {
    /// None once acked.
    message: Option<Message>,
    window_bytes: u32,
    last_sent: Option<Instant>,
}

/// Messages received and not taken.
#[derive(Debug)]
struct Receiver {
    window: usize,
    window_bytes: usize,
    /// `slots[i]` is message `unread + i`.
    slots: VecDeque<Option<Received>>,
    /// The next message the application takes.
    unread: u16,
    buffered_bytes: usize,
    credit: Credit,
}

/// How far the application has read, and how much of that the peer surely knows.
#[derive(Debug, Default)]
struct Credit {
    read_bytes: u64,
    known: u16,
    known_bytes: u64,
}

/// What a packet said of a channel's credit: given back when the packet is acked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CreditMark {
    pub(crate) unread: u16,
    read_bytes: u64,
}

impl ReliableOrdered {
    pub(crate) fn new(capacity: usize, window: usize, window_bytes: usize, resend_time: Duration) -> Self {
        ReliableOrdered {
            sender: Sender {
                capacity,
                window,
                window_bytes,
                resend_time,
                queue: VecDeque::new(),
                oldest: 0,
                peer_unread: 0,
                unread_sizes: VecDeque::new(),
                unread_bytes: 0,
            },
            receiver: Receiver {
                window,
                window_bytes,
                slots: VecDeque::new(),
                unread: 0,
                buffered_bytes: 0,
                credit: Credit::default(),
            },
            stats: ChannelStats::default(),
        }
    }

    pub(crate) fn send(&mut self, message: Message) -> Result<(), SendError> {
        if self.sender.queue.len() >= self.sender.capacity {
            return Err(SendError::Full { capacity: self.sender.capacity });
        }
        let window_bytes = message.window_bytes() as u32;
        self.sender.queue.push_back(Outgoing { message: Some(message), window_bytes, last_sent: None });
        Ok(())
    }

    /// Takes the ids of the messages of one packet into `selected`, oldest first, and returns the bits that they
    /// take at most. Messages that don't fit are passed over, so a large one does not hold up small ones.
    pub(crate) fn select(
        &mut self,
        now: Instant,
        cost: &Cost<'_>,
        bits_left: usize,
        selected: &mut Vec<u16>,
    ) -> usize {
        let mut used = cost.entry;
        let mut misfits = 0;
        let resend_time = self.sender.resend_time;
        let stats = &mut self.stats;
        for (id, outgoing) in self.sender.sendable() {
            let Some(message) = &outgoing.message else { continue };
            if outgoing.last_sent.is_some_and(|sent| sent + resend_time > now) {
                continue;
            }
            let bits = cost.message(message) + cost.id(selected.last().copied(), id);
            if used + bits > bits_left {
                misfits += 1;
                if misfits > MOST_MISFITS {
                    break;
                }
                continue;
            }
            used += bits;
            *(if outgoing.last_sent.is_none() { &mut stats.sent } else { &mut stats.resent }) += 1;
            outgoing.last_sent = Some(now);
            selected.push(id);
        }
        if selected.is_empty() { 0 } else { used }
    }

    /// The bits that the oldest message due needs, with its entry.
    pub(crate) fn next_bits(&mut self, now: Instant, cost: &Cost<'_>) -> Option<usize> {
        let resend_time = self.sender.resend_time;
        self.sender.sendable().find_map(|(_, outgoing)| {
            let message = outgoing.message.as_ref()?;
            let due = outgoing.last_sent.is_none_or(|sent| sent + resend_time <= now);
            due.then(|| cost.entry + cost.id(None, 0) + cost.message(message))
        })
    }

    /// The message of an id that [`ReliableOrdered::select`] gave.
    pub(crate) fn message(&self, id: u16) -> Option<&Message> {
        let index = usize::try_from(distance(id, self.sender.oldest)).ok()?;
        self.sender.queue.get(index)?.message.as_ref()
    }

    /// A packet with this message was acked.
    pub(crate) fn handle_ack(&mut self, id: u16) {
        self.sender.handle_ack(id);
    }

    /// The peer's application has taken every message before `unread`.
    pub(crate) fn handle_credit(&mut self, unread: u16) -> Result<(), WindowViolation> {
        self.sender.handle_credit(unread)
    }

    /// A message from the peer.
    pub(crate) fn handle(&mut self, id: u16, message: Received) -> Result<(), WindowViolation> {
        match self.receiver.handle(id, message)? {
            true => self.stats.received += 1,
            false => self.stats.duplicates += 1,
        }
        Ok(())
    }

    pub(crate) fn poll_received(&mut self) -> Option<Received> {
        self.receiver.poll_received()
    }

    /// What the next packet should say of credit: nothing while the peer surely knows of enough of it.
    pub(crate) fn credit_due(&self) -> Option<CreditMark> {
        let Receiver { window, window_bytes, unread, credit, .. } = &self.receiver;
        let fresh = distance(*unread, credit.known) as usize;
        let fresh_bytes = (credit.read_bytes - credit.known_bytes) as usize;
        let due = fresh * 4 >= *window || fresh_bytes * 4 >= *window_bytes;
        due.then_some(CreditMark { unread: *unread, read_bytes: credit.read_bytes })
    }

    /// The packet that said this of credit was acked.
    pub(crate) fn credit_known(&mut self, mark: CreditMark) {
        let credit = &mut self.receiver.credit;
        if mark.read_bytes > credit.known_bytes {
            credit.known = mark.unread;
            credit.known_bytes = mark.read_bytes;
        }
    }

    pub(crate) fn stats(&self) -> ChannelStats {
        ChannelStats { queued: self.sender.queue.len(), ..self.stats }
    }
}

impl Sender {
    /// The messages, acked ones among them, that the receiver surely has room for.
    fn sendable(&mut self) -> impl Iterator<Item = (u16, &mut Outgoing)> {
        let ahead = self.oldest.wrapping_sub(self.peer_unread);
        let room = self.window - usize::from(ahead);
        let mut bytes = self.unread_bytes;
        let (oldest, window_bytes) = (self.oldest, self.window_bytes);
        self.queue.iter_mut().take(room).enumerate().map_while(move |(i, outgoing)| {
            bytes += outgoing.window_bytes as usize;
            (bytes <= window_bytes).then(|| (oldest.wrapping_add(i as u16), outgoing))
        })
    }

    fn handle_ack(&mut self, id: u16) {
        let Ok(index) = usize::try_from(distance(id, self.oldest)) else { return };
        if let Some(outgoing) = self.queue.get_mut(index) {
            outgoing.message = None;
        }
        while self.queue.front().is_some_and(|outgoing| outgoing.message.is_none()) {
            self.pop_acked();
        }
    }

    fn pop_acked(&mut self) {
        if let Some(outgoing) = self.queue.pop_front() {
            self.unread_sizes.push_back(outgoing.window_bytes);
            self.unread_bytes += outgoing.window_bytes as usize;
            self.oldest = self.oldest.wrapping_add(1);
        }
    }

    fn handle_credit(&mut self, unread: u16) -> Result<(), WindowViolation> {
        let taken = distance(unread, self.peer_unread);
        let sent = i32::from(self.oldest.wrapping_sub(self.peer_unread)) + self.queue.len() as i32;
        if taken > sent {
            return Err(WindowViolation::Id);
        }
        for _ in 0..taken {
            // What the peer's application took has arrived, even if no ack has said so yet.
            if self.unread_sizes.is_empty() {
                self.pop_acked();
            }
            self.unread_bytes -= self.unread_sizes.pop_front().map_or(0, |bytes| bytes as usize);
            self.peer_unread = self.peer_unread.wrapping_add(1);
        }
        Ok(())
    }
}

impl Receiver {
    /// True when the message is new.
    fn handle(&mut self, id: u16, message: Received) -> Result<bool, WindowViolation> {
        let Ok(index) = usize::try_from(distance(id, self.unread)) else { return Ok(false) };
        if index >= self.window {
            return Err(WindowViolation::Id);
        }
        if self.slots.get(index).is_some_and(Option::is_some) {
            return Ok(false);
        }
        if self.buffered_bytes + message.window_bytes > self.window_bytes {
            return Err(WindowViolation::Bytes);
        }
        self.buffered_bytes += message.window_bytes;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        self.slots[index] = Some(message);
        Ok(true)
    }

    fn poll_received(&mut self) -> Option<Received> {
        let message = self.slots.front_mut()?.take()?;
        self.slots.pop_front();
        self.unread = self.unread.wrapping_add(1);
        self.buffered_bytes -= message.window_bytes;
        self.credit.read_bytes += message.window_bytes as u64;
        Some(message)
    }
}
