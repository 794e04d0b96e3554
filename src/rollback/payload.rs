//! The payloads that players exchange.
//!
//! | part | bits |
//! |---|---|
//! | ack | 12: the low ones of the first frame of the reader's inputs that lacks |
//! | inputs | 0; or 1, 12 low bits of the first one's frame, and inputs as in `coding` |
//! | pace | 0; or 1, 8 for how far ahead, in quarters of frames, and 6 for the delay |
//! | check | 0; or 1, 8 low bits of the check's number, and 32 of its sum, which is 0 if there is nothing to compare |
//! | fields | 0; or 1, 8 low bits of the check's number, 6 for their count less one, and 32 each |
//! | leavers | 0; or 1, 16 for whom the writer doesn't reach, 16 for those that follow, and of each: 12 low bits of the first frame that lacks, 1 for agreed, 1 to ask, and 0; or 1, 12 low bits of a first frame, and inputs |

use super::checks::MAX_FIELDS;
use super::coding;
use super::config::{MAX_AHEAD, MAX_DELAY, MAX_PLAYERS, MAX_WINDOW, indices};
use super::fault::Fault;
use super::game::{GameEvent, Rollback};
use super::peer::{DETAIL_COPIES, EarlyCheck, Suspicion};
use crate::store::sequence::nearest_of;
use crate::time::{Duration, Instant};
use crate::wire::{BitReader, BitSink, BitWriter};

const FRAME_BITS: u32 = 12;
const PACE_BITS: u32 = 8;
const DELAY_BITS: u32 = 6;
const CHECK_BITS: u32 = 8;

/// Bits of the parts before the inputs, and of the others' flags.
const MIN_ROOM: usize = 64;
const PACE_ROOM: usize = (PACE_BITS + DELAY_BITS) as usize;
const CHECK_ROOM: usize = CHECK_BITS as usize + 32;
const LEAVERS_ROOM: usize = 32 + MAX_PLAYERS * (FRAME_BITS as usize + 3);

/// The lead is sent once in this many payloads.
const PACE_EVERY: u32 = 8;

/// How long to wait for the fields of a differing state.
const SUSPICION: Duration = Duration::from_secs(1);

impl Rollback {
    /// Handles a payload of a player or spectator.
    ///
    /// # Errors
    /// The payload breaks the rules: its connection must end.
    pub fn read(&mut self, now: Instant, player: u8, payload: &[u8]) -> Result<(), Fault> {
        let mut reader = BitReader::new(payload);
        let index = usize::from(player);
        if index >= MAX_PLAYERS || player == self.config.me {
            return Err(Fault::Unknown);
        }
        self.counters.payloads += 1;
        if self.config.players >> index & 1 == 0 {
            return self.read_watcher(index, reader);
        }
        if self.leaving.gone >> index & 1 == 1 {
            self.counters.stale += 1;
            return Ok(());
        }
        let read = self.read_player(now, index, &mut reader);
        self.confirm();
        self.settle();
        if !read? {
            self.counters.stale += 1;
            return Ok(());
        }
        reader.finish().map_err(|_| Fault::Trailing)
    }

    /// Reads a player's payload. False if it is so old that the base of its inputs may be gone: the rest can't be read,
    /// and has nothing new.
    fn read_player(
        &mut self,
        now: Instant,
        player: usize,
        reader: &mut BitReader<'_>,
    ) -> Result<bool, Fault> {
        let own = self.logs[usize::from(self.config.me)].next();
        let acked = nearest_of(reader.bits(FRAME_BITS)?, FRAME_BITS, own.into());
        if acked > i64::from(own) {
            return Err(Fault::ForgedAck);
        }
        let peer = &mut self.peers[player];
        peer.acked = peer.acked.max(u32::try_from(acked).unwrap_or(0));
        if reader.bool()? && !self.read_inputs(player, true, reader)? {
            return Ok(false);
        }
        if reader.bool()? {
            let measured = reader.bits(PACE_BITS)? as u8;
            let delay = reader.bits(DELAY_BITS)? as u32;
            if delay > MAX_DELAY {
                return Err(Fault::FarAhead);
            }
            self.peers[player].advantage.note_theirs(measured);
            self.peers[player].delay = delay;
        }
        if reader.bool()? {
            let low = reader.bits(CHECK_BITS)?;
            let sum = reader.bits(32)? as u32;
            self.hear_check(now, player, low, sum);
        }
        if reader.bool()? {
            self.read_fields(player, reader)?;
        }
        Ok(!reader.bool()? || self.read_leavers(player, reader)?)
    }

