//! Queued messages whose order is free, and their attributes as columns: the arguments of a priority hook, once a
//! tick, for all clients at once. Messages of unreliable, payload and latest channels are candidates; others keep
//! their order.
//!
//! A column is built on request: most hooks use two or three, and each costs a walk over all messages.

use core::fmt;

use super::message::{Message, SendOptions, Submission};
use crate::time::Instant;

/// An attribute of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// The client slot it is for.
    Slot,
    Channel,
    /// Index into the protocol's message types; 0 on payload channels.
    MessageType,
    /// Seconds since it was handed over.
    Age,
    /// Bytes of its body.
    Size,
    /// Its key, on latest channels; 0 on others.
    Key,
    /// How often this value was sent before.
    Resends,
    /// The application's own name for it.
    Tag,
}

/// One attribute of all candidates, an entry each.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    // Of channels.
    U8(Vec<u8>),
    // Of message types.
    U16(Vec<u16>),
    /// Of slots, sizes, keys, resends and tags.
    U32(Vec<u32>),
    // Of ages.
    F32(Vec<f32>),
}

/// The attributes wanted of one channel's messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnRequest {
    pub(crate) attribute: Attribute,
    pub(crate) now: Instant,
    pub(crate) slot: u32,
    pub(crate) channel: u8,
}

/// A queued message, with the attributes that a hook may want.
pub(crate) struct Candidate<'a> {
    pub(crate) at: Instant,
    pub(crate) options: SendOptions,
    /// How often this value was sent before.
    pub(crate) resends: u32,
    pub(crate) message: Option<&'a Message>,
}

impl<'a> Candidate<'a> {
    /// A message that was never sent.
    pub(crate) fn of(submission: &'a Submission) -> Self {
        let Submission { message, at, options } = submission;
        Candidate { at: *at, options: *options, resends: 0, message: Some(message) }
    }
}

impl Column {
    /// An empty column for an attribute.
    pub(crate) fn new(attribute: Attribute, capacity: usize) -> Self {
        match attribute {
            Attribute::Channel => Column::U8(Vec::with_capacity(capacity)),
            Attribute::MessageType => Column::U16(Vec::with_capacity(capacity)),
            Attribute::Age => Column::F32(Vec::with_capacity(capacity)),
            _ => Column::U32(Vec::with_capacity(capacity)),
        }
    }

    /// Appends the wanted attribute of these messages.
    pub(super) fn extend<'a>(
        &mut self,
        wanted: &ColumnRequest,
        messages: impl Iterator<Item = Candidate<'a>>,
    ) {
        let &ColumnRequest { attribute, now, slot, channel } = wanted;
        let size = |message: &Message| message.encoded.bytes().len() as u32;
        match (self, attribute) {
            (Column::U8(column), _) => column.extend(messages.map(|_| channel)),
            (Column::U16(column), _) => {
                column.extend(messages.map(|m| m.message.map_or(0, |message| message.message_type)));
            }
            (Column::F32(column), _) => column.extend(messages.map(|m| (now - m.at).as_secs_f32())),
            (Column::U32(column), Attribute::Slot) => column.extend(messages.map(|_| slot)),
            (Column::U32(column), Attribute::Size) => {
                column.extend(messages.map(|m| m.message.map_or(0, size)));
            }
            (Column::U32(column), Attribute::Key) => column.extend(messages.map(|m| m.options.key)),
            (Column::U32(column), Attribute::Resends) => column.extend(messages.map(|m| m.resends)),
            (Column::U32(column), _) => column.extend(messages.map(|m| m.options.tag)),
        }
    }
}

/// Checks that these are scores for this many candidates.
///
/// # Errors
///
/// What is wrong with them.
pub(crate) fn check(scores: &[f32], candidates: usize) -> Result<(), ScoreError> {
    if scores.len() != candidates {
        return Err(ScoreError::Length { scores: scores.len(), candidates });
    }
    // Checking all is faster than stopping at the first.
    if !scores.iter().fold(false, |nan, score| nan | score.is_nan()) {
        return Ok(());
    }
    let index = scores.iter().position(|score| score.is_nan()).unwrap_or_default();
    Err(ScoreError::NotANumber { index })
}

