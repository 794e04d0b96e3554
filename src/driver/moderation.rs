//! When a busy server lets datagrams gather before they wake it, as network cards moderate their interrupts.
//!
//! A wake for each of a thousand clients' datagrams costs more than their contents. So while datagrams come fast, a wake
//! comes once in an [`INTERVAL`], with all that arrived until then; otherwise each datagram wakes at once.
//!
//! Promises: nothing waits longer than an [`INTERVAL`]. Clients that wait for each answer before they send again aren't
//! slowed down by it for long: where gathering makes datagrams come fewer, it stops for some time.

use crate::time::{Duration, Instant};

/// The time from one wake of a busy server to the next. A game's tick is some 8 times as long, and a driver's thread lets
/// datagrams gather for twice as long.
pub(super) const INTERVAL: Duration = Duration::from_millis(2);

/// How long datagrams are counted, at least, before it is decided how to wake.
const WINDOW: Duration = Duration::from_millis(8);

/// This many datagrams in a window are busy: 16,000 a second, 32 in an interval.
const BUSY: u32 = 128;

/// Once datagrams gather, this many still are, and at least one for as many of those that came before.
const STILL_BUSY: u32 = BUSY / 2;
const STILL_ONE_OF: f64 = 5.0;

/// How long each datagram wakes again after gathering turned out to be of no use.
const UNMODERATED: Duration = Duration::from_millis(500);

/// Counts datagrams, and decides.
#[derive(Debug, Default)]
pub(super) struct Moderation {
    /// Datagrams since the window began.
    count: u32,
    began_at: Instant,
    gathers: bool,
    /// How many came in a window when they began to gather.
    before: f64,
    /// Until when nothing gathers, however busy it is.
    unmoderated_until: Instant,
}

impl Moderation {
    /// This many datagrams were read. Returns whether those to come are to gather.
    pub(super) fn note_read(&mut self, now: Instant, datagrams: u32) -> bool {
        self.count = self.count.saturating_add(datagrams);
        let passed = now - self.began_at;
        if passed < WINDOW {
            return self.gathers;
        }
        // By the rate, because a window lasts until something is read.
        let count = f64::from(self.count) * WINDOW.as_secs_f64() / passed.as_secs_f64();
        let busy = if self.gathers {
            // Those of many clients that wait for answers are busy, however long each waits.
            count >= f64::from(STILL_BUSY).max(self.before / STILL_ONE_OF)
        } else {
            self.before = count;
            count >= f64::from(BUSY)
        };
        if self.gathers && !busy {
            self.unmoderated_until = now + UNMODERATED;
        }
        self.gathers = busy && now >= self.unmoderated_until;
        (self.count, self.began_at) = (0, now);
        self.gathers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets datagrams come one in each `apart`, for `time` from `start`, while the server reads whenever it is woken.
    /// Returns the count of its wakes.
    fn run(moderation: &mut Moderation, start: Instant, time: Duration, apart: Duration) -> u32 {
        let (mut now, mut read_until, mut wakes) = (start, start, 0);
        let mut gathers = moderation.note_read(now, 0);
        while now < start + time {
            now += if gathers { INTERVAL.max(apart) } else { apart };
            let came = (now - read_until).as_nanos() / apart.as_nanos();
            read_until = now;
            gathers = moderation.note_read(now, came as u32);
            wakes += 1;
        }
        wakes
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn seconds(count: u64) -> Instant {
        Instant::from_millis(1_000 * count)
    }

    #[test]
    fn each_datagram_wakes_a_quiet_server() {
        let mut moderation = Moderation::default();
        let wakes = run(&mut moderation, seconds(1), SECOND, Duration::from_micros(100));
        assert_eq!(wakes, 10_000);
    }

    #[test]
    fn a_busy_server_is_woken_once_in_an_interval() {
        let mut moderation = Moderation::default();
        let wakes = run(&mut moderation, seconds(1), SECOND, Duration::from_micros(16));
        // The first window, and then the intervals.
        assert!((950..1_050).contains(&wakes), "{wakes}");
        let wakes = run(&mut moderation, seconds(2), SECOND, Duration::from_micros(16));
        assert!((490..=510).contains(&wakes), "{wakes}");
    }

    #[test]
    fn a_datagram_after_a_busy_time_wakes_at_once() {
        let mut moderation = Moderation::default();
        run(&mut moderation, seconds(1), SECOND, Duration::from_micros(16));
        assert!(moderation.gathers);
        assert!(!moderation.note_read(seconds(3), 1));
    }

    #[test]
    fn clients_that_wait_for_answers_are_seldom_slowed_down() {
        // A client that sends its next request 50 microseconds after the wake that reads the one before.
        let (mut moderation, mut now) = (Moderation::default(), seconds(1));
        let (mut gathers, mut slow, mut all) = (false, 0, 0);
        while now < seconds(11) {
            now += if gathers { INTERVAL } else { Duration::from_micros(50) };
            (slow, all) = (slow + u32::from(gathers), all + 1);
            gathers = moderation.note_read(now, 1);
        }
        assert!(all > 190_000 && slow < all / 1_000, "{slow} of {all}");
    }

    #[test]
    fn many_clients_that_wait_for_answers_are_seldom_slowed_down() {
        // Reading one takes 4 microseconds, and its client sends again after 50 more.
        for clients in [17, 32, 64] {
            let (mut moderation, mut now, mut answers) = (Moderation::default(), seconds(1), 0);
            let (mut waiting, mut gathers) = (std::collections::VecDeque::from(vec![now; clients]), false);
            while now < seconds(4) {
                now = if gathers { now + INTERVAL } else { now.max(waiting[0]) };
                let read = waiting.iter().take_while(|sent| **sent <= now).count();
                now += Duration::from_micros(4 * read as u64);
                waiting.drain(..read);
                waiting.extend(std::iter::repeat_n(now + Duration::from_micros(50), read));
                gathers = moderation.note_read(now, read as u32);
                answers += read;
            }
            assert!(answers > 3 * 130_000, "{clients} clients: {answers} answers in 3 s");
        }
    }
}
