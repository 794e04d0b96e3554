//! What may change while a connection lives: its budget, its congestion control, and when acks wait.

use core::time::Duration;

use super::{Connection, controller};
use crate::time::Instant;
use crate::transport::congestion::CongestionConfig;
use crate::transport::error::ConfigError;
use crate::transport::pacing::BudgetConfig;

impl Connection {
    /// Acks of packets with messages of this channel only may wait so long for a packet to carry them: for features
    /// with acks of their own that say something that often. Zero: none waits.
    pub fn set_ack_patience(&mut self, channel: u8, patience: Duration) {
        self.pending_ack.set_patience(channel, patience);
    }

    /// Whether [`Connection::transmit_between`] is called between ticks, too: then acks that no message of a tick
    /// carries wait for one that does, or until they are due between ticks.
    pub fn set_awake(&mut self, awake: bool) {
        self.pending_ack.set_awake(awake);
    }

    /// How many bits of messages may go out now, before packet headers: the rest of the budget, and the line's known
    /// room. The last packet may overdraw.
    pub fn budget_bits(&mut self, now: Instant) -> usize {
        self.budget.refill(now);
        let line = if self.adaptive { self.window.room() } else { f64::INFINITY };
        (self.budget.level().min(line).max(0.0) * 8.0) as usize
    }

    /// How much may be sent.
    pub fn budget(&self) -> BudgetConfig {
        BudgetConfig { rate: self.budget.config(), adaptive: self.adaptive }
    }

    /// Changes how much may be sent, from now on.
    ///
    /// # Errors
    /// When a number is out of its bounds. The old ones stay then.
    pub fn set_budget(&mut self, budget: BudgetConfig) -> Result<(), ConfigError> {
        budget.rate.check()?;
        self.budget.reconfigure(budget.rate);
        self.adaptive = budget.adaptive;
        Ok(())
    }

    /// Changes the congestion control of chunks. Settings of the same kind keep what is known of the link; another
    /// kind starts afresh, and ignores packets in flight.
    ///
    /// # Errors
    ///
    /// When a number is out of its bounds. The old settings stay then.
    pub fn set_congestion(&mut self, congestion: CongestionConfig) -> Result<(), ConfigError> {
        congestion.check()?;
        if !self.controller.as_mut().is_some_and(|controller| controller.reconfigure(&congestion)) {
            self.controller = controller(&congestion, &self.protocol)?;
            let acks = self.endpoint.acks_mut();
            let next = acks.next_sequence();
            for back in 1..=acks.sent_window() {
                if let Some(record) = acks.note_mut(next.wrapping_sub(back as u16)) {
                    record.stamp = None;
                }
            }
        }
        Ok(())
    }
}