/// Why scores are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreError {
    /// Their number is not that of the candidates.
    Length { scores: usize, candidates: usize },
    /// A score is NaN.
    NotANumber { index: usize },
}

impl fmt::Display for ScoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScoreError::Length { scores, candidates } => {
                write!(f, "must return {candidates} scores, one for each candidate, not {scores}")
            }
            ScoreError::NotANumber { index } => {
                write!(f, "must return numbers as scores, and score {index} is NaN")
            }
        }
    }
}

impl core::error::Error for ScoreError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::store::Packets;
    use crate::transport::{
        Body, BudgetConfig, ChannelConfig, ChannelKind, Connection, ConnectionConfig, Message, MessageType,
        Protocol, SendOptions,
    };
    use crate::wire::{BitSink, BitWriter};

    const CHANNELS: usize = 3;
    const ORDERED: usize = 2;

    fn connection(burst_bytes: f64) -> Connection {
        let blob = MessageType { name: "Blob".into(), body: Body::Opaque { max_bytes: 3_000 } };
        let latest = ChannelConfig::new(ChannelKind::Latest { keys: 512 });
        let unreliable = ChannelConfig { max_message_bytes: 3_000, ..ChannelConfig::unreliable() };
        let channels = vec![unreliable, latest, ChannelConfig::reliable_ordered()];
        let budget = BudgetConfig::new(burst_bytes * 60.0, burst_bytes);
        let config = ConnectionConfig { budget, ..Default::default() };
        Connection::new(&config, Protocol::new(vec![blob], channels).unwrap().into()).unwrap()
    }

    fn send(connection: &mut Connection, channel: usize, bytes: usize, key: u32) {
        let mut writer = BitWriter::new();
        (0..bytes).for_each(|i| writer.bits((i as u64 ^ u64::from(key)) & 0xFF, 8));
        let message = Message::new(0, writer.encoded());
        connection.send(Instant::ZERO, channel, message, SendOptions { key, ..Default::default() }).unwrap();
    }

    /// The bytes of a tick. Messages are either scored, or sent in the order of their scores.
    fn transmitted(seed: u64, burst_bytes: f64, scored: bool) -> Vec<u8> {
        let (mut connection, mut rng) = (connection(burst_bytes), Rng::seeded(seed));
        let mut scores = Vec::new();
        for channel in 0..CHANNELS {
            let mut messages: Vec<_> = (0..400)
                .map(|key| {
                    let large = if rng.below(50) == 0 { 1_500 } else { 0 };
                    (rng.below(30) as f32 - 15.0, 1 + large + rng.below(60) as usize, key)
                })
                .collect();
            if channel != ORDERED {
                scores.extend(messages.iter().map(|(score, ..)| *score));
                if !scored {
                    messages.sort_by(|a, b| b.0.total_cmp(&a.0));
                }
            }
            messages.iter().for_each(|(_, bytes, key)| send(&mut connection, channel, *bytes, *key));
        }
        if scored {
            assert_eq!(connection.candidates(), scores.len());
            connection.prioritize(&mut &scores[..]);
        }
        let mut out = Packets::new();
        connection.transmit(Instant::ZERO, &mut out);
        out.iter().flat_map(|(_, packet)| packet.to_vec()).collect()
    }

    #[test]
    fn what_goes_out_is_what_sorting_everything_would_send() {
        for seed in 0..20 {
            for burst_bytes in [1.0, 3_000.0, 9_000.0, 1e6] {
                let scored = transmitted(seed, burst_bytes, true);
                assert!(scored == transmitted(seed, burst_bytes, false), "seed {seed}, {burst_bytes} bytes");
                assert!(scored != transmitted(seed + 100, burst_bytes, true), "the test can fail");
            }
        }
    }
}
