//! Latest state: of each key only the newest value is ever sent or sent again ("most recent state" of the
//! Tribes model).
//!
//! Promises: a value set stays due until the peer is known to have it or a newer one is set; on loss the newest is
//! sent, and only if nothing newer is in flight; a stale value never overwrites a newer one at the receiver. Keys
//! due are served in the order they became due, so each one's age is bounded by how many there are.
//!
//! Keys are below their number when they come here. The highest one has places made for all below it.

use core::time::Duration;
use std::collections::VecDeque;

use super::waiting::Waiting;
use super::{Channel, ChannelStats, Fate, Moment, Prefix, Selected, SendError, Submission, WindowViolation};
use crate::time::Instant;
use crate::transport::candidates::{Column, Wanted};
use crate::transport::framing::Cost;
use crate::transport::message::Received;

#[derive(Debug)]
pub(super) struct Latest {
    keys: usize,
    /// By key, as far as keys were used.
    values: Vec<Value>,
    /// Keys whose newest value is due, longest waiting first.
    due: Waiting<u16>,
    /// By key: the newest packet that brought a value, and that value until it is taken.
    arrived: Vec<Option<Arrived>>,
    /// Keys with a value to take, in the order they came.
    ready: VecDeque<u16>,
    stats: ChannelStats,
}

#[derive(Debug, Default)]
struct Value {
    newest: Option<Submission>,
    /// Counts the values set; 0 before the first.
    version: u32,
    /// The newest version that went out; equal to `version` when nothing newer waits.
    sent: u32,
    /// Whether the key is in the queue.
    due: bool,
    delivered: bool,
}

#[derive(Debug)]
struct Arrived {
    arrival: u64,
    value: Option<Received>,
}

impl Latest {
    pub(super) fn new(keys: usize) -> Self {
        Latest {
            keys,
            values: Vec::new(),
            due: Waiting::new(),
            arrived: Vec::new(),
            ready: VecDeque::new(),
            stats: ChannelStats::default(),
        }
    }

    /// The key and version of a mark.
    fn find(&mut self, mark: u64) -> Option<(&mut Value, u32)> {
        let (key, version) = ((mark >> 32) as usize, mark as u32);
        self.values.get_mut(key).map(|value| (value, version))
    }
}

impl Channel for Latest {
    fn send(&mut self, submission: Submission) -> Result<(), SendError> {
        let (key, keys) = (submission.options.key, self.keys);
        let index = key as usize;
        if index >= keys {
            return Err(SendError::NoKey { key, keys });
        }
        if self.values.len() <= index {
            self.values.resize_with(index + 1, Value::default);
        }
        let value = &mut self.values[index];
        if value.due {
            self.stats.dropped += 1;
        }
        value.newest = Some(submission);
        value.version = value.version.wrapping_add(1);
        value.delivered = false;
        if !value.due {
            value.due = true;
            // Below 65,536: the configuration's bound.
            self.due.push(key as u16);
        }
        Ok(())
    }

    fn select(
        &mut self,
        _: &Moment,
        cost: &Cost<'_>,
        bits_left: usize,
        selected: &mut Vec<Selected>,
    ) -> usize {
        let before = selected.len();
        let mut used = cost.entry;
        while let Some(&key) = self.due.front() {
            let value = &mut self.values[usize::from(key)];
            let Some(Submission { message, .. }) = &value.newest else { break };
            let bits = cost.message(message) + cost.key;
            if used + bits > bits_left {
                break;
            }
            used += bits;
            self.due.pop();
            self.stats.count_sent(message, value.sent == value.version);
            let mark = u64::from(key) << 32 | u64::from(value.version);
            selected.push(Selected { prefix: Prefix::Key(key), message: message.clone(), mark });
            value.sent = value.version;
            value.due = false;
        }
        if selected.len() == before { 0 } else { used }
    }

    fn next_bits(&mut self, _: &Moment, cost: &Cost<'_>) -> Option<usize> {
        let key = *self.due.front()?;
        let Submission { message, .. } = self.values[usize::from(key)].newest.as_ref()?;
        Some(cost.entry + cost.key + cost.message(message))
    }

    fn next_deadline(&self, _: Duration) -> Instant {
        if self.due.is_empty() { Instant::NEVER } else { Instant::ZERO }
    }

    fn handle_ack(&mut self, now: Instant, mark: u64) -> Fate {
        let Some((value, version)) = self.find(mark) else { return Fate::Open };
        if version != value.version || value.delivered {
            return Fate::Open;
        }
        value.delivered = true;
        let Some(submission) = &value.newest else { return Fate::Open };
        let (latency, fate) = (now - submission.at, submission.fate());
        self.stats.count_delivered(latency);
        fate
    }

    fn handle_lost(&mut self, mark: u64) -> Fate {
        let Some((value, version)) = self.find(mark) else { return Fate::Open };
        // An older version was lost: the newest one waits or is in flight already.
        if version != value.version || value.delivered || value.due {
            return Fate::Open;
        }
        value.due = true;
        self.due.push((mark >> 32) as u16);
        Fate::Open
    }

    fn end_of_tick(&mut self, _: &mut dyn FnMut(Fate)) {
        self.due.forget_scores();
    }

    fn candidates(&self) -> usize {
        self.due.len()
    }

    fn describe(&self, wanted: &Wanted, column: &mut Column) {
        let due = self.due.iter().map(|key| &self.values[usize::from(*key)]);
        column.extend(
            wanted,
            due.filter_map(|value| Some((value.newest.as_ref()?, u32::from(value.sent == value.version)))),
        );
    }

    fn prioritize(&mut self, scores: &mut &[f32]) {
        self.due.prioritize(scores);
    }

    fn handle(&mut self, prefix: Prefix, arrival: u64, message: Received) -> Result<(), WindowViolation> {
        let Prefix::Key(key) = prefix else { return Err(WindowViolation) };
        let index = usize::from(key);
        if self.arrived.len() <= index {
            self.arrived.resize_with(index + 1, || None);
        }
        let slot = &mut self.arrived[index];
        if slot.as_ref().is_some_and(|newest| arrival < newest.arrival) {
            self.stats.duplicates += 1;
            return Ok(());
        }
        let unread = slot.as_ref().is_some_and(|newest| newest.value.is_some());
        let message = Received { key: key.into(), ..message };
        *slot = Some(Arrived { arrival, value: Some(message) });
        self.stats.received += 1;
        if unread {
            self.stats.dropped += 1;
        } else {
            self.ready.push_back(key);
        }
        Ok(())
    }

    fn poll_received(&mut self) -> Option<Received> {
        let key = self.ready.pop_front()?;
        self.arrived[usize::from(key)].as_mut()?.value.take()
    }

    fn stats(&self) -> ChannelStats {
        ChannelStats { queued: self.due.len(), ..self.stats }
    }
}
