//! A client's part: its clock and lead, the inputs that the server may lack, and the payloads that carry them.
//!
//! Promises: each tick has at most one input, and ticks rise; the queue is bounded. A payload goes out when there is
//! a new input, when one may be lost, and otherwise now and then to keep the clock right.

use core::iter;
use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;

use super::clock::ServerClock;
use super::frame_pace::{EVEN_FRAME, FramePace};
use super::lead::{InputLead, LeadConfig};
use super::packet::{
    HEADER_BITS, InputHeader, MAX_BUSY, MAX_CHANGED, MAX_COPIES, MAX_HELD, MAX_INPUTS, Report, VIEW_STEPS,
    write_inputs,
};
use super::presses::{Presses, SentPresses};
use crate::store::sequence::nearest;
use crate::time::Instant;
use crate::wire::{BitReader, BitWriter, Encoded, Schema};

/// Inputs that wait for an ack, at most.
const MAX_WAITING: usize = 128;
/// No input is for a later tick: ticks have 32 bits, whatever a server sends.
const MAX_TICK: f64 = (u32::MAX - 1) as f64;
/// How many ticks one input may fill if the client ticks seldom; after a longer gap the ticks in between have none.
const MAX_FILL: u32 = MAX_COPIES as u32;
/// A frame gets the usual number of ticks until it is this fraction of a tick too early or too late for them, so a clock that
/// wavers at the boundary between two ticks doesn't give none to one frame and two to another.
const HOLD: f64 = 0.5;
/// Shorter frames, in ticks, are never early: some of them have no tick anyway.
const SHORT_FRAME: f64 = 0.9;
/// By how much of a tick the times in a report may be off: its fields count sixteenths.
const REPORT_ERROR: f64 = 1.0 / 8.0;
/// This many ticks after a change of a ghost its owner has it, whatever was lost.
const ARRIVED_AFTER: u32 = 2 * MAX_CHANGED as u32;
/// Seconds between payloads that only ask for the time.
const ASK_EVERY: f64 = 0.25;
/// This many payloads at the beginning ask for the time in every tick.
const FIRST_ASKS: u32 = 16;

/// One of this many payloads has all presses whose ack is overdue: a burst of losses hits payloads in a row.
const PRESSES_EVERY: u8 = 4;
/// Ticks beside one and a half round trips until an ack is overdue.
const ACK_TICKS: u32 = 4;

/// How a client sends its inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayerConfig {
    /// Extra ticks between giving an input and its tick, beyond the lead: that many fewer are predicted.
    pub delay: u32,
    pub lead: LeadConfig,
}

/// A client's time and inputs.
#[derive(Debug)]
pub struct Player {
    clock: ServerClock,
    lead: InputLead,
    config: PlayerConfig,
    /// When payloads in flight were sent, by number.
    sent: Box<[Option<Instant>; 256]>,
    next: u8,
    asked: u32,
    /// Inputs, rising by tick.
    waiting: VecDeque<(u32, Encoded)>,
    stamped: Option<u32>,
    /// The clock when the newest input was stamped.
    stamped_clock: f64,
    /// The server's tick when the last input was given, whether or not it was stamped. The lead may jump, and frames stay the same.
    given: Option<f64>,
    /// The client's frame in ticks, smoothed.
    frame: f64,
    pace: FramePace,
    in_payload: Option<u32>,
    last_payload: Option<Instant>,
    view: Option<u64>,
    /// What it saw when it gave the newest input: the frames that are drawn until that is sent are others.
    stamped_view: Option<u64>,
    /// The newest server tick that a report was about, and the tick of the last change to anything we own, as of that
    /// report.
    server_tick: Option<u32>,
    changed: u32,
    acked: Option<u32>,
    /// Ticks between the server taking inputs and sending.
    busy: f64,
    input: Option<Arc<Schema>>,
    /// Presses that were given since the newest input was stamped.
    presses: Presses,
    /// Presses in inputs that the server may lack.
    sent_presses: SentPresses,
    restarts: u64,
}

