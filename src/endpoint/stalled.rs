//! Which of a peer's channels have been full for how long.
//!
//! Promises: no memory while none is full; at most an entry a channel.

use crate::time::{Duration, Instant};
use crate::transport::{ChannelKind, Connection, Protocol};

/// How long a reliable channel to an accepted peer may stay full, if nothing is said.
pub const DEFAULT_STALLED_TIMEOUT: Duration = Duration::from_secs(5);

/// Channels that refused a message because they are full, and since when.
#[derive(Debug, Default)]
pub(super) struct FullChannels {
    since: Vec<(usize, Instant)>,
    /// The endpoint has it on its list of peers to look after.
    pub(super) is_listed: bool,
}

impl FullChannels {
    /// A channel has refused a message.
    pub(super) fn note_full(&mut self, now: Instant, channel: usize) {
        if self.since.iter().all(|(full, _)| *full != channel) {
            self.since.push((channel, now));
        }
    }

    /// A channel has taken a message.
    pub(super) fn note_taken(&mut self, channel: usize) {
        if !self.since.is_empty() {
            self.since.retain(|(full, _)| *full != channel);
        }
    }

    /// Forgets those that have room again, whether or not the application tried; says since when the first of the others
    /// has been full.
    pub(super) fn look(&mut self, connection: &Connection, protocol: &Protocol) -> Option<Instant> {
        let has_room = |channel: usize| {
            let config = &protocol.channels()[channel];
            connection.channel_stats(channel).queued < config.send_queue
        };
        self.since.retain(|(channel, _)| !has_room(*channel));
        self.oldest()
    }

    /// Since when the first of them has been full.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.since.iter().map(|(_, since)| *since).min()
    }
}

/// Whether being full for long says something of the peer: others are the application's doing.
pub(super) fn counts(protocol: &Protocol, channel: usize) -> bool {
    let config = protocol.channels().get(channel);
    config.is_some_and(|config| matches!(config.kind, ChannelKind::Reliable { .. }))
}
