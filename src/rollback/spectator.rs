//! Spectators: they run only confirmed frames, and any player can serve them.
//!
//! A spectator sends the first frame that it lacks: 32 bits, and 1 if it has nothing before it. The player answers 0 if
//! that frame is no longer kept; or 1, the frame's 12 low bits, how many frames follow (gamma code as in `coding`), and
//! for each player 0, or 1 and 12 low bits of its first frame out, and its inputs.

use super::coding;
use super::config::{Config, MAX_BEHIND, MAX_PLAYERS, RING, indices};
use super::fault::Fault;
use super::game::{GameEvent, Rollback, Status};
use super::input_log::{GameInput, HeldInput, InputLog};
use super::peer::Watcher;
use crate::store::sequence::nearest_of;
use crate::time::{Duration, Instant};
use crate::wire::{BitReader, BitSink, BitWriter};

/// The maximum of frames in one payload.
const MAX_FRAMES: u32 = 96;
const FRAME_BITS: u32 = 12;

impl Rollback {
    /// Reads a spectator's request.
    pub(super) fn read_watcher(&mut self, index: usize, mut reader: BitReader<'_>) -> Result<(), Fault> {
        let next = reader.bits(32)? as u32;
        let is_fresh = reader.bool()?;
        if next > self.confirmed {
            return Err(Fault::ForgedAck);
        }
        let watcher = self.watchers[index].get_or_insert(Watcher {
            next,
            is_fresh,
            sent: next,
            sent_at: None,
            is_lost: false,
        });
        if next >= watcher.next {
            (watcher.next, watcher.is_fresh) = (next, is_fresh);
            watcher.sent = watcher.sent.max(next);
        }
        Ok(())
    }

    pub(super) fn fill_watcher(
        &mut self,
        now: Instant,
        index: usize,
        bits: usize,
        writer: &mut BitWriter,
    ) -> bool {
        let Some(mut watcher) = self.watchers[index] else { return false };
        let interval = Duration::from_secs(1) / self.config.rate;
        let is_time = watcher.sent_at.is_none_or(|at| now.since(at) >= interval);
        if watcher.next >= self.confirmed || (!is_time && watcher.sent >= self.confirmed) {
            return false;
        }
        watcher.sent_at = Some(now);
        if watcher.next + MAX_BEHIND <= self.confirmed {
            writer.bool(false);
            if !core::mem::replace(&mut watcher.is_lost, true) {
                self.push_event(GameEvent::SpectatorLost { index: index as u8 });
            }
            self.watchers[index] = Some(watcher);
            return true;
        }
        let mut count = (self.confirmed - watcher.next).min(MAX_FRAMES);
        while count > 0 {
            writer.clear();
            if self.write_frames(&watcher, count, bits, writer) {
                break;
            }
            count /= 2;
        }
        if count == 0 {
            writer.clear();
            return false;
        }
        watcher.sent = watcher.sent.max(watcher.next + count);
        self.watchers[index] = Some(watcher);
        true
    }

    fn write_frames(&self, watcher: &Watcher, count: u32, bits: usize, writer: &mut BitWriter) -> bool {
        let frames = watcher.next..watcher.next + count;
        writer.bool(true);
        writer.bits(u64::from(watcher.next & 0xFFF), FRAME_BITS);
        writer.bits(u64::from(count), 7);
        for player in indices(self.config.players) {
            let log = &self.logs[player];
            let left_at = self.left_at[player];
            let has_left = left_at < frames.end;
            writer.bool(has_left);
            if has_left {
                writer.bits(u64::from(left_at & 0xFFF), FRAME_BITS);
                // The player left long ago: no more of its inputs come.
                writer.bool(left_at <= frames.start);
            }
            let base = if watcher.is_fresh { log.neutral() } else { log.before(watcher.next) };
            let base = if left_at < frames.start { log.neutral() } else { base };
            let inputs =
                frames.clone().map(|frame| if frame < left_at { log.get(frame) } else { log.neutral() });
            let room = bits.saturating_sub(writer.bit_len());
            if coding::write_runs(&self.config.input, base, inputs, room, writer) != Some(count) {
                return false;
            }
        }
        writer.bit_len() <= bits
    }
}

/// A watched game: its confirmed frames, some time after the players' own.
#[derive(Debug)]
pub struct Spectator {
    config: Config,
    frame: u32,
    next: u32,
    is_fresh: bool,
    is_lost: bool,
    /// How many frames are kept back, so that the game runs smoothly.
    buffer: u32,
    left_at: [u32; MAX_PLAYERS],
    logs: Vec<InputLog>,
    held: HeldInput,
    row: Vec<u8>,
    asked_at: Option<Instant>,
    /// The player that is asked.
    source: Option<u8>,
    reached: u16,
}

