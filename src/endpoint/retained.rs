//! The newest values of latest channels, kept for newcomers.

use std::collections::BTreeMap;

use super::error::RoomError;
use crate::transport::{Message, SendOptions};

/// The kept values of one channel.
#[derive(Debug, Default)]
struct ChannelValues {
    values: BTreeMap<u32, (Message, SendOptions)>,
    bytes: usize,
}

/// The kept values of all channels.
#[derive(Debug, Default)]
pub(super) struct Retained(BTreeMap<usize, ChannelValues>);

fn size(message: &Message) -> usize {
    message.encoded.max_bits().div_ceil(8)
}

impl Retained {
    /// Keeps the newest message of each key, at most `max_bytes` of them.
    ///
    /// # Errors
    /// There is no room for the values. Then nothing is kept.
    pub(super) fn put(
        &mut self,
        channel: usize,
        messages: &[(Message, SendOptions)],
        max_bytes: usize,
    ) -> Result<(), RoomError> {
        let mut newest = BTreeMap::new();
        for (message, options) in messages {
            // Nobody asked for notifications from newcomers.
            newest.insert(options.key, (message.clone(), SendOptions { notify: false, ..*options }));
        }
        let kept = self.0.entry(channel).or_default();
        let added: usize = newest.values().map(|(message, _)| size(message)).sum();
        let replaced = newest.keys().filter_map(|key| kept.values.get(key));
        let (replaced, known) =
            replaced.fold((0, 0), |(bytes, known), (old, _)| (bytes + size(old), known + 1));
        let bytes = kept.bytes + added - replaced;
        if bytes > max_bytes {
            let values = kept.values.len() + newest.len() - known;
            return Err(RoomError::Full { bytes, values, max_bytes });
        }
        kept.bytes = bytes;
        kept.values.extend(newest);
        Ok(())
    }

    /// Drops the value of a key, or of all keys; returns how many.
    pub(super) fn forget(&mut self, channel: usize, key: Option<u32>) -> usize {
        let Some(kept) = self.0.get_mut(&channel) else { return 0 };
        match key {
            Some(key) => {
                let old = kept.values.remove(&key);
                kept.bytes -= old.as_ref().map_or(0, |(message, _)| size(message));
                usize::from(old.is_some())
            }
            None => self.0.remove(&channel).map_or(0, |kept| kept.values.len()),
        }
    }

    /// Each value, with its channel.
    pub(super) fn values(&self) -> impl Iterator<Item = (usize, &(Message, SendOptions))> {
        self.0.iter().flat_map(|(channel, kept)| kept.values.values().map(|value| (*channel, value)))
    }
}
