//! Sending for the application, and the order of messages.

use super::Host;
use crate::endpoint::error::{BudgetError, SendError};
use crate::endpoint::handle::PeerHandle;
use crate::time::{Duration, Instant};
use crate::transport::{
    self, Attribute, BudgetConfig, Column, CongestionConfig, Message, ScoreError, SendOptions, candidates,
};
use crate::wire::Encoded;

impl Host {
    /// Queues a message for a peer.
    ///
    /// # Errors
    /// Why it can't be sent. Nothing was queued then.
    pub fn send(
        &mut self,
        now: Instant,
        peer: PeerHandle,
        channel: usize,
        message: Message,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let handle = peer;
        // Applications send to one peer after the other, by slot.
        self.peers.prefetch_after(handle.slot);
        let peer = self.peers.live_mut(handle).ok_or(SendError::NotConnected)?;
        let sent = peer.connection.send(now, channel, message, options);
        if let Err(transport::SendError::Full { .. }) = &sent {
            self.note_full(now, handle, channel);
        }
        Ok(sent?)
    }

    /// Queues opaque bits for a peer on a payload channel; their notification has this `tag`.
    ///
    /// # Errors
    ///
    /// Why they can't be sent. Nothing was queued then.
    pub fn send_payload(
        &mut self,
        now: Instant,
        peer: PeerHandle,
        channel: usize,
        payload: Encoded,
        tag: u32,
    ) -> Result<(), SendError> {
        let peer = self.peers.live_mut(peer).ok_or(SendError::NotConnected)?;
        Ok(peer.connection.send_payload(now, channel, payload, tag)?)
    }

    /// A feature has data for a peer on a payload channel, if a packet has room for at least this many bits.
    /// [`Host::transmit_with`] asks the feature until it has no more. The notification of each record has the record
    /// as its tag.
    ///
    /// # Errors
    ///
    /// When the peer is not connected, or it is no payload channel.
    pub fn want(&mut self, peer: PeerHandle, channel: usize, least_bits: usize) -> Result<(), SendError> {
        let peer = self.peers.live_mut(peer).ok_or(SendError::NotConnected)?;
        Ok(peer.connection.want(channel, least_bits)?)
    }

    /// Lets acks of what comes on this channel alone wait so long for a packet to carry them: see
    /// [`crate::transport::Connection::set_ack_patience`].
    pub fn set_ack_patience(&mut self, peer: PeerHandle, channel: usize, patience: Duration) {
        if let (Some(peer), Ok(channel)) = (self.peers.live_mut(peer), u8::try_from(channel)) {
            peer.connection.set_ack_patience(channel, patience);
        }
    }

    /// How many bits of messages may go to a peer now, before packet headers; 0 if it is not connected.
    pub fn budget_bits(&mut self, now: Instant, peer: PeerHandle) -> usize {
        let peer = self.peers.find_mut(peer).filter(|peer| peer.closing.is_none());
        peer.map_or(0, |peer| peer.connection.budget_bits(now))
    }

    /// How many unordered messages are queued for all peers, to be scored.
    pub fn candidates(&self) -> usize {
        self.peers.iter().map(|peer| peer.connection.candidates()).sum()
    }

    /// An attribute of each of these candidates.
    pub fn describe_candidates(&self, now: Instant, attribute: Attribute) -> Column {
        let mut column = Column::new(attribute, self.candidates());
        for peer in self.peers.iter() {
            peer.connection.describe(now, peer.handle.slot, attribute, &mut column);
        }
        column
    }

    /// Sets the order of the candidates in the next [`Host::transmit`] by scores: highest first within each channel
    /// of each peer, equal ones in their old order. Scores are in the order of [`Host::describe_candidates`]; nothing
    /// may be sent or received in between.
    ///
    /// # Errors
    ///
    /// When the scores don't match the candidates. Nothing was changed then.
    pub fn prioritize(&mut self, mut scores: &[f32]) -> Result<(), ScoreError> {
        candidates::check(scores, self.candidates())?;
        self.peers.iter_mut().for_each(|peer| peer.connection.prioritize(&mut scores));
        Ok(())
    }

    /// A peer's budget, or with None that of future peers; None if the peer is gone.
    pub fn budget(&self, peer: Option<PeerHandle>) -> Option<BudgetConfig> {
        let Some(peer) = peer else { return Some(self.config.budget) };
        Some(self.peers.live(peer)?.connection.budget())
    }

    /// Sets a peer's budget, or with None that of all peers, future ones included.
    ///
    /// # Errors
    ///
    /// When the peer is not connected, or a number is out of its bounds. Nothing was changed then.
    pub fn set_budget(&mut self, peer: Option<PeerHandle>, budget: BudgetConfig) -> Result<(), BudgetError> {
        budget.rate.check()?;
        if let Some(peer) = peer {
            let peer = self.peers.live_mut(peer).ok_or(BudgetError::NotConnected)?;
            return Ok(peer.connection.set_budget(budget)?);
        }
        self.config.budget = budget;
        self.peers.mark_all_dirty();
        for peer in self.peers.iter_mut() {
            peer.connection.set_budget(budget)?;
        }
        Ok(())
    }

    /// Sets the congestion control of a peer's chunks, or with None of all peers', future ones included.
    ///
    /// # Errors
    ///
    /// When the peer is not connected, or a number is out of its bounds. Nothing was changed then.
    pub fn set_congestion(
        &mut self,
        peer: Option<PeerHandle>,
        congestion: CongestionConfig,
    ) -> Result<(), BudgetError> {
        congestion.check()?;
        if let Some(peer) = peer {
            let peer = self.peers.live_mut(peer).ok_or(BudgetError::NotConnected)?;
            return Ok(peer.connection.set_congestion(congestion)?);
        }
        self.config.congestion = congestion;
        self.peers.mark_all_dirty();
        for peer in self.peers.iter_mut() {
            peer.connection.set_congestion(congestion)?;
        }
        Ok(())
    }
}