    /// Reads a player's inputs and, if `is_theirs`, takes the next ones. False if they follow an input that isn't kept
    /// any more: then nothing is read.
    fn read_inputs(
        &mut self,
        player: usize,
        is_theirs: bool,
        reader: &mut BitReader<'_>,
    ) -> Result<bool, Fault> {
        let next = self.logs[player].next();
        let start = nearest_of(reader.bits(FRAME_BITS)?, FRAME_BITS, next.into());
        if start > i64::from(next) && is_theirs {
            return Err(Fault::Gap);
        }
        // A peer runs ahead on what it has of this side; a leaver, on what it may have had.
        let own = self.logs[usize::from(self.config.me)].next();
        let had =
            if is_theirs && self.leaving.gone >> player & 1 == 0 { self.peers[player].acked } else { own };
        // The peer's window may differ from ours.
        let bound = (had + MAX_WINDOW + MAX_DELAY).min(self.confirmed.saturating_add(MAX_AHEAD));
        let start = u32::try_from(start).unwrap_or(0);
        if start.saturating_add(super::config::MAX_BEHIND) <= next {
            return Ok(false);
        }
        let mut held = core::mem::replace(&mut self.held, super::input_log::HeldInput::new());
        held.set(self.logs[player].before(start));
        let shape = self.config.input.clone();
        let read = coding::read_runs(&shape, reader, &mut held, |place, input, is_new| {
            let frame = start.saturating_add(place);
            if frame >= bound {
                return Err(Fault::FarAhead);
            }
            if !is_theirs {
                return Ok(());
            }
            if is_new && !shape.accepts(input.bytes, input.bits, &mut self.row) {
                return Err(Fault::NotAnInput);
            }
            if frame < self.logs[player].next() {
                self.counters.repeats += 1;
            } else {
                self.take(player, input);
            }
            Ok(())
        });
        self.held = held;
        self.counters.stale += u64::from(!is_theirs);
        read.map(|()| true)
    }

    fn hear_check(&mut self, now: Instant, player: usize, low: u64, sum: u32) {
        let Some(frame) = self.history.frame_of(low) else {
            self.counters.odd += 1;
            return;
        };
        if self.history.of(frame).is_some() {
            self.compare(now, player, frame, sum);
        } else if self.history.next().is_some_and(|next| frame >= next) {
            // Without a free place it takes the oldest, whose frame is least likely to come.
            let early = &mut self.peers[player].early;
            let free = early.iter().position(Option::is_none).unwrap_or(0);
            early[free] = Some(EarlyCheck { frame, sum });
        } else {
            self.counters.stale += 1;
        }
    }

    pub(super) fn compare(&mut self, now: Instant, player: usize, frame: u32, sum: u32) {
        let Some(own) = self.history.of(frame).filter(|own| own.sum > 0 && sum > 0) else { return };
        let is_equal = own.sum == sum;
        self.counters.compared += 1;
        let peer = &mut self.peers[player];
        if is_equal {
            peer.last_equal = peer.last_equal.max(Some(frame));
        } else {
            Self::suspect(peer, now, frame);
        }
    }

    fn suspect(peer: &mut super::peer::PeerState, now: Instant, frame: u32) {
        if !peer.is_reported && peer.suspicion.is_none() {
            peer.suspicion = Some(Suspicion { frame, until: now + SUSPICION });
            peer.detail = Some((frame, DETAIL_COPIES));
        }
    }

    fn read_fields(&mut self, player: usize, reader: &mut BitReader<'_>) -> Result<(), Fault> {
        let low = reader.bits(CHECK_BITS)?;
        let count = reader.bits(6)? as usize + 1;
        for place in &mut self.sums[..count] {
            *place = reader.bits(32)? as u32;
        }
        let check = self.history.frame_of(low).and_then(|frame| self.history.of(frame));
        let Some(check) = check.filter(|_| !self.peers[player].is_reported) else {
            self.counters.stale += 1;
            return Ok(());
        };
        let (frame, differing) = (check.frame, check.differing(&self.sums[..count]));
        let peer = &mut self.peers[player];
        if peer.detail.is_none() {
            peer.detail = Some((frame, DETAIL_COPIES));
        }
        self.report(player, frame, differing);
        Ok(())
    }