impl Player {
    /// A new client; its server has this many ticks a second, and inputs this schema.
    pub fn new(rate: f64, config: PlayerConfig, input: Option<Arc<Schema>>) -> Self {
        let presses = input.as_ref().map(|schema| schema.presses()).unwrap_or_default();
        Player {
            clock: ServerClock::new(rate),
            lead: InputLead::new(config.lead),
            config,
            sent: Box::new([None; 256]),
            next: 0,
            asked: 0,
            waiting: VecDeque::new(),
            stamped: None,
            stamped_clock: 0.0,
            given: None,
            frame: 1.0,
            pace: FramePace::default(),
            in_payload: None,
            last_payload: None,
            view: None,
            stamped_view: None,
            server_tick: None,
            changed: 0,
            acked: None,
            busy: 0.0,
            input,
            presses: Presses::new(presses.into(), 1),
            sent_presses: SentPresses::default(),
            restarts: 0,
        }
    }

    /// Starts again, with another server.
    pub fn reset(&mut self) {
        *self = Player::new(self.clock.rate(), self.config, self.input.take());
    }

    /// Sets new settings, from the next input on.
    pub fn configure(&mut self, config: PlayerConfig) {
        self.config = config;
        self.lead.configure(config.lead);
    }

    pub fn config(&self) -> &PlayerConfig {
        &self.config
    }

    // --- time --------------------------------------------------------------------------------------------

    /// Advances to this time.
    pub fn advance(&mut self, now: Instant) {
        self.clock.advance(now);
        if self.clock.restarts() != self.restarts {
            self.restarts = self.clock.restarts();
            self.lead.restart();
        }
        if let Some(tick) = self.clock.tick(now) {
            self.lead.note_clock(now, tick, self.clock.rate());
            self.lead.advance(now, self.clock.rate());
        }
    }

    pub fn clock(&self) -> &ServerClock {
        &self.clock
    }

    pub fn lead(&self) -> &InputLead {
        &self.lead
    }

    /// The server's tick, and the tick of an input given now: after [`Player::advance`].
    fn ahead(&self, now: Instant) -> Option<(f64, f64)> {
        Some((self.clock.tick(now)?, self.lead.ticks()? + f64::from(self.config.delay)))
    }

    /// The tick of an input that is given now; never below that of the last one.
    pub fn input_tick(&self, now: Instant) -> Option<u32> {
        let (tick, ahead) = self.ahead(now)?;
        let tick = (tick + ahead).min(MAX_TICK) as u32;
        Some(self.stamped.map_or(tick, |stamped| tick.max(stamped)))
    }

    /// The predicted tick to draw now, with its fraction: a tick behind the clock, so that the states on both sides of
    /// it exist. None if each frame has the same number of ticks: the newest state moves evenly then.
    pub fn drawn_tick(&self, now: Instant) -> Option<f64> {
        let off = (self.frame - self.frame.round()).abs();
        if self.frame >= SHORT_FRAME && off <= EVEN_FRAME * self.frame {
            return None;
        }
        let (tick, ahead) = self.ahead(now)?;
        Some(tick + ahead - f64::from(self.config.delay) - 1.0)
    }

    /// The newest server tick reported.
    pub fn server_tick(&self) -> Option<u32> {
        self.server_tick
    }

    /// Like [`Player::server_tick`], with the tick of the last change to anything the client owns; 0 if that is so long ago
    /// that the change has arrived.
    pub fn owned_changes(&self) -> Option<(u32, u32)> {
        let tick = self.server_tick?;
        Some((tick, if tick - self.changed > ARRIVED_AFTER { 0 } else { self.changed }))
    }

    /// The newest tick whose input the server has acked.
    pub fn acked(&self) -> Option<u32> {
        self.acked
    }

    // --- inputs ------------------------------------------------------------------------------------------

