//! Which of a peer's channels are full, and whether what waits there gets through.
//!
//! A peer is judged by what is delivered, in whatever order: over a line that loses most of it a channel may be full all the
//! time, and yet everything comes. Two times are taken from the first message that is refused: since when nothing was
//! delivered, and since when not as many as waited at its beginning. The first says that the peer is stuck; the second that
//! it lets the application's memory be taken for long by taking a message now and then. Where a message is lost again and
//! again and all others are through, acks of whatever packets count for the first: the peer is there, and its line is bad.
//!
//! Promises: no memory while none is full; at most an entry a channel.

use crate::time::{Duration, Instant};
use crate::transport::{ChannelKind, Connection, Protocol};

/// How long a reliable channel to an accepted peer may stay full with nothing delivered, if nothing is said.
pub const DEFAULT_STALLED_TIMEOUT: Duration = Duration::from_secs(5);

/// How many of these times what waits in a channel that is full again and again may take: a queue of 1,024 messages through
/// in a minute is slow, and more is no game.
pub const MAX_STALLED_TIMES: u32 = 12;

/// Channels that refused a message because they are full.
#[derive(Debug, Default)]
pub(super) struct FullChannels {
    channels: Vec<FullChannel>,
    /// The endpoint has it on its list of peers to look after.
    pub(super) is_listed: bool,
}

#[derive(Debug)]
struct FullChannel {
    channel: usize,
    refused_at: Instant,
    is_full: bool,
    /// Messages delivered and packets acked, when we last looked, and since when nothing of it got on.
    delivered: u64,
    acked: u64,
    moved_at: Instant,
    /// What waited at some moment is through when this many are delivered.
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

    /// Looks what was delivered; false when the channel has had room for so long that it counts as full no more.
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
    /// A channel has refused a message.
    pub(super) fn note_full(&mut self, now: Instant, channel: usize, connection: &Connection) {
        match self.channels.iter_mut().find(|full| full.channel == channel) {
            Some(full) => (full.refused_at, full.is_full) = (now, true),
            None => self.channels.push(FullChannel::new(now, channel, connection)),
        }
    }

    /// Looks how they are doing, and forgets those that have had room for a while; true while there are others.
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

    /// Forgets them all; false, as there are none then.
    pub(super) fn forget(&mut self) -> bool {
        self.channels.clear();
        false
    }

    /// When the peer is to be dropped if nothing changes.
    pub(super) fn deadline(&self, timeout: Duration) -> Instant {
        self.channels.iter().map(|full| full.deadline(timeout)).min().unwrap_or(Instant::NEVER)
    }
}

/// Whether being full for long says something of the peer: others are the application's doing.
pub(super) fn counts(protocol: &Protocol, channel: usize) -> bool {
    let config = protocol.channels().get(channel);
    config.is_some_and(|config| matches!(config.kind, ChannelKind::Reliable { .. }))
}