    fn report(&mut self, player: usize, frame: u32, fields: u64) {
        let peer = &mut self.peers[player];
        peer.suspicion = None;
        peer.is_reported = true;
        let last_equal = peer.last_equal;
        self.push_event(GameEvent::Desync { player: player as u8, frame, last_equal, fields });
    }

    /// Reports differing states whose fields didn't arrive in time.
    pub(super) fn report_suspicions(&mut self, now: Instant) {
        for player in indices(self.others()) {
            if let Some(suspicion) = self.peers[player].suspicion.filter(|suspicion| suspicion.until <= now) {
                self.report(player, suspicion.frame, 0);
            }
        }
    }

    /// [`Rollback::read_player`] for its reports on leavers.
    fn read_leavers(&mut self, player: usize, reader: &mut BitReader<'_>) -> Result<bool, Fault> {
        let gone = reader.bits(16)? as u16;
        let reported = reader.bits(16)? as u16;
        if gone >> player & 1 == 1 || reported & !gone != 0 || gone & !self.config.players != 0 {
            return Err(Fault::NotItsPlayer);
        }
        // Not of a payload older than the newest one read: its reports are outdated.
        let is_newest = gone & self.leaving.reports[player].gone == self.leaving.reports[player].gone;
        self.leaving.reports[player].gone |= gone;
        for leaver in indices(reported) {
            let next = self.logs[leaver].next();
            let have = nearest_of(reader.bits(FRAME_BITS)?, FRAME_BITS, next.into());
            let (settled, asks) = (reader.bool()?, reader.bool()?);
            let is_me = leaver == usize::from(self.config.me);
            let is_gone_here = self.leaving.gone >> leaver & 1 == 1;
            if !is_me && have > i64::from(self.confirmed) + i64::from(MAX_AHEAD) {
                return Err(Fault::FarAhead);
            }
            let report = &mut self.leaving.reports[player];
            if is_newest && !is_me {
                let have = u32::try_from(have).unwrap_or(0);
                report.have[leaver] = report.have[leaver].max(Some(have));
                report.settled |= u16::from(settled) << leaver;
                report.asks |= u16::from(asks) << leaver;
            }
            if reader.bool()? {
                let is_open = is_gone_here && self.leaving.settled >> leaver & 1 == 0;
                if !self.read_inputs(leaver, is_open && !is_me, reader)? {
                    return Ok(false);
                }
            }
        }
        if gone >> self.config.me & 1 == 1 {
            self.counters.odd += 1;
        }
        Ok(true)
    }

    /// Writes what a player or spectator lacks in at most `bits` bits; false if there is nothing to send now.
    pub fn fill(&mut self, now: Instant, player: u8, bits: usize, writer: &mut BitWriter) -> bool {
        let index = usize::from(player);
        if index >= MAX_PLAYERS || player == self.config.me || bits < MIN_ROOM {
            return false;
        }
        if self.config.players >> index & 1 == 0 {
            return self.fill_watcher(now, index, bits, writer);
        }
        if self.leaving.gone >> index & 1 == 1 || !self.is_due(now, index) {
            return false;
        }
        self.write(now, index, bits, writer);
        true
    }

    /// Whether a payload to a player is due: at once for a new frame, otherwise at the frame rate.
    fn is_due(&self, now: Instant, player: usize) -> bool {
        let peer = &self.peers[player];
        let own = self.logs[usize::from(self.config.me)].next();
        if own > peer.sent {
            return true;
        }
        let interval = Duration::from_secs(1) / self.config.rate;
        let is_time = peer.filled_at.is_none_or(|at| now.since(at) >= interval);
        let has_news = own > peer.acked
            || self.logs[player].next() > peer.ack_sent
            || peer.detail.is_some_and(|(_, copies)| copies > 0)
            || self.leaving.due(player) != 0;
        is_time && has_news
    }

