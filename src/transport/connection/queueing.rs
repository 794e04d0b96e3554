//! Messages that the application queues for the next packets, and in which order they go.

use super::Connection;
use crate::time::Instant;
use crate::transport::candidates::{Attribute, Column};
use crate::transport::error::SendError;
use crate::transport::ledger::Notification;
use crate::transport::message::{Message, SendOptions, Submission};
use crate::wire::Encoded;

impl Connection {
    /// Queues a message for the next packets.
    ///
    /// # Errors
    ///
    /// Why the channel refuses it. Nothing was queued then.
    pub fn send(
        &mut self,
        now: Instant,
        channel: usize,
        message: Message,
        options: SendOptions,
    ) -> Result<(), SendError> {
        self.parts.protocol.check(channel, &message, options.key)?;
        self.submit(now, channel, message, options)
    }

    /// Queues opaque bits on a payload channel. Their notification has this `tag`.
    ///
    /// # Errors
    ///
    /// Why the channel refuses them. Nothing was queued then.
    pub fn send_payload(
        &mut self,
        now: Instant,
        channel: usize,
        payload: Encoded,
        tag: u32,
    ) -> Result<(), SendError> {
        self.parts.protocol.check_payload(channel, payload.max_bits())?;
        let message = Message::new(0, payload);
        self.submit(now, channel, message, SendOptions { key: 0, tag, notify: true })
    }

    fn submit(
        &mut self,
        now: Instant,
        channel: usize,
        message: Message,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let sending = self.parts.streams.sending(channel).ok_or(SendError::WrongKind)?;
        let replaced = sending.send(Submission { message, at: now, options })?;
        self.parts.outbound.open_tick(now);
        if let Some(tag) = replaced {
            let replaced = Notification { channel: channel as u8, tag, delivered: false };
            self.parts.ledger.notifications.push(replaced);
        }
        Ok(())
    }

    /// A feature above has data for a payload channel, if a packet has room for at least this many bits:
    /// [`Connection::transmit_filled`] asks it until it has no more. [`Connection::poll_notification`] reports each
    /// record, with the record as the tag.
    ///
    /// # Errors
    ///
    /// When it is no payload channel, or `least_bits` is more than the channel allows, or than half a datagram holds:
    /// the rest of a packet may take the other half.
    pub fn want(&mut self, channel: usize, least_bits: usize) -> Result<(), SendError> {
        let channels = self.parts.streams.len();
        let config =
            self.parts.protocol.channels().get(channel).ok_or(SendError::NoChannel { channel, channels })?;
        if !config.kind.is_payload() {
            return Err(SendError::WrongKind);
        }
        let max_bits =
            self.parts.protocol.cost(channel).payload_in(self.parts.outbound.datagram_bits / 2).unwrap_or(0);
        if least_bits > max_bits {
            let (bytes, max_bytes) = (least_bits.div_ceil(8), max_bits / 8);
            return Err(SendError::TooLarge { bytes, max_bytes });
        }
        if self.parts.streams.want(channel, least_bits) { Ok(()) } else { Err(SendError::WrongKind) }
    }

    /// How many unordered messages are queued.
    pub(crate) fn candidates(&self) -> usize {
        self.parts.streams.candidates()
    }

    /// Appends this attribute of each of them, channel by channel, to be scored.
    pub(crate) fn describe(&self, now: Instant, slot: u32, attribute: Attribute, column: &mut Column) {
        self.parts.streams.describe(now, slot, attribute, column);
    }

    /// Sends those messages in the order of their scores, highest first within their channel, in the next
    /// [`Connection::transmit`]. Scores are in the order of [`Connection::describe`]; nothing may be sent in between.
    pub(crate) fn prioritize(&mut self, scores: &mut &[f32]) {
        self.parts.streams.prioritize(scores);
    }
}
