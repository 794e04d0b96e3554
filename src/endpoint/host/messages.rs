//! Sending for the application, the order of messages, and settings that change.

use super::Host;
use crate::endpoint::PeerHandle;
use crate::endpoint::error::{BudgetError, SendError};
use crate::endpoint::incoming::ChunkStore;
use crate::limits::ConfigError;
use crate::time::Instant;
use crate::transport::{
    self, Attribute, BudgetConfig, Column, CongestionConfig, Connection, Message, ScoreError, SendOptions,
    candidates,
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

    /// Queues messages for each of these peers. Returns the peers that are gone or have no room for all of them.
    ///
    /// # Errors
    ///
    /// Why no peer can be sent one of them. Nothing was queued then.
    pub fn send_all(
        &mut self,
        now: Instant,
        peers: impl IntoIterator<Item = PeerHandle>,
        channel: usize,
        messages: &[(Message, SendOptions)],
    ) -> Result<Vec<PeerHandle>, SendError> {
        self.check(channel, messages)?;
        let mut left_out = Vec::new();
        for peer in peers {
            let mut each = messages.iter();
            match each.try_for_each(|(it, options)| self.send(now, peer, channel, it.clone(), *options)) {
                Err(error) if error.is_refusal() => left_out.push(peer),
                sent => sent?,
            }
        }
        Ok(left_out)
    }

    /// Checks that a channel takes each of these messages, if it has room.
    pub(in crate::endpoint) fn check(
        &self,
        channel: usize,
        messages: &[(Message, SendOptions)],
    ) -> Result<(), SendError> {
        let protocol = self.protocol();
        Ok(messages.iter().try_for_each(|(it, options)| protocol.check(channel, it, options.key))?)
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

    /// Stores incoming chunks in `store` instead of memory.
    pub fn set_chunk_store(&mut self, store: Box<dyn ChunkStore>) {
        self.incoming.set_store(store);
    }

    /// Sets a peer's budget, or with None that of all peers, future ones included.
    ///
    /// # Errors
    ///
    /// When the peer is not connected, or a number is out of its bounds. Nothing was changed then.
    pub fn set_budget(&mut self, peer: Option<PeerHandle>, budget: BudgetConfig) -> Result<(), BudgetError> {
        budget.rate.check()?;
        if peer.is_none() {
            self.config.budget = budget;
        }
        self.configure(peer, |connection| connection.set_budget(budget))
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
        if peer.is_none() {
            self.config.congestion = congestion;
        }
        self.configure(peer, |connection| connection.set_congestion(congestion))
    }

    /// Changes settings of a peer's connection, or with None of all peers'.
    fn configure(
        &mut self,
        peer: Option<PeerHandle>,
        set: impl Fn(&mut Connection) -> Result<(), ConfigError>,
    ) -> Result<(), BudgetError> {
        if let Some(peer) = peer {
            let peer = self.peers.live_mut(peer).ok_or(BudgetError::NotConnected)?;
            return Ok(set(&mut peer.connection)?);
        }
        self.peers.mark_all_dirty();
        Ok(self.peers.iter_mut().try_for_each(|peer| set(&mut peer.connection))?)
    }
}