    /// Stamps an input for the ticks after the last input's up to now: none if this tick has one already or the time
    /// isn't known, several if the client ticks seldom. The first of them has its presses, and those of inputs that
    /// were for no tick.
    pub fn stamp(&mut self, now: Instant, input: &Encoded) -> Range<u32> {
        let ticks = self.due(now);
        let Some((first, rest)) = self.with_presses(input, ticks.is_empty()) else { return ticks };
        if first != rest {
            self.sent_presses.push(ticks.start);
        }
        for (tick, input) in ticks.clone().zip(iter::once(first).chain(iter::repeat(rest))) {
            if self.waiting.len() == MAX_WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back((tick, input));
        }
        self.stamped = Some(ticks.end - 1);
        self.stamped_view = self.view;
        ticks
    }

    /// The newest inputs, this many of them at most, as they were stamped.
    pub fn newest(&self, count: usize) -> impl Iterator<Item = &Encoded> {
        self.waiting.iter().skip(self.waiting.len().saturating_sub(count)).map(|(_, input)| input)
    }

    /// The ticks of an input that is given now.
    fn due(&mut self, now: Instant) -> Range<u32> {
        self.advance(now);
        let Some((clock, ahead)) = self.ahead(now) else { return 0..0 };
        let at = clock + ahead;
        let passed = clock - self.given.replace(clock).unwrap_or(clock);
        self.frame += (passed.clamp(0.0, f64::from(MAX_FILL)) - self.frame) / 16.0;
        let usual = self.frame.round().max(1.0) as u32;
        let is_slipping = self.pace.note_frame(now, self.clock.rate(), usual);
        // With a tick more, inputs are still in time when the frames have slipped into the next tick.
        let at = (at + f64::from(u8::from(is_slipping))).min(MAX_TICK);
        let tick = at as u32;
        let early = if self.frame < SHORT_FRAME { 0.0 } else { HOLD };
        let is_same = |same: &u32| (-early..1.0 + HOLD).contains(&(at - f64::from(*same)));
        let same = self.stamped.and_then(|stamped| stamped.checked_add(usual)).filter(is_same);
        let tick = same.unwrap_or(tick);
        let first = match self.stamped {
            Some(stamped) if tick <= stamped => return tick..tick,
            Some(stamped) if tick - stamped <= MAX_FILL => stamped + 1,
            _ => tick,
        };
        self.stamped_clock = clock;
        first..tick + 1
    }

    /// An input with all presses that wait, and without any; None if they wait for the next one.
    fn with_presses(&mut self, input: &Encoded, wait: bool) -> Option<(Encoded, Encoded)> {
        let schema = self.input.as_ref().filter(|_| !self.presses.is_empty());
        let mut body = Vec::new();
        let Some(schema) =
            schema.filter(|schema| schema.read(&mut BitReader::new(input.bytes()), &mut body).is_ok())
        else {
            return (!wait).then(|| (input.clone(), input.clone()));
        };
        self.presses.keep(&body);
        if wait {
            return None;
        }
        let written = |body: &[u8]| {
            let mut writer = BitWriter::new();
            // It was read with the same schema.
            let _ = schema.write_row(body, &mut writer);
            writer.encoded()
        };
        self.presses.clear(&mut body);
        let rest = written(&body);
        self.presses.release(&mut body);
        Some((written(&body), rest))
    }

    /// Sets the tick that the player sees from now on.
    pub fn see(&mut self, tick: f64) {
        self.view = Some((tick * VIEW_STEPS) as u64);
    }

    /// Inputs that the server may lack.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    // --- payloads ----------------------------------------------------------------------------------------

    /// The minimum room for a payload that is due; None when none is due.
    pub fn wants(&self, now: Instant) -> Option<usize> {
        let passed = self.last_payload.map_or(f64::MAX, |last| (now - last).as_secs_f64());
        let tick = 1.0 / self.clock.rate();
        let is_new = self.stamped > self.in_payload;
        // Slightly early still counts as a tick.
        let again = !self.waiting.is_empty() && passed >= 0.9 * tick;
        let asks = passed >= if self.asked < FIRST_ASKS { 0.9 * tick } else { ASK_EVERY };
        let bits = if self.waiting.is_empty() {
            HEADER_BITS
        } else {
            HEADER_BITS + self.input.as_ref().map_or(0, |schema| schema.max_bits())
        };
        (is_new || again || asks).then_some(bits)
    }

