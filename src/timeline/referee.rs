//! The server's part in one client's inputs: reads them, and reports how they arrived.
//!
//! Promises: a client's ticks affect only its own inputs, within the buffer's bounds; it gets a report at most once a
//! tick, and only after it sent something.

use std::sync::Arc;

use super::input_buffer::{InputBuffer, InputState, MissingPolicy};
use super::packet::{InputHeader, MAX_BUSY, MAX_CHANGED, MAX_ECHOES, MAX_HELD, Report};
use crate::store::sequence::{nearest, nearest_of};
use crate::time::Instant;

/// The server's time when a report is made.
#[derive(Clone, Copy, Debug)]
pub struct TickTime {
    /// The tick that ran last, and when its inputs were taken.
    pub tick: u32,
    pub taken_at: Instant,
    /// Ticks a second, as configured.
    pub rate: f64,
}

impl TickTime {
    /// 1/16 ticks between two times, at most this many.
    fn sixteenths(&self, from: Instant, to: Instant, most: u8) -> u8 {
        let ticks = (to - from).as_secs_f64() * self.rate * 16.0;
        // Rounding must not cost one.
        (ticks + 1e-6).min(f64::from(most)) as u8
    }
}

/// One client's inputs, and the report about them.
#[derive(Debug)]
pub struct Referee {
    buffer: InputBuffer,
    echoes: [(u8, Instant); MAX_ECHOES],
    echo_count: usize,
    newest: Option<u32>,
    /// The client knows the high bits of ticks.
    knows_high: bool,
    /// How early inputs come, in ticks: smoothed.
    early: Option<f64>,
    payloads: u64,
}

impl Referee {
    /// For a client that has sent nothing yet; `tick` is the one that ran last, `presses` are the offsets of presses in
    /// an input's row.
    pub fn new(tick: u32, policy: MissingPolicy, presses: Arc<[usize]>) -> Self {
        Referee {
            buffer: InputBuffer::new(tick, policy, presses),
            echoes: [(0, Instant::ZERO); MAX_ECHOES],
            echo_count: 0,
            newest: None,
            knows_high: false,
            early: None,
            payloads: 0,
        }
    }

    /// Takes a payload: the low bits of the newest input's tick, and the inputs, newest first, with the end of each
    /// in `ends`.
    pub fn handle_payload(
        &mut self,
        now: Instant,
        time: &TickTime,
        header: &InputHeader,
        low: u16,
        bodies: &[u8],
        ends: &[usize],
    ) {
        self.payloads += 1;
        if self.echo_count == MAX_ECHOES {
            // The oldest echo makes room.
            self.echoes.rotate_left(1);
            self.echo_count -= 1;
        }
        self.echoes[self.echo_count] = (header.sequence, now);
        self.echo_count += 1;
        if ends.is_empty() {
            return;
        }
        // An input from before the first tick is as late as that tick's.
        let head = nearest(low, time.tick).unwrap_or_default();
        let view = header.view.map(|low| nearest_view(low, time.tick));
        let mut start = 0;
        for (age, end) in (0..).zip(ends) {
            let view = view.map(|view| view.saturating_sub(u64::from(age) << 8));
            if let Some(tick) = head.checked_sub(age)
                && self.buffer.insert(tick, &bodies[start..*end], view)
                && self.newest.is_none_or(|newest| newest < tick)
            {
                self.newest = Some(tick);
            }
            start = *end;
        }
        let passed = (now - time.taken_at).as_secs_f64() * time.rate;
        let early = f64::from(head) - f64::from(time.tick) - passed;
        if early.abs() < f64::from(super::input_buffer::MAX_AHEAD) {
            let before = self.early.unwrap_or(early);
            self.early = Some(before + (early - before) / 32.0);
        }
        // Late inputs are acked too: nobody needs them again.
        if self.newest.is_none_or(|newest| newest < head) && head <= self.buffer.last() {
            self.newest = Some(head);
        }
    }

    /// Whether there is something to report.
    pub fn has_news(&self) -> bool {
        self.echo_count > 0
    }

