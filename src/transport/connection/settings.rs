//! What may change while a connection lives: its budget, its congestion control, and when acks wait.

use core::time::Duration;

use super::Connection;
use crate::time::Instant;
use crate::transport::congestion::CongestionConfig;
use crate::transport::error::ConfigError;
use crate::transport::pacing::BudgetConfig;

impl Connection {
    /// Acks of packets with only messages of this channel may wait this long for a packet to carry them: for features
    /// with acks of their own that send something that often. Zero: no ack waits.
    pub fn set_ack_patience(&mut self, channel: u8, patience: Duration) {
        self.parts.ledger.pending_ack.set_patience(channel, patience);
    }

    /// Whether [`Connection::transmit_between`] is called between ticks, too. Then acks that no message of a tick
    /// carries wait for a message that does, or until they are due between ticks.
    pub fn set_awake(&mut self, awake: bool) {
        self.parts.ledger.pending_ack.set_awake(awake);
    }

    /// How many bits of messages may go out now, before packet headers: the rest of the budget, and the line's known
    /// room. The last packet may overdraw.
    pub fn budget_bits(&mut self, now: Instant) -> usize {
        self.parts.outbound.message_bits(now)
    }

    /// How much may be sent.
    pub fn budget(&self) -> BudgetConfig {
        self.parts.outbound.budget()
    }

    /// Changes how much may be sent, from now on.
    ///
    /// # Errors
    /// When a number is out of its bounds. The old ones stay then.
    pub fn set_budget(&mut self, budget: BudgetConfig) -> Result<(), ConfigError> {
        self.parts.outbound.set_budget(budget)
    }

    /// Changes the congestion control of chunks. Settings of the same kind keep what is known of the link. Another
    /// kind starts afresh, and ignores packets in flight.
    ///
    /// # Errors
    /// When a number is out of its bounds. The old settings stay then.
    pub fn set_congestion(&mut self, congestion: CongestionConfig) -> Result<(), ConfigError> {
        let is_new = self.parts.outbound.set_congestion(&congestion, &self.parts.protocol)?;
        let acks = self.parts.ledger.endpoint.acks_mut();
        let sent = if is_new { acks.sent_window() } else { 0 };
        let next = acks.next_sequence();
        for back in 1..=sent {
            if let Some(record) = acks.note_mut(next.wrapping_sub(back as u64)) {
                record.stamp = None;
            }
        }
        Ok(())
    }
}
