//! Latest state: for each key only the newest value is ever sent or resent ("most recent state" of the Tribes model).
//!
//! Promises: a value stays due until the peer is known to have it or a newer one is set; on loss the newest is sent,
//! and only if nothing newer is in flight; a stale value never overwrites a newer one at the receiver. Keys are
//! served in the order they became due, so each one's age is bounded by how many there are.
//!
//! A value that is replaced before the peer is known to have it counts as lost at once if no packet carries it any
//! more, and otherwise shares its packet's outcome. Its record lasts as long as the packet is in flight.
//!
//! Keys were checked against their bound before. Memory is in proportion to the number of keys, not to their values:
//! the peer chooses them.

use std::collections::{BTreeMap, VecDeque};

use super::receive_queue::KEPT_PLACES;
use super::waiting::Waiting;
use super::{
    ChannelFault, ChannelStats, Filling, Prefix, Receiving, ResendTimer, SendContext, SendError, Sending,
    Submission,
};
use crate::store::IdMap;
use crate::time::Instant;
use crate::transport::candidates::{Candidate, Column, ColumnRequest};
use crate::transport::message::{Message, Received, SendOptions};
use crate::transport::protocol::Cost;

#[derive(Debug)]
pub(super) struct Latest {
    keys: usize,
    /// By key, up to the highest one used.
    values: Vec<Value>,
    /// By key, the newest messages. Kept apart from the rest for iterating over candidates.
    messages: Vec<Option<Message>>,
    /// Keys whose newest value is due, longest waiting first.
    due: Waiting<u16>,
    /// Replaced values in flight with a notification: their tags by mark.
    replaced: BTreeMap<u64, u32>,
    /// By key, the newest packet that brought a value.
    arrived: IdMap<u64>,
    /// By key, the newest value until it is taken.
    unread: IdMap<Received>,
    /// Keys with a value to take, in order of arrival.
    ready: VecDeque<u16>,
    /// Bytes of memory of the values to take.
    memory: usize,
    stats: ChannelStats,
}

/// The newest value of a key.
#[derive(Debug, Default)]
struct Value {
    at: Instant,
    options: SendOptions,
    /// Counts the values set; 0 before the first.
    version: u32,
    /// The newest version that went out; equal to `version` when nothing newer waits.
    sent: u32,
    /// Whether the key is in the queue.
    due: bool,
    delivered: bool,
}

impl Latest {
    pub(super) fn new(keys: usize) -> Self {
        Latest {
            keys,
            values: Vec::new(),
            messages: Vec::new(),
            due: Waiting::new(),
            replaced: BTreeMap::new(),
            arrived: IdMap::default(),
            unread: IdMap::default(),
            ready: VecDeque::new(),
            memory: 0,
            stats: ChannelStats::default(),
        }
    }

    /// The newest value of a key, if this is the mark of it.
    fn find(&mut self, mark: u64) -> Option<&mut Value> {
        let (key, version) = ((mark >> 32) as usize, mark as u32);
        self.values.get_mut(key).filter(|value| value.version == version)
    }
}

impl Value {
    fn mark(&self, key: u16) -> u64 {
        u64::from(key) << 32 | u64::from(self.version)
    }
}

impl Sending for Latest {
    fn send(&mut self, submission: Submission) -> Result<Option<u32>, SendError> {
        let Submission { message, at, options } = submission;
        let index = options.key as usize;
        // Below 65,536: the configuration's bound.
        let Some(key) = u16::try_from(index).ok().filter(|_| index < self.keys) else {
            return Err(SendError::NoKey { key: options.key, keys: self.keys });
        };
        if self.values.len() <= index {
            self.values.resize_with(index + 1, Value::default);
            self.messages.resize_with(index + 1, || None);
        }
        let value = &mut self.values[index];
        let mut replaced = if value.delivered { None } else { value.options.notify_tag() };
        if value.due {
            self.stats.dropped += 1;
        } else {
            if let Some(tag) = replaced.take() {
                self.replaced.insert(value.mark(key), tag);
            }
            self.due.push(key);
        }
        let version = value.version.wrapping_add(1);
        *value = Value { at, options, version, sent: value.sent, due: true, delivered: false };
        self.messages[index] = Some(message);
        Ok(replaced)
    }

    fn select(&mut self, filling: &mut Filling<'_>) {
        while let Some(&key) = self.due.front() {
            let value = &mut self.values[usize::from(key)];
            let Some(message) = &self.messages[usize::from(key)] else { break };
            let bits = filling.cost.message(message) + filling.cost.key;
            if !filling.has_room(bits) {
                break;
            }
            self.due.pop();
            self.stats.count_sent(message, value.sent == value.version);
            filling.push(bits, Prefix::Key(key), message.clone(), value.mark(key));
            value.sent = value.version;
            value.due = false;
        }
    }

