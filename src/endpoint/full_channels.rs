//! A peer's full channels, and whether their messages get through.
//!
//! A peer is judged by deliveries, in whatever order: over a very lossy line a channel may be full all the time
//! although everything arrives. Two times are measured from the first refused message: how long nothing was
//! delivered, and how long it takes to deliver as many messages as were queued at the beginning. The first shows that
//! the peer is stuck; the second that it holds the application's memory by taking a message now and then. If one
//! message is lost again and again while all others are through, any acked packet counts for the first: the peer is
//! there, and its line is bad.
//!
//! Promises: no memory while no channel is full; at most an entry per channel.

use crate::time::{Duration, Instant};
use crate::transport::{ChannelKind, Connection, Protocol};

/// By default, how long a reliable channel to an accepted peer may stay full without a delivery.
pub const DEFAULT_STALLED_TIMEOUT: Duration = Duration::from_secs(5);

/// How many of these times the queue of a channel that is full again and again may take: 1,024 messages in a minute
/// are slow, and fewer are no game.
pub const MAX_STALLED_TIMES: u32 = 12;

/// Channels that refused a message because they are full.
#[derive(Debug, Default)]
pub(super) struct FullChannels {
    channels: Vec<FullChannel>,
    /// The endpoint has it on its list of stalled peers.
    pub(super) is_listed: bool,
}

#[derive(Debug)]
struct FullChannel {
    channel: usize,
    refused_at: Instant,
    is_full: bool,
    /// Messages delivered and packets acked at the last check, and since when nothing progressed.
    delivered: u64,
    acked: u64,
    moved_at: Instant,
    /// The messages queued at some moment are through once this many are delivered.
    goal: u64,
    goal_set_at: Instant,
}

impl FullChannel {
    fn new(now: Instant, channel: usize, connection: &Connection) -> Self {
        let stats = connection.channel_stats(channel);
        FullChannel {
            channel,
            refused_at: now,
            is_full: true,
            delivered: stats.delivered,
            acked: connection.counters().acked,
            moved_at: now,
            goal: stats.delivered + stats.queued as u64,
            goal_set_at: now,
        }
    }

    /// Checks what was delivered; false if the channel has had room for long enough to count as free.
    fn look(
        &mut self,
        now: Instant,
        timeout: Duration,
        connection: &Connection,
        protocol: &Protocol,
    ) -> bool {
        let stats = connection.channel_stats(self.channel);
        let acked = connection.counters().acked;
        let is_resending = stats.sent > stats.delivered && acked != self.acked;
        if stats.delivered != self.delivered || is_resending {
            (self.delivered, self.acked, self.moved_at) = (stats.delivered, acked, now);
        }
        if stats.delivered >= self.goal {
            (self.goal, self.goal_set_at) = (stats.delivered + stats.queued as u64, now);
        }
        self.is_full = stats.queued >= protocol.channels()[self.channel].send_queue;
        self.is_full || now < self.refused_at + timeout
    }

    fn deadline(&self, timeout: Duration) -> Instant {
        let stuck = if self.is_full { self.moved_at + timeout } else { Instant::NEVER };
        stuck.min(self.goal_set_at + timeout * MAX_STALLED_TIMES)
    }
}

impl FullChannels {
    /// A channel refused a message.
    pub(super) fn note_full(&mut self, now: Instant, channel: usize, connection: &Connection) {
        match self.channels.iter_mut().find(|full| full.channel == channel) {
            Some(full) => (full.refused_at, full.is_full) = (now, true),
            None => self.channels.push(FullChannel::new(now, channel, connection)),
        }
    }

    /// Checks all of them, and drops those that have had room for a while; true while others are left.
    pub(super) fn look(
        &mut self,
        now: Instant,
        timeout: Duration,
        connection: &Connection,
        protocol: &Protocol,
    ) -> bool {
        self.channels.retain_mut(|full| full.look(now, timeout, connection, protocol));
        !self.channels.is_empty()
    }

    /// Drops them all; returns false because none is left.
    pub(super) fn forget(&mut self) -> bool {
        self.channels.clear();
        false
    }

    /// When the peer will be dropped if nothing changes.
    pub(super) fn deadline(&self, timeout: Duration) -> Instant {
        self.channels.iter().map(|full| full.deadline(timeout)).min().unwrap_or(Instant::NEVER)
    }
}

/// Whether a channel that stays full is the peer's fault: others are the application's.
pub(super) fn counts(protocol: &Protocol, channel: usize) -> bool {
    let config = protocol.channels().get(channel);
    config.is_some_and(|config| matches!(config.kind, ChannelKind::Reliable { .. }))
}