    /// Writes a payload in at most this many bits and returns its number.
    pub fn write(&mut self, now: Instant, bits: usize, writer: &mut BitWriter) -> Option<u8> {
        self.wants(now).filter(|least| *least <= bits)?;
        let view = self.stamped_view.map(|view| (view & 0xFF_FFFF) as u32);
        let header = InputHeader { sequence: self.next, view };
        let newest = self.waiting.back().map(|(tick, _)| *tick);
        // As many as requested, and all that were never in a payload.
        let fresh = match (newest, self.in_payload) {
            (Some(newest), Some(before)) => newest.saturating_sub(before) as usize,
            _ => MAX_COPIES,
        };
        let count = (fresh.max(1) * self.lead.copies() as usize).min(MAX_COPIES);
        // And those back to a press that was lost, or whose ack is overdue: it runs late rather than never.
        let overdue = if self.next.is_multiple_of(PRESSES_EVERY) { self.overdue(now) } else { u32::MAX };
        let count = count.max(newest.map_or(0, |newest| self.sent_presses.reach(newest, overdue)));
        let in_a_row = self.waiting.iter().rev().zip(0..).take(count);
        // Only consecutive ticks: the payload carries only the newest tick's number.
        let count = in_a_row.take_while(|((tick, _), age)| newest == Some(*tick + *age)).count();
        let first = self.waiting.len() - count;
        let inputs = self.waiting.range(first..).rev().map(|(_, input)| input);
        let written = write_inputs(&header, newest.unwrap_or_default(), inputs, bits, writer);
        self.sent_presses.note_sent(self.next, newest.unwrap_or_default(), written);
        let ticks = if newest > self.in_payload { fresh.min(count) as u32 } else { 0 };
        let clock = if ticks > 0 { Some(self.stamped_clock) } else { self.clock.tick(now) };
        self.lead.handle_sent(now, clock, ticks);
        self.sent[usize::from(self.next)] = Some(now);
        self.in_payload = newest.max(self.in_payload);
        (self.last_payload, self.asked) = (Some(now), self.asked.saturating_add(1));
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        Some(number)
    }

    /// After how many ticks an ack of a press is overdue. With a long round trip at once: its loss would be known too late.
    fn overdue(&self, now: Instant) -> u32 {
        let round_trip = self.clock.round_trip(now).unwrap_or(0.0) * self.clock.rate();
        if round_trip > MAX_INPUTS as f64 / 2.0 { 0 } else { (1.5 * round_trip) as u32 + ACK_TICKS }
    }

    /// The payload with this number was delivered or lost.
    pub fn handle_fate(&mut self, number: u8, delivered: bool) {
        self.lead.handle_fate(number, delivered);
        self.sent_presses.handle_fate(number, delivered);
    }

    /// A packet of ghosts arrived, for a tick with these low bits.
    pub fn handle_ghosts(&mut self, now: Instant, low: u16) {
        if let Some(tick) = self.server_tick.and_then(|known| nearest(low, known)) {
            self.clock.handle_down(now, f64::from(tick) + self.busy);
        }
    }

