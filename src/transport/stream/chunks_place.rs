//! The place of the channel of chunks among the channels of messages. It has no messages: chunks go their own
//! way, through [`Chunks`](crate::transport::chunks).

use super::{
    Channel, ChannelStats, Fate, Moment, Prefix, ResendTimer, Selected, SendError, Submission,
    WindowViolation,
};
use crate::time::Instant;
use crate::transport::message::Received;
use crate::transport::protocol::Cost;

#[derive(Debug)]
pub(super) struct ChunksPlace;

impl Channel for ChunksPlace {
    fn send(&mut self, _: Submission) -> Result<Fate, SendError> {
        Err(SendError::WrongKind)
    }

    fn select(&mut self, _: &Moment, _: Cost<'_>, _: usize, _: &mut Vec<Selected>) -> usize {
        0
    }

    fn next_bits(&mut self, _: &Moment, _: Cost<'_>) -> Option<usize> {
        None
    }

    fn next_deadline(&self, _: ResendTimer) -> Instant {
        Instant::NEVER
    }

    fn rests(&self) -> bool {
        true
    }

    fn handle_ack(&mut self, _: Instant, _: u64) -> Fate {
        Fate::Open
    }

    fn handle_lost(&mut self, _: u64) -> Fate {
        Fate::Open
    }

    fn handle(&mut self, _: Prefix, _: u64, _: Received) -> Result<Option<Received>, WindowViolation> {
        Err(WindowViolation)
    }

    fn received_memory(&self) -> usize {
        0
    }

    fn has_received(&self) -> bool {
        false
    }

    fn poll_received(&mut self) -> Option<Received> {
        None
    }

    fn stats(&self) -> ChannelStats {
        ChannelStats::default()
    }
}