    /// The report at the end of a tick. `changed` is the tick of the last change to anything the client owns.
    pub fn report(&mut self, now: Instant, time: &TickTime, changed: Option<u32>) -> Report {
        let mut report = Report {
            tick: time.tick as u16,
            high: (!self.knows_high).then_some((time.tick >> 16) as u16),
            busy: time.sixteenths(time.taken_at, now, MAX_BUSY),
            newest: self.newest.map(|newest| newest as u16),
            changed: changed.map_or(MAX_CHANGED, |changed| {
                time.tick.saturating_sub(changed).min(u32::from(MAX_CHANGED)) as u8
            }),
            ..Report::default()
        };
        for (echo, (sequence, at)) in report.echoes.iter_mut().zip(&self.echoes[..self.echo_count]) {
            *echo = (*sequence, time.sixteenths(*at, now, MAX_HELD));
        }
        report.echo_count = self.echo_count as u8;
        self.echo_count = 0;
        report
    }

    /// A report with the high bits of a tick was delivered.
    pub fn note_high_delivered(&mut self) {
        self.knows_high = true;
    }

    /// The inputs, for taking.
    pub fn buffer(&mut self) -> &mut InputBuffer {
        &mut self.buffer
    }

    /// The outcome of a tick's input.
    pub fn state(&self, tick: u32) -> Option<InputState> {
        self.buffer.state(tick)
    }

    /// The inputs, for queries.
    pub fn inputs(&self) -> &InputBuffer {
        &self.buffer
    }

    /// By how many ticks inputs arrive early, smoothed; None before the first.
    pub fn early(&self) -> Option<f64> {
        self.early
    }

    /// How many payloads arrived.
    pub fn payloads(&self) -> u64 {
        self.payloads
    }
}

/// The view with these low 24 bits that is nearest to a tick.
fn nearest_view(low: u32, tick: u32) -> u64 {
    nearest_of(low.into(), 24, i64::from(tick) << 8).try_into().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(tick: u32) -> TickTime {
        TickTime { tick, taken_at: Instant::from_millis(u64::from(tick) * 10), rate: 100.0 }
    }

    fn referee() -> Referee {
        Referee::new(99_999, MissingPolicy::None, Arc::new([]))
    }

    #[test]
    fn inputs_lie_at_their_ticks_with_what_was_seen() {
        let mut referee = referee();
        let view = (99_990u64 << 8) + 17;
        let header = InputHeader { sequence: 3, view: Some(view as u32 & 0xFF_FFFF) };
        let now = Instant::from_millis(999_995);
        referee.handle_payload(now, &time(99_999), &header, 100_001u32 as u16, b"xxyyy", &[2, 5]);
        let taken = referee.buffer().take(100_000);
        assert_eq!((taken.state, taken.input), (InputState::Here, Some(&b"yyy"[..])));
        assert_eq!(taken.view, Some(view - 256));
        assert_eq!(referee.buffer().take(100_001).view, Some(view));
        assert!((referee.early().unwrap() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn says_once_a_tick_what_came_and_when() {
        let mut referee = referee();
        assert!(!referee.has_news());
        for sequence in 0..6 {
            let header = InputHeader { sequence, view: None };
            let now = Instant::from_millis(999_990 + u64::from(sequence));
            referee.handle_payload(now, &time(99_999), &header, 5, b"", &[]);
        }
        let now = Instant::from_millis(1_000_005);
        let report = referee.report(now, &time(100_000), Some(99_990));
        assert_eq!((report.tick, report.high, report.busy), (100_000u32 as u16, Some(1), 8));
        assert_eq!((report.echo_count, report.changed, report.newest), (4, 10, None));
        assert_eq!(report.echoes, [(2, 20), (3, 19), (4, 17), (5, 16)]);
        assert!(!referee.has_news());
        referee.note_high_delivered();
        assert_eq!(referee.report(now, &time(100_000), None).high, None);
    }

    #[test]
    fn a_late_input_is_acked_so_that_it_is_not_repeated() {
        let mut referee = referee();
        referee.buffer().take(100_000);
        let header = InputHeader { sequence: 0, view: None };
        let now = Instant::from_millis(1_000_000);
        referee.handle_payload(now, &time(100_000), &header, 99_998u32 as u16, b"x", &[1]);
        assert_eq!(referee.report(now, &time(100_000), None).newest, Some(99_998u32 as u16));
        assert_eq!(referee.inputs().counters().late, 1);
        // Too far ahead: not stored, and not acked.
        referee.handle_payload(now, &time(100_000), &header, 110_000u32 as u16, b"x", &[1]);
        assert_eq!(referee.report(now, &time(100_000), None).newest, Some(99_998u32 as u16));
        assert_eq!(referee.inputs().counters().far_ahead, 1);
    }
}
