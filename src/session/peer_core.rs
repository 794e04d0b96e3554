//! The game core whose packets players exchange, and what goes along with these.
//!
//! Promises: the settings are compared before the core sees a packet, and each player is asked for once in a flush.

use std::any::Any;

use super::settings::{self, Setting};
use crate::mesh::{Players, bit};
use crate::time::{Duration, Instant};
use crate::wire::{BitReader, BitSink, BitWriter};

/// A game core whose packets players exchange: lockstep or rollback. It has acks of its own, as its packets may be
/// lost.
pub trait Carried: Any + Send {
    /// The kind of game, and the settings that must be the same on all sides: the first packets compare them.
    fn settings(&self) -> (&'static str, Vec<Setting>);

    /// Handles a player's packet, padded with zero bits to whole bytes.
    ///
    /// # Errors
    /// What is wrong with it: that player's connection ends.
    fn read(&mut self, now: Instant, player: u8, payload: &[u8]) -> Result<(), String>;

    /// Writes at most `bits` bits for a player, once a flush; false if there is nothing to send.
    fn fill(&mut self, now: Instant, player: u8, bits: usize, writer: &mut BitWriter) -> bool;

    /// The player has left the game.
    fn note_left(&mut self, now: Instant, player: u8);

    /// A player came after the start, or came again.
    fn note_joined(&mut self, _now: Instant, _player: u8) {}

    /// How long the connections' acks may wait for the core's next packet. Zero: not at all.
    fn ack_patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// The core of a peer, once the application has set one.
#[derive(Default)]
pub(super) struct CoreLink {
    core: Option<Box<dyn Carried>>,
    /// The kind of game, and the settings that must be the same on all sides.
    kind: &'static str,
    settings: Vec<Setting>,
    /// The core's last packet, before the settings are put in front.
    written: BitWriter,
    /// The players whose core packets are due in this flush: each is asked once.
    unfilled: Players,
}

impl CoreLink {
    /// Sets the core; returns the former one.
    pub(super) fn replace(&mut self, core: Option<Box<dyn Carried>>) -> Option<Box<dyn Carried>> {
        (self.kind, self.settings) = core.as_ref().map(|core| core.settings()).unwrap_or_default();
        core::mem::replace(&mut self.core, core)
    }

    pub(super) fn get(&self) -> Option<&dyn Carried> {
        self.core.as_deref()
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut (dyn Carried + 'static)> {
        self.core.as_deref_mut()
    }

    /// Handles a player's packet. Without a core, it is dropped.
    ///
    /// # Errors
    /// What is wrong with it: that player's connection ends.
    pub(super) fn read(
        &mut self,
        now: Instant,
        player: u8,
        packet: &mut BitReader<'_>,
    ) -> Result<(), String> {
        let Some(core) = &mut self.core else { return Ok(()) };
        settings::read(self.kind, &self.settings, packet)?;
        core.read(now, player, &packet.rest())
    }

    /// A flush begins. Returns how long acks may wait for the core's packets, if there is a core.
    pub(super) fn begin_flush(&mut self) -> Option<Duration> {
        self.unfilled = 0;
        self.core.as_ref().map(|core| core.ack_patience())
    }

    /// A packet for this player is due in this flush.
    pub(super) fn want(&mut self, player: u8) {
        self.unfilled |= bit(player);
    }

    /// Lets the core write for a player, after the settings while few packets have carried them.
    pub(super) fn fill(
        &mut self,
        now: Instant,
        player: u8,
        said: &mut u8,
        bits: usize,
        writer: &mut BitWriter,
    ) -> Option<u32> {
        let core = self.core.as_mut().filter(|_| self.unfilled & bit(player) != 0)?;
        self.unfilled &= !bit(player);
        let bits = bits.checked_sub(settings::bits_of(&self.settings, *said))?;
        self.written.clear();
        if !core.fill(now, player, bits, &mut self.written) {
            return None;
        }
        settings::write(self.kind, &self.settings, *said, writer);
        *said = said.saturating_add(1).min(settings::SAYINGS);
        let bits = self.written.bit_len();
        let mut reader = BitReader::with_range(self.written.as_bytes(), 0, bits);
        while let left @ 1.. = reader.remaining_bits().min(32) as u32 {
            writer.bits(reader.bits(left).ok()?, left);
        }
        Some(0)
    }
}