    /// Takes the server's report.
    pub fn handle_report(&mut self, now: Instant, report: &Report) {
        let tick = match report.high {
            Some(high) => Some(u32::from(high) << 16 | u32::from(report.tick)),
            None => self.server_tick.and_then(|known| nearest(report.tick, known)),
        };
        let Some(tick) = tick else { return };
        if self.server_tick.is_none_or(|known| known < tick) {
            let last = tick.saturating_sub(u32::from(report.changed));
            // The report says no more than that the last change is that old or older. If the report before is younger, it knew
            // the change.
            let is_known =
                report.changed == MAX_CHANGED && self.server_tick.is_some_and(|known| last <= known);
            if !is_known {
                self.changed = last;
            }
            self.server_tick = Some(tick);
        }
        let near = self.stamped.unwrap_or(tick);
        if let Some(newest) = report.newest.and_then(|low| nearest(low, near))
            && newest <= near
        {
            self.acked = self.acked.max(Some(newest));
            let pressed = self.sent_presses.oldest();
            let is_done = |tick: u32| tick <= newest && pressed.is_none_or(|pressed| tick < pressed);
            while self.waiting.front().is_some_and(|(tick, _)| is_done(*tick)) {
                self.waiting.pop_front();
            }
        }
        let is_timed = report.busy < MAX_BUSY;
        let busy = (f64::from(report.busy) + 0.5) / 16.0;
        if is_timed {
            self.busy = busy;
            self.clock.handle_down(now, f64::from(tick) + busy);
        }
        for (number, held) in &report.echoes[..usize::from(report.echo_count)] {
            let Some(sent) = self.sent[usize::from(*number)].take() else { continue };
            if !is_timed || *held == MAX_HELD || sent > now {
                continue;
            }
            let came = f64::from(tick) + busy - (f64::from(*held) + 0.5) / 16.0;
            self.clock.handle_up(now, sent, came);
            // The next tick takes its inputs. Frames that keep their usual number of ticks may stamp an input for the
            // tick before that of the clock.
            let held_back = if self.frame < SHORT_FRAME { 0.0 } else { HOLD };
            let taken = (came - REPORT_ERROR).ceil() + held_back - f64::from(self.config.delay);
            self.lead.handle_arrival(now, *number, taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::BitSink;

    #[test]
    fn the_last_change_is_known_however_long_ago_it_was() {
        let lead = LeadConfig { min: 0.0, max: 60.0, redundancy: 3 };
        let mut player = Player::new(60.0, PlayerConfig { delay: 0, lead }, None);
        let mut report = |tick: u32, changed: u8| {
            let low = tick as u16;
            let report = Report { tick: low, high: Some((tick >> 16) as u16), changed, ..Report::default() };
            player.handle_report(Instant::from_millis(u64::from(tick)), &report);
            player.owned_changes()
        };
        assert_eq!(report(1_000, 10), Some((1_000, 990)));
        assert_eq!(report(1_200, 210), Some((1_200, 990)));
        assert_eq!(report(1_400, 255), Some((1_400, 990)), "the report before knew it");
        assert_eq!(report(2_000, 255), Some((2_000, 1_745)), "it may have changed after the report before");
        assert_eq!(report(2_250, 255), Some((2_250, 1_745)));
        assert_eq!(report(2_256, 255), Some((2_256, 0)), "whatever changed has arrived");
        assert_eq!(report(2_300, 1), Some((2_300, 2_299)));
    }

    #[test]
    fn a_server_at_the_last_of_all_ticks_is_followed_without_overflow() {
        let lead = LeadConfig { min: 0.0, max: 60.0, redundancy: 3 };
        let mut player = Player::new(60.0, PlayerConfig { delay: 64, lead }, None);
        let mut input = BitWriter::new();
        input.bits(5, 8);
        let input = input.encoded();
        let mut stamped = 0;
        for turn in 0..200u64 {
            let now = Instant::from_millis(1_000 + 16 * turn);
            let mut writer = BitWriter::new();
            if let Some(sequence) = player.write(now, 1_000, &mut writer) {
                let mut report = Report { tick: u16::MAX, high: Some(u16::MAX), ..Report::default() };
                (report.echoes[0], report.echo_count) = ((sequence, 0), 1);
                player.handle_report(now, &report);
            }
            stamped += player.stamp(now, &input).len();
        }
        assert!(player.input_tick(Instant::from_millis(9_000)).is_some());
        assert!(stamped <= 1, "ticks rise, and there is none after the last");
    }
}
