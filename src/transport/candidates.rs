//! Messages waiting to be sent whose order is free, as columns: what a priority hook is given once a tick, for all
//! clients at once.

use core::fmt;

use super::channel::Submission;
use crate::time::Instant;

/// Equal-length columns, one entry a message. Of unreliable, payload and latest channels; others keep their order.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// The client slot it is for.
    pub slot: Vec<u32>,
    /// The channel's index.
    pub channel: Vec<u8>,
    /// Index into the protocol's message types; 0 on payload channels.
    pub message_type: Vec<u16>,
    /// Seconds since it was handed over.
    pub age: Vec<f32>,
    /// Bytes of its body.
    pub size: Vec<u32>,
    /// Its key, on latest channels; 0 on others.
    pub key: Vec<u32>,
    /// How often this value was sent before.
    pub resends: Vec<u32>,
    /// The application's own name for it.
    pub tag: Vec<u32>,
}

impl Candidates {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.slot.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slot.is_empty()
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        let Candidates { slot, channel, message_type, age, size, key, resends, tag } = self;
        slot.clear();
        channel.clear();
        message_type.clear();
        age.clear();
        size.clear();
        key.clear();
        resends.clear();
        tag.clear();
    }

    /// Adds a message; [`Candidates::belong_to`] must follow.
    pub(super) fn push(&mut self, now: Instant, submission: &Submission, resends: u32) {
        let nanos = now.as_nanos().saturating_sub(submission.at.as_nanos());
        self.message_type.push(submission.message.message_type);
        self.age.push(nanos as f32 / 1e9);
        self.size.push(submission.message.encoded.bytes().len() as u32);
        self.key.push(submission.options.key);
        self.resends.push(resends);
        self.tag.push(submission.options.tag);
    }

    /// Says whose the messages are that were added since the last time.
    pub(super) fn belong_to(&mut self, slot: u32, channel: u8) {
        self.slot.resize(self.key.len(), slot);
        self.channel.resize(self.key.len(), channel);
    }

    /// Whether these are scores for these candidates.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self, scores: &[f32]) -> Result<(), ScoreError> {
        if scores.len() != self.len() {
            return Err(ScoreError::Length { scores: scores.len(), candidates: self.len() });
        }
        scores
            .iter()
            .position(|score| score.is_nan())
            .map_or(Ok(()), |index| Err(ScoreError::NotANumber { index }))
    }
}

/// Why scores are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreError {
    /// Not as many as there are candidates.
    Length {
        /// The scores.
        scores: usize,
        /// The candidates.
        candidates: usize,
    },
    /// A score is NaN.
    NotANumber {
        /// Which.
        index: usize,
    },
}

impl fmt::Display for ScoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScoreError::Length { scores, candidates } => {
                write!(f, "there are {scores} scores for {candidates} candidates")
            }
            ScoreError::NotANumber { index } => write!(f, "score {index} is not a number"),
        }
    }
}

impl core::error::Error for ScoreError {}