    fn write(&mut self, now: Instant, player: usize, bits: usize, writer: &mut BitWriter) {
        let me = usize::from(self.config.me);
        let next = self.logs[player].next();
        let due = self.leaving.due(player);
        writer.bits(u64::from(next & 0xFFF), FRAME_BITS);
        let log = &self.logs[me];
        let acked = self.peers[player].acked;
        let leavers_room = if due == 0 { 0 } else { LEAVERS_ROOM };
        // Inputs get the room that no other part can need, except for the fields of a differing state.
        let room = bits.saturating_sub(MIN_ROOM + PACE_ROOM + CHECK_ROOM + leavers_room);
        let has_inputs = log.next() > acked && room > 64;
        writer.bool(has_inputs);
        let mut sent = acked;
        if has_inputs {
            writer.bits(u64::from(acked & 0xFFF), FRAME_BITS);
            let inputs = (acked..log.next()).map(|frame| log.get(frame));
            let shape = &self.config.input;
            let count = coding::write_runs(shape, log.before(acked), inputs, room, writer);
            sent += count.unwrap_or(0);
        }
        let end = bits;
        let peer = &mut self.peers[player];
        let fits = |writer: &BitWriter, cost: usize| writer.bit_len() + cost + 4 <= end;
        let tells_pace = peer.payloads.is_multiple_of(PACE_EVERY) && fits(writer, PACE_ROOM + leavers_room);
        writer.bool(tells_pace);
        if tells_pace {
            writer.bits(u64::from(peer.advantage.measured()), PACE_BITS);
            writer.bits(u64::from(self.delay), DELAY_BITS);
        }
        let check = self
            .history
            .newest()
            .filter(|check| Some(check.frame) > peer.check_sent && fits(writer, CHECK_ROOM + leavers_room));
        writer.bool(check.is_some());
        if let Some(check) = check {
            writer.bits(self.history.low_of(check.frame), CHECK_BITS);
            writer.bits(u64::from(check.sum), 32);
            peer.check_sent = Some(check.frame);
        }
        let detail =
            peer.detail.filter(|(_, copies)| *copies > 0).and_then(|(frame, _)| self.history.of(frame));
        let detail = detail.filter(|check| {
            let count = check.fields().len();
            count > 0 && fits(writer, CHECK_BITS as usize + 6 + 32 * count + leavers_room)
        });
        writer.bool(detail.is_some());
        if let Some(check) = detail {
            writer.bits(self.history.low_of(check.frame), CHECK_BITS);
            writer.bits(check.fields().len() as u64 - 1, 6);
            for sum in check.fields() {
                writer.bits(u64::from(*sum), 32);
            }
        }
        if let Some((_, copies)) = &mut peer.detail {
            *copies = copies.saturating_sub(1);
        }
        peer.payloads = peer.payloads.wrapping_add(1);
        (peer.sent, peer.ack_sent, peer.filled_at) = (peer.sent.max(sent), next, Some(now));
        let says_leavers = due != 0 && writer.bit_len() + 1 + LEAVERS_ROOM <= bits;
        writer.bool(says_leavers);
        if says_leavers {
            self.write_leavers(player, due, bits, writer);
        }
    }

    fn write_leavers(&mut self, player: usize, due: u16, bits: usize, writer: &mut BitWriter) {
        writer.bits(u64::from(self.leaving.gone), 16);
        writer.bits(u64::from(due), 16);
        let mut left = (bits - writer.bit_len()).saturating_sub(MAX_PLAYERS * (FRAME_BITS as usize + 3));
        for leaver in indices(due) {
            let log = &self.logs[leaver];
            let report = &mut self.leaving.reports[player];
            writer.bits(u64::from(log.next() & 0xFFF), FRAME_BITS);
            writer.bool(self.leaving.settled >> leaver & 1 == 1);
            writer.bool(report.settled >> leaver & 1 == 0);
            report.asks &= !(1 << leaver);
            let first = report.have[leaver].filter(|have| {
                *have < log.next() && have.saturating_add(super::config::MAX_BEHIND) > log.next() && left > 80
            });
            writer.bool(first.is_some());
            if let Some(first) = first {
                writer.bits(u64::from(first & 0xFFF), FRAME_BITS);
                let before = writer.bit_len();
                let inputs = (first..log.next()).map(|frame| log.get(frame));
                coding::write_runs(&self.config.input, log.before(first), inputs, left - 12, writer);
                left = left.saturating_sub(writer.bit_len() - before + FRAME_BITS as usize);
            }
        }
    }
}

const _: () = assert!(MAX_FIELDS == 64, "the count of fields has 6 bits");