impl Spectator {
    /// The settings it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Watches from a frame on; the game has the state before it.
    pub fn new(config: Config, frame: u32, buffer: u32) -> Self {
        let mut logs: Vec<_> = (0..MAX_PLAYERS).map(|_| InputLog::new(&config.input)).collect();
        logs.iter_mut().for_each(|log| log.start_at(frame));
        Spectator {
            frame,
            next: frame,
            is_fresh: true,
            is_lost: false,
            buffer: buffer.min(MAX_BEHIND / 2),
            left_at: [u32::MAX; MAX_PLAYERS],
            logs,
            held: HeldInput::new(),
            row: Vec::with_capacity(256),
            asked_at: None,
            source: None,
            reached: config.players,
            config,
        }
    }

    // The next frame to run.
    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// How many frames have arrived and haven't run.
    pub fn behind(&self) -> u32 {
        self.next - self.frame
    }

    /// Whether frames are missing that no player keeps any more: the game needs a newer state and a new start.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The frames to run now, at most `limit`: one if any arrived, more while there are too many.
    pub fn advance(&mut self, limit: u32) -> core::ops::Range<u32> {
        let here = self.behind();
        let count = here.saturating_sub(self.buffer).max(u32::from(here > 0 && self.buffer == 0));
        let count = if count > 2 * self.buffer + 2 { count.min(limit) } else { count.min(1) };
        let first = self.frame;
        self.frame += count;
        first..self.frame
    }

    /// A player's input in one of the frames that ran last.
    pub fn input(&self, player: usize, frame: u32) -> (GameInput<'_>, Status) {
        let log = &self.logs[player];
        if self.left_at[player] <= frame {
            (log.neutral(), Status::Left)
        } else {
            (log.get(frame), Status::Confirmed)
        }
    }

    /// A player can't be reached any more: another is asked.
    pub fn note_left(&mut self, _now: Instant, player: u8) {
        self.reached &= !1u16.unbounded_shl(player.into());
        if self.source == Some(player) {
            (self.source, self.asked_at) = (None, None);
        }
    }

    /// Writes a request for missing frames to a player; false if another player is asked, or this one was asked just
    /// now.
    pub fn fill(&mut self, now: Instant, player: u8, bits: usize, writer: &mut BitWriter) -> bool {
        let source = *self.source.get_or_insert_with(|| self.reached.trailing_zeros() as u8);
        let interval = Duration::from_secs(1) / self.config.rate.max(1);
        let is_time = self.asked_at.is_none_or(|at| now.since(at) >= interval);
        if source != player || bits < 33 || !is_time || self.is_lost {
            return false;
        }
        self.asked_at = Some(now);
        writer.bits(u64::from(self.next), 32);
        writer.bool(self.is_fresh);
        true
    }

    /// Handles a player's answer.
    ///
    /// # Errors
    /// The answer breaks the rules: the player's connection must end.
    pub fn read(&mut self, _now: Instant, player: u8, payload: &[u8]) -> Result<(), Fault> {
        let mut reader = BitReader::new(payload);
        if player >= MAX_PLAYERS as u8 || self.config.players >> player & 1 == 0 {
            return Err(Fault::Unknown);
        }
        if !reader.bool()? {
            self.is_lost |= self.source == Some(player);
            return Ok(());
        }
        let start = nearest_of(reader.bits(FRAME_BITS)?, FRAME_BITS, self.next.into());
        let count = reader.bits(7)? as u32;
        if start > i64::from(self.next) {
            return Err(Fault::Gap);
        }
        let start = u32::try_from(start).unwrap_or(0);
        let end = start + count;
        // Frames that haven't run must not be overwritten, and the base of the inputs must be kept.
        if end > self.frame + RING - 2
            || start + MAX_BEHIND <= self.next
            || (start != self.next && self.is_fresh)
        {
            return Ok(());
        }
        let mut left_at = self.left_at;
        let shape = self.config.input.clone();
        for player in indices(self.config.players) {
            if reader.bool()? {
                let frame = nearest_of(reader.bits(FRAME_BITS)?, FRAME_BITS, start.into());
                let was_before = reader.bool()?;
                let frame = if was_before { start } else { u32::try_from(frame).unwrap_or(0).max(start) };
                left_at[player] = left_at[player].min(frame);
            }
            let log = &mut self.logs[player];
            let base = if left_at[player] < start { log.neutral() } else { log.before(start) };
            self.held.set(base);
            let mut frames = 0;
            coding::read_runs(&shape, &mut reader, &mut self.held, |place, input, is_new| {
                frames = place + 1;
                if frames > count {
                    return Err(Fault::FarAhead);
                }
                if is_new && !shape.accepts(input.bytes, input.bits, &mut self.row) {
                    return Err(Fault::NotAnInput);
                }
                if start + place >= log.next() {
                    log.push(input);
                }
                Ok(())
            })?;
            if frames != count {
                return Err(Fault::Gap);
            }
        }
        self.left_at = left_at;
        self.is_fresh &= count == 0;
        self.next = self.next.max(end);
        Ok(())
    }
}
