//! The newest values of latest channels, kept for newcomers.
//!
//! Promises: a newcomer is sent every value that was sent to everybody, or to everybody in its room, and
//! never one older than a value it was sent. Refuses values beyond the channel's bound before any of them is
//! sent.

use std::collections::BTreeMap;

use crate::python::prelude::*;

use crate::python::arrays::check_message;
use crate::python::errors::{MessageTooLargeError, channel_error};
use crate::transport::{Message, SendOptions};

/// The kept values of one channel.
#[derive(Debug, Default)]
struct Kept {
    values: BTreeMap<u32, (Message, SendOptions)>,
    bytes: usize,
}

/// The kept values of all channels.
#[derive(Debug, Default)]
pub(super) struct Retained(BTreeMap<usize, Kept>);

fn size(message: &Message) -> usize {
    message.encoded.max_bits().div_ceil(8)
}

impl Retained {
    /// Keeps the newest message of each key, if the channel retains.
    ///
    /// # Errors
    /// The values take more bytes than the channel may keep, or the channel refuses them. Then nothing is
    /// kept.
    pub(super) fn put(
        &mut self,
        protocol: &Protocol,
        channel: usize,
        messages: &[(Message, SendOptions)],
    ) -> PyResult<()> {
        let Some(most) = protocol.retains(channel) else { return Ok(()) };
        let mut newest = BTreeMap::new();
        for (message, options) in messages {
            check_message(protocol, channel, message, *options).map_err(|error| {
                channel_error(protocol.class_of(message.message_type).name(), channel, &error)
            })?;
            // Nobody asked for notifications from newcomers.
            newest.insert(options.key, (message.clone(), SendOptions { notify: false, ..*options }));
        }
        let kept = self.0.entry(channel).or_default();
        let added: usize = newest.values().map(|(message, _)| size(message)).sum();
        let replaced: usize =
            newest.keys().filter_map(|key| kept.values.get(key)).map(|(old, _)| size(old)).sum();
        let bytes = kept.bytes + added - replaced;
        if bytes > most {
            return Err(MessageTooLargeError::new_err(format!(
                "retain_bytes of channel {channel} must be at least {bytes} to keep {} values, not {most}: \
                 raise it, or forget() keys that aren't needed any more",
                kept.values.len() + newest.keys().filter(|key| !kept.values.contains_key(key)).count()
            )));
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

    /// What a newcomer is sent, by channel and key.
    pub(super) fn values(&self) -> impl Iterator<Item = (usize, &Message, SendOptions)> {
        let of = |(channel, kept)| {
            let (channel, kept): (&usize, &Kept) = (channel, kept);
            kept.values.values().map(|(message, options)| (*channel, message, *options))
        };
        self.0.iter().flat_map(of)
    }
}
