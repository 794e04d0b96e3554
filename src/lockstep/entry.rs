//! One player's data for one turn: its commands, perhaps a control of pace or speed, and checks of turns it has run.
//!
//! Layout: `STANDARD.md` of the framing, under "Lockstep".

use super::config::{MAX_COMMAND_BYTES, MAX_COMMANDS, MAX_DELAY, MAX_ENTRY_BYTES, MAX_STEPS, Pace};
use super::fault::Fault;
use crate::wire::{BitReader, BitSink, BitWriter};

/// The maximum of checks in an entry.
pub const MAX_CHECKS: usize = 3;
/// The maximum distance in turns from a check to its entry.
pub const MAX_BACK: u8 = 63;

/// A control of how turns run, valid from the turn that it is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Length and delay; only the deciding player may set them.
    Pace(Pace),
    Pause(bool),
    /// In steps of 10 %, 1 to 64.
    Speed(u8),
    /// A newcomer is let in; only the player whose part it is may say it.
    Join(u8),
}

/// A check of the world after a turn. Only the CRC is sent; it covers the draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnCheck {
    /// Covers the world's values and the draw.
    pub crc: u32,
    /// A draw of the shared generator.
    pub draw: u16,
}

/// One player's data for one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnEntry {
    pub commands: Vec<Box<[u8]>>,
    pub control: Option<Control>,
    /// CRCs of consecutive turns, the oldest first.
    pub checks: Vec<u32>,
    /// How many turns the newest check is older than this entry.
    pub back: u8,
}

impl TurnEntry {
    /// Its size in bits.
    pub fn bits(&self) -> usize {
        let command = |command: &[u8]| (if command.len() < 16 { 5 } else { 11 }) + 8 * command.len();
        let commands: usize = self.commands.iter().map(|it| command(it)).sum();
        let control = self.control.map_or(0, |control| match control {
            Control::Pace(_) => 10,
            Control::Pause(_) => 3,
            Control::Speed(_) => 8,
            Control::Join(_) => 6,
        });
        let checks = if self.checks.is_empty() { 0 } else { 6 + 32 * self.checks.len() };
        1 + usize::from(!self.commands.is_empty()) * 6 + commands + 1 + control + 2 + checks
    }

    pub(super) fn write(&self, writer: &mut BitWriter) {
        writer.bool(!self.commands.is_empty());
        if !self.commands.is_empty() {
            writer.bits(self.commands.len() as u64, 6);
        }
        for command in &self.commands {
            writer.bool(command.len() >= 16);
            writer.bits(command.len() as u64, if command.len() < 16 { 4 } else { 10 });
            command.iter().for_each(|byte| writer.bits(u64::from(*byte), 8));
        }
        writer.bool(self.control.is_some());
        match self.control {
            None => {}
            Some(Control::Pace(pace)) => {
                writer.bits(0, 2);
                writer.bits(u64::from(pace.steps - 1), 4);
                writer.bits(u64::from(pace.delay - 1), 4);
            }
            Some(Control::Pause(paused)) => {
                writer.bits(1, 2);
                writer.bool(paused);
            }
            Some(Control::Speed(speed)) => {
                writer.bits(2, 2);
                writer.bits(u64::from(speed - 1), 6);
            }
            Some(Control::Join(player)) => {
                writer.bits(3, 2);
                writer.bits(u64::from(player), 4);
            }
        }
        writer.bits(self.checks.len() as u64, 2);
        if !self.checks.is_empty() {
            writer.bits(u64::from(self.back), 6);
        }
        for check in &self.checks {
            writer.bits(u64::from(*check), 32);
        }
    }

    pub(super) fn read(reader: &mut BitReader<'_>) -> Result<Self, Fault> {
        let mut entry = TurnEntry::default();
        if reader.bool()? {
            let count = reader.bits(6)? as usize;
            let mut bytes = 0;
            for _ in 0..count.min(MAX_COMMANDS) {
                let wide = if reader.bool()? { 10 } else { 4 };
                let length = reader.bits(wide)? as usize;
                bytes += length;
                if length > MAX_COMMAND_BYTES || bytes > MAX_ENTRY_BYTES {
                    return Err(Fault::TooLarge { bytes });
                }
                if reader.remaining_bits() < length * 8 {
                    return Err(Fault::CutShort);
                }
                let command: Result<Vec<u8>, _> =
                    (0..length).map(|_| reader.bits(8).map(|byte| byte as u8)).collect();
                entry.commands.push(command?.into());
            }
        }
        if reader.bool()? {
            entry.control = Some(match reader.bits(2)? {
                0 => {
                    let (steps, delay) = (reader.bits(4)? as u8 + 1, reader.bits(4)? as u8 + 1);
                    debug_assert!(steps <= MAX_STEPS && delay <= MAX_DELAY, "4 bits say no more");
                    Control::Pace(Pace { steps, delay })
                }
                1 => Control::Pause(reader.bool()?),
                2 => Control::Speed(reader.bits(6)? as u8 + 1),
                _ => Control::Join(reader.bits(4)? as u8),
            });
        }
        let checks = reader.bits(2)?;
        if checks > 0 {
            entry.back = reader.bits(6)? as u8;
            if entry.back == 0 {
                return Err(Fault::Check);
            }
        }
        for _ in 0..checks {
            entry.checks.push(reader.bits(32)? as u32);
        }
        Ok(entry)
    }
}