    fn next_bits(&mut self, _: &SendContext, cost: Cost<'_>) -> Option<usize> {
        let key = *self.due.front()?;
        let message = self.messages[usize::from(key)].as_ref()?;
        Some(cost.entry + cost.key + cost.message(message))
    }

    fn next_deadline(&self, _: ResendTimer) -> Instant {
        if self.due.is_empty() { Instant::NEVER } else { Instant::ZERO }
    }

    fn is_idle(&self) -> bool {
        self.due.is_empty()
    }

    fn is_drained(&self) -> bool {
        // A version of 0 was never set.
        self.due.is_empty() && self.values.iter().all(|value| value.delivered || value.version == 0)
    }

    fn handle_ack(&mut self, now: Instant, mark: u64) -> Option<u32> {
        let Some(value) = self.find(mark) else { return self.replaced.remove(&mark) };
        if value.delivered {
            return None;
        }
        value.delivered = true;
        let (latency, notify) = (now - value.at, value.options.notify_tag());
        self.stats.count_delivered(latency);
        notify
    }

    fn handle_lost(&mut self, mark: u64) -> Option<u32> {
        // An older value: the newest is queued or in flight already.
        let Some(value) = self.find(mark) else { return self.replaced.remove(&mark) };
        if !value.delivered && !value.due {
            value.due = true;
            self.due.push((mark >> 32) as u16);
        }
        None
    }

    fn abandon_all(&mut self, lost: &mut dyn FnMut(u32)) {
        let replaced = core::mem::take(&mut self.replaced).into_values();
        self.due.drain().for_each(drop);
        let open = self.values.drain(..).filter(|value| !value.delivered);
        replaced.chain(open.filter_map(|value| value.options.notify_tag())).for_each(lost);
    }

    fn stats(&self) -> ChannelStats {
        ChannelStats { queued: self.due.len, ..self.stats }
    }
}

impl Receiving for Latest {
    fn handle(
        &mut self,
        prefix: Prefix,
        arrival: u64,
        message: Received,
    ) -> Result<Option<Received>, ChannelFault> {
        let Prefix::Key(key) = prefix else { return Err(ChannelFault::Window) };
        let newest = self.arrived.entry(key).or_insert(arrival);
        if arrival < *newest {
            self.stats.duplicates += 1;
            return Ok(Some(message));
        }
        *newest = arrival;
        self.stats.received += 1;
        self.memory += message.held_memory();
        let replaced = self.unread.insert(key, Received { key: key.into(), ..message });
        if let Some(replaced) = &replaced {
            self.memory -= replaced.held_memory();
            self.stats.dropped += 1;
        } else {
            self.ready.push_back(key);
        }
        Ok(replaced)
    }

    fn received_memory(&self) -> usize {
        self.memory
    }

    fn has_received(&self) -> bool {
        !self.ready.is_empty()
    }

    fn poll_received(&mut self) -> Option<Received> {
        let Some(key) = self.ready.pop_front() else {
            debug_assert_eq!(self.memory, 0);
            self.ready.shrink_to(KEPT_PLACES);
            self.unread.shrink_to(KEPT_PLACES);
            return None;
        };
        let value = self.unread.remove(&key)?;
        self.memory -= value.held_memory();
        Some(value)
    }
}

impl Latest {
    /// Forgets the scores of values, which hold for a tick.
    pub(crate) fn end_of_tick(&mut self) {
        self.due.forget_scores();
    }

    /// How many unordered messages are queued.
    pub(crate) fn candidates(&self) -> usize {
        self.due.len
    }

    /// Appends the wanted attribute of each of them, in queue order.
    pub(crate) fn describe(&self, wanted: &ColumnRequest, column: &mut Column) {
        let candidate = |key: &u16| {
            let value = &self.values[usize::from(*key)];
            let message = self.messages[usize::from(*key)].as_ref();
            let resends = u32::from(value.sent == value.version);
            Candidate { at: value.at, options: value.options, resends, message }
        };
        column.extend(wanted, self.due.iter().map(candidate));
    }

    /// Sends them in the order of these scores, highest first, until the end of the tick: one for each of
    /// [`Latest::candidates`], taken off the front.
    pub(crate) fn prioritize(&mut self, scores: &mut &[f32]) {
        self.due.prioritize(scores);
    }
}
